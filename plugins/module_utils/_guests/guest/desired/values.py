# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The values of options of guests, one by one (pure): the tables by which declared options become
options of Proxmox VE, the meaning of an empty text, and the checks that declarations name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...._foundation.cluster.rules import read_rules
from ...._foundation.cluster.storages.images import parse_image
from ...._foundation.core import validate
from ...._foundation.core.quantities import parse_disk_size
from ...kinds.model import GuestSource


@dataclass(frozen=True)
class OptionTables:
    """The generated tables of a kind of guests, by place; place "" is the guest itself."""

    scalars: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    property_strings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    words: Mapping[str, Mapping[str, Mapping[Any, str]]] = field(default_factory=dict)
    empty_removes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    checks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    ranges: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    # the checks, by the names that declarations use
    functions: Mapping[str, Callable[[Any, str], Any]] = field(default_factory=dict)
    nested: tuple[str, ...] = ()  # options with a dictionary of options, or a list of them

    def without_empty_texts(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options with None for an empty text that cannot remove anything."""
        found = self._cleared("", options)
        for name in self.nested:
            value = found.get(name)
            if isinstance(value, list):
                found[name] = [self._cleared(name, item) for item in value]
            elif isinstance(value, Mapping):
                found[name] = self._cleared(name, value)
        return found

    def _cleared(self, place: str, options: Mapping[str, Any]) -> dict[str, Any]:
        removable = self.empty_removes.get(place, {}).keys() | _PRESERVED
        found = dict(options)
        for name in options.keys() - removable:
            if isinstance(options[name], str) and not options[name].strip():
                found[name] = None
        return found


# The words for an address that is not static (pve-qm-ipconfig).
WORDS_FOR_IPV4 = ("dhcp",)


WORDS_FOR_IPV6 = ("dhcp", "auto")


# An empty tenant is not dropped: it has its own error.
_PRESERVED = frozenset(("tenant",))


def is_blank(value: Any) -> bool:
    """Return whether a value is an empty text, or a list of empty texts."""
    if isinstance(value, list):
        return all(map(is_blank, value))
    if not isinstance(value, str):
        return False
    return not value.strip()


def is_empty(value: Any) -> bool:
    """Return whether an option is left out or has an empty text."""
    if value is None:
        return True
    return isinstance(value, str) and is_blank(value)


def checked_items(
    tables: OptionTables,
    place: str,
    items: Sequence[Mapping[str, Any]] | None,
    slots_of: Callable[[Sequence[Mapping[str, Any]]], list[str]],
) -> list[dict[str, Any]] | None:
    """Return disks or NICs, each with its name; None if the option is left out."""
    if items is None:
        return None
    named: list[dict[str, Any]] = []
    for slot, item in zip(slots_of(items), items, strict=True):
        options = checked_at(tables, place, item, f"{place}.{slot}")
        named.append({**options, "name": slot})
    return named


def checked_at(
    tables: OptionTables, place: str, options: Mapping[str, Any], path: str
) -> dict[str, Any]:
    """Return the options of one place; `path` is its name in errors."""
    found = dict(options)
    for name, kind in tables.checks.get(place, {}).items():
        value = options.get(name)
        if is_empty(value):
            continue
        check = tables.functions[kind]
        what = f"{path}.{name}".lstrip(".")
        found[name] = check(value, what)
    for name, (minimum, maximum) in tables.ranges.get(place, {}).items():
        value = options.get(name)
        if value is None:
            continue
        found[name] = validate.number(value, minimum, maximum, name)
    return found


def _addresses(items: Sequence[str], what: str) -> str:
    addresses: list[str] = []
    for item in filter(None, items):
        address = validate.address(item, None, what)
        addresses.append(address)
    return " ".join(addresses)


def _ipv4(address: str, what: str) -> str:
    return address if address in WORDS_FOR_IPV4 else validate.cidr(address, 4, what)


def _ipv6(address: str, what: str) -> str:
    return address if address in WORDS_FOR_IPV6 else validate.cidr(address, 6, what)


def _public_keys(texts: Sequence[str], what: str) -> tuple[str, ...]:
    """Return one key a line, without empty lines and comments."""
    keys: list[str] = []
    for raw_line in "\n".join(texts).splitlines():
        line = raw_line.strip()
        if not line or line.startswith("#"):
            continue
        keys.append(validate.ssh_key(line, what))
    return tuple(keys)


def _source(given: Any, what: str) -> GuestSource:
    """Return a source: digits are a template's VMID, storage:path is a volume, anything else is a
    name, with the version of an image after `@`.
    """
    text = str(given).strip()
    if re.fullmatch("[0-9]+", text):
        return GuestSource(vmid=validate.vmid(text, what))
    if ":" in text:
        return GuestSource(volume=validate.volume(text, what))
    if len(text) > 255:
        raise validate.refused(
            what, text[:40] + "...", "is longer than 255 characters", "Use the image's name"
        )
    image = parse_image(text, what)
    return GuestSource(name=image.name, version=image.version or None)


_VLANS = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")


_LAST_VLAN = 4094


def _vlans(items: Sequence[str], what: str) -> str:
    """Return VLANs and ranges as PVE writes them. PVE's schema accepts any number, and the start of
    the guest fails (pve-common: PVE/Network.pm, tap_plug; VLAN_ID_MAX of Linux).
    """
    listed = [str(item).strip() for item in items]
    for item in listed:
        found = _VLANS.fullmatch(item)
        first = int(found[1]) if found else 0
        last = int(found[2] or first) if found else 0
        if not 1 <= first <= last <= _LAST_VLAN:
            raise validate.refused(
                what,
                item,
                "is not a VLAN or a range of VLANs",
                "Use 1 to 4094, such as 20 or 100-199; an empty list removes the VLANs",
            )
    return ";".join(listed)


COMMON: Mapping[str, Callable[[Any, str], Any]] = {
    "addresses": _addresses,
    "bridge": validate.bridge,
    "disk_size": lambda size, what: parse_disk_size(size, what=what),
    "dns_name": validate.dns_name,
    "gateway": lambda address, what: validate.address(address, 4, what),
    "gateway6": lambda address, what: validate.address(address, 6, what),
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "mac": validate.mac,
    "node": validate.node,
    "placement": lambda options, _what: read_rules(options),
    "pool": validate.pool,
    "public_keys": _public_keys,
    "source": _source,
    "vlans": _vlans,
    "storage": validate.storage,
    "tags": lambda items, what: [validate.tag(item, what) for item in filter(None, items)],
    "vmid": validate.vmid,
}


"""The checks of options of both kinds: each takes a value and the option's name for errors."""
