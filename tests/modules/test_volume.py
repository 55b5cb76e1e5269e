# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules volume and volume_info against the simulator, which stores what is uploaded."""

from __future__ import annotations

import hashlib
import os
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import connect
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.http.multipart import (
    MultipartBody,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Upload
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.snippets.files import (
    LocalDirectory,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.snippets.ssh import (
    NodeDirectory,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.storages.volume_users import (
    volume_pattern,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.clock import Clock
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.volume.run import (
    run_volume,
)
from tests.modules.container_lab import add_container
from tests.modules.estate_lab import Lab, open_lab

PLACE: dict[str, Any] = {"storage": "local", "node": "pve1"}
QCOW2 = b"QFI\xfb" + bytes(20) + (1 << 30).to_bytes(8, "big") + bytes(4000)


@pytest.fixture(scope="module")
def estate() -> Iterator[Lab]:
    with open_lab("--lag-s", "0", "--auth-delay-s", "0") as lab:
        yield lab


@pytest.fixture
def lab(estate: Lab) -> Iterator[Lab]:
    yield estate
    estate.simulator.clear_faults()
    for row in estate.client.get("nodes", "pve1", "storage", "local", "content"):
        if "/t-" in row["volid"]:
            estate.client.task(
                "DELETE", "nodes", "pve1", "storage", "local", "content", row["volid"]
            )


@pytest.fixture
def iso(tmp_path: Path) -> Path:
    file = tmp_path / "t-one.iso"
    file.write_bytes(b"an ISO" * 1000)
    return file


def volume(lab: Lab, *, check: bool = False, **options: Any) -> dict[str, Any]:
    result = lab.run("volume", check=check, **options)
    assert not result.get("failed"), result
    return result


def writes(lab: Lab) -> list[dict[str, Any]]:
    """Return the writes since the log was reset, without logins."""
    return [one for one in lab.simulator.writes() if one["path"] != "/access/ticket"]


def refused(lab: Lab, **options: Any) -> dict[str, Any]:
    """Return the failure, which is the same in check mode and must come before any write."""
    lab.simulator.reset_log()
    foreseen = lab.run("volume", check=True, **options)
    result = lab.run("volume", **options)
    assert result.get("failed"), result
    assert foreseen["msg"] == result["msg"]
    assert writes(lab) == []
    assert "Traceback" not in str(result)
    return result


def as_foreseen(lab: Lab, **options: Any) -> dict[str, Any]:
    """Run in check mode, then twice; the second run makes five requests at most and no write."""
    lab.simulator.reset_log()
    foreseen = volume(lab, check=True, **options)
    assert writes(lab) == []
    made = volume(lab, **options)
    assert made["changed"]
    assert made["diff"] == foreseen["diff"]
    assert made["done"] == made["plan"] == foreseen["plan"]
    lab.simulator.reset_log()
    again = volume(lab, **options)
    assert not again["changed"], again["diff"]
    assert len(lab.simulator.log()) <= 5
    assert writes(lab) == []
    return made


def listed(lab: Lab, **options: Any) -> list[str]:
    found = lab.run("volume_info", **PLACE, **options)["volumes"]
    return [one["volid"] for one in found]


def test_a_file_is_uploaded_replaced_and_deleted(lab: Lab, iso: Path) -> None:
    made = as_foreseen(lab, **PLACE, src=str(iso))
    assert made["volume"]["volid"] == "local:iso/t-one.iso"
    assert made["volume"]["size"] == 6000
    assert listed(lab, content="iso").count("local:iso/t-one.iso") == 1
    iso.write_bytes(b"longer" * 1001)
    changed = as_foreseen(lab, **PLACE, src=str(iso))
    assert changed["diff"]["before"]["size"] == 6000
    assert changed["volume"]["size"] == 6006
    assert as_foreseen(lab, **PLACE, filename="t-one.iso", state="absent")["volume"] is None


def test_an_upload_can_be_forced(lab: Lab, iso: Path) -> None:
    volume(lab, **PLACE, src=str(iso))
    assert volume(lab, **PLACE, src=str(iso), force=True)["changed"]


def test_a_checksum_is_verified_before_the_upload(lab: Lab, iso: Path) -> None:
    result = refused(lab, **PLACE, src=str(iso), checksum=f"sha256:{'0' * 64}")
    assert (result["error"]["category"], result["error"]["reason"]) == (
        "ValidationFailed",
        "checksum",
    )
    good = hashlib.sha256(iso.read_bytes()).hexdigest()
    assert volume(lab, **PLACE, src=str(iso), checksum=good)["changed"]


def test_an_image_to_import_is_renamed(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "t-noble.img"
    file.write_bytes(QCOW2)
    made = as_foreseen(lab, **PLACE, src=str(file), content="import")
    assert made["volume"]["volid"] == "local:import/t-noble.qcow2"


def test_an_image_that_is_damaged_leaves_no_file(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "t-bad.qcow2"
    file.write_bytes(b"no image")
    result = lab.run("volume", **PLACE, src=str(file))
    assert result["error"]["category"] == "TaskFailed"
    assert "local:import/t-bad.qcow2" not in listed(lab)


def test_a_lost_answer_is_looked_after(lab: Lab, iso: Path) -> None:
    lab.simulator.fault(method="POST", path="/upload$", drop="after")
    made = volume(lab, **PLACE, src=str(iso))
    assert made["volume"]["size"] == 6000
    assert listed(lab, content="iso").count("local:iso/t-one.iso") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"src": "/nowhere/x.iso"}, "there is no such file"),
        ({"src": "/tmp", "filename": "x.iso"}, "it is a directory"),
        ({"src": "/etc/hostname"}, "does not show its content"),
        ({"filename": "missing.iso"}, "does not say where it comes from"),
        ({"filename": "a.iso", "notes": "x"}, "only backups have notes"),
        ({"filename": "a.iso", "node": "pve9"}, "pve9"),
        ({"filename": "a.iso", "storage": "ceph"}, "not iso"),
        ({"volume": "local:vm-1-x", "size": "1G", "vmid": 2}, "is not the name of a disk"),
        ({"volume": "ceph:iso/a.iso"}, "is not the storage of"),
    ],
)
def test_mistakes_are_refused(lab: Lab, options: dict[str, Any], message: str) -> None:
    assert message in refused(lab, **{**PLACE, **options})["msg"]


def test_a_full_storage_is_refused(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "t-huge.iso"
    with file.open("wb") as stream:
        stream.truncate(1 << 42)
    result = refused(lab, **PLACE, src=str(file))
    assert result["error"]["reason"] == "storage full"


def test_a_disk_is_allocated_and_deleted(lab: Lab) -> None:
    disk = {"volume": "local-lvm:vm-4711-data", "node": "pve1"}
    made = as_foreseen(lab, **disk, vmid=4711, size="2G")
    assert (made["volume"]["size"], made["volume"]["vmid"]) == (2 << 30, 4711)
    assert "it has 2 GiB, not 3 GiB" in refused(lab, **disk, vmid=4711, size="3G")["msg"]
    assert as_foreseen(lab, **disk, state="absent")["volume"] is None


def test_a_disk_in_use_is_not_deleted(lab: Lab) -> None:
    vm = lab.vm(
        name="holder", node="pve1", memory="128M", disks=[{"size": "1G", "storage": "ceph"}]
    )["vm"]
    (row,) = [
        row
        for row in lab.client.get("nodes", "pve1", "storage", "ceph", "content")
        if row["vmid"] == vm["vmid"]
    ]
    result = refused(lab, volume=row["volid"], node="pve1", state="absent")
    assert result["error"]["reason"] == "in use"
    lab.run("vm", name="holder", state="absent")


def test_notes_and_protection_of_a_backup(lab: Lab) -> None:
    vm = lab.vm(name="saved", node="pve1", memory="128M", disks=[{"size": "1G"}])["vm"]
    lab.client.task(
        "POST", "nodes", "pve1", "vzdump", data={"vmid": vm["vmid"], "storage": "local"}
    )
    (archive,) = listed(lab, content="backup", vmid=vm["vmid"])
    options = {"volume": archive, "node": "pve1"}
    made = as_foreseen(lab, **options, notes="before the upgrade", protected=True)["volume"]
    assert (made["notes"], made["protected"]) == ("before the upgrade", True)
    assert "it is protected" in refused(lab, **options, state="absent")["msg"]
    as_foreseen(lab, **options, notes="", protected=False)
    as_foreseen(lab, **options, state="absent")
    lab.run("vm", name="saved", state="absent")


def test_an_upload_takes_little_memory(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "t-large.iso"
    with file.open("wb") as stream:
        stream.truncate(128 << 20)
    with connect(lab.connection, {}) as client:
        client.get("version")
        tracemalloc.start()
        try:
            run_volume({**PLACE, "src": str(file)}, client)
            _now, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 8 << 20


def test_a_listing_makes_two_requests(lab: Lab) -> None:
    lab.simulator.reset_log()
    found = lab.run("volume_info", **PLACE, content="iso")["volumes"]
    assert len(lab.simulator.log()) == 2
    assert found[0]["volid"] == "local:iso/debian-13-netinst.iso"
    assert found[0]["protected"] is False


def test_a_template_is_downloaded_in_its_newest_version(lab: Lab) -> None:
    made = as_foreseen(lab, **PLACE, template="debian-12-standard")
    assert made["volume"]["volid"] == "local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst"
    name = "debian-12-standard_12.7-1_amd64.tar.zst"
    assert not volume(lab, **PLACE, template=name)["changed"]
    as_foreseen(lab, **PLACE, template=name, state="absent")
    result = refused(lab, **PLACE, template="debian-99-standard")
    assert result["error"]["reason"] == "unknown template"
    assert "debian-13-standard" in result["msg"]


def test_an_image_is_pulled_from_a_registry(lab: Lab) -> None:
    made = as_foreseen(lab, **PLACE, image="registry.example.com/library/nginx:1.29")
    assert made["volume"]["volid"] == "local:vztmpl/nginx_1.29.tar"
    as_foreseen(lab, volume="local:vztmpl/nginx_1.29.tar", node="pve1", state="absent")
    as_foreseen(lab, **PLACE, image="nginx:latest", filename="t-web")
    missing = lab.run("volume", **PLACE, image="registry.example.com/library/nginx:nope")
    assert missing["error"]["category"] == "TaskFailed"
    assert "without" not in refused(lab, **PLACE, image="nginx")["msg"]


def test_an_interrupted_upload_leaves_no_file_and_is_completed(lab: Lab, iso: Path) -> None:
    lab.simulator.fault(method="POST", path="/upload$", drop="before", times=9)
    failed = lab.run("volume", **PLACE, src=str(iso), retries=1)
    assert failed["error"]["category"] == "NetworkError"
    assert "local:iso/t-one.iso" not in listed(lab, content="iso")
    lab.simulator.clear_faults()
    assert volume(lab, **PLACE, src=str(iso))["volume"]["size"] == 6000


def test_an_upload_that_breaks_off_half_way_leaves_no_file(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has some of the bytes, and waits for the others."""
    file = tmp_path / "t-shrunk.iso"
    file.write_bytes(bytes(4 << 20))
    read: Callable[[MultipartBody, int], bytes] = MultipartBody.read

    def read_and_truncate(body: MultipartBody, size: int = 1 << 18) -> bytes:
        piece = read(body, size)
        os.truncate(file, 1 << 20)
        return piece

    with monkeypatch.context() as patched:
        patched.setattr(MultipartBody, "read", read_and_truncate)
        failed = lab.run("volume", **PLACE, src=str(file), retries=1)
    assert "became shorter while it was sent" in failed["msg"]
    assert "local:iso/t-shrunk.iso" not in listed(lab, content="iso")
    assert as_foreseen(lab, **PLACE, src=str(file))["volume"]["size"] == 1 << 20


def test_an_upload_of_6_gib_is_announced_with_its_whole_length(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "t-dvd.iso"
    size = 6 << 30
    with file.open("wb") as stream:
        stream.truncate(size)
    foreseen = lab.run("volume", check=True, **PLACE, src=str(file))
    assert foreseen["volume"]["size"] == size
    with MultipartBody({"content": "iso"}, Upload(str(file), file.name), Clock()) as body:
        assert size < len(body) < size + 1000
        pieces = [body.read() for _turn in range(3)]
    assert max(map(len, pieces)) <= 1 << 18


ROOT: dict[str, Any] = {
    "token_id": None,
    "token_secret": None,
    "user": "root@pam",
    "password": "fleetpw123",
}
COPY: dict[str, Any] = {"source_volume": "local:iso/t-one.iso", "source_node": "pve1"}


@pytest.fixture
def uploaded(lab: Lab, iso: Path) -> Iterator[Lab]:
    """A cluster with an ISO on the first node."""
    volume(lab, **PLACE, src=str(iso))
    yield lab
    lab.simulator.clear_faults()
    for row in lab.client.get("nodes", "pve2", "storage", "local", "content", content="iso"):
        if "/t-" in row["volid"]:
            path = ("nodes", "pve2", "storage", "local", "content", row["volid"])
            lab.client.task("DELETE", *path)


def test_a_volume_is_copied_to_another_node(uploaded: Lab) -> None:
    made = as_foreseen(uploaded, **COPY, node="pve2", **ROOT)
    assert made["volume"]["volid"] == "local:iso/t-one.iso"
    assert (made["volume"]["node"], made["volume"]["size"]) == ("pve2", 6000)
    assert made["done"] == [
        "Copy local:iso/t-one.iso of node pve1 to local:iso/t-one.iso on node pve2"
    ]
    other = as_foreseen(uploaded, **COPY, node="pve1", volume="local:iso/t-two.iso", **ROOT)
    assert other["volume"]["node"] == "pve1"


def test_a_lost_answer_to_a_copy_is_looked_after(uploaded: Lab) -> None:
    uploaded.simulator.fault(method="POST", path="/content/", drop="after")
    assert volume(uploaded, **COPY, node="pve2", **ROOT)["volume"]["size"] == 6000
    assert not volume(uploaded, **COPY, node="pve2", **ROOT)["changed"]


def test_copies_that_proxmox_ve_would_refuse(uploaded: Lab, iso: Path) -> None:
    """Only root@pam may call the method, and only with a password (pve-storage, Content.pm)."""
    result = refused(uploaded, **COPY, node="pve2")
    assert (result["error"]["category"], result["error"]["reason"]) == (
        "PermissionDenied",
        "root only",
    )
    missing = {**COPY, "source_volume": "local:iso/t-none.iso"}
    result = refused(uploaded, **missing, node="pve2", **ROOT)
    assert "pve1 does not have local:iso/t-none.iso" in result["msg"]
    iso.write_bytes(b"another ISO")
    volume(uploaded, storage="local", node="pve2", src=str(iso))
    assert "has 11 B, not 5.9 KiB" in refused(uploaded, **COPY, node="pve2", **ROOT)["msg"]


SNIPPET: dict[str, Any] = {"volume": "local:snippets/t-web.yml", "node": "pve1"}
SECRET = "password: s3cr3t\n"


@pytest.fixture
def mounted(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the snippets of a node, with the snippets that the node has."""
    write: Callable[[LocalDirectory, str, bytes], None] = LocalDirectory.write

    def write_and_show(files: LocalDirectory, name: str, data: bytes) -> None:
        write(files, name, data)
        volid = f"local:snippets/{name}"
        lab.simulator.steer("volumes/pve1", {"volid": volid, "new": True})

    monkeypatch.setattr(LocalDirectory, "write", write_and_show)
    for volid in listed(lab, content="snippets"):
        (tmp_path / volid.rpartition("/")[2]).touch()
    return tmp_path


def test_a_snippet_is_written_changed_and_removed(lab: Lab, mounted: Path) -> None:
    place = {**SNIPPET, "snippet_directory": str(mounted)}
    made = as_foreseen(lab, **place, text="#cloud-config\n")
    assert made["volume"]["volid"] == SNIPPET["volume"]
    assert (mounted / "t-web.yml").read_text() == "#cloud-config\n"
    changed = as_foreseen(lab, **place, text=SECRET)
    assert set(changed["diff"]["before"]) == {"volid", "sha256"}
    assert "s3cr3t" not in str(changed)
    assert as_foreseen(lab, **SNIPPET, state="absent")["volume"] is None


def test_a_snippet_of_a_guest_is_not_removed(lab: Lab, mounted: Path) -> None:
    own = "local:snippets/t-own.yml"
    options: dict[str, Any] = {"node": "pve1", "volume": own, "snippet_directory": str(mounted)}
    volume(lab, **options, text="#cloud-config\n")
    lab.vm(name="t-user", source="debian-13", node="pve1", cloud_init={"snippets": {"user": own}})
    result = refused(lab, volume=own, node="pve1", state="absent")
    assert result["error"]["reason"] == "in use"
    assert "t-user" in result["msg"]
    assert volume(lab, volume=own, node="pve1", state="absent", force=True)["changed"]
    lab.run("vm", name="t-user", state="absent")


def test_a_directory_of_another_storage_is_refused(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "foreign.yml").touch()
    result = refused(lab, **SNIPPET, text="x", snippet_directory=str(tmp_path))
    assert result["error"]["reason"] == "snippet not visible"


def test_a_snippet_is_written_by_ssh(
    lab: Lab, mounted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program for SSH runs the command here; the storage's directory is that of the test."""
    program = tmp_path / ".ssh"
    program.write_text(
        f"""#!/bin/sh
echo "$@" >> {tmp_path}/.calls
for command; do :; done
exec sh -c "$(printf %s "$command" | sed 's#/var/lib/vz/snippets#{mounted}#')"
"""
    )
    program.chmod(0o700)
    write: Callable[[NodeDirectory, str, bytes], None] = NodeDirectory.write

    def write_and_show(files: NodeDirectory, name: str, data: bytes) -> None:
        write(files, name, data)
        lab.simulator.steer("volumes/pve1", {"volid": f"local:snippets/{name}", "new": True})

    monkeypatch.setattr(NodeDirectory, "write", write_and_show)
    options = {**SNIPPET, "text": "#cloud-config\n", "ssh": {"executable": str(program)}}
    foreseen = volume(lab, check=True, **options)
    made = volume(lab, **options)
    assert made["diff"] == foreseen["diff"]
    assert (mounted / "t-web.yml").read_text() == "#cloud-config\n"
    assert not volume(lab, **options)["changed"]
    assert "User=root 10.99.0.1" in (tmp_path / ".calls").read_text()
    program.unlink()
    assert lab.run("volume", **options)["error"]["reason"] == "ssh"


def user_label(lab: Lab, volid: str, node: str = "pve1") -> str:
    """Return the only user of the volume, as the refusal of its removal names it."""
    result = refused(lab, volume=volid, node=node, state="absent")
    assert result["error"]["reason"] == "in use"
    (label,) = result["error"]["users"]
    return str(label)


@pytest.fixture
def data_disk(lab: Lab) -> Iterator[str]:
    """Yield a disk with the VMID of a guest that does not use it, on a shared storage."""
    volid = "ceph:vm-4711-data"
    lab.run("volume", volume=volid, node="pve1", vmid=4711, size="1G")
    yield volid
    lab.run("volume", volume=volid, node="pve1", state="absent", force=True)


@pytest.fixture
def user(lab: Lab) -> Iterator[int]:
    """Yield the VMID of a VM on pve2."""
    vm = lab.vm(name="t-user", node="pve2", memory="128M", disks=[{"size": "1G"}])["vm"]
    yield vm["vmid"]
    lab.run("vm", name="t-user", state="absent")


def test_a_disk_in_a_container_of_another_vmid_is_not_deleted(lab: Lab, data_disk: str) -> None:
    """PVE itself does not look for users (pve-storage: API2/Storage/Content.pm, delete)."""
    add_container(lab, 4801, node="pve2", hostname="mounts-it", mp0=f"{data_disk},mp=/x,size=1G")
    assert user_label(lab, data_disk) == "guest 4801 (mounts-it) as mp0"
    assert volume(lab, volume=data_disk, node="pve1", state="absent", force=True)["changed"]
    lab.simulator.ask("DELETE", "/containers/4801")


@pytest.mark.parametrize(
    ("option", "value", "place"),
    [
        ("unused0", "{}", "unused0"),
        ("scsi1", "/dev/rbd/vm-4711-data,size=1G", "scsi1"),
        ("ide2", "{},media=cdrom", "ide2"),
    ],
)
def test_a_disk_in_a_slot_of_another_vm_is_not_deleted(
    lab: Lab, data_disk: str, user: int, option: str, value: str, place: str
) -> None:
    lab.simulator.steer(f"vms/{user}", {"config": {option: value.format(data_disk)}})
    assert user_label(lab, data_disk) == f"guest {user} (t-user) as {place}"


def test_a_disk_in_a_snapshot_is_not_deleted(lab: Lab, data_disk: str, user: int) -> None:
    lab.simulator.steer(f"vms/{user}", {"config": {"scsi1": f"{data_disk},size=1G"}})
    path = ("nodes", "pve2", "qemu", user)
    lab.client.task("POST", *path, "snapshot", data={"snapname": "s1"})
    lab.simulator.steer(f"vms/{user}", {"config": {"scsi1": None}})
    assert user_label(lab, data_disk) == f"guest {user} (t-user) as scsi1 in snapshot 's1'"


def test_a_disk_of_a_pending_change_is_not_deleted(lab: Lab, data_disk: str, user: int) -> None:
    path = ("nodes", "pve2", "qemu", user)
    lab.client.write("PUT", *path, "config", data={"hotplug": "0"})
    lab.client.task("POST", *path, "status", "start")
    lab.client.write("PUT", *path, "config", data={"scsi1": data_disk})
    assert user_label(lab, data_disk) == f"guest {user} (t-user) as scsi1, a pending change"


def test_an_iso_in_a_drive_is_not_deleted(lab: Lab, user: int) -> None:
    iso = listed(lab, content="iso")[0]
    lab.simulator.steer(f"vms/{user}", {"config": {"ide2": f"{iso},media=cdrom"}, "node": "pve1"})
    assert user_label(lab, iso) == f"guest {user} (t-user) as ide2"
    lab.simulator.steer(f"vms/{user}", {"node": "pve2"})
    lab.simulator.reset_log()
    assert volume(lab, volume=iso, node="pve1", state="absent", check=True)["changed"]


def test_the_base_of_a_linked_clone_is_not_deleted(lab: Lab) -> None:
    vm = lab.vm(name="t-linked", source="debian-13", full=False)["vm"]
    base = lab.config(vm)["scsi0"].split("/")[0]
    result = refused(lab, volume=base, node="pve1", state="absent")
    assert any(f"guest {vm['vmid']} (t-linked)" in one for one in result["error"]["users"])
    lab.run("vm", name="t-linked", state="absent")


def test_a_replica_is_not_deleted(lab: Lab) -> None:
    """A job copies the volumes of a guest to a node under the same names (pve-guest-common:
    ReplicationConfig.pm).
    """
    tank = {"storage": "tank", "type": "zfspool", "pool": "tank", "content": "rootdir,images"}
    lab.client.write("POST", "storage", data=tank)
    options: dict[str, Any] = {"volume": "tank:vm-4711-data", "node": "pve2"}
    lab.run("volume", **options, vmid=4711, size="1G")
    add_container(lab, 4802, hostname="replicated", rootfs="tank:vm-4711-data,size=1G")
    assert volume(lab, **options, state="absent", check=True)["changed"]
    data = {"id": "4802-0", "target": "pve2", "type": "local"}
    lab.client.write("POST", "cluster", "replication", data=data)
    assert user_label(lab, "tank:vm-4711-data", "pve2") == "guest 4802 (replicated) as rootfs"


def test_a_volume_is_not_deleted_if_guests_are_hidden(lab: Lab, data_disk: str) -> None:
    """PVE lists only guests with VM.Audit (pve-manager: API2/Cluster.pm, resources), and deletes a
    disk with Datastore.Allocate alone (pve-storage: API2/Storage/Content.pm, delete).
    """
    grant = {"path": "/storage/ceph", "roles": "PVEDatastoreAdmin", "tokens": "root@pam!few"}
    secret = lab.client.write(
        "POST", "access", "users", "root@pam", "token", "few", data={"privsep": 1}
    )["value"]
    lab.client.write("PUT", "access", "acl", data=grant)
    login: dict[str, Any] = {"token_id": "root@pam!few", "token_secret": secret}
    options: dict[str, Any] = {"volume": data_disk, "node": "pve1", "state": "absent"}
    result = refused(lab, **login, **options)
    assert result["error"]["reason"] == "hidden guests"
    assert volume(lab, **login, **options, force=True)["changed"]


def test_a_linked_clone_is_named_with_or_without_its_base() -> None:
    """Facts: pve-storage, parse_volname of ZFSPoolPlugin.pm, LvmThinPlugin.pm and Plugin.pm."""
    pattern = volume_pattern("fast:base-9000-disk-0/vm-101-disk-0")
    assert pattern.search("fast:vm-101-disk-0,size=1G")
    assert pattern.search("fast:base-9000-disk-0/vm-101-disk-0")
    assert not pattern.search("fast:vm-101-disk-01")
    assert not pattern.search("fast:base-9000-disk-0/vm-102-disk-0")
    assert not pattern.search("other:vm-101-disk-0")
    assert volume_pattern("l:100/base-100-disk-0.qcow2").search(
        "l:100/base-100-disk-0.qcow2/101/vm-101-disk-0.qcow2,size=1G"
    )
    assert not volume_pattern("local:iso/a.iso").search("local:vztmpl/a.iso")


@pytest.fixture
def storages(lab: Lab) -> None:
    """Define storages of types that the cluster lacks."""
    known = [row["storage"] for row in lab.client.get("storage")]
    for storage in (
        {"storage": "files", "type": "dir", "path": "/srv/files", "content": "images"},
        {"storage": "pool", "type": "zfspool", "pool": "pool", "content": "rootdir,images"},
        {"storage": "chained", "type": "lvm", "vgname": "pve", "snapshot-as-volume-chain": 1},
    ):
        if storage["storage"] not in known:
            lab.client.write("POST", "storage", data=storage)


@pytest.mark.usefixtures("storages")
@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        ("files:vm-4711-x.raw", {}, "Name it files:VMID/vm-VMID-NAME.raw"),
        ("files:4711/vm-4711-x", {}, "storages of type dir"),
        ("files:4712/vm-4711-x.raw", {}, "does not belong to guest 4711"),
        ("files:4711/vm-4711-x.raw", {"format": "qcow2"}, "disk of format qcow2"),
        ("ceph:4711/vm-4711-x.raw", {}, "storages of type rbd"),
        ("ceph:base-4711-x", {}, "does not begin with vm-4711-"),
        ("local-lvm:subvol-4711-x", {}, "storages of type lvmthin"),
        ("local-lvm:vm-4711-x.qcow2", {}, "has format qcow2"),
        ("pool:vm-4711-x", {"format": "subvol"}, "does not begin with subvol-4711-"),
        ("pool:subvol-4711-x", {}, "does not begin with vm-4711-"),
        ("chained:vm-4711-x", {}, "needs the ending .qcow2"),
    ],
)
def test_name_that_the_type_of_the_storage_does_not_have(
    lab: Lab, name: str, options: dict[str, Any], why: str
) -> None:
    """PVE takes the last part as the name of a file, and creates another volume (pve-storage:
    API2/Storage/Content.pm, create; parse_volname and alloc_image of the plugins).
    """
    result = refused(lab, volume=name, node="pve1", vmid=4711, size="1G", **options)
    assert why in result["msg"]


def test_disk_of_a_name_that_cannot_exist_is_not_reported_as_absent(lab: Lab) -> None:
    options: dict[str, Any] = {"volume": "local:vm-4711-x.raw", "node": "pve1", "state": "absent"}
    assert "storages of type dir" in refused(lab, **options)["msg"]


@pytest.mark.usefixtures("storages")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("files:4711/vm-4711-x.qcow2", {}),
        ("pool:subvol-4711-x", {"format": "subvol"}),
        ("pool:vm-4711-x", {}),
        ("chained:vm-4711-x.qcow2", {}),
        ("chained:vm-4711-x", {"format": "raw"}),
    ],
)
def test_name_of_the_type_is_allocated(lab: Lab, name: str, options: dict[str, Any]) -> None:
    place = {"volume": name, "node": "pve1"}
    as_foreseen(lab, **place, vmid=4711, size="1G", **options)
    as_foreseen(lab, **place, state="absent")
