# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Volumes of other guests and of other tenants, in every option that names a volume.

PVE checks only the rights of the caller on the guest whose VMID is in the name (pve-storage:
Storage.pm, check_volume_access), so an administrator may attach any volume.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.modules.container_lab import add_container
from tests.modules.estate_lab import Lab, open_lab

CONTAINER: dict[str, Any] = {"source": "debian-13-standard", "default_storage": "ceph"}
VM: dict[str, Any] = {"source": "debian-13"}
THEIRS, MINE = 4901, 4902
ROOT = f"ceph:vm-{THEIRS}-disk-0"
SHARED = f"ceph:vm-{MINE}-data"  # has the VMID of a guest of acme, and is used by globex


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with open_lab("--lag-s", "0", "--auth-delay-s", "0") as lab:
        for vmid, tenant in ((THEIRS, "globex"), (MINE, "acme")):
            options = {"hostname": f"of-{tenant}", "tags": f"tenant_{tenant}"}
            add_container(lab, vmid, node="pve2", running=tenant == "globex", **options)
        lab.run("volume", volume=SHARED, node="pve1", vmid=MINE, size="1G")
        body = {"config": {"mp0": f"{SHARED},mp=/x,size=1G"}}
        lab.simulator.ask("PUT", f"/containers/{THEIRS}", body)
        yield lab


def refused(lab: Lab, module: str, **options: Any) -> dict[str, Any]:
    """Return the failure, which is the same in check mode and comes before any write."""
    lab.simulator.reset_log()
    foreseen = lab.run(module, check=True, **options)
    result = lab.run(module, **options)
    assert result.get("failed"), result
    assert foreseen["msg"] == result["msg"]
    assert lab.simulator.writes() == []
    return result


NAMING: list[tuple[str, dict[str, Any]]] = [
    ("container", {"mounts": [{"name": "mp5", "path": "/x", "volume": "VOLUME"}]}),
    ("vm", {"disks": [{"name": "scsi5", "volume": "VOLUME"}]}),
    ("vm", {"disks": [{"name": "sata1", "iso": "VOLUME"}]}),
    ("vm", {"disks": [{"name": "scsi5", "import_from": "VOLUME", "size": "9G"}]}),
    ("vm", {"options": {"efidisk0": {"file": "VOLUME", "efitype": "4m"}}}),
]


def naming(volume: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with the volume in the place of the word."""

    def replaced(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: replaced(one) for key, one in value.items()}
        if isinstance(value, list):
            return [replaced(one) for one in value]
        return volume if value == "VOLUME" else value

    return dict(replaced(options))


@pytest.mark.parametrize("volume", [ROOT, SHARED])
@pytest.mark.parametrize(("module", "options"), NAMING, ids=str)
@pytest.mark.parametrize("new", [True, False])
def test_volume_of_another_tenant_is_refused(
    lab: Lab, module: str, options: dict[str, Any], volume: str, new: bool
) -> None:
    own = VM if module == "vm" else CONTAINER
    name = f"{module}-new" if new else f"{module}-there"
    if not new:
        made = lab.run(module, name=name, tenant="acme", **own)
        assert not made.get("failed"), made
    task = {"name": name, "tenant": "acme", **own, **naming(volume, options)}
    result = refused(lab, module, **task)
    assert result["error"]["reason"] == "foreign tenant", result["msg"]
    assert "of-globex" not in result["msg"]
    task["name"] = "in-a-list"
    tenant = task.pop("tenant")
    listed = refused(lab, "vms", tenant=tenant, **{f"{module}s": [task]})
    (row,) = listed["vms"]
    assert row["error"]["reason"] == "foreign tenant", row


@pytest.mark.parametrize(("module", "options"), [one for one in NAMING if "import" not in str(one)])
def test_a_volume_in_use_is_not_attached_without_a_tenant(
    lab: Lab, module: str, options: dict[str, Any]
) -> None:
    own = VM if module == "vm" else CONTAINER
    result = refused(lab, module, name="without-tenant", **own, **naming(ROOT, options))
    assert result["error"]["reason"] == "in use", result["msg"]
    assert f"guest {THEIRS} (of-globex) as rootfs uses it" in result["msg"]


def test_a_volume_of_the_tenant_is_attached(lab: Lab) -> None:
    volume = f"ceph:vm-{MINE}-free"
    lab.run("volume", volume=volume, node="pve1", vmid=MINE, size="1G")
    mount = {"name": "mp1", "path": "/free", "volume": volume}
    options: dict[str, Any] = {"vmid": MINE, "tenant": "acme", "mounts": [mount]}
    assert lab.run("container", **options)["changed"]
    assert not lab.run("container", **options)["changed"]
    other = {"name": "shares", "tenant": "acme", **CONTAINER}
    assert refused(lab, "container", **other, mounts=[mount])["error"]["reason"] == "in use"
    both = lab.run("container", **other, mounts=[{**mount, "shared": True}])
    assert not both.get("failed"), both


def test_a_mount_of_a_missing_volume_is_refused(lab: Lab) -> None:
    """PVE accepts the option for a container that is off, which then does not start
    (pve-container: LXC/Config.pm, apply_pending_mountpoint; LXC.pm, mount_all).
    """
    mount = {"name": "mp7", "path": "/gone", "volume": f"ceph:vm-{MINE}-gone"}
    for options in ({"vmid": MINE}, {"name": "new-one", **CONTAINER}):
        result = refused(lab, "container", **options, tenant="acme", mounts=[mount])
        assert result["error"]["reason"] == "unknown volume", result["msg"]


def converged(lab: Lab, **options: Any) -> dict[str, Any]:
    """Run in check mode, then twice: check mode foresees the diff, and the second run is silent."""
    lab.simulator.reset_log()
    foreseen = lab.run("vm", check=True, **options)
    assert lab.simulator.writes() == []
    made = lab.run("vm", **options)
    assert not made.get("failed"), made
    assert made["changed"]
    assert made["diff"] == foreseen["diff"]
    again = lab.run("vm", **options)
    assert not again["changed"], again["diff"]
    return dict(made["vm"])


def test_a_detached_disk_is_attached_again(lab: Lab) -> None:
    """PVE drops the unused entry of a volume that is attached (qemu-server: QemuServer.pm,
    write_vm_config), and notes the size of the volume (API2/Qemu.pm, create_disks).
    """
    disks = [{"name": "scsi0", "size": "2G", "storage": "ceph"}, {"name": "scsi1", "size": "3G"}]
    vm = converged(lab, name="two-disks", tenant="acme", disks=disks, default_storage="ceph")
    volume = lab.config(vm)["scsi1"].partition(",")[0]
    own = {"name": "two-disks", "tenant": "acme"}
    converged(lab, **own, disks=[{"name": "scsi1", "state": "detached"}])
    assert lab.config(vm)["unused0"] == volume
    back = [{"name": "virtio3", "volume": volume, "cache": "writeback"}]
    converged(lab, **own, disks=back)
    config = lab.config(vm)
    assert config["virtio3"] == f"{volume},cache=writeback,size=3G"
    assert not any(key.startswith("unused") for key in config)
    converged(lab, **own, disks=[{**back[0], "cache": "none"}])


def test_a_new_vm_gets_an_existing_disk(lab: Lab) -> None:
    volume = "ceph:vm-4711-kept"
    lab.run("volume", volume=volume, node="pve1", vmid=4711, size="2G")
    disks = [{"name": "scsi0", "size": "1G"}, {"name": "scsi1", "volume": volume}]
    vm = converged(lab, name="with-data", disks=disks, default_storage="ceph")
    assert lab.config(vm)["scsi1"] == f"{volume},size=2G"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"size": "4G"}, "is given beside an existing volume"),
        ({"storage": "ceph"}, "is given beside an existing volume"),
        ({"iso": "local:iso/x.iso"}, "is given beside an existing volume"),
        ({"volume": "ceph:vm-4711-missing"}, "does not have it"),
        ({"name": "scsi0"}, "not ceph:vm-4711-there. Name a free slot"),
    ],
)
def test_disk_that_cannot_be_attached(lab: Lab, options: dict[str, Any], why: str) -> None:
    there = "ceph:vm-4711-there"
    lab.run("volume", volume=there, node="pve1", vmid=4711, size="2G")
    own: dict[str, Any] = {"name": "cannot", "default_storage": "ceph"}
    lab.run("vm", **own, disks=[{"name": "scsi0", "size": "1G"}])
    disk = {"name": "scsi1", "volume": there, **options}
    assert why in refused(lab, "vm", **own, disks=[disk])["msg"]


SLOTS = [("vm", "disks", "scsi6"), ("vm", "disks", "unused0"), ("container", "mounts", "unused3")]


@pytest.mark.parametrize(("module", "option", "slot"), SLOTS)
def test_a_disk_that_another_guest_uses_is_not_destroyed(
    lab: Lab, module: str, option: str, slot: str
) -> None:
    """PVE looks at the configuration of the guest itself only (qemu-server: QemuServer.pm,
    try_deallocate_drive; pve-container: LXC.pm, delete_mountpoint_volume).
    """
    own = VM if module == "vm" else CONTAINER
    name = f"gives-{module}-{slot}"
    vmid = lab.run(module, name=name, node="pve1", **own)[module]["vmid"]
    volume = f"ceph:vm-{vmid}-data"
    lab.run("volume", volume=volume, node="pve1", vmid=vmid, size="1G")
    where = "vms" if module == "vm" else "containers"
    lab.simulator.ask("PUT", f"/{where}/{vmid}", {"config": {slot: volume}})
    body: dict[str, Any] = {"config": {"mp4": f"{volume},mp=/y,size=1G"}}
    lab.simulator.ask("PUT", f"/containers/{THEIRS}", body)
    task: dict[str, Any] = {"name": name, option: [{"name": slot, "state": "absent"}]}
    result = refused(lab, module, **task)
    assert f"guest {THEIRS} uses {volume} as mp4" in result["msg"]
    lab.simulator.ask("PUT", f"/containers/{THEIRS}", {"config": {"mp4": None}})
    assert lab.run(module, **task)["changed"]
    assert not lab.run(module, **task)["changed"]


def test_a_volume_of_another_guest_leaves_the_configuration_and_stays(lab: Lab) -> None:
    """PVE destroys no volume of another guest, so nothing is refused."""
    vmid = lab.run("vm", name="borrows", node="pve1", **VM)["vm"]["vmid"]
    lab.simulator.ask("PUT", f"/vms/{vmid}", {"config": {"scsi6": f"{ROOT},size=1G"}})
    task: dict[str, Any] = {"name": "borrows", "disks": [{"name": "scsi6", "state": "absent"}]}
    assert lab.run("vm", **task)["changed"]
    found = lab.client.get("nodes", "pve1", "storage", "ceph", "content")
    assert ROOT in [row["volid"] for row in found]


def _given(lab: Lab, module: str, name: str, **options: Any) -> tuple[int, str]:
    """Create a guest with one more volume; return its VMID and the volume."""
    own = VM if module == "vm" else CONTAINER
    vmid = lab.run(module, name=name, node="pve1", **own, **options)[module]["vmid"]
    volume = f"ceph:vm-{vmid}-data"
    lab.run("volume", volume=volume, node="pve1", vmid=vmid, size="1G")
    return vmid, volume


@pytest.mark.parametrize("place", ["mp4", "unused3", "mp4 in snapshot 'kept'"])
@pytest.mark.parametrize("module", ["vm", "container"])
def test_a_guest_whose_volume_another_guest_uses_is_not_removed(
    lab: Lab, module: str, place: str
) -> None:
    """PVE destroys each volume with the VMID, also those that the configuration does not name, and
    looks at no other guest (qemu-server: QemuServer.pm, destroy_vm; pve-container: LXC.pm,
    destroy_lxc_container).
    """
    slot = place.partition(" ")[0]
    name = f"lends-{module}-{len(place)}"
    vmid, volume = _given(lab, module, name)
    path = f"/containers/{THEIRS}"
    snapshots = ("nodes", "pve2", "lxc", THEIRS, "snapshot")
    lab.simulator.ask("PUT", path, {"config": {slot: f"{volume},mp=/y,size=1G"}})
    if "snapshot" in place:
        lab.client.task("POST", *snapshots, data={"snapname": "first"})
        lab.client.task("POST", *snapshots, data={"snapname": "kept"})
        # The present state then follows neither of them.
        lab.client.task("POST", *snapshots, "first", "rollback")
        lab.client.task("DELETE", *snapshots, "first")
        lab.simulator.ask("PUT", path, {"config": {slot: None}})
    item: dict[str, Any] = {"name": name, "state": "absent"}
    text = f"guest {THEIRS} uses one of its volumes as {place}"
    assert text in refused(lab, module, **item)["msg"]
    assert text in refused(lab, "vms", **{f"{module}s": [item]})["msg"]
    if "snapshot" in place:
        lab.client.task("DELETE", *snapshots, "kept")
    # A deleted snapshot leaves its disks as unused ones (AbstractConfig.pm, snapshot_delete).
    lab.simulator.ask("PUT", path, {"config": {slot: None, "unused0": None}})
    assert lab.run(module, **item)["changed"]
    assert not lab.run(module, **item)["changed"]


def test_the_removal_of_a_guest_reads_each_other_guest_once(lab: Lab) -> None:
    """A list that removes several guests reads the others once for all of them."""
    names = ["leaves-1", "leaves-2", "leaves-3"]
    for name in names:
        lab.run("vm", name=name, node="pve1", **VM)
    lab.simulator.reset_log()
    items = [{"name": name, "state": "absent"} for name in names]
    assert not lab.run("vms", check=True, vms=items).get("failed")
    asked = [row["path"] for row in lab.simulator.log() if row["path"].endswith("/pending")]
    assert f"/nodes/pve2/lxc/{THEIRS}/pending" in asked
    assert len(asked) == len(set(asked))


def test_a_guest_that_cannot_be_read_is_a_warning_of_a_removal(lab: Lab) -> None:
    lab.run("vm", name="leaves-late", node="pve1", **VM)
    path = f"^/nodes/pve2/lxc/{THEIRS}/pending$"
    lab.simulator.fault(method="GET", path=path, status=500, message="no reason", times=None)
    result = lab.run("vm", name="leaves-late", state="absent")
    lab.simulator.clear_faults()
    assert result["changed"]
    assert f"not known whether guest {THEIRS} uses its volumes" in str(result["warnings"])
