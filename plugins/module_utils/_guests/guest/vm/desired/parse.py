# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parses the options of a module into values; no later code parses them again (pure).

Names of the estate are replaced, each value is checked as its declaration says, and the results
are put into `DesiredVm` and `TaskSettings`. User data that cloud-init would refuse is refused.
Every refusal is a ValidationFailed.

An empty text removes an option that PVE can do without; PVE's default then applies. An option that
a VM always has (a name, memory, a disk's storage) cannot be removed: an empty text there means that
the option is left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ....._foundation.core import validate
from ....._foundation.core.errors import ConfigurationError, ValidationFailed
from ....._foundation.core.propstring import canonical
from ....._foundation.core.quantities import parse_memory
from ....._foundation.schema.formats import QEMU, rule_of
from ....._foundation.spec.fleet import VM_SPECS, with_defaults
from ....._foundation.spec.generated.vm import hardware_spec
from ....._foundation.spec.generated.vm_rules import (
    CHECKS,
    EMPTY_REMOVES,
    PROPERTY_STRINGS,
    RANGES,
    SCALARS,
    WORDS,
)
from ....._foundation.spec.vm import vm_spec
from ....kinds.hardware import MOVED, DesiredVm, Disk, Snippet, VmHardware
from ....kinds.vm.kind import VM
from ...desired.gathered import (
    GatheredOptions,
    ReservedOptions,
    add_declared,
    add_open,
    add_open_options,
    addresses_of,
    canonical_sub_keys,
    declared,
    disk_of,
    in_canonical_form,
    require_receiver,
)
from ...desired.guest import GuestOptions, is_exact, options_of, read_guest
from ...desired.layers import class_options, disk_slots, lay_over, name_presets, nic_slots
from ...desired.values import COMMON, OptionTables, checked_at, checked_items, is_blank

VmOptions: TypeAlias = GuestOptions[DesiredVm]


def read_options(params: Mapping[str, Any]) -> VmOptions:
    """Return the parsed options of a module, checked by its argument specification."""
    resolved = resolve(params)
    require_disks(resolved.get("disks") or [])
    options = checked(resolved)
    keys = read_hardware(options)
    cloud_init = options["cloud_init"] or {}
    password = cloud_init.get("password")
    has_drive = options["cloud_init"] is not None
    hardware = VmHardware(
        scalars=keys.scalars,
        property_strings=keys.property_strings,
        unset=frozenset(keys.unset),
        disks=read_disks(options["disks"] or []),
        disks_exact=is_exact(options, "disks"),
        nics_exact=is_exact(options, "nics"),
        snippet=read_snippet(cloud_init),
        ssh_keys=cloud_init.get("ssh_keys"),
        password=None if is_blank(password) else password,
        update_password=cloud_init.get("update_password") or "on_create",
        cloud_init_drive=(cloud_init.get("drive") or "") if has_drive else None,
        cloud_init_storage=cloud_init.get("storage"),
        default_storage=options["default_storage"],
    )
    return options_of(DesiredVm(read_guest(VM, options), hardware), options)


_CLOUD_INIT = hardware_spec()["cloud_init"]["options"]
_CLOUD_INIT_DEFAULTS = {
    name: rule["default"] for name, rule in _CLOUD_INIT.items() if "default" in rule
}


def resolve(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the module's params with class, network and storage class names replaced by their
    options.

    The VM's own options win over its class, the options of a NIC or disk over its network or
    storage class. Raises ConfigurationError for a name that no map contains, ValidationFailed for a
    map of the wrong shape.
    """
    options = _with_class(TABLES.without_empty_texts(params))
    name_presets(options, "disks")
    return options


def _with_class(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options merged over their class; defaults within cloud_init count as not given."""
    label = options.get("class")
    if not label:
        return options
    own = dict(options)
    cloud_init = own.get("cloud_init")
    if isinstance(cloud_init, Mapping):
        own["cloud_init"] = {
            key: value
            for key, value in cloud_init.items()
            if value != _CLOUD_INIT_DEFAULTS.get(key)
        }
    named = class_options(label, own.get("classes") or {}, VM_SPECS, own)
    if named.get("backup") is not None:
        raise validate.refused(
            f"classes.{label}.backup",
            named["backup"],
            "is about backup jobs, which a task on one VM does not change",
            "Use module vms, or a class without backup",
        )
    return {**own, **lay_over(TABLES.without_empty_texts(named), own)}


def read_snippet(cloud_init: Mapping[str, Any]) -> Snippet | None:
    """Return the user data of the options, or None. Raises ValidationFailed."""
    content = cloud_init.get("user_data")
    if content is None:
        return None
    volume = (cloud_init.get("snippets") or {}).get("user")
    directory = cloud_init.get("snippet_directory")
    if not volume or not directory:
        missing = "snippets.user" if not volume else "snippet_directory"
        raise ValidationFailed(
            f"cloud_init.user_data was refused: cloud_init.{missing} is not given, and PVE's API "
            "cannot upload a snippet",
            "Name the volume with snippets.user and where its storage is mounted with"
            " snippet_directory",
            "cloud_init.user_data",
        )
    storage, _colon, path = validate.volume(volume, "cloud_init.snippets.user").partition(":")
    folder, _slash, name = path.partition("/")
    if folder != "snippets" or not name or "/" in name or not storage:
        raise validate.refused(
            "cloud_init.snippets.user",
            volume,
            "is not a snippet",
            "Write it as storage:snippets/name.yml",
        )
    _require_cloud_config(content)
    return Snippet(content, os.path.join(directory, name), volume)


def _require_cloud_config(content: str) -> None:
    """Refuse user data that cloud-init would not accept: not YAML, or without its first line."""
    if content.startswith(("#!", "Content-Type: multipart")):
        return  # a script or several parts: not checked
    if not content.startswith("#cloud-config"):
        raise ValidationFailed(
            "cloud_init.user_data was refused: its first line is not #cloud-config",
            "Begin it with #cloud-config, or with #! for a script",
            "cloud_init.user_data",
        )
    try:
        import yaml
    except ImportError:
        raise ConfigurationError(
            "cloud_init.user_data could not be checked: the Python library PyYAML is missing",
            "Install PyYAML",
            "missing library yaml",
        ) from None
    try:
        parsed = yaml.safe_load(content)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        # The text around a mistake may contain a secret, so only the line number is reported.
        raise ValidationFailed(
            f"cloud_init.user_data was refused: it is not valid YAML{where}",
            "Correct it",
            "cloud_init.user_data",
        ) from None
    if not isinstance(parsed, dict):
        raise validate.refused(
            "cloud_init.user_data",
            type(parsed).__name__,
            "is not a mapping",
            "Give cloud-config keys",
        )


_SLOT = re.compile(r"^(?:(ide|sata|scsi|virtio|unused)\d+|efidisk0|tpmstate0)\Z")
_NIC = re.compile(r"^net\d+\Z")
_OF_FIXED_SIZE = ("efidisk0", "tpmstate0")
_VOLUME_KEYS = frozenset(("file", "volume", "size", "format", "import-from"))


def read_disks(items: Sequence[Mapping[str, Any]]) -> tuple[Disk, ...]:
    """Return the disks of a VM. Raises ValidationFailed."""
    disks: dict[str, Disk] = {}
    for item in items:
        slot = str(item["name"])
        if slot in disks:
            raise validate.refused("disks", slot, "is listed twice", "List each drive once")
        options = declared(TABLES, "disks", item)
        if item.get("iso"):
            options["media"] = "cdrom"
        add_open(f"disks.{slot}", item, options, _VOLUME_KEYS)
        disks[slot] = disk_of(slot, item, canonical_sub_keys(slot, options))
    return tuple(disks.values())


def require_disks(items: Sequence[Mapping[str, Any]]) -> None:
    """Raise ValidationFailed for an invalid drive name, and for options that exclude each other.

    The values are not checked yet: a size that a drive cannot have needs no other number.
    """
    for slot, item in zip(disk_slots(items), items, strict=True):
        is_drive = _SLOT.match(slot) is not None
        if not is_drive or not rule_of(slot):
            raise validate.refused(
                "disks",
                slot,
                "is not a drive of a VM",
                "Use a name such as scsi0, virtio1 or sata0",
            )
        bus = item.get("bus") or ""
        if not slot.startswith(bus):
            raise validate.refused(
                "disks", slot, f"is not on bus {bus}", "Give the name or the bus"
            )
        if slot.startswith("unused") and item.get("state") not in ("absent", MOVED):
            raise validate.refused(
                "disks",
                slot,
                "is not a drive, but a disk that no drive uses",
                "It can only be absent or moved",
            )
        require_receiver(f"disks.{slot}", slot, item, _SLOT)
        _require_content(slot, item)


def _require_content(slot: str, item: Mapping[str, Any]) -> None:
    """Raise ValidationFailed for a size or an ISO with an option that excludes it."""
    has_size = item.get("size") is not None
    if has_size and slot in _OF_FIXED_SIZE:
        raise validate.refused(
            f"disks.{slot}.size",
            item["size"],
            "cannot be chosen: PVE decides how large it is",
            "Leave size out",
        )
    if item.get("volume"):
        for name in ("size", "storage", "format", "import_from", "iso"):
            if item.get(name) is not None:
                raise validate.refused(
                    f"disks.{slot}.{name}",
                    item[name],
                    "is given beside an existing volume",
                    "Leave it out, or leave volume out for a new disk",
                )
    has_content = has_size or item.get("import_from")
    if has_content and item.get("iso"):
        raise validate.refused(
            f"disks.{slot}",
            item["iso"],
            "is an ISO and has no size or import",
            "Give the ISO alone",
        )


def _add_nics(items: Sequence[Mapping[str, Any]], hardware: GatheredOptions) -> None:
    """Add the sub-keys of C(netN) and C(ipconfigN). Raises ValidationFailed."""
    named: set[str] = set()
    for item in items:
        key = str(item["name"])
        is_nic = _NIC.match(key) is not None
        if not is_nic or not rule_of(key):
            raise validate.refused("nics", key, "is not a NIC of a VM", "Use a name such as net0")
        if key in named:
            raise validate.refused("nics", key, "is listed twice", "List each NIC once")
        named.add(key)
        ipconfig = f"ipconfig{key.removeprefix('net')}"
        if item.get("state") == "absent":
            hardware.unset.update((key, ipconfig))
            continue
        values = declared(TABLES, "nics", item)
        add_open(f"nics.{key}", item, values)
        hardware.property_strings[key] = values
        addresses = addresses_of(key, item)
        if addresses:
            hardware.property_strings[ipconfig] = addresses


# PVE's names of options that the module has itself: they cannot be set in `options`.
_OWN = {
    "name": "name",
    "tags": "tags",
    "description": "description",
    "memory": "memory",
    "cores": "cores",
    "sshkeys": "cloud_init.ssh_keys",
    "cipassword": "cloud_init.password",
    "template": "state",
    "pool": "pool",
    "bootdisk": "boot",
}

_CLOSED = ReservedOptions(
    devices=re.compile(r"^(net|ide|sata|scsi|virtio|ipconfig|unused)\d+\Z"),
    device_step="Use disks and nics",
    set_by_pve=frozenset(("lock", "digest", "vmgenid", "meta")),
    pve_step="PVE sets it itself",
    own=_OWN,
)


def read_hardware(options: Mapping[str, Any]) -> GatheredOptions:
    """Return the hardware of checked options. Raises ValidationFailed."""
    hardware = GatheredOptions()
    add_declared(TABLES, "", options, hardware)
    if options["cores"] is not None:
        hardware.scalars["cores"] = options["cores"]
    if options["boot"]:
        hardware.property_strings["boot"] = {"order": options["boot"]}
    is_removed = "agent" in hardware
    if options["agent"] is not None and not is_removed:
        hardware.property_strings["agent"] = options["agent"]
    if options["serial_console"] is not None:
        if options["serial_console"]:
            hardware.scalars["serial0"] = "socket"
        else:
            hardware.unset.add("serial0")
    _add_cloud_init(options["cloud_init"] or {}, hardware)
    maximum = 1 << 32
    if options["memory"] is not None:
        floor = parse_memory(options["memory_floor"], what="memory_floor", minimum=16)
        maximum = parse_memory(options["memory"], minimum=floor)
        hardware.property_strings["memory"] = {"current": maximum}
    if options["balloon"] is not None and "balloon" not in hardware:
        size = parse_memory(options["balloon"], what="balloon", minimum=0, maximum=maximum)
        hardware.scalars["balloon"] = size
    add_open_options(options["options"] or {}, hardware, _CLOSED, QEMU)
    _add_nics(options["nics"] or [], hardware)
    return in_canonical_form(hardware, QEMU)


def _add_cloud_init(options: Mapping[str, Any], hardware: GatheredOptions) -> None:
    """Add the options of cloud-init, except the password and the SSH keys."""
    add_declared(TABLES, "cloud_init", options, hardware)
    volumes = dict(options.get("snippets", {}))
    for name in list(volumes):
        if volumes[name] is None:
            del volumes[name]
    if volumes:
        hardware.property_strings["cicustom"] = volumes


_BOOT_WORDS = frozenset(("disk", "network", "cdrom"))
_CLOUD_INIT_DRIVE = re.compile(r"^(ide|sata|scsi)\d+\Z")
_SPEC = vm_spec()


def checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of a VM, each value in the form that its check returns.

    Options that are not given have their defaults; each disk and NIC has a name. Raises
    ValidationFailed for the first value that a check refuses.
    """
    options = checked_at(TABLES, "", with_defaults(_SPEC, dict(given)), "")
    options["disks"] = checked_items(TABLES, "disks", options["disks"], disk_slots)
    options["nics"] = checked_items(TABLES, "nics", options["nics"], nic_slots)
    cloud_init = options["cloud_init"]
    if cloud_init is not None:
        place = "cloud_init.snippets"
        snippets = cloud_init["snippets"] or {}
        options["cloud_init"] = {
            **checked_at(TABLES, "cloud_init", cloud_init, "cloud_init"),
            "snippets": checked_at(TABLES, place, snippets, place),
        }
    return options


def _agent(given: Any, _what: str) -> Any:
    """Return a dictionary of sub-keys, or PVE's own text; a boolean becomes such a dictionary."""
    if isinstance(given, Mapping):
        return given
    return canonical(given, {"type": "boolean"})


def _balloon(size: Any, what: str) -> Any:
    """Return a size, 0 for a word of YAML such as `off`: no balloon device.

    Raises ValidationFailed for a word such as `on`, which is not a size.
    """
    word = canonical(size, {"type": "boolean"})
    if word == "0":
        return "0"
    if word == "1" and str(size).strip() != "1":
        raise validate.refused(
            what,
            size,
            "is a boolean, and balloon is the least memory of the VM",
            "Write a size, such as 1G, or 0 for no balloon device",
        )
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
            what, item, "is not a device", "Use disk, network, cdrom or names such as scsi0, net0"
        )
    return ";".join(named)


def _cloud_init_drive(slot: str, what: str) -> str:
    is_on_bus = _CLOUD_INIT_DRIVE.match(slot)
    if is_on_bus and rule_of(slot):
        return slot
    raise validate.refused(what, slot, "is not a drive", "Use a name such as ide2 or scsi1")


def _discard(is_on: Any, _what: str) -> str:
    return "on" if canonical(is_on, {"type": "boolean"}) == "1" else "ignore"


def _iso(volume: str, what: str) -> str:
    if volume == "none":  # an empty CD drive
        return volume
    return validate.volume(volume, what)


FUNCTIONS: Mapping[str, Callable[[Any, str], Any]] = {
    **COMMON,
    "agent": _agent,
    "balloon": _balloon,
    "boot_order": _boot_order,
    "cloud_init_drive": _cloud_init_drive,
    "discard": _discard,
    "iso": _iso,
    "volume": validate.volume,
}
"""The checks that declarations name: each takes a value and the option's name for errors."""

TABLES = OptionTables(
    SCALARS,
    PROPERTY_STRINGS,
    WORDS,
    EMPTY_REMOVES,
    checks=CHECKS,
    ranges=RANGES,
    functions=FUNCTIONS,
    nested=("disks", "nics", "cloud_init"),
)
