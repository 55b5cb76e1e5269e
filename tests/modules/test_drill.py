# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules drill_info and drill: isolated copies that prove restores.

The simulator follows qemu-server, PVE/API2/Qemu.pm (create_vm), and pve-container, PVE/API2/LXC.pm.
"""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.filter.report_html import report_html
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import (
    fetch_cluster_state,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.drill.find import (
    is_vmid_of_copy,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.drill.record import (
    DrillRecord,
    extended,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.estate.tidy import (
    orphan as tidy_run,
)
from tests.modules.access_lab import do, refused
from tests.modules.backup_lab import add_nas, container
from tests.modules.estate_lab import Lab
from tests.modules.report_lab import VALIDATOR

DISK: dict[str, Any] = {"disks": [{"name": "scsi0", "size": 1, "storage": "ceph"}]}
WEB: dict[str, Any] = {"name": "web", "tenant": "acme", "pool": "acme", "memory": 256, **DISK}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    add_nas(unused)
    return unused


def back_up(lab: Lab, guest: dict[str, Any]) -> str:
    data = {"vmid": guest["vmid"], "storage": "nas"}
    lab.client.task("POST", "nodes", guest["node"], "vzdump", data=data)
    path = ("nodes", guest["node"], "storage", "nas", "content")
    rows = lab.client.get(*path, content="backup", vmid=guest["vmid"])
    return str(max(rows, key=lambda row: row["ctime"])["volid"])


@pytest.fixture
def web(lab: Lab) -> dict[str, Any]:
    """A running VM of tenant acme with an agent and a NIC, and its archive."""
    nics = [{"bridge": "vmbr0", "vlan": 20}]
    made: dict[str, Any] = do(lab, "vm", nics=nics, agent=True, onboot=True, **WEB)["vm"]
    made["archive"] = back_up(lab, made)
    return made


def plan(lab: Lab, **options: Any) -> dict[str, Any]:
    return do(lab, "drill_info", **{"tenant": "acme", **options})


def start(lab: Lab, planned: dict[str, Any], **options: Any) -> dict[str, Any]:
    guests = planned["rounds"][0]
    return lab.run("drill", run=planned["run"], guests=guests, settle=0, **options)


def remove(lab: Lab, run: str, **options: Any) -> dict[str, Any]:
    return do(lab, "drill", run=run, state="absent", **options)


def vmids(lab: Lab) -> set[int]:
    return {row["vmid"] for row in lab.client.get("cluster", "resources", type="vm")}


def config(lab: Lab, guest: dict[str, Any], kind: str = "qemu") -> dict[str, Any]:
    path = ("nodes", guest["node"], kind, guest["copy_vmid"], "config")
    found: dict[str, Any] = lab.client.get(*path)
    return found


def test_a_copy_is_isolated_proven_and_removed(lab: Lab, web: dict[str, Any]) -> None:
    before = vmids(lab)
    lab.simulator.reset_log()
    planned = plan(lab)
    assert lab.simulator.writes() == []
    foreseen = start(lab, planned, check=True)
    assert lab.simulator.writes() == []
    made = start(lab, planned)
    (guest,) = made["guests"]
    assert made["plan"] == made["done"] == foreseen["plan"]
    (row,) = planned["rounds"][0]
    assert (guest["copy_vmid"], guest["copy_name"]) == (row["copy_vmid"], row["copy_name"])
    assert guest["outcome"] == "proven"
    assert guest["proof"] == "agent"
    assert guest["volume"] == web["archive"]
    assert 0 <= guest["archive_age"] < 3600
    assert guest["restore_seconds"] is not None
    assert guest["boot_seconds"] is not None
    assert 900000 <= guest["copy_vmid"] <= 909999
    copy = config(lab, guest)
    source = lab.config(web)
    assert copy["tags"] == "fleet-drill;fleet-drill-of-acme"
    assert "link_down=1" in copy["net0"]
    assert copy["net0"].split(",")[0] != source["net0"].split(",")[0]
    assert str(copy.get("onboot", "0")) == "0"
    assert remove(lab, planned["run"], check=True)["plan"]
    result = remove(lab, planned["run"])
    assert result["changed"]
    assert vmids(lab) == before
    assert not remove(lab, planned["run"])["changed"]


def test_a_container_is_proven(lab: Lab) -> None:
    box = container(lab, hostname="box", tags="tenant_acme", net0="name=eth0,bridge=vmbr0")
    back_up(lab, box)
    planned = plan(lab, vms=[str(box["vmid"])])
    made = start(lab, planned)
    (guest,) = made["guests"]
    assert (guest["outcome"], guest["proof"]) == ("proven", "started"), guest
    copy = config(lab, guest, "lxc")
    assert copy["tags"] == "fleet-drill;fleet-drill-of-acme"
    assert "link_down=1" in copy["net0"]
    remove(lab, planned["run"])
    assert guest["copy_vmid"] not in vmids(lab)


def test_a_silent_agent_fails_the_guest_and_the_copy_is_removed(
    lab: Lab, web: dict[str, Any], fast: None
) -> None:
    planned = plan(lab)
    (row,) = planned["rounds"][0]
    lab.simulator.fault(
        method="GET",
        path=r"/agent/",
        status=500,
        message="QEMU guest agent is not running",
        times=None,
    )
    made = start(lab, planned, wait_timeout=1)
    assert made["failed"]
    (guest,) = made["guests"]
    assert guest["outcome"] == "failed"
    assert guest["copy_vmid"] == row["copy_vmid"]
    remove(lab, planned["run"])
    assert row["copy_vmid"] not in vmids(lab)


def test_disks_that_backups_leave_out_are_a_finding(lab: Lab) -> None:
    """qemu-server: QemuServer.pm, restore_update_config_line; pve-container: API2/LXC.pm."""
    scratch = {"name": "scsi1", "size": 2, "storage": "ceph", "backup": False}
    web = do(lab, "vm", **{**WEB, "disks": [*DISK["disks"], scratch]})["vm"]
    mount = {"mp0": "ceph:2,mp=/data"}
    box = container(lab, hostname="box", rootfs="ceph:1", tags="tenant_acme", **mount)
    for guest in (web, box):
        back_up(lab, guest)
    place = {"storage": "local-lvm", "node": "pve1"}
    planned = plan(lab, **place)
    assert [row["left_out"] for row in planned["rounds"][0]] == [["mp0"], ["scsi1"]]
    assert any("without the data of mp0" in line for line in planned["report"])
    made = start(lab, planned, **place)
    assert not made.get("failed"), made
    assert [row["left_out"] for row in made["guests"]] == [["mp0"], ["scsi1"]]
    assert all(any(slot in text for text in made["warnings"]) for slot in ("scsi1", "mp0"))
    record = extended(DrillRecord(), made["guests"], run="00ff00", began=1, ended=2)
    messages = [row["msg"] for row in record["drills"][-1]["results"]]
    assert messages[0] == f"The archive of box ({box['vmid']}) has no data of mp0"


def test_a_restore_that_outlasts_its_time_limit_is_a_change(lab: Lab, web: dict[str, Any]) -> None:
    planned = plan(lab)
    lab.simulator.steer("/settings", {"task_ms": "qmrestore=600000"})
    made = start(lab, planned, task_timeout=1)
    assert made["failed"]
    assert made["changed"]


def test_a_failed_restore_leaves_no_copy(lab: Lab, web: dict[str, Any]) -> None:
    before = vmids(lab)
    planned = plan(lab)
    lab.simulator.fault(task="qmrestore", fail="no space left on device")
    made = start(lab, planned)
    assert made["failed"]
    assert "no space left on device" in made["guests"][0]["msg"]
    assert vmids(lab) == before


def test_a_drill_of_fifty_guests_with_room_for_three_works_in_rounds(
    lab: Lab, web: dict[str, Any]
) -> None:
    """Storage local-lvm of node pve1 has room for three disks of 1 GiB."""
    free = next(
        row["maxdisk"] - row["disk"]
        for row in lab.client.get("cluster", "resources", type="storage")
        if (row["storage"], row["node"]) == ("local-lvm", "pve1")
    )
    filler = {"volid": "local-lvm:vm-900-disk-0", "new": True, "size": free - (7 << 29)}
    names: list[str] = ["web"]
    for index in range(4):
        vm = do(lab, "vm", **{**WEB, "name": f"app{index}"})["vm"]
        back_up(lab, vm)
        names.append(vm["name"])
    lab.simulator.steer("/volumes/pve1", filler)
    planned = plan(lab, storage="local-lvm", node="pve1", copies=50)
    sizes = [len(one) for one in planned["rounds"]]
    assert sizes == [3, 2], planned["report"]
    assert sorted(row["name"] for one in planned["rounds"] for row in one) == sorted(names)
    lab.simulator.steer(
        "/volumes/pve1", {**filler, "volid": "local-lvm:vm-901-disk-0", "size": 3 << 30}
    )
    none = plan(lab, storage="local-lvm", node="pve1", copies=50)
    assert none["rounds"] == []
    assert {row["outcome"] for row in none["refused"]} == {"skipped"}
    assert "free" in none["refused"][0]["msg"]


def test_copies_at_once_are_limited(lab: Lab, web: dict[str, Any]) -> None:
    for index in range(3):
        back_up(lab, do(lab, "vm", **{**WEB, "name": f"app{index}"})["vm"])
    planned = plan(lab, copies=2)
    assert [len(one) for one in planned["rounds"]] == [2, 2]
    guests = [{"vmid": row["vmid"], "archive": row["archive"]} for row in planned["rounds"][0]]
    error = refused(lab, "drill", run=planned["run"], guests=guests, copies=1)
    assert "copies" in error["msg"]
    for wrong in ({"vmid": 100}, {"vmid": 1, "archive": "nas:backup/x"}):
        assert "guests" in refused(lab, "drill", run="00ff00", guests=[wrong])["msg"]
    assert "run" in refused(lab, "drill", run="x", guests=guests)["msg"]
    assert "vmid_range" in refused(lab, "drill_info", vmid_range=[5])["msg"]


def test_a_guest_younger_than_the_last_backup_is_skipped_by_name(
    lab: Lab, web: dict[str, Any]
) -> None:
    time.sleep(1.1)  # the times of tasks are whole seconds
    young = do(lab, "vm", **{**WEB, "name": "young"})["vm"]
    box = container(lab, hostname="box", tags="tenant_acme")
    rows = {row["vmid"]: row for row in plan(lab)["refused"]}
    for guest in (young, box):
        assert rows[guest["vmid"]]["outcome"] == "skipped"
        assert "created after the last backup" in rows[guest["vmid"]]["msg"]
    time.sleep(1.1)
    back_up(lab, web)
    rows = {row["vmid"]: row for row in plan(lab)["refused"]}
    assert rows[young["vmid"]]["outcome"] == "failed"


def test_guests_without_a_usable_archive_are_named(lab: Lab, web: dict[str, Any]) -> None:
    bare = do(lab, "vm", **{**WEB, "name": "bare"})["vm"]
    hooked = do(lab, "vm", **{**WEB, "name": "hooked"})["vm"]
    lab.simulator.steer(f"/vms/{hooked['vmid']}", {"config": {"usb0": "host=1-2"}})
    back_up(lab, hooked)
    rows = {row["vmid"]: row for row in plan(lab)["refused"]}
    assert rows[bare["vmid"]]["outcome"] == "failed"
    assert "there is none" in rows[bare["vmid"]]["msg"]
    assert rows[hooked["vmid"]]["outcome"] == "skipped"
    assert "usb0" in rows[hooked["vmid"]]["msg"]


def test_a_copy_that_cannot_be_removed_is_named(lab: Lab, web: dict[str, Any]) -> None:
    back_up(lab, do(lab, "vm", **{**WEB, "name": "app"})["vm"])
    planned = plan(lab, copies=2)
    guest, other = start(lab, planned, copies=2)["guests"]
    path = f"/qemu/{guest['copy_vmid']}$"
    lab.simulator.fault(method="DELETE", path=path, status=500, message="disk on fire")
    result = lab.run("drill", run=planned["run"], state="absent")
    assert result["failed"]
    assert guest["copy_name"] in result["msg"]
    assert "disk on fire" in result["msg"]
    assert other["copy_vmid"] not in vmids(lab)
    remove(lab, planned["run"])
    assert guest["copy_vmid"] not in vmids(lab)


def test_a_vm_that_takes_the_vmid_of_a_copy_is_not_changed(lab: Lab, web: dict[str, Any]) -> None:
    planned = plan(lab)
    vmid = planned["rounds"][0][0]["copy_vmid"]
    other = {"node": "pve1", "name": "theirs", "tags": ["tenant_globex"], "config": {"cores": 1}}
    steer = [["DELETE", f"/vms/{vmid}", None], ["POST", f"/vms/{vmid}", other]]
    lab.simulator.fault(method="PUT", path=f"/qemu/{vmid}/config$", nth=1, steer=steer)
    result = start(lab, planned)
    assert "is now another one, 'theirs'" in result["msg"]
    assert lab.simulator.ask("GET", f"/vms/{vmid}")["config"]["name"] == "theirs"
    remove(lab, planned["run"])
    assert vmid in vmids(lab)


def test_an_interrupted_drill_is_cleaned_up_by_the_next(lab: Lab, web: dict[str, Any]) -> None:
    first = plan(lab)
    copy = start(lab, first)["guests"][0]["copy_vmid"]
    second = plan(lab)
    assert [one["vmid"] for one in second["copies"]] == [copy]
    assert f"is a copy of drill {first['run']}" in second["report"][-2]
    assert "older than abandoned_after" in second["report"][-2]
    # the copy of a drill that may still run is not touched
    assert not remove(lab, second["run"])["changed"]
    result = remove(lab, second["run"], abandoned_after="0s")
    assert result["changed"]
    assert copy not in vmids(lab)


def test_tidy_removes_the_copies_of_a_tenant(
    lab: Lab, web: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = start(lab, plan(lab))["guests"][0]["copy_vmid"]
    young = do(lab, "tidy", tenant="acme")
    assert [(row["vmid"], row["kind"], row["remedy"]) for row in young["unfinished"]] == [
        (copy, "drill", "wait")
    ]
    assert copy in vmids(lab)
    monkeypatch.setattr(tidy_run, "ABANDONED", -1)
    others = do(lab, "tidy", tenant="globex")
    assert others["unfinished"] == []
    foreseen = do(lab, "tidy", tenant="acme", check=True)
    result = do(lab, "tidy", tenant="acme")
    assert foreseen["plan"] == result["done"]
    assert copy not in vmids(lab)
    assert web["vmid"] in vmids(lab)


def test_a_guest_that_only_has_the_tag_is_not_removed(lab: Lab, web: dict[str, Any]) -> None:
    do(lab, "vm", name="web", tenant="acme", tags=["fleet-drill"])
    result = remove(lab, "00ff00", abandoned_after="0s")
    assert not result["changed"]
    assert web["vmid"] in vmids(lab)


def test_only_guests_that_were_not_proven_are_chosen(lab: Lab, web: dict[str, Any]) -> None:
    app = do(lab, "vm", **{**WEB, "name": "app"})["vm"]
    back_up(lab, app)
    proven = {"vmid": web["vmid"], "type": "qemu", "name": "web", "proven": "2020-01-01T00:00:00Z"}
    record = json.dumps({"version": 1, "guests": [proven], "drills": []})
    chosen = plan(lab, record=record, unproven_for="30d")
    assert len(chosen["rounds"][0]) == 2
    sampled = plan(lab, record=record, sample=1)
    assert [row["name"] for row in sampled["rounds"][0]] == ["app"]
    recent = {**proven, "proven": "2099-01-01T00:00:00Z"}
    record = json.dumps({"version": 1, "guests": [recent], "drills": []})
    due = plan(lab, record=record, unproven_for="30d")
    assert [row["name"] for row in due["rounds"][0]] == ["app"]
    assert "record" in refused(lab, "drill_info", record="[]")["msg"]


def test_an_archive_of_another_guest_is_refused(lab: Lab, web: dict[str, Any]) -> None:
    guests = [{"vmid": 9000, "archive": web["archive"]}]
    before = vmids(lab)
    made = lab.run("drill", run="00ff00", guests=guests)
    assert made["failed"]
    assert f"it is an archive of guest {web['vmid']}" in made["msg"]
    assert vmids(lab) == before


def test_a_network_connects_the_copies(lab: Lab, web: dict[str, Any]) -> None:
    planned = plan(lab, network="vmbr1")
    made = start(lab, planned, network="vmbr1")
    (guest,) = made["guests"]
    assert guest["outcome"] == "proven", guest
    net = config(lab, guest)["net0"]
    assert "bridge=vmbr1" in net
    assert "tag=" not in net
    assert "link_down" not in net
    remove(lab, planned["run"])


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_lost_answer_leaves_no_copy(lab: Lab, web: dict[str, Any], moment: str) -> None:
    before = vmids(lab)
    planned = plan(lab)
    lab.simulator.fault(method="POST", path="/qemu$", drop=moment)
    made = start(lab, planned)
    assert made["guests"][0]["outcome"] == "proven", made
    lab.simulator.fault(method="DELETE", path=r"/qemu/\d+$", drop=moment)
    remove(lab, planned["run"])
    assert vmids(lab) == before


def test_a_copy_counts_nowhere(lab: Lab, web: dict[str, Any]) -> None:
    """Neither for quota, export, report, drift, metrics nor for jobs and backups."""
    planned = plan(lab)
    copy = start(lab, planned)["guests"][0]["copy_vmid"]
    second = do(lab, "vm", **{**WEB, "name": "second", "quota": {"vms": 2}})["vm"]
    report = do(lab, "report_info")["report"]
    drift = do(lab, "drift_info", vms=[{"name": "web", "tenant": "acme"}], unlisted=True)
    covered = do(lab, "backup_job_info")["guests"]
    backups = do(lab, "backup_info")["guests"]
    metrics = do(lab, "metrics_info")
    exported = do(lab, "estate_info")
    for document in (report["vms"], drift, covered, backups, metrics, exported):
        assert str(copy) not in str(document)
        assert str(second["vmid"]) in str(document) or "second" in str(document)
    remove(lab, planned["run"])


def test_report_and_metrics_show_the_last_proven_restore(lab: Lab, web: dict[str, Any]) -> None:
    bare = do(lab, "vm", **{**WEB, "name": "bare"})["vm"]
    proven = {"vmid": web["vmid"], "type": "qemu", "name": "web", "proven": "2026-01-02T00:00:00Z"}
    times = {"proof": "agent", "archive_age": 60, "restore_seconds": 90, "boot_seconds": 20}
    record = json.dumps({"version": 1, "guests": [{**proven, **times}], "drills": []})
    report = do(lab, "report_info", drills=record)["report"]
    rows = {row["vmid"]: row["proven"] for row in report["vms"]}
    assert rows[web["vmid"]] == {"time": proven["proven"], **times}
    assert rows[bare["vmid"]]["time"] is None
    (risk,) = [risk for risk in report["attention"] if risk["kind"] == "unproven"]
    texts = [case["text"] for case in risk["cases"]]
    assert "acme/bare" in texts
    assert "acme/web" not in texts
    VALIDATOR.validate(report)
    assert "restore never proven" in report_html(report)
    assert {row["proven"] for row in do(lab, "report_info")["report"]["vms"]} == {None}
    text = do(lab, "metrics_info", drills=record)["text"]
    (moment,) = re.findall(r"proven_restore_timestamp_seconds{.*name=\"web\".*} (.*)", text)
    assert float(moment) == 1767312000
    (never,) = re.findall(r"proven_restore_timestamp_seconds{.*name=\"bare\".*} (.*)", text)
    assert float(never) == 0
    (duration,) = re.findall(r"proven_restore_seconds{.*} (.*)", text)
    assert float(duration) == 110
    assert "record" in refused(lab, "report_info", drills="[]")["msg"]


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("kind", ["vm", "container"])
def test_a_copy_that_is_still_restored_is_named_and_then_removed(
    lab: Lab, kind: str, request: pytest.FixtureRequest
) -> None:
    """A guest has neither name nor tags until its restore ends (qemu-server, PVE/QemuServer.pm,
    restore_vma_archive; pve-container, PVE/API2/LXC.pm, create_vm).
    """
    if kind == "vm":
        request.getfixturevalue("web")
    else:
        back_up(lab, container(lab, hostname="box", tags="tenant_acme"))
    planned = plan(lab)
    before = vmids(lab)
    lab.simulator.steer("/settings", {"task_ms": "qmrestore=600000,vzrestore=600000"})
    result = start(lab, planned, task_timeout=1)
    assert result["error"]["category"] == "TaskTimeout", result
    assert result["changed"]
    lab.simulator.reset_log()
    left = lab.run("drill", run=planned["run"], state="absent", task_timeout=1)
    assert left["error"]["reason"] == "being restored", left
    assert str(planned["rounds"][0][0]["copy_vmid"]) in left["msg"]
    assert lab.simulator.writes() == []
    # A few runs choose among the same VMIDs, and wait for this restore too.
    copy = planned["rounds"][0][0]["copy_vmid"]
    cluster = fetch_cluster_state(lab.client)
    runs = (f"{number:06x}" for number in range(100))
    stranger = next(
        run for run in runs if not is_vmid_of_copy(cluster, copy, run, (900000, 909999))
    )
    other = remove(lab, stranger, task_timeout=1)
    assert not other["changed"]
    assert "is being restored" in other["warnings"][-1]
    lab.simulator.steer("/settings", {"task_ms": "qmrestore=0,vzrestore=0"})
    assert remove(lab, planned["run"])["changed"]
    assert vmids(lab) == before
