# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module cluster_info against the simulator: the whole, the tenants, and what is left of it when
parts are missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.modules.container_lab import add_container
from tests.modules.estate_lab import Lab, open_lab
from tests.modules.module_runner import run_module
from tests.modules.snapshot_lab import check, machine, settle

GIB = 2**30
STRANGER = {"token_id": "ops@pve!auto", "token_secret": "00000000-0000-4000-8000-0000000000f2"}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with open_lab("--lag-s", "0", "--auth-delay-s", "0") as opened:
        yield opened


def cluster(lab: Lab, **options: Any) -> dict[str, Any]:
    return check(lab, "cluster_info", **options)["cluster"]


def test_the_whole(lab: Lab) -> None:
    shown = cluster(lab)
    assert len(lab.simulator.log()) == 6
    assert (shown["name"], shown["version"], shown["quorate"]) == ("demo", "9.2.11", True)
    assert [node["status"] for node in shown["nodes"]] == ["online"] * 3
    assert shown["pools"] == ["acme", "globex"]
    storages = {one["storage"]: one for one in shown["storages"]}
    assert storages["ceph"]["total"] == 4096 * GIB
    assert storages["local-lvm"]["total"] == 3 * 500 * GIB
    assert storages["ceph"]["nodes"] == ["pve1", "pve2", "pve3"]
    assert shown["health"] == {"status": "ok", "reasons": []}
    assert shown["networks"] is None
    assert shown["missing"] == []
    assert shown["totals"]["vms"]["templates"] == 2


def test_resources_by_tenant(lab: Lab) -> None:
    machine(lab, tags="tenant_t1;web", cores=2, memory=1024, running=True)
    machine(lab, tags="tenant_t1", memory=2048)
    machine(lab, tags="tenant_t12", memory=512)
    both = machine(lab, tags="tenant_t1;tenant_t2")
    none = machine(lab)
    shown = cluster(lab)
    assert sorted(shown["tenants"]) == ["t1", "t12"]
    first = shown["tenants"]["t1"]
    assert first["vms"] == {"total": 2, "running": 1, "stopped": 1, "other": 0, "templates": 0}
    assert (first["cores"], first["memory"], first["disk"]) == (3, 3 * GIB, 2 * GIB)
    assert shown["ambiguous"]["vmids"] == [both["vmid"]]
    assert none["vmid"] in shown["untenanted"]["vmids"]
    assert "several tenants" in shown["health"]["reasons"][0]


def test_containers_count_beside_the_vms_of_a_tenant(lab: Lab) -> None:
    machine(lab, tags="tenant_t3", cores=2, memory=1024)
    for vmid, tags in ((881, "tenant_t3"), (882, ""), (883, "tenant_t3;tenant_t4")):
        add_container(lab, vmid, running=True, tags=tags, cores=3, memory=2048)
    shown = cluster(lab)
    third = shown["tenants"]["t3"]
    assert (third["vms"]["total"], third["containers"]["running"]) == (1, 1)
    assert (third["cores"], third["memory"]) == (5, 3 * GIB)
    assert 882 in shown["untenanted"]["vmids"]
    assert 883 in shown["ambiguous"]["vmids"]
    assert shown["totals"]["containers"]["total"] == shown["containers"]


def test_networks(lab: Lab) -> None:
    shown = cluster(lab, networks=True)
    assert len(lab.simulator.log()) == 9
    assert {"vmbr0", "vmbr1", "vmbr2"} <= {row["iface"] for row in shown["networks"]["pve2"]}


def test_failed_tasks_are_bounded(lab: Lab) -> None:
    vm = machine(lab, running=True)
    for _number in range(3):
        lab.client.write("POST", "nodes", "pve1", "qemu", vm["vmid"], "status", "start")
    rows = cluster(lab, failed_tasks=2)["failed_tasks"]
    assert len(rows) == 2
    assert rows[0]["status"] == f"VM {vm['vmid']} already running"
    assert rows[0]["ended"].endswith("Z")
    assert cluster(lab, failed_tasks=0)["failed_tasks"] == []


def test_ha(lab: Lab) -> None:
    vm = machine(lab)
    lab.client.write(
        "POST", "cluster", "ha", "resources", data={"sid": f"vm:{vm['vmid']}", "state": "stopped"}
    )
    shown = cluster(lab)["ha"]
    assert [service["sid"] for service in shown["services"]] == [f"vm:{vm['vmid']}"]
    assert shown["quorate"]


def test_a_node_in_maintenance(lab: Lab) -> None:
    vm = machine(lab, node="pve3", running=True)
    lab.client.write(
        "POST", "cluster", "ha", "resources", data={"sid": f"vm:{vm['vmid']}", "state": "started"}
    )
    lab.simulator.steer("/nodes/pve3", {"maintenance": True})
    try:
        shown = cluster(lab)
        assert len(lab.simulator.log()) == 6
    finally:
        lab.simulator.steer("/nodes/pve3", {"maintenance": False})
    assert [node["maintenance"] for node in shown["nodes"]] == [False, False, True]
    assert shown["ha"]["nodes"] == {"pve1": "online", "pve2": "online", "pve3": "maintenance"}
    assert shown["ha"]["master"] == "pve1"
    assert f"vm:{vm['vmid']}" in {service["sid"] for service in shown["ha"]["services"]}
    assert "node pve3 is in maintenance" in shown["health"]["reasons"]
    assert cluster(lab)["ha"]["nodes"]["pve3"] == "online"


def test_a_node_that_is_down(lab: Lab) -> None:
    lab.simulator.steer("/nodes/pve2", {"online": False})
    try:
        shown = cluster(lab, networks=True)
    finally:
        lab.simulator.steer("/nodes/pve2", {"online": True})
    assert "node pve2 is offline" in shown["health"]["reasons"]
    assert shown["health"]["status"] == "warning"
    assert sorted(shown["networks"]) == ["pve1", "pve3"]
    assert not any("is not available on pve2" in reason for reason in shown["health"]["reasons"])


def test_no_quorum_is_critical(lab: Lab) -> None:
    lab.simulator.steer("/cluster", {"quorate": False})
    try:
        shown = cluster(lab)
    finally:
        lab.simulator.steer("/cluster", {"quorate": True})
    assert shown["health"]["status"] == "critical"
    assert "quorum" in shown["health"]["reasons"][0]


def test_parts_that_do_not_answer(lab: Lab) -> None:
    lab.simulator.fault(
        method="GET", path="/cluster/tasks", status=500, message="internal error", times=None
    )
    lab.simulator.fault(method="GET", path="/nodes/pve3/network", status=596, times=None)
    try:
        result = check(lab, "cluster_info", networks=True)
    finally:
        lab.simulator.clear_faults()
    shown = result["cluster"]
    assert [row["part"] for row in shown["missing"]] == ["networks of pve3", "tasks"]
    assert shown["networks"]["pve3"] is None
    assert shown["networks"]["pve1"]
    assert len(result["warnings"]) == 2


def test_a_caller_with_few_rights_gets_a_part(lab: Lab) -> None:
    settle(lab)
    result = run_module("cluster_info", {**lab.connection, **STRANGER})
    assert not result.get("failed"), result
    shown = result["cluster"]
    assert shown["quorate"] is None
    assert shown["health"]["status"] == "unknown"
    assert {row["part"] for row in shown["missing"]} == {
        "cluster status",
        "HA status",
        "HA manager's status",
    }
    assert [node["node"] for node in shown["nodes"]] == ["pve1", "pve2", "pve3"]
    assert lab.simulator.writes() == []


def test_how_a_node_joins(lab: Lab) -> None:
    """The answer is that of pve-cluster: PVE/API2/ClusterConfig.pm, join_info."""
    found = check(lab, "cluster_join_info", node="pve2")["cluster_join"]
    assert (found["node"], found["address"], found["name"]) == ("pve2", "10.99.0.12", "demo")
    assert [one["votes"] for one in found["nodes"]] == [1, 1, 1]
    assert found["nodes"][0]["links"] == {"0": "10.99.0.11"}
    assert found["fingerprint"] == found["nodes"][1]["fingerprint"]
    default = check(lab, "cluster_join_info")["cluster_join"]
    assert default["node"] == "pve1"
    unknown = lab.run("cluster_join_info", node="pve9")
    assert "there is no node 'pve9'" in unknown["msg"]


def test_a_node_without_a_cluster_has_nothing_to_join(lab: Lab) -> None:
    text = "node is not in a cluster, no join info available!"
    lab.simulator.fault(method="GET", path="/cluster/config/join$", status=424, message=text)
    try:
        assert check(lab, "cluster_join_info")["cluster_join"] is None
    finally:
        lab.simulator.clear_faults()
