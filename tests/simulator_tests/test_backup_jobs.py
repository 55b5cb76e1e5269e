"""Backup jobs, guests without one, and pruning, by rules that the recordings show only in part."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.simulator.core.state import Volume
from tests.simulator.storage.prune import Entry, mark
from tests.simulator_tests.client import Client
from tests.simulator_tests.prune_cases import AGES, BASE, CASES, PROTECTED

JOBS = "/cluster/backup"
DAY = 86400
# Noon, so that no time zone moves a backup to another day.
NOON = int(time.mktime((2026, 11, 20, 12, 0, 0, 0, 0, -1)))


def marks(keep: dict[str, int], *days_ago: int, protected: int | None = None) -> list[str]:
    """Return the marks of backups that are a number of days old."""
    group = []
    for days in days_ago:
        volume = Volume(f"b{days}", "backup", "vma", 1, NOON - days * DAY, 100)
        group.append(Entry(volume, volume.name, "qemu"))
        if days == protected:
            group[-1].mark = "protected"
    mark(group, keep)
    return [str(entry.mark) for entry in group]


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        ({"keep-last": 2}, ["keep", "keep", "remove", "remove"]),
        ({"keep-daily": 3}, ["keep", "keep", "keep", "remove"]),
        ({"keep-last": 1, "keep-daily": 1}, ["keep", "keep", "remove", "remove"]),
        ({"keep-yearly": 1}, ["keep", "remove", "remove", "remove"]),
        ({"keep-all": 1}, ["keep"] * 4),
        ({}, ["keep"] * 4),
    ],
)
def test_what_a_rule_keeps(keep: dict[str, int], expected: list[str]) -> None:
    """pve-storage: Storage.pm, prune_mark_backup_group; each rule counts its own periods."""
    assert marks(keep, 0, 1, 2, 3) == expected


@pytest.mark.parametrize(("keep", "expected"), CASES)
def test_marks_of_the_table_of_pve_storage(keep: dict[str, int], expected: tuple[str, ...]) -> None:
    """pve-storage: src/test/prune_backups_test.pm."""
    group: list[Entry] = []
    for age in AGES:
        volume = Volume(f"b{age}", "backup", "vma", 1, BASE - age, 100)
        group.append(Entry(volume, volume.name, "qemu"))
    group[PROTECTED].mark = "protected"
    mark(group, {f"keep-{name}": count for name, count in keep.items()})
    found = [str(entry.mark) for entry in group]
    assert found.pop(PROTECTED) == "protected"
    assert tuple(found) == expected


def test_a_protected_backup_is_neither_counted_nor_removed() -> None:
    assert marks({"keep-last": 1}, 0, 1, 2, protected=0) == ["protected", "keep", "remove"]


def test_pruning_removes_what_the_preview_says(pve: Client) -> None:
    pve.create(400)
    base = "/nodes/pve1/storage/local"
    for _number in range(3):
        pve.ok("POST", "/nodes/pve1/vzdump", vmid=400, storage="local")
    rule = {"prune-backups": "keep-last=1", "vmid": 400}
    preview = pve.get(f"{base}/prunebackups", **rule)
    gone = {row["volid"] for row in preview if row["mark"] == "remove"}
    before = pve.volumes("local", content="backup", vmid=400)
    assert len(gone) == 2
    assert pve.do("DELETE", f"{base}/prunebackups", **rule) == "OK"
    assert pve.volumes("local", content="backup", vmid=400) == before - gone


def job(pve: Client, **options: Any) -> dict[str, Any]:
    pve.post(JOBS, id="nightly", schedule="02:00", storage="local", **options)
    found: dict[str, Any] = pve.get(f"{JOBS}/nightly")
    return found


def test_a_new_choice_of_guests_replaces_the_former_one(pve: Client) -> None:
    """pve-manager: API2/Backup.pm, update_job."""
    pve.post("/pools", poolid="nightly")
    assert job(pve, all=1, exclude="9000")["exclude"] == "9000"
    pve.put(f"{JOBS}/nightly", pool="nightly")
    changed = pve.get(f"{JOBS}/nightly")
    assert changed["pool"] == "nightly"
    assert changed.keys().isdisjoint({"all", "exclude"})
    refused = pve.call("PUT", f"{JOBS}/nightly", {"delete": "pool"})
    assert refused.message == "400 Parameter verification failed.\nvmid: property is missing\n"


def test_guests_without_a_job_are_listed(pve: Client) -> None:
    """pve-manager: API2/Cluster/BackupInfo.pm, not-backed-up."""
    pve.create(401, scsi0="ceph:1", scsi1="ceph:1,backup=0")
    everyone = {row["vmid"] for row in pve.get("/cluster/backup-info/not-backed-up")}
    job(pve, vmid="401")
    left = {row["vmid"] for row in pve.get("/cluster/backup-info/not-backed-up")}
    assert everyone - left == {401}
    (guest,) = pve.get(f"{JOBS}/nightly/included_volumes")["children"]
    volumes = {row["id"]: (row["included"], row["reason"]) for row in guest["children"]}
    assert volumes == {"401:scsi0": (1, "enabled"), "401:scsi1": (0, "backup=no")}
    pve.delete(f"{JOBS}/nightly")
    assert pve.get(JOBS) == []


def test_a_purge_takes_a_guest_out_of_all_jobs_and_removes_a_job_of_this_guest_only(
    pve: Client,
) -> None:
    """pve-guest-common: PVE/VZDump/Plugin.pm, remove_vmid_from_job and
    remove_vmid_from_backup_jobs. Without `purge` the jobs stay (qemu-server: API2/Qemu.pm).
    """
    for vmid in (402, 403, 404):
        pve.create(vmid)
    pve.post(JOBS, id="alone", schedule="02:00", vmid="402")
    pve.post(JOBS, id="both", schedule="02:00", vmid="402,403,404")
    pve.post(JOBS, id="others", schedule="02:00", all=1, exclude="402")
    pve.ok("DELETE", "/nodes/pve1/qemu/402", purge=1)
    pve.ok("DELETE", "/nodes/pve1/qemu/403")
    jobs = {row["id"]: (row.get("vmid"), row.get("exclude")) for row in pve.get(JOBS)}
    assert jobs == {"both": ("403,404", None), "others": (None, None)}


def test_one_backup_at_a_time_runs_on_a_node(pve: Client) -> None:
    """pve-manager: VZDump.pm, getlock."""
    for vmid in (400, 401):
        pve.create(vmid)
    pve.sim.steer("/settings", {"task_ms": "vzdump=200"})
    upids = [pve.post("/nodes/pve1/vzdump", vmid=vmid, storage="local") for vmid in (400, 401)]
    for upid in upids:
        pve.wait(upid)
    log = pve.task_log(upids[1])
    assert log[0] == "INFO: trying to get global lock - waiting..."
    assert log[1] == "INFO: got global lock"


def test_a_storage_with_a_retention_limits_archives_that_are_not_removed(pve: Client) -> None:
    """pve-manager: VZDump.pm, exec_backup_task; pve-storage: get_max_protected_backups."""
    pve.create(400)
    pve.put("/storage/local", **{"prune-backups": "keep-last=1", "max-protected-backups": 1})
    options = {"vmid": 400, "storage": "local"}
    pve.ok("POST", "/nodes/pve1/vzdump", **options, remove=0)
    upid = pve.post("/nodes/pve1/vzdump", **options, remove=0)
    assert pve.wait(upid) == "job errors"
    log = " ".join(pve.task_log(upid))
    assert "There is a max backup limit of 1 enforced by the target storage" in log
    keeps = {"prune-backups": "keep-all=1"}
    pve.ok("POST", "/nodes/pve1/vzdump", **options, **keeps, remove=0)
    pve.ok("POST", "/nodes/pve1/vzdump", **options)
    assert len(pve.volumes("local", content="backup", vmid=400)) == 1
    pve.ok("POST", "/nodes/pve1/vzdump", **options, protected=1)
    upid = pve.post("/nodes/pve1/vzdump", **options, protected=1)
    assert pve.wait(upid) == "job errors"
