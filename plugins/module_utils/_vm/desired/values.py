# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The values of a VM's options, one by one (pure): what an empty text means, and the check that the
declaration of an option names.

An empty text removes an option, so that PVE's default holds, wherever PVE can do without it. What a
VM always has (a name, memory, a disk's storage) cannot be removed: there an empty text counts as
left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..._cluster.rules import Rules, read_rules
from ..._core import validate
from ..._core.propstring import canonical
from ..._core.quantities import parse_disk_size
from ..._schema.formats import rule_of
from ..._spec.fleet import with_defaults
from ..._spec.vm import vm_spec
from ..._spec.vm_rules import CHECKS, EMPTY_REMOVES, RANGES
from ..model import Source
from .layers import disk_slots, nic_slots

# An empty tenant is an error of its own.
_KEPT = frozenset(("tenant",))
_NESTED = ("disks", "nics", "cloud_init")
_BOOT_WORDS = frozenset(("disk", "network", "cdrom"))
_CLOUD_INIT_DRIVE = re.compile(r"^(ide|sata|scsi)\d+$")
_SPEC = vm_spec()
# What stands for an address that is not static (pve-qm-ipconfig).
WORDS_FOR_IPV4 = ("dhcp",)
WORDS_FOR_IPV6 = ("dhcp", "auto")


def is_blank(value: Any) -> bool:
    """Return whether a value is an empty text, or a list of nothing else."""
    if isinstance(value, list):
        return all(map(is_blank, value))
    if not isinstance(value, str):
        return False
    return not value.strip()


def _is_empty(value: Any) -> bool:
    """Return whether an option is left out or has an empty text."""
    if value is None:
        return True
    return isinstance(value, str) and is_blank(value)


def without_left_out(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with None for an empty text that cannot remove anything."""
    found = _cleared("", options)
    for name in _NESTED:
        if name in found:
            found[name] = _cleared_within(name, found[name])
    return found


def _cleared_within(place: str, value: Any) -> Any:
    """Return a dictionary of options, or a list of such, without what is left out."""
    if isinstance(value, list):
        return [_cleared(place, item) for item in value]
    if isinstance(value, Mapping):
        return _cleared(place, value)
    return value


def _cleared(place: str, options: Mapping[str, Any]) -> dict[str, Any]:
    removable = EMPTY_REMOVES[place].keys() | _KEPT
    found = dict(options)
    for name in options.keys() - removable:
        if _is_empty(options[name]):
            found[name] = None
    return found


def checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of a VM, each value in the form that its check gives it.

    Options that are not given have their defaults, each disk and NIC its name. Raises
    ValidationFailed for the first value that a check refuses.
    """
    options = _checked_at("", with_defaults(_SPEC, dict(given)), "")
    options["disks"] = _checked_items("disks", options["disks"], disk_slots)
    options["nics"] = _checked_items("nics", options["nics"], nic_slots)
    cloud_init = options["cloud_init"]
    if cloud_init is not None:
        place = "cloud_init.snippets"
        snippets = cloud_init["snippets"] or {}
        options["cloud_init"] = {
            **_checked_at("cloud_init", cloud_init, "cloud_init"),
            "snippets": _checked_at(place, snippets, place),
        }
    return options


def _checked_items(
    place: str,
    items: Sequence[Mapping[str, Any]] | None,
    slots_of: Callable[[Sequence[Mapping[str, Any]]], list[str]],
) -> list[dict[str, Any]] | None:
    """Return disks or NICs, each with its name; None where the option is left out."""
    if items is None:
        return None
    named: list[dict[str, Any]] = []
    for slot, item in zip(slots_of(items), items, strict=True):
        options = _checked_at(place, item, f"{place}.{slot}")
        named.append({**options, "name": slot})
    return named


def _checked_at(
    place: str,
    options: Mapping[str, Any],
    shown: str,
) -> dict[str, Any]:
    """Return the options of one place; `shown` is how errors call it."""
    found = dict(options)
    for name, kind in CHECKS[place].items():
        value = options.get(name)
        if _is_empty(value):
            continue
        check = FUNCTIONS[kind]
        what = f"{shown}.{name}".lstrip(".")
        found[name] = check(value, what)
    for name, (minimum, maximum) in RANGES.get(place, {}).items():
        value = options.get(name)
        if value is None:
            continue
        found[name] = validate.number(
            value,
            minimum,
            maximum,
            name,
        )
    return found


def _agent(given: Any, _what: str) -> Any:
    """Return a dictionary of sub-keys, or PVE's own text, for a switch too."""
    if isinstance(given, Mapping):
        return given
    return canonical(given, {"type": "boolean"})


def _addresses(items: Sequence[str], what: str) -> str:
    addresses: list[str] = []
    for item in filter(None, items):
        address = validate.address(item, None, what)
        addresses.append(address)
    return " ".join(addresses)


def _balloon(size: Any, _what: str) -> Any:
    """Return a size, 0 for a word of YAML such as `off`: no balloon device."""
    if canonical(size, {"type": "boolean"}) == "0":
        return "0"
    return size


def _boot_order(items: Sequence[str], what: str) -> str:
    """Return PVE's order.

    The words disk, network and cdrom stay words until the plan knows the VM's devices.
    """
    named = list(filter(None, items))
    for item in named:
        is_device = rule_of(item) is not None
        if is_device or item in _BOOT_WORDS:
            continue
        raise validate.refused(
            what,
            item,
            "is not a device",
            "Use disk, network, cdrom or names such as scsi0, net0",
        )
    return ";".join(named)


def _cloud_init_drive(slot: str, what: str) -> str:
    is_on_bus = _CLOUD_INIT_DRIVE.match(slot)
    if is_on_bus and rule_of(slot):
        return slot
    raise validate.refused(
        what,
        slot,
        "is not a drive",
        "Use a name such as ide2 or scsi1",
    )


def _discard(is_on: Any, _what: str) -> str:
    if canonical(is_on, {"type": "boolean"}) == "1":
        return "on"
    return "ignore"


def _disk_size(size: Any, what: str) -> int:
    return parse_disk_size(size, what=what)


def _gateway(address: str, what: str) -> str:
    return validate.address(address, 4, what)


def _gateway6(address: str, what: str) -> str:
    return validate.address(address, 6, what)


def _ipv4(address: str, what: str) -> str:
    if address in WORDS_FOR_IPV4:
        return address
    return validate.cidr(address, 4, what)


def _ipv6(address: str, what: str) -> str:
    if address in WORDS_FOR_IPV6:
        return address
    return validate.cidr(address, 6, what)


def _iso(volume: str, what: str) -> str:
    if volume == "none":  # an empty CD drive
        return volume
    return validate.volume(volume, what)


def _placement(options: Mapping[str, Any], _what: str) -> Rules:
    return read_rules(options)


def _public_keys(texts: Sequence[str], what: str) -> tuple[str, ...]:
    """Return one key a line, without empty lines and comments."""
    keys: list[str] = []
    for raw_line in "\n".join(texts).splitlines():
        line = raw_line.strip()
        if not line or line.startswith("#"):
            continue
        keys.append(validate.ssh_key(line, what))
    return tuple(keys)


def _source(given: Any, what: str) -> Source:
    """Return a source: digits are a template's VMID, storage:path a volume, anything else a
    name.
    """
    text = str(given).strip()
    if re.fullmatch("[0-9]+", text):
        return Source(vmid=validate.vmid(text, what))
    if ":" in text:
        return Source(volume=validate.volume(text, what))
    if len(text) > 255:
        raise validate.refused(
            what,
            text[:40] + "...",
            "is longer than 255 characters",
            "Use the image's name",
        )
    return Source(name=text)


def _tags(items: Sequence[str], what: str) -> list[str]:
    return [validate.tag(item, what) for item in filter(None, items)]


def _vlans(items: Sequence[str], _what: str) -> str:
    return ";".join(items)


FUNCTIONS: Mapping[str, Callable[[Any, str], Any]] = {
    "addresses": _addresses,
    "agent": _agent,
    "balloon": _balloon,
    "boot_order": _boot_order,
    "bridge": validate.bridge,
    "cloud_init_drive": _cloud_init_drive,
    "discard": _discard,
    "disk_size": _disk_size,
    "dns_name": validate.dns_name,
    "gateway": _gateway,
    "gateway6": _gateway6,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "iso": _iso,
    "mac": validate.mac,
    "node": validate.node,
    "placement": _placement,
    "pool": validate.pool,
    "public_keys": _public_keys,
    "source": _source,
    "storage": validate.storage,
    "tags": _tags,
    "vlans": _vlans,
    "vmid": validate.vmid,
    "volume": validate.volume,
}
"""The checks that declarations name: each takes a value and the option's name for errors."""
