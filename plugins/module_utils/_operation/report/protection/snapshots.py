# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The snapshots of guests: how many, and how old the newest is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.state import ClusterState, VmRow
from ...._foundation.core.errors import FleetError, NodeUnhealthy
from ...._foundation.core.parallel import side_by_side
from ...._guests.kinds.words import label_of
from ...._protection.snapshot.read import tree_of
from .model import CopySummary

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

# A node that does not answer must not hold up the others for long.
_TRIES = 2


def read_snapshots(
    client: Client, cluster: ClusterState, rows: Iterable[VmRow]
) -> dict[int, CopySummary | FleetError]:
    """Return the snapshots of each guest by VMID, or the error if they are unknown.

    One request for each guest, none for a guest on an offline node.
    """
    chosen = list(rows)

    def read(row: VmRow) -> CopySummary | FleetError:
        node = cluster.nodes.get(row.node)
        if node is not None and not node.online:
            return _offline(row)
        attempted = f"Could not read the snapshots of {label_of(row)}"
        try:
            answer = client.get(*row.path, "snapshot", attempted=attempted, tries=_TRIES)
        except FleetError as error:
            return error
        return copies_of(answer)

    answers = side_by_side(read, chosen)
    return {row.vmid: answer for row, answer in zip(chosen, answers, strict=True)}


def copies_of(answer: Iterable[Mapping[str, Any]]) -> CopySummary:
    """Return the snapshots that are complete, from C(GET .../snapshot) (pure)."""
    times: list[int] = []
    for snapshot in tree_of(answer).snapshots.values():
        if snapshot.state is None:
            times.append(snapshot.time)
    return CopySummary(len(times), max(times, default=0))


def _offline(row: VmRow) -> NodeUnhealthy:
    return NodeUnhealthy(
        attempted=f"Could not read the snapshots of {label_of(row)}",
        answer=f"node {row.node} is offline",
        next_step="Bring the node back",
        reason="node offline",
        dispatched=False,
    )
