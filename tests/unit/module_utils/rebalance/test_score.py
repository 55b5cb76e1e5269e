# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The score of nodes, and the move that evens them most."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.rules import (
    PlacementRules,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import (
    ClusterState,
    cluster_state_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.maintenance.rebalance.score import (
    MoveProposal,
    balance_of,
    propose,
)

GIB = 1 << 30


def node(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "node", "node": name, "status": "online", "maxmem": 10 * GIB, **more}


def guest(vmid: int, at: str, memory: int, **more: Any) -> dict[str, Any]:
    row = {"type": "qemu", "vmid": vmid, "node": at, "status": "running", "maxmem": memory * GIB}
    return {**row, **more}


def cluster(*rows: dict[str, Any]) -> ClusterState:
    return cluster_state_of(rows, {"qemu", "lxc"})


def proposed(found: ClusterState, rules: PlacementRules | None = None) -> MoveProposal | None:
    return propose(balance_of(found, rules or PlacementRules()), found.guests)


def test_score_is_the_deviation_of_the_shares() -> None:
    found = balance_of(
        cluster(node("a"), node("b"), guest(1, "a", 4), guest(2, "a", 9, template=1)),
        PlacementRules(),
    )
    assert found.shares == {"a": 40.0, "b": 0.0}
    assert found.score == 20.0


@pytest.mark.parametrize(
    "left_out", [{"status": "offline"}, {"hastate": "maintenance"}, {"maxmem": 0}]
)
def test_nodes_that_take_no_guests_do_not_count(left_out: dict[str, Any]) -> None:
    rows = (node("a"), node("b", **left_out), guest(1, "a", 4))
    assert proposed(cluster(*rows)) is None


def test_nodes_that_the_rules_exclude_do_not_count() -> None:
    rows = cluster(node("a"), node("b"), node("c"), guest(1, "a", 4), guest(2, "a", 4))
    assert set(balance_of(rows, PlacementRules(exclude=frozenset("c"))).shares) == {"a", "b"}
    assert set(balance_of(rows, PlacementRules(own=("a", "c"))).shares) == {"a", "c"}


def test_the_most_useful_guest_moves_to_the_node_with_the_lowest_share_first() -> None:
    found = proposed(
        cluster(
            node("a"),
            node("b"),
            node("c"),
            guest(1, "a", 1),
            guest(2, "a", 4),
            guest(3, "a", 3),
            guest(4, "b", 2),
        )
    )
    assert found is not None
    assert (found.row.vmid, found.nodes) == (2, ("c", "b"))


def test_of_equal_guests_the_lowest_vmid_moves() -> None:
    found = proposed(cluster(node("a"), node("b"), guest(7, "a", 2), guest(5, "a", 2)))
    assert found is not None
    assert found.row.vmid == 5


def test_nothing_moves_if_no_move_lowers_the_score() -> None:
    assert proposed(cluster(node("a"), node("b"), guest(1, "a", 4))) is None
    assert proposed(cluster(node("a"), node("b"), guest(1, "a", 2), guest(2, "b", 2))) is None
    assert proposed(cluster()) is None
