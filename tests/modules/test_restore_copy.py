# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module restore with confirm and keep=copy: the state before is kept as another guest."""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import do, limited
from tests.modules.backup_lab import archives_of, container
from tests.modules.estate_lab import Lab
from tests.modules.test_restore import back_up, config
from tests.modules.test_restore_in_place import lab, rejected, restore, web

__all__ = ("lab", "web")
KEPT: dict[str, Any] = {"keep": "copy", "keep_name": "web-before"}


def named(lab: Lab, name: str) -> list[dict[str, Any]]:
    rows = lab.client.get("cluster", "resources", type="vm")
    return [row for row in rows if row.get("name") == name]


def test_the_state_is_kept_as_a_stopped_copy(lab: Lab, web: dict[str, Any]) -> None:
    do(lab, "vm", name="web", tenant="acme", state="started", onboot=True)
    before = config(lab, web)
    lab.simulator.reset_log()
    foreseen = restore(lab, check=True, **KEPT)
    assert lab.simulator.writes() == []
    made = restore(lab, **KEPT)
    assert made["done"] == made["plan"] == foreseen["plan"]
    assert "Keep the state of VM 'web'" in made["plan"][2]
    assert made["kept"] == "web-before"
    assert made["guest"]["status"] == "running"
    assert config(lab, web)["memory"] == "256"
    (copy,) = named(lab, "web-before")
    kept = config(lab, copy)
    assert (copy["status"], kept["memory"]) == ("stopped", "512")
    assert (kept.get("onboot", 0), kept["tags"]) == (0, before["tags"])
    assert kept["net0"] != before["net0"]
    assert kept["scsi0"].startswith("ceph:")
    assert " run=" not in kept["description"]
    assert archives_of(lab, web) == [made["archive"]["volume"]]
    # the next run needs another name: the copy is of an earlier state
    again = rejected(lab, **KEPT)
    assert "is a copy of an earlier state" in again["msg"]
    assert "Give another keep_name" in again["msg"]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"quotas": {"acme": {"vms": 1}}}, "exceeds the quota of tenant acme"),
        ({"quotas": {"acme": {"memory": "768M"}}, "memory": 512}, "exceeds the quota"),
    ],
)
def test_the_copy_counts_in_the_quota(
    lab: Lab, web: dict[str, Any], options: dict[str, Any], word: str
) -> None:
    assert word in rejected(lab, options=options, **KEPT)["msg"]


def test_a_copy_is_refused_before_the_first_write(lab: Lab, web: dict[str, Any]) -> None:
    assert "the copy needs a name" in rejected(lab, keep="copy")["msg"]
    assert "keep=copy makes" in rejected(lab, keep_name="web-before")["msg"]
    assert "the name of the guest itself" in rejected(lab, keep="copy", keep_name="web")["msg"]
    do(lab, "vm", name="web-before", tenant="acme", pool="acme", memory=128)
    assert "nothing in its notes says that it was cloned" in rejected(lab, **KEPT)["msg"]
    no_room = rejected(lab, keep="copy", keep_name="other", keep_storage="nowhere")
    assert "nowhere" in no_room["msg"]
    do(lab, "snapshot", name="web", tenant="acme", snapshot="s1")
    assert "no archive or copy has them: s1" in rejected(lab, **KEPT)["msg"]


def test_a_caller_without_the_right_to_clone_is_refused(lab: Lab, web: dict[str, Any]) -> None:
    privileges = "VM.Audit,VM.Backup,VM.Allocate,VM.Config.Options,VM.PowerMgmt,Pool.Audit"
    lab.client.write("POST", "access", "roles", data={"roleid": "Backups", "privs": privileges})
    roles = {
        "/pool/acme": "Backups",
        "/storage/nas": "PVEDatastoreUser",
        "/storage/ceph": "PVEDatastoreUser",
        "/sdn/zones/localnetwork": "PVESDNUser",
    }
    lab.simulator.reset_log()
    found = rejected(lab, **limited(lab, "no-clones", roles), **KEPT)
    assert "VM.Clone" in found["msg"]
    assert not [row for row in lab.simulator.writes() if "/qemu/" in row["path"]]


@pytest.mark.parametrize("task", ["qmclone", "qmrestore"])
def test_an_interrupted_run_is_completed(
    lab: Lab, web: dict[str, Any], task: str, alone: None
) -> None:
    lab.simulator.fault(task=task, fail="no space left on device")
    failed = lab.run("restore", name="web", tenant="acme", confirm="web", **KEPT)
    assert failed["failed"]
    lab.simulator.clear_faults()
    if task == "qmrestore":
        assert "Its former state is its copy web-before" in failed["msg"]
    made = do(lab, "restore", vmid=web["vmid"], tenant="acme", confirm="web", **KEPT)
    assert config(lab, made["guest"])["memory"] == "256"
    (copy,) = named(lab, "web-before")
    assert config(lab, copy)["memory"] == "512"


def test_a_copy_that_was_made_before_the_interruption_is_used(
    lab: Lab, web: dict[str, Any]
) -> None:
    lab.simulator.fault(method="POST", path="/qemu$", status=403)
    assert lab.run("restore", name="web", tenant="acme", confirm="web", **KEPT)["failed"]
    lab.simulator.clear_faults()
    (copy,) = named(lab, "web-before")
    do(lab, "restore", name="web", tenant="acme", confirm="web", **KEPT)
    assert [row["vmid"] for row in named(lab, "web-before")] == [copy["vmid"]]


def test_a_container_is_kept_as_a_copy(lab: Lab) -> None:
    box = container(lab, hostname="box", tags="tenant_acme")
    back_up(lab, box)
    task: dict[str, Any] = {"name": "box", "tenant": "acme", "confirm": "box"}
    do(lab, "restore", **task, keep="copy", keep_name="box-before")
    (copy,) = named(lab, "box-before")
    assert (copy["type"], copy["status"]) == ("lxc", "stopped")
