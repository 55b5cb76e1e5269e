# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module snapshot against the simulator: taken, described, removed, rolled back, pruned.

For one VM and for many.
"""

from __future__ import annotations

import itertools
import re
import threading
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.clock import Clock
from tests.modules.container_lab import add_container
from tests.modules.estate_lab import Lab, open_lab
from tests.modules.module_runner import run_module
from tests.modules.snapshot_lab import (
    check,
    do,
    ending_when_followed,
    machine,
    names,
    prepare,
    refused,
    settle,
    take,
    unending,
)

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A cluster of its own, because nodes go down and storages are added here."""
    with open_lab("--lag-s", "0", "--auth-delay-s", "0") as opened:
        yield prepare(opened)


def test_taken_once(lab: Lab) -> None:
    vm = machine(lab)
    wanted = {"vmid": vm["vmid"], "snapshot": "s1", "description": "first\nsecond"}
    made = do(lab, **wanted)
    assert made["changed"]
    assert made["vms"][0]["done"] == made["vms"][0]["plan"]
    assert made["diff"]["after"]["snapshot s1"] == {
        "description": "first\nsecond",
        "vmstate": False,
        "parent": None,
    }
    (one,) = made["vms"][0]["snapshots"]
    assert (one["name"], one["current"], one["vmstate"]) == ("s1", True, False)
    again = do(lab, **wanted)
    assert not again["changed"]
    assert again["diff"] == {"before": {}, "after": {}}
    assert lab.simulator.writes() == []
    renamed = do(lab, **{**wanted, "description": "other"})
    assert renamed["diff"]["before"]["snapshot s1"]["description"] == "first\nsecond"
    assert renamed["vms"][0]["snapshots"][0]["description"] == "other"
    assert not do(lab, vmid=vm["vmid"], snapshot="s1")["changed"]


def test_requests_for_one_snapshot(lab: Lab) -> None:
    vm = machine(lab, tags="tenant_acme")
    settle(lab)
    run_module(
        "snapshot", {**lab.connection, "vmid": vm["vmid"], "snapshot": "s1", "tenant": "acme"}
    )
    asked = [row for row in lab.simulator.log() if "/tasks/" not in row["path"]]
    assert len(asked) <= 7, [f"{row['method']} {row['path']}" for row in asked]
    settle(lab)
    run_module(
        "snapshot", {**lab.connection, "vmid": vm["vmid"], "snapshot": "s1", "tenant": "acme"}
    )
    assert len(lab.simulator.log()) <= 3


def test_with_memory(lab: Lab) -> None:
    vm = machine(lab, running=True)
    made = do(lab, vmid=vm["vmid"], snapshot="ram", vmstate=True)
    assert made["vms"][0]["snapshots"][0]["vmstate"]
    off = machine(lab)
    made = do(lab, vmid=off["vmid"], snapshot="ram", vmstate=True)
    assert "without its memory" in made["warnings"][0]
    assert not made["vms"][0]["snapshots"][0]["vmstate"]


def test_a_memory_that_cannot_be_saved(lab: Lab) -> None:
    vm = machine(lab, running=True)
    lab.simulator.steer(f"/vms/{vm['vmid']}", {"config": {"virtiofs0": "dirid=share"}})
    result = refused(lab, vmid=vm["vmid"], snapshot="ram", vmstate=True)
    assert result["error"]["category"] == "NotSupported"
    assert "virtiofs0" in result["msg"]
    assert do(lab, vmid=vm["vmid"], snapshot="plain")["changed"]


def test_removed_once_and_its_children_stay(lab: Lab) -> None:
    vm = machine(lab)
    take(lab, vm, "s1", "s2", "s3")
    gone = do(lab, vmid=vm["vmid"], snapshot="s2", state="absent")
    assert gone["changed"]
    assert gone["diff"]["after"]["snapshot s3"]["parent"] == "s1"
    assert [one["parent"] for one in gone["vms"][0]["snapshots"]] == [None, "s1"]
    assert not do(lab, vmid=vm["vmid"], snapshot="s2", state="absent")["changed"]


@pytest.mark.parametrize("running", [True, False])
def test_rollback_starts_a_vm_that_ran(lab: Lab, running: bool) -> None:
    vm = machine(lab, running=running)
    take(lab, vm, "s1")
    back = do(lab, vmid=vm["vmid"], snapshot="s1", state="rolled_back")
    assert back["changed"]
    assert lab.status(vm) == ("running" if running else "stopped")
    assert back["vms"][0]["restarted"] is running
    assert ("because it ran" in back["vms"][0]["done"][0]) is running


def test_a_rollback_waits_for_the_start_that_it_began(lab: Lab) -> None:
    vm = machine(lab, running=True)
    take(lab, vm, "s1")
    lab.simulator.steer("/settings", {"task_ms": {"qmstart": 1500}})
    try:
        back = run_module(
            "snapshot",
            {**lab.connection, "vmid": vm["vmid"], "snapshot": "s1", "state": "rolled_back"},
        )
    finally:
        lab.simulator.steer("/settings", {"task_ms": {"qmstart": 20}})
    assert (back["vms"][0]["restarted"], back["vms"][0]["status"]) == (True, "running")
    assert lab.status(vm) == "running"


def test_a_start_that_fails_after_the_rollback_is_reported(lab: Lab) -> None:
    vm = machine(lab, running=True)
    lab.simulator.steer(f"/vms/{vm['vmid']}", {"config": {"net0": "virtio,bridge=vmbr99"}})
    take(lab, vm, "s1")
    back = run_module(
        "snapshot", {**lab.connection, "vmid": vm["vmid"], "snapshot": "s1", "state": "rolled_back"}
    )
    assert "was rolled back, but could not be started again" in back["msg"]
    assert "vmbr99" in back["msg"]
    assert back["error"]["upid"].split(":")[5] == "qmstart"
    assert back["changed"]  # the disks are those of the snapshot
    assert "back to snapshot 's1'" in back["error"]["done"][0]


@pytest.mark.parametrize(
    ("then", "now", "after"),
    [
        ("tenant_old;blue", "tenant_acme;green", "blue;tenant_acme"),
        ("blue", "tenant_acme", "blue;tenant_acme"),
        ("tenant_old", "green", ""),
        ("Tenant_acme;blue", "tenant_acme;green", "tenant_acme;blue"),
    ],
)
@pytest.mark.parametrize("fails", [False, True])
def test_a_rollback_does_not_change_the_tenant(
    lab: Lab, then: str, now: str, after: str, fails: bool
) -> None:
    vm = machine(lab, tags=then, running=fails)
    if fails:  # after the rollback, when the VM is to be started again
        lab.simulator.steer(f"/vms/{vm['vmid']}", {"config": {"net0": "virtio,bridge=vmbr99"}})
    take(lab, vm, "s1")
    lab.client.write("PUT", "nodes", vm["node"], "qemu", vm["vmid"], "config", data={"tags": now})
    said = {"vmid": vm["vmid"], "snapshot": "s1", "state": "rolled_back"}
    said |= {"tenant": "acme"} if "tenant_acme" in now else {}
    if fails:
        assert run_module("snapshot", {**lab.connection, **said})["failed"]
    else:
        assert do(lab, **said)["vms"][0]["tags"] == sorted(after.split(";") if after else [])
    tags = lab.client.get("nodes", vm["node"], "qemu", vm["vmid"], "config").get("tags", "").strip()
    assert sorted(tags.split(";")) == sorted(after.split(";"))


def test_an_interrupted_rollback_does_not_change_the_tenant(lab: Lab) -> None:
    vm = machine(lab, tags="tenant_old")
    take(lab, vm, "s1")
    lab.client.write(
        "PUT", "nodes", vm["node"], "qemu", vm["vmid"], "config", data={"tags": "tenant_acme"}
    )
    said = {"vmid": vm["vmid"], "tenant": "acme", "snapshot": "s1", "state": "rolled_back"}
    with unending(lab, "qmrollback"):
        late = run_module("snapshot", {**lab.connection, **said, "task_timeout": 1})
        assert late["error"]["category"] == "TaskTimeout"
        with ending_when_followed(lab, "qmrollback"):
            back = run_module("snapshot", {**lab.connection, **said})
    assert [row["method"] for row in lab.simulator.writes()] == ["PUT"]
    assert back["vms"][0]["tenant"] == "acme"


def test_rollback_without_restart_and_with_memory(lab: Lab) -> None:
    vm = machine(lab, running=True)
    take(lab, vm, "plain")
    take(lab, vm, "ram", vmstate=1)
    back = do(lab, vmid=vm["vmid"], snapshot="plain", state="rolled_back", restart=False)
    assert lab.status(vm) == "stopped"
    assert "stays stopped" in back["warnings"][0]
    back = do(lab, vmid=vm["vmid"], snapshot="ram", state="rolled_back")
    assert lab.status(vm) == "running"
    assert back["vms"][0]["status"] == "running"


def test_rollback_keeps_newer_snapshots_where_the_storage_can(lab: Lab) -> None:
    vm = machine(lab)
    take(lab, vm, "s1", "s2")
    do(lab, vmid=vm["vmid"], snapshot="s1", state="rolled_back")
    assert names(lab, vm) == ["s1", "s2"]
    do(lab, vmid=vm["vmid"], snapshot="s2", state="rolled_back")


def test_rollback_loses_newer_snapshots_only_when_asked(lab: Lab) -> None:
    vm = machine(lab, disk="tank:1")
    take(lab, vm, "s1", "s2", "s3")
    result = refused(lab, vmid=vm["vmid"], snapshot="s1", state="rolled_back")
    assert (result["error"]["category"], result["error"]["reason"]) == (
        "Conflict",
        "newer snapshots",
    )
    assert result["error"]["snapshots"] == ["s2", "s3"]
    assert "force" in result["msg"]
    back = do(lab, vmid=vm["vmid"], snapshot="s1", state="rolled_back", force=True)
    assert names(lab, vm) == ["s1"]
    assert len(back["vms"][0]["done"]) == 3
    do(lab, vmid=vm["vmid"], snapshot="s1", state="rolled_back")


def test_automatic_names_and_count(lab: Lab) -> None:
    vm = machine(lab)
    take(lab, vm, "manual", "auto-20200101-000000", "auto-20210101-000000", "auto-note")
    result = do(lab, vmid=vm["vmid"], keep=2)
    assert re.fullmatch(r"auto-\d{8}-\d{6}", result["snapshot"])
    assert names(lab, vm) == sorted(
        ["manual", "auto-note", "auto-20210101-000000", result["snapshot"]]
    )


def test_a_retention_waits_for_each_deletion(lab: Lab) -> None:
    vm = machine(lab)
    take(lab, vm, "n-1", "n-2", "n-3", "n-4", "other")
    lab.simulator.steer("/settings", {"task_ms": {"qmdelsnapshot": 300}})
    try:
        settle(lab)
        wanted = {"vmid": vm["vmid"], "state": "absent", "pattern": "n-*", "keep": 1}
        assert len(run_module("snapshot", {**lab.connection, **wanted})["vms"][0]["done"]) == 3
    finally:
        lab.simulator.steer("/settings", {"task_ms": {"qmdelsnapshot": 20}})
    assert names(lab, vm) == ["n-4", "other"]  # and not only when the last task ends by itself
    began = [entry["time"] for entry in lab.simulator.writes()]
    assert len(began) == 3
    assert all(later - earlier >= 0.3 for earlier, later in zip(began, began[1:], strict=False))


def test_age_and_pattern(lab: Lab) -> None:
    vm = machine(lab)
    take(lab, vm, "n-1", "other", "n-2", "N-3")
    assert not do(lab, vmid=vm["vmid"], state="absent", pattern="n-*", keep_for="1h")["changed"]
    assert do(lab, vmid=vm["vmid"], state="absent", pattern="n-*", keep=1)["changed"]
    assert names(lab, vm) == ["N-3", "n-2", "other"]
    assert not do(lab, vmid=vm["vmid"], state="absent", pattern="n-*", keep=1)["changed"]
    time.sleep(1.1)  # snapshots have the second in which they were taken
    take(lab, vm, "n-4")
    rows = lab.client.get("nodes", vm["node"], "qemu", vm["vmid"], "snapshot")
    (taken,) = [row["snaptime"] for row in rows if row["name"] == "n-4"]
    with mock.patch.object(Clock, "time", return_value=taken + 3599.0):
        assert do(lab, vmid=vm["vmid"], state="absent", pattern="n-*", keep_for="1h")["changed"]
    assert names(lab, vm) == ["N-3", "n-4", "other"]
    assert do(lab, vmid=vm["vmid"], state="absent", pattern="n-*")["changed"]
    assert names(lab, vm) == ["N-3", "other"]


def test_many_by_tenant_and_tags(lab: Lab) -> None:
    vms = [machine(lab, tags=f"tenant_many;{tag}") for tag in ("web", "web", "db")]
    other = machine(lab, tags="tenant_many2;web")
    made = do(lab, tenant="many", tags=["web"], snapshot="s1", parallel=2)
    assert [vm["vmid"] for vm in made["vms"]] == [vms[0]["vmid"], vms[1]["vmid"]]
    assert len(made["diff"]) == 2
    assert [names(lab, vm) for vm in (*vms, other)] == [["s1"], ["s1"], [], []]
    assert not do(lab, tenant="many", tags=["web"], snapshot="s1")["changed"]
    nothing = do(lab, tenant="many", tags=["web", "db"], snapshot="s1")
    assert nothing["vms"] == []
    assert "nothing to do" in nothing["warnings"][0]


@pytest.mark.parametrize(
    "options",
    [
        {"snapshot": "s2"},
        {"snapshot": "s1", "state": "rolled_back"},
        {"snapshot": "s1", "state": "absent"},
    ],
    ids=str,
)
@pytest.mark.parametrize("cause", ["another tenant", "removed"])
def test_a_vm_that_leaves_the_selection_is_left_as_it_is(
    lab: Lab, options: dict[str, Any], cause: str
) -> None:
    """Its own configuration decides, not the listing, in which it still has the tenant."""
    tenant = f"leaves{next(NUMBERS)}"
    stays, leaves = (machine(lab, tags=f"tenant_{tenant}") for _one in range(2))
    for vm in (stays, leaves):
        take(lab, vm, "s1")
    steer: list[Any] = ["PUT", f"/vms/{leaves['vmid']}", {"config": {"tags": "tenant_globex"}}]
    if cause == "removed":
        steer = ["DELETE", f"/vms/{leaves['vmid']}", {}]
    path = f"^/nodes/pve1/qemu/{leaves['vmid']}/snapshot$"
    for module, more in (("snapshot", options), ("snapshot_info", {})):
        lab.simulator.fault(method="GET", path=path, steer=[steer])
        settle(lab)
        result = run_module(module, {**lab.connection, "tenant": tenant, **more})
        lab.simulator.clear_faults()
        assert not result.get("failed"), result
        assert [vm["vmid"] for vm in result["vms"]] == [stays["vmid"]]
        assert not [row for row in lab.simulator.writes() if f"/{leaves['vmid']}/" in row["path"]]
        if module == "snapshot":
            assert any("It was selected, and left" in line for line in result["warnings"])


def test_one_failure_does_not_stop_the_others(lab: Lab) -> None:
    good, bad = machine(lab), machine(lab, disk="files:1,format=raw")
    wanted = {"vms": [good["name"], str(bad["vmid"]), "nosuch"], "snapshot": "s1"}
    result = run_module("snapshot", {**lab.connection, **wanted})
    assert result["failed"]
    assert "2 of 3 VMs failed" in result["msg"]
    assert all(result["msg"].count(f"VM '{name}'") == 1 for name in (bad["name"], "nosuch")), (
        result["msg"]
    )
    assert result["changed"]
    shown = {row["name"]: row for row in result["vms"]}
    assert shown[good["name"]]["changed"]
    assert shown[bad["name"]]["error"]["category"] == "NotSupported"
    assert shown["nosuch"]["error"]["category"] == "NotFound"
    assert names(lab, good) == ["s1"]


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"snapshot": "current"}, "ValidationFailed", "current"),
    ({"snapshot": "Pending"}, "ValidationFailed", "Pending"),
    ({"snapshot": "1st"}, "ValidationFailed", "letter"),
    ({"snapshot": "a"}, "ValidationFailed", "2 to 40"),
    ({"snapshot": "a" * 41}, "ValidationFailed", "2 to 40"),
    ({"prefix": "x y"}, "ValidationFailed", "prefix"),
    ({"prefix": "a" * 26}, "ValidationFailed", "25"),
    ({"keep": 0}, "ValidationFailed", "keep"),
    ({"keep_for": "7 years"}, "ValidationFailed", "7 years"),
    ({"snapshot": "s1", "keep": 3}, "ValidationFailed", "pattern"),
    ({"snapshot": "s1", "pattern": "x*"}, "ValidationFailed", "pattern"),
    ({"state": "absent"}, "ValidationFailed", "pattern"),
    ({"parallel": 0}, "ValidationFailed", "parallel"),
    ({"task_timeout": 0}, "ValidationFailed", "task_timeout"),
    ({"state": "rolled_back", "snapshot": "nosuch"}, "NotFound", "nosuch"),
    ({"state": "rolled_back", "snapshot": "s1", "keep": 1}, "ValidationFailed", "retention"),
]


@pytest.mark.parametrize(("options", "category", "word"), REFUSED, ids=str)
def test_refused_before_any_write(
    lab: Lab, options: dict[str, Any], category: str, word: str
) -> None:
    vm = machine(lab)
    result = refused(lab, vmid=vm["vmid"], **options)
    assert result["error"]["category"] == category, result["msg"]
    assert word in result["msg"]


@pytest.mark.parametrize(
    "options", [{"name": ""}, {"name": "", "tenant": "acme"}, {"vms": ["web1", ""]}], ids=str
)
@pytest.mark.parametrize("module", ["snapshot", "snapshot_info"])
def test_an_empty_name_is_a_mistake(lab: Lab, module: str, options: dict[str, Any]) -> None:
    said = {"snapshot": "s1"} if module == "snapshot" else {}
    assert refused(lab, module, **options, **said)["error"]["category"] == "ValidationFailed"


def test_a_rollback_of_no_vm_is_not_a_success(lab: Lab) -> None:
    machine(lab, tags="web")
    result = refused(lab, tags=["web", "db"], snapshot="s1", state="rolled_back")
    assert (result["error"]["category"], result["error"]["reason"]) == ("NotFound", "unknown VM")


def test_an_empty_list_is_reported(lab: Lab) -> None:
    assert "vms is empty" in do(lab, vms=[], snapshot="s1")["warnings"][0]


@pytest.mark.parametrize(
    ("disk", "word"), [("files:1,format=raw", "files (dir)"), ("local:1,format=raw", "raw")]
)
def test_storages_that_cannot_are_named(lab: Lab, disk: str, word: str) -> None:
    vm = machine(lab, disk=disk, scsi1="ceph:1")
    for mode in (True, False):
        settle(lab)
        result = run_module(
            "snapshot", {**lab.connection, "vmid": vm["vmid"], "snapshot": "s1"}, check=mode
        )
        assert result["error"]["category"] == "NotSupported"
        assert result["error"]["disks"] == ["scsi0"]
        assert word in result["msg"]
        assert lab.simulator.writes() == []


@pytest.mark.parametrize("disk", ["files:1,format=qcow2", "local-lvm:1", "tank:1", "ceph:1"])
def test_storages_that_can(lab: Lab, disk: str) -> None:
    assert do(lab, vmid=machine(lab, disk=disk)["vmid"], snapshot="s1")["changed"]


def test_a_template_is_refused_and_not_selected(lab: Lab) -> None:
    assert refused(lab, vmid=9000, snapshot="s1")["error"]["reason"] == "is a template"
    assert do(lab, tags=["image"], snapshot="s1")["vms"] == []


@pytest.mark.parametrize(
    "options",
    [
        {"snapshot": "s2"},
        {"snapshot": "s1", "state": "absent"},
        {"snapshot": "s1", "state": "rolled_back"},
        {"snapshot": "s1", "description": "mine"},
        {"state": "absent", "pattern": "*"},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "tags", ["tenant_globex", "tenant_acme;tenant_globex", "tenant_acme2", "web"]
)
def test_another_tenants_vm_is_never_touched(lab: Lab, options: dict[str, Any], tags: str) -> None:
    vm = machine(lab, tags=tags)
    take(lab, vm, "s1")
    assert (
        refused(lab, vmid=vm["vmid"], tenant="acme", **options)["error"]["reason"]
        == "foreign tenant"
    )
    # By name, a VM of other tenants alone does not exist for this one.
    visible = tags in ("web", "tenant_acme;tenant_globex")
    reason = "foreign tenant" if visible else "unknown VM"
    assert refused(lab, name=vm["name"], tenant="acme", **options)["error"]["reason"] == reason
    listed = run_module(
        "snapshot", {**lab.connection, "vms": [vm["name"]], "tenant": "acme", **options}
    )
    assert listed["error"]["reason"] == reason


def test_a_vm_without_a_tenant_may_be_in_creation(lab: Lab) -> None:
    """A clone has no tag of its tenant until it was configured (qemu-server: API2/Qemu.pm,
    clone_vm).
    """
    vm = machine(lab, tags="web")
    result = refused(lab, vmid=vm["vmid"], tenant="acme", snapshot="s1")
    assert "Run this again if another run is creating it" in result["msg"]
    assert "adopt=true of module vm" in result["msg"]


@pytest.mark.parametrize("by", ["vmid", "name"])
def test_another_tenants_vm_in_a_list_is_not_disclosed(lab: Lab, by: str) -> None:
    mine, theirs = (
        machine(lab, tags="tenant_acme"),
        machine(lab, tags="tenant_globex;secret-tag", node="pve2"),
    )
    said = {"vms": [str(mine[by]), str(theirs[by])], "tenant": "acme"}
    shown = {vm["name"]: vm for vm in check(lab, "snapshot_info", **said)["vms"]}
    failed = run_module("snapshot", {**lab.connection, **said, "snapshot": "s1"})
    done = {vm["name"]: vm for vm in failed["vms"]}
    assert shown[mine["name"]]["error"] is None
    assert done[mine["name"]]["changed"]
    for row in (shown[str(theirs[by])], done[str(theirs[by])]):
        assert row["error"]["reason"] == ("foreign tenant" if by == "vmid" else "unknown VM")
        assert [row.get(key) for key in ("vmid", "node", "tenant", "status", "lock")] == [None] * 5
        assert not row.get("tags")
        assert "secret-tag" not in str(row)
    assert names(lab, theirs) == []


def test_the_guard_looks_before_every_write(lab: Lab) -> None:
    vm = machine(lab, tags="tenant_acme")
    take(lab, vm, "n-1", "n-2", "n-3")
    stolen = [["PUT", f"/vms/{vm['vmid']}", {"config": {"tags": "tenant_globex"}}]]
    lab.simulator.fault(method="DELETE", path="/snapshot/n-[0-9]$", steer=stolen)
    wanted = {"vmid": vm["vmid"], "tenant": "acme", "state": "absent", "pattern": "n-*"}
    result = run_module("snapshot", {**lab.connection, **wanted})
    assert result["error"]["reason"] == "foreign tenant"
    assert len(result["error"]["done"]) == 1
    assert len(names(lab, vm)) == 2


# Locks, tasks and lost answers.


@pytest.mark.parametrize(
    "options",
    [
        {"snapshot": "s2"},
        {"snapshot": "s1", "state": "absent"},
        {"snapshot": "s1", "state": "rolled_back"},
    ],
    ids=str,
)
def test_a_lock_of_three_seconds_is_waited_out(lab: Lab, options: dict[str, Any]) -> None:
    vm = machine(lab)
    take(lab, vm, "s1")
    lab.simulator.steer(f"/vms/{vm['vmid']}", {"lock": "backup"})
    freed = threading.Timer(3.0, lambda: lab.simulator.steer(f"/vms/{vm['vmid']}", {"lock": None}))
    freed.start()
    began = time.monotonic()
    result = run_module("snapshot", {**lab.connection, "vmid": vm["vmid"], **options})
    freed.join()
    assert not result.get("failed"), result
    assert time.monotonic() - began >= 2.5
    assert result["changed"]


def test_a_lock_that_stays_is_reported(lab: Lab) -> None:
    vm = machine(lab)
    lab.simulator.steer(f"/vms/{vm['vmid']}", {"lock": "backup"})
    result = run_module(
        "snapshot", {**lab.connection, "vmid": vm["vmid"], "snapshot": "s1", "lock_timeout": 1}
    )
    assert (result["error"]["category"], result["error"]["reason"]) == ("Locked", "locked (backup)")
    assert result["error"]["retryable"]


def test_a_task_that_fails(lab: Lab) -> None:
    vm = machine(lab)
    lab.simulator.steer("/cluster", {"quorate": False})
    try:
        result = run_module("snapshot", {**lab.connection, "vmid": vm["vmid"], "snapshot": "s1"})
    finally:
        lab.simulator.steer("/cluster", {"quorate": True})
    assert result["error"]["category"] == "NodeUnhealthy"
    assert result["error"]["upid"].startswith("UPID:pve1:")
    assert result["error"]["log"]
    assert "s1" in result["msg"]


WORK: list[tuple[str, dict[str, Any]]] = [
    ("qmsnapshot", {"snapshot": "s2"}),
    ("qmdelsnapshot", {"snapshot": "s1", "state": "absent"}),
    ("qmrollback", {"snapshot": "s1", "state": "rolled_back"}),
]


@pytest.fixture
def rough(lab: Lab) -> Iterator[Lab]:
    yield lab
    lab.simulator.clear_faults()


@pytest.mark.parametrize(("kind", "options"), WORK, ids=str)
def test_a_task_that_fails_midway(rough: Lab, kind: str, options: dict[str, Any]) -> None:
    """What PVE leaves locked is named with the way out; then the same task does its work."""
    vm = machine(rough)
    take(rough, vm, "s1")
    said = {**rough.connection, "vmid": vm["vmid"], "lock_timeout": 1, **options}
    rough.simulator.fault(task=kind, fail="the pool is on fire")
    result = run_module("snapshot", said)
    assert result["error"]["category"] == "TaskFailed"
    assert result["error"]["upid"].split(":")[5] == kind
    assert "TASK ERROR: the pool is on fire" in result["error"]["log"]
    assert "the pool is on fire" in result["msg"]
    assert "error.log" in result["msg"]
    if kind != "qmsnapshot":  # PVE cleans up after a snapshot that it could not take
        result = run_module("snapshot", said)
        assert result["error"]["category"] == "Locked"
        assert f"qm unlock {vm['vmid']}" in result["msg"]
        rough.simulator.steer(f"/vms/{vm['vmid']}", {"lock": None})
    assert run_module("snapshot", said)["changed"]
    assert (
        names(rough, vm)
        == {"qmsnapshot": ["s1", "s2"], "qmdelsnapshot": [], "qmrollback": ["s1"]}[kind]
    )


@pytest.mark.parametrize(("kind", "options"), WORK, ids=str)
def test_a_task_that_ends_with_warnings(rough: Lab, kind: str, options: dict[str, Any]) -> None:
    vm = machine(rough)
    take(rough, vm, "s1")
    rough.simulator.fault(task=kind, warn="the disk is slow")
    result = run_module("snapshot", {**rough.connection, "vmid": vm["vmid"], **options})
    assert not result.get("failed"), result
    assert result["changed"]
    assert len(result["warnings"]) == 1
    assert result["warnings"][0].endswith("the disk is slow")
    assert vm["name"] in result["warnings"][0]


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"snapshot": "s2"}, "qmsnapshot"),
        ({"snapshot": "s1", "state": "absent"}, "qmdelsnapshot"),
        ({"snapshot": "s1", "state": "rolled_back"}, "qmrollback"),
    ],
    ids=str,
)
def test_a_task_that_outlasts_its_timeout_is_picked_up(
    lab: Lab, options: dict[str, Any], kind: str
) -> None:
    vm = machine(lab)
    take(lab, vm, "s1")
    with unending(lab, kind):
        first = run_module(
            "snapshot", {**lab.connection, "vmid": vm["vmid"], "task_timeout": 1, **options}
        )
        assert first["error"]["category"] == "TaskTimeout"
        assert first["error"]["upid"].split(":")[5] == kind
        assert check(lab, vmid=vm["vmid"], **options)["vms"][0]["lock"]
        with ending_when_followed(lab, kind):
            second = run_module("snapshot", {**lab.connection, "vmid": vm["vmid"], **options})
    assert not second.get("failed"), second
    assert not second["changed"]
    assert lab.simulator.writes() == []
    assert ("s2" in names(lab, vm)) is (kind == "qmsnapshot")
    assert ("s1" in names(lab, vm)) is (kind != "qmdelsnapshot")


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize(
    "options",
    [
        {"snapshot": "s2"},
        {"snapshot": "s1", "state": "absent"},
        {"snapshot": "s1", "state": "rolled_back"},
    ],
    ids=str,
)
@pytest.mark.parametrize("drop", ["before", "after"])
def test_a_lost_answer_makes_no_second_task(lab: Lab, options: dict[str, Any], drop: str) -> None:
    vm = machine(lab)
    take(lab, vm, "s1")
    method = "DELETE" if options.get("state") == "absent" else "POST"
    settle(lab)
    lab.simulator.fault(method=method, path=f"/{vm['vmid']}/snapshot", drop=drop)
    try:
        result = run_module("snapshot", {**lab.connection, "vmid": vm["vmid"], **options})
    finally:
        lab.simulator.clear_faults()
    assert not result.get("failed"), result
    assert result["changed"]
    started = lab.client.get("nodes", vm["node"], "tasks", vmid=vm["vmid"], source="all")
    kind = {"absent": "qmdelsnapshot", "rolled_back": "qmrollback"}.get(
        options.get("state", ""), "qmsnapshot"
    )
    assert len([row for row in started if row["type"] == kind]) == (
        2 if kind == "qmsnapshot" else 1
    )


@pytest.mark.usefixtures("fast")
def test_a_node_that_is_down_stops_only_its_own(lab: Lab) -> None:
    here, there = machine(lab, node="pve1"), machine(lab, node="pve3")
    take(lab, there, "s1")
    lab.simulator.steer("/nodes/pve3", {"online": False})
    try:
        wanted = {"vms": [here["name"], there["name"]], "snapshot": "s2", "retries": 1}
        result = run_module("snapshot", {**lab.connection, **wanted})
        shown = run_module("snapshot_info", {**lab.connection, "vms": wanted["vms"], "retries": 1})
        alone = run_module("snapshot_info", {**lab.connection, "name": there["name"], "retries": 1})
    finally:
        lab.simulator.steer("/nodes/pve3", {"online": True})
    assert "1 of 2 VMs failed" in result["msg"]
    assert result["error"]["category"] == "NetworkError"
    assert names(lab, here) == ["s2"]
    assert not shown.get("failed"), shown
    assert [vm["snapshots"] is None for vm in shown["vms"]] == [False, True]
    assert "pve3" in shown["warnings"][0]
    assert alone["failed"]


def test_the_tree(lab: Lab) -> None:
    vm = machine(lab, tags="tenant_tree", running=True)
    take(lab, vm, "root")
    take(lab, vm, "ram", vmstate=1, description="with memory")
    do(lab, vmid=vm["vmid"], snapshot="root", state="rolled_back")
    take(lab, vm, "branch")
    settle(lab)
    (shown,) = check(lab, "snapshot_info", tenant="tree", details=True)["vms"]
    rows = {row["name"]: row for row in shown["snapshots"]}
    assert sorted(rows["root"]["children"]) == ["branch", "ram"]
    assert (rows["ram"]["parent"], rows["ram"]["depth"], rows["ram"]["vmstate"]) == (
        "root",
        1,
        True,
    )
    assert shown["current"] == "branch"
    assert rows["branch"]["current"]
    assert not rows["root"]["current"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", rows["root"]["time"])
    assert rows["root"]["disks"][0]["size"] == 2**30
    assert rows["ram"]["vmstate_size"] > 0
    assert rows["root"]["vmstate_size"] is None
    assert shown["tenant"] == "tree"


@pytest.mark.parametrize("kind", ["qemu", "lxc"])
def test_snapshots_without_a_parent(lab: Lab, kind: str) -> None:
    """PVE lists `parent` only if there is one. Two snapshots can be first ones, and the present
    state can follow none (qemu-server: API2/Qemu.pm, snapshot_list; pve-container:
    API2/LXC/Snapshot.pm, list; pve-guest-common: AbstractConfig.pm, snapshot_delete).
    """
    vmid = 29001 if kind == "lxc" else int(machine(lab)["vmid"])
    if kind == "lxc":
        add_container(lab, vmid, hostname="roots")
    path = ("nodes", "pve1", kind, vmid, "snapshot")
    of: dict[str, Any] = {"vmid": vmid}
    for name in ("s1", "s2"):
        lab.client.task("POST", *path, data={"snapname": name})
    assert do(lab, **of, snapshot="s1", state="rolled_back")["changed"]
    gone = do(lab, **of, snapshot="s1", state="absent")
    assert gone["diff"]["after"]["current"]["parent"] is None
    assert not any("parent" in row for row in lab.client.get(*path))
    (shown,) = check(lab, "snapshot_info", **of)["vms"]
    (one,) = shown["snapshots"]
    assert (shown["current"], one["parent"], one["depth"]) == (None, None, 0)
    time.sleep(1.1)  # snapshots have the second in which they were taken
    assert do(lab, **of, snapshot="s3")["changed"]
    assert [row.get("parent") for row in lab.client.get(*path)].count(None) == 2
    assert do(lab, **of, snapshot="s2", state="rolled_back")["changed"]
    assert not do(lab, **of, snapshot="s2", description="")["changed"]
    assert do(lab, **of, state="absent", pattern="s*", keep=1)["changed"]
    (shown,) = check(lab, "snapshot_info", **of)["vms"]
    assert ([one["name"] for one in shown["snapshots"]], shown["current"]) == (["s3"], None)


def test_a_number_with_another_name_is_refused(lab: Lab) -> None:
    vm = machine(lab)
    for options in ({"snapshot": "s1"}, {"snapshot": "s1", "state": "absent"}):
        result = refused(lab, vmid=vm["vmid"], name="recycled", **options)
        assert (result["error"]["category"], result["error"]["reason"]) == (
            "Conflict",
            "another name",
        )
    assert (
        refused(lab, "snapshot_info", vmid=vm["vmid"], name="recycled")["error"]["reason"]
        == "another name"
    )
    assert do(lab, vmid=vm["vmid"], name=vm["name"], snapshot="s1")["changed"]
