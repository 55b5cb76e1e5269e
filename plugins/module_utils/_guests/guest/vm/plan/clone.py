# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A VM as PVE clones it, or restores it from an archive, and the storages of its disks (pure).

The rules come from qemu-server: API2/Qemu.pm, clone_vm; PVE/QemuServer.pm,
restore_update_config_line and parse_backup_hints.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ....._foundation.core.quantities import read_size
from ....._foundation.schema.formats import parse_option, render_option
from ....kinds.model import Actual
from ....kinds.vm.config.actual import drives, is_cloud_init, is_disk, storage_of
from ....kinds.vm.kind import VM
from ....kinds.vm.model import DesiredVm
from ...plan.archive import dropped_in

_NIC = re.compile(r"^net\d+$")
# Options that a clone does not inherit from its source (qemu-server, clone_vm).
_NOT_CLONED = frozenset(
    "template lock digest parent vmgenid smbios1 meta snapstate cipassword".split()
)


def clone_of(source: Actual, *, vmid: int, node: str, data: Mapping[str, Any]) -> Actual:
    """Return the expected state of a clone before it is configured (qemu-server: clone_vm)."""
    config: dict[str, str] = {}
    for key, value in source.target.items():
        if key in _NOT_CLONED or key.startswith(("unused", "snap")):
            continue
        config[key] = value
        if _NIC.match(key):
            config[key] = without_mac(key, value)
    storage = data.get("storage")
    if storage:
        config |= drives_on(storage, config)
    config["name"] = data.get("name") or f"Copy-of-VM-{source.name}"
    config["description"] = data["description"]
    return Actual(VM, vmid, node, "stopped", live=config, target=config, pool=data.get("pool"))


def drives_on(storage: str, config: Mapping[str, str]) -> dict[str, str]:
    """Return the drives of a full clone to one storage."""
    moved = {}
    for slot, drive in drives(config).items():
        if not storage_of(drive):
            continue
        if is_cloud_init(drive):
            moved[slot] = f"{storage}:vm-cloudinit,media=cdrom"
        elif is_disk(drive):
            _volume, _comma, options = config[slot].partition(",")
            moved[slot] = f"{storage}:new,{options}"
    return moved


def without_mac(key: str, text: str) -> str:
    """Return the option of a NIC without its MAC address."""
    values = parse_option(key, text)
    values.pop("macaddr", None)
    return render_option(key, values)


# Options that the restored VM does not inherit; with `unique` it gets another uuid.
_NOT_RESTORED = frozenset("lock digest parent snapstate vmgenid".split())


def restored_of(source: Actual, *, vmid: int, node: str, data: Mapping[str, Any]) -> Actual:
    """Return the expected state of a VM that was restored from the archive of `source`.

    A disk without data in the archive is not restored. The restored VM keeps its name and its tags
    unless `data` has others.
    """
    config: dict[str, str] = {}
    unique = bool(data.get("unique"))
    for key, value in source.target.items():
        if key in _NOT_RESTORED or key.startswith("unused"):
            continue
        config[key] = value
        if key.startswith("net") and unique:
            config[key] = without_mac(key, value)
        elif key == "smbios1" and unique:
            config[key] = _without_uuid(value)
    for slot in dropped_in(VM, config):
        del config[slot]
    config |= _new_drives(config, data.get("storage"))
    config["description"] = str(data["description"])
    for key in ("name", "tags"):
        if data.get(key):
            config[key] = str(data[key])
    return Actual(VM, vmid, node, "stopped", live=config, target=config, pool=data.get("pool"))


def _new_drives(config: Mapping[str, str], storage: str | None) -> dict[str, str]:
    """Return the drives as the restore creates them: on one storage, or each on its own storage."""
    if storage:
        return drives_on(storage, config)
    created: dict[str, str] = {}
    for slot, drive in drives(config).items():
        source_storage = storage_of(drive)
        if source_storage and is_disk(drive):
            _volume, _comma, options = config[slot].partition(",")
            created[slot] = f"{source_storage}:new,{options}"
    return created


def _without_uuid(text: str) -> str:
    values = parse_option("smbios1", text)
    values.pop("uuid", None)
    return render_option("smbios1", values)


def restore_storage(desired: DesiredVm, archived: Mapping[str, str]) -> str | None:
    """Return the storage for the disks of a restore, None to restore each disk to its own storage.

    PVE restores all disks to one storage if one is given. Disks that belong elsewhere are moved
    afterwards, so the storage that gets the most bytes is chosen.
    """
    wanted = {disk.slot: disk.storage for disk in desired.hardware.disks if disk.storage}
    sizes: dict[str, int] = {}
    differs = False
    dropped = dropped_in(VM, archived)
    for slot, drive in drives(archived).items():
        source_storage = storage_of(drive)
        is_restored = is_disk(drive) or is_cloud_init(drive)
        if source_storage is None or not is_restored or slot in dropped:
            continue
        target = wanted.get(slot)
        differs = differs or target not in (None, source_storage)
        target = target or source_storage
        if is_disk(drive):
            sizes[target] = sizes.get(target, 0) + (read_size(drive.get("size")) or 0)
    if not differs:
        return None
    return max(sorted(sizes), key=lambda name: sizes[name])
