# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Restores of guests with disks that their backups leave out.

PVE leaves such a disk of a VM out (qemu-server: QemuServer.pm, restore_update_config_line), keeps
the present disk of an overwritten VM as an unused one (restore_cleanup_oldconf), and creates such a
volume of a container without data (pve-container: API2/LXC.pm, create_vm).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import do, refused
from tests.modules.backup_lab import add_nas, container
from tests.modules.estate_lab import Lab
from tests.modules.test_restore import back_up, config

SCRATCH: list[dict[str, Any]] = [
    {"name": "scsi0", "size": 1, "storage": "ceph"},
    {"name": "scsi1", "size": 2, "storage": "ceph", "backup": False},
]


@pytest.fixture
def lab(unused: Lab) -> Lab:
    add_nas(unused)
    return unused


@pytest.fixture
def db(lab: Lab) -> dict[str, Any]:
    """A VM with a disk that its backup leaves out."""
    made: dict[str, Any] = do(lab, "vm", name="db", tenant="acme", disks=SCRATCH)["vm"]
    back_up(lab, made)
    return made


@pytest.fixture
def box(lab: Lab) -> dict[str, Any]:
    """A container with an ordinary mount, and a mount that backups include."""
    mounts = {"mp0": "ceph:2,mp=/data", "mp1": "ceph:1,mp=/kept,backup=1"}
    made = container(lab, hostname="box", rootfs="ceph:1", tags="tenant_acme", **mounts)
    back_up(lab, made)
    return made


def restore(lab: Lab, *, check: bool = False, **options: Any) -> dict[str, Any]:
    return do(lab, "restore", check=check, **{"tenant": "acme", **options})


@pytest.mark.parametrize(
    "place",
    [
        {},
        {"storage": "local-lvm"},
        {"storage_map": {"ceph": "local-lvm"}},
        {"storage": "ceph", "storage_map": {"ceph": "local-lvm"}},
    ],
)
def test_a_disk_without_backup_is_left_out_by_name(
    lab: Lab, db: dict[str, Any], place: dict[str, Any]
) -> None:
    task = {"name": "db", "new_name": "db2", "options": {"node": "pve1"}, **place}
    foreseen, result = restore(lab, check=True, **task), restore(lab, **task)
    assert foreseen["plan"] == result["plan"] == result["done"]
    assert foreseen["diff"] == result["diff"]
    assert result["plan"][0].endswith(", without scsi1")
    for one in (foreseen, result):
        assert any("no data of scsi1, and the restore does not" in text for text in one["warnings"])
        assert one["archive"]["left_out"] == ["scsi1"]
    found = config(lab, result["guest"])
    assert "scsi1" not in found
    assert "scsi0" in found
    storage = "local-lvm" if place else "ceph"
    assert found["scsi0"].startswith(f"{storage}:")
    assert restore(lab, **task)["changed"] is False


def test_a_map_may_name_the_storage_of_a_disk_that_is_left_out(lab: Lab) -> None:
    disks = [SCRATCH[0], {**SCRATCH[1], "storage": "local-lvm"}]
    made = do(lab, "vm", name="db", tenant="acme", node="pve1", disks=disks)["vm"]
    back_up(lab, made)
    task: dict[str, Any] = {"name": "db", "new_name": "db2", "storage_map": {"local-lvm": "ceph"}}
    assert "scsi1" not in config(lab, restore(lab, **task)["guest"])


def test_a_disk_of_the_task_replaces_the_disk_that_is_left_out(
    lab: Lab, db: dict[str, Any]
) -> None:
    options = {"disks": [{"name": "scsi1", "size": 3, "storage": "ceph"}]}
    result = restore(lab, name="db", new_name="db2", options=options)
    assert "size=3G" in config(lab, result["guest"])["scsi1"]


def test_a_vm_of_an_archive_names_the_disk_that_is_left_out(lab: Lab, db: dict[str, Any]) -> None:
    source = restore(lab, check=True, name="db", new_name="db2")["archive"]["volume"]
    made = do(lab, "vm", name="db3", tenant="acme", source=source)
    assert any("no data of scsi1" in text for text in made["warnings"])


def test_an_overwritten_vm_keeps_the_disk_that_the_archive_lacks(
    lab: Lab, db: dict[str, Any]
) -> None:
    volume = config(lab, db)["scsi1"].partition(",")[0]
    do(lab, "vm", name="db", tenant="acme", memory=1024)
    task: dict[str, Any] = {"name": "db", "confirm": "db"}
    foreseen, result = restore(lab, check=True, **task), restore(lab, **task)
    assert foreseen["plan"] == result["done"]
    assert any("scsi1" in text and "remains unused" in text for text in foreseen["warnings"])
    assert foreseen["warnings"] == result["warnings"]
    found = config(lab, db)
    assert "scsi1" not in found
    assert found["unused0"] == volume


def test_a_disk_that_the_archive_replaces_and_no_backup_has_is_refused(
    lab: Lab, db: dict[str, Any]
) -> None:
    """The archive has the disk, and the present one was marked later: PVE frees the present one."""
    left_out = [{"name": "scsi0", "backup": False}]
    do(lab, "vm", name="db", tenant="acme", disks=left_out)
    message = refused(lab, "restore", tenant="acme", name="db", confirm="db")["msg"]
    assert "scsi0 would be lost" in message
    assert "scsi1" not in message
    assert "keep=none" not in message
    copied: dict[str, Any] = {"keep": "copy", "keep_name": "db-before"}
    assert restore(lab, name="db", confirm="db", **copied)["changed"]


@pytest.mark.parametrize("place", [{}, {"storage": "local-lvm"}])
def test_a_mount_without_backup_comes_back_empty_by_name(
    lab: Lab, box: dict[str, Any], place: dict[str, Any]
) -> None:
    task = {"name": "box", "new_name": "box2", "options": {"node": "pve1"}, **place}
    foreseen, result = restore(lab, check=True, **task), restore(lab, **task)
    assert foreseen["plan"] == result["plan"] == result["done"]
    assert foreseen["diff"] == result["diff"]
    assert result["plan"][0].endswith(", with an empty mp0")
    for one in (foreseen, result):
        assert any("no data of mp0, and the restore creates" in text for text in one["warnings"])
        assert one["archive"]["left_out"] == ["mp0"]
    found = config(lab, result["guest"], "lxc")
    assert "mp=/data" in found["mp0"]
    assert "mp=/kept" in found["mp1"]


def test_an_overwritten_container_is_refused_if_a_mount_would_be_lost(
    lab: Lab, box: dict[str, Any]
) -> None:
    task = {"tenant": "acme", "name": "box", "confirm": "box"}
    message = refused(lab, "restore", **task)["msg"]
    assert "mp0 would be lost" in message
    assert "keep=copy" in message
    result = restore(lab, name="box", confirm="box", keep="none")
    assert any("no data of mp0" in text for text in result["warnings"])
    assert "mp0" in config(lab, box, "lxc")


def test_an_overwritten_container_needs_room_for_both_states(lab: Lab, box: dict[str, Any]) -> None:
    """API2/LXC.pm, create_vm: the new volumes are created before the old ones are destroyed."""
    data = {"storage": "vg", "type": "lvm", "vgname": "pve", "content": "rootdir"}
    lab.client.write("POST", "storage", data=data)
    free = lab.client.get("nodes", "pve1", "storage", "vg", "status")["avail"]
    size = int(free * 0.6) >> 30
    large = container(lab, hostname="large", rootfs=f"vg:{size}", tags="tenant_acme")
    back_up(lab, large)
    task = {"tenant": "acme", "name": "large", "confirm": "large", "keep": "none"}
    assert "storage vg" in refused(lab, "restore", **task)["msg"]


def test_a_path_of_the_node_in_an_archive_is_refused_before_the_first_write(
    lab: Lab, box: dict[str, Any]
) -> None:
    """API2/LXC.pm, create_vm: only root@pam, and no token of it, restores such a mount."""
    lab.simulator.steer(f"/containers/{box['vmid']}", {"config": {"mp2": "/srv,mp=/srv"}})
    back_up(lab, box)
    for task in ({"new_name": "box2"}, {"confirm": "box", "keep": "none"}):
        message = refused(lab, "restore", tenant="acme", name="box", **task)["msg"]
        assert "mp2 in the archive is a path of the node" in message
