# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Approved plans of module evacuation: one plan holds the moves, the record, and the return."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.arguments.options import (
    parse_options,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import TaskFailed
from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import TaskMode
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.engine import (
    StepResult,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.plan import Step
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.flow.existing import (
    ChangedGuest,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.record import (
    NodeRecord,
    split_record,
)
from ansible_collections.pve.fleet.plugins.modules.evacuation import ENTRY
from tests.labs.maintenance import NODE, do, evacuate, on_node, places, populate, put_vm
from tests.modules.estate_lab import Lab
from tests.modules.test_evacuation import ha, notes
from tests.modules.test_plans import SCHEMA, written

pytestmark = pytest.mark.usefixtures("fast")


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "plan.json")


def plan(lab: Lab, place: str, **options: Any) -> dict[str, Any]:
    """Write the plan of a maintenance, and return its part."""
    lab.simulator.reset_log()
    result = evacuate(lab, check=True, plan_file=place, **options)
    assert not result.get("failed"), result["msg"]
    assert lab.simulator.writes() == []
    document = json.loads(Path(place).read_text())
    jsonschema.validate(document, SCHEMA)
    part: dict[str, Any] = document["parts"][-1]
    return part


def record_in(lab: Lab) -> NodeRecord | None:
    """Return the record in the notes of the node."""
    return split_record(NODE, notes(lab))[1]


def approved(part: dict[str, Any]) -> set[tuple[str, str]]:
    """Return method and path of each request of a part, without the nodes of returning guests."""
    rows = [one for change in part["changes"] for one in change["requests"]]
    return {(one["method"], one["path"]) for one in rows}


def is_approved(part: dict[str, Any], lab: Lab) -> bool:
    """Return whether each write was in the plan; a guest returns from any node."""
    planned = approved(part)
    for method, path in written(lab):
        node = path.split("/")[2]
        if not planned & {(method, path), (method, path.replace(f"/{node}/", "/*/", 1))}:
            return False
    return True


def test_a_maintenance_is_planned_with_the_return_of_its_guests(lab: Lab, place: str) -> None:
    lab.simulator.steer("/cluster", {"ceph": {"flags": []}})
    before = populate(lab)
    part = plan(lab, place)
    assert (part["task"], part["subject"]) == ("evacuation", NODE)
    targets = {
        one["guest"]["vmid"]: one["after"]["node"] for one in part["changes"] if "guest" in one
    }
    lab.simulator.reset_log()
    do(lab, apply_plan=place)
    assert {vmid: node for vmid, (node, _runs) in places(lab).items() if vmid in targets} == targets
    assert not do(lab, apply_plan=place)["changed"]
    do(lab, apply_plan=place, state="returned")
    assert is_approved(part, lab)
    assert places(lab) == before
    assert record_in(lab) is None
    assert not do(lab, apply_plan=place, state="returned")["changed"]


def test_a_second_run_of_a_plan_does_not_maintain_again(lab: Lab, place: str) -> None:
    """The notes name the plan; another maintenance replaces this comment, and module node keeps it."""
    before = populate(lab)
    plan(lab, place)
    do(lab, apply_plan=place)
    do(lab, apply_plan=place, state="returned")
    assert lab.run("node", node=NODE, description="rack 1")["changed"]
    lab.simulator.reset_log()
    for state in ("recorded", "evacuated", "complete", "returned", "next"):
        for check in (True, False):
            again = evacuate(lab, check=check, apply_plan=place, state=state)
            assert (again["changed"], again.get("failed", False)) == (False, False), again
    assert evacuate(lab, apply_plan=place)["evacuation"]["phase"] == "maintained"
    assert lab.simulator.writes() == []
    assert lab.run("evacuation_info")["maintenances"] == []
    do(lab)
    do(lab, state="returned")
    assert notes(lab) == "rack 1\n"
    assert places(lab) == before


def test_guests_go_to_the_approved_nodes_although_another_node_has_more_room_now(
    lab: Lab, place: str
) -> None:
    put_vm(lab, 201, {"memory": "2048"})
    (move,) = [one for one in plan(lab, place)["changes"] if "guest" in one]
    target = move["after"]["node"]
    put_vm(lab, 301, {"memory": "16384"}, node=target)
    other = {"pve1": "pve3", "pve3": "pve1"}[target]
    (chosen,) = evacuate(lab, check=True)["evacuation"]["guests"]
    assert chosen["target"] == other
    do(lab, apply_plan=place)
    assert places(lab)[201][0] == target


def test_an_approved_node_without_room_is_not_replaced_by_another(lab: Lab, place: str) -> None:
    put_vm(lab, 201, {"memory": "2048"})
    rules = {"memory_overcommit": 1.0}
    (move,) = [one for one in plan(lab, place, placement=rules)["changes"] if "guest" in one]
    lab.simulator.steer(f"/nodes/{move['after']['node']}", {"memory": 1024**3})
    lab.simulator.reset_log()
    refused = evacuate(lab, apply_plan=place, placement=rules)
    assert refused["failed"]
    text = f"planned VMID 201 on node {move['after']['node']}, now "
    assert text in refused["msg"]
    assert "memory_overcommit" in refused["msg"].partition(text)[2]
    assert lab.simulator.writes() == []


def test_a_local_medium_is_named_with_the_plan_and_the_others_leave(lab: Lab, place: str) -> None:
    populate(lab)
    part = plan(lab, place, unmovable="leave")
    moves = {
        one["guest"]["vmid"]: one["after"]["node"] for one in part["changes"] if "guest" in one
    }
    data = {"ide2": "local:iso/debian-13-netinst.iso,media=cdrom"}
    lab.client.write("PUT", "nodes", NODE, "qemu", 201, "config", data=data)
    for check in (True, False):
        refused = evacuate(lab, check=check, apply_plan=place, unmovable="leave")
        assert f"planned VMID 201 on node {moves[201]}, now it " in str(refused), refused["msg"]
    assert places(lab)[201][0] == NODE
    assert places(lab)[202][0] == moves[202]


def test_a_guest_that_came_to_the_node_is_refused_and_the_others_leave(
    lab: Lab, place: str
) -> None:
    populate(lab)
    part = plan(lab, place, unmovable="leave")
    put_vm(lab, 209, {"memory": "512"})
    lab.simulator.reset_log()
    result = evacuate(lab, apply_plan=place, unmovable="leave")
    assert result["failed"]
    assert "vm209" in result["msg"]
    assert "not the approved one" in result["msg"]
    assert on_node(lab) == [209]
    assert is_approved(part, lab)


def test_check_mode_shows_every_difference_of_a_plan(lab: Lab, place: str) -> None:
    populate(lab)
    plan(lab, place)
    for vmid in (208, 209):
        put_vm(lab, vmid, {"memory": "512"})
    lab.client.task("POST", "nodes", NODE, "qemu", 203, "status", "stop")
    result = evacuate(lab, check=True, apply_plan=place)
    assert "3 plans are not the approved ones" in result["msg"]
    assert "vm203 is not the approved one: Migrate" in result["msg"]
    assert "planned and now differ in online removed" in result["msg"]
    for vmid in (208, 209):
        assert f"tenant_acme/vm{vmid} is not the approved one: nothing was planned" in result["msg"]
    assert any("vm202" in line for line in result["report"])


def test_a_guest_that_was_changed_while_it_was_away_is_refused_and_the_others_return(
    lab: Lab, place: str
) -> None:
    populate(lab)
    plan(lab, place)
    do(lab, apply_plan=place)
    node, _runs = places(lab)[202]
    lab.client.task("POST", "nodes", node, "qemu", 202, "status", "stop")
    result = evacuate(lab, apply_plan=place, state="returned")
    assert result["failed"]
    assert "planned and now differ in online removed" in result["msg"]
    assert on_node(lab) == [201, 203, 204, 206]
    assert "pve.fleet maintenance" in notes(lab)
    lab.client.task("POST", "nodes", node, "qemu", 202, "status", "start")
    do(lab, apply_plan=place, state="returned")
    assert record_in(lab) is None


def test_a_guest_that_ha_has_moved_while_it_was_away_returns(lab: Lab, place: str) -> None:
    put_vm(lab, 201, {"memory": "2048"})
    (move,) = [one for one in plan(lab, place)["changes"] if "guest" in one]
    do(lab, apply_plan=place)
    other = {"pve1": "pve3", "pve3": "pve1"}[move["after"]["node"]]
    lab.simulator.steer("/vms/201", {"node": other})
    do(lab, apply_plan=place, state="returned")
    assert places(lab)[201] == (NODE, True)


def test_a_guest_of_the_ha_manager_that_was_not_approved_stops_everything(
    lab: Lab, place: str
) -> None:
    populate(lab)
    ha(lab, 201)
    part = plan(lab, place, ha_maintenance=True)
    (line,) = [one for one in part["lines"] if "vm201" in one]
    assert "moved by the HA manager" in line
    ha(lab, 203)
    lab.simulator.reset_log()
    refused = evacuate(lab, apply_plan=place, ha_maintenance=True, state="recorded")
    assert "The plan of tenant_acme/vm203 is not the approved one" in refused["msg"]
    assert lab.simulator.writes() == []
    lab.client.write("DELETE", "cluster", "ha", "resources", "vm:203")
    do(lab, apply_plan=place, ha_maintenance=True, state="recorded")
    lab.simulator.steer("/vms/201", {"node": "pve3"})  # as the HA manager does
    do(lab, apply_plan=place, ha_maintenance=True)
    do(lab, apply_plan=place, ha_maintenance=True, state="returned")
    assert places(lab)[201] == (NODE, True)


def test_guests_that_are_shut_down_start_again(lab: Lab, place: str) -> None:
    before = populate(lab, stuck=True)
    part = plan(lab, place, unmovable="shutdown")
    lab.simulator.reset_log()
    do(lab, apply_plan=place, unmovable="shutdown")
    assert places(lab)[207] == (NODE, False)
    do(lab, apply_plan=place, state="returned")
    assert places(lab) == before
    assert is_approved(part, lab)


def test_one_file_has_the_plans_of_all_nodes_of_a_round(lab: Lab, place: str) -> None:
    put_vm(lab, 201, {"memory": "512"}, node="pve1")
    put_vm(lab, 202, {"memory": "512"}, node="pve2")
    for node, following in (("pve1", "pve2"), ("pve2", "")):
        plan(lab, place, node=node, next_node=following, plan_run="one")
    parts = json.loads(Path(place).read_text())["parts"]
    assert [one["subject"] for one in parts] == ["pve1", "pve2"]
    for node, following in (("pve1", "pve2"), ("pve2", "")):
        do(lab, apply_plan=place, node=node)
        do(lab, apply_plan=place, node=node, next_node=following, state="returned")
    other = evacuate(lab, apply_plan=place, node="pve3")
    assert "this task is evacuation pve3 at" in other["msg"]
    assert places(lab)[201][0] == "pve1"


def test_an_interrupted_maintenance_is_planned_from_its_record(lab: Lab, place: str) -> None:
    before = populate(lab)
    do(lab)
    part = plan(lab, place)
    assert len([one for one in part["changes"] if "guest" in one]) == 5
    lab.simulator.reset_log()
    do(lab, apply_plan=place, state="returned")
    assert is_approved(part, lab)
    assert places(lab) == before


def test_notes_of_the_node_that_were_edited_are_a_difference(lab: Lab, place: str) -> None:
    populate(lab)
    lab.client.write("PUT", "nodes", NODE, "config", data={"description": "rack 1"})
    plan(lab, place)
    lab.client.write("PUT", "nodes", NODE, "config", data={"description": "rack 2"})
    lab.simulator.reset_log()
    assert "description rack 1 -> rack 2" in evacuate(lab, apply_plan=place)["msg"]
    assert lab.simulator.writes() == []
    lab.client.write("PUT", "nodes", NODE, "config", data={"description": "rack 1"})
    do(lab, apply_plan=place)
    do(lab, apply_plan=place, state="returned")
    assert split_record(NODE, notes(lab)) == ("rack 1", None)


def test_two_runs_of_one_plan_end_in_the_state_of_the_plan(lab: Lab, place: str) -> None:
    populate(lab)
    part = plan(lab, place)
    given = {"node": NODE, "restart_containers": True, "wait_timeout": 5, "apply_plan": place}
    params = parse_options(ENTRY.whole_spec, {**lab.connection, **given})
    mode = TaskMode(check=False, diff=False, verbosity=0)
    lab.simulator.reset_log()
    with ThreadPoolExecutor(2) as pool:
        runs = [
            pool.submit(ENTRY.perform, dict(params), {}, mode, lend=Client) for _run in range(2)
        ]
        outcomes = [one.result() for one in runs]
    assert [one.values.get("msg") for one in outcomes if one.failed] == []
    assert on_node(lab) == []
    assert is_approved(part, lab)
    for change in part["changes"]:
        if "guest" in change:
            assert places(lab)[change["guest"]["vmid"]] == (change["after"]["node"], True)


def test_a_guest_that_another_run_has_moved_at_the_same_time_has_left(
    lab: Lab, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its migration waits for the lock, then finds no configuration (pve-guest-common:
    PVE/AbstractConfig.pm, load_config).
    """
    put_vm(lab, 201, {"memory": "2048"})
    (move,) = [one for one in plan(lab, place)["changes"] if "guest" in one]

    def fail_after_another(_self: ChangedGuest[Any], step: Step) -> StepResult:
        lab.client.task("POST", *step.path, data=step.data)
        log = (
            "migration aborted: Configuration file 'nodes/pve2/qemu-server/201.conf' does not exist"
        )
        raise TaskFailed(attempted="It", answer="migration aborted", log=(log,))

    monkeypatch.setattr(ChangedGuest, "send", fail_after_another)
    do(lab, apply_plan=place)
    assert places(lab)[201] == (move["after"]["node"], True)


@pytest.mark.parametrize("lost", ["pve1", "pve3"])
def test_a_cluster_that_has_lost_a_node_is_not_changed(lab: Lab, place: str, lost: str) -> None:
    populate(lab)
    plan(lab, place)
    lab.simulator.steer(f"/nodes/{lost}", {"online": False})
    lab.simulator.reset_log()
    assert f"node {lost} is offline already" in evacuate(lab, apply_plan=place)["msg"]
    assert lab.simulator.writes() == []


def test_plans_of_two_nodes_do_not_run_at_once(lab: Lab, place: str) -> None:
    populate(lab)
    put_vm(lab, 301, {"memory": "512"}, node="pve1")
    plan(lab, place, node="pve1", plan_run="one")
    plan(lab, place, plan_run="one")
    do(lab, apply_plan=place)
    lab.simulator.reset_log()
    refused = evacuate(lab, apply_plan=place, node="pve1")
    assert f"the maintenance of node {NODE} is not finished" in refused["msg"]
    assert lab.simulator.writes() == []


def test_a_guest_that_was_removed_is_named_and_the_others_leave(lab: Lab, place: str) -> None:
    populate(lab)
    plan(lab, place)
    lab.client.task("POST", "nodes", NODE, "qemu", 203, "status", "stop")
    lab.client.task("DELETE", "nodes", NODE, "qemu", 203)
    for check in (True, False):
        result = evacuate(lab, check=check, apply_plan=place)
        assert result["failed"]
        text = "tenant_acme/vm203 is not the approved one: planned VMID 203, now there is no such"
        assert text in result["msg"]
        (line,) = [one for one in result["report"] if one.startswith("! tenant_acme/vm203")]
        assert "planned VMID 203" in line
    assert on_node(lab) == []
