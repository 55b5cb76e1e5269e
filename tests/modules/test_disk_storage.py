# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Modules disk_storage and disk_storage_info against the simulator, which follows pve-storage:
PVE/API2/Disks/{ZFS,LVM,LVMThin,Directory}.pm.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.estate_lab import Lab
from tests.modules.table_lab import done, refused

LINK = "/dev/disk/by-id/ata-Demo_Disk_"
TANK: dict[str, Any] = {
    "node": "pve2",
    "type": "zfs",
    "name": "tank",
    "raidlevel": "mirror",
    "disks": ["/dev/sdb", f"{LINK}C2"],
}
GONE: dict[str, Any] = {"node": "pve2", "type": "zfs", "name": "tank", "state": "absent"}
CLEAN: dict[str, Any] = {"confirm": "tank", "cleanup_config": True, "cleanup_disks": True}


def test_pool_with_a_storage_is_created_and_removed(unused: Lab) -> None:
    made = done(unused, "disk_storage", **TANK, add_storage=True)["disk_storage"]
    assert (made["raidlevel"], made["disks"]) == ("mirror", [f"{LINK}B2", f"{LINK}C2"])
    (listed,) = [
        one
        for one in unused.run("disk_storage_info", node="pve2")["disk_storages"]
        if one["type"] == "zfs"
    ]
    assert listed == made
    result = refused(unused, "disk_storage", **GONE, confirm="tank")
    assert result["error"]["storages"] == ["tank"]
    vm = unused.vm(
        name="on-tank", node="pve2", memory="128M", disks=[{"size": "1G", "storage": "tank"}]
    )
    result = refused(unused, "disk_storage", **GONE, **CLEAN)
    assert f"guest {vm['vm']['vmid']} (on-tank)" in result["msg"]
    unused.vm(name="on-tank", state="absent")
    done(unused, "disk_storage", **GONE, **CLEAN)
    assert "tank" not in [row["name"] for row in unused.run("storage_info")["storages"]]
    disks = unused.run("disk_info", node="pve2")["disks"]
    assert [disk["used"] for disk in disks[1:]] == [None, None, None]


def test_disk_of_a_pool_is_not_wiped(unused: Lab) -> None:
    """Proxmox VE itself does not refuse that (Disks.pm, wipe_disk)."""
    assert unused.run("disk_storage", **TANK)["changed"]
    root = {"user": "root@pam", "password": "fleetpw123", "token_id": None, "token_secret": None}
    task = {"node": "pve2", "disk": "/dev/sdb", "state": "wiped", "confirm": "B2", **root}
    assert "ZFS pool tank" in refused(unused, "disk", **task)["msg"]


@pytest.mark.parametrize("kind", ["lvm", "lvmthin", "directory"])
def test_others_are_created_and_removed(unused: Lab, kind: str) -> None:
    task = {"node": "pve3", "type": kind, "name": "data", "disks": ["/dev/sdb"]}
    made = done(unused, "disk_storage", **task, add_storage=True)["disk_storage"]
    assert made["disks"] == (None if kind == "directory" else [f"{LINK}B3"])
    result = refused(unused, "disk_storage", **{**task, "disks": ["/dev/sdc"]})
    assert "Proxmox VE cannot change that" in result["msg"]
    gone: dict[str, Any] = {"node": "pve3", "type": kind, "name": "data", "state": "absent"}
    done(unused, "disk_storage", **gone, **{**CLEAN, "confirm": "data"})
    listed = unused.run("disk_storage_info", node="pve3")["disk_storages"]
    assert [one["name"] for one in listed] == ["pve", "data"]  # those of the installer
    assert listed[1]["volume_group"] == "pve"


def defined(lab: Lab, name: str) -> dict[str, Any]:
    """Return the definition of a storage."""
    (found,) = lab.run("storage_info", name=name)["storages"]
    return {option: value for option, value in found.items() if option != "states"}


def without_storage(lab: Lab, task: dict[str, Any]) -> dict[str, Any]:
    """Create it with a storage, delete the definition, and return that.

    A task that failed at the definition leaves the same.
    """
    assert lab.run("disk_storage", **task, add_storage=True)["changed"]
    definition = defined(lab, task["name"])
    assert lab.run("storage", name=task["name"], state="absent")["changed"]
    return definition


@pytest.mark.parametrize("kind", ["zfs", "lvm", "lvmthin", "directory"])
def test_missing_storage_is_defined(unused: Lab, kind: str) -> None:
    """The definition is the one of Proxmox VE (PVE/API2/Disks/*.pm, storage_params)."""
    task: dict[str, Any] = {"node": "pve2", "type": kind, "name": "late", "disks": ["/dev/sdb"]}
    task.update({"raidlevel": "single"} if kind == "zfs" else {})
    definition = without_storage(unused, task)
    assert not unused.run("disk_storage", **task)["changed"]
    made = done(unused, "disk_storage", **task, add_storage=True)
    assert made["done"] == ["Create storage 'late'"]
    assert defined(unused, "late") == definition


@pytest.mark.parametrize("drop", ["before", "after"])
@pytest.mark.usefixtures("fast")
def test_lost_answer_to_the_definition(unused: Lab, drop: str) -> None:
    without_storage(unused, TANK)
    unused.simulator.fault(method="POST", path="/storage", drop=drop, times=1)
    try:
        made = unused.run("disk_storage", **TANK, add_storage=True)
    finally:
        unused.simulator.clear_faults()
    assert made["done"] == ["Create storage 'tank'"], made


def test_storage_of_the_name(unused: Lab) -> None:
    """A definition of another node gets the node; one that leads elsewhere is refused."""
    without_storage(unused, TANK)
    pool: dict[str, Any] = {"name": "tank", "type": "zfspool", "content": ["images"]}
    unused.run("storage", **pool, pool="other", nodes=["pve3"])
    result = refused(unused, "disk_storage", **TANK, add_storage=True)
    assert "storage tank exists with pool other" in result["msg"]
    unused.run("storage", name="tank", state="absent")
    unused.run("storage", **pool, pool="tank", nodes=["pve3"])
    done(unused, "disk_storage", **TANK, add_storage=True)
    found = defined(unused, "tank")
    assert (found["nodes"], found["content"]) == (["pve2", "pve3"], ["images"])


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"disks": ["/dev/sdb", "/dev/sda"]}, "in use", "is in use: partitions"),
    ({"disks": ["/dev/sdb"]}, "disks", "raidlevel=mirror needs at least 2 disks"),
    ({"raidlevel": "raid10"}, "disks", "at least 4"),
    ({"raidlevel": "single"}, "disks", "needs one disk"),
    ({"raidlevel": "single", "disks": []}, "disks", "at least 1 disks"),
    ({"raidlevel": "draid", "draid": {"data": 2, "spares": 1}}, "disks", "at least 4 disks"),
    ({"disks": ["/dev/sdb", "/dev/sdx"]}, "unknown disk", "has no disk /dev/sdx"),
    ({"type": "lvm"}, "raidlevel", "it is for type=zfs"),
    ({"name": "ceph", "add_storage": True}, "storage exists", "exists with type rbd"),
    ({"state": "absent"}, "confirm", "Set confirm=tank"),
]


@pytest.mark.parametrize(("options", "reason", "word"), REFUSED, ids=str)
def test_storage_is_refused(unused: Lab, options: dict[str, Any], reason: str, word: str) -> None:
    result = refused(unused, "disk_storage", **{**TANK, **options})
    assert result["error"]["reason"] == reason, result["msg"]
    assert word in result["msg"]


def test_sizes_are_checked_before_the_write(unused: Lab) -> None:
    """OpenZFS refuses different sizes, and LVM metadata needs space, in the task only."""
    disks = [{"devpath": f"/dev/sd{one}", "size": size << 30} for one, size in (("b", 2), ("c", 9))]
    unused.simulator.steer("/nodes/pve2", {"disks": disks})
    pair = refused(unused, "disk_storage", **{**TANK, "disks": ["/dev/sdb", "/dev/sdc"]})
    assert pair["error"]["reason"] == "different sizes"
    thin = {"node": "pve2", "type": "lvmthin", "name": "thin", "disks": ["/dev/sdb"]}
    assert refused(unused, "disk_storage", **thin)["error"]["reason"] == "too small"


def test_system_is_not_removed(unused: Lab) -> None:
    task = {"node": "pve1", "type": "lvm", "name": "pve", "state": "absent", "confirm": "pve"}
    assert "has other uses: BIOS boot, EFI" in refused(unused, "disk_storage", **task)["msg"]
    task = {**task, "name": "ceph-1", "confirm": "ceph-1"}
    assert "has 1 other logical volumes" in refused(unused, "disk_storage", **task)["msg"]
    thin = {"node": "pve1", "type": "lvmthin", "name": "data", "volume_group": "pve"}
    task = {**thin, "state": "absent", "confirm": "data"}
    assert "storages are on it: local-lvm" in refused(unused, "disk_storage", **task)["msg"]
    result = refused(unused, "disk_storage", **task, cleanup_disks=True)
    assert "has other uses" in result["msg"]
    result = refused(unused, "disk_storage", **{**thin, "name": "new"}, disks=["/dev/sdb"])
    assert result["error"]["reason"] == "volume_group"


def test_pool_without_raidlevel_is_refused(unused: Lab) -> None:
    task = {name: value for name, value in TANK.items() if name != "raidlevel"}
    assert refused(unused, "disk_storage", **task)["error"]["reason"] == "raidlevel"


def test_storages_of_all_nodes(unused: Lab) -> None:
    unused.simulator.steer("/nodes/pve3", {"online": False})
    found = unused.run("disk_storage_info")
    assert {one["node"] for one in found["disk_storages"]} == {"pve1", "pve2"}
    assert [entry["node"] for entry in found["missing"]] == ["pve3"]
