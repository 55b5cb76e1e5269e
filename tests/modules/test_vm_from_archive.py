# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A new VM from an archive: module vm with the volume of a backup as source.

The simulator follows qemu-server, PVE/API2/Qemu.pm (create_vm) and PVE/QemuServer.pm.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import do, refused
from tests.modules.backup_lab import add_nas, container
from tests.modules.estate_lab import Lab

DISK: dict[str, Any] = {"disks": [{"name": "scsi0", "size": 1, "storage": "ceph"}]}
WEB: dict[str, Any] = {"name": "web", "tenant": "acme", "memory": 256, "cores": 2, **DISK}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    add_nas(unused)
    return unused


@pytest.fixture
def archive(lab: Lab) -> str:
    """An archive of VM `web`, whose VM is still there."""
    vm = do(lab, "vm", tags=["shop"], description="Shop", nics=[{"bridge": "vmbr0"}], **WEB)["vm"]
    lab.client.task("POST", "nodes", vm["node"], "vzdump", data={"vmid": vm["vmid"], **NAS})
    rows = lab.client.get("nodes", vm["node"], "storage", "nas", "content", content="backup")
    return str(rows[0]["volid"])


NAS = {"storage": "nas"}


def config(lab: Lab, vm: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = lab.client.get("nodes", vm["node"], "qemu", vm["vmid"], "config")
    return found


def origin(lab: Lab) -> dict[str, Any]:
    return config(lab, do(lab, "vm_info", name="web")["vms"][0])


def test_a_new_vm_is_restored_with_its_own_identity(lab: Lab, archive: str) -> None:
    result = do(lab, "vm", name="web2", tenant="acme", source=archive, memory="512M")
    vm = result["vm"]
    assert result["done"][0].startswith(f"Restore VM 'web2' ({vm['vmid']}) on node ")
    found, before = config(lab, vm), origin(lab)
    assert (found["name"], found["cores"], int(found["memory"])) == ("web2", 2, 512)
    assert set(found["tags"].split(";")) == {"shop", "tenant_acme"}
    assert found["description"].startswith("Shop")
    assert "run=" not in found["description"]
    assert found["net0"] != before["net0"]
    assert found["smbios1"] != before["smbios1"]
    assert found["scsi0"].startswith("ceph:")
    again = do(lab, "vm", name="web2", tenant="acme", source=archive, memory="512M")
    assert not again["changed"]


def test_check_mode_predicts_the_restore(lab: Lab, archive: str) -> None:
    task: dict[str, Any] = {"name": "web2", "tenant": "acme", "source": archive, "cores": 3}
    lab.simulator.reset_log()
    foreseen = do(lab, "vm", check=True, **task)
    assert lab.simulator.writes() == []
    result = do(lab, "vm", **task)
    assert foreseen["plan"] == result["plan"] == result["done"]
    assert foreseen["diff"] == result["diff"]


def test_disks_go_to_other_storages(lab: Lab, archive: str) -> None:
    disks = [{"name": "scsi0", "storage": "local-lvm"}]
    vm = do(lab, "vm", name="web2", tenant="acme", source=archive, disks=disks)["vm"]
    assert config(lab, vm)["scsi0"].startswith("local-lvm:")
    assert not any("move_disk" in one["path"] for one in lab.simulator.writes())


def test_refusals_before_the_first_write(lab: Lab, archive: str) -> None:
    task: dict[str, Any] = {"name": "web2", "tenant": "acme"}
    foreign = refused(lab, "vm", **{**task, "tenant": "globex"}, source=archive)
    assert "another tenant" in foreign["msg"]
    missing = refused(lab, "vm", **task, source="nas:backup/vzdump-qemu-1-2026_01_01-00_00_00.vma")
    assert missing["error"]["reason"] == "unknown archive"
    box = container(lab, hostname="box", tags="tenant_acme")
    lab.client.task("POST", "nodes", "pve1", "vzdump", data={"vmid": box["vmid"], **NAS})
    rows = lab.client.get("nodes", "pve1", "storage", "nas", "content", vmid=box["vmid"])
    other = refused(lab, "vm", **task, source=rows[0]["volid"])
    assert "backup of a container" in other["msg"]
    same = refused(lab, "container", name="box2", tenant="acme", source=archive)
    assert "backup of a VM" in same["msg"]
    gone = refused(lab, "vm", **task, source=archive, disks=[{"name": "scsi0", "storage": "none"}])
    assert "none" in gone["msg"]
    volume = "nas:backup/vzdump-qemu-999-2026_01_01-00_00_00.vma.zst"
    lab.simulator.steer("/volumes/pve1", {"volid": volume, "new": True, "size": 1})
    corrupt = refused(lab, "vm", **task, source=volume)
    assert "unable to extract configuration" in corrupt["msg"]
