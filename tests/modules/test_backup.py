# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module backup against the simulator, which follows pve-manager's VZDump.pm."""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import ROOT, do, limited, refused, requests
from tests.modules.backup_lab import add_archive, add_nas, archives_of, container
from tests.modules.estate_lab import Lab, watched_tasks
from tests.modules.snapshot_lab import machine
from tests.modules.tenant_lab import made

DAY = 86400


@pytest.fixture
def lab(unused: Lab) -> Lab:
    add_nas(unused)
    return unused


def back_up(lab: Lab, *, check: bool = False, **options: Any) -> dict[str, Any]:
    return do(lab, "backup", check=check, storage="nas", **options)


def marks(row: dict[str, Any]) -> list[tuple[str, str | None]]:
    return [(mark["mark"], mark["volume"]) for mark in row["archives"]]


def test_both_kinds_of_guests(lab: Lab) -> None:
    web = machine(lab, name="web", tags="tenant_acme")
    box = container(lab, hostname="box", tags="tenant_acme", node="pve2")
    machine(lab, tags="tenant_globex")
    result = back_up(lab, tenant="acme", compress="zstd", notes_template="{{guestname}}!")
    assert result["changed"]
    rows = {row["vmid"]: row for row in result["guests"]}
    assert rows.keys() == {web["vmid"], box["vmid"]}
    row = rows[web["vmid"]]
    assert archives_of(lab, web) == [row["volume"]]
    assert row["volume"].endswith(".vma.zst")
    assert row["size"] > 0
    assert row["duration"] >= 0
    assert row["done"] == row["plan"] == [f"Back up guest 'web' ({web['vmid']}) to storage nas"]
    assert rows[box["vmid"]]["volume"].startswith("nas:backup/vzdump-lxc-")
    (listed,) = do(lab, "backup_info", name="web")["archives"]
    assert listed["notes"] == "web!"
    assert result["report"] == [
        f"~ acme/web  back up to storage nas: {row['volume']}",
        f"~ acme/box  back up to storage nas: {rows[box['vmid']]['volume']}",
        "Done: 2 changed",
    ]


def test_check_mode_writes_nothing(lab: Lab) -> None:
    web = machine(lab)
    lab.simulator.reset_log()
    result = back_up(lab, check=True, name=web["name"])
    assert lab.simulator.writes() == []
    assert result["changed"]
    assert result["guests"][0]["backed_up"]
    assert result["guests"][0]["done"] == []
    run = back_up(lab, name=web["name"])
    assert run["guests"][0]["plan"] == result["guests"][0]["plan"]
    assert run["diff"] == result["diff"]


def test_requests(lab: Lab) -> None:
    web = machine(lab)
    lab.simulator.reset_log()
    back_up(lab, vmid=web["vmid"])
    sent = [text for text in requests(lab) if "/tasks/" not in text]
    content = "GET /nodes/pve1/storage/nas/content"
    assert sent == [
        "GET /cluster/resources",
        "GET /access/permissions",
        content,
        f"GET /nodes/pve1/qemu/{web['vmid']}/config",
        f"GET /nodes/pve1/qemu/{web['vmid']}/config",
        "POST /nodes/pve1/vzdump",
        content,
    ]


@pytest.mark.parametrize("check", [True, False])
def test_disks_that_a_backup_leaves_out_are_named(lab: Lab, check: bool) -> None:
    """pve-container: LXC/Config.pm, mountpoint_backup_enabled; qemu-server: QemuConfig.pm,
    get_backup_volumes.
    """
    box = container(
        lab, hostname="box", mp0="local-lvm:1,mp=/data", mp1="local-lvm:1,mp=/b,backup=1"
    )
    web = machine(lab)
    disk = {"name": "scsi3", "size": 1, "storage": "local-lvm", "backup": False}
    do(lab, "vm", vmid=web["vmid"], disks=[disk])
    result = back_up(lab, check=check, vms=[str(box["vmid"]), str(web["vmid"])])
    rows = {row["vmid"]: row for row in result["guests"]}
    assert rows[box["vmid"]]["left_out"] == ["mp0"]
    assert rows[web["vmid"]]["left_out"] == ["scsi3"]
    assert rows[web["vmid"]]["plan"][0].endswith("to storage nas, without scsi3")
    (warning,) = result["warnings"]
    assert "mp0" in warning
    assert "box" in warning
    info = do(lab, "backup_info", vms=[str(box["vmid"]), str(web["vmid"])])
    assert [row["left_out"] for row in info["guests"]] == [["mp0"], ["scsi3"]]


def test_a_recent_archive_is_enough(lab: Lab) -> None:
    web = machine(lab)
    add_archive(lab, web, 3600)
    result = back_up(lab, vmid=web["vmid"], max_age="2h")
    assert not result["changed"]
    assert result["report"] == ["Done: 1 unchanged"]
    assert back_up(lab, vmid=web["vmid"], max_age="30m")["changed"]
    assert not back_up(lab, vmid=web["vmid"], max_age="30m")["changed"]


def test_keep_removes_what_it_previews(lab: Lab) -> None:
    web = machine(lab)
    ages = (4, 3, 2, 1)
    old = [add_archive(lab, web, age * DAY, protected=age == 4) for age in ages]
    foreseen = back_up(lab, check=True, vmid=web["vmid"], keep={"keep_last": 2})["guests"][0]
    assert marks(foreseen) == [
        ("keep", None),
        ("keep", old[3]),
        ("remove", old[2]),
        ("remove", old[1]),
        ("protected", old[0]),
    ]
    assert foreseen["archives"][2]["reason"] == "no rule keeps it"
    row = back_up(lab, vmid=web["vmid"], keep={"keep_last": 2})["guests"][0]
    assert row["removed"] == [old[2], old[1]]
    assert row["plan"] == foreseen["plan"] == row["done"]
    assert archives_of(lab, web) == [old[0], old[3], row["volume"]]


def test_keep_agrees_with_the_server(lab: Lab) -> None:
    web = machine(lab)
    for hours in (1, 5, 20, 30, 50, 200, 800, 3000, 9000):
        add_archive(lab, web, hours * 3600, protected=hours == 50)
    rule = {"keep_last": 2, "keep_daily": 2, "keep_weekly": 2, "keep_monthly": 2, "keep_yearly": 2}
    shown = back_up(lab, check=True, vmid=web["vmid"], max_age="2h", keep=rule)["guests"][0]
    text = ",".join(f"{name.replace('_', '-')}={count}" for name, count in rule.items())
    path = ("nodes", "pve1", "storage", "nas", "prunebackups")
    params = {"prune-backups": text, "vmid": web["vmid"], "type": "qemu"}
    listed = lab.client.get(*path, params=params)
    assert {row["volid"]: row["mark"] for row in listed} == {
        volume: mark for mark, volume in marks(shown)
    }


def test_other_guests_and_kinds_keep_their_archives(lab: Lab) -> None:
    web, other = machine(lab), machine(lab)
    theirs = add_archive(lab, other, DAY)
    box = add_archive(lab, web, DAY, kind="lxc")  # of a container that had the VMID
    back_up(lab, vmid=web["vmid"], keep={"keep_last": 1})
    assert archives_of(lab, other) == [theirs]
    assert box in archives_of(lab, web)


def test_archives_of_an_earlier_guest_are_not_removed(lab: Lab) -> None:
    first = machine(lab)
    kept = add_archive(lab, first, 3600)
    lab.client.task("DELETE", "nodes", first["node"], "qemu", first["vmid"])
    data = {"vmid": first["vmid"], "name": "second", "memory": 256}
    lab.client.task("POST", "nodes", "pve1", "qemu", data=data)
    back_up(lab, vmid=first["vmid"], keep={"keep_last": 1})
    assert kept in archives_of(lab, first)


def test_a_tenant_removes_only_archives_with_its_tag(lab: Lab) -> None:
    web = machine(lab, tags="tenant_globex")
    back_up(lab, vmid=web["vmid"])
    (theirs,) = archives_of(lab, web)
    lab.client.write("PUT", "nodes", "pve1", "qemu", web["vmid"], "config", data={"tags": ""})
    lab.client.write(
        "PUT", "nodes", "pve1", "qemu", web["vmid"], "config", data={"tags": "tenant_acme"}
    )
    for _run in range(3):
        row = back_up(lab, tenant="acme", keep={"keep_last": 1})["guests"][0]
    assert len(row["removed"]) == 1
    assert row["archives"][-1]["mark"] == "foreign"
    assert archives_of(lab, web) == [theirs, row["volume"]]


def test_a_failure_is_of_one_guest(lab: Lab) -> None:
    good, locked = machine(lab), machine(lab)
    old = add_archive(lab, locked, DAY)
    lab.simulator.steer(f"/vms/{locked['vmid']}", {"lock": "migrate"})
    names = [good["name"], locked["name"], "never"]
    result = lab.run("backup", storage="nas", vms=names, keep={"keep_last": 1})
    assert result["failed"]
    assert result["changed"]
    rows = {row["name"]: row for row in result["guests"]}
    assert not rows[good["name"]]["failed"]
    assert rows[locked["name"]]["failed"]
    assert "locked" in rows[locked["name"]]["msg"]
    assert rows["guest 'never'"]["error"]["reason"] == "unknown VM"
    assert archives_of(lab, locked) == [old]


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({}, {}),
        ({"mode": "suspend"}, {"mode": "suspend"}),
        ({"compress": "gzip"}, {"compress": "gzip"}),
        (
            {"notes_template": "{{guestname}} {{node}}"},
            {"notes-template": "{{guestname}} {{node}}"},
        ),
        ({"protected": True}, {"protected": "1"}),
        (
            {"fleecing": {"enabled": True, "storage": "ceph"}},
            {"fleecing": "enabled=1,storage=ceph"},
        ),
        ({"bwlimit": 51200}, {"bwlimit": "51200"}),
        ({"ionice": 8}, {"ionice": "8"}),
        ({"zstd": 0, "pigz": 2}, {"zstd": "0", "pigz": "2"}),
        ({"performance": {"max_workers": 4}}, {"performance": "max-workers=4"}),
        ({"exclude_path": ["/tmp/?*", "/a,b"]}, {"exclude-path": ["/tmp/?*", "/a,b"]}),
        ({"stdexcludes": False}, {"stdexcludes": "0"}),
        ({"lockwait": 5, "stopwait": 1}, {"lockwait": "5", "stopwait": "1"}),
        (
            {"mailto": ["root@pam", "ops@example.com"], "mailnotification": "failure"},
            {"mailto": "ops@example.com,root@pam", "mailnotification": "failure"},
        ),
        ({"notification_mode": "legacy-sendmail"}, {"notification-mode": "legacy-sendmail"}),
        ({"pbs_change_detection_mode": "metadata"}, {"pbs-change-detection-mode": "metadata"}),
    ],
    ids=str,
)
def test_each_option_reaches_proxmox_ve(
    lab: Lab, options: dict[str, Any], sent: dict[str, str]
) -> None:
    """The parameters of the request, and no others (pve-manager: API2/VZDump.pm)."""
    web = machine(lab)
    lab.simulator.reset_log()
    back_up(lab, vmid=web["vmid"], **options)
    (request,) = lab.simulator.writes()
    always = {"vmid": str(web["vmid"]), "storage": "nas", "remove": "0"}
    assert request["params"] == {**always, "prune-backups": "keep-all=1", **sent}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mailto": ["no one@"]}, "mailto was refused"),
        ({"ionice": 9}, "ionice was refused"),
        ({"tmpdir": "/var/tmp"}, "only root may set tmpdir"),
        ({"script": "/usr/local/bin/hook"}, "only root may set script"),
    ],
    ids=str,
)
def test_values_that_pve_refuses(lab: Lab, options: dict[str, Any], message: str) -> None:
    """API2/Backup.pm, assert_param_permission_common: a token of root is not root."""
    web = machine(lab)
    result = refused(lab, "backup", storage="nas", vmid=web["vmid"], **options)
    assert message in result["msg"]


def test_root_sets_what_others_must_not(lab: Lab) -> None:
    web = machine(lab)
    options: dict[str, Any] = {"tmpdir": "/var/tmp", "script": "/usr/local/bin/hook"}
    lab.simulator.reset_log()
    back_up(lab, vmid=web["vmid"], **options, **ROOT)
    (request,) = [entry for entry in lab.simulator.writes() if entry["path"].endswith("vzdump")]
    assert {name: request["params"][name] for name in options} == options


def test_a_storage_with_a_rule_takes_archives_of_a_login_that_may_set_another_one(lab: Lab) -> None:
    """pve-manager: VZDump.pm, exec_backup_task: with `remove=0` alone, PVE refuses the backup at
    the number of archives that the storage keeps; API2/VZDump.pm: prune-backups is for logins with
    Datastore.Allocate.
    """
    lab.client.write("PUT", "storage", "nas", data={"prune-backups": "keep-last=1"})
    web = machine(lab)
    for _run in range(2):
        back_up(lab, vmid=web["vmid"])
    assert len(archives_of(lab, web)) == 2
    roles = {"/": "PVEVMAdmin", "/storage": "PVEDatastoreUser"}
    login = limited(lab, "saver", roles)
    result = refused(lab, "backup", storage="nas", vmid=web["vmid"], **login)
    assert result["error"]["reason"] == "storage full of archives"
    assert "keeps 1 archive of a guest, and has 2" in result["msg"]
    assert len(archives_of(lab, web)) == 2
    back_up(lab, vmid=web["vmid"], protected=True, **login)
    assert len(archives_of(lab, web)) == 3


NODES = ("pve1", "pve2", "pve3")


@pytest.mark.parametrize(("storage", "at_once"), [("nas", 2), ("local", 3)])
def test_backups_to_one_storage_are_limited_over_all_nodes(
    lab: Lab, storage: str, at_once: int
) -> None:
    """Two guests on each of three nodes; storage local is another one on each node.

    Proxmox VE itself limits a node, not a storage (pve-manager: PVE/VZDump.pm, getlock).
    """
    vmids = [machine(lab, node=node)["vmid"] for node in NODES * 2]
    goal: dict[str, Any] = {"storage": storage, "vms": vmids, "parallel_per_storage": 2}
    lab.simulator.steer("/settings", {"task_ms": "vzdump=300,default=20"})
    shown = do(lab, "backup", check=True, **goal)
    limits = f"  at most 4 at the same time, 1 on a node, 2 to storage {storage}"
    assert shown["report"][-2:] == [limits, "Plan: 6 to change"]
    with watched_tasks(lab, "vzdump", *NODES) as seen:
        result = do(lab, "backup", **goal)
    assert [row["vmid"] for row in result["guests"] if row["volume"]] == sorted(vmids)
    assert max(map(len, seen)) == at_once


def test_a_guest_that_moves_is_followed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    web = machine(lab, disk="ceph:1")
    from ansible_collections.pve.fleet.plugins.module_utils._protection.backup.create import (
        run as work,
    )

    real = work.execute

    def later(*arguments: Any) -> Any:
        lab.client.task(
            "POST", "nodes", "pve1", "qemu", web["vmid"], "migrate", data={"target": "pve2"}
        )
        return real(*arguments)

    monkeypatch.setattr(work, "execute", later)
    row = back_up(lab, vmid=web["vmid"])["guests"][0]
    assert row["volume"]


def test_a_lost_answer_is_one_backup(lab: Lab, fast: None) -> None:
    web = machine(lab)
    lab.simulator.fault(method="POST", path="/vzdump$", drop="after")
    row = back_up(lab, vmid=web["vmid"])["guests"][0]
    assert archives_of(lab, web) == [row["volume"]]
    lab.simulator.fault(method="POST", path="/vzdump$", drop="before")
    back_up(lab, vmid=web["vmid"])
    assert len(archives_of(lab, web)) == 2


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_lost_answer_to_a_removal(lab: Lab, fast: None, moment: str) -> None:
    web = machine(lab)
    old = add_archive(lab, web, DAY)
    lab.simulator.fault(method="DELETE", path="/content/", drop=moment)
    row = back_up(lab, vmid=web["vmid"], keep={"keep_last": 1})["guests"][0]
    assert row["removed"] == [old]
    assert archives_of(lab, web) == [row["volume"]]


def test_a_removal_that_fails_reports_the_backup(lab: Lab) -> None:
    web = machine(lab)
    old = add_archive(lab, web, DAY)
    lab.simulator.fault(method="DELETE", path="/content/", status=500, message="disk on fire")
    result = lab.run("backup", storage="nas", vmid=web["vmid"], keep={"keep_last": 1})
    assert result["failed"]
    assert result["changed"]
    assert result["error"]["done"] == [
        f"Back up guest '{web['name']}' ({web['vmid']}) to storage nas"
    ]
    assert old in archives_of(lab, web)
    assert len(archives_of(lab, web)) == 2


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"storage": "ceph"}, "no storage for backups"),
    ({"storage": "nowhere"}, "no storage for backups"),
    ({"keep": {"keep_last": 0}}, "prune_backups"),
    ({"keep": {}}, "keep"),
    ({"max_age": "soon"}, "max_age"),
    ({"fleecing": {"enabled": True}}, "fleecing"),
    ({"parallel": 0}, "parallel"),
    ({"parallel_per_storage": -1}, "parallel_per_storage"),
]


@pytest.mark.parametrize(("options", "reason"), REFUSED)
def test_refused_before_the_first_write(lab: Lab, options: dict[str, Any], reason: str) -> None:
    result = refused(lab, "backup", **{"vmid": 9000, "storage": "nas", **options})
    assert result["error"]["reason"] == reason


def test_a_guest_of_another_tenant_is_refused(lab: Lab) -> None:
    other = machine(lab, tags="tenant_globex")
    result = refused(lab, "backup", storage="nas", tenant="acme", vmid=other["vmid"])
    assert result["error"]["reason"] == "foreign tenant"
    assert other["name"] not in str(result["guests"])


def test_a_tenant_with_its_own_token(lab: Lab) -> None:
    login = made(lab, "seer", storages=["ceph", "nas"], operations=["read", "backup"])
    own = machine(lab, tags="tenant_seer", pool="seer")
    other = machine(lab, tags="tenant_globex")
    result = back_up(lab, tenant="seer", keep={"keep_last": 1}, **login)
    assert [row["vmid"] for row in result["guests"]] == [own["vmid"]]
    again = back_up(lab, tenant="seer", keep={"keep_last": 1}, **login)
    assert again["guests"][0]["removed"] == [result["guests"][0]["volume"]]
    assert refused(lab, "backup", storage="nas", vmid=other["vmid"], **login)["failed"]


def test_a_missing_privilege_is_named(lab: Lab) -> None:
    web = machine(lab)
    login = limited(lab, "reader", {"/": "PVEAuditor", "/storage": "PVEDatastoreUser"})
    result = refused(lab, "backup", storage="nas", vmid=web["vmid"], **login)
    assert result["error"]["category"] == "PermissionDenied"
    assert f"VM.Backup on /vms/{web['vmid']}" in result["msg"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"bwlimit": 100}, "Sys.Modify on /"),
        (
            {"fleecing": {"enabled": True, "storage": "ceph"}},
            "Datastore.AllocateSpace on /storage/ceph",
        ),
    ],
)
def test_an_option_that_needs_another_privilege_is_refused(
    lab: Lab, options: dict[str, Any], reason: str
) -> None:
    """pve-manager: API2/Backup.pm, assert_param_permission_common."""
    web = machine(lab)
    roles = {"/": "PVEVMAdmin", "/storage/nas": "PVEDatastoreUser"}
    result = refused(
        lab, "backup", storage="nas", vmid=web["vmid"], **options, **limited(lab, "saver", roles)
    )
    assert result["error"]["reason"] == reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"tags": "tenant_globex"}, "foreign tenant"), ({"name": "other"}, "another guest")],
)
def test_a_guest_is_read_right_before_its_backup(
    lab: Lab, change: dict[str, str], reason: str
) -> None:
    """PVE backs up the guest that has the VMID when the request arrives."""
    web = machine(lab, name="web", tags="tenant_acme")
    path = f"/nodes/{web['node']}/qemu/{web['vmid']}/config"
    steer = [["PUT", f"/vms/{web['vmid']}", {"config": change}]]
    lab.simulator.fault(method="GET", path=f"^{path}$", steer=steer)
    lab.simulator.reset_log()
    result = lab.run("backup", storage="nas", tenant="acme", vmid=web["vmid"])
    assert result["error"]["reason"] == reason, result
    assert lab.simulator.writes() == []
