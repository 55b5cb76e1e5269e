# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Roles image and snapshot_policy with the token of a tenant: the operations that the tenant has
are enough for them, and without these they are refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.demo.lab import Lab
from tests.modules.module_runner import run_module
from tests.plays.provision_helpers import Player, writes

IMAGE, SNAPSHOT, ROLLBACK = "pve.fleet.image", "pve.fleet.snapshot", "pve.fleet.rollback"
URL = "https://cloud.debian.org/images/cloud/trixie/latest/debian-13-genericcloud-amd64.qcow2"
MAY: dict[str, Any] = {
    "templates": ["debian-13"],
    "storages": ["ceph"],
    "image_storages": ["local"],
    "bridges": ["vmbr0"],
    "nodes": ["pve1"],
}


def with_tenant(lab: Lab, directory: Path, *operations: str) -> Player:
    """Create a tenant that may do this, and return a player with nothing but its login."""
    file = directory / "initech.yml"
    options = {"name": "initech", **MAY, "operations": list(operations)}
    made = run_module("tenant", {**lab.connection, **options, "credentials_file": str(file)})
    assert not made.get("failed"), made
    return Player(directory, {"PROXMOX_SITES_FILE": str(file)})


def own_vm(lab: Lab, name: str) -> int:
    """Create a running VM of the tenant, as an administrator."""
    tags, disk = "tenant_initech", "ceph:1"
    vmid = lab.make_vm(name, pool="initech", tags=tags, scsi0=disk)
    lab.call("POST", f"/nodes/pve1/qemu/{vmid}/status/start")
    return vmid


def snapshots_of(lab: Lab, vmid: int) -> list[str]:
    rows = lab.call("GET", f"/nodes/pve1/qemu/{vmid}/snapshot")
    return sorted(row["name"] for row in rows if row["name"] != "current")


def volumes(lab: Lab) -> set[str]:
    return {row["volid"] for row in lab.call("GET", "/nodes/pve1/storage/local/content")}


def image_of(name: str) -> dict[str, Any]:
    """Return what the role makes a template of in the pool of the tenant."""
    return {
        "image_name": name,
        "image_url": URL,
        "image_filename": f"{name}.qcow2",
        "image_node": "pve1",
        "image_disk_storage": "ceph",
        "image_vm": {"tenant": "initech", "pool": "initech"},
    }


def test_image_with_the_operations_for_it(lab: Lab, tmp_path: Path) -> None:
    player = with_tenant(lab, tmp_path, "operate", "provision", "images")
    mark = lab.mark()
    player.play(IMAGE, "--check", **image_of("golden")).expect()
    assert writes(lab, mark) == []
    player.play(IMAGE, **image_of("golden")).expect()
    assert player.play(IMAGE, **image_of("golden")).expect().changed == 0
    (row,) = [
        row
        for row in lab.call("GET", "/cluster/resources", type="vm")
        if row.get("name") == "golden"
    ]
    assert (row["template"], row["pool"], row["tags"]) == (1, "initech", "tenant_initech")
    assert "local:import/golden.qcow2" in volumes(lab)


DOWNLOAD = "POST /nodes/pve1/storage/local/download-url"


@pytest.mark.parametrize(
    ("operations", "words", "tried"),
    [
        # Who may create containers sees the storage of their templates, so PVE itself refuses.
        (("operate", "provision"), "Datastore.AllocateTemplate on /storage/local", [DOWNLOAD]),
        (("operate", "images"), "the token needs Sys.Audit on the node, or SDN.Use", []),
    ],
    ids=["without images", "without provision"],
)
@pytest.mark.slow
def test_image_without_the_operation_for_it(
    lab: Lab, tmp_path: Path, operations: tuple[str, ...], words: str, tried: list[str]
) -> None:
    player = with_tenant(lab, tmp_path, *operations)
    mark = lab.mark()
    output = player.play(IMAGE, **image_of("golden")).expect(2).output
    assert words in output
    assert writes(lab, mark) == tried
    assert "local:import/golden.qcow2" not in volumes(lab)


@pytest.mark.slow
def test_snapshots_with_the_operations_for_it(lab: Lab, tmp_path: Path) -> None:
    player = with_tenant(lab, tmp_path, "operate", "snapshot")
    vmid = own_vm(lab, "app1")
    other = lab.make_vm("theirs", pool="acme", tags="tenant_acme", scsi0="ceph:1")
    said = {"snapshot_policy_tenant": "initech", "snapshot_policy_name": "before"}
    assert player.play(SNAPSHOT, **said).expect().changed == 1
    assert player.play(SNAPSHOT, **said).expect().changed == 0
    assert player.play(ROLLBACK, **said).expect().changed == 1
    status = lab.call("GET", f"/nodes/pve1/qemu/{vmid}/status/current")["status"]
    assert status == "running"
    gone = {**said, "snapshot_policy_state": "absent"}
    assert player.play(SNAPSHOT, **gone).expect().changed == 1
    assert snapshots_of(lab, vmid) == []
    mark = lab.mark()
    theirs = {"snapshot_policy_vms": [str(other)], "snapshot_policy_name": "before"}
    output = player.play(SNAPSHOT, **theirs).expect(2).output
    assert str(other) in output
    assert writes(lab, mark) == []


def test_snapshots_without_the_operation_for_it(lab: Lab, tmp_path: Path) -> None:
    player = with_tenant(lab, tmp_path, "operate")
    vmid = own_vm(lab, "app1")
    (tmp_path / "change.yml").write_text(
        "- name: Change\n  ansible.builtin.copy: {content: x, dest: changed, mode: '0600'}\n"
    )
    (tmp_path / "play.yml").write_text(
        "- name: Change with a way back\n  hosts: localhost\n  gather_facts: false\n"
        "  roles:\n    - role: pve.fleet.snapshot_policy\n"
    )
    said = {
        "snapshot_policy_tenant": "initech",
        "snapshot_policy_tasks": str(tmp_path / "change.yml"),
    }
    output = player.play("play.yml", **said).expect(2).output
    assert "VM.Snapshot" in output
    assert snapshots_of(lab, vmid) == []
    assert not (tmp_path / "changed").exists()
