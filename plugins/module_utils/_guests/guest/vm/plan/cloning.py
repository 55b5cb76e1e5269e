# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How a source can be cloned (linked or full, to which storage, from which snapshot), and the VM
that PVE makes of it: as a clone, or restored from an archive (pure).

The rules come from qemu-server: API2/Qemu.pm, clone_vm; PVE/QemuServer.pm,
restore_update_config_line and parse_backup_hints.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ....._foundation.cluster.placement import require_storage
from ....._foundation.cluster.state import ClusterState
from ....._foundation.cluster.storages.types import RAW_ONLY
from ....._foundation.core.errors import Locked, NotSupported
from ....._foundation.core.quantities import read_size
from ....._foundation.schema.formats import parse_option, render_option
from ....kinds.hardware import DesiredVm
from ....kinds.model import Actual, GuestSource
from ....kinds.vm.config.actual import drives, is_cloud_init, is_disk, storage_of
from ....kinds.vm.kind import VM
from ...plan.archive import dropped_in
from ...plan.capacity import Definitions

_NIC = re.compile(r"^net\d+\Z")


# Options that a clone does not inherit from its source (qemu-server, clone_vm).
_NOT_CLONED = frozenset(
    "template lock digest parent vmgenid smbios1 meta snapstate cipassword".split()
)


def copy_of(
    source: Actual, *, restored: bool, vmid: int, node: str, data: Mapping[str, Any]
) -> Actual:
    """Return the expected VM before it is configured: a clone, or restored from an archive."""
    config = _restored(source, data) if restored else _cloned(source, data)
    return Actual(VM, vmid, node, "stopped", live=config, target=config, pool=data.get("pool"))


def _cloned(source: Actual, data: Mapping[str, Any]) -> dict[str, str]:
    """Return the configuration of a clone before it is configured (qemu-server: clone_vm)."""
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
    return config


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


def _restored(source: Actual, data: Mapping[str, Any]) -> dict[str, str]:
    """Return the configuration of a VM that was restored from the archive of `source`.

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
            values = parse_option("smbios1", value)
            values.pop("uuid", None)
            config[key] = render_option("smbios1", values)
    foreign = {slot: config[slot] for slot in foreign_in(config) if unique}
    for slot in dropped_in(VM, config):
        del config[slot]
    config |= _new_drives(config, data.get("storage")) | foreign
    config["description"] = str(data["description"])
    for key in ("name", "tags"):
        if data.get(key):
            config[key] = str(data[key])
    return config


def foreign_in(archived: Mapping[str, str]) -> list[str]:
    """Return the disks of which a restored VM names the volume of the original: PVE drops the line
    of a disk without data only if it has C(backup=0) (qemu-server: QemuServer.pm,
    restore_update_config_line).
    """
    return [
        slot
        for slot in dropped_in(VM, archived)
        if parse_option(slot, archived[slot]).get("backup") != "0"
    ]


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


# The abilities of each storage with a volume (pve-storage: volume_has_feature of each plugin).
_LINKS_BASE = frozenset("lvmthin zfspool zfs rbd btrfs dir nfs cifs cephfs".split())


_LINKS_SNAPSHOT = frozenset("lvmthin rbd btrfs".split())


_COPIES_SNAPSHOT = frozenset("lvmthin rbd btrfs".split())


# A linked clone on these storages can move to a node without its template.
_MOVES_LINKED = frozenset(("lvmthin",))


def require_unlocked(source: Actual) -> None:
    """Raise Locked for a VM to clone that is still locked after the connection's lock_timeout."""
    if not source.lock:
        return
    raise Locked(
        f"{source.label} was not cloned: it is locked ({source.lock})",
        f"Wait until the running {source.lock} is over, or raise lock_timeout",
        f"locked ({source.lock})",
        dispatched=False,
    )


def nodes_for(desired: DesiredVm, source: Actual, cluster: ClusterState) -> frozenset[str] | None:
    """Return the nodes on which a clone can be made if the task names no node, or None for any."""
    if desired.guest.node:
        return None
    storages = {storage_of(drive) for drive in drives(source.target).values()}
    storages.add(_source_of(desired).storage)
    if storages <= {None, *cluster.shared_storages}:
        return None
    # Local disks are cloned on their own node; a move to another node follows.
    return frozenset((source.node,))


def storages_that_may_chain(desired: DesiredVm, cluster: ClusterState) -> frozenset[str]:
    """Return the LVM storages if the clone must be in format qcow2, which some of them accept."""
    if _source_of(desired).format != "qcow2":
        return frozenset()
    return frozenset(row.storage for row in cluster.storages if row.kind == "lvm")


def chained_in(definitions: Definitions) -> frozenset[str]:
    """Return the storages with disks in format qcow2 on LVM."""
    chained: set[str] = set()
    for name, definition in definitions.items():
        option = definition.get("snapshot-as-volume-chain") or 0
        if int(option):
            chained.add(name)
    return frozenset(chained)


def _source_of(desired: DesiredVm) -> GuestSource:
    """Return the source of the task, an empty one if it has none."""
    return GuestSource() if desired.guest.source is None else desired.guest.source


def decide_full(
    desired: DesiredVm, source: Actual, cluster: ClusterState, chained: frozenset[str] = frozenset()
) -> bool:
    """Return whether the clone copies the disks: as requested, else linked if PVE allows it.

    `chained` are LVM storages that take qcow2. Raises NotSupported for an impossible clone,
    ConfigurationError for a storage that a node lacks.
    """
    full = _source_of(desired).full
    reason = why_not_linked(desired, source, cluster)
    if reason and full is False:
        raise _cannot(
            f"A linked clone of {source.label}",
            reason,
            "Leave full out, or set it to true",
            "linked clone",
        )
    if full is None:
        full = reason is not None
    if full:
        _require_snapshot_copy(desired, source, cluster)
        _require_storage_of_clone(desired, source, cluster, chained)
    _require_move(desired, source, cluster)
    return full


def why_not_linked(desired: DesiredVm, source: Actual, cluster: ClusterState) -> str | None:
    """Return why the VM cannot be cloned linked, or None."""
    from_ = _source_of(desired)
    is_linked_to_snapshot = from_.snapshot and from_.full is False
    if not source.template and not is_linked_to_snapshot:
        return "it is not a template"
    requested = {"storage": from_.storage, "format": from_.format}
    names = " and ".join(name for name, value in requested.items() if value)
    if names:
        return (
            f"{names} is for full clones, the disks of a linked clone stay beside their template's"
        )
    for slot, storage, kind in _stored(source, cluster):
        reason = _why_disk_not_linked(
            desired, source, cluster, slot=slot, storage=storage, kind=kind
        )
        if reason is not None:
            return reason
    return None


def _why_disk_not_linked(
    desired: DesiredVm, source: Actual, cluster: ClusterState, *, slot: str, storage: str, kind: str
) -> str | None:
    """Return why a clone cannot be linked to that disk, or None."""
    kinds = _LINKS_SNAPSHOT if _source_of(desired).snapshot else _LINKS_BASE
    if kind not in kinds:
        type_name = kind or "unknown"
        return f"{slot} is on storage {storage} ({type_name}), which has no linked clones of it"
    wanted = {disk.slot: disk.storage for disk in desired.hardware.disks}.get(slot)
    if wanted not in (None, "", storage):
        return f"{slot} would be on storage {wanted}, a linked clone stays on {storage}"
    if storage in cluster.shared_storages:
        return None
    if kind in _MOVES_LINKED:
        return None
    if desired.guest.node in (None, source.node):
        return None
    return (
        f"{slot} is on storage {storage} of node {source.node}, which a linked clone cannot leave"
    )


def _require_snapshot_copy(desired: DesiredVm, source: Actual, cluster: ClusterState) -> None:
    """Raise NotSupported if PVE cannot copy a disk from the snapshot."""
    snapshot = _source_of(desired).snapshot
    if not snapshot:
        return
    for slot, storage, kind in _stored(source, cluster):
        if kind in _COPIES_SNAPSHOT:
            continue
        volume, _comma, _options = source.target[slot].partition(",")
        if volume.endswith(".qcow2"):
            continue
        type_name = kind or "unknown"
        raise _cannot(
            f"A clone of snapshot '{snapshot}' of {source.label}",
            f"{slot} is on storage {storage} ({type_name}), which cannot copy a snapshot",
            "Clone the VM as it is now, or roll it back first",
            "snapshot copy",
        )


def _require_storage_of_clone(
    desired: DesiredVm, source: Actual, cluster: ClusterState, chained: frozenset[str]
) -> None:
    """Raise if the storage of a full clone is missing, or cannot hold the requested format."""
    from_ = _source_of(desired)
    storages = [storage for _slot, storage, _kind in _stored(source, cluster)]
    if from_.storage:
        node = desired.guest.node or source.node
        require_storage(cluster, from_.storage, node, "images")
        storages = [from_.storage]
    if from_.format in (None, "raw"):
        return
    kinds = {row.storage: row.kind for row in cluster.storages}
    for storage in storages:
        kind = kinds.get(storage)
        is_raw_only = storage not in chained if kind == "lvm" else kind in RAW_ONLY
        if not is_raw_only:
            continue
        raise _cannot(
            f"A clone of {source.label} in format {from_.format}",
            f"storage {storage} ({kind}) has disks in format raw only",
            "Leave format out, or choose a storage of files",
            "format",
        )


def _require_move(desired: DesiredVm, source: Actual, cluster: ClusterState) -> None:
    """Raise if local disks, which are cloned on their own node, cannot be moved to the new node."""
    node = desired.guest.node
    if node is None or node == source.node:
        return
    storages = {storage for _slot, storage, _kind in _stored(source, cluster)}
    local = sorted(storages - cluster.shared_storages)
    if not local:
        return
    if not desired.guest.migrate:
        names = ", ".join(local)
        raise _cannot(
            f"A clone of {source.label} on node {node}",
            f"its disks are on {names}, which only its own node sees, and migrate is false",
            f"Allow the move behind the clone with migrate=true, or clone to node {source.node}",
            "local storage",
        )
    storage_of_clone = _source_of(desired).storage
    if storage_of_clone:
        local = [storage_of_clone]
    for storage in local:
        require_storage(cluster, storage, source.node, "images")
        require_storage(cluster, storage, node, "images")


def _stored(source: Actual, cluster: ClusterState) -> list[tuple[str, str, str]]:
    """Return slot, storage and kind of storage of each disk."""
    kinds = {row.storage: row.kind for row in cluster.storages}
    found = []
    for slot, drive in sorted(drives(source.target).items()):
        storage = storage_of(drive)
        if storage and is_disk(drive):
            found.append((slot, storage, kinds.get(storage, "")))
    return found


def _cannot(what: str, answer: str, next_step: str, reason: str) -> NotSupported:
    return NotSupported(
        f"{what} could not be planned: {answer}", next_step, reason, dispatched=False
    )
