# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads disks, and pools, volume groups and directories on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._core import validate
from .._facts.partial_read import PartialRead
from .._resource.protocols import Api
from .disks import DiskGroup, Row, disks_of

if TYPE_CHECKING:
    from .._api.client import Client

_LEVELS = 8  # how deep a tree of devices can be


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
    answer = client.get("nodes", node, "disks", kind, attempted=attempted) or []
    return list(answer.get("children") or []) if isinstance(answer, Mapping) else list(answer)


def read_pool(client: Api, node: str, name: str) -> Row:
    """Return the tree of devices of a ZFS pool; one request."""
    attempted = f"Could not read ZFS pool {name} of node {node}"
    answer: Row = client.get("nodes", node, "disks", "zfs", name, attempted=attempted) or {}
    return answer


def read_groups(client: Api, node: str, used: Sequence[str]) -> list[DiskGroup]:
    """Return the ZFS pools and volume groups of a node, as far as these uses of a disk need them.

    One request for volume groups; one for pools, and one for each pool.
    """
    groups = []
    if "LVM" in used:
        for group in read_listing(client, node, "lvm"):
            groups.append(DiskGroup(f"volume group {group['name']}", paths_in(group)))
    if any(one.lower().startswith("zfs") for one in used):
        for row in read_listing(client, node, "zfs"):
            tree = read_pool(client, node, str(row["name"]))
            groups.append(DiskGroup(f"ZFS pool {row['name']}", paths_in(tree)))
    return groups


def paths_in(tree: Row) -> tuple[str, ...]:
    """Return the paths of the devices in a tree (pure)."""
    return tuple(_paths(tree, _LEVELS))


def _paths(tree: Row, levels: int) -> Iterator[str]:
    children = tree.get("children") or ()
    if not children and str(tree.get("name")).startswith("/"):
        yield str(tree["name"])
    for child in children if levels else ():
        yield from _paths(child, levels - 1)


def read_nodes(
    client: Client, node: str | None, kind: str, parameters: Mapping[str, Any]
) -> tuple[dict[str, Any], PartialRead]:
    """Return the listing of each node, and the nodes that could not be read.

    One request a node, side by side. A failure of the only node raises FleetError.
    """
    read = PartialRead(client)
    if node:
        path = ("nodes", validate.node(node), "disks", kind)
        attempted = f"Could not read the disks of node {node}"
        return {node: client.get(*path, params=parameters, attempted=attempted)}, read
    rows = client.get("nodes", attempted="Could not list the nodes") or []
    nodes = [str(row["node"]) for row in rows]
    return read.each(kind, nodes, "disks", kind, **parameters), read
