# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module task_info against the simulator: filters, logs, tenants, and nodes that do not answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import FleetError
from tests.modules.access_lab import limited
from tests.modules.estate_lab import Lab, open_lab
from tests.modules.snapshot_lab import check, machine, refused, unending
from tests.modules.test_node_info import STRANGER


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with open_lab("--lag-s", "0", "--auth-delay-s", "0") as opened:
        yield opened


def tasks(lab: Lab, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = check(lab, "task_info", **options)["tasks"]
    return found


def types(rows: list[dict[str, Any]]) -> list[str]:
    return [row["type"] for row in rows]


def fail_a_start(lab: Lab, vm: dict[str, Any]) -> None:
    with pytest.raises(FleetError):
        lab.client.task("POST", "nodes", vm["node"], "qemu", vm["vmid"], "status", "start")


def remove(lab: Lab, vm: dict[str, Any]) -> None:
    lab.client.task("DELETE", "nodes", vm["node"], "qemu", vm["vmid"])


def test_who_did_what_and_how_it_ended(lab: Lab) -> None:
    vm = machine(lab, running=True, tags="tenant_acme")
    fail_a_start(lab, vm)
    failed, started, created = tasks(lab, vmid=vm["vmid"])
    assert types([failed, started, created]) == ["qmstart", "qmstart", "qmcreate"]
    assert {
        key: failed[key] for key in ("node", "id", "vmid", "name", "tenant", "user", "token")
    } == {
        "node": "pve1",
        "id": str(vm["vmid"]),
        "vmid": vm["vmid"],
        "name": vm["name"],
        "tenant": "acme",
        "user": "root@pam",
        "token": "fleet",
    }
    assert (failed["status"], failed["exitstatus"]) == (
        "failed",
        f"VM {vm['vmid']} already running",
    )
    assert (started["status"], started["exitstatus"]) == ("ok", "OK")
    assert failed["started"] >= started["started"]
    assert failed["ended"] >= failed["started"]
    assert failed["log"] is None
    assert failed["duration"] >= 0


def test_filters_apply_together(lab: Lab) -> None:
    vm = machine(lab, running=True)
    fail_a_start(lab, vm)
    about = {"vmid": vm["vmid"]}
    assert types(tasks(lab, **about, failed=True)) == ["qmstart"]
    assert types(tasks(lab, **about, types=["qmcreate", "qmstop"])) == ["qmcreate"]
    assert types(tasks(lab, **about, limit=1)) == ["qmstart"]
    assert tasks(lab, name=vm["name"]) == tasks(lab, **about)
    assert len(tasks(lab, **about, started_by="root@pam")) == 3
    assert len(tasks(lab, **about, started_by="root@pam!fleet")) == 3
    for other in ("root@pam!other", "oot@pam", "ops@pve"):
        assert tasks(lab, **about, started_by=other) == []
    assert tasks(lab, **about, node="pve2") == []
    assert tasks(lab, **about, until="1h") == []
    assert len(tasks(lab, **about, since="1h", until="2199-01-01")) == 3
    assert tasks(lab, **about, since="2199-01-01") == []


def test_a_running_task_has_not_failed(lab: Lab) -> None:
    vm = machine(lab)
    lab.simulator.steer("/settings", {"task_ms": {"qmstart": 3600000}})
    try:
        lab.client.write("POST", "nodes", "pve1", "qemu", vm["vmid"], "status", "start")
        running, _created = tasks(lab, vmid=vm["vmid"])
        assert tasks(lab, vmid=vm["vmid"], failed=True) == []
        assert tasks(lab, upid=running["upid"]) == [running]
    finally:
        lab.simulator.steer("/settings", {"task_ms": {"qmstart": 20}})
    assert (running["user"], running["token"]) == ("root@pam", "fleet")
    assert (running["status"], running["exitstatus"]) == ("running", None)
    assert (running["ended"], running["duration"]) == (None, None)


def test_log_on_demand(lab: Lab) -> None:
    vm = machine(lab, running=True)
    fail_a_start(lab, vm)
    (row,) = tasks(lab, vmid=vm["vmid"], failed=True, log=True)
    assert row["log"][-1] == f"TASK ERROR: VM {vm['vmid']} already running"
    (same,) = tasks(lab, upid=row["upid"], log=True)
    assert same == row


def test_tasks_of_a_tenant(lab: Lab) -> None:
    mine = machine(lab, tags="tenant_seer")
    other = machine(lab, tags="tenant_globex", node="pve2")
    both = machine(lab, tags="tenant_globex;tenant_seer")
    rows = tasks(lab, tenant="seer")
    assert {row["vmid"] for row in rows} == {mine["vmid"]}
    result = refused(lab, "task_info", tenant="seer", vmid=other["vmid"])
    assert result["error"]["category"] == "Conflict"
    assert other["name"] not in result["msg"]
    refused(lab, "task_info", tenant="seer", name=both["name"])
    (row,) = tasks(lab, vmid=other["vmid"])
    result = refused(lab, "task_info", tenant="seer", upid=row["upid"])
    assert result["error"]["category"] == "NotFound"
    unknown = refused(lab, "task_info", tenant="initech")
    assert "there is no tenant 'initech'" in unknown["msg"]


def test_tasks_of_a_removed_vm_are_not_those_of_the_next_one(lab: Lab) -> None:
    first = machine(lab, tags="tenant_globex")
    remove(lab, first)
    found = tasks(lab, vmid=first["vmid"])
    assert types(found) == ["qmdestroy", "qmcreate"]
    assert {row["name"] for row in found} == {None}
    assert tasks(lab, tenant="globex", types=["qmdestroy"]) == []
    data = {"vmid": first["vmid"], "name": "next", "tags": "tenant_seer", "memory": 64}
    lab.client.clock.sleep(1.1)  # PVE's times are whole seconds
    lab.client.task("POST", "nodes", "pve2", "qemu", data=data)
    assert types(tasks(lab, tenant="seer", vmid=first["vmid"])) == ["qmcreate"]
    assert [row["name"] for row in tasks(lab, vmid=first["vmid"])] == ["next", None, None]


def test_all_nodes_in_few_requests(lab: Lab) -> None:
    check(lab, "task_info", since="1h")
    assert len(lab.simulator.log()) == 1 + 3 * 3


def test_more_than_a_page(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "ansible_collections.pve.fleet.plugins.module_utils._operation.tasks.read._PAGE"
    monkeypatch.setattr(module, 2)
    vm = machine(lab, running=True)
    fail_a_start(lab, vm)
    fail_a_start(lab, vm)
    fail_a_start(lab, vm)
    assert types(tasks(lab, vmid=vm["vmid"])) == [*["qmstart"] * 4, "qmcreate"]
    assert len(tasks(lab, vmid=vm["vmid"], limit=3)) == 3


@pytest.mark.usefixtures("fast")
def test_a_node_that_is_down_leaves_the_others(lab: Lab) -> None:
    vm = machine(lab)
    lab.simulator.steer("/nodes/pve3", {"online": False})
    try:
        result = check(lab, "task_info", vmid=vm["vmid"])
        alone = refused(lab, "task_info", node="pve3")
    finally:
        lab.simulator.steer("/nodes/pve3", {"online": True})
    assert types(result["tasks"]) == ["qmcreate"]
    assert [row["node"] for row in result["missing"]] == ["pve3"]
    assert "pve3" in result["missing"][0]["reason"]
    assert result["warnings"] == [result["missing"][0]["reason"]]
    assert "pve3" in alone["msg"]


def test_a_token_without_rights_gets_its_own_tasks(lab: Lab) -> None:
    machine(lab)
    assert tasks(lab, **STRANGER) == []


SENSELESS: list[tuple[dict[str, Any], str]] = [
    ({"since": "yesterday"}, "since"),
    ({"until": "2026-13-01"}, "until"),
    ({"since": "1h", "until": "2h"}, "since"),
    ({"limit": 0}, "limit"),
    ({"started_by": "ops"}, "started_by"),
    ({"vmid": 7}, "vmid"),
    ({"node": "pve 1"}, "node"),
    ({"name": "no_name"}, "name"),
    ({"upid": "qmstart"}, "upid"),
    ({"upid": "UPID:pve1:x"}, "upid"),
]


@pytest.mark.parametrize(("options", "named"), SENSELESS, ids=str)
def test_what_makes_no_sense_is_refused(lab: Lab, options: dict[str, Any], named: str) -> None:
    result = refused(lab, "task_info", **options)
    assert (result["error"]["category"], result["error"]["reason"]) == ("ValidationFailed", named)
    assert lab.simulator.log() == []


@pytest.mark.parametrize(
    ("options", "category"),
    [
        ({"name": "no-such-vm"}, "NotFound"),
        ({"vmid": 999999, "tenant": "acme"}, "NotFound"),
        ({"node": "pve9"}, "ConfigurationError"),
        (
            {"upid": "UPID:pve9:00000001:00000001:6B00B479:qmstart:100:root@pam:"},
            "ConfigurationError",
        ),
        ({"upid": "UPID:pve1:00000001:00000001:6B00B479:qmstart:100:root@pam:"}, "NotFound"),
    ],
    ids=str,
)
def test_what_is_not_there_is_an_error(lab: Lab, options: dict[str, Any], category: str) -> None:
    assert refused(lab, "task_info", **options)["error"]["category"] == category


def started(lab: Lab, vm: dict[str, Any]) -> str:
    """Return the ID of a task that runs until it is stopped."""
    upid: str = lab.client.write("POST", "nodes", vm["node"], "qemu", vm["vmid"], "status", "start")
    return upid


def test_a_task_is_waited_for(lab: Lab) -> None:
    vm = machine(lab)
    upid = started(lab, vm)
    for is_check in (False, True):
        ended = lab.run("task", check=is_check, upid=upid)
        assert (ended["changed"], ended["plan"]) == (False, [])
        assert (ended["task"]["status"], ended["task"]["exitstatus"]) == ("ok", "OK")
    fail_a_start(lab, vm)
    failed = tasks(lab, vmid=vm["vmid"], failed=True)[0]
    foreseen = lab.run("task", check=True, upid=failed["upid"])
    result = lab.run("task", upid=failed["upid"])
    assert (result["error"]["category"], result["error"]["upid"]) == ("Conflict", failed["upid"])
    assert foreseen["msg"] == result["msg"]
    assert f"VM {vm['vmid']} already running" in result["msg"]
    kept = lab.run("task", upid=failed["upid"], state="stopped")
    assert (kept["changed"], kept["task"]["status"]) == (False, "failed")
    assert kept["task"]["log"][-1] == f"TASK ERROR: VM {vm['vmid']} already running"


def test_a_task_that_runs_on(lab: Lab) -> None:
    vm = machine(lab)
    with unending(lab, "qmstart"):
        upid = started(lab, vm)
        late = lab.run("task", upid=upid, task_timeout=1)
        assert (late["error"]["category"], late["error"]["reason"]) == (
            "TaskTimeout",
            "task still runs",
        )


def test_check_mode_does_not_wait(lab: Lab) -> None:
    """With a timeout of a second, a wait for this task would be an error."""
    vm = machine(lab)
    with unending(lab, "qmstart"):
        found = lab.run("task", check=True, upid=started(lab, vm), task_timeout=1)
        assert (found["changed"], found["plan"]) == (False, [])
        assert (found["task"]["status"], found["task"]["exitstatus"]) == ("running", None)


@pytest.mark.parametrize("drop", ["", "before", "after"])
@pytest.mark.usefixtures("fast")
def test_a_task_is_stopped(lab: Lab, drop: str) -> None:
    """A stopped worker ends with an error (pve-common: RESTEnvironment.pm, fork_worker)."""
    vm = machine(lab)
    with unending(lab, "qmstart"):
        upid = started(lab, vm)
        lab.simulator.reset_log()
        foreseen = lab.run("task", check=True, upid=upid, state="stopped")
        assert lab.simulator.writes() == []
        assert (foreseen["task"]["status"], foreseen["changed"]) == ("running", True)
        if drop:
            lab.simulator.fault(method="DELETE", path="/tasks/", drop=drop, times=1)
        try:
            made = lab.run("task", upid=upid, state="stopped")
        finally:
            lab.simulator.clear_faults()
    assert made["plan"] == made["done"] == foreseen["plan"], made
    assert made["plan"] == [f"Stop task qmstart of {vm['vmid']} on node pve1"]
    assert made["diff"] == foreseen["diff"]
    assert (made["task"]["status"], made["task"]["exitstatus"]) == ("failed", "received interrupt")
    again = lab.run("task", upid=upid, state="stopped")
    assert (again["changed"], again["task"]["status"]) == (False, "failed")


def test_tasks_of_others_are_not_stopped(lab: Lab) -> None:
    """PVE decides: the owner, or Sys.Modify on the node (pve-manager: API2/Tasks.pm, stop_task)."""
    login = limited(lab, "auditor", {"/": "PVEAuditor"})
    vm = machine(lab)
    with unending(lab, "qmstart"):
        upid = started(lab, vm)
        foreseen = lab.run("task", check=True, upid=upid, state="stopped", **login)
        result = lab.run("task", upid=upid, state="stopped", **login)
        assert result["error"]["category"] == "PermissionDenied"
        assert "Sys.Modify" in result["msg"]
        assert foreseen["msg"] == result["msg"]
        assert tasks(lab, upid=upid)[0]["status"] == "running"


@pytest.mark.parametrize(
    ("upid", "category"),
    [
        ("no task", "ValidationFailed"),
        ("UPID:pve1:0003F4A2:0A1B2C3D:6741A0B1:qmstart:1:root@pam!fleet:", "NotFound"),
        ("UPID:pve9:0003F4A2:0A1B2C3D:6741A0B1:qmstart:1:root@pam!fleet:", "ConfigurationError"),
    ],
)
@pytest.mark.parametrize("state", ["finished", "stopped"])
def test_a_task_that_does_not_exist(lab: Lab, upid: str, category: str, state: str) -> None:
    result = lab.run("task", upid=upid, state=state)
    assert result["error"]["category"] == category
    assert "was started" not in result["msg"]
