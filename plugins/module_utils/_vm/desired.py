# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From module options to `Desired`: PVE's keys with canonical values. Pure; every refusal is a ValidationFailed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._cluster.quota import read_limits
from .._cluster.rules import read_rules
from .._cluster.tenant import tenant_tag, tenants_of
from .._cluster.vmids import read_bands
from .._core import validate
from .._core.propstring import canonical, parse
from .._core.quantities import parse_memory
from .._schema.formats import format_of, rule_of
from . import devices, estate
from .model import Desired, Source
from .userdata import read_snippet

_BIOS = {"uefi": "ovmf", "bios": "seabios"}
_MACHINES = {"i440fx": "pc"}
_OSTYPES = {"linux": "l26", "windows": "win11"}
_BOOT_WORDS = {"disk", "network", "cdrom"}
_PLAIN = ("sockets", "vcpus", "cpulimit", "cpuunits", "numa", "scsihw", "onboot", "protection", "hotplug")
_PARTS = ("cpu", "machine", "vga", "startup")
# Options that are described elsewhere: setting them in `options` too would make two wishes for one thing.
_OWN = {
    "name": "name", "tags": "tags", "description": "description", "memory": "memory", "cores": "cores",
    "sshkeys": "cloud_init.ssh_keys", "cipassword": "cloud_init.password", "template": "state", "lock": None,
    "digest": None, "vmgenid": None, "meta": None, "pool": "pool", "bootdisk": "boot",
}  # fmt: skip
_DEVICE = re.compile(r"^(net|ide|sata|scsi|virtio|ipconfig|unused)\d+$")


def read_desired(params: Mapping[str, Any]) -> Desired:
    """Return what the options ask for. `params` are the module's, checked by its argument specification."""
    options = estate.resolve(params)
    plain, parts, drop = _hardware(options)
    disks = devices.read_disks(options.get("disks") or [])
    for key, value in devices.read_nics(options.get("nics") or []).items():
        if value is None:
            drop.add(key)
        else:
            parts[key] = value
    cloud_init = options.get("cloud_init") or {}
    _cloud_init(cloud_init, plain, parts, drop)
    _open_options(options.get("options") or {}, plain, parts, drop)
    description = options.get("description")
    return Desired(
        name=validate.dns_name(options["name"]) if options.get("name") else None,
        vmid=validate.vmid(options["vmid"]) if options.get("vmid") is not None else None,
        node=validate.node(options["node"]) if options.get("node") else None,
        state=options.get("state") or "present",
        tenant=_tenant(options),
        tenant_prefix=options.get("tenant_prefix") or "tenant_",
        pool=validate.pool(options["pool"]) if options.get("pool") else None,
        adopt=bool(options.get("adopt")),
        source=_source(options),
        plain=plain,
        parts=parts,
        drop=frozenset(drop),
        disks=disks,
        tags=_tags(options),
        tags_exact=bool(options.get("tags_exact")),
        description=None if description is None else _notes(description),
        disks_exact=bool(options.get("disks_exact")) and options.get("disks") is not None,
        nics_exact=bool(options.get("nics_exact")) and options.get("nics") is not None,
        snippet=read_snippet(cloud_init),
        ssh_keys=_ssh_keys(cloud_init.get("ssh_keys")),
        password=cloud_init.get("password"),
        update_password=cloud_init.get("update_password") or "on_create",
        cloud_init_drive=_drive_slot(cloud_init) if options.get("cloud_init") is not None else None,
        cloud_init_storage=validate.storage(cloud_init["storage"]) if cloud_init.get("storage") else None,
        default_storage=validate.storage(options.get("default_storage") or "local-lvm", "default_storage"),
        bands=read_bands(options.get("vmid_range"), options.get("vmid_bands")),
        rules=read_rules(options.get("placement")),
        rebalance=bool(options.get("rebalance")),
        shared_sources=frozenset(options.get("shared_sources") or ()),
        limits=read_limits(options),
        migrate=options.get("migrate") is not False,
        reboot=options.get("reboot") or "never",
        graceful=bool(options.get("graceful")),
        force=bool(options.get("force")),
        shutdown_timeout=validate.number(options.get("shutdown_timeout", 60), 0, 86400, "shutdown_timeout"),
    )


def _hardware(options: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, dict[str, str | None]], set[str]]:
    """Return plain options, property strings and options to remove, out of the hardware options."""
    plain: dict[str, str] = {}
    parts: dict[str, dict[str, str | None]] = {}
    if options.get("cores") is not None:
        plain["cores"] = str(validate.number(options["cores"], 1, 1024, "cores"))
    for key in _PLAIN:
        if options.get(key) is not None:
            plain[key] = _checked(key, options[key])
    if options.get("bios"):
        plain["bios"] = _BIOS.get(options["bios"], options["bios"])
    if options.get("ostype"):
        plain["ostype"] = _checked("ostype", _OSTYPES.get(options["ostype"], options["ostype"]))
    memory = options.get("memory")
    if memory is not None:
        floor = parse_memory(options.get("memory_floor") or 64, what="memory_floor", least=16)
        parts["memory"] = {"current": str(parse_memory(memory, least=floor))}
    if options.get("balloon") is not None:
        most = int(parts["memory"]["current"] or 0) if "memory" in parts else 1 << 32
        plain["balloon"] = str(parse_memory(options["balloon"], what="balloon", least=0, most=most))
    if options.get("agent") is not None:
        parts["agent"] = _property("agent", canonical(options["agent"], {"type": "boolean"}))
    for key in _PARTS:
        value = options.get(key)
        if value:
            parts[key] = _property(key, _MACHINES.get(value, value) if key == "machine" else value)
    if options.get("boot") is not None:
        parts["boot"] = {"order": _boot_order(options["boot"])}
    if options.get("serial_console"):
        plain["serial0"] = "socket"
    return plain, parts, {"serial0"} if options.get("serial_console") is False else set()


def _boot_order(devices_: Sequence[str]) -> str:
    """Return PVE's order; the words disk, network and cdrom stay words until the plan knows the VM's devices."""
    for item in devices_:
        if item not in _BOOT_WORDS and not rule_of(item):
            raise validate.refused(
                "boot", item, "is no device", "Use disk, network, cdrom or names such as scsi0, net0"
            )
    return ";".join(devices_)


def _cloud_init(
    given: Mapping[str, Any], plain: dict[str, str], parts: dict[str, dict[str, str | None]], drop: set[str]
) -> None:
    """Add the cloud-init options that are plain text on the wire."""
    if given.get("type"):
        plain["citype"] = given["type"]
    if given.get("user"):
        plain["ciuser"] = given["user"]
    if given.get("upgrade") is not None:
        plain["ciupgrade"] = canonical(given["upgrade"], {"type": "boolean"})
    if given.get("nameservers") is not None:
        names = [validate.address(item, None, "cloud_init.nameservers") for item in given["nameservers"]]
        if names:
            plain["nameserver"] = " ".join(names)
        else:
            drop.add("nameserver")
    if given.get("search_domain"):
        plain["searchdomain"] = validate.dns_name(given["search_domain"], "cloud_init.search_domain")
    snippets = {name: volume for name, volume in (given.get("snippets") or {}).items() if volume}
    if snippets:
        parts["cicustom"] = {
            name: validate.volume(volume, f"cloud_init.snippets.{name}") for name, volume in snippets.items()
        }


def _open_options(
    given: Mapping[str, Any], plain: dict[str, str], parts: dict[str, dict[str, str | None]], drop: set[str]
) -> None:
    """Add the open-ended dictionary: any PVE option by its own name; null takes one away."""
    for raw_key, value in given.items():
        key = str(raw_key)
        if key in _OWN or _DEVICE.match(key):
            other = _OWN.get(key) or ("disks and nics" if _DEVICE.match(key) else None)
            step = f"Use {other}" if other else "PVE sets it itself"
            raise validate.refused("options", key, "cannot be set there", step)
        if key in plain or key in parts or key in drop:
            raise validate.refused("options", key, "is also set by an option of its own", "Set it once")
        if value is None:
            drop.add(key)
        elif format_of(key) is None:
            plain[key] = _checked(key, value) if rule_of(key) else str(value)
        elif isinstance(value, Mapping):
            parts[key] = _sub_keys(key, value)
        else:
            parts[key] = _property(key, str(value))


def _sub_keys(key: str, given: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the sub-keys of an option that are given one by one; null takes one out."""
    fmt = format_of(key) or {}
    values: dict[str, str | None] = {}
    for raw_name, item in given.items():
        name = fmt.get(str(raw_name), {}).get("alias") or str(raw_name)
        values[name] = None if item is None else canonical(item, fmt.get(name, {}))
    devices.check_parts(key, {name: item for name, item in values.items() if item is not None})
    return values


def _checked(key: str, value: Any) -> str:
    """Return a plain option's canonical text, inside the range and enumeration of PVE's schema."""
    text = canonical(value, rule_of(key) or {})
    devices.check_plain(key, text)
    return text


def _property(key: str, text: str) -> dict[str, str | None]:
    fmt = format_of(key) or {}
    values = parse(text, fmt, what=key)
    devices.check_parts(key, values)
    if isinstance((rule_of(key) or {}).get("format"), str):  # nothing in such a format must be there
        devices.check_plain(key, text)
    return dict(values)


def _tags(options: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the wished tags. Raises ValidationFailed for those of another tenant: the VM would be nobody's."""
    said = options.get("tags")
    if said is None:
        return None
    tags = frozenset(validate.tag(tag) for tag in said if tag)
    prefix, tenant = options.get("tenant_prefix") or "tenant_", options.get("tenant")
    owners = tenants_of(tags, prefix)
    own = {tenant_tag(str(tenant), prefix)} if tenant else set()
    if len({*owners, *own}) > 1:
        other = next((tag for tag in owners if tag not in own), "")
        raise validate.refused("tags", other, "is another tenant's tag", "A VM bears the tag of one tenant at most")
    return tags


def _notes(text: str) -> str:
    """Return notes as they are read back: blank lines around them do not count, and a blank text is none."""
    return text.strip("\n") if text.strip() else ""


def _tenant(options: Mapping[str, Any]) -> str | None:
    tenant = options.get("tenant")
    if not tenant:
        return None
    validate.tag(f"{options.get('tenant_prefix') or 'tenant_'}{tenant}", "tenant")
    return str(tenant).lower()


def _ssh_keys(keys: Sequence[str] | None) -> tuple[str, ...] | None:
    if keys is None:
        return None
    lines = [line.strip() for key in keys for line in key.splitlines()]
    return tuple(validate.ssh_key(line, "cloud_init.ssh_keys") for line in lines if line and not line.startswith("#"))


def _source(options: Mapping[str, Any]) -> Source | None:
    """Read O(source): digits are a template's VMID, storage:path a volume, anything else a name."""
    text = str(options.get("source") or "").strip()
    full = options.get("full")
    if not text:
        return None
    if text.isdigit():
        return Source(vmid=validate.vmid(text, "source"), full=full)
    if ":" in text:
        return Source(volume=validate.volume(text, "source"), full=full)
    if len(text) > 255:
        raise validate.refused("source", text[:40] + "...", "is longer than 255 characters", "Use the image's name")
    return Source(name=text, full=full)


def _drive_slot(cloud_init: Mapping[str, Any]) -> str:
    slot = cloud_init.get("drive") or "ide2"
    if not re.match(r"^(ide|sata|scsi)\d+$", slot) or not rule_of(slot):
        raise validate.refused("cloud_init.drive", slot, "is no drive", "Use a name such as ide2 or scsi1")
    return slot
