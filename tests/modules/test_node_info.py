# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module node_info against the simulator: figures, room, requests, and what a node that is down
leaves of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.modules.estate_lab import Lab, open_lab
from tests.modules.module_runner import run_module
from tests.modules.snapshot_lab import check, machine, refused, settle

GIB = 2**30
STRANGER = {"token_id": "ops@pve!auto", "token_secret": "00000000-0000-4000-8000-0000000000f2"}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with open_lab("--lag-s", "0", "--auth-delay-s", "0") as opened:
        yield opened


def nodes(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    assert not result.get("failed"), result
    return {row["node"]: row for row in result["nodes"]}


def test_all_nodes_in_a_bounded_number_of_requests(lab: Lab) -> None:
    machine(lab, node="pve2", memory=2048, cores=2, running=True)
    machine(lab, node="pve2", memory=1024)
    result = check(lab, "node_info", memory_overcommit=0.5, cpu_overcommit=2, max_vms_per_node=10)
    assert len(lab.simulator.log()) == 4
    assert result["quorate"] is True
    assert result["missing"] == []
    shown = nodes(result)
    assert sorted(shown) == ["pve1", "pve2", "pve3"]
    second = shown["pve2"]
    assert second["vms"] == {"total": 2, "running": 1, "stopped": 1, "other": 0, "templates": 1}
    assert second["capacity"] == {
        "memory_given": 3 * GIB,
        "memory_left": (32 - 3) * GIB,
        "cores_given": 3,
        "cores_left": 29,
        "vms_left": 8,
        "cpu_overcommit": 2.0,
        "memory_overcommit": 0.5,
    }
    assert (second["status"], second["ip"], second["maintenance"]) == (
        "online",
        "10.99.0.12",
        False,
    )
    assert [one["storage"] for one in second["storages"]] == ["ceph", "local", "local-lvm"]
    assert second["memory"]["total"] == 64 * GIB
    assert second["health"] == {"status": "ok", "reasons": []}
    assert (shown["pve1"]["version"], second["version"]) == ("9.2.11", None)


@pytest.mark.parametrize("options", [{}, {"details": True}], ids=str)
def test_details_of_one_node(lab: Lab, options: dict[str, Any]) -> None:
    result = check(lab, "node_info", node="pve3", **options)
    assert len(lab.simulator.log()) == 5
    (shown,) = result["nodes"]
    assert shown["version"] == "9.2.11"
    assert shown["kernel"]
    assert shown["cpu"]["model"]
    assert len(shown["cpu"]["loadavg"]) == 3
    assert shown["cpu"]["cores"] == 16
    assert set(shown) == set(check(lab, "node_info")["nodes"][0])
    assert check(lab, "node_info", node="pve3", details=False)["nodes"][0]["version"] is None
    assert len(lab.simulator.log()) == 4
    assert [one["version"] for one in check(lab, "node_info", details=True)["nodes"]] == [
        "9.2.11"
    ] * 3
    assert len(lab.simulator.log()) == 7


def test_an_unknown_node_is_an_error(lab: Lab) -> None:
    result = refused(lab, "node_info", node="pve9")
    assert result["error"]["category"] == "ConfigurationError"
    assert "pve1, pve2, pve3" in result["msg"]


SENSELESS: list[tuple[str, dict[str, Any], str]] = [
    ("node_info", {"cpu_overcommit": 0}, "cpu_overcommit"),
    ("node_info", {"memory_overcommit": -1}, "memory_overcommit"),
    ("node_info", {"max_vms_per_node": 0}, "max_vms_per_node"),
    ("node_info", {"min_free_memory": "lots"}, "min_free_memory"),
    ("node_info", {"memory_warn": 101}, "memory_warn"),
    ("node_info", {"node": "pve 1"}, "node"),
    ("cluster_info", {"storage_warn": 0}, "storage_warn"),
    ("cluster_info", {"failed_tasks": -1}, "failed_tasks"),
    ("preflight_info", {"min_version": "nine"}, "min_version"),
    ("preflight_info", {"nodes": ["pve_1"]}, "nodes"),
    ("preflight_info", {"storages": [{"name": "c"}]}, "storages"),
    ("preflight_info", {"bridges": ["vm br0"]}, "bridges"),
    ("preflight_info", {"templates": ["9"]}, "templates"),
]


@pytest.mark.parametrize(("module", "options", "named"), SENSELESS, ids=str)
def test_what_makes_no_sense_is_refused_before_any_request(
    lab: Lab, module: str, options: dict[str, Any], named: str
) -> None:
    result = refused(lab, module, **options)
    assert (result["error"]["category"], result["error"]["reason"]) == ("ValidationFailed", named)
    assert lab.simulator.log() == []


def test_a_node_that_is_down_leaves_the_others(lab: Lab) -> None:
    lab.simulator.steer("/nodes/pve3", {"online": False})
    try:
        result = check(lab, "node_info", details=True)
    finally:
        lab.simulator.steer("/nodes/pve3", {"online": True})
    shown = nodes(result)
    assert shown["pve3"]["status"] == "offline"
    assert shown["pve3"]["health"] == {"status": "critical", "reasons": ["the node is offline"]}
    assert shown["pve3"]["capacity"] is None
    assert shown["pve3"]["error"] == "the node is offline"
    assert shown["pve1"]["health"]["status"] == "ok"
    assert shown["pve1"]["kernel"]


def test_a_node_that_does_not_answer_although_it_is_listed(lab: Lab) -> None:
    lab.simulator.fault(method="GET", path="/nodes/pve2/status$", status=595, times=None)
    try:
        result = check(lab, "node_info", details=True)
    finally:
        lab.simulator.clear_faults()
    shown = nodes(result)
    assert shown["pve2"]["health"]["status"] == "critical"
    assert "595" in shown["pve2"]["error"]
    assert "pve2" in result["warnings"][0]
    assert shown["pve3"]["error"] is None


def test_a_node_in_maintenance(lab: Lab) -> None:
    lab.simulator.steer("/nodes/pve2", {"maintenance": True})
    try:
        shown = nodes(check(lab, "node_info"))
        assert len(lab.simulator.log()) == 4
        stranger = nodes(run_module("node_info", {**lab.connection, **STRANGER}))
    finally:
        lab.simulator.steer("/nodes/pve2", {"maintenance": False})
    assert {node: (row["maintenance"], row["ha_state"]) for node, row in shown.items()} == {
        "pve1": (False, "online"),
        "pve2": (True, "maintenance"),
        "pve3": (False, "online"),
    }
    assert stranger["pve2"]["maintenance"]
    assert shown["pve2"]["status"] == "online"
    assert shown["pve2"]["health"] == {
        "status": "warning",
        "reasons": ["the node is in maintenance"],
    }
    assert shown["pve3"]["health"] == {"status": "ok", "reasons": []}
    assert not nodes(check(lab, "node_info"))["pve2"]["maintenance"]


def test_no_quorum_and_a_full_node(lab: Lab) -> None:
    lab.simulator.steer("/nodes/pve1", {"memory": 1610612736})
    lab.simulator.steer("/cluster", {"quorate": False})
    try:
        result = check(lab, "node_info", node="pve1", storage_warn=1)
    finally:
        lab.simulator.steer("/cluster", {"quorate": True})
        lab.simulator.steer("/nodes/pve1", {"memory": 64 * GIB})
    (shown,) = result["nodes"]
    assert shown["health"]["status"] == "critical"
    reasons = " ".join(shown["health"]["reasons"])
    for word in ("quorum", "of its memory is in use", "% full", "root file system"):
        assert word in reasons


def test_a_caller_with_few_rights_gets_a_part(lab: Lab) -> None:
    settle(lab)
    result = run_module("node_info", {**lab.connection, **STRANGER})
    shown = nodes(result)
    assert sorted(shown) == ["pve1", "pve2", "pve3"]
    assert {row["part"] for row in result["missing"]} == {"cluster status", "HA manager's status"}
    assert all(row["category"] == "PermissionDenied" for row in result["missing"])
    assert "Sys.Audit" in result["warnings"][0]
    assert result["quorate"] is None
    assert len(lab.simulator.log()) <= 5


@pytest.mark.parametrize("module", ["node_info", "cluster_info", "snapshot_info"])
def test_a_wrong_token_is_an_error(lab: Lab, module: str) -> None:
    options = {"tags": ["x"]} if module == "snapshot_info" else {}
    result = run_module(
        module,
        {**lab.connection, "token_secret": "00000000-0000-4000-8000-00000000dead", **options},
    )
    assert result["error"]["category"] == "AuthenticationError"
