# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Contradictions between HA rules, as pve-ha-manager defines them."""

from __future__ import annotations

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.ha.contradictions import (
    GROUP,
    EnabledRule,
    find_contradictions,
    rule_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.ha.rule import (
    PLACE,
)


def place(*resources: str, **nodes: int) -> EnabledRule:
    return EnabledRule(PLACE, frozenset(resources), nodes)


def avoid(*resources: str, **nodes: int) -> EnabledRule:
    return EnabledRule(PLACE, frozenset(resources), nodes, "negative")


def apart(*resources: str) -> EnabledRule:
    return EnabledRule(GROUP, frozenset(resources), affinity="negative")


def together(*resources: str) -> EnabledRule:
    return EnabledRule(GROUP, frozenset(resources), affinity="positive")


CASES: list[tuple[dict[str, EnabledRule], str]] = [
    ({"new": place("a", n1=0)}, ""),
    ({"new": place("a", n1=2, n2=0), "x": place("b", n1=0)}, ""),
    ({"new": place("a", n1=0), "x": place("a", n2=0)}, "one node-affinity rule only: new or x"),
    ({"new": together("a", "b"), "x": together("b", "c")}, ""),
    ({"new": together("a")}, "an affinity needs two"),
    ({"new": apart("a", "b", "c")}, ""),
    ({"new": apart("a", "b", "c", "d")}, "4 resources on different nodes, and there are 3"),
    ({"new": apart("a", "b"), "x": together("b", "c")}, ""),
    ({"new": apart("a", "b"), "x": together("a", "b", "c")}, "a, b run on one node by rule x"),
    ({"new": apart("a", "c"), "x": together("a", "b"), "y": together("b", "c")}, "by rules x, y"),
    (
        {
            "new": together("a", "d"),
            "x": together("a", "b"),
            "y": together("c", "d"),
            "z": apart("b", "c"),
        },
        "b, c run on one node by rules new, x, y, and on different nodes by rule z",
    ),
    ({"new": together("a", "b"), "x": place("a", n1=0)}, ""),
    ({"new": together("a", "b"), "x": place("a", n1=1, n2=2)}, "different priorities (x)"),
    ({"new": place("a", n1=1, n2=2), "x": apart("a", "b")}, "different priorities (new)"),
    (
        {"new": together("a", "b"), "x": place("a", n1=0), "y": place("b", n2=0)},
        "several node-affinity rules choose their nodes: x, y",
    ),
    ({"new": apart("a", "b"), "x": place("a", "b", n1=0)}, "leaves them n1 only"),
    ({"new": place("a", "b", n1=0), "x": apart("a", "b")}, "by rule x, but rule new leaves"),
    ({"new": apart("a", "b"), "x": place("a", "b", n1=0, n2=0)}, ""),
    ({"new": avoid("a", n1=0)}, ""),
    ({"new": avoid("a", n1=1)}, "no priority"),
    ({"new": avoid("a", n1=0, n2=0, n3=0)}, "away from all nodes"),
    ({"new": avoid("a", n1=0), "x": place("a", n2=0)}, "one node-affinity rule only: new or x"),
    ({"new": avoid("a", "b", n1=0, n2=0), "x": apart("a", "b")}, "leaves them n3 only"),
    ({"new": apart("a", "b"), "x": avoid("a", "b", n1=0)}, "Proxmox VE counts these"),
    ({"new": avoid("a", n1=0), "x": apart("a", "b")}, ""),
    ({"new": together("a", "b"), "x": avoid("a", n1=0)}, ""),
    ({"new": place("z", n1=0), "x": apart("a", "b"), "y": together("a", "b")}, ""),
]


@pytest.mark.parametrize(("rules", "text"), CASES, ids=range(len(CASES)))
def test_contradictions(rules: dict[str, EnabledRule], text: str) -> None:
    found = find_contradictions("new", rules, ("n1", "n2", "n3"))
    if not text:
        assert found == []
        return
    (one,) = found
    assert text in one


def test_rule_from_values() -> None:
    values = {
        "type": PLACE,
        "resources": frozenset({"vm:100"}),
        "nodes": frozenset({"pve1:2", "pve2"}),
        "affinity": "",
        "disable": False,
    }
    assert rule_of(values) == EnabledRule(PLACE, frozenset({"vm:100"}), {"pve1": 2, "pve2": 0})
    assert rule_of({**values, "disable": True}) is None
