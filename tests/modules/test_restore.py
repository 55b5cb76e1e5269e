# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module restore: a new guest from an archive.

The simulator follows qemu-server, PVE/API2/Qemu.pm (create_vm) and PVE/QemuServer.pm, and
pve-container, PVE/API2/LXC.pm (create_vm).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases import repeated
from tests.modules.access_lab import do, limited, refused
from tests.modules.backup_lab import add_archive, add_nas, add_pbs, container
from tests.modules.estate_lab import Lab
from tests.modules.restore_lab import end_restore, start_restore

DISK: dict[str, Any] = {"disks": [{"name": "scsi0", "size": 1, "storage": "ceph"}]}
WEB: dict[str, Any] = {"name": "web", "tenant": "acme", "pool": "acme", "memory": 256, **DISK}
HOUR = 3600


@pytest.fixture
def lab(unused: Lab) -> Lab:
    add_nas(unused)
    return unused


@pytest.fixture
def web(lab: Lab) -> dict[str, Any]:
    made: dict[str, Any] = do(lab, "vm", nics=[{"bridge": "vmbr0"}], **WEB)["vm"]
    return made


def back_up(lab: Lab, guest: dict[str, Any], storage: str = "nas") -> str:
    data = {"vmid": guest["vmid"], "storage": storage}
    lab.client.task("POST", "nodes", guest["node"], "vzdump", data=data)
    path = ("nodes", guest["node"], "storage", storage, "content")
    rows = lab.client.get(*path, content="backup", vmid=guest["vmid"])
    return str(max(rows, key=lambda row: row["ctime"])["volid"])


def restore(lab: Lab, *, check: bool = False, **options: Any) -> dict[str, Any]:
    return do(lab, "restore", check=check, **{"tenant": "acme", "new_name": "web2", **options})


def rejected(lab: Lab, **options: Any) -> dict[str, Any]:
    return refused(lab, "restore", **{"tenant": "acme", "new_name": "web2", **options})


def config(lab: Lab, guest: dict[str, Any], kind: str = "qemu") -> dict[str, Any]:
    found: dict[str, Any] = lab.client.get("nodes", guest["node"], kind, guest["vmid"], "config")
    return found


def test_the_newest_archive_becomes_a_new_guest(lab: Lab, web: dict[str, Any]) -> None:
    add_archive(lab, web, HOUR)
    archive = back_up(lab, web)
    lab.simulator.reset_log()
    task: dict[str, Any] = {
        "name": "web",
        "options": {"memory": "512M", "pool": "acme", "tags": ["copy"]},
    }
    foreseen = restore(lab, check=True, **task)
    assert lab.simulator.writes() == []
    result = restore(lab, **task)
    assert result["archive"]["volume"] == archive
    assert "notes" not in result["archive"]
    assert foreseen["plan"] == result["plan"] == result["done"]
    assert foreseen["diff"] == result["diff"]
    copy = result["guest"]
    assert copy["vmid"] not in (web["vmid"], None)
    found, before = config(lab, copy), config(lab, web)
    assert (found["name"], int(found["memory"])) == ("web2", 512)
    assert set(found["tags"].split(";")) == {"copy", "tenant_acme"}
    assert found["net0"] != before["net0"]
    assert found["smbios1"] != before["smbios1"]
    again = restore(lab, **task)
    assert not again["changed"]
    assert again["guest"]["vmid"] == copy["vmid"]


def test_a_time_chooses_the_archive(lab: Lab, web: dict[str, Any]) -> None:
    first = back_up(lab, web)
    do(lab, "vm", name="web", tenant="acme", memory=512)
    second = back_up(lab, web)
    rows = lab.client.get("nodes", web["node"], "storage", "nas", "content", vmid=web["vmid"])
    (moment,) = [row["ctime"] for row in rows if row["volid"] == first]
    assert first != second
    result = restore(lab, name="web", before=str(moment))
    assert result["archive"]["volume"] == first
    assert int(config(lab, result["guest"])["memory"]) == 256
    late = rejected(lab, name="web", new_name="web3", before="2020-01-01")
    assert late["error"]["reason"] == "no archive before that time"


def test_a_removed_guest_is_found_by_its_name(lab: Lab, web: dict[str, Any]) -> None:
    back_up(lab, web)
    do(lab, "vm", name="web", tenant="acme", state="absent")
    result = restore(lab, name="web", new_name="web")
    assert result["guest"]["name"] == "web"
    assert result["archive"]["vmid"] == web["vmid"]


def test_a_container_is_restored(lab: Lab) -> None:
    box = container(lab, hostname="box", tags="tenant_acme")
    back_up(lab, box)
    task: dict[str, Any] = {"vmid": box["vmid"], "new_name": "box2", "storage": "ceph"}
    foreseen = restore(lab, check=True, **task)
    result = restore(lab, **task)
    assert foreseen["plan"] == result["done"]
    found = config(lab, result["guest"], "lxc")
    assert found["hostname"] == "box2"
    assert found["rootfs"].startswith("ceph:")


def test_disks_follow_a_map_of_storages(lab: Lab) -> None:
    disks = [
        {"name": "scsi0", "size": 2, "storage": "ceph"},
        {"name": "scsi1", "size": 1, "storage": "local-lvm"},
    ]
    web = do(lab, "vm", **{**WEB, "disks": disks})["vm"]
    back_up(lab, web)
    storage_map = {"ceph": "local-lvm", "local-lvm": "ceph"}
    found = config(lab, restore(lab, name="web", storage_map=storage_map)["guest"])
    assert found["scsi0"].startswith("local-lvm:")
    assert found["scsi1"].startswith("ceph:")
    wrong = rejected(lab, name="web", new_name="web3", storage_map={"nfs": "ceph"})
    assert "they are on ceph, local-lvm" in wrong["msg"]


def test_a_vm_starts_while_it_is_restored(lab: Lab, web: dict[str, Any]) -> None:
    add_pbs(lab)
    back_up(lab, web, "pbs")
    task: dict[str, Any] = {
        "name": "web",
        "live": True,
        "options": {"tags": ["copy"], "state": "started"},
    }
    foreseen = restore(lab, check=True, **task)
    result = restore(lab, **task)
    assert foreseen["plan"] == result["done"]
    assert result["guest"]["status"] == "running"
    assert set(config(lab, result["guest"])["tags"].split(";")) == {"copy", "tenant_acme"}
    late = rejected(lab, name="web", live=True, options={"cores": 4})
    assert "options.cores" in late["msg"]


def test_refusals_before_the_first_write(lab: Lab, web: dict[str, Any]) -> None:
    none = rejected(lab, name="web")
    assert none["error"]["reason"] == "no archive"
    archive = back_up(lab, web)
    foreign = rejected(lab, archive=archive, tenant="globex")
    assert foreign["error"]["reason"] == "foreign tenant"
    itself = rejected(lab, name="web", new_name="web")
    assert itself["error"]["reason"] == "name in use"
    other = rejected(lab, name="web", options={"rootfs": {"size": "1G"}})
    assert "rootfs" in other["msg"]
    assert "storage" in rejected(lab, name="web", storages=["ceph"])["msg"]
    assert rejected(lab, name="web", live=True)["error"]["reason"] == "live restore"
    assert "before" in rejected(lab, name="web", before="noon")["msg"]
    assert "archive" in rejected(lab, name="web", archive="ceph:vm-1-disk-0")["msg"]
    assert "none" in rejected(lab, name="web", storage="none")["msg"]
    taken = rejected(lab, name="web", options={"vmid": web["vmid"]})
    assert taken["error"]["reason"] in ("name in use", "other origin", "another name")
    quota = rejected(lab, name="web", options={"quota": {"memory": "300M"}})
    assert quota["error"]["category"] == "QuotaExceeded"


def test_a_damaged_archive_is_not_restored(lab: Lab, web: dict[str, Any]) -> None:
    add_pbs(lab)
    add_archive(lab, web, HOUR, storage="pbs", verification={"state": "failed", "upid": "UPID"})
    assert rejected(lab, name="web")["error"]["reason"] == "archive damaged"


@pytest.mark.parametrize("key", [None, {"data": "x", "fingerprint": "ff:ff"}], ids=["no", "other"])
def test_an_encrypted_archive_without_its_key_is_refused(
    lab: Lab, web: dict[str, Any], key: dict[str, str] | None, fast: None
) -> None:
    add_pbs(lab)
    archive = back_up(lab, web, "pbs")
    lab.simulator.steer(f"/volumes/{web['node']}", {"volid": archive, "encrypted": "ab:cd"})
    if key is not None:
        lab.client.write("PUT", "storage", "pbs", data={"encryption-key": json.dumps(key)})
    lab.simulator.reset_log()
    failed = lab.run("restore", tenant="acme", archive=archive, new_name="web2")
    assert failed["failed"]
    assert ("wrong key" if key else "missing key") in failed["msg"]
    assert lab.simulator.writes() == []
    (row,) = do(lab, "drill_info", vms=["web"], tenant="acme", storages=["pbs"])["refused"]
    assert row["outcome"] == "failed"
    assert "key" in row["msg"]


@pytest.fixture
def tenant(lab: Lab) -> dict[str, Any]:
    """The login of a tenant that may create VMs in its pool and use its backups."""
    roles = {
        "/pool/acme": "PVEVMAdmin,PVEPoolUser",
        "/storage/nas": "PVEDatastoreUser",
        "/storage/ceph": "PVEDatastoreUser",
        "/sdn/zones/localnetwork": "PVESDNUser",
    }
    return limited(lab, "restorer", roles)


def test_a_tenant_restores_its_own_vm_only(
    lab: Lab, web: dict[str, Any], tenant: dict[str, Any]
) -> None:
    """Source: qemu-server, PVE/API2/Qemu.pm, create_vm: VM.Allocate on the pool is enough."""
    back_up(lab, web)
    other = do(lab, "vm", **{**WEB, "name": "shop", "tenant": "globex", "pool": "globex"})["vm"]
    theirs = back_up(lab, other)
    pool = {"pool": "acme"}
    result = restore(lab, name="web", options=pool, **tenant)
    assert result["guest"]["name"] == "web2"
    hidden = rejected(lab, archive=theirs, new_name="web3", options=pool, **tenant)
    assert hidden["error"]["reason"] == "unknown archive"


def test_the_operations_of_a_tenant_are_enough_to_restore_its_vm(
    lab: Lab, web: dict[str, Any]
) -> None:
    rights: dict[str, Any] = {
        "operations": ["provision", "backup"],
        "storages": ["nas", "local", "ceph"],
    }
    made = do(lab, "tenant", name="acme", bridges=["vmbr0"], adopt=True, **rights)
    (site,) = made["credentials"]["sites"]
    login = {key: site[key] for key in ("token_id", "token_secret")}
    back_up(lab, web)
    result = restore(lab, name="web", options={"pool": "acme"}, **login)
    assert result["guest"]["name"] == "web2"


def test_a_failed_restore_leaves_no_empty_vm(lab: Lab, web: dict[str, Any]) -> None:
    back_up(lab, web)
    lab.simulator.fault(task="qmrestore", fail="no space left on device")
    known = {row["vmid"] for row in lab.client.get("cluster", "resources", type="vm")}
    result = lab.run("restore", name="web", tenant="acme", new_name="web2")
    assert result["failed"]
    assert "no space left on device" in result["msg"]
    assert result["error"]["vm_exists"] is False
    assert {row["vmid"] for row in lab.client.get("cluster", "resources", type="vm")} == known


def test_an_empty_vm_of_an_earlier_run_is_removed(lab: Lab, web: dict[str, Any]) -> None:
    archive = back_up(lab, web)
    left = {**web, "vmid": 9555}
    upid = start_restore(lab, left, archive, force=0)
    lab.client.write("DELETE", "nodes", left["node"], "tasks", upid)
    end_restore(lab, left, upid)
    task: dict[str, Any] = {"name": "web", "new_name": "web2"}
    foreseen = restore(lab, check=True, **task)
    result = restore(lab, **task)
    assert foreseen["plan"][0] == result["done"][0]
    assert "9555" in result["done"][0]
    rows = lab.client.get("cluster", "resources", type="vm")
    assert 9555 not in {row["vmid"] for row in rows}


def test_an_empty_vm_with_archives_stays(lab: Lab, web: dict[str, Any]) -> None:
    """Its restore in place has failed: the VM must be restored again, not removed."""
    shop = do(lab, "vm", **{**WEB, "name": "shop"})["vm"]
    back_up(lab, web)
    archive = back_up(lab, shop)
    upid = start_restore(lab, shop, archive)
    lab.client.write("DELETE", "nodes", shop["node"], "tasks", upid)
    end_restore(lab, shop, upid)
    restore(lab, name="web")
    rows = lab.client.get("cluster", "resources", type="vm")
    assert shop["vmid"] in {row["vmid"] for row in rows}
    assert restore(lab, name="shop", new_name="shop2")["guest"]["name"] == "shop2"


def test_a_lost_answer_is_looked_after(lab: Lab, web: dict[str, Any]) -> None:
    back_up(lab, web)
    lab.simulator.fault(method="POST", path=r"/qemu$", drop="after")
    result = restore(lab, name="web")
    rows = lab.client.get("cluster", "resources", type="vm")
    assert [row["vmid"] for row in rows if row.get("name") == "web2"] == [result["guest"]["vmid"]]


@pytest.mark.parametrize("kind", repeated(["vm", "container"]))
def test_exact_tags_and_notes_are_part_of_the_restore(lab: Lab, kind: str) -> None:
    """The restored guest has the tags of its source at no time, so that it is never counted as a
    guest of their tenant (qemu-server: API2/Qemu.pm, create_vm; pve-container: LXC/Create.pm,
    restore_configuration).
    """
    if kind == "vm":
        source = do(lab, "vm", **{**WEB, "tags": ["web"]})["vm"]
    else:
        source = container(lab, hostname="box", tags="tenant_acme;web")
    back_up(lab, source)
    options = {"tags": ["copy"], "tags_exact": True, "description": "a copy"}
    task = {"vmid": source["vmid"], "tenant_prefix": "none_", "options": options}
    foreseen = do(lab, "restore", check=True, new_name="copy1", **task)
    for method in ("PUT", "POST"):
        lab.simulator.fault(method=method, path="/config$", status=500, times=None)
    broken = lab.run("restore", new_name="copy1", **task)
    rows = lab.client.get("cluster", "resources", type="vm")
    (made,) = [row for row in rows if row.get("name") == "copy1"]
    path = "qemu" if kind == "vm" else "lxc"
    unfinished = config(lab, made, path)
    assert broken["failed"]
    assert unfinished["tags"] == "copy"
    assert unfinished["description"].startswith("a copy")
    lab.simulator.clear_faults()
    do(lab, "restore", new_name="copy1", **task)
    finished = config(lab, made, path)
    assert finished["tags"] == "copy"
    assert finished["description"].startswith("a copy")
    assert foreseen["plan"][0].startswith("Restore")


def test_other_wrong_inputs_are_refused_before_the_first_write(
    lab: Lab, web: dict[str, Any]
) -> None:
    """A VMID of a container, no room, options of the other kind, a storage that does not have
    backups.
    """
    box = container(lab, hostname="box", tags="tenant_acme")
    back_up(lab, web)
    kind = rejected(lab, name="web", options={"vmid": box["vmid"]})
    assert "a container has the number" in kind["msg"]
    filler = {"volid": "local-lvm:vm-900-disk-0", "new": True, "size": 480 << 30}
    lab.simulator.steer("/volumes/pve1", filler)
    room = rejected(lab, name="web", storage="local-lvm", options={"node": "pve1"})
    assert room["error"]["category"] == "QuotaExceeded"
    assert "free" in room["msg"]


@pytest.mark.parametrize(
    "answer",
    [
        "unable to open encryption key: no such file or directory",
        "error: archive contains unknown option 'newer'",
    ],
)
def test_an_archive_that_pve_cannot_read_is_refused(
    lab: Lab, web: dict[str, Any], answer: str, fast: None
) -> None:
    """An archive that is encrypted without a key, corrupt, or of a newer PVE: its configuration
    cannot be read (pve-manager: API2/VZDump.pm, extractconfig).
    """
    back_up(lab, web)
    path = r"/vzdump/extractconfig$"
    lab.simulator.fault(method="GET", path=path, status=500, message=answer, times=None)
    lab.simulator.reset_log()
    failed = lab.run("restore", name="web", tenant="acme", new_name="web2")
    assert failed["failed"]
    assert answer.split(":")[0] in failed["msg"]
    assert lab.simulator.writes() == []


def test_an_archive_of_a_newer_version_is_refused(old: Lab) -> None:
    """PVE would leave the option out (qemu-server: QemuServer.pm, restore_update_config_line)."""
    add_nas(old)
    web = do(old, "vm", **WEB)["vm"]
    old.simulator.steer(f"/vms/{web['vmid']}", {"config": {"allow-ksm": "0"}})
    back_up(old, web)
    failed = rejected(old, name="web")
    assert "allow_ksm" in failed["msg"] or "allow-ksm" in failed["msg"]


def test_a_copy_is_in_the_pool_of_the_original(lab: Lab, web: dict[str, Any]) -> None:
    """The rights of a tenant depend on the pool: the copy of an administrator has it as well."""
    archive = back_up(lab, web)

    def pool(made: dict[str, Any]) -> str | None:
        rows = lab.client.get("cluster", "resources", type="vm")
        found = [row.get("pool") for row in rows if row["vmid"] == made["guest"]["vmid"]]
        return found[0]

    def copied(**options: Any) -> dict[str, Any]:
        return do(lab, "restore", archive=archive, **options)

    assert pool(copied(new_name="web2")) == "acme"
    assert not copied(new_name="web2")["changed"]
    assert pool(copied(new_name="web3", options={"pool": "globex"})) == "globex"
    do(lab, "vm", name="web", tenant="acme", state="absent", force=True)
    taken = {"vmid": web["vmid"], "name": "other", "tags": "tenant_globex", "pool": "globex"}
    lab.client.task("POST", "nodes", web["node"], "qemu", data=taken)
    assert pool(copied(new_name="web4")) is None


def test_a_copy_does_not_name_the_firmware_disk_of_the_original(lab: Lab) -> None:
    """Without OVMF an EFI disk is in no backup, and PVE keeps its line in the restored VM: only
    C(backup=0) drops it (qemu-server: QemuConfig.pm, get_backup_volumes; QemuServer.pm,
    restore_update_config_line). The copy would not start on another node.
    """
    vm = lab.vm(name="firm", node="pve1", disks=[{"size": 1, "storage": "ceph"}])["vm"]
    disk = {"efidisk0": f"local-lvm:vm-{vm['vmid']}-disk-9,size=4M"}
    volume = disk["efidisk0"].partition(",")[0]
    do(lab, "volume", volume=volume, node="pve1", vmid=vm["vmid"], size="1G")
    lab.simulator.ask("PUT", f"/vms/{vm['vmid']}", {"config": disk})
    wanted: dict[str, Any] = {"archive": back_up(lab, vm), "new_name": "firm-copy"}
    foreseen = lab.run("restore", check=True, **wanted, options={"state": "started"})
    made = lab.run("restore", **wanted, options={"state": "started"})
    assert not made.get("failed"), made["msg"]
    assert foreseen["plan"] == made["plan"] == made["done"]
    copy = lab.vm(name="firm-copy")["vm"]
    assert "efidisk0" not in lab.config(copy)
    assert lab.config(vm)["efidisk0"] == disk["efidisk0"]
    assert not lab.run("restore", **wanted, options={"state": "started"})["changed"]
    lab.vm(name="firm-copy", state="absent", force=True)
    rows = lab.client.get("nodes", "pve1", "storage", "local-lvm", "content", vmid=vm["vmid"])
    assert [row["volid"] for row in rows] == [volume]
