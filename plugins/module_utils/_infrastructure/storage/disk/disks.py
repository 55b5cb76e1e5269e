# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The disks of a node as modules report them, and their use (pure).

Facts: pve-storage, PVE/Diskmanage.pm (get_disks).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ...._foundation.core.errors import NotFound

_UNKNOWN = "unknown"  # PVE's serial number for a disk without one
Row = Mapping[str, Any]
_LEVELS = 8  # maximum depth of a tree of devices


def disks_of(node: str, rows: Iterable[Row], *, smart: bool) -> list[dict[str, Any]]:
    """Return the disks of a listing with partitions, sorted by device."""
    disks: dict[str, dict[str, Any]] = {}
    partitions = []
    for row in sorted(rows, key=lambda one: str(one["devpath"])):
        if row.get("parent"):
            partitions.append(row)
        else:
            disks[row["devpath"]] = _disk(node, row, smart)
    for row in partitions:
        if row["parent"] in disks:
            partition = {**_use(row), "size": row.get("size")}
            disks[row["parent"]]["partitions"].append(partition)
    return list(disks.values())


def _disk(node: str, row: Row, smart: bool) -> dict[str, Any]:
    serial = row.get("serial") or _UNKNOWN
    health = row.get("health") if smart else None
    return {
        "node": node,
        "path": row.get("by_id_link") or row["devpath"],
        "size": row.get("size"),
        "type": row.get("type"),
        "model": row.get("model"),
        "serial": None if serial == _UNKNOWN else serial,
        "gpt": bool(row.get("gpt")),
        **_use(row),
        "osds": _osds(row),
        "osd_parts": sum(row.get(name) or 0 for name in ("journals", "db", "wal")),
        "partitions": [],
        "health": health,
        "wearout": _percent(row.get("wearout")) if smart else None,
    }


def _use(row: Row) -> dict[str, Any]:
    return {
        "device": row["devpath"],
        "used": row.get("used") or None,
        "mounted": bool(row.get("mounted")),
    }


def _osds(row: Row) -> list[int]:
    """Return the OSDs of a disk; older versions of PVE return only one, or -1 for none."""
    listed = row.get("osdid-list")
    if listed is None:
        listed = [row.get("osdid", -1)]
    return sorted(one for one in listed if one is not None and one >= 0)


def _percent(value: Any) -> float | None:
    """Return the remaining life of a disk in percent, None for N/A."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def find_disk(disks: Iterable[Row], path: str, node: str, attempted: str) -> Row:
    """Return the disk with this path or device. Raises NotFound."""
    known = list(disks)
    for disk in known:
        if path in (disk["path"], disk["device"]):
            return disk
    paths = ", ".join(str(disk["path"]) for disk in known) or "none"
    raise NotFound(
        f"{attempted}: node {node} has no disk {path}; its disks are {paths}",
        "Name a disk as disk_info shows it; a partition is not a disk",
        "unknown disk",
    )


def owner_of(path: str, disks: Iterable[Row]) -> Row | None:
    """Return the disk to which the path of a disk or of a partition belongs."""
    for disk in disks:
        devices = [disk["device"], *(part["device"] for part in disk["partitions"])]
        if path in devices or re.fullmatch(re.escape(disk["path"]) + r"(-part\d+)?", path):
            return disk
    return None


def find_uses(disk: Row, disks: Iterable[Row], groups: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return the present uses of a disk; leftover data does not count.

    `groups` are the paths of disks or partitions of ZFS pools and volume groups, by their labels.
    Proxmox VE itself refuses only mounts and holders, and wipes the disk of a ZFS pool (Disks.pm,
    wipe_disk). A group with a path that does not belong to any disk of the node counts, because it
    may be on this disk.
    """
    found = [f"OSD {number}" for number in disk["osds"]]
    if disk["osd_parts"] and not disk["osds"]:
        found.append("a journal or database of an OSD")
    for part in (disk, *disk["partitions"]):
        if part["mounted"]:
            found.append(f"mounted: {part['device']}")
        if part["used"] == "Device Mapper":
            found.append(f"Device Mapper: {part['device']}")
    known = list(disks)
    for label, paths in groups.items():
        owners = [owner_of(path, known) for path in paths]
        if any(owner is None or owner["device"] == disk["device"] for owner in owners):
            found.append(label)
    return found


def paths_in(tree: Row, levels: int = _LEVELS) -> tuple[str, ...]:
    """Return the paths of the devices in a tree."""
    children = tree.get("children") or ()
    if not children and str(tree.get("name")).startswith("/"):
        return (str(tree["name"]),)
    found: list[str] = []
    for child in children if levels else ():
        found += paths_in(child, levels - 1)
    return tuple(found)
