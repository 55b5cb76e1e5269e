# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module rebalance: the budget, the score, and the guests that stay."""

from __future__ import annotations

from typing import Any

import pytest

from tests.labs.maintenance import places, put_vm
from tests.modules.estate_lab import Lab

pytestmark = pytest.mark.usefixtures("fast")


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def populate(lab: Lab, number: int = 6, **config: Any) -> None:
    """Put VMs of 8 GiB on one node of three."""
    for vmid in range(301, 301 + number):
        disk = {"scsi0": f"ceph:vm-{vmid}-disk-0,size=4G"}
        put_vm(lab, vmid, {"memory": "8192", **disk, **config}, tags=["tenant_acme"])


def rebalance(lab: Lab, *, check: bool = False, **options: Any) -> dict[str, Any]:
    result = lab.run("rebalance", check=check, **{"threshold": 0, **options})
    assert not result.get("failed"), result["msg"]
    return result


def moved(result: dict[str, Any]) -> list[int]:
    return sorted(row["vmid"] for row in result["rebalance"]["moves"])


def test_a_preview_and_the_run_are_equal_and_a_second_run_changes_nothing(lab: Lab) -> None:
    populate(lab)
    lab.simulator.reset_log()
    checked = rebalance(lab, check=True)
    assert lab.simulator.writes() == []
    done = rebalance(lab)
    assert done["plan"] == checked["plan"] == done["done"]
    assert done["diff"] == checked["diff"]
    assert done["rebalance"] == checked["rebalance"]
    assert done["report"][:-1] == checked["report"][:-1]
    found = done["rebalance"]
    assert found["score_after"] < found["score_before"]
    by_node = [node for vmid, (node, _runs) in places(lab).items() if vmid > 300]
    assert {node: by_node.count(node) for node in set(by_node)} == {"pve1": 2, "pve2": 2, "pve3": 2}
    again = rebalance(lab)
    assert (again["changed"], again["report"][-1]) == (False, "Done: nothing to do")


def test_the_budget_of_moves_and_of_data(lab: Lab) -> None:
    populate(lab)
    assert rebalance(lab, check=True, max_moves=0)["rebalance"]["moves"] == []
    assert len(rebalance(lab, check=True, max_moves=2)["rebalance"]["moves"]) == 2
    found = rebalance(lab, check=True, max_size="17G")["rebalance"]
    assert len(found["moves"]) == 2
    assert found["size"] == 16 * 1024**3
    assert "more than is left of max_size" in found["stays"][0]["reason"]


def test_an_even_cluster_stays(lab: Lab) -> None:
    populate(lab)
    assert rebalance(lab, check=True, threshold=100)["plan"] == []


def test_local_disks_and_containers_move_only_if_that_is_allowed(lab: Lab) -> None:
    put_vm(lab, 301, {"memory": "8192", "scsi0": "local-lvm:vm-301-disk-0,size=4G"})
    put_vm(lab, 302, {"memory": "8192"})
    config = {"hostname": "ct303", "memory": "8192", "rootfs": "ceph:vm-303-disk-0,size=2G"}
    entry = {"node": "pve2", "running": True, "config": config}
    lab.simulator.ask("POST", "/containers/303", entry)
    found = rebalance(lab, check=True)
    assert moved(found) == [302]
    reasons = {row["vmid"]: row["reason"] for row in found["rebalance"]["stays"]}
    assert "which restart_containers allows" in reasons[303]
    put_vm(lab, 304, {"memory": "8192", "hostpci0": "0000:01:00.0"})
    found = rebalance(lab, check=True, local_disks=True, restart_containers=True)
    assert len(moved(found)) == 2
    assert 304 not in moved(found)


def test_only_guests_of_the_tenants_move(lab: Lab) -> None:
    populate(lab, 2)
    put_vm(lab, 310, {"memory": "8192"}, tags=["tenant_globex"])
    assert moved(rebalance(lab, check=True, tenants=["globex"])) == [310]


def test_affinity_of_a_tenant_holds(lab: Lab) -> None:
    """Both other nodes have a guest of the tag: no guest of the tag may move there."""
    populate(lab, 2)
    for vmid, node in ((401, "pve1"), (402, "pve3")):
        put_vm(lab, vmid, {"memory": "512"}, node=node, tags=["tenant_acme", "db"])
    put_vm(lab, 300, {"memory": "8192"}, tags=["tenant_acme", "db"])
    apart = {"anti_affinity": ["db"]}
    found = rebalance(lab, check=True, tenant_placement={"Acme": apart})
    assert 300 not in moved(found)
    assert 300 in moved(rebalance(lab, check=True))


def test_rules_of_the_ha_manager_hold(lab: Lab) -> None:
    populate(lab, 3)
    for vmid in (301, 302, 303):
        lab.client.write("POST", "cluster", "ha", "resources", data={"sid": f"vm:{vmid}"})
    strict = {"rule": "home", "type": "node-affinity", "resources": "vm:301", "nodes": "pve2"}
    together = {
        "rule": "pair",
        "type": "resource-affinity",
        "affinity": "positive",
        "resources": "vm:302,vm:303",
    }
    for rule in ({**strict, "strict": 1}, together):
        lab.client.write("POST", "cluster", "ha", "rules", data=rule)
    found = rebalance(lab, check=True)
    assert moved(found) == []
    assert {row["vmid"] for row in found["rebalance"]["stays"]} == {301, 302, 303}


@pytest.mark.parametrize(("nodes", "target"), [("pve1", "pve3"), ("pve3", "pve1")])
def test_nodes_that_a_rule_of_the_ha_manager_excludes(lab: Lab, nodes: str, target: str) -> None:
    """Source: pve-ha-manager, PVE/HA/Rules/NodeAffinity.pm (since PVE 9.2.6)."""
    populate(lab, 2)
    for sid in ("vm:301", "vm:302"):
        lab.client.write("POST", "cluster", "ha", "resources", data={"sid": sid})
    rule = {"rule": "away", "type": "node-affinity", "resources": "vm:301,vm:302", "nodes": nodes}
    data = {**rule, "affinity": "negative", "strict": 1}
    lab.client.write("POST", "cluster", "ha", "rules", data=data)
    (move,) = rebalance(lab, check=True)["rebalance"]["moves"]
    assert move["target"] == target


def test_resources_that_the_ha_manager_balances_stay(lab: Lab) -> None:
    """Source: pve-ha-manager 5.2.0, PVE/HA/Manager.pm, load_balance."""
    populate(lab, 3)
    lab.client.write("POST", "cluster", "ha", "resources", data={"sid": "vm:301"})
    for idle in ("ha=dynamic", "ha=basic,ha-auto-rebalance=1"):
        lab.client.write("PUT", "cluster", "options", data={"crs": idle})
        assert 301 in moved(rebalance(lab, check=True))
    crs = {"crs": "ha=dynamic,ha-auto-rebalance=1"}
    lab.client.write("PUT", "cluster", "options", data=crs)
    found = rebalance(lab, check=True)
    assert 301 not in moved(found)
    assert "crs.ha_auto_rebalance" in found["rebalance"]["stays"][0]["reason"]


def test_nothing_moves_while_a_maintenance_is_not_finished(lab: Lab) -> None:
    populate(lab)
    evacuated = lab.run("evacuation", node="pve3", state="recorded")
    assert not evacuated.get("failed"), evacuated
    lab.simulator.reset_log()
    result = lab.run("rebalance", threshold=0)
    assert result["error"]["reason"] == "cluster not in order"
    assert "the maintenance of node pve3 is not finished" in result["msg"]
    assert lab.simulator.writes() == []


def test_a_move_that_fails_is_named_and_the_others_are_made(lab: Lab) -> None:
    populate(lab)
    lab.simulator.fault(task="qmigrate", id="301", fail="no space left", times=None)
    result = lab.run("rebalance", threshold=0)
    assert result["failed"]
    assert "301" in result["msg"]
    made = len(result["rebalance"]["moves"]) - 1
    assert result["report"][-1] == f"Done: {made} changed, 1 failed"
    assert f"after {made} moves of" in result["report"][-2]
    assert [place for vmid, place in places(lab).items() if vmid > 301].count(("pve2", True)) < 5


def test_the_next_run_waits_for_running_moves(lab: Lab) -> None:
    """A run that was killed has left a migration: the next one completes the rest."""
    populate(lab)
    lab.simulator.steer("/settings", {"task_ms": "qmigrate=1000"})
    started = {"target": "pve1", "online": 1}
    lab.client.write("POST", "nodes", "pve2", "qemu", 301, "migrate", data=started)
    lab.simulator.steer("/settings", {"task_ms": "qmigrate=20"})
    rebalance(lab)
    by_node = [node for vmid, (node, _runs) in places(lab).items() if vmid > 300]
    assert sorted(map(by_node.count, ("pve1", "pve2", "pve3"))) == [2, 2, 2]


def test_a_move_that_outlasts_the_task_is_named_and_nothing_else_moves(lab: Lab) -> None:
    populate(lab)
    lab.simulator.steer("/settings", {"task_ms": "qmigrate=3000"})
    started = {"target": "pve1", "online": 1}
    lab.client.write("POST", "nodes", "pve2", "qemu", 301, "migrate", data=started)
    lab.simulator.reset_log()
    result = lab.run("rebalance", threshold=0, task_timeout=10)
    assert result["error"]["reason"] == "moves in progress"
    assert "guest 301 is being moved" in result["msg"]
    assert lab.simulator.writes() == []


def test_a_move_that_the_ha_manager_has_not_started_yet_counts(lab: Lab) -> None:
    """The task hamigrate only leaves a command: the manager sets the state and moves the guest in
    its next rounds. Source: pve-ha-manager, PVE/HA/Manager.pm, change_service_state.
    """
    populate(lab)
    lab.client.write("POST", "cluster", "ha", "resources", data={"sid": "vm:301"})
    lab.simulator.steer("/settings", {"task_ms": "ha=3000"})
    started = {"target": "pve1", "online": 1}
    lab.client.write("POST", "nodes", "pve2", "qemu", 301, "migrate", data=started)
    lab.simulator.steer("/settings", {"task_ms": "ha=0"})
    result = lab.run("rebalance", threshold=0, task_timeout=10)
    assert "HA resource vm:301 is being moved" in result["msg"]


def test_a_wrong_option_is_refused_before_any_write(lab: Lab) -> None:
    wrong: dict[str, Any] = {"max_moves": -1, "max_size": "much", "threshold": 101}
    for option, value in wrong.items():
        given: dict[str, Any] = {option: value}
        assert option in lab.run("rebalance", **given)["msg"]
