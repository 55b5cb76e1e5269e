# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Health, room and parts of nodes and clusters."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    AuthenticationError,
    FleetError,
    NetworkError,
    PermissionDenied,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.facts.cluster_info import (
    by_tenant,
    failed,
    ha_of,
    health,
    storages_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.facts.nodes import (
    CapacityRules,
    NodeFacts,
    capacity,
    report,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.facts.partial_read import (
    PartialRead,
    node_states,
    standing,
)
from tests.fake_api import FakeApi

GIB = 2**30
NODE = {
    "type": "node",
    "node": "pve1",
    "status": "online",
    "maxcpu": 8,
    "maxmem": 32 * GIB,
    "mem": 8 * GIB,
    "cpu": 0.5,
    "disk": 10,
    "maxdisk": 100,
    "uptime": 60,
}
STORE = {
    "type": "storage",
    "node": "pve1",
    "storage": "fast",
    "status": "available",
    "disk": 10,
    "maxdisk": 100,
}


def vm(vmid: int, **more: Any) -> dict[str, Any]:
    base = {
        "type": "qemu",
        "vmid": vmid,
        "node": "pve1",
        "status": "running",
        "maxcpu": 2,
        "maxmem": 4 * GIB,
    }
    return {**base, "maxdisk": GIB, **more}


HEALTH: list[tuple[dict[str, Any], list[dict[str, Any]], NodeFacts, str, str]] = [
    ({}, [], NodeFacts({}), "ok", ""),
    ({}, [STORE], NodeFacts({}, "online", quorate=True), "ok", ""),
    ({"status": "offline"}, [], NodeFacts({}), "critical", "offline"),
    ({}, [], NodeFacts({}, "maintenance"), "warning", "maintenance"),
    ({}, [], NodeFacts({}, "fence"), "critical", "fence"),
    ({}, [], NodeFacts({}, quorate=False), "critical", "quorum"),
    ({"mem": 31 * GIB}, [], NodeFacts({}), "warning", "97% of its memory"),
    ({"disk": 95}, [], NodeFacts({}), "warning", "root file system"),
    ({}, [{**STORE, "status": "unknown"}], NodeFacts({}), "warning", "fast is not available"),
    ({}, [{**STORE, "disk": 91}], NodeFacts({}), "warning", "fast is 91% full"),
    ({}, [vm(number) for number in range(9)], NodeFacts({}), "warning", "memory: 4 GiB more"),
    ({}, [vm(1, maxcpu=33)], NodeFacts({}), "warning", "cores: 1 more"),
]


@pytest.mark.parametrize(("changes", "others", "facts", "status", "word"), HEALTH)
def test_health_of_a_node(
    changes: dict[str, Any], others: list[dict[str, Any]], facts: NodeFacts, status: str, word: str
) -> None:
    row = {**NODE, **changes}
    shown = report("pve1", row, [row, *others], facts, CapacityRules())["health"]
    assert shown["status"] == status, shown
    assert word in " ".join(shown["reasons"])
    assert bool(shown["reasons"]) is bool(word)


def test_a_node_that_may_not_be_seen() -> None:
    shown = report("pve1", {}, [], NodeFacts({}), CapacityRules())
    assert (shown["status"], shown["health"]["status"], shown["capacity"]) == (
        "unknown",
        "unknown",
        None,
    )
    assert (
        report("pve1", {}, [], NodeFacts({"online": True}), CapacityRules())["status"] == "online"
    )


def test_room_counts_every_vm_and_no_template() -> None:
    vms = [vm(1), vm(2, status="stopped"), vm(3, template=1)]
    assert capacity(NODE, vms, CapacityRules(2.0, 1.0, None, 5)) == {
        "memory_given": 8 * GIB,
        "memory_left": 24 * GIB,
        "cores_given": 4,
        "cores_left": 12,
        "vms_left": 3,
        "cpu_overcommit": 2.0,
        "memory_overcommit": 1.0,
    }


def test_room_counts_containers_as_placement_does() -> None:
    """`loads_of` of placement counts all guests, running or not, without templates."""
    own = {"type": "lxc", "maxmem": GIB, "maxcpu": 3}
    rows = [vm(1), vm(2, **own), vm(3, **own, status="stopped"), vm(4, **own, template=1)]
    shown = report("pve1", NODE, [NODE, *rows], NodeFacts({}), CapacityRules(max_vms=2))
    assert (shown["vms"]["total"], shown["containers"]) == (1, 3)
    taken = {key: shown["capacity"][key] for key in ("memory_given", "cores_given", "vms_left")}
    assert taken == {"memory_given": 6 * GIB, "cores_given": 8, "vms_left": -1}
    assert shown["health"]["reasons"] == ["guests: 1 more than the placement rules allow"]


def test_the_tightest_rule_on_memory_counts() -> None:
    assert (
        capacity(NODE, [vm(1)], CapacityRules(min_free_memory=2 * GIB))["memory_left"] == 22 * GIB
    )
    assert (
        capacity(NODE, [vm(1)], CapacityRules(memory_overcommit=0.5, min_free_memory=2 * GIB))[
            "memory_left"
        ]
        == 12 * GIB
    )
    assert capacity(NODE, [vm(1)], CapacityRules(memory_overcommit=2.0))["memory_left"] == 60 * GIB


MANAGERS: list[tuple[Any, dict[str, str]]] = [
    (None, {}),
    ({"manager_status": {"node_status": {}}, "quorum": {}}, {}),
    ({"manager_status": {"node_status": {"pve2": "maintenance"}}}, {"pve2": "maintenance"}),
    (
        {
            "manager_status": {"node_status": {"pve1": "online"}},
            "lrm_status": {"pve1": {"mode": "maintenance"}},
        },
        {"pve1": "maintenance"},
    ),
    (
        {"manager_status": {"node_status": {"pve1": "online"}}, "lrm_status": {"pve1": None}},
        {"pve1": "online"},
    ),
]


@pytest.mark.parametrize(("answer", "wanted"), MANAGERS)
def test_what_the_ha_manager_thinks(answer: Any, wanted: dict[str, str]) -> None:
    assert node_states(answer) == wanted


def test_a_single_node_is_quorate() -> None:
    alone = standing([{"type": "node", "name": "pve1", "online": 1, "local": 1}])
    assert (alone["name"], alone["quorate"], list(alone["members"])) == (None, True, ["pve1"])
    assert standing(None)["quorate"] is None


def test_tenants_are_matched_exactly() -> None:
    rows = [
        vm(1, tags="tenant_a;x"),
        vm(2, tags="tenant_ab"),
        vm(3, tags="tenant_a;tenant_ab"),
        vm(4),
        vm(5, tags="tenant_"),
    ]
    shown = by_tenant(rows, "tenant_")
    assert {tenant: row["vms"]["total"] for tenant, row in shown["tenants"].items()} == {
        "a": 1,
        "ab": 1,
    }
    assert shown["ambiguous"]["vmids"] == [3]
    assert shown["untenanted"]["vmids"] == [4, 5]


def test_storages_are_reported_once() -> None:
    rows = [
        {**STORE, "node": node, "storage": name, "shared": shared}
        for node in ("pve1", "pve2")
        for name, shared in (("fast", 0), ("ceph", 1))
    ]
    rows[2]["status"] = "unknown"
    ceph, fast = storages_of(rows)
    assert (ceph["total"], fast["total"]) == (100, 200)
    assert fast["unavailable_on"] == ["pve2"]


def test_only_failed_tasks_the_newest_first() -> None:
    rows = [
        {"upid": "a", "endtime": 1, "status": "OK"},
        {"upid": "b", "endtime": 2, "status": "WARNINGS: 1"},
        {"upid": "c", "endtime": 3, "status": "it broke"},
        {"upid": "d", "starttime": 4},
        {"upid": "e", "endtime": 5, "status": "job errors"},
    ]
    assert [row["upid"] for row in failed(rows, 5)] == ["e", "c"]
    assert [row["upid"] for row in failed(rows, 1)] == ["e"]


def test_an_ha_service_in_error_is_worth_a_warning() -> None:
    ha = ha_of(
        [{"type": "service", "sid": "vm:1", "state": "error"}, {"type": "quorum", "quorate": 1}], {}
    )
    cluster = {"quorate": True, "nodes": [], "storages": [], "ha": ha, "ambiguous": {"vmids": []}}
    assert health(cluster, CapacityRules()) == {
        "status": "warning",
        "reasons": ["the HA service vm:1 is in state error"],
    }


@pytest.mark.parametrize(
    "error", [PermissionDenied(answer="no"), NetworkError(answer="gone", status=595)]
)
def test_a_part_that_fails_is_noted(error: FleetError) -> None:
    parts = PartialRead(FakeApi(lambda _request: error).client())
    assert parts.read("tasks", "cluster", "tasks") is None
    assert parts.missing == [
        {
            "part": "tasks",
            "category": error.category,
            "reason": error.on(attempted="Could not read the tasks").message,
        }
    ]
    assert parts.each("status", ["pve2", "pve1"], "status") == {"pve1": None, "pve2": None}
    with pytest.raises(type(error)):
        parts.version()


def test_wrong_credentials_end_everything() -> None:
    with pytest.raises(AuthenticationError):
        PartialRead(FakeApi(lambda _request: AuthenticationError()).client()).read(
            "tasks", "cluster", "tasks"
        )
