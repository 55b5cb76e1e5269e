# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A VM for which a node has no memory, or a storage no room, is refused before anything is written.

PVE makes such a VM and fails at its start (QEMU exited with code 1), or in the task (not enough
free space).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.modules.estate_lab import CLUSTER, TOKEN_ID, TOKEN_SECRET, Lab, connect
from tests.simulator.process import Simulator

_ZFS = {"type": "zfspool", "content": ["images"], "size": "100GiB", "used": "20GiB"}
_FILES = {"type": "dir", "content": ["images"], "size": "100GiB", "used": "20GiB"}


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Lab]:
    """The demo cluster with a volume group of 100 GiB on each node, and a small one that all
    share.
    """
    cluster = yaml.safe_load(CLUSTER.read_text())
    cluster["storages"] += [
        {
            "storage": "vg",
            "type": "lvm",
            "vgname": "vg",
            "content": ["images"],
            "size": "100GiB",
            "used": "20GiB",
        },
        {
            "storage": "san",
            "type": "lvm",
            "vgname": "san",
            "content": ["images"],
            "size": "30GiB",
            "used": "0GiB",
            "shared": True,
        },
        {
            "storage": "chain",
            "type": "lvm",
            "vgname": "chain",
            "content": ["images"],
            "size": "100GiB",
            "snapshot-as-volume-chain": 1,
        },
        # Volumes of ZFS are whole unless the storage says sparse (ZFSPoolPlugin.pm,
        # zfs_create_zvol), and files are sparse unless it preallocates them (Plugin.pm).
        {**_ZFS, "storage": "tank", "pool": "tank"},
        {**_ZFS, "storage": "sparse", "pool": "tank/sparse", "sparse": True},
        {**_FILES, "storage": "full", "path": "/srv/full", "preallocation": "full"},
        {**_FILES, "storage": "files", "path": "/srv/files"},
        {**_FILES, "storage": "state", "path": "/srv/state", "preallocation": "falloc"},
    ]
    file = tmp_path / "cluster.yml"
    file.write_text(yaml.safe_dump(cluster))
    with Simulator(
        "--cluster", str(file), "--task-ms", "default=20", "--control", "--lag-s", "0"
    ) as simulator:
        options = {
            "host": simulator.url,
            "ca_path": str(simulator.ca),
            "token_id": TOKEN_ID,
            "token_secret": TOKEN_SECRET,
        }
        with connect(options, {}) as client:
            yield Lab(simulator, client)


def fill(lab: Lab, node: str, gib: int) -> None:
    """Let something else take that much of the volume group of a node."""
    lab.simulator.steer(
        f"volumes/{node}", {"volid": "vg:vm-900-disk-0", "new": True, "size": gib << 30}
    )


def too_large(lab: Lab, **options: Any) -> str:
    """Return the message of what is refused for want of room, in check mode as in a run."""
    foreseen = lab.refused(check=True, **options)
    result = lab.refused(**options)
    assert (result["error"]["category"], result["error"]["reason"]) == (
        "QuotaExceeded",
        "no room",
    ), result
    assert foreseen["msg"] == result["msg"]
    return str(result["msg"])


@pytest.mark.parametrize("where", [{}, {"node": "pve2"}])
@pytest.mark.parametrize(
    "origin", [{"source": "debian-13"}, {"disks": [{"size": 1, "storage": "ceph"}]}]
)
def test_more_memory_than_a_node_has(
    room: Lab, name: str, where: dict[str, str], origin: dict[str, Any]
) -> None:
    message = too_large(room, name=name, memory="128G", state="started", **where, **origin)
    assert "64 GiB of memory, 128 GiB are needed" in message


def test_a_vm_that_is_not_started_may_have_more(room: Lab, name: str) -> None:
    room.vm(name=name, disks=[{"size": 1, "storage": "ceph"}], memory="128G")
    assert "128 GiB are needed" in too_large(room, name=name, state="started")


def test_a_running_vm_cannot_get_more_memory_than_its_node_has(room: Lab, name: str) -> None:
    room.vm(name=name, source="debian-13", state="started")
    assert "128 GiB are needed" in too_large(room, name=name, memory="128G")


@pytest.mark.parametrize("where", [{}, {"node": "pve1"}])
def test_a_thick_storage_must_have_all_bytes_free(
    room: Lab, name: str, where: dict[str, str]
) -> None:
    disks = [{"size": "50G", "storage": "vg"}, {"size": "31G", "storage": "vg"}]
    assert "storage vg has 80 GiB free, 81 GiB are needed" in too_large(
        room, name=name, disks=disks, **where
    )


def test_a_thin_storage_may_be_given_several_times(room: Lab, name: str) -> None:
    def disks(size: str) -> list[dict[str, str]]:
        return [{"size": size, "storage": "local-lvm"}]

    message = too_large(room, name=name, disks=disks("4801G"))
    allowed = "480 GiB free x 10 (storage_overcommit) = 4800 GiB for new disks"
    assert f"local-lvm has {allowed}, 4801 GiB are needed" in message
    exact = {"storage_overcommit": 1.0}
    assert "480 GiB free" in too_large(room, name=name, disks=disks("481G"), placement=exact)
    assert room.vm(name=name, disks=disks("481G"), check=True)["changed"]


def test_growth_and_moves(room: Lab, name: str) -> None:
    vm = room.vm(
        name=name, disks=[{"name": "scsi0", "size": "40G", "storage": "ceph"}], node="pve3"
    )["vm"]

    def refused(**disk: str) -> str:
        return too_large(room, vmid=vm["vmid"], disks=[{"name": "scsi0", **disk}])

    assert "storage vg has 80 GiB free, 81 GiB are needed" in refused(size="81G", storage="vg")
    assert "storage san has 30 GiB free, 40 GiB are needed" in refused(storage="san")
    room.vm(vmid=vm["vmid"], disks=[{"name": "scsi0", "size": "50G", "storage": "vg"}])
    assert "81 GiB are needed" in refused(size="131G")
    fill(room, "pve2", 70)
    assert "storage vg has 10 GiB free, 50 GiB are needed" in too_large(
        room, vmid=vm["vmid"], node="pve2"
    )


@pytest.mark.parametrize("state", ["stopped", "started"])
def test_a_disk_leaves_a_full_storage_before_it_grows(room: Lab, name: str, state: str) -> None:
    """The task asks for a larger disk elsewhere, because there is no room where it is."""
    disk = {"name": "scsi0", "size": "40G", "storage": "vg"}
    vm = room.vm(name=name, disks=[disk], node="pve3", state=state)["vm"]
    fill(room, "pve3", 40)
    moved = room.vm(vmid=vm["vmid"], disks=[{**disk, "size": "60G", "storage": "ceph"}])["vm"]
    assert moved["config"]["scsi0"]["storage"] == "ceph"
    assert moved["config"]["scsi0"]["size"] == "60G"


def test_a_qcow2_volume_of_lvm_counts_against_a_quota_while_it_is_inactive(
    room: Lab, name: str
) -> None:
    """It has an approximate size only (pve-storage, LVMPlugin.pm, list_images)."""
    disks = [
        {"name": "scsi0", "size": "1G", "storage": "ceph"},
        {"name": "scsi1", "size": "4G", "storage": "chain", "format": "qcow2"},
    ]
    quota: dict[str, Any] = {"tenant": "acme", "quota": {"disk": "11G"}, "memory": "256M"}
    room.vm(name=f"{name}-1", node="pve1", disks=disks, state="started", **quota)
    room.vm(name=f"{name}-1", tenant="acme", state="stopped", shutdown_timeout=0)
    volumes = room.client.get("nodes", "pve1", "storage", "chain", "content")
    assert "size" not in volumes[0]
    room.vm(name=f"{name}-2", node="pve1", disks=disks, **quota)
    refused = room.refused(name=f"{name}-3", node="pve1", disks=disks, **quota)
    assert refused["error"]["category"] == "QuotaExceeded"
    assert 10 << 30 <= refused["error"]["quota"]["disk"]["used"] < 11 << 30


def test_a_node_without_room_is_not_chosen(room: Lab, name: str) -> None:
    fill(room, "pve1", 70)
    disks = [{"size": "20G", "storage": "vg"}]
    made = room.vm(name=name, disks=disks, placement={"nodes": ["pve1"]})
    assert made["vm"]["node"] != "pve1"
    assert "storage vg has 10 GiB free, 20 GiB are needed" in made["placement"]["refused"]["pve1"]


def test_a_full_clone_needs_room_and_a_linked_one_does_not(room: Lab, name: str) -> None:
    template = f"{name[:30]}-t"
    room.vm(name=template, disks=[{"size": "40G", "storage": "vg"}], state="template", node="pve1")
    fill(room, "pve1", 50)
    assert "40 GiB are needed" in too_large(room, name=name, source=template, full=True)
    # A copy of local disks is made on the template's node, wherever it goes then.
    assert "on node pve1" in too_large(room, name=name, source=template, full=True, node="pve2")
    room.simulator.reset_log()
    result = room.run("clone", name=name, source=template, storage="san")
    assert result["error"]["category"] == "QuotaExceeded", result
    assert room.simulator.writes() == []


def test_a_linked_clone_needs_no_room(room: Lab, name: str) -> None:
    template = f"{name[:30]}-t"
    room.vm(
        name=template,
        disks=[{"size": "40G", "storage": "local-lvm"}],
        state="template",
        node="pve1",
    )
    room.simulator.steer(
        "volumes/pve1", {"volid": "local-lvm:vm-900-disk-0", "new": True, "size": 479 << 30}
    )
    assert "40 GiB are needed" in too_large(room, name=name, source=template, full=True)
    assert room.vm(name=name, source=template)["changed"]


def test_what_the_list_takes_before_counts(room: Lab, name: str) -> None:
    def one(number: int, **more: Any) -> dict[str, Any]:
        return {
            "name": f"{name[:30]}-{number}",
            "disks": [{"size": "30G", "storage": "vg"}],
            "node": "pve2",
            **more,
        }

    room.simulator.reset_log()
    result = room.run("vms", vms=[one(1), one(2), one(3)], check=True)
    assert [(row.get("error") or {}).get("category") for row in result["vms"]] == [
        None,
        None,
        "QuotaExceeded",
    ], result
    assert "60 GiB for other VMs of this run" in str(result["vms"][2])
    assert room.simulator.writes() == []


def test_memory_of_a_list_is_spread_by_what_is_free(room: Lab, name: str) -> None:
    def one(number: int) -> dict[str, Any]:
        disks = [{"size": 1, "storage": "ceph"}]
        placement = {"strategy": "first"}
        goal = {"name": f"{name[:30]}-{number}", "memory": "40G", "state": "started"}
        return {**goal, "disks": disks, "placement": placement}

    result = room.run("vms", vms=[one(number) for number in range(4)], check=True)
    nodes = [(row.get("vm") or {}).get("node") for row in result["vms"]]
    assert nodes == ["pve1", "pve2", "pve3", None], result
    assert result["vms"][3]["error"]["category"] == "QuotaExceeded"


@pytest.mark.parametrize("storage", ["tank", "full"])
def test_a_storage_that_allocates_whole_volumes_must_have_all_bytes_free(
    room: Lab, name: str, storage: str
) -> None:
    disks = [{"name": "scsi0", "size": "81G", "storage": storage}]
    assert f"storage {storage} has 80 GiB free, 81 GiB are needed" in too_large(
        room, name=name, disks=disks
    )
    vm = room.vm(name=name, disks=[{**disks[0], "size": "50G"}])["vm"]
    assert "81 GiB are needed" in too_large(
        room, vmid=vm["vmid"], disks=[{**disks[0], "size": "131G"}]
    )


@pytest.mark.parametrize("storage", ["sparse", "files"])
def test_a_storage_of_the_same_kind_that_is_thin(room: Lab, name: str, storage: str) -> None:
    disks = [{"size": "81G", "storage": storage}]
    assert room.vm(name=name, disks=disks, check=True)["changed"]
    exact = {"storage_overcommit": 1.0}
    assert "80 GiB free" in too_large(room, name=name, disks=disks, placement=exact)


def test_definitions_of_storages_are_read_only_where_they_decide(room: Lab, name: str) -> None:
    def asked(size: str) -> bool:
        room.simulator.reset_log()
        room.vm(name=name, disks=[{"size": size, "storage": "sparse"}], check=True)
        return "/storage" in [request["path"] for request in room.simulator.log()]

    assert not asked("80G")
    assert asked("81G")


def test_the_memory_in_a_snapshot_needs_room(room: Lab, name: str) -> None:
    """Twice the memory and 500 MiB, on the storage that PVE takes (qemu-server: QemuConfig.pm,
    __snapshot_save_vmstate, find_vmstate_storage).
    """
    made = room.vm(
        name=name,
        disks=[
            {"size": "1G", "storage": "files", "format": "qcow2"},
            {"size": "1G", "storage": "state", "format": "qcow2"},
        ],
        memory="40G",
        state="started",
        node="pve1",
    )["vm"]
    wanted = {"vmid": made["vmid"], "snapshot": "ram", "vmstate": True}
    foreseen = room.run("snapshot", **wanted, check=True)
    room.simulator.reset_log()
    result = room.run("snapshot", **wanted)
    assert room.simulator.writes() == []
    assert foreseen["msg"] == result["msg"]
    assert "storage state has 79 GiB free, 80.5 GiB are needed" in result["msg"]
    assert (result["error"]["category"], result["error"]["reason"]) == ("QuotaExceeded", "no room")
    # Without its memory, and with the memory elsewhere, it can be taken.
    assert room.run("snapshot", **{**wanted, "vmstate": False}, check=True)["changed"]
    path = ("nodes", made["node"], "qemu", made["vmid"], "config")
    room.client.write("PUT", *path, data={"vmstatestorage": "sparse"})
    taken = room.run("snapshot", **wanted)
    assert taken["changed"], taken
    assert taken["vms"][0]["snapshots"][0]["vmstate"]


def test_hibernation_needs_room(room: Lab, name: str) -> None:
    room.vm(
        name=name,
        disks=[{"size": "1G", "storage": "vg"}],
        memory="40G",
        state="started",
        node="pve1",
    )
    assert "storage vg has 79 GiB free, 80.5 GiB are needed" in too_large(
        room, name=name, state="hibernated"
    )
    room.vm(name=name, memory="30G", reboot="always")
    room.vm(name=name, state="hibernated")
