# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From module options to `Desired`: PVE's keys with canonical values.

Pure; every refusal is a ValidationFailed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..._cluster.quota import read_limits
from ..._cluster.rules import read_rules
from ..._cluster.tenant import PREFIX, tenant_tag, tenants_of
from ..._cluster.vmids import read_bands
from ..._core import validate
from ..._core.propstring import canonical
from ..._core.quantities import parse_memory
from ..._schema.formats import (
    canonical_option,
    canonical_sub_key,
    format_of,
    parse_option,
    rule_of,
    sub_keys_of,
)
from ..._spec.vm_rules import EMPTY_REMOVES, PROPERTY_STRINGS, SCALARS, WORDS
from ..model import Desired, Source
from . import devices, presets
from .blanks import is_blank
from .userdata import read_snippet

_BOOT_WORDS = {"disk", "network", "cdrom"}
# Options of the module itself, which cannot be set in `options` too.
_OWN = {
    "name": "name",
    "tags": "tags",
    "description": "description",
    "memory": "memory",
    "cores": "cores",
    "sshkeys": "cloud_init.ssh_keys",
    "cipassword": "cloud_init.password",
    "template": "state",
    "lock": None,
    "digest": None,
    "vmgenid": None,
    "meta": None,
    "pool": "pool",
    "bootdisk": "boot",
}
_DEVICE = re.compile(r"^(net|ide|sata|scsi|virtio|ipconfig|unused)\d+$")
_CLOUD_INIT_DRIVE = re.compile(r"^(ide|sata|scsi)\d+$")
_T = TypeVar("_T")


def read_desired(params: Mapping[str, Any]) -> Desired:
    """Return what the options ask for.

    `params` are the module's, checked by its argument specification.
    """
    options = presets.resolve(params)
    cloud_init = options.get("cloud_init") or {}
    hardware = _hardware(options)
    for key, value in devices.read_nics(options.get("nics") or []).items():
        if value is None:
            hardware.unset.add(key)
        else:
            hardware.property_strings[key] = value
    _add_cloud_init(cloud_init, hardware)
    _add_open_options(options.get("options") or {}, hardware)
    description = options.get("description")
    password = cloud_init.get("password")
    return Desired(
        name=_valid(options.get("name"), validate.dns_name),
        vmid=_vmid(options),
        node=_valid(options.get("node"), validate.node),
        state=options.get("state") or "present",
        tenant=_tenant(options),
        tenant_prefix=options.get("tenant_prefix") or PREFIX,
        pool=_pool(options.get("pool")),
        adopt=bool(options.get("adopt")),
        source=_source(options),
        scalars=hardware.scalars,
        property_strings=hardware.property_strings,
        unset=frozenset(hardware.unset),
        disks=devices.read_disks(options.get("disks") or []),
        tags=_tags(options),
        tags_exact=bool(options.get("tags_exact")),
        description=None if description is None else _notes(description),
        disks_exact=_is_exact(options, "disks"),
        nics_exact=_is_exact(options, "nics"),
        snippet=read_snippet(cloud_init),
        ssh_keys=_ssh_keys(cloud_init.get("ssh_keys")),
        password=None if is_blank(password) else password,
        update_password=cloud_init.get("update_password") or "on_create",
        cloud_init_drive=_cloud_init_drive(options.get("cloud_init")),
        cloud_init_storage=_valid(cloud_init.get("storage"), validate.storage),
        default_storage=_default_storage(options),
        bands=read_bands(options.get("vmid_range"), options.get("vmid_bands")),
        vmid_choice=options.get("vmid_choice") or "by_name",
        rules=read_rules(options.get("placement")),
        rebalance=bool(options.get("rebalance")),
        shared_sources=frozenset(options.get("shared_sources") or ()),
        limits=read_limits(options),
        migrate=options.get("migrate") is not False,
        reboot=options.get("reboot") or "never",
        graceful=bool(options.get("graceful")),
        force=bool(options.get("force")),
        shutdown_timeout=validate.number(
            options.get("shutdown_timeout", 60), 0, 86400, "shutdown_timeout"
        ),
    )


@dataclass
class _Hardware:
    """Options in PVE's keys: scalars, property strings by sub-key, and options to remove."""

    scalars: dict[str, str] = field(default_factory=dict)
    property_strings: dict[str, dict[str, str | None]] = field(default_factory=dict)
    unset: set[str] = field(default_factory=set)

    def __contains__(self, key: str) -> bool:
        return key in {*self.scalars, *self.property_strings, *self.unset}


def _valid(value: Any, check: Callable[[Any], _T]) -> _T | None:
    """Return the checked value, or None where the option is left out or empty."""
    if not value:
        return None
    return check(value)


def _vmid(options: Mapping[str, Any]) -> int | None:
    vmid = options.get("vmid")
    if vmid is None:
        return None
    return validate.vmid(vmid)


def _default_storage(options: Mapping[str, Any]) -> str:
    return validate.storage(options.get("default_storage") or "local-lvm", "default_storage")


def _is_exact(options: Mapping[str, Any], devices_: str) -> bool:
    """Return whether a list of devices names all of them: only a list that is given can."""
    if options.get(devices_) is None:
        return False
    return bool(options.get(f"{devices_}_exact"))


def _hardware(options: Mapping[str, Any]) -> _Hardware:
    """Return the hardware options in PVE's keys."""
    hardware = _Hardware()
    given = {name: value for name, value in options.items() if value is not None}
    for name, key in EMPTY_REMOVES[""].items():
        if key and is_blank(given.get(name)):
            hardware.unset.add(key)
            del given[name]
    if "cores" in given:
        hardware.scalars["cores"] = str(validate.number(given["cores"], 1, 1024, "cores"))
    for name, key in SCALARS[""].items():
        if name in given:
            hardware.scalars[key] = _checked(key, _in_words_of_pve(name, given[name]))
    for name, key in PROPERTY_STRINGS[""].items():
        if name in given:
            text = _in_words_of_pve(name, given[name])
            hardware.property_strings[key] = _property(key, text)
    if "agent" in given:
        hardware.property_strings["agent"] = _agent(given["agent"])
    if "boot" in given:
        hardware.property_strings["boot"] = {"order": _boot_order(given["boot"])}
    _add_memory(given, hardware)
    _add_serial_console(given.get("serial_console"), hardware)
    return hardware


def _in_words_of_pve(name: str, value: Any) -> Any:
    """Return the value that PVE has for a word of ours, any other value as it is."""
    return WORDS[""].get(name, {}).get(value, value)


def _add_serial_console(wanted: bool | None, hardware: _Hardware) -> None:
    if wanted is None:
        return
    if wanted:
        hardware.scalars["serial0"] = "socket"
    else:
        hardware.unset.add("serial0")


def _add_memory(given: Mapping[str, Any], hardware: _Hardware) -> None:
    """Add memory and balloon, which must not be larger."""
    maximum = 1 << 32
    if "memory" in given:
        floor = parse_memory(given.get("memory_floor") or 64, what="memory_floor", least=16)
        maximum = parse_memory(given["memory"], least=floor)
        hardware.property_strings["memory"] = {"current": str(maximum)}
    if "balloon" in given:
        balloon = given["balloon"]
        if canonical(balloon, {"type": "boolean"}) == "0":  # a word of YAML: no balloon device
            balloon = "0"
        size = parse_memory(balloon, what="balloon", least=0, most=maximum)
        hardware.scalars["balloon"] = str(size)


def _agent(given: Any) -> dict[str, str | None]:
    """Return the sub-keys of the agent: a switch, PVE's own text, or a dictionary of them."""
    if isinstance(given, Mapping):
        return _sub_keys("agent", given)
    return _property("agent", canonical(given, {"type": "boolean"}))


def _boot_order(devices_: Sequence[str]) -> str:
    """Return PVE's order.

    The words disk, network and cdrom stay words until the plan knows the VM's devices.
    """
    named = list(filter(None, devices_))
    for item in named:
        if item in _BOOT_WORDS or rule_of(item):
            continue
        raise validate.refused(
            "boot",
            item,
            "is not a device",
            "Use disk, network, cdrom or names such as scsi0, net0",
        )
    return ";".join(named)


def _add_cloud_init(given: Mapping[str, Any], hardware: _Hardware) -> None:
    """Add the options of cloud-init, except the password and the SSH keys."""
    for name, key in EMPTY_REMOVES["cloud_init"].items():
        if is_blank(given.get(name)):
            hardware.unset.add(key)
    for name, key in SCALARS["cloud_init"].items():
        value = given.get(name)
        if value is None or key in hardware.unset:
            continue
        if name == "search_domain":
            value = validate.dns_name(value, "cloud_init.search_domain")
        hardware.scalars[key] = _checked(key, value)
    if given.get("nameservers") is not None:
        _add_nameservers(given["nameservers"], hardware)
    snippets = _snippets(given.get("snippets") or {})
    if snippets:
        hardware.property_strings["cicustom"] = snippets


def _add_nameservers(items: Sequence[str], hardware: _Hardware) -> None:
    what = "cloud_init.nameservers"
    named = filter(None, items)
    addresses = [validate.address(item, None, what) for item in named]
    if addresses:
        hardware.scalars["nameserver"] = " ".join(addresses)
    else:
        hardware.unset.add("nameserver")


def _snippets(given: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the volumes of snippets by name, None for one to remove."""
    found: dict[str, str | None] = {}
    for name, volume in given.items():
        if volume is None:
            continue
        if is_blank(volume):
            found[name] = None
        else:
            found[name] = validate.volume(volume, f"cloud_init.snippets.{name}")
    return found


def _add_open_options(given: Mapping[str, Any], hardware: _Hardware) -> None:
    """Add the open-ended dictionary: any PVE option by its own name; null removes one."""
    for raw_key, value in given.items():
        key = str(raw_key)
        _require_open(key)
        if key in hardware:
            raise validate.refused(
                "options", key, "is also set by an option of its own", "Set it once"
            )
        if value is None or is_blank(value):
            hardware.unset.add(key)
        else:
            _add_open_option(key, value, hardware)


def _add_open_option(key: str, value: Any, hardware: _Hardware) -> None:
    """Add one option: a dictionary of sub-keys, or a text as PVE writes it."""
    is_plain = format_of(key) is None
    is_unknown = rule_of(key) is None
    has_sub_keys = is_unknown or not is_plain
    if isinstance(value, Mapping) and has_sub_keys:
        hardware.property_strings[key] = _sub_keys(key, value)
    elif isinstance(value, (Mapping, list)):
        raise validate.refused(
            f"options.{key}", value, "is not text", "Write it as PVE does, as one text"
        )
    elif is_plain:
        hardware.scalars[key] = _checked(key, value)
    else:
        hardware.property_strings[key] = _property(key, str(value))


def _require_open(key: str) -> None:
    """Raise ValidationFailed for an option that the module sets by an option of its own."""
    if _DEVICE.match(key):
        step = "Use disks and nics"
    elif key not in _OWN:
        return
    elif _OWN[key] is None:
        step = "PVE sets it itself"
    else:
        step = f"Use {_OWN[key]}"
    raise validate.refused("options", key, "cannot be set there", step)


def _sub_keys(key: str, given: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the sub-keys of an option that are given one by one; null takes one out."""
    fmt = sub_keys_of(key)
    values: dict[str, str | None] = {}
    for raw_name, item in given.items():
        rule = fmt.get(str(raw_name), {})
        name = rule.get("alias") or str(raw_name)
        if isinstance(item, (Mapping, list)):
            raise validate.refused(
                f"{key}.{name}",
                item,
                "is not a single value",
                "Give a text, a number, true or false",
            )
        values[name] = None
        if item is not None and not is_blank(item):
            values[name] = canonical_sub_key(key, name, item)
    devices.check_given_parts(key, values)
    return values


def _checked(key: str, value: Any) -> str:
    """Return a scalar option's canonical text, inside the range and enumeration of PVE's schema."""
    text = canonical_option(key, value)
    devices.check_scalar(key, text)
    return text


def _property(key: str, text: str) -> dict[str, str | None]:
    """Return the sub-keys of a property string, each one checked."""
    values = parse_option(key, text)
    devices.check_parts(key, values)
    rule = rule_of(key) or {}
    # nothing in such a format must be there
    if isinstance(rule.get("format"), str):
        devices.check_scalar(key, text)
    return dict(values)


def _tags(options: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the desired tags. Raises ValidationFailed for the tag of another tenant."""
    given = options.get("tags")
    if given is None:
        return None
    tags = frozenset(map(validate.tag, filter(None, given)))
    prefix = options.get("tenant_prefix") or PREFIX
    owners = tenants_of(tags, prefix)
    own = owners[:1]
    tenant = options.get("tenant")
    if tenant:
        own = (tenant_tag(str(tenant), prefix),)
    others = [tag for tag in owners if tag not in own]
    if others:
        # Without a tenant, each of several tags is another one's.
        other = others[0] if tenant else owners[0]
        raise validate.refused(
            "tags", other, "is another tenant's tag", "A VM has the tag of one tenant at most"
        )
    return tags


def _notes(text: str) -> str:
    """Return notes as they are read back: without empty lines before them and blanks after them.

    PVE drops all blanks at the end of the notes when it reads a configuration (QemuServer.pm,
    parse_vm_config).
    """
    return text.strip("\n").rstrip()


def _pool(name: str | None) -> str | None:
    """Return the pool, an empty text for no pool, or None where the option is left out."""
    if name is None:
        return None
    if is_blank(name):
        return ""
    return validate.pool(name)


def _tenant(options: Mapping[str, Any]) -> str | None:
    tenant = options.get("tenant")
    if not tenant:
        return None
    prefix = options.get("tenant_prefix") or PREFIX
    validate.tag(f"{prefix}{tenant}", "tenant")
    return str(tenant).lower()


def _ssh_keys(keys: Sequence[str] | None) -> tuple[str, ...] | None:
    if keys is None:
        return None
    checked: list[str] = []
    for raw_line in "\n".join(keys).splitlines():
        line = raw_line.strip()
        if not line or line.startswith("#"):
            continue
        checked.append(validate.ssh_key(line, "cloud_init.ssh_keys"))
    return tuple(checked)


def _source(options: Mapping[str, Any]) -> Source | None:
    """Read O(source): digits are a template's VMID, storage:path a volume, anything else a name."""
    text = str(options.get("source") or "").strip()
    full = options.get("full")
    if not text:
        return None
    if re.fullmatch("[0-9]+", text):
        return Source(vmid=validate.vmid(text, "source"), full=full)
    if ":" in text:
        return Source(volume=validate.volume(text, "source"), full=full)
    if len(text) > 255:
        raise validate.refused(
            "source", text[:40] + "...", "is longer than 255 characters", "Use the image's name"
        )
    return Source(name=text, full=full)


def _cloud_init_drive(cloud_init: Mapping[str, Any] | None) -> str | None:
    """Return the slot of the cloud-init drive, or None where cloud-init is not asked for."""
    if cloud_init is None:
        return None
    slot = str(cloud_init.get("drive") or "ide2")
    if not _CLOUD_INIT_DRIVE.match(slot) or not rule_of(slot):
        raise validate.refused(
            "cloud_init.drive", slot, "is not a drive", "Use a name such as ide2 or scsi1"
        )
    return slot
