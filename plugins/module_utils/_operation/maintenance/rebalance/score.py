# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The balance of the memory allocated on nodes, and the move that improves it most (pure)."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from ...._foundation.cluster.rules import PlacementRules
from ...._foundation.cluster.state import ClusterState, VmRow

# A move is worth its copying if it lowers the score by at least this much.
MIN_GAIN = 0.1


@dataclass(frozen=True)
class NodeBalance:
    """The memory of each node that takes part, and the memory allocated to its guests, in bytes."""

    memory: Mapping[str, int]
    given: Mapping[str, int]

    @property
    def shares(self) -> dict[str, float]:
        """The percentage of each node's memory that is allocated to its guests."""
        return {node: 100 * self.given[node] / total for node, total in self.memory.items()}

    @property
    def score(self) -> float:
        """The standard deviation of the shares in percentage points: 0 if all are equal."""
        return statistics.pstdev(self.shares.values()) if self.memory else 0.0

    def after(self, row: VmRow, target: str) -> NodeBalance:
        """Return the balance after a guest has moved."""
        given = dict(self.given)
        given[row.node] -= row.memory
        given[target] += row.memory
        return replace(self, given=given)


@dataclass(frozen=True)
class MoveProposal:
    """A guest whose move lowers the score, and the target nodes for which it does, best first."""

    row: VmRow
    nodes: tuple[str, ...]


def balance_of(cluster: ClusterState, rules: PlacementRules) -> NodeBalance:
    """Return the balance of the nodes that are online, not in maintenance, allowed by the rules,
    and whose memory is known. Stopped guests count too, as in the choice of a node.
    """
    memory = {
        name: node.memory
        for name, node in cluster.nodes.items()
        if node.online and node.memory and not node.maintenance
    }
    memory = {name: total for name, total in memory.items() if _is_allowed(name, rules)}
    given = dict.fromkeys(memory, 0)
    for row in cluster.guests:
        if row.node in given and not row.template:
            given[row.node] += row.memory
    return NodeBalance(memory, given)


def _is_allowed(node: str, rules: PlacementRules) -> bool:
    is_own = not rules.own or node in rules.own
    return is_own and node not in rules.exclude


def propose(balance: NodeBalance, rows: Iterable[VmRow]) -> MoveProposal | None:
    """Return the guest whose move lowers the score most, or None if no move is worth it. If scores
    are equal, the guest with less memory moves, then the guest with the lower VMID.
    """
    found: list[tuple[float, int, int, MoveProposal]] = []
    for row in rows:
        scores = _better_nodes(balance, row)
        if scores:
            nodes = tuple(sorted(scores, key=lambda node: (scores[node], node)))
            best = round(scores[nodes[0]], 6)
            found.append((best, row.memory, row.vmid, MoveProposal(row, nodes)))
    return min(found, key=lambda one: one[:3])[3] if found else None


def _better_nodes(balance: NodeBalance, row: VmRow) -> dict[str, float]:
    """Return the nodes to which a move lowers the score enough, with the resulting scores."""
    if row.node not in balance.memory:
        return {}
    others: Collection[str] = balance.memory.keys() - {row.node}
    scores = {node: balance.after(row, node).score for node in others}
    return {node: score for node, score in scores.items() if balance.score - score >= MIN_GAIN}
