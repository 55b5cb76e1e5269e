# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module evacuation: checks, moves, the record, and the return of the guests."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import repeated, strides
from tests.labs.maintenance import (
    NODE,
    do,
    evacuate,
    on_node,
    places,
    populate,
    put_vm,
    run_until,
    window,
)
from tests.modules.estate_lab import Lab, watched_tasks
from tests.modules.tenant_lab import made

pytestmark = pytest.mark.usefixtures("fast")


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def notes(lab: Lab, node: str = NODE) -> str:
    """Return the notes of a node."""
    found: str = lab.client.get("nodes", node, "config").get("description", "")
    return found


def refused(lab: Lab, **options: Any) -> dict[str, Any]:
    """Return the failure of a run, which must have made no write, in check mode either."""
    lab.simulator.reset_log()
    checked = evacuate(lab, check=True, **options)
    result = evacuate(lab, **options)
    assert result.get("failed"), result
    assert checked["msg"] == result["msg"]
    assert lab.simulator.writes() == []
    return result


def ha(lab: Lab, vmid: int, **rule: Any) -> None:
    """Put a VM under the HA manager, and make a rule for it."""
    lab.client.write("POST", "cluster", "ha", "resources", data={"sid": f"vm:{vmid}"})
    if rule:
        data = {"resources": f"vm:{vmid}", **rule}
        lab.client.write("POST", "cluster", "ha", "rules", data=data)


def test_guests_leave_and_return(lab: Lab) -> None:
    before = populate(lab)
    lab.simulator.reset_log()
    checked = evacuate(lab, check=True)
    assert lab.simulator.writes() == []
    done = do(lab)
    assert done["plan"] == checked["plan"] == done["done"]
    assert done["diff"] == checked["diff"]
    assert done["evacuation"]["phase"] == "evacuated"
    assert on_node(lab) == []
    assert places(lab)[205] == (NODE, False)
    again = do(lab)
    assert (again["changed"], again["plan"]) == (False, [])
    assert again["report"][-1] == "Done: nothing to do"
    checked = evacuate(lab, check=True, state="returned")
    back = do(lab, state="returned")
    assert back["plan"] == checked["plan"] == back["done"]
    assert places(lab) == before
    assert notes(lab) == ""
    again = do(lab, state="returned")
    assert (again["changed"], again["report"][-1]) == (False, "Done: nothing to do")


def test_no_new_guest_is_placed_on_an_empty_node_in_maintenance(lab: Lab) -> None:
    """Without HA maintenance mode only the notes of the node tell. PVE shows them to logins with
    Sys.Audit on / (pve-manager: PVE/API2/NodeConfig.pm, get_config).
    """
    populate(lab)
    do(lab, unmovable="leave", move_stopped=True)
    new = {
        "name": "db9",
        "source": "debian-13",
        "tenant": "initech",
        "placement": {"nodes": [NODE]},
    }
    planned = lab.run("vm", check=True, **new)
    assert not planned.get("failed"), planned["msg"]
    assert planned["vm"]["node"] != NODE
    assert planned["placement"]["refused"][NODE] == "in maintenance"
    login = made(lab, "initech", nodes=["pve1", NODE])
    blind = lab.run("vm", check=True, **new, **login, pool="initech")
    assert not blind.get("failed"), blind["msg"]


def test_the_plan_tells_why_and_how_long(lab: Lab) -> None:
    populate(lab)
    result = evacuate(lab, check=True, transfer_rate=10)
    rows = {row["vmid"]: row for row in result["evacuation"]["guests"]}
    assert rows[206]["action"] == "restart"
    assert rows[201]["action"] == "migrate"
    assert "least_used" in rows[201]["reason"]
    # 2 GiB of memory; 1 GiB of memory and a local disk of 8 GiB: each at 10 MiB/s, and 5 s.
    assert (rows[201]["seconds"], rows[204]["seconds"]) == (210, 927)
    assert result["evacuation"]["seconds"] == 927
    assert result["evacuation"]["resting"] == 1
    assert "about 16 min" in result["report"][-2]


def test_as_many_guests_move_at_once_as_is_allowed(lab: Lab) -> None:
    populate(lab)
    lab.simulator.steer("/settings", {"task_ms": "qmigrate=500"})
    with watched_tasks(lab, "qmigrate", NODE) as seen:
        do(lab, parallel=2)
    lab.simulator.steer("/settings", {"task_ms": "qmigrate=20"})
    assert max(map(len, seen)) == 2


def test_guests_return_in_start_order(lab: Lab) -> None:
    populate(lab)
    do(lab)
    lab.simulator.reset_log()
    do(lab, state="returned")
    moved = [
        one["path"].split("/")[4] for one in lab.simulator.writes() if "migrate" in one["path"]
    ]
    assert moved[:2] == ["202", "201"]
    assert sorted(moved[2:]) == ["203", "204", "206"]


def test_each_guest_that_cannot_leave_is_named_before_anything_moves(lab: Lab) -> None:
    populate(lab, stuck=True)
    put_vm(lab, 208, {"memory": "512", "ide2": "local:iso/debian-13-netinst.iso,media=cdrom"})
    result = refused(lab, restart_containers=False)
    assert result["msg"].startswith("3 guests cannot leave node pve2: ")
    for cause in (
        "vm207 (207): it uses devices of its node: hostpci0",
        "vm208 (208): it holds an ISO that only its node has",
        "ct206 (206): a running container moves by a restart only",
    ):
        assert cause in result["msg"]
    assert [row["vmid"] for row in result["error"]["guests"]] == [206, 207, 208]


@pytest.mark.parametrize(("policy", "state"), [("leave", True), ("shutdown", False)])
def test_the_policy_about_guests_that_cannot_leave(lab: Lab, policy: str, state: bool) -> None:
    before = populate(lab, stuck=True)
    done = do(lab, unmovable=policy)
    assert places(lab)[207] == (NODE, state)
    assert on_node(lab) == [207] * state
    assert done["evacuation"]["phase"] == "evacuated"
    assert not do(lab, unmovable=policy)["changed"]
    do(lab, state="returned")
    assert places(lab) == before


@pytest.mark.parametrize(
    ("steer", "cause"),
    [
        (("/nodes/pve3", {"online": False}), "node pve3 is offline already"),
        (("/cluster", {"quorate": False}), "the cluster has no quorum"),
        (("/cluster", {"ceph": {"flags": ["norecover"]}}), "Ceph has the flags norecover"),
        (("/cluster", {"ceph": {"health": "HEALTH_ERR"}}), "Ceph is not healthy (HEALTH_ERR)"),
        (("/vms/201", {"lock": "backup"}), "vm201 (201) has the lock backup"),
        (("/vms/201", {"lock": "snapshot"}), "vm201 (201) has the lock snapshot"),
        (("/vms/201", {"lock": "migrate"}), "vm201 (201) has the lock migrate"),
    ],
)
def test_a_node_that_the_cluster_cannot_lose(
    lab: Lab, steer: tuple[str, dict[str, Any]], cause: str
) -> None:
    populate(lab)
    lab.simulator.steer(*steer)
    result = refused(lab)
    assert cause in result["msg"]
    assert result["error"]["reason"] == "cannot lose the node"


def test_a_running_backup(lab: Lab) -> None:
    populate(lab)
    lab.simulator.steer("/settings", {"task_ms": "vzdump=60000"})
    data = {"vmid": 204, "storage": "local", "mode": "snapshot"}
    lab.client.write("POST", "nodes", NODE, "vzdump", data=data)
    assert "a task vzdump of guest 204 runs on it" in refused(lab)["msg"]
    lab.simulator.steer("/settings", {"task_ms": "vzdump=20"})


def test_a_cluster_without_room(lab: Lab) -> None:
    populate(lab)
    for node in ("pve1", "pve3"):
        lab.simulator.steer(f"/nodes/{node}", {"memory": 5 * 1024**3})
    result = refused(lab, placement={"memory_overcommit": 0.5})
    assert "(memory_overcommit) = 2.5 GiB are allowed" in result["msg"]
    assert "2 guests cannot leave node pve2: vm203 (203): pve1, pve3: its VMs" in result["msg"]


def test_placement_keeps_guests_of_a_tag_apart(lab: Lab) -> None:
    for vmid in (201, 202, 203):
        tags = ["tenant_acme", "db"] if vmid != 203 else ["tenant_acme"]
        put_vm(lab, vmid, {"memory": "512"}, tags=tags)
    rules = {"anti_affinity": ["db"], "nodes": ["pve1"], "strategy": "first"}
    do(lab, placement=rules)
    nodes = {vmid: place[0] for vmid, place in places(lab).items()}
    assert nodes == {201: "pve1", 202: "pve3", 203: "pve1"}


def test_ha_manager_that_would_return_a_guest(lab: Lab) -> None:
    populate(lab)
    ha(lab, 201, rule="home", type="node-affinity", nodes=f"{NODE}:2,pve1:1")
    result = refused(lab)
    assert "the HA manager would return it at once: home prefers node pve2" in result["msg"]


def test_strict_ha_rule(lab: Lab) -> None:
    populate(lab)
    ha(lab, 201, rule="home", type="node-affinity", nodes=f"{NODE},pve3", strict=1)
    do(lab)
    assert places(lab)[201] == ("pve3", True)
    do(lab, state="returned")
    assert places(lab)[201] == (NODE, True)


def test_ha_rule_that_avoids_a_node(lab: Lab) -> None:
    """Source: pve-ha-manager, PVE/HA/Rules/NodeAffinity.pm (since PVE 9.2.6)."""
    populate(lab)
    ha(lab, 201, rule="away", type="node-affinity", nodes="pve1", affinity="negative")
    do(lab)
    assert places(lab)[201] == ("pve3", True)
    do(lab, state="returned")
    assert places(lab)[201] == (NODE, True)


def test_ha_maintenance_mode(lab: Lab) -> None:
    before = populate(lab)
    ha(lab, 201, rule="home", type="node-affinity", nodes=f"{NODE}:2,pve1:1")
    recorded = do(lab, state="recorded", ha_maintenance=True)
    assert recorded["evacuation"]["phase"] == "evacuating"
    actions = {row["vmid"]: row["action"] for row in recorded["evacuation"]["guests"]}
    assert [vmid for vmid, action in actions.items() if action == "ha"] == [201]
    assert places(lab) == before
    lab.simulator.steer("/settings", {"task_ms": "ha=300"})
    lab.simulator.steer(f"/nodes/{NODE}", {"maintenance": True})
    done = do(lab, ha_maintenance=True)
    assert done["evacuation"]["phase"] == "evacuated"
    assert on_node(lab) == []
    early = evacuate(lab, state="returned", wait_timeout=1)
    assert "the HA manager has it in maintenance mode" in early["msg"]
    lab.simulator.steer("/settings", {"task_ms": "ha=20"})
    lab.simulator.steer(f"/nodes/{NODE}", {"maintenance": False})
    do(lab, state="returned")
    assert places(lab) == before


def test_the_ha_manager_moves_a_guest_while_the_evacuation_begins(lab: Lab) -> None:
    """Its moves are those of the maintenance, and do not count as a migration of others."""
    before = populate(lab)
    ha(lab, 201)
    do(lab, state="recorded", ha_maintenance=True)
    lab.simulator.steer("/settings", {"task_ms": "qmigrate=1000"})
    lab.simulator.steer(f"/nodes/{NODE}", {"maintenance": True})
    lab.simulator.steer("/settings", {"task_ms": "qmigrate=20"})
    do(lab, ha_maintenance=True)
    assert on_node(lab) == []
    lab.simulator.steer(f"/nodes/{NODE}", {"maintenance": False})
    do(lab, state="returned")
    assert places(lab) == before


def test_another_node_waits_for_the_end_of_a_maintenance(lab: Lab) -> None:
    populate(lab)
    do(lab)
    result = evacuate(lab, node="pve3")
    assert "the maintenance of node pve2 is not finished" in result["msg"]
    do(lab, state="returned")
    do(lab, node="pve3")


def test_the_next_node_is_recorded_before_the_record_goes(lab: Lab) -> None:
    populate(lab)
    do(lab)
    do(lab, state="returned", next_node="pve3")
    found = lab.run("evacuation_info")["maintenances"]
    assert [(row["node"], row["phase"]) for row in found] == [("pve3", "pending")]
    do(lab, node="pve3")
    do(lab, node="pve3", state="returned")
    assert lab.run("evacuation_info")["maintenances"] == []


def test_a_node_that_waits_for_its_maintenance_takes_guests_and_leaves_the_round(lab: Lab) -> None:
    populate(lab)
    do(lab, state="next")
    new = {"name": "db9", "source": "debian-13", "tenant": "initech"}
    planned = lab.run("vm", check=True, placement={"nodes": [NODE]}, **new)
    assert planned["vm"]["node"] == NODE
    lab.simulator.reset_log()
    checked = evacuate(lab, check=True, state="returned")
    assert lab.simulator.writes() == []
    made = do(lab, state="returned")
    assert (
        made["done"] == checked["plan"] == [f"Remove the record of the maintenance of node {NODE}"]
    )
    assert lab.run("evacuation_info")["maintenances"] == []
    assert not do(lab, state="returned")["changed"]


def test_the_source_of_a_move_to_another_cluster_is_named(lab: Lab) -> None:
    """The lock of such a source is not the lock of a task, and does not end by itself."""
    populate(lab)
    move = "3f9a:201:munich:301:online:1:1800000000:proven:1800000100:vienna"
    notes = {"description": f"<!-- pve.fleet: move={move} -->"}
    lab.client.write("PUT", "nodes", NODE, "qemu", 201, "config", data=notes)
    lab.simulator.steer("/vms/201", {"lock": "migrate"})
    found = refused(lab)
    assert "(201) has the lock migrate as the source of its move to site munich" in found["msg"]
    assert "pve.fleet.relocate" in found["msg"]


def test_a_guest_whose_migration_ends_while_its_lock_is_looked_at(lab: Lab) -> None:
    """The listing still has its lock. The HA manager moves guests at any time."""
    populate(lab)
    lab.simulator.steer("/vms/201", {"lock": "migrate"})
    lab.simulator.reset_log()
    locked = evacuate(lab, check=True)
    reads = lab.simulator.counts()["GET /nodes/{node}/qemu/{vmid}/config"]
    away = [["PUT", "/vms/201", {"node": "pve1", "lock": None}]]
    lab.simulator.fault(method="GET", path="/qemu/[0-9]+/config$", nth=reads, steer=away)
    assert evacuate(lab, check=True)["msg"] == locked["msg"]
    assert places(lab)[201][0] == "pve1"
    lab.simulator.clear_faults()
    do(lab)


def test_a_node_of_another_cluster_is_recorded_as_the_next_one(lab: Lab) -> None:
    lab.simulator.reset_log()
    checked = evacuate(lab, check=True, state="next")
    assert lab.simulator.writes() == []
    done = do(lab, state="next")
    assert done["plan"] == checked["plan"] == done["done"] != []
    assert done["evacuation"]["phase"] == "pending"
    assert not do(lab, state="next")["changed"]
    populate(lab)
    do(lab)
    started = do(lab, state="next")
    assert (started["changed"], started["evacuation"]["phase"]) == (False, "evacuated")
    do(lab, state="returned")


def test_notes_of_people_are_kept(lab: Lab) -> None:
    populate(lab)
    lab.run("node", node=NODE, description="Rack 4")
    do(lab)
    assert lab.run("node_settings_info", node=NODE)["settings"]["description"] == "Rack 4"
    assert not lab.run("node", node=NODE, description="Rack 4")["changed"]
    assert lab.run("node", node=NODE, description="Rack 5")["changed"]
    assert on_node(lab) == []
    do(lab, state="returned")
    assert notes(lab) == "Rack 5\n"
    assert len(on_node(lab)) == 5


def test_an_ha_manager_that_balances_could_fill_the_node_again(lab: Lab) -> None:
    """Source: pve-ha-manager 5.2.0, PVE/HA/Manager.pm, load_balance."""
    populate(lab)
    crs = {"crs": "ha=static,ha-auto-rebalance=1"}
    lab.client.write("PUT", "cluster", "options", data=crs)
    assert not evacuate(lab, check=True).get("failed")
    ha(lab, 201)
    assert "could move some onto it" in refused(lab)["msg"]
    assert not evacuate(lab, check=True, ha_maintenance=True).get("failed")


def test_a_damaged_record_is_refused(lab: Lab) -> None:
    populate(lab)
    do(lab)
    text = notes(lab).replace('"phase":"evacuated"', '"phase":"gone"')
    lab.client.write("PUT", "nodes", NODE, "config", data={"description": text})
    result = evacuate(lab, state="returned", wait_timeout=1)
    assert "the record in the notes of the node was edited" in result["msg"]


def test_noout_is_set_while_the_node_is_away(lab: Lab) -> None:
    populate(lab)
    lab.simulator.steer("/cluster", {"ceph": {}})
    flags = {row["name"]: row for row in lab.client.get("cluster", "ceph", "flags")}
    assert not flags["noout"]["value"]
    do(lab)
    lab.simulator.steer("/cluster", {"ceph": {"health": "HEALTH_WARN", "flags": ["noout"]}})
    assert not do(lab)["changed"]
    do(lab, state="returned")
    assert not [row for row in lab.client.get("cluster", "ceph", "flags") if row["value"]]


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"lost_storages": ["local-lvm"]}, "storage local-lvm is not available"),
        ({"services": {"pve-cluster": "running"}}, "service pveproxy does not run"),
        ({"version": "9.1.4"}, "it has version 9.1.4, which is older than 9.2.11"),
    ],
)
def test_a_node_that_does_not_come_back_complete(
    lab: Lab, changes: dict[str, Any], cause: str
) -> None:
    before = populate(lab)
    do(lab)
    lab.simulator.steer(f"/nodes/{NODE}", changes)
    away = places(lab)
    result = evacuate(lab, state="returned", wait_timeout=2)
    assert cause in result["msg"]
    assert places(lab) == away
    healthy = {"lost_storages": [], "services": {"pveproxy": "running", "pve-cluster": "running"}}
    lab.simulator.steer(f"/nodes/{NODE}", {**healthy, "version": "9.2.12"})
    wrong = evacuate(lab, state="returned", wait_timeout=2, expected_version="9.3.0")
    assert "it has version 9.2.12, and 9.3.0 is expected" in wrong["msg"]
    do(lab, state="returned", expected_version="9.2.12")
    assert places(lab) == before


def test_a_node_that_does_not_come_back(lab: Lab) -> None:
    before = populate(lab)
    do(lab)
    lab.simulator.steer(f"/nodes/{NODE}", {"online": False})
    assert "it is offline" in evacuate(lab, state="returned", wait_timeout=2)["msg"]
    assert "it is offline" in evacuate(lab)["msg"]
    assert "node pve2 is offline already" in evacuate(lab, node="pve1")["msg"]
    lab.simulator.steer(f"/nodes/{NODE}", {"online": True})
    away = places(lab)
    lab.simulator.steer("/cluster", {"quorate": False})
    result = evacuate(lab, state="returned", wait_timeout=2)
    assert "the cluster has no quorum" in result["msg"]
    assert places(lab) == away
    lab.simulator.steer("/cluster", {"quorate": True})
    do(lab, state="returned")
    assert places(lab) == before


def test_the_entry_node_reboots(lab: Lab) -> None:
    """The API does not answer for a while: the wait for the node outlasts it."""
    before = populate(lab)
    do(lab)
    lab.simulator.fault(drop="before", times=25)
    do(lab, state="returned", wait_timeout=600)
    assert places(lab) == before


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_connection_is_lost_during_an_evacuation(lab: Lab, when: str) -> None:
    before = populate(lab)
    lab.simulator.fault(method="POST", path="/migrate$", drop=when, times=3)
    lab.simulator.fault(method="PUT", path="/config$", drop=when, times=2)
    do(lab)
    assert on_node(lab) == []
    do(lab, state="returned")
    assert places(lab) == before
    assert notes(lab) == ""


def test_a_slow_migration_that_another_run_has_left(lab: Lab) -> None:
    """A second run waits for the task of the first one, and moves the rest."""
    before = populate(lab)
    lab.simulator.steer("/settings", {"task_ms": "qmigrate=1500"})
    assert run_until(lab, 4, state="evacuated", parallel=1) is None
    lab.simulator.steer("/settings", {"task_ms": "qmigrate=20"})
    do(lab)
    assert on_node(lab) == []
    do(lab, state="returned")
    assert places(lab) == before


def test_windows(lab: Lab) -> None:
    populate(lab)
    closed, open_now = window(5, 6), window(-1, 4)
    result = refused(lab, windows=[closed, f"sat,sun {closed}"])
    assert "the time is outside of the windows" in result["msg"]
    assert evacuate(lab, check=True, windows=[open_now])["changed"]
    agreed = {"acme": closed, "globex": [open_now]}
    result = refused(lab, tenant_windows=agreed)
    assert f"vm201 (201): tenant acme has agreed to {closed}" in result["msg"]
    assert "is not a window of time" in evacuate(lab, windows=["25:00-26:00"])["msg"]


def test_a_guest_that_is_created_in_between(lab: Lab) -> None:
    before = populate(lab)
    new = {"node": NODE, "name": "new", "running": True, "config": {"memory": "512"}}
    lab.simulator.fault(method="POST", path="/qemu/203/migrate$", steer=[["POST", "/vms/299", new]])
    do(lab)
    assert on_node(lab) == []
    do(lab, state="returned")
    assert places(lab) == {**before, 299: (NODE, True)}


def test_a_guest_that_is_created_after_an_evacuation(lab: Lab) -> None:
    populate(lab)
    do(lab)
    new = {"node": NODE, "name": "new", "running": True, "config": {"memory": "512"}}
    lab.simulator.ask("POST", "/vms/299", new)
    checked = evacuate(lab, check=True)
    again = do(lab)
    assert again["plan"] == checked["plan"] == again["done"]
    assert again["plan"][-1] == f"Record that node {NODE} is evacuated"
    assert on_node(lab) == []


def test_a_guest_that_the_ha_manager_moves_back(lab: Lab) -> None:
    before = populate(lab)
    back = [["PUT", "/vms/201", {"node": NODE}]]
    lab.simulator.fault(method="POST", path="/qemu/203/migrate$", steer=back)
    do(lab, parallel=1)
    assert on_node(lab) == []
    lab.simulator.clear_faults()
    do(lab, state="returned")
    assert places(lab) == before


def test_a_guest_that_is_moved_while_its_return_is_planned(lab: Lab) -> None:
    before = populate(lab)
    do(lab)
    home = [["PUT", "/vms/201", {"node": NODE}]]
    lab.simulator.fault(method="GET", path="/qemu/201/migrate$", steer=home)
    do(lab, state="returned")
    lab.simulator.clear_faults()
    assert places(lab) == before


def test_a_guest_that_always_comes_back(lab: Lab) -> None:
    before = populate(lab)
    back = [["PUT", "/vms/201", {"node": NODE}]]
    lab.simulator.fault(method="GET", path="/cluster/resources$", times=None, steer=back)
    result = evacuate(lab)
    assert "1 guest could not leave node pve2: vm201 (201): " in result["msg"]
    lab.simulator.clear_faults()
    do(lab)
    do(lab, state="returned")
    assert places(lab) == before


@pytest.mark.parametrize("policy", ["fail", "leave", "shutdown"])
def test_a_migration_that_fails(lab: Lab, policy: str) -> None:
    before = populate(lab)
    lab.simulator.fault(task="qmigrate", id="203", fail="no space left", times=None)
    result = evacuate(lab, unmovable=policy)
    assert bool(result.get("failed")) is (policy == "fail")
    assert places(lab)[203] == (NODE, policy != "shutdown")
    if policy == "fail":
        assert "vm203 (203): " in result["msg"]
        assert result["evacuation"]["phase"] == "evacuating"
        assert len(result["done"]) == 5
    moved = "5 changed" if policy == "shutdown" else "4 changed, 1 failed"
    assert result["report"][-1] == f"Done: {moved}"
    lab.simulator.clear_faults()
    do(lab, state="returned")
    assert places(lab) == before


def test_a_guest_that_cannot_return_keeps_the_record(lab: Lab) -> None:
    before = populate(lab)
    do(lab)
    lab.simulator.fault(task="qmigrate", id="202", fail="no space left", times=None)
    result = evacuate(lab, state="returned")
    assert "1 guest could not return to node pve2: vm202 (202): " in result["msg"]
    assert result["report"][-1] == "Done: 4 unchanged, 1 failed"
    assert lab.run("evacuation_info")["maintenances"][0]["phase"] == "returning"
    assert do(lab)["evacuation"]["phase"] == "returning"
    lab.simulator.clear_faults()
    do(lab, state="returned")
    assert places(lab) == before


def test_a_guest_that_is_replaced_or_removed_in_between(lab: Lab) -> None:
    before = populate(lab)
    do(lab)
    for vmid in (201, 202):
        lab.client.write("POST", "nodes", places(lab)[vmid][0], "qemu", vmid, "status", "stop")
        lab.simulator.ask("DELETE", f"/vms/{vmid}")
    config = {"memory": "512", "smbios1": "uuid=11111111-2222-4333-8444-555555555555"}
    lab.simulator.ask("POST", "/vms/201", {"node": "pve3", "name": "other", "config": config})
    back = do(lab, state="returned")
    assert "Guest 202 was removed during the maintenance" in back["warnings"]
    assert "VMID 201 belongs to another guest now, which stays" in back["warnings"]
    rest = {vmid: place for vmid, place in before.items() if vmid not in (201, 202)}
    assert places(lab) == {**rest, 201: ("pve3", False)}


def test_requests_of_an_evacuation_grow_with_its_guests_only(lab: Lab) -> None:
    populate(lab)
    lab.simulator.reset_log()
    do(lab)
    few = len(lab.simulator.log())
    do(lab, state="returned")
    for vmid in range(210, 220):
        put_vm(lab, vmid, {"memory": "512"})
    lab.simulator.reset_log()
    do(lab)
    assert (len(lab.simulator.log()) - few) / 10 <= 12


@pytest.mark.parametrize("stride", strides(7))
@pytest.mark.parametrize("parallel", repeated([4, 1]))
def test_a_run_that_is_killed_anywhere_is_completed_by_the_next(
    lab: Lab, parallel: int, stride: int
) -> None:
    """Before and after each write of both halves: no guest is lost, none stays elsewhere."""
    before = populate(lab, stuck=True)
    options: dict[str, Any] = {"unmovable": "shutdown", "parallel": parallel}
    for state in ("evacuated", "returned"):
        point = 1 - stride
        while True:
            point += stride
            if state == "returned":
                do(lab, **options)
            if run_until(lab, point, state=state, **options) is not None:
                break
            if state == "evacuated" or lab.run("evacuation_info")["maintenances"]:
                do(lab, **options)
            do(lab, state="returned", **options)
            assert places(lab) == before, f"{state}, killed at point {point}"
            assert notes(lab) == "", f"{state}, killed at point {point}"
        do(lab, state="returned", **options)
        # The record, five moves, a shutdown or start, the record at the end.
        assert 2 * 8 < point <= 2 * 8 + stride
        assert places(lab) == before
