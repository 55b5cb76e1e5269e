# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects that name a guest, in the record of its move, and at a site of another version."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._protection.relocate.belongings import (
    Belongings,
    JoinOptions,
    SiteObjects,
    belongings_of,
    parse_belongings,
    plan_join_ha,
)

RULE = {"type": "node-affinity", "nodes": "pve1:2,pve7", "strict": 1}
JOBS = ({"0": {"target": "pve2"}}, ("nightly",))
OWN = Belongings({"state": "started", "comment": "ü", "failback": 0}, {"front": RULE}, *JOBS)
RULES_9 = {"front": {"rule": "front", "resources": "vm:100,vm:200", "digest": "d0", **RULE}}


def test_belongings_survive_their_text() -> None:
    text = OWN.render()
    assert text.replace("_", "").replace("-", "").isalnum()
    assert parse_belongings(text) == OWN
    assert Belongings().render() == ""


@pytest.mark.parametrize(
    "json", ["", "[]", "{}", '{"ha": 3, "rules": {}}', '{"ha": {}, "rules": 1}']
)
def test_any_other_text_counts_as_none(json: str) -> None:
    assert not parse_belongings(base64.urlsafe_b64encode(json.encode()).decode())
    assert not parse_belongings("x")


TANK = {"storage": "tank", "type": "zfspool"}


@pytest.mark.parametrize(
    ("node", "storages", "mapped", "found"),
    [
        ("pve1", {"tank": TANK}, {}, {"0": "pve2"}),
        ("pve2", {"tank": TANK}, {}, {}),
        ("pve2", {"tank": TANK}, {"pve2": "pve1"}, {"0": "pve1"}),
        ("pve1", {"tank": TANK}, {"pve2": ""}, {}),
        ("pve1", {"tank": TANK}, {"pve2": "pve9"}, {}),
        ("pve1", {"tank": {**TANK, "type": "lvmthin"}}, {}, {}),
        ("pve1", {"tank": {**TANK, "shared": True}}, {}, {}),
    ],
)
def test_the_nodes_of_replicas(node: str, storages: Any, mapped: Any, found: Any) -> None:
    options = JoinOptions({}, frozenset({"pve1", "pve2"}), mapped, storages)
    assert options.replica_nodes(OWN, node, ["tank"]) == found


def test_a_missing_rule_is_created_if_its_nodes_are_there() -> None:
    options, there = JoinOptions(nodes=frozenset({"pve1"})), SiteObjects()
    found = options.find_problems(OWN, there, "munich")
    assert found == [
        "it is in HA rule front, site munich has no HA rule front, and no node pve7 (ha_rules)"
    ]
    both = JoinOptions(nodes=frozenset({"pve1", "pve7"}))
    assert both.find_problems(OWN, there, "munich") == []
    assert JoinOptions({"front": ""}).find_problems(OWN, there, "munich") == []


def test_a_group_of_an_old_site_becomes_a_rule() -> None:
    """Proxmox VE 8 has groups instead of rules, and no failback of a resource."""
    row = {"sid": "vm:100", "group": "front", "state": "started"}
    old = belongings_of("vm:100", SiteObjects({"vm:100": row}, has_rules=False))
    steps = plan_join_ha("vm:300", old, SiteObjects(rules=RULES_9), JoinOptions())
    assert [step.data for step in steps] == [
        {"sid": "vm:300", "state": "started"},
        {"resources": "vm:100,vm:200,vm:300", "type": "node-affinity", "digest": "d0"},
    ]
    missing = JoinOptions().find_problems(old, SiteObjects(), "munich")
    assert missing == ["it is in HA rule front, and site munich has no HA rule front (ha_rules)"]


def test_a_rule_becomes_a_group_of_an_old_site() -> None:
    there = SiteObjects(has_rules=False)
    (step,) = plan_join_ha("vm:300", OWN, there, JoinOptions({"front": "fast"}))
    assert step.data == {"sid": "vm:300", "state": "started", "comment": "ü", "group": "fast"}
