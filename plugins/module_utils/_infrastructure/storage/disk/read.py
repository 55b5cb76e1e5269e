# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads disks, and pools, volume groups and directories on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...._foundation.api.interface import Api
from .disks import Row, disks_of, paths_in


def read_disks(client: Api, node: str) -> list[dict[str, Any]]:
    """Return the disks of a node without SMART values; one request."""
    rows = client.get(
        *("nodes", node, "disks", "list"),
        params=query(smart=False),
        attempted=f"Could not list the disks of node {node}",
    )
    return disks_of(node, rows or [], smart=False)


def query(*, smart: bool) -> dict[str, int]:
    """Return the parameters of the listing of disks."""
    return {"include-partitions": 1, "skipsmart": 0 if smart else 1}


def read_listing(client: Api, node: str, kind: str) -> list[Row]:
    """Return the pools, volume groups, thin pools or directories of a node; one request."""
    attempted = f"Could not list {kind} on the disks of node {node}"
    return rows_of(client.get("nodes", node, "disks", kind, attempted=attempted))


def rows_of(answer: Any) -> list[Row]:
    """Return the rows of a listing; the listing of volume groups is a tree (pure)."""
    if isinstance(answer, Mapping):
        return list(answer.get("children") or [])
    return list(answer or [])


def read_pool(client: Api, node: str, name: str) -> Row:
    """Return the tree of devices of a ZFS pool; one request."""
    attempted = f"Could not read ZFS pool {name} of node {node}"
    answer: Row = client.get("nodes", node, "disks", "zfs", name, attempted=attempted) or {}
    return answer


def read_groups(client: Api, node: str, used: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the ZFS pools and volume groups of a node if these uses of a disk point to them, each
    with the paths of its disks or partitions.

    One request for volume groups; one for pools, and one for each pool.
    """
    groups: dict[str, tuple[str, ...]] = {}
    if "LVM" in used:
        for group in read_listing(client, node, "lvm"):
            groups[f"volume group {group['name']}"] = paths_in(group)
    if any(one.lower().startswith("zfs") for one in used):
        for row in read_listing(client, node, "zfs"):
            tree = read_pool(client, node, str(row["name"]))
            groups[f"ZFS pool {row['name']}"] = paths_in(tree)
    return groups
