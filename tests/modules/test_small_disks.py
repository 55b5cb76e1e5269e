# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks below 1 GiB, messages about sizes, and the bandwidth of moves."""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.container_lab import add_container
from tests.modules.estate_lab import Lab

CT: dict[str, Any] = {"source": "debian-13-standard", "default_storage": "ceph"}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def converged(lab: Lab, module: str, **options: Any) -> dict[str, Any]:
    """Run in check mode, then twice; the second run changes nothing."""
    foreseen = lab.run(module, check=True, **options)
    made = lab.run(module, **options)
    assert made["changed"], made
    assert made["diff"]["after"] == foreseen["diff"]["after"]
    assert not lab.run(module, **options)["changed"]
    return dict(made[module])


def test_small_disks_of_a_vm(lab: Lab) -> None:
    """PVE takes decimals of GiB for a new disk (qemu-server: QemuServer/Drive.pm, NEW_DISK_RE)."""
    disks = [{"name": "scsi0", "size": "512M", "storage": "ceph"}, {"name": "scsi1", "size": 0.125}]
    vm = converged(lab, "vm", name="small", disks=disks, default_storage="ceph")
    assert lab.config(vm)["scsi0"].endswith("size=512M")
    assert lab.config(vm)["scsi1"].endswith("size=128M")
    converged(lab, "vm", name="small", disks=[{"name": "scsi0", "size": "768M"}])
    shrink = lab.refused(name="small", disks=[{"name": "scsi0", "size": "640M"}])
    assert "it has 768 MiB and cannot shrink to 640 MiB" in shrink["msg"]


def test_small_volumes_of_a_container(lab: Lab) -> None:
    """PVE rounds to MiB (pve-container: LXC.pm, create_disks)."""
    mounts = [{"path": "/data", "size": "100M"}]
    ct = converged(lab, "container", name="small", rootfs={"size": "512M"}, mounts=mounts, **CT)
    config = lab.client.get("nodes", ct["node"], "lxc", ct["vmid"], "config")
    assert config["rootfs"].endswith("size=512M")
    assert config["mp0"].endswith("size=100M")
    converged(lab, "container", name="small", rootfs={"size": "600M"})


def test_small_volumes_that_exist_are_changed_and_exported(lab: Lab) -> None:
    add_container(lab, 4701, hostname="tiny", mp0="ceph:vm-4701-disk-1,mp=/x,size=300M")
    task = {"vmid": 4701, "mounts": [{"name": "mp0", "size": "300M", "backup": True}]}
    converged(lab, "container", **task)
    converged(lab, "container", vmid=4701, mounts=[{"name": "mp0", "size": "1G"}])
    lab.vm(name="tiny-vm", memory="128M", disks=[{"size": "512M", "storage": "ceph"}])
    estate = lab.run("estate_info", vms=["tiny-vm"])
    assert "smaller than" not in estate["text"]
    (vm,) = estate["estate"]["provision_vms"]
    assert vm["disks"][0]["size"] == "512M"
    assert not lab.run("vms", check=True, vms=[vm])["changed"]


def test_sizes_of_disks_are_not_shown_in_bytes(lab: Lab) -> None:
    disk: dict[str, Any] = {"volume": "ceph:vm-4711-data", "node": "pve1", "vmid": 4711}
    lab.run("volume", **disk, size="5G")
    failure = lab.run("volume", **disk, size="10G")
    assert "it has 5 GiB, not 10 GiB" in failure["msg"]


@pytest.mark.parametrize("limit", [0, 51200])
def test_the_bandwidth_of_a_move_is_limited(lab: Lab, limit: int) -> None:
    """bwlimit of the requests (qemu-server: API2/Qemu.pm; pve-container: API2/LXC.pm)."""
    lab.vm(name="moves", disks=[{"name": "scsi0", "size": "1G", "storage": "ceph"}])
    disk = {"name": "scsi0", "storage": "local-lvm", "bwlimit": limit}
    lab.simulator.reset_log()
    converged(lab, "vm", name="moves", disks=[disk])
    (move,) = [one for one in lab.simulator.writes() if one["path"].endswith("/move_disk")]
    assert move["params"]["bwlimit"] == str(limit)
    lab.run("container", name="moves-too", **CT)
    lab.simulator.reset_log()
    root = {"storage": "local-lvm", "bwlimit": limit}
    converged(lab, "container", name="moves-too", rootfs=root)
    (move,) = [one for one in lab.simulator.writes() if one["path"].endswith("/move_volume")]
    assert move["params"]["bwlimit"] == str(limit)
