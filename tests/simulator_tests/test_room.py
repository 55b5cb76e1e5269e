"""Volumes beyond the room of a storage, and logical volumes whose size is not known.

Sources: pve-storage, LVMPlugin.pm, ZFSPoolPlugin.pm, Plugin.pm, Common.pm; a full directory was
seen on PVE 9.2.11.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.simulator.core.state import Storage
from tests.simulator.process import Simulator
from tests.simulator.volumes.space import whole_size
from tests.simulator_tests.client import Client

CLUSTER = """
nodes: [{name: pve1, local: true, cpus: 8, memory: 32GiB}, {name: pve2, cpus: 8, memory: 32GiB}]
bridges: [{iface: vmbr0}]
storages:
  - {storage: local, type: dir, path: /var/lib/vz, content: [iso, images, import], size: 100GiB,
    used: 1GiB}
  - {storage: thick, type: lvm, vgname: vg, content: [images], size: 10GiB, used: 1GiB}
  - {storage: chain, type: lvm, vgname: san, shared: 1, snapshot-as-volume-chain: 1, content:
    [images], size: 40GiB,
     used: 1GiB}
  - {storage: tank, type: zfspool, pool: tank, content: [images], size: 10GiB, used: 1GiB}
  - {storage: thin, type: zfspool, pool: thin, sparse: 1, content: [images], size: 10GiB, used:
    1GiB}
  - {storage: pool, type: lvmthin, vgname: pve, thinpool: data, content: [images], size: 10GiB,
    used: 1GiB}
  - {storage: full, type: dir, path: /srv/full, preallocation: full, content: [images], size: 10GiB,
    used: 1GiB}
  - {storage: worn, type: dir, path: /srv/worn, content: [images], size: 10GiB, used: 10GiB}
tokens:
  - {id: "root@pam!fleet", secret: 00000000-0000-4000-8000-0000000000f1, privsep: false}
users: [{userid: root@pam}]
"""
LVM = (
    "lvcreate 'vg/{}' error:   Volume group \"vg\" has insufficient free space ({} extents): {}"
    " required."
)
NO_IMAGE = (
    "unable to create image: command '/usr/bin/qemu-img create -o '{}' -f {} {} {}K' failed: exit"
    " code 1"
)
NOT_GROWN = (
    "command '/usr/bin/qemu-img resize '--preallocation=full' -f raw {} {}' failed: exit code 1"
)
NO_EXTENTS = (
    "error resizing volume '{}':   Insufficient free space: {} extents needed, but only {}"
    " available"
)
NO_SPACE = "qemu-img: {}: Could not resize file: No space left on device"
GIB = 1 << 30


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulator]:
    """A cluster with storages of every kind, which are small."""
    file: Path = tmp_path_factory.mktemp("room") / "cluster.yml"
    file.write_text(CLUSTER, encoding="utf-8")
    with Simulator("--cluster", file, "--lag-s", "0", "--auth-delay-s", "0") as sim:
        yield sim


def free(pve: Client, store: str) -> int:
    """What is left on the storage."""
    return int(pve.get(f"/nodes/pve1/storage/{store}/status")["avail"])


def rows(pve: Client, store: str, node: str = "pve1") -> dict[str, dict[str, Any]]:
    """The volumes of a storage by name."""
    listed = pve.get(f"/nodes/{node}/storage/{store}/content")
    return {row["volid"].partition(":")[2]: row for row in listed}


@pytest.mark.parametrize(
    ("store", "cause"),
    [
        ("thick", LVM.format("vm-100-disk-1", 256, 512)),
        ("tank", "zfs error: cannot create 'tank/vm-100-disk-1': out of space"),
        (
            "full",
            NO_IMAGE.format(
                "preallocation=full", "raw", "/srv/full/images/100/vm-100-disk-1.raw", 2 << 20
            ),
        ),
    ],
)
def test_a_thick_storage_refuses_what_does_not_fit(pve: Client, store: str, cause: str) -> None:
    upid = pve.post("/nodes/pve1/qemu", vmid=100, scsi0=f"{store}:8", scsi1=f"{store}:2")
    assert pve.wait(upid) == f"unable to create VM 100 - {cause}"
    if store == "full":
        assert NO_SPACE.format("/srv/full/images/100/vm-100-disk-1.raw") in pve.task_log(upid)
    assert rows(pve, store) == {}
    assert pve.get("/nodes/pve1/qemu") == []
    assert free(pve, store) == 9 * GIB
    pve.create(100, scsi0=f"{store}:8", scsi1=f"{store}:1")
    assert free(pve, store) == 0


@pytest.mark.parametrize("store", ["thin", "pool", "local"])
def test_a_thin_storage_takes_more_than_it_has(pve: Client, store: str) -> None:
    path = pve.create(100, scsi0=f"{store}:200")
    pve.ok("PUT", f"{path}/resize", disk="scsi0", size="+200G")


@pytest.mark.parametrize(
    ("store", "cause"),
    [
        ("thick", NO_EXTENTS.format("/dev/vg/vm-100-disk-0", 2048, 1280)),
        (
            "tank",
            (
                "zfs error: cannot set property for 'tank/vm-100-disk-0': size is greater than"
                " available space"
            ),
        ),
        ("full", NOT_GROWN.format("/srv/full/images/100/vm-100-disk-0.raw", 12 * GIB)),
    ],
)
def test_growth_beyond_the_room_is_refused(pve: Client, store: str, cause: str) -> None:
    path = pve.create(100, scsi0=f"{store}:4")
    assert pve.do("PUT", f"{path}/resize", disk="scsi0", size="+8G") == cause
    assert "size=4G" in pve.config(path)["scsi0"]
    pve.ok("PUT", f"{path}/resize", disk="scsi0", size="+5G")
    assert free(pve, store) == 0


def test_the_file_of_a_running_machine_grows_without_being_filled(pve: Client) -> None:
    path = pve.create(100, scsi0="full:4")
    pve.ok("POST", f"{path}/status/start")
    pve.ok("PUT", f"{path}/resize", disk="scsi0", size="+8G")


def test_a_clone_or_a_move_that_does_not_fit_is_undone(pve: Client) -> None:
    path = pve.create(100, scsi0="local:5", scsi1="local:5")
    cause = LVM.format("vm-101-disk-1", 1024, 1280)
    assert (
        pve.do("POST", f"{path}/clone", newid=101, full=1, storage="thick")
        == f"clone failed: {cause}"
    )
    assert rows(pve, "thick") == {}
    assert [vm["vmid"] for vm in pve.get("/nodes/pve1/qemu")] == [100]
    pve.ok("POST", f"{path}/move_disk", disk="scsi0", storage="thick", delete=1)
    cause = LVM.format("vm-100-disk-1", 1024, 1280)
    status = pve.do("POST", f"{path}/move_disk", disk="scsi1", storage="thick", delete=1)
    assert status == f"storage migration failed: {cause}"
    assert pve.config(path)["scsi1"].startswith("local:")


def test_a_disk_that_is_added_and_does_not_fit_is_refused(pve: Client) -> None:
    path = pve.create(100)
    answer = pve.call("PUT", f"{path}/config", {"scsi0": "thick:20"})
    assert (answer.status, answer.reason) == (500, LVM.format("vm-100-disk-0", 2304, 5120))
    assert "scsi0" not in pve.config(path)


def test_a_move_to_a_node_whose_storage_is_full_is_refused(pve: Client) -> None:
    path = pve.create(100, scsi0="thick:5")
    pve.create(200, node="pve2", scsi0="thick:6")
    upid = pve.post(f"{path}/migrate", target="pve2")
    assert pve.wait(upid) == "migration aborted"
    cause = LVM.format("vm-100-disk-0", 768, 1280)
    failed = f"storage migration for 'thick:vm-100-disk-0' to storage 'thick' failed - {cause}"
    assert any(failed in line for line in pve.task_log(upid))
    assert set(rows(pve, "thick")) == {"vm-100-disk-0"}


def test_a_directory_that_is_full_takes_no_image_at_all(pve: Client) -> None:
    """Seen on PVE 9.2.11: the exit status is the whole command, the log has the cause."""
    upid = pve.post("/nodes/pve1/qemu", vmid=100, scsi0="worn:1,format=qcow2")
    image = "/srv/worn/images/100/vm-100-disk-0.qcow2"
    cause = NO_IMAGE.format("preallocation=metadata", "qcow2", image, 1 << 20)
    assert pve.wait(upid) == f"unable to create VM 100 - {cause}"
    assert NO_SPACE.format(image) in pve.task_log(upid)


# -- qcow2 images in logical volumes ---------------------------------------------------------------


def test_the_volume_for_an_image_has_room_for_its_tables() -> None:
    """`qemu-img measure` says 34365243392 fully allocated bytes for an image of 32 GiB.

    LVM gives out whole extents.
    """
    storage = Storage("chain", "lvm", {"snapshot-as-volume-chain": "1"}, 0, 0)
    assert whole_size(storage, "qcow2", 32 * GIB) == -(-34365243392 // (4 << 20)) * (4 << 20)
    assert whole_size(storage, "raw", 540672) == 4 << 20


def test_an_inactive_image_has_an_approximate_size_only(pve: Client) -> None:
    path = pve.create(100, scsi0="chain:4", memory=512)
    name = "vm-100-disk-0.qcow2"
    assert pve.config(path)["scsi0"] == f"chain:{name},size=4G"
    row = rows(pve, "chain")[name]
    assert (row["size"], row["format"], row["vmid"]) == (4 * GIB, "qcow2", 100)
    assert "approximate-size" in rows(pve, "chain", "pve2")[name]

    pve.ok("POST", f"{path}/status/start")
    pve.ok("POST", f"{path}/snapshot", snapname="s1", vmstate=1)
    saved = rows(pve, "chain")["vm-100-state-s1"]
    assert (saved["size"], saved["format"]) == ((2 * 512 + 500) << 20, "raw")
    pve.ok("POST", f"{path}/status/stop")
    row = rows(pve, "chain")[name]
    assert "size" not in row
    assert 4 * GIB < row["approximate-size"] < 4 * GIB + (16 << 20)
    answer = pve.call("GET", f"/nodes/pve1/storage/chain/content/{name}")
    assert answer.reason == f"volume_size_info on 'chain:{name}' failed - no format"
    pve.ok("POST", f"{path}/status/start")
    assert rows(pve, "chain")[name]["size"] == 4 * GIB


def test_a_machine_that_moves_takes_its_active_volume_along(pve: Client) -> None:
    path = pve.create(100, scsi0="chain:1")
    pve.ok("POST", f"{path}/status/start")
    pve.ok("POST", f"{path}/migrate", target="pve2", online=1)
    assert "size" in rows(pve, "chain", "pve2")["vm-100-disk-0.qcow2"]
    assert "approximate-size" in rows(pve, "chain")["vm-100-disk-0.qcow2"]


def test_a_chain_has_snapshots_and_goes_back_to_the_newest_only(pve: Client) -> None:
    path = pve.create(100, scsi0="chain:1")
    pve.ok("POST", f"{path}/snapshot", snapname="s1")
    pve.ok("POST", f"{path}/snapshot", snapname="s2")
    status = pve.do("POST", f"{path}/snapshot/s1/rollback")
    assert (
        status == "can't rollback, 's1' is not most recent snapshot on 'chain:vm-100-disk-0.qcow2'"
    )
    pve.ok("POST", f"{path}/snapshot/s2/rollback")
    raw = pve.create(101, scsi0="thick:1")
    assert pve.do("POST", f"{raw}/snapshot", snapname="s1") == "snapshot feature is not available"
