# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules backup_job and backup_job_info against the simulator, which follows pve-manager's
API2/Backup.pm.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import ROOT, as_foreseen, do, limited, refused, requests
from tests.modules.backup_lab import add_nas, container
from tests.modules.estate_lab import Lab
from tests.modules.report_lab import VALIDATOR
from tests.modules.snapshot_lab import machine

JOB: dict[str, Any] = {"name": "nightly", "schedule": "02:30", "all": True, "storage": "nas"}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    add_nas(unused)
    return unused


def stored(lab: Lab) -> dict[str, Any]:
    """Return the job as the server has it."""
    found: dict[str, Any] = lab.client.get("cluster", "backup", "nightly")
    return {key: value for key, value in found.items() if key not in ("id", "type")}


def test_a_job_is_created_with_all_options(lab: Lab) -> None:
    made = as_foreseen(
        lab,
        "backup_job",
        **JOB,
        exclude=[9001, 9000],
        node="pve1",
        mode="snapshot",
        compress="zstd",
        prune_backups={"keep_daily": 7, "keep_weekly": 4, "keep_last": 0},
        notes_template="{{guestname}}",
        protected=False,
        fleecing={"enabled": True, "storage": "ceph"},
        bwlimit=1024,
        ionice=8,
        zstd=0,
        pigz=2,
        stdexcludes=False,
        lockwait=60,
        stopwait=5,
        performance={"max_workers": 8},
        pbs_change_detection_mode="metadata",
        notification_mode="notification-system",
        mailto=["root@pam"],
        mailnotification="failure",
        repeat_missed=True,
        comment="every night",
    )
    assert made["plan"] == ["Create backup job 'nightly'"]
    job = made["backup_job"]
    assert job["prune_backups"]["keep_daily"] == 7
    assert job["fleecing"] == {"enabled": True, "storage": "ceph"}
    assert job["exclude"] == [9000, 9001]
    server = stored(lab)
    assert (server["exclude"], server["all"], server["repeat-missed"]) == ("9000,9001", 1, 1)
    (listed,) = do(lab, "backup_job_info", name="nightly")["backup_jobs"]
    assert listed == job
    pasted = {key: value for key, value in listed.items() if key != "next_run"}
    assert not do(lab, "backup_job", **pasted)["changed"]


def test_options_of_root(lab: Lab) -> None:
    """API2/Backup.pm, assert_param_permission_common: a token of root is not root."""
    options: dict[str, Any] = {"tmpdir": "/var/tmp", "script": "/usr/local/bin/hook"}
    result = refused(lab, "backup_job", **JOB, **options)
    assert "only root may set tmpdir; only root may set script" in result["msg"]
    made = do(lab, "backup_job", **JOB, **options, **ROOT)
    assert (made["backup_job"]["tmpdir"], made["backup_job"]["script"]) == tuple(options.values())
    assert not do(lab, "backup_job", **JOB, **options)["changed"]


def test_requests(lab: Lab) -> None:
    lab.simulator.reset_log()
    do(lab, "backup_job", **JOB)
    assert requests(lab) == [
        "GET /cluster/backup",
        "GET /cluster/resources",
        "POST /cluster/backup",
        "GET /cluster/backup",
    ]
    lab.simulator.reset_log()
    do(lab, "backup_job", **JOB)
    assert requests(lab) == ["GET /cluster/backup"]
    lab.simulator.reset_log()
    do(lab, "backup_job", name="nightly", comment="x")
    assert requests(lab) == [
        "GET /cluster/backup",
        "PUT /cluster/backup/nightly",
        "GET /cluster/backup",
    ]


def test_a_new_choice_of_guests_replaces_the_former_one(lab: Lab) -> None:
    do(lab, "backup_job", **JOB, exclude=[9000])
    listed = as_foreseen(lab, "backup_job", name="nightly", vms=[9001, 9000])["backup_job"]
    assert (listed["all"], listed["vms"], listed["exclude"]) == (False, [9000, 9001], [])
    pool = as_foreseen(lab, "backup_job", name="nightly", pool="acme")["backup_job"]
    assert (pool["vms"], pool["pool"]) == ([], "acme")
    whole = as_foreseen(lab, "backup_job", name="nightly", all=True)["backup_job"]
    assert (whole["all"], whole["pool"]) == (True, "")
    assert stored(lab).keys() == {"schedule", "all", "storage", "enabled"}


def test_options_are_removed(lab: Lab) -> None:
    more: dict[str, Any] = {
        "comment": "x",
        "mode": "stop",
        "prune_backups": {"keep_last": 3},
        "node": "pve1",
    }
    do(lab, "backup_job", **JOB, **more, notes_template="{{vmid}}")
    as_foreseen(
        lab,
        "backup_job",
        name="nightly",
        comment="",
        mode="",
        prune_backups={},
        node="",
        notes_template="",
    )
    assert stored(lab).keys() == {"schedule", "all", "storage", "enabled"}


def test_notes_of_an_existing_job_go_with_its_storage(lab: Lab) -> None:
    do(lab, "backup_job", **JOB)
    as_foreseen(lab, "backup_job", name="nightly", notes_template="{{vmid}}", protected=True)
    assert stored(lab)["notes-template"] == "{{vmid}}"


def test_a_job_is_disabled_and_deleted(lab: Lab) -> None:
    do(lab, "backup_job", **JOB)
    as_foreseen(lab, "backup_job", name="nightly", enabled=False)
    assert stored(lab)["enabled"] == 0
    gone = as_foreseen(lab, "backup_job", name="nightly", state="absent")
    assert gone["backup_job"] is None


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"name": "nightly", "all": True}, "schedule is required"),
    ({"name": "nightly", "schedule": "02:30"}, "it has no guests"),
    ({**JOB, "vms": [9000]}, "only one of all, vms"),
    ({"name": "nightly", "schedule": "02:30", "vms": []}, "no guests"),
    ({**JOB, "all": False}, "no guests"),
    ({"name": "nightly", "schedule": "1:00", "vms": [9000], "exclude": [9000]}, "exclude needs"),
    ({**JOB, "storage": "ceph"}, "no storage with content backup 'ceph'"),
    ({**JOB, "all": None, "pool": "nowhere"}, "no pool 'nowhere'"),
    ({**JOB, "node": "pve9"}, "no node 'pve9'"),
    ({**JOB, "fleecing": {"enabled": True}}, "needs a storage"),
    ({**JOB, "fleecing": {"enabled": True, "storage": "nas"}}, "content images 'nas'"),
    ({**JOB, "prune_backups": {"keep_last": 0}}, "would keep every backup"),
    ({**JOB, "prune_backups": {"keep_all": True, "keep_last": 2}}, "keeps everything"),
    ({**JOB, "storage": None, "notes_template": "x"}, "notes_template needs a storage"),
    ({**JOB, "ionice": 9}, "ionice"),
    ({**JOB, "name": "a b"}, "name"),
    ({**JOB, "schedule": " "}, "schedule"),
    ({**JOB, "schedule": "25:00"}, "'25:00' is not a schedule"),
]


@pytest.mark.parametrize(("options", "text"), REFUSED)
def test_refused_before_the_first_write(lab: Lab, options: dict[str, Any], text: str) -> None:
    assert text in refused(lab, "backup_job", **options)["msg"]


def test_unknown_guests_cause_a_warning(lab: Lab) -> None:
    options: dict[str, Any] = {"name": "nightly", "schedule": "1:00", "vms": [9000, 777]}
    assert "777" in do(lab, "backup_job", **options)["warnings"][0]


def test_lost_answers_are_looked_after(lab: Lab, fast: None) -> None:
    for method in ("POST", "PUT", "DELETE"):
        lab.simulator.fault(method=method, path="/cluster/backup", drop="after")
        options: dict[str, Any] = {"name": "nightly", "comment": "x"}
        if method == "POST":
            options = JOB
        elif method == "DELETE":
            options = {"name": "nightly", "state": "absent"}
        result = do(lab, "backup_job", **options)
        assert result["changed"]
        lab.simulator.clear_faults()
    assert lab.client.get("cluster", "backup") == []


def test_coverage(lab: Lab) -> None:
    web = machine(lab, tags="tenant_acme", pool="acme")
    box = container(lab)
    other = machine(lab, tags="tenant_acme")
    do(lab, "backup_job", name="acme", schedule="1:00", pool="acme")
    do(lab, "backup_job", name="one", schedule="1:00", vms=[web["vmid"], box["vmid"]])
    do(lab, "backup_job", name="off", schedule="1:00", all=True, enabled=False)
    lab.simulator.reset_log()
    result = do(lab, "backup_job_info", tenant="acme")
    config = f"GET /nodes/{web['node']}/qemu/{web['vmid']}/config"
    assert sorted(requests(lab)) == ["GET /cluster/backup", "GET /cluster/resources", config]
    assert [row["vmid"] for row in result["guests"]] == [web["vmid"], other["vmid"]]
    assert result["guests"][0]["jobs"] == ["acme", "one"]
    assert [row["vmid"] for row in result["uncovered"]] == [other["vmid"]]
    without = {row["vmid"] for row in do(lab, "backup_job_info")["uncovered"]}
    assert without == {9000, 9001, other["vmid"]}
    do(lab, "backup_job", name="rest", schedule="1:00", all=True, exclude=[9000], node="pve1")
    without = {row["vmid"] for row in do(lab, "backup_job_info")["uncovered"]}
    assert without == {9000, 9001}


def test_coverage_names_the_disks_that_backups_leave_out(lab: Lab) -> None:
    """PVE saves a container's mounts only with C(backup=1) (pve-container: LXC/Config.pm,
    mountpoint_backup_enabled), and a VM's disks unless C(backup=0) (qemu-server:
    VZDump/QemuServer.pm, prepare).
    """
    web, box, other = machine(lab), container(lab), machine(lab)
    disk = {"scsi1": "ceph:1,backup=0"}
    lab.client.task("POST", "nodes", web["node"], "qemu", web["vmid"], "config", data=disk)
    mounts = {"mp0": "ceph:1,mp=/data", "mp1": "ceph:1,mp=/logs,backup=1"}
    lab.client.write("PUT", "nodes", box["node"], "lxc", box["vmid"], "config", data=mounts)
    do(lab, "backup_job", name="two", schedule="1:00", vms=[web["vmid"], box["vmid"]])
    rows = {row["vmid"]: row for row in do(lab, "backup_job_info")["guests"]}
    assert rows[web["vmid"]]["left_out"] == ["scsi1"]
    assert rows[box["vmid"]]["left_out"] == ["mp0"]
    assert rows[other["vmid"]]["left_out"] is None


def test_coverage_agrees_with_the_server(lab: Lab) -> None:
    web = machine(lab, pool="acme")
    do(lab, "backup_job", name="acme", schedule="1:00", pool="acme", exclude=[9000])
    path = ("cluster", "backup-info", "not-backed-up")
    listed = {row["vmid"] for row in lab.client.get(*path)}
    assert web["vmid"] not in listed
    assert {row["vmid"] for row in do(lab, "backup_job_info")["uncovered"]} == listed


def test_a_login_without_privileges(lab: Lab) -> None:
    login = limited(lab, "reader", {"/": "PVEAuditor"})
    result = lab.run("backup_job", **JOB, **login)
    assert result["error"]["category"] == "PermissionDenied"
    assert "Sys.Modify" in result["msg"]
    assert not result["changed"]


def test_the_report_names_guests_that_no_job_has(lab: Lab) -> None:
    web = do(lab, "vm", name="web", tenant="acme", disks=[{"size": 1, "storage": "ceph"}])["vm"]
    other = do(lab, "vm", name="other", tenant="acme", disks=[{"size": 1, "storage": "ceph"}])["vm"]
    without = do(lab, "report_info")["report"]
    assert "uncovered" not in [risk["kind"] for risk in without["attention"]]
    job: dict[str, Any] = {"name": "nightly", "schedule": "02:30", "storage": "local"}
    do(lab, "backup_job", vms=[web["vmid"]], **job)
    report = do(lab, "report_info")["report"]
    VALIDATOR.validate(report)
    jobs = {row["vmid"]: row["jobs"] for row in report["vms"]}
    assert (jobs[web["vmid"]], jobs[other["vmid"]]) == (["nightly"], [])
    (risk,) = [risk for risk in report["attention"] if risk["kind"] == "uncovered"]
    assert other["vmid"] in [case["vmid"] for case in risk["cases"]]
    assert web["vmid"] not in [case["vmid"] for case in risk["cases"]]
