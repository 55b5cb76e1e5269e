# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rollback whose task cannot be seen: it is followed by what it does to the VM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._protection.snapshot import read, run
from tests.modules.estate_lab import Lab, open_lab
from tests.modules.snapshot_lab import machine, take

FORGET = [["DELETE", "/tasks", None]]
RAN = "It ran before: start it if it is stopped by now"


@pytest.fixture(scope="module")
def opened() -> Iterator[Lab]:
    with open_lab("--lag-s", "0", "--auth-delay-s", "0") as lab:
        yield lab


@pytest.fixture
def lab(opened: Lab) -> Iterator[Lab]:
    """A cluster whose nodes forget their tasks as soon as one is looked at."""
    yield opened
    opened.simulator.clear_faults()


def roll_back(lab: Lab, vm: dict[str, Any], **options: Any) -> dict[str, Any]:
    wanted = {"vmid": vm["vmid"], "snapshot": "s1", "state": "rolled_back", "task_timeout": 30}
    return lab.run("snapshot", **{**wanted, **options})


def forget_tasks(lab: Lab, **also: Any) -> None:
    lab.simulator.fault(method="GET", path="/tasks/UPID", steer=FORGET, **also)


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("running", [True, False])
@pytest.mark.parametrize("again", [True, False])
def test_a_rollback_that_ends_well(lab: Lab, running: bool, again: bool) -> None:
    """`again`: the VM comes from the snapshot, so that its place in the tree does not change."""
    vm = machine(lab, running=running)
    take(lab, vm, "s1", *([] if again else ["s2"]))
    forget_tasks(lab)
    result = roll_back(lab, vm)
    assert not result.get("failed"), result
    assert result["changed"]
    assert "the node does not know the task any more" in result["warnings"][0]
    assert result["vms"][0]["restarted"] is running
    assert lab.status(vm) == ("running" if running else "stopped")
    config = lab.client.get("nodes", "pve1", "qemu", vm["vmid"], "config")
    assert config["parent"] == "s1"
    assert "lock" not in config


@pytest.mark.usefixtures("fast")
def test_a_rollback_that_fails_in_the_middle(lab: Lab) -> None:
    """PVE keeps the lock, and the VM is stopped: the error says that it ran."""
    vm = machine(lab, running=True)
    take(lab, vm, "s1")
    forget_tasks(lab)
    lab.simulator.fault(task="qmrollback", fail="the pool is on fire")
    result = roll_back(lab, vm)
    assert result["error"]["category"] == "NotFound"
    assert RAN in result["msg"]
    assert lab.status(vm) == "stopped"
    again = roll_back(lab, vm, lock_timeout=1)
    assert again["error"]["category"] == "Locked"
    assert f"qm unlock {vm['vmid']}" in again["msg"]
    assert "Then start it if it ran before the rollback" in again["msg"]


@pytest.mark.usefixtures("fast")
def test_a_rollback_that_never_began(lab: Lab) -> None:
    """Nothing says that the VM is rolled back, so that is not reported."""
    vm = machine(lab)
    take(lab, vm, "s1")
    forget_tasks(lab)
    locked = [["PUT", f"/vms/{vm['vmid']}", {"lock": "backup"}]]
    lab.simulator.fault(method="POST", path=f"/{vm['vmid']}/snapshot/s1/rollback", steer=locked)
    result = roll_back(lab, vm)
    assert result["error"]["category"] == "NotFound"
    assert result["error"]["upid"]
    assert "Could not roll" in result["msg"]


@pytest.mark.usefixtures("fast")
def test_a_failed_rollback_of_a_vm_that_ran_says_so(lab: Lab) -> None:
    vm = machine(lab, running=True)
    take(lab, vm, "s1")
    lab.simulator.fault(task="qmrollback", fail="the pool is on fire")
    assert RAN in roll_back(lab, vm)["msg"]
    stopped = machine(lab)
    take(lab, stopped, "s1")
    lab.simulator.fault(task="qmrollback", fail="the pool is on fire")
    assert RAN not in roll_back(lab, stopped)["msg"]


@pytest.mark.usefixtures("fast")
def test_a_rollback_of_another_run_is_waited_for_without_its_task(lab: Lab) -> None:
    """While it lasts the VM is stopped; only after it is known whether it is to run."""
    vm = machine(lab, running=True)
    take(lab, vm, "s1")
    path = f"/vms/{vm['vmid']}"
    lab.simulator.steer(path, {"lock": "rollback", "running": False})
    ended = [["PUT", path, {"lock": None, "running": True}]]
    looks = f"/nodes/pve1/qemu/{vm['vmid']}/config"
    lab.simulator.fault(method="GET", path=looks, nth=4, steer=ended)
    result = roll_back(lab, vm)
    assert not result.get("failed"), result
    assert lab.status(vm) == "running"


@pytest.mark.usefixtures("fast")
def test_a_rollback_while_the_start_of_another_one_runs(lab: Lab) -> None:
    """The lock of a rollback is gone before the start begins (qemu-server: API2/Qemu.pm, rollback):
    the VM is read as stopped, and must run in the end.
    """
    vm = machine(lab, running=True)
    take(lab, vm, "s1")
    lab.simulator.steer("/settings", {"task_ms": {"qmstart": 500}})
    try:
        path = ("nodes", "pve1", "qemu", vm["vmid"], "snapshot", "s1", "rollback")
        lab.client.task("POST", *path, data={"start": 1})
        assert lab.status(vm) == "stopped"
        result = roll_back(lab, vm)
    finally:
        lab.simulator.steer("/settings", {"task_ms": {"qmstart": 20}})
    assert not result.get("failed"), result
    assert lab.status(vm) == "running"


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("other", ["starts", "has started", "has stopped"])
def test_a_rollback_of_a_vm_that_another_run_starts_or_stops(
    lab: Lab, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The VM then has the power that the other run gave it behind the reading of the plan."""
    vm = machine(lab, running=other == "has stopped")
    take(lab, vm, "s1")
    calls: list[int] = []

    def tags_in(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) > 1:
            return read.tags_in(*arguments)
        path = ("nodes", "pve1", "qemu", vm["vmid"], "status")
        if other == "starts":
            lab.client.write("POST", *path, "start")
        else:
            lab.client.task("POST", *path, "start" if other == "has started" else "stop")
        return read.tags_in(*arguments)

    monkeypatch.setattr(run, "tags_in", tags_in)
    lab.simulator.steer("/settings", {"task_ms": {"qmstart": 500}})
    try:
        result = roll_back(lab, vm)
    finally:
        lab.simulator.steer("/settings", {"task_ms": {"qmstart": 20}})
    assert not result.get("failed"), result
    assert len(calls) == 2
    assert lab.status(vm) == ("stopped" if other == "has stopped" else "running")
    rollbacks = [row for row in lab.simulator.writes() if row["path"].endswith("/rollback")]
    assert len([row for row in rollbacks if f"/{vm['vmid']}/" in row["path"]]) == 1


def test_without_restart_the_power_of_others_does_not_matter(lab: Lab) -> None:
    vm = machine(lab, running=True)
    take(lab, vm, "s1")
    lab.simulator.reset_log()
    assert roll_back(lab, vm, restart=False)["changed"]
    paths = [row["path"] for row in lab.simulator.log()]
    assert not [path for path in paths if path.endswith("/status/current")]
