# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the file that a new guest is made from: its nodes, and the configuration in an archive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..._cluster.state import ClusterState
from ..plan.archive import read_archived
from .reads import GuestReads

if TYPE_CHECKING:
    from ..._api.client import Client


@dataclass(frozen=True)
class FoundFile:
    """A volume on a storage: the nodes that have it, and the other volumes that were seen."""

    volume: str
    having: frozenset[str]
    others: frozenset[str]
    is_shared: bool

    @property
    def nodes(self) -> frozenset[str] | None:
        """The nodes on which it can be used, None for any."""
        return None if self.is_shared else self.having


def find_file(reads: GuestReads, volume: str, node: str | None, cluster: ClusterState) -> FoundFile:
    """Return a volume as the storages list it; one request for each node that may have it."""
    storage = volume.partition(":")[0]
    rows = [row for row in cluster.storages if row.storage == storage and row.available]
    if node:
        rows = [row for row in rows if row.node == node]
    having: set[str] = set()
    others: set[str] = set()
    for row in sorted(rows, key=lambda row: row.node):
        volumes = {str(entry["volid"]) for entry in reads.contents(row.node, storage)}
        others |= volumes
        if volume in volumes:
            having.add(row.node)
            if row.shared:
                break
    is_shared = any(row.shared for row in rows)
    return FoundFile(volume, frozenset(having), frozenset(others), is_shared)


def read_archive(client: Client, volume: str, node: str) -> Mapping[str, str]:
    """Return the configuration in an archive.

    Raises FleetError if PVE cannot read it: it is gone or damaged, or its key is missing.
    """
    answer = client.get(
        "nodes",
        node,
        "vzdump",
        "extractconfig",
        params={"volume": volume},
        attempted=f"Could not read the configuration in {volume}",
    )
    return read_archived(str(answer))
