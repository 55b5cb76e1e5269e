# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether PVE can migrate a VM to another node, and the reason if it cannot (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ......_foundation.core.errors import NotSupported
from .....kinds.config.change import Relocation
from .....kinds.model import Actual
from .....kinds.vm.config.actual import drives, is_disk

# A volume that depends on a base volume, such as base-9000-disk-0/vm-101-disk-0.
_LINKED = re.compile(r"(?:^|/)base-\d+-[^/]+/")
# Storages whose volumes PVE sends to another node without their snapshots.
_KEEPS_NO_SNAPSHOTS = frozenset(("lvm", "lvmthin"))
# The storage kind whose volumes can be replicated to the other node: then they also move while the
# VM runs.
_REPLICATES = "zfspool"


def require_movable(
    actual: Actual,
    target: str,
    kinds: Mapping[str, str],
    answer: Mapping[str, Any] | None,
    after: Mapping[str, str] | None = None,
    relocation: Relocation | None = None,
) -> None:
    """Raise NotSupported, with PVE's reason, if PVE could not migrate the VM.

    `answer` is the answer to C(GET .../migrate), None if the VM does not move; `kinds` are the
    types of the storages; `after` is the configuration that is written before the VM moves, and
    `relocation` are the moves of its volumes.
    """
    if answer is None:
        return
    rest = without(answer, actual, after)
    if relocation is not None:
        rest = _relocated(rest, actual, relocation, target)
    reason = why_not_move(rest, target, kinds)
    if reason is None:
        return
    preconditions = {key: answer[key] for key in _REPORTED if answer.get(key)}
    raise NotSupported(
        attempted=f"{actual.label} could not be planned to move to node {target}",
        answer=reason,
        next_step=(
            "Take away what ties it to its node, choose another node, or leave it where it is"
        ),
        reason="cannot migrate",
        details={"preconditions": preconditions, "node": target},
    )


def without(
    answer: Mapping[str, Any], actual: Actual, after: Mapping[str, str] | None
) -> dict[str, Any]:
    """Return the answer without volumes and devices that the update before the move removes (pure).

    A CD is ejected at once; other volumes and devices are removed before the move only if the VM is
    off.
    """
    rest = dict(answer)
    if after is None:
        return rest
    gone = _removed_volumes(actual, after)
    disks = _listed(answer, "local_disks")
    rest["local_disks"] = [disk for disk in disks if disk.get("volid") not in gone]
    if actual.running:
        return rest
    devices = _listed(answer, "local_resources")
    rest["local_resources"] = [key for key in devices if key in after]
    refused: dict[str, Any] = {}
    for node, reasons in (answer.get("not_allowed_nodes") or {}).items():
        if not isinstance(reasons, Mapping):  # of a newer version
            refused[node] = reasons
            continue
        lacking = [key for key in _listed(reasons, "unavailable-resources") if key in after]
        refused[node] = {**reasons, "unavailable-resources": lacking}
    rest["not_allowed_nodes"] = refused
    return rest


def _relocated(
    answer: Mapping[str, Any], actual: Actual, relocation: Relocation, target: str
) -> dict[str, Any]:
    """Return the answer without disks that move before, and without storages that no disk needs on
    the target.
    """
    present = actual.kind.volumes_in(actual.target)
    moved = {present[slot] for slot in relocation.before}
    nodes = dict(answer.get("not_allowed_nodes") or {})
    refused = dict(nodes.get(target) or {})
    storages = _listed(refused, "unavailable_storages")
    refused["unavailable_storages"] = [one for one in storages if one not in relocation.left]
    nodes[target] = refused
    disks = _listed(answer, "local_disks")
    rest = [disk for disk in disks if disk.get("volid") not in moved]
    return {**answer, "local_disks": rest, "not_allowed_nodes": nodes}


def _listed(answer: Mapping[str, Any], key: str) -> list[Any]:
    """Return a list of the answer, an empty one if it is missing."""
    found: list[Any] = answer.get(key) or []
    return found


def _removed_volumes(actual: Actual, after: Mapping[str, str]) -> set[str | None]:
    """Return the volumes that are removed from the VM before it moves."""
    gone: set[str | None] = set()
    for drive in drives(actual.target).values():
        stays_for_now = actual.running and is_disk(drive)
        if not stays_for_now:
            gone.add(drive.get("file"))
    for drive in drives(after).values():
        gone.discard(drive.get("file"))
    return gone


_REPORTED = (
    "local_resources",
    "local_disks",
    "not_allowed_nodes",
    "allowed_nodes",
    "mapped-resources",
)


def why_not_move(
    answer: Mapping[str, Any], target: str, kinds: Mapping[str, str] | None = None
) -> str | None:
    """Return why PVE would refuse to migrate a VM to a node, or None (pure).

    `answer` is the answer to C(GET .../migrate).
    """
    local = _tied_devices(answer)
    if local:
        return f"it uses devices of its node: {_joined(local)}"
    refusals = answer.get("not_allowed_nodes") or {}
    refused = refusals.get(target) or {}
    reason = _why_node_refused(refused, target)
    if reason is not None:
        return reason
    cds: list[str] = []
    for disk in _listed(answer, "local_disks"):
        volume = str(disk.get("volid"))
        if "cloudinit" in volume:
            continue
        if disk.get("cdrom"):
            cds.append(volume)
    if cds:
        return f"it holds an ISO that only its node has: {_joined(cds)}"
    return _why_disks_stay(answer, kinds or {})


def _tied_devices(answer: Mapping[str, Any]) -> list[str]:
    """Return the devices that tie the VM to its node: PVE lists mapped devices too, and moves them
    with a VM that is off, or that can be migrated live with them (qemu-server: QemuMigrate.pm,
    prepare).
    """
    runs = bool(answer.get("running"))
    mapped: dict[str, Any] = dict.fromkeys(_listed(answer, "mapped-resources"), {})
    mapped |= answer.get("mapped-resource-info") or {}
    moving = {key for key, info in mapped.items() if not runs or info.get("live-migration")}
    listed = _listed(answer, "local_resources")
    return [key for key in listed if key not in moving]


def _why_node_refused(refused: Mapping[str, Any], target: str) -> str | None:
    """Return the storage or device that a node lacks, or the HA rule that forbids it, or None."""
    storages = refused.get("unavailable_storages")
    if storages:
        return f"node {target} lacks storage {_joined(storages)}"
    for key in ("unavailable-resources", "unavailable_resources"):
        devices = _listed(refused, key)
        if devices:
            return f"node {target} lacks the mapped devices {_joined(devices)}"
    blocking = _listed(refused, "blocking-ha-resources")
    others = list(map(_ha_name, blocking))
    if others:
        return f"a rule of the HA manager keeps it apart from {_joined(others)} on node {target}"
    return None


def _ha_name(item: Any) -> Any:
    return item.get("sid") if isinstance(item, Mapping) else item


def _joined(items: Iterable[Any]) -> str:
    return ", ".join(map(str, items))


def _why_disks_stay(answer: Mapping[str, Any], kinds: Mapping[str, str]) -> str | None:
    """Return why a local disk cannot be migrated, or None (QemuMigrate.pm, scan_local_volumes)."""
    for disk in _listed(answer, "local_disks"):
        if disk.get("cdrom") or disk.get("is_vmstate"):
            continue
        runs = bool(answer.get("running"))
        reason = _why_disk_stays(disk, kinds, runs=runs)
        if reason is not None:
            return reason
    return None


def _why_disk_stays(disk: Mapping[str, Any], kinds: Mapping[str, str], *, runs: bool) -> str | None:
    volume = str(disk.get("volid"))
    storage, _colon, name = volume.partition(":")
    if _LINKED.search(name):
        return f"{volume} is a linked clone of a disk that stays on its node"
    snapshots = disk.get("referenced_in_snapshot")
    if not snapshots:
        return None
    part = f"{volume} is part of a snapshot ({', '.join(sorted(snapshots))})"
    kind = kinds.get(storage)
    if runs and kind != _REPLICATES:
        return f"{part}, and the VM runs"
    is_raw_file = name.endswith(".raw")
    if is_raw_file or kind in _KEEPS_NO_SNAPSHOTS:
        return f"{part}, which a storage of that type cannot send along"
    return None
