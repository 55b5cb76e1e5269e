# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Approved plans of module failover: the guests, archives, VMIDs and nodes of the plan come up. A
guest that changed behind the plan is refused, and the others come up.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.modules.backup_lab import share_archives
from tests.modules.estate_lab import Lab
from tests.modules.test_drill import back_up
from tests.modules.test_failover import munich, options, stop, vienna, web
from tests.modules.test_plan_changes import BOTH
from tests.modules.test_plans import approved_requests, part_of, written

__all__ = ["munich", "vienna", "web"]


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "plan.json")


@pytest.fixture
def given(vienna: Lab, munich: Lab, web: dict[str, Any]) -> dict[str, Any]:
    """The options of a failover of stopped guests, without the other site."""
    stop(vienna, web)
    return {**options(vienna, munich, lost=True), "from_site": None}


def plan(munich: Lab, place: str, given: dict[str, Any]) -> dict[str, Any]:
    munich.simulator.reset_log()
    planned = munich.run("failover", check=True, plan_file=place, **given)
    assert not planned.get("failed"), planned["msg"]
    assert munich.simulator.writes() == []
    return planned


def test_the_guests_of_the_plan_come_up(munich: Lab, place: str, given: dict[str, Any]) -> None:
    planned = plan(munich, place, given)
    assert len(part_of(place)["changes"]) == 2
    made = munich.run("failover", apply_plan=place, **given)
    assert not made.get("failed"), made["msg"]
    assert written(munich) <= approved_requests(place)
    for row, foreseen in zip(made["guests"], planned["guests"], strict=True):
        assert (row["new_vmid"], row["node"]) == (foreseen["new_vmid"], foreseen["node"])
    munich.simulator.reset_log()
    again = munich.run("failover", apply_plan=place, **given)
    assert not again.get("failed"), again["msg"]
    assert not again["changed"]


def test_a_failover_that_was_interrupted_continues(
    munich: Lab, place: str, given: dict[str, Any]
) -> None:
    plan(munich, place, given)
    munich.simulator.fault(method="POST", path="/status/start$", status=500, message="broken")
    assert munich.run("failover", apply_plan=place, **given)["failed"]
    munich.simulator.clear_faults()
    done = munich.run("failover", apply_plan=place, **given)
    assert not done.get("failed"), done["msg"]
    assert written(munich) <= approved_requests(place)
    assert {row["outcome"] for row in done["guests"]} <= {"up", "unchanged"}
    assert not munich.run("failover", apply_plan=place, **given)["changed"]


def test_a_newer_archive_is_refused_and_the_other_guest_comes_up(
    vienna: Lab, munich: Lab, place: str, web: dict[str, Any], given: dict[str, Any]
) -> None:
    plan(munich, place, given)
    back_up_again(vienna, munich, web["vmid"])
    result = munich.run("failover", apply_plan=place, **given)
    assert result["failed"]
    rows = {row["name"]: row for row in result["guests"]}
    assert (rows["box"]["outcome"], rows["web"]["outcome"]) == ("up", "failed")
    assert "not the approved one" in rows["web"]["msg"]
    archives = r"archive \.\.\.\S+\d\d_\d\d_\d\d\S+ -> \.\.\.\S+\d\d_\d\d_\d\d"
    assert re.search(archives, rows["web"]["msg"]), rows["web"]["msg"]
    assert "... -> ...," not in rows["web"]["msg"]
    assert written(munich) <= approved_requests(place)


def test_check_mode_shows_every_difference_of_a_plan(
    vienna: Lab, munich: Lab, place: str, web: dict[str, Any], given: dict[str, Any]
) -> None:
    plan(munich, place, given)
    back_up_again(vienna, munich, web["vmid"])
    back_up(vienna, vienna.run("container_info", name="box")["containers"][0])
    share_archives(vienna.simulator, munich.simulator)
    munich.simulator.reset_log()
    refused = munich.run("failover", check=True, apply_plan=place, **given)
    assert "2 plans are not the approved ones" in refused["msg"]
    assert munich.simulator.writes() == []
    assert "box" in str(refused["error"]["planned"])
    assert len(refused["guests"]) == 2


def test_a_rehearsal_has_no_plan_to_approve(munich: Lab, place: str, given: dict[str, Any]) -> None:
    task = {**given, "rehearsal": True, "plan_file": place}
    refused = munich.run("failover", check=True, **task)
    assert "not possible for a rehearsal" in refused["msg"]
    assert not Path(place).exists()


def test_a_guest_without_its_archive_is_named_and_the_other_one_comes_up(
    munich: Lab, place: str, web: dict[str, Any], given: dict[str, Any]
) -> None:
    planned = plan(munich, place, given)
    vmid = next(row["new_vmid"] for row in planned["guests"] if row["name"] == "web")
    for row in munich.client.get("nodes", "pve1", "storage", given["storages"][0], "content"):
        if f"/vm/{web['vmid']}/" in row["volid"] or f"-{web['vmid']}-" in row["volid"]:
            path = ("nodes", "pve1", "storage", given["storages"][0], "content", row["volid"])
            munich.client.task("DELETE", *path)
    munich.simulator.reset_log()
    result = munich.run("failover", apply_plan=place, **given)
    assert result["failed"]
    assert (
        f"web is not the approved one: planned VMID {vmid}, now there is no such" in result["msg"]
    )
    assert [(row["name"], row["outcome"]) for row in result["guests"]] == [("box", "up")]
    assert written(munich) <= approved_requests(place)


def test_a_vmid_that_was_taken_is_refused(munich: Lab, place: str, given: dict[str, Any]) -> None:
    planned = plan(munich, place, given)
    munich.vm(name="other", vmid=planned["guests"][1]["new_vmid"])
    munich.simulator.reset_log()
    refused = munich.run("failover", apply_plan=place, **given)
    assert refused["failed"]
    assert written(munich) <= approved_requests(place)
    assert munich.vm(name="other")["vm"]["vmid"] == planned["guests"][1]["new_vmid"]


def remove_archive(_vienna: Lab, munich: Lab, vmid: int) -> None:
    for row in munich.client.get("nodes", "pve1", "storage", "nas", "content"):
        if f"-{vmid}-" in row["volid"]:
            path = ("nodes", "pve1", "storage", "nas", "content", row["volid"])
            munich.client.task("DELETE", *path)


def back_up_again(vienna: Lab, munich: Lab, vmid: int) -> None:
    time.sleep(1.1)  # the name of an archive has its second
    (node,) = [row["node"] for row in vienna.simulator.ask("GET", "/vms") if row["vmid"] == vmid]
    back_up(vienna, {"vmid": vmid, "node": node})
    share_archives(vienna.simulator, munich.simulator)


def create(munich: Lab, vmid: int, **values: Any) -> None:
    given = {"name": "web", "tags": "tenant_acme", "scsi0": "ceph:1", **values}
    munich.client.task("POST", "nodes", "pve1", "qemu", data={"vmid": vmid, **given})


def recover_by_hand(munich: Lab, vmid: int) -> None:
    """Restore the guest of the plan from its archive, as a person would."""
    volumes = munich.client.get("nodes", "pve1", "storage", "nas", "content", vmid=vmid)
    data = {"vmid": vmid, "archive": volumes[0]["volid"], "storage": "ceph", "pool": "acme"}
    munich.client.task("POST", "nodes", "pve1", "qemu", data=data)


# What changes behind the plan of VM `web`, and whether that refuses it.
CHANGES: dict[str, tuple[Callable[[Lab, Lab, int], Any], bool]] = {
    "newer archive": (back_up_again, True),
    "archive removed": (remove_archive, True),
    "VMID taken": (lambda _vienna, munich, vmid: create(munich, vmid, name="other"), True),
    "VMID taken by another tenant": (
        lambda _vienna, munich, vmid: create(munich, vmid, tags="tenant_globex"),
        True,
    ),
    "created by hand": (lambda _vienna, munich, vmid: create(munich, vmid), True),
    "created elsewhere": (lambda _vienna, munich, vmid: create(munich, vmid + 5000), True),
    "recovered by hand": (lambda _vienna, munich, vmid: recover_by_hand(munich, vmid), True),
    "storage": (
        lambda _vienna, munich, _vmid: munich.client.write("DELETE", "storage", "ceph"),
        True,
    ),
    "storage disabled": (
        lambda _vienna, munich, _vmid: munich.client.write(
            "PUT", "storage", "ceph", data={"disable": 1}
        ),
        True,
    ),
    "archive protected": (
        lambda _vienna, munich, vmid: munich.client.write(
            "PUT",
            *("nodes", "pve1", "storage", "nas", "content"),
            munich.client.get("nodes", "pve1", "storage", "nas", "content", vmid=vmid)[0]["volid"],
            data={"protected": 1},
        ),
        False,
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_guest_that_changed_is_refused_and_the_other_comes_up(
    vienna: Lab, munich: Lab, place: str, web: dict[str, Any], given: dict[str, Any], name: str
) -> None:
    change, is_refused = CHANGES[name]
    planned = plan(munich, place, given)
    (vmid,) = [row["new_vmid"] for row in planned["guests"] if row["name"] == "web"]
    change(vienna, munich, vmid)
    for number in range(2):
        munich.simulator.reset_log()
        foreseen = munich.run("failover", check=True, apply_plan=place, **given)
        assert munich.simulator.writes() == []
        result = munich.run("failover", apply_plan=place, **given)
        assert written(munich) <= approved_requests(place)
        outcomes = {row["name"]: row["outcome"] for row in result["guests"]}
        assert outcomes["box"] == ("unchanged" if number else "up"), result["msg"]
        for found in (foreseen, result):
            assert found.get("failed", False) == is_refused, found
            if is_refused:
                assert "web" in found["msg"]
                assert BOTH.search(found["msg"]), found["msg"]
        if is_refused:
            assert outcomes.get("web", "failed") == "failed"
        assert result["changed"] == (number == 0)
