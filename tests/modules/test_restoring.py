# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VM under restore has neither name, tags nor lock: no module takes it for missing or changes it.

Seen on Proxmox VE 9.2.11; source: qemu-server, PVE/QemuServer.pm, restore_vma_archive.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import repeated
from tests.modules.estate_lab import Lab, first_number
from tests.modules.restore_lab import back_up, end_restore, fail_restore, restored, start_restore
from tests.modules.snapshot_lab import check

DISK: dict[str, Any] = {"disks": [{"name": "scsi0", "size": 1, "storage": "ceph"}]}
WEB: dict[str, Any] = {"name": "web", "tenant": "acme", "pool": "acme", "memory": 256, **DISK}
# It may read and change the VMs of pool acme, and does not see the tasks of others.
TENANT = {"token_id": "ops@pve!auto", "token_secret": "00000000-0000-4000-8000-0000000000f2"}
BY_NAME = {"name": "web", "tenant": "acme"}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


@pytest.fixture
def web(lab: Lab) -> dict[str, Any]:
    """A VM whose VMID follows from its name."""
    made: dict[str, Any] = lab.vm(**WEB)["vm"]
    assert made["vmid"] == first_number("web", "acme")
    return made


@pytest.fixture
def imported(lab: Lab) -> dict[str, Any]:
    """A VM of that name whose VMID does not follow from it."""
    made: dict[str, Any] = lab.vm(**WEB, vmid=803)["vm"]
    return made


def named(lab: Lab, name: str = "web") -> list[int]:
    """Return the VMIDs of the VMs of that name, as the nodes themselves say."""
    found: list[int] = []
    for node in ("pve1", "pve2", "pve3"):
        rows = lab.client.get("nodes", node, "qemu")
        found += [int(row["vmid"]) for row in rows if row.get("name") == name]
    return found


def refused(lab: Lab, module: str, **options: Any) -> dict[str, Any]:
    """Return the result of a module, which must fail retryably and write nothing."""
    lab.simulator.reset_log()
    result = lab.run(module, **options)
    assert lab.simulator.writes() == []
    assert result.get("failed"), result
    error = result["error"]
    assert (error["category"], error["reason"]) == ("Locked", "being restored"), result
    assert error["retryable"]
    return result


TASKS: list[tuple[str, dict[str, Any]]] = [
    ("vm", WEB),
    ("vm", {**BY_NAME, "state": "started"}),
    ("vm", {**BY_NAME, "state": "absent"}),
    ("vm", {"name": "web", "state": "absent"}),
    ("clone", {**BY_NAME, "source": "debian-13"}),
    ("vms", {"tenant": "acme", "vms": [{"name": "web", **DISK}]}),
    ("vms", {"tenant": "acme", "vms": [{"name": "web", "state": "absent"}], "remove": True}),
    ("snapshot", {**BY_NAME, "snapshot": "s1"}),
    ("snapshot", {**BY_NAME, "snapshot": "s1", "state": "absent"}),
    ("snapshot_info", BY_NAME),
    ("vm_info", BY_NAME),
]


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("number", repeated(["web", "imported"]))
def test_a_name_is_not_missing_during_a_restore(
    lab: Lab, number: str, request: pytest.FixtureRequest
) -> None:
    vm = request.getfixturevalue(number)
    with restored(lab, vm) as upid:
        for module, options in TASKS:
            for mode in (True, False):
                result = refused(lab, module, check=mode, **options)
                assert f"VM {vm['vmid']} on node {vm['node']} is being restored" in result["msg"]
        first = refused(lab, "vm", **WEB)
        assert first["error"]["upid"] == upid
        assert first["msg"].endswith("Run this again when the restore is complete.")
    assert named(lab) == [vm["vmid"]]
    assert not lab.vm(**WEB)["changed"]


@pytest.mark.usefixtures("fast")
def test_a_name_is_not_missing_while_the_listing_does_not_show_the_restore(
    lab: Lab, web: dict[str, Any]
) -> None:
    lab.simulator.steer("/settings", {"lag_s": 1000})
    try:
        with restored(lab, web):
            for module, options in TASKS:
                refused(lab, module, check=True, **options)
            refused(lab, "vm", **WEB)
    finally:
        lab.simulator.steer("/settings", {"lag_s": 0})
    assert named(lab) == [web["vmid"]]


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize(
    ("module", "options"),
    [
        ("vm", {"state": "started"}),
        ("vm", {"memory": 128}),
        ("vm", {"cores": 2, "name": "web"}),
        ("vm", {"state": "absent"}),
        ("snapshot", {"snapshot": "s1"}),
        ("snapshot", {"snapshot": "s1", "state": "absent"}),
    ],
)
def test_a_vmid_is_not_changed_during_a_restore(
    lab: Lab, web: dict[str, Any], module: str, options: dict[str, Any]
) -> None:
    with restored(lab, web):
        refused(lab, module, vmid=web["vmid"], **options)
    assert named(lab) == [web["vmid"]]


def test_a_short_restore_is_waited_for(lab: Lab, web: dict[str, Any]) -> None:
    archive = back_up(lab, web)
    upid = start_restore(lab, web, archive)
    assert not lab.vm(**WEB)["changed"]
    end_restore(lab, web, upid)
    assert named(lab) == [web["vmid"]]


def test_the_first_moment_of_a_restore_is_waited_for(lab: Lab, web: dict[str, Any]) -> None:
    archive = back_up(lab, web)
    lab.simulator.steer("/settings", {"task_ms": "qmrestore=100000"})
    data = {"vmid": web["vmid"], "archive": archive, "force": 1}
    upid = lab.client.write("POST", "nodes", web["node"], "qemu", data=data)
    assert lab.config(web)["lock"] == "create"
    lab.simulator.steer("/settings", {"task_ms": "qmrestore=1000"})
    assert not lab.vm(vmid=web["vmid"], memory=256)["changed"]
    end_restore(lab, web, upid)


@pytest.mark.usefixtures("fast")
def test_a_restore_from_a_backup_server_is_not_a_creation(
    lab: Lab, imported: dict[str, Any]
) -> None:
    gone = dict.fromkeys(lab.config(imported).keys() - {"digest", "memory"})
    steered = {"config": {**gone, "memory": "128", "lock": "create"}}
    lab.simulator.steer(f"/vms/{imported['vmid']}", steered)
    result = refused(lab, "vm", **TENANT, **WEB)
    assert f"VM {imported['vmid']}" in result["msg"]


@pytest.mark.usefixtures("fast")
def test_a_tenant_sees_no_task_of_the_restore(lab: Lab, web: dict[str, Any]) -> None:
    with restored(lab, web):
        result = refused(lab, "vm", **TENANT, **WEB)
        assert "Sys.Audit on /nodes/pve" in result["msg"]
        assert f"if no restore of VM {web['vmid']} runs, one has failed" in result["msg"]
        refused(lab, "vm", **TENANT, **BY_NAME, state="absent")


@pytest.mark.usefixtures("fast")
def test_drift_says_that_a_vm_is_being_restored(lab: Lab, web: dict[str, Any]) -> None:
    estate = {"defaults": {"tenant": "acme", "memory": 256, **DISK}, "vms": [{"name": "web"}]}
    with restored(lab, web):
        result = check(lab, "drift_info", **estate)
    report = result["drift"]
    (vm,) = report["vms"]
    assert vm["status"] == "unknown"
    assert f"VM {web['vmid']} on node {web['node']} is being restored" in vm["reason"]
    assert web["vmid"] not in [one["vmid"] for one in report["unlisted"]]
    assert any("is being restored" in text for text in result["warnings"])
    report = check(lab, "drift_info", **estate)["drift"]
    assert report["vms"][0]["status"] == "in_sync"


def test_a_failed_restore_is_not_repaired_by_a_duplicate(lab: Lab, web: dict[str, Any]) -> None:
    fail_restore(lab, web)
    for state in ("present", "absent"):
        lab.simulator.reset_log()
        result = lab.run("vm", **WEB, state=state)
        assert lab.simulator.writes() == []
        error = result["error"]
        assert (error["category"], error["reason"]) == ("Conflict", "restore failed")
        assert f"Restore the backup again, or remove VM {web['vmid']}" in result["msg"]
    assert lab.vm(name="other", tenant="acme", **DISK)["changed"]
    assert lab.vm(vmid=web["vmid"], state="absent")["changed"]
    assert lab.vm(**WEB)["vm"]["vmid"] == web["vmid"]


@pytest.mark.usefixtures("fast")
def test_a_restore_to_the_vmid_of_a_new_vm_is_met(lab: Lab) -> None:
    number = first_number("web", "acme")
    bare = {**dict.fromkeys(("boot", "meta", "name", "smbios1", "vmgenid")), "memory": "128"}
    steer = [
        ["POST", f"/vms/{number}", {"node": "pve1", "pool": "acme"}],
        ["PUT", f"/vms/{number}", {"config": bare}],
    ]
    lab.simulator.fault(method="POST", path="/qemu$", steer=steer)
    result = lab.run("vm", **WEB)
    assert result["error"]["reason"] == "restore failed", result  # root sees that none runs
    assert named(lab) == []


@pytest.mark.usefixtures("fast")
def test_a_restore_that_begins_behind_the_plan_is_met(lab: Lab, web: dict[str, Any]) -> None:
    gone = dict.fromkeys(lab.config(web).keys() - {"digest", "memory"})
    steer = [["PUT", f"/vms/{web['vmid']}", {"config": {**gone, "memory": "128"}}]]
    look = f"/nodes/{web['node']}/qemu/{web['vmid']}/"
    lab.vm(**WEB, state="started")
    # the plan stops the VM: before that it is read once more
    lab.simulator.fault(method="GET", path=f"^{look}pending$", nth=2, steer=steer)
    lab.simulator.reset_log()
    result = lab.run("vm", **WEB, state="stopped", force=True)
    assert result["failed"], result
    assert result["error"]["reason"] == "being restored", result
    assert lab.simulator.writes() == []


def test_a_vm_without_a_name_is_not_waited_for(lab: Lab, web: dict[str, Any]) -> None:
    data = {"vmid": 850, "memory": 128}
    lab.client.task("POST", "nodes", "pve1", "qemu", data=data)
    lab.simulator.reset_log()
    assert lab.vm(check=True, name="new", tenant="acme", **DISK)["changed"]
    paths = [entry["path"] for entry in lab.simulator.log()]
    assert not [path for path in paths if path.endswith("/tasks")]
    assert paths.count("/nodes/pve1/qemu/850/config") == 1


@pytest.mark.usefixtures("fast")
def test_a_restore_in_the_pool_of_another_tenant_holds_nothing_up(
    lab: Lab, web: dict[str, Any]
) -> None:
    lab.vm(**{**WEB, "name": "web2"})
    with restored(lab, web):
        refused(lab, "vm", check=True, name="new", tenant="acme", **DISK)
        assert lab.vm(check=True, name="new", tenant="globex", **DISK)["changed"]
        refused(lab, "vm", check=True, name="new", **DISK)


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("lag", [0, 1000])
@pytest.mark.parametrize(
    ("module", "options"),
    [
        ("vm_info", {"tenant": "acme"}),
        ("vm_info", {"tags": ["front"]}),
        ("snapshot", {"tenant": "acme", "snapshot": "nightly"}),
        ("snapshot", {"tags": ["front"], "snapshot": "nightly"}),
        ("snapshot_info", {"tenant": "acme"}),
        ("snapshot_info", {"tags": ["front"]}),
        ("vms", {"tenant": "acme", "vms": [{"name": "web2"}], "prune": True}),
    ],
)
def test_lists_say_what_they_may_lack(
    lab: Lab, lag: int, module: str, options: dict[str, Any]
) -> None:
    """The listing has the name and the memory of a VM as they were some seconds ago."""
    tagged = {**WEB, "tags": ["front"]}
    vm = lab.vm(**tagged)["vm"]
    lab.vm(**{**tagged, "name": "web2"})
    lab.simulator.steer("/settings", {"lag_s": lag})
    try:
        with restored(lab, vm):
            rows = lab.client.get("cluster", "resources", type="vm")
            (row,) = [row for row in rows if row["vmid"] == vm["vmid"]]
            assert (row["name"] == "web", row.get("tags")) == (lag > 0, None)
            result = lab.run(module, check=True, **options)
    finally:
        lab.simulator.steer("/settings", {"lag_s": 0})
    text = f"VM {vm['vmid']} on node {vm['node']} is being restored"
    assert any(text in warning for warning in result["warnings"]), result


@pytest.mark.usefixtures("fast")
def test_a_restore_that_the_listing_does_not_show_yet_stops_no_other_snapshot(
    lab: Lab, web: dict[str, Any]
) -> None:
    """The listing has the name and the memory of a VM as they were some seconds ago."""
    other = lab.vm(**{**WEB, "name": "web2"})["vm"]
    lab.simulator.steer("/settings", {"lag_s": 1000})
    try:
        with restored(lab, web):
            rows = lab.client.get("cluster", "resources", type="vm")
            (row,) = [row for row in rows if row["vmid"] == web["vmid"]]
            assert (row["name"], row.get("tags")) == ("web", None)
            text = f"VM {web['vmid']} on node {web['node']} is being restored"
            taken = lab.run("snapshot", tenant="acme", snapshot="nightly")
            shown = lab.run("snapshot_info", tenant="acme")
            back = lab.run("snapshot", tenant="acme", snapshot="nightly", state="rolled_back")
        for result in (taken, shown, back):
            assert not result.get("failed"), result
            assert [vm["vmid"] for vm in result["vms"]] == [other["vmid"]]
            assert any(text in warning for warning in result["warnings"]), result
    finally:
        lab.simulator.steer("/settings", {"lag_s": 0})


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("lag", [0, 1000])
def test_a_rollback_of_a_tenant_whose_only_vm_is_restored_can_be_run_again(
    lab: Lab, web: dict[str, Any], lag: int
) -> None:
    lab.simulator.steer("/settings", {"lag_s": lag})
    try:
        with restored(lab, web):
            refused(lab, "snapshot", tenant="acme", snapshot="s1", state="rolled_back")
    finally:
        lab.simulator.steer("/settings", {"lag_s": 0})


@pytest.mark.usefixtures("fast")
def test_a_restore_that_begins_behind_the_selection_stops_no_other_snapshot(
    lab: Lab, web: dict[str, Any]
) -> None:
    other = lab.vm(**{**WEB, "name": "web2"})["vm"]
    gone = dict.fromkeys(lab.config(web).keys() - {"digest", "memory"})
    steer = [["PUT", f"/vms/{web['vmid']}", {"config": {**gone, "memory": "128"}}]]
    path = f"^/nodes/{web['node']}/qemu/{web['vmid']}/snapshot$"
    lab.simulator.fault(method="GET", path=path, steer=steer)
    lab.simulator.reset_log()
    options: dict[str, Any] = {"tenant": "acme", "snapshot": "nightly", **TENANT}
    result = lab.run("snapshot", **options)
    assert "1 of 2 VMs failed" in result["msg"]
    by_vmid = {vm["vmid"]: vm for vm in result["vms"]}
    assert by_vmid[other["vmid"]]["changed"]
    assert not by_vmid[web["vmid"]]["changed"]
    assert len(lab.simulator.writes()) == 1


@pytest.mark.usefixtures("fast")
def test_a_quota_is_not_judged_without_a_vm_under_restore(lab: Lab, web: dict[str, Any]) -> None:
    other = {**WEB, "name": "web2"}
    lab.vm(**other)
    with restored(lab, web):
        result = refused(lab, "vm", **{**other, "memory": 512}, quota={"memory": "10G"})
        assert "The quota of tenant acme could not be checked" in result["msg"]
        assert not lab.vm(**other, quota={"memory": "10G"})["changed"]


@pytest.mark.usefixtures("fast")
def test_an_audit_does_not_call_it_a_stray(lab: Lab, web: dict[str, Any]) -> None:
    tenants: dict[str, Any] = {"acme": {}}
    with restored(lab, web):
        findings = lab.run("audit_info", tenants=tenants)["findings"]
    own = [one for one in findings if one["subject"] == str(web["vmid"])]
    assert [one["kind"] for one in own] == ["unknown"]


@pytest.mark.usefixtures("fast")
def test_a_tenant_is_not_removed_beside_a_vm_under_restore(lab: Lab, web: dict[str, Any]) -> None:
    with restored(lab, web):
        lab.simulator.reset_log()
        for strays in ("stop", "remove"):
            result = lab.run(
                "tenant", name="acme", state="absent", confirm="acme", strays=strays, check=True
            )
            assert result["failed"]
            assert f"VM {web['vmid']}" in result["msg"], result
        assert lab.simulator.writes() == []
