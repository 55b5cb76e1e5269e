# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The backup jobs that the guests of an estate declare: module vms, drift and export."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
from ansible_collections.pve.fleet.plugins.module_utils._protection.backup.job.declared import (
    COMMENT,
    DeclaredGuest,
    read_declaration,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.backup.job.maintain import (
    maintain_jobs,
)
from tests.fake_clock import FakeClock
from tests.modules.access_lab import do, limited, overtaken, refused, requests
from tests.modules.backup_lab import add_nas
from tests.modules.estate_lab import Lab

NIGHTLY: dict[str, Any] = {"schedule": "02:30", "storage": "nas", "keep": {"keep_daily": 7}}
OFTEN: dict[str, Any] = {"schedule": "*/6:00"}
SMALL: dict[str, Any] = {"memory": "256M", "disks": [{"size": 1, "storage": "ceph"}]}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    add_nas(unused)
    return unused


def estate(**more: Any) -> dict[str, Any]:
    """Return an estate whose guests have three declarations: of all, of a class, and none."""
    return {
        "tenant": "acme",
        "defaults": {**SMALL, "backup": NIGHTLY},
        "classes": {"db": {"backup": OFTEN}},
        "vms": [
            {"name": "web1"},
            {"name": "db1", "class": "db"},
            {"name": "scratch1", "backup": {"schedule": ""}},
        ],
        **more,
    }


def vmids(result: dict[str, Any]) -> dict[str, int]:
    return {row["name"]: row["vmid"] for row in result["vms"]}


def coverage(lab: Lab) -> dict[str, list[str]]:
    """Return the schedules of the jobs of each guest, as module backup_job_info reads them."""
    found = do(lab, "backup_job_info")
    schedules = {job["name"]: job["schedule"] for job in found["backup_jobs"]}
    return {
        guest["name"]: sorted(schedules[job] for job in guest["jobs"])
        for guest in found["guests"]
        if guest["tenant"] == "acme"
    }


def test_every_guest_is_in_the_job_that_it_declares(lab: Lab) -> None:
    foreseen = do(lab, "vms", check=True, **estate())
    made = do(lab, "vms", **estate())
    assert made["backup_jobs"] == foreseen["backup_jobs"]
    assert made["diff"] == foreseen["diff"]
    known = vmids(made)
    jobs = {job["schedule"]: (job["action"], job["vms"]) for job in made["backup_jobs"]}
    assert jobs == {"02:30": ("created", [known["web1"]]), "*/6:00": ("created", [known["db1"]])}
    assert coverage(lab) == {"web1": ["02:30"], "db1": ["*/6:00"], "scratch1": []}
    assert any(line.startswith("+ backup job fleet-") for line in made["report"])
    lab.simulator.reset_log()
    again = do(lab, "vms", **estate())
    assert not again["changed"]
    assert {job["action"] for job in again["backup_jobs"]} == {"unchanged"}
    assert requests(lab).count("GET /cluster/backup") == 1
    assert lab.simulator.writes() == []


def test_jobs_of_no_estate_that_have_the_guests_too_are_named(lab: Lab) -> None:
    known = vmids(do(lab, "vms", **estate()))
    web, scratch = known["web1"], known["scratch1"]
    options: dict[str, Any] = {"schedule": "01:00", "storage": "nas"}
    do(lab, "backup_job", name="everyone", all=True, exclude=[known["db1"]], **options)
    do(lab, "backup_job", name="one", vms=[web], **options)
    do(lab, "backup_job", name="off", vms=[web], enabled=False, **options)
    lab.simulator.reset_log()
    for check in (True, False):
        result = do(lab, "vms", check=check, **estate())
        assert result["other_backup_jobs"] == [
            {"name": "everyone", "vms": sorted((web, scratch))},
            {"name": "one", "vms": [web]},
        ]
        assert {job["name"][:6] for job in result["backup_jobs"]} == {"fleet-"}
        assert any(
            line.endswith("everyone of no estate has 2 guests of this run too")
            for line in result["report"]
        )
    assert lab.simulator.writes() == []
    new = do(lab, "vms", check=True, **estate(vms=[{"name": "late"}]))
    assert [job["name"] for job in new["other_backup_jobs"]] == ["everyone"]


def test_a_guest_moves_to_the_job_of_its_new_class(lab: Lab) -> None:
    do(lab, "vms", **estate())
    changed = estate(vms=[{"name": "db1"}, {"name": "scratch1"}])
    foreseen = do(lab, "vms", check=True, **changed)
    moved = do(lab, "vms", **changed)
    assert moved["backup_jobs"] == foreseen["backup_jobs"]
    actions = {job["schedule"]: job["action"] for job in moved["backup_jobs"]}
    assert actions == {"02:30": "changed", "*/6:00": "deleted"}
    assert coverage(lab) == {name: ["02:30"] for name in ("web1", "db1", "scratch1")}


def test_a_removed_guest_and_a_template_are_in_no_job(lab: Lab) -> None:
    do(lab, "vms", **estate())
    gone = [
        {"name": "web1", "state": "absent"},
        {"name": "db1", "class": "db", "state": "template"},
    ]
    do(lab, "vms", **estate(vms=gone))
    assert lab.client.get("cluster", "backup") == []


def test_containers_and_settings_of_tenants(lab: Lab) -> None:
    made = do(
        lab,
        "vms",
        tenant_settings={"acme": {"backup": NIGHTLY}},
        vms=[{"name": "web1", "tenant": "acme", **SMALL}],
        containers=[
            {
                "name": "box1",
                "tenant": "acme",
                "source": "debian-13-standard",
                "memory": "128M",
                "default_storage": "ceph",
            }
        ],
    )
    (job,) = made["backup_jobs"]
    assert job["vms"] == sorted(vmids(made).values())


def test_without_the_option_jobs_are_not_read(lab: Lab) -> None:
    do(lab, "vms", **estate())
    lab.simulator.reset_log()
    plain = do(lab, "vms", tenant="acme", defaults=SMALL, vms=[{"name": "web1"}])
    assert plain["backup_jobs"] == []
    assert "GET /cluster/backup" not in requests(lab)
    assert coverage(lab)["web1"] == ["02:30"]


@pytest.mark.parametrize("role", ["PVEAdmin", "PVEVMAdmin"])
def test_a_login_that_cannot_write_jobs_is_refused_before_the_first_guest(
    lab: Lab, role: str
) -> None:
    """PVEAdmin may read jobs, and PVEVMAdmin may not (pve-manager: API2/Backup.pm)."""
    roles = {"/": role, "/storage": "PVEDatastoreUser", "/sdn": "PVESDNUser"}
    login = limited(lab, "mary", roles)
    result = refused(lab, "vms", **estate(), **login)
    assert result["error"]["category"] == "PermissionDenied"
    assert "administrator" in result["msg"]
    made = do(lab, "vms", **estate(backup_jobs=False), **login)
    assert made["backup_jobs"] == []
    assert lab.client.get("cluster", "backup") == []


def test_a_changed_job_needs_the_privilege_on_its_storage(lab: Lab) -> None:
    """pve-manager: API2/Backup.pm, assert_param_permission_update, also without a new storage."""
    do(lab, "vms", **estate())
    roles = {"/": "Administrator", "/storage": "PVEDatastoreUser"}
    login = limited(lab, "mary", roles)
    guests = [*estate()["vms"], {"name": "late", **SMALL, "backup": NIGHTLY}]
    result = refused(lab, "vms", **{**estate(), "vms": guests}, **login)
    assert result["error"]["privilege"] == "Datastore.Allocate"
    assert result["error"]["acl_path"] == "/storage/nas"


@pytest.mark.parametrize(
    ("backup", "text"),
    [
        ({**NIGHTLY, "storage": "ceph"}, "no storage with content backup 'ceph'"),
        ({**NIGHTLY, "storage": "nowhere"}, "no storage with content backup 'nowhere'"),
        ({**NIGHTLY, "keep": {"keep_last": 0}}, "would keep every backup"),
        ({**NIGHTLY, "schedul": "x"}, "schedul"),
        ({"schedule": "02:30"}, "backup.storage"),
        (0, "backup"),
    ],
    ids=str,
)
def test_a_declaration_that_no_job_can_have_is_refused(lab: Lab, backup: Any, text: str) -> None:
    guests = [{"name": "web1", **SMALL, "backup": backup}]
    assert text in refused(lab, "vms", tenant="acme", vms=guests)["msg"]


def test_a_cluster_file_leaves_jobs_of_estates_to_the_estate(lab: Lab) -> None:
    do(lab, "vms", **estate())
    do(lab, "backup_job", name="own", schedule="01:00", all=True, storage="nas")
    exported = do(lab, "cluster_export_info", sections=["backup_jobs"])["cluster"]
    assert [job["name"] for job in exported["cluster_backup_jobs"]] == ["own"]
    emptied = do(lab, "cluster", backup_jobs=[], exact=["backup_jobs"])
    assert emptied["plan"] == ["Delete backup job 'own'"]
    assert coverage(lab)["web1"] == ["02:30"]


def test_drift_names_the_jobs_of_a_guest(lab: Lab) -> None:
    do(lab, "vms", **estate())
    asked = {**estate(), "defaults": {**estate()["defaults"], "tenant": "acme"}}
    del asked["tenant"]
    assert do(lab, "drift_info", **asked)["drift"]["summary"]["in_sync"] == 3
    jobs = lab.client.get("cluster", "backup")
    (nightly,) = [job["id"] for job in jobs if job["schedule"] == "02:30"]
    lab.client.write("PUT", "cluster", "backup", nightly, data={"enabled": 0, "storage": "nas"})
    drift = do(lab, "drift_info", **asked)["drift"]
    (web,) = [vm for vm in drift["vms"] if vm["status"] == "drifted"]
    assert web["options"] == [
        {
            "option": "backup",
            "wanted": NIGHTLY,
            "actual": {**NIGHTLY, "enabled": False},
            "pending": None,
        }
    ]
    ignored = do(lab, "drift_info", **asked, ignore=["*:backup"])["drift"]
    assert not ignored["drift"]
    tenant = limited(lab, "mary", {"/vms": "PVEVMAdmin", "/storage": "PVEDatastoreUser"})
    blind = do(lab, "drift_info", **asked, **tenant, unlisted=False)["drift"]
    assert [vm["status"] for vm in blind["vms"]] == ["unknown"] * 3
    left = do(lab, "drift_info", **asked, **tenant, unlisted=False, backup_jobs=False)["drift"]
    assert [vm["status"] for vm in left["vms"]] == ["in_sync"] * 3


def test_the_export_declares_the_jobs_and_provisioning_it_changes_nothing(lab: Lab) -> None:
    do(lab, "vms", **estate())
    exported = do(lab, "estate_info", tenant="acme")["estate"]
    declared = {vm["name"]: vm.get("backup") for vm in exported["provision_vms"]}
    often = {"schedule": "*/6:00", "storage": "nas", "keep": {"keep_daily": 7}}
    assert declared == {"web1": NIGHTLY, "db1": often, "scratch1": None}
    names = ("defaults", "classes", "networks", "storage_classes")
    options = {name: exported[f"provision_{name}"] for name in names}
    lab.simulator.reset_log()
    again = do(
        lab,
        "vms",
        **options,
        vms=exported["provision_vms"],
        tenant_settings=exported["tenants"],
        state=exported["provision_state"],
    )
    assert not again["changed"]
    assert {job["action"] for job in again["backup_jobs"]} == {"unchanged"}
    assert lab.simulator.writes() == []


class Rival(Client):
    """A client after whose first write of a job another run writes its own reading of it."""

    rivals = 1

    def get(self, *segments: str | int, **more: Any) -> Any:
        found = super().get(*segments, **more)
        if segments == ("cluster", "backup") and found and self.rivals:
            self.rivals -= 1
            path = ("cluster", "backup", found[0]["id"])
            super().write("PUT", *path, data={"vmid": "999", "storage": "nas"})
            found = super().get(*segments, **more)
        return found


def test_a_guest_that_another_run_took_out_is_put_back(lab: Lab) -> None:
    guests = [DeclaredGuest(101, read_declaration(NIGHTLY))]
    with Rival(lab.client.connection, clock=FakeClock()) as client:
        outcome = maintain_jobs(client, guests)
    assert outcome.error is None
    (job,) = lab.client.get("cluster", "backup")
    assert job["vmid"] == "101,999"


def test_runs_that_undo_each_other_for_too_long_are_an_error(lab: Lab) -> None:
    guests = [DeclaredGuest(101, read_declaration(NIGHTLY))]
    rival = Rival(lab.client.connection, clock=FakeClock())
    rival.rivals = 20
    with rival as client:
        outcome = maintain_jobs(client, guests)
    assert outcome.error is not None
    assert "other runs changed them" in outcome.error.message


def test_a_job_that_another_run_creates_first_gets_the_guest_too(lab: Lab) -> None:
    guests = [DeclaredGuest(101, read_declaration(NIGHTLY))]
    first = {
        "id": guests[0].declaration.job,
        "schedule": "02:30",
        "storage": "nas",
        "prune-backups": "keep-daily=7",
        "vmid": "999",
        "comment": COMMENT,
    }
    with overtaken(lab, ("POST", ("cluster", "backup"), first)) as client:
        outcome = maintain_jobs(client, guests)
    assert outcome.error is None
    (job,) = lab.client.get("cluster", "backup")
    assert job["vmid"] == "101,999"
