# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The decisions of a maintenance: votes, Ceph, HA rules, windows, estimates, the record."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.record import (
    EVACUATED,
    PENDING,
    RETURNING,
    NodeRecord,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.maintenance.ha_places import (
    excluded,
    ha_state_of,
    why_kept,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.maintenance.model import (
    HaManagerState,
    MaintenanceOptions,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.maintenance.read import (
    CephState,
    MaintenanceFacts,
    NodeState,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.maintenance.standing import (
    find_blockers,
    find_missing,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.maintenance.times.estimate import (
    duration,
    whole_time,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.maintenance.times.windows import (
    read_windows,
    remaining,
)

NODES = ("pve1", "pve2", "pve3")
RECORD = NodeRecord(
    EVACUATED, 1000, {101: "ab12", 400: ""}, frozenset({400}), ("ceph",), (), "9.2.11"
)


def facts(**changes: Any) -> MaintenanceFacts:
    members = dict.fromkeys(NODES, True)
    return replace(MaintenanceFacts(True, members, HaManagerState(), None), **changes)


@pytest.mark.parametrize(
    ("nodes", "extra", "loses"),
    [(1, 0, True), (2, 0, True), (2, 1, False), (3, 0, False), (4, 0, False), (5, 0, False)],
)
def test_votes(nodes: int, extra: int, loses: bool) -> None:
    members = {f"pve{number}": True for number in range(nodes)}
    assert bool(find_blockers(facts(members=members), "pve0", extra)) is loses


@pytest.mark.parametrize(
    ("health", "flags", "blocks"),
    [
        ("HEALTH_OK", (), 0),
        ("HEALTH_WARN", ("noout",), 0),
        ("HEALTH_WARN", (), 1),
        ("HEALTH_ERR", ("noout",), 1),
        ("HEALTH_OK", ("noscrub",), 0),
        ("HEALTH_WARN", ("norebalance",), 2),
    ],
)
def test_ceph(health: str, flags: tuple[str, ...], blocks: int) -> None:
    ceph = CephState(health, frozenset(flags))
    assert len(find_blockers(facts(ceph=ceph), "pve2", 0)) == blocks


def test_a_pending_record_of_another_node_blocks_nothing() -> None:
    for phase, blocks in ((PENDING, 0), (RETURNING, 1), (EVACUATED, 1)):
        found = facts(records={"pve3": replace(RECORD, phase=phase)})
        assert len(find_blockers(found, "pve2", 0)) == blocks
        assert find_blockers(found, "pve3", 0) == []


@pytest.mark.parametrize("state", ["fence", "recovery", "error"])
def test_an_ha_manager_in_trouble(state: str) -> None:
    found = facts(ha=HaManagerState(services={"vm:101": state}))
    expected = f"the HA manager is in trouble: vm:101 is in state {state}"
    assert find_blockers(found, "pve2", 0) == [expected]


def test_what_a_node_lacks() -> None:
    record = replace(RECORD, services=("pveproxy",))
    whole = NodeState(("pveproxy", "sshd"), ("ceph", "local"), "9.10.1")
    options = MaintenanceOptions("pve2", "returned")
    assert find_missing(record, whole, options) == []
    assert find_missing(record, whole, replace(options, version="9.10.1")) == []
    assert find_missing(record, NodeState((), (), "9.2.9"), options) == [
        "storage ceph is not available",
        "service pveproxy does not run",
        "it has version 9.2.9, which is older than 9.2.11",
    ]


def test_a_node_that_must_have_rebooted() -> None:
    record = replace(RECORD, booted=1000)
    options = MaintenanceOptions("pve2", "complete", rebooted=True)
    for booted, found in ((1005, ["it has not rebooted since it was evacuated"]), (2000, [])):
        state = NodeState((), ("ceph",), "9.2.11", booted)
        assert find_missing(record, state, options) == found
        assert find_missing(record, state, replace(options, rebooted=False)) == []


def rules(**rule: Any) -> HaManagerState:
    named = {"rule": "home", "type": "node-affinity", "resources": "vm:101, ct:102", **rule}
    return ha_state_of(
        {}, (), ({"sid": "vm:101"}, {"sid": "ct:102", "failback": 0}), [named], (), NODES
    )


@pytest.mark.parametrize(
    ("nodes", "strict", "kept", "others"),
    [
        ("pve2:2,pve1:1", 0, True, {"pve1", "pve3"}),
        ("pve2", 0, True, {"pve1", "pve3"}),
        ("pve2,pve1", 0, False, {"pve3"}),
        ("pve2:1,pve1:1,pve3", 1, False, {"pve3"}),
        ("pve1", 0, False, set()),
        ("pve3", 1, False, {"pve1", "pve2"}),
    ],
)
def test_nodes_of_an_ha_resource(nodes: str, strict: int, kept: bool, others: set[str]) -> None:
    """Source: pve-ha-manager, PVE/HA/Manager.pm (select_service_node)."""
    state = rules(nodes=nodes, strict=strict)
    assert bool(why_kept(state, "vm:101", "pve2")) is kept
    assert excluded(state, "vm:101", "pve2", NODES) - {"pve2"} == others - {"pve2"}


@pytest.mark.parametrize(
    ("nodes", "strict", "kept", "others"),
    [
        ("pve1", 0, False, {"pve1"}),
        ("pve1", 1, False, {"pve1"}),
        ("pve1,pve3", 0, True, {"pve1", "pve3"}),
        ("pve2", 0, False, set()),
        ("pve2,pve1", 1, False, {"pve1"}),
        ("pve1,pve2,pve3", 1, False, set()),
    ],
)
def test_nodes_that_an_ha_resource_avoids(
    nodes: str, strict: int, kept: bool, others: set[str]
) -> None:
    """Source: pve-ha-manager, PVE/HA/Rules/NodeAffinity.pm (invert_negative_node_affinity_rules);
    the manager drops a rule that excludes all nodes.
    """
    state = rules(nodes=nodes, strict=strict, affinity="negative")
    assert bool(why_kept(state, "vm:101", "pve2")) is kept
    assert excluded(state, "vm:101", "pve2", NODES) - {"pve2"} == others


def test_an_ha_resource_without_failback_stays_elsewhere() -> None:
    state = rules(nodes="pve2:2,pve1:1", strict=1)
    assert why_kept(state, "ct:102", "pve2") is None
    assert excluded(state, "ct:102", "pve2", NODES) == {"pve3"}


def test_disabled_rules_and_groups_of_older_versions() -> None:
    assert rules(nodes="pve2", disable=1).places == {}
    resources = ({"sid": "vm:101", "group": "g"},)
    group = {"group": "g", "nodes": "pve2:1,pve1", "restricted": 1, "nofailback": 1}
    state = ha_state_of({}, (), resources, (), (group,), NODES)
    assert why_kept(state, "vm:101", "pve2") is None
    assert excluded(state, "vm:101", "pve2", NODES) == {"pve3"}


def test_resources_that_stay_together() -> None:
    rule = {"type": "resource-affinity", "affinity": "positive", "resources": "vm:101,vm:103"}
    assert rules(**rule).together == dict.fromkeys(("vm:101", "vm:103"), {"vm:101", "vm:103"})
    assert rules(**{**rule, "affinity": "negative"}).together == {}


@pytest.mark.parametrize(
    ("window", "now", "left"),
    [
        ("22:00-05:00", "2026-11-25 21:59:59", 0),
        ("22:00-05:00", "2026-11-25 22:00:00", 7 * 3600),
        ("22:00-05:00", "2026-11-26 04:59:00", 60),
        ("22:00-05:00", "2026-11-26 05:00:00", 0),
        ("01:00-02:00", "2026-11-25 01:30:00", 1800),
        ("00:00-00:00", "2026-11-25 06:00:00", 18 * 3600),
        # The 25th is a Wednesday.
        ("wed 22:00-05:00", "2026-11-26 04:00:00", 3600),
        ("thu 22:00-05:00", "2026-11-26 04:00:00", 0),
        ("sat,wed 22:00-23:00", "2026-11-25 22:30:00", 1800),
    ],
)
def test_windows(window: str, now: str, left: float) -> None:
    assert remaining([window], datetime.fromisoformat(now)) == left


def test_several_windows_and_none() -> None:
    now = datetime(2026, 11, 25, 1, 0)
    assert remaining((), now) is None
    assert remaining(("00:30-01:30", "22:00-05:00"), now) == 4 * 3600


@pytest.mark.parametrize("text", ["", "22-5", "24:00-01:00", "10:60-11:00", "day 10:00-11:00"])
def test_a_window_that_is_none(text: str) -> None:
    with pytest.raises(ValidationFailed, match="is not a window of time"):
        read_windows([text], "windows")


def test_estimates() -> None:
    assert whole_time([10, 10, 10, 10, 10], 4) == 20
    assert whole_time([30, 10, 10, 10], 2) == 30
    assert whole_time([], 4) == 0
    assert (duration(97.2), duration(119.5), duration(121)) == ("98 s", "2 min", "3 min")
