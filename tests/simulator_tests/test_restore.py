"""Backups and their restore, as a real Proxmox VE 9.2.11 was seen to do it.

Sources: pve-manager VZDump.pm; qemu-server PVE/API2/Qemu.pm (create_vm with `archive`) and
PVE/QemuServer.pm (restore_vma_archive, restore_proxmox_backup_archive); the observation that a
machine has neither name nor lock while its disks are written.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.simulator.process import CLUSTERS, Simulator
from tests.simulator_tests.client import Client
from tests.simulator_tests.conftest import QUICK

NEW = "/nodes/pve1/qemu"
LEFT = (
    "error before or during data restore, some or all disks were not completely restored."
    " VM 100 state is NOT cleaned up."
)


def back_up(pve: Client, vmid: int = 100, **options: Any) -> str:
    """Back a guest up and return the volume."""
    store = options.setdefault("storage", "local")
    pve.ok("POST", "/nodes/pve1/vzdump", vmid=vmid, **options)
    rows = pve.get(f"/nodes/pve1/storage/{store}/content", content="backup", vmid=vmid)
    return str(max(rows, key=lambda row: row["ctime"])["volid"])


def without_digest(pve: Client, path: str) -> dict[str, Any]:
    config = pve.config(path)
    del config["digest"]
    return config


def seen_during(pve: Client, path: str, upid: str) -> list[dict[str, Any]]:
    """Return each configuration that was seen until the task ended, in order."""
    seen: list[dict[str, Any]] = []
    while True:
        config = without_digest(pve, path)
        if pve.status_of(upid)["status"] != "running":
            return seen
        if not seen or seen[-1] != config:
            seen.append(config)
        time.sleep(0.02)


def make(pve: Client) -> str:
    options: dict[str, Any] = {
        "name": "web",
        "tags": "tenant_a",
        "memory": 512,
        "net0": "virtio,bridge=vmbr0",
    }
    return pve.create(100, **options, scsi0="local-lvm:2", ide2="local-lvm:cloudinit")


def test_a_vma_restore_shows_a_machine_of_128_mib_alone(sim: Simulator, pve: Client) -> None:
    path = make(pve)
    archive = back_up(pve, compress="zstd")
    before = without_digest(pve, path)
    pve.put(f"{path}/config", name="changed", onboot=1)
    sim.steer("/settings", {"task_ms": "qmrestore=200000"})
    upid = pve.post(NEW, vmid=100, archive=archive, force=1)
    first = without_digest(pve, path)
    assert (first["lock"], first["name"]) == ("create", "changed")
    sim.steer("/settings", {"task_ms": "qmrestore=3000"})
    pve.until(lambda: "lock" not in without_digest(pve, path))
    row = next(r for r in pve.get("/cluster/resources", type="vm") if r["vmid"] == 100)
    assert (row["name"], row.get("tags"), row.get("lock")) == ("VM 100", None, None)
    task = pve.get("/nodes/pve1/tasks", source="active", vmid=100)[0]
    assert (task["type"], task["upid"]) == ("qmrestore", upid)
    assert seen_during(pve, path, upid) == [{"memory": "128"}]
    after = without_digest(pve, path)
    assert after.pop("vmgenid") != before.pop("vmgenid")
    assert after == before


def test_a_restore_from_a_backup_server_keeps_the_lock(tmp_path: Path) -> None:
    document = yaml.safe_load((CLUSTERS / "demo.yml").read_text(encoding="utf-8"))
    document["servers"] = ["10.0.0.9"]
    file = tmp_path / "cluster.yml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    with Simulator("--cluster", file, *QUICK) as sim:
        pve = Client(sim)
        pve.post("/storage", storage="pbs", type="pbs", server="10.0.0.9", datastore="d")
        path = make(pve)
        archive = back_up(pve, storage="pbs")
        assert archive.startswith("pbs:backup/vm/100/2")
        sim.steer("/settings", {"task_ms": "qmrestore=1000"})
        upid = pve.post(NEW, vmid=100, archive=archive, force=1)
        assert seen_during(pve, path, upid)[-1] == {"memory": "128", "lock": "create"}
        assert without_digest(pve, path)["name"] == "web"


def test_options_beside_the_archive_win(pve: Client) -> None:
    make(pve)
    archive = back_up(pve)
    pve.post("/pools", poolid="bk")
    pve.ok("POST", NEW, vmid=301, archive=archive, name="renamed", memory=96, pool="bk")
    config = pve.config(f"{NEW}/301")
    assert (config["name"], config["memory"], config["tags"]) == ("renamed", "96", "tenant_a")
    assert config["scsi0"] == "local-lvm:vm-301-disk-0,size=2G"
    assert config["ide2"] == "local-lvm:vm-301-cloudinit,media=cdrom"
    row = next(r for r in pve.get("/cluster/resources", type="vm") if r["vmid"] == 301)
    assert row["pool"] == "bk"


def test_only_a_unique_restore_has_new_addresses(pve: Client) -> None:
    source = pve.config(make(pve))
    archive = back_up(pve)
    pve.ok("POST", NEW, vmid=301, archive=archive)
    pve.ok("POST", NEW, vmid=302, archive=archive, unique=1)
    same, unique = pve.config(f"{NEW}/301"), pve.config(f"{NEW}/302")
    for key in ("net0", "smbios1"):
        assert same[key] == source[key]
        assert unique[key] != source[key]
    assert len({source["vmgenid"], same["vmgenid"], unique["vmgenid"]}) == 3


def test_refusals_before_the_task(sim: Simulator, pve: Client) -> None:
    make(pve)
    archive = back_up(pve)
    call = {"vmid": 100, "archive": archive}
    refused = pve.call("POST", NEW, call)
    assert refused.message == ("unable to restore VM 100 - VM 100 already exists on node 'pve1'\n")
    refused = pve.call("POST", "/nodes/pve2/qemu", {**call, "force": 1})
    assert refused.message.endswith("volume '" + archive + "' does not exist\n")
    pve.create(904, node="pve2")
    refused = pve.call("POST", NEW, {**call, "vmid": 904, "force": 1})
    assert "'/etc/pve/nodes/pve1/qemu-server/904.conf' failed: File exists" in refused.message
    sim.steer("/vms/100", {"lock": "backup"})
    refused = pve.call("POST", NEW, {**call, "force": 1})
    assert refused.message == "unable to restore VM 100 - VM is locked (backup)\n"
    refused = pve.call("POST", NEW, {"vmid": 303, "force": 1})
    assert refused.errors == {"archive": "missing property required by 'force'"}


def test_running_and_protected_machines_stay(pve: Client) -> None:
    path = make(pve)
    archive = back_up(pve)
    pve.ok("POST", f"{path}/status/start")
    before = without_digest(pve, path)
    upid = pve.post(NEW, vmid=100, archive=archive, force=1)
    assert pve.wait(upid) == "unable to restore VM 100 - vm is running"
    assert pve.task_log(upid)[0] == LEFT
    pve.ok("POST", f"{path}/status/stop")
    pve.put(f"{path}/config", protection=1)
    end = pve.do("POST", NEW, vmid=100, archive=archive, force=1)
    assert end == "unable to restore VM 100 - - protection mode enabled"
    assert without_digest(pve, path) == {**before, "protection": 1}


@pytest.mark.parametrize(
    ("options", "end"),
    [
        ({"storage": "nostore"}, "failed: storage 'nostore' does not exist"),
        ({"live-restore": 1}, "live-restore is only compatible with backup images from a Proxmox"),
    ],
)
def test_a_new_machine_whose_restore_fails_early_stays_empty(
    pve: Client, options: dict[str, Any], end: str
) -> None:
    make(pve)
    archive = back_up(pve, compress="zstd")
    assert end in pve.do("POST", NEW, vmid=300, archive=archive, **options)
    assert without_digest(pve, f"{NEW}/300") == {}


def test_a_restore_that_fails_later_leaves_a_machine_without_name(
    sim: Simulator, pve: Client
) -> None:
    path = make(pve)
    archive = back_up(pve)
    disks = pve.volumes("local-lvm")
    sim.steer("/settings", {"task_ms": "qmrestore=800"})
    upid = pve.post(NEW, vmid=100, archive=archive, force=1)
    pve.until(lambda: without_digest(pve, path) == {"memory": "128"})
    pve.delete(f"/nodes/pve1/tasks/{upid}")
    assert pve.wait(upid) != "OK"
    log = pve.task_log(upid)
    assert "no lock found trying to remove 'create' lock" in log
    assert LEFT in log
    assert without_digest(pve, path) == {"memory": "128"}
    gone = {"local-lvm:vm-100-disk-0", "local-lvm:vm-100-cloudinit"}
    assert disks - pve.volumes("local-lvm") == gone


def test_snapshots_go_and_other_disks_become_unused(pve: Client) -> None:
    path = make(pve)
    archive = back_up(pve)
    pve.put(f"{path}/config", scsi1="local-lvm:1")
    pve.ok("POST", f"{path}/snapshot", snapname="s1")
    pve.ok("POST", NEW, vmid=100, archive=archive, force=1)
    assert [row["name"] for row in pve.get(f"{path}/snapshot")] == ["current"]
    config = pve.config(path)
    assert "scsi1" not in config
    assert config["unused0"] == "local-lvm:vm-100-disk-1"


def test_a_container_backup_is_refused(sim: Simulator, pve: Client) -> None:
    sim.ask("POST", "/containers/110", {"node": "pve1", "config": {"hostname": "ct"}})
    archive = back_up(pve, vmid=110)
    assert archive.startswith("local:backup/vzdump-lxc-110-")
    end = pve.do("POST", NEW, vmid=300, archive=archive)
    assert end.endswith("does not look like a QemuServer vzdump backup")


def test_vm_backup_is_enough_over_a_machine_that_is_there(pve: Client) -> None:
    make(pve)
    archive = back_up(pve)
    pve.post("/access/users", userid="bob@pve", password="secret-1234")
    secret = pve.post("/access/users/bob@pve/token/auto", privsep=0)["value"]
    bob = Client(pve.sim, f"bob@pve!auto={secret}")
    pve.post("/access/roles", roleid="Restorer", privs="VM.Backup,SDN.Use")
    pve.put("/access/acl", path="/vms/100", roles="Restorer", users="bob@pve")
    pve.put("/access/acl", path="/storage", roles="PVEDatastoreUser", users="bob@pve")
    assert bob.call("POST", NEW, {"vmid": 300, "archive": archive}).status == 403
    call = {"vmid": 100, "archive": archive, "force": 1}
    refused = bob.do("POST", NEW, **call)
    assert refused == "403 Permission check failed (/sdn/zones/localnetwork/vmbr0, SDN.Use)"
    pve.put("/access/acl", path="/sdn/zones/localnetwork", roles="Restorer", users="bob@pve")
    bob.ok("POST", NEW, **call)


def test_a_stopped_machine_looks_running_during_its_backup(sim: Simulator, pve: Client) -> None:
    path = make(pve)
    sim.steer("/settings", {"task_ms": "vzdump=600"})
    upid = pve.post("/nodes/pve1/vzdump", vmid=100, storage="local")
    pve.until(lambda: pve.config(path).get("lock") == "backup")
    pve.until(lambda: pve.state(path) == "running")
    assert pve.wait(upid) == "OK"
    assert pve.state(path) == "stopped"
    assert "lock" not in pve.config(path)


def test_backups_that_fail(pve: Client) -> None:
    make(pve)
    pve.create(904, node="pve2")
    vzdump = "/nodes/pve1/vzdump"
    assert pve.call("POST", vzdump, {}).errors == {"vmid": "property is missing"}
    answer = pve.call("POST", vzdump, {"vmid": 100, "dumpdir": "/tmp"})
    assert answer.errors == {"dumpdir": "Only root may set this option."}
    assert pve.post(vzdump, vmid=904) == "OK"  # no task: it is on another node
    upid = pve.post(vzdump, vmid="100,999", storage="local")
    assert pve.wait(upid) == "job errors"
    assert "ERROR: Backup of VM 999 failed - unable to find VM '999'" in pve.task_log(upid)
    assert len(pve.get("/nodes/pve1/storage/local/content", content="backup")) == 1
    end = pve.do("POST", vzdump, vmid=100, storage="local-lvm")
    assert end == (
        "could not get storage information for 'local-lvm':"
        " can't use storage 'local-lvm' for backups - wrong content type"
    )
