# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pools, volume groups, thin pools and directories on disks, as modules report them (pure).

Facts: pve-storage, PVE/API2/Disks/{ZFS,LVM,LVMThin,Directory}.pm.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .disks import Row, owner_of, paths_in

ZFS, LVM, THIN, DIRECTORY = "zfs", "lvm", "lvmthin", "directory"
TYPES = (DIRECTORY, LVM, THIN, ZFS)
MOUNTS = "/mnt/pve/"
# The names of vdevs in `zpool status`, and PVE's words for them.
_VDEVS = ((r"mirror-\d+", "mirror"), (r"raidz1-\d+", "raidz"), (r"draid1?:.*", "draid"))
_NAMED = re.compile(r"(raidz[23]|draid[23])[-:].*")
_FIELDS = ("raidlevel", "health", "size", "free", "volume_group", "filesystem", "path")


def of_row(node: str, kind: str, row: Row) -> dict[str, Any]:
    """Return one row of a listing as a disk storage, without its disks."""
    found: dict[str, Any] = {"node": node, "type": kind, "disks": None, **dict.fromkeys(_FIELDS)}
    if kind == DIRECTORY:
        name = str(row["path"]).removeprefix(MOUNTS)
        return {**found, "name": name, "filesystem": row.get("type"), "path": row["path"]}
    if kind == THIN:
        group = str(row["vg"])
        return {**found, "name": str(row["lv"]), "size": row.get("lv_size"), "volume_group": group}
    found.update(name=str(row["name"]), size=row.get("size"), free=row.get("free"))
    return {**found, "health": row.get("health")} if kind == ZFS else found


def with_disks(storage: Row, tree: Row, disks: Sequence[Row]) -> dict[str, Any]:
    """Return a storage with its disks and its RAID level from its tree of devices."""
    paths = set()
    for path in paths_in(tree):
        owner = owner_of(path, disks)
        paths.add(path if owner is None else str(owner["path"]))
    found = {**storage, "disks": sorted(paths)}
    if storage["type"] == ZFS:
        found["raidlevel"] = raidlevel_of(tree)
    return found


def raidlevel_of(tree: Row) -> str | None:
    """Return the RAID level of a ZFS pool, None for a layout that Proxmox VE does not create."""
    children = tree.get("children") or ()
    top: Row = next((one for one in children if one["name"] == tree.get("name")), {})
    levels = [_level(str(one["name"])) for one in top.get("children") or ()]
    if len(levels) == 1:
        return levels[0]
    return "raid10" if set(levels) == {"mirror"} else None


def _level(name: str) -> str:
    """Return the level of one vdev; a device alone is `single`."""
    found = _NAMED.fullmatch(name)
    if found:
        return found[1]
    return next((word for pattern, word in _VDEVS if re.fullmatch(pattern, name)), "single")


def storages_on(rows: Iterable[Mapping[str, Any]], storage: Row) -> list[str]:
    """Return the definitions of storages that use a disk storage on its node."""
    found = []
    for row in rows:
        nodes = row.get("nodes")
        is_here = not nodes or storage["node"] in str(nodes).split(",")
        if is_here and _is_on(row, storage):
            found.append(str(row["storage"]))
    return sorted(found)


def _is_on(row: Mapping[str, Any], storage: Row) -> bool:
    kind, name, defined = storage["type"], storage["name"], row.get("type")
    if kind == ZFS:
        return defined == "zfspool" and _is_below(row.get("pool"), name)
    if kind == LVM:
        return defined in ("lvm", "lvmthin") and row.get("vgname") == name
    if kind == THIN:
        place = (row.get("vgname"), row.get("thinpool"))
        return defined == "lvmthin" and place == (storage["volume_group"], name)
    return defined in ("dir", "btrfs") and _is_below(row.get("path"), storage["path"])


def _is_below(place: Any, top: str) -> bool:
    return f"{place or ''}/".startswith(f"{top}/")
