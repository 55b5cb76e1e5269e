# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module restore with confirm: a guest is overwritten with its archive.

The simulator follows qemu-server, PVE/API2/Qemu.pm (create_vm) and PVE/QemuServer.pm, and
pve-container, PVE/API2/LXC.pm (create_vm).
"""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from tests.modules.access_lab import do, limited, refused
from tests.modules.backup_lab import add_nas, container
from tests.modules.estate_lab import Lab
from tests.modules.restore_lab import end_restore, start_restore
from tests.modules.test_restore import back_up, config

DISK: dict[str, Any] = {"disks": [{"name": "scsi0", "size": 1, "storage": "ceph"}]}
WEB: dict[str, Any] = {"name": "web", "tenant": "acme", "pool": "acme", "memory": 256, **DISK}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    add_nas(unused)
    return unused


@pytest.fixture
def web(lab: Lab) -> dict[str, Any]:
    """A VM that was changed after its backup."""
    made: dict[str, Any] = do(lab, "vm", nics=[{"bridge": "vmbr0"}], **WEB)["vm"]
    back_up(lab, made)
    do(lab, "vm", name="web", tenant="acme", memory=512)
    return made


def whole(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a task; None takes an option out."""
    given = {"tenant": "acme", "name": "web", "confirm": "web", **options}
    return {name: value for name, value in given.items() if value is not None}


def restore(lab: Lab, *, check: bool = False, **options: Any) -> dict[str, Any]:
    return do(lab, "restore", check=check, **whole(options))


def rejected(lab: Lab, **options: Any) -> dict[str, Any]:
    return refused(lab, "restore", **whole(options))


def test_a_vm_is_overwritten_and_its_state_is_kept(lab: Lab, web: dict[str, Any]) -> None:
    before = config(lab, web)
    lab.simulator.reset_log()
    foreseen = restore(lab, check=True, options={"cores": 3})
    assert lab.simulator.writes() == []
    result = restore(lab, options={"cores": 3})
    assert foreseen["plan"] == result["plan"] == result["done"]
    assert foreseen["diff"] == result["diff"]
    found = config(lab, web)
    assert (int(found["memory"]), found["cores"]) == (256, 3)
    assert (found["net0"], found["smbios1"]) == (before["net0"], before["smbios1"])
    assert "run=" not in str(found.get("description"))
    assert result["guest"]["vmid"] == web["vmid"]
    assert result["guest"]["pool"] == "acme"
    again = restore(lab, options={"cores": 3})
    assert again["archive"]["volume"] == result["archive"]["volume"]
    kept = do(lab, "restore", archive=result["kept"], tenant="acme", new_name="web-before")
    assert int(config(lab, kept["guest"])["memory"]) == 512


def test_the_image_of_an_overwritten_vm_is_still_known(lab: Lab, web: dict[str, Any]) -> None:
    """Its disks are those of the archive, and so is the image that they come from."""
    mark = "<!-- pve.fleet: origin=9019 image=golden:1 -->"
    path = ("nodes", web["node"], "qemu", web["vmid"], "config")
    lab.client.write("PUT", *path, data={"description": mark})
    back_up(lab, web)
    restore(lab)
    assert str(config(lab, web)["description"]).strip() == mark


def test_a_running_vm_is_stopped_first_and_runs_again(lab: Lab, web: dict[str, Any]) -> None:
    do(lab, "vm", name="web", tenant="acme", state="started")
    assert "it runs" in rejected(lab, stop=False)["msg"]
    foreseen = restore(lab, check=True)
    result = restore(lab)
    assert foreseen["plan"] == result["done"]
    assert result["done"][0].startswith("Note that VM 'web'")
    assert result["done"][1].startswith("Shut down VM 'web'")
    assert "description" not in config(lab, web)
    assert result["guest"]["status"] == "running"
    assert int(config(lab, web)["memory"]) == 256


@pytest.mark.parametrize("kind", ["vm", "container"])
@pytest.mark.parametrize("keep", ["archive", "none"])
def test_a_guest_that_ran_runs_after_a_run_that_was_interrupted_at_any_write(
    lab: Lab, kind: str, keep: str
) -> None:
    """Later writes with the same method fail as well, as if the run was interrupted there."""
    if kind == "vm":
        box = do(lab, "vm", **WEB)["vm"]
    else:
        box = container(lab, hostname="web", tags="tenant_acme")
    back_up(lab, box)
    task: dict[str, Any] = {"name": None, "vmid": box["vmid"], "keep": keep}
    do(lab, kind, vmid=box["vmid"], tenant="acme", state="started")
    lab.simulator.reset_log()
    restore(lab, **task)
    methods = [row["method"] for row in lab.simulator.writes()]
    points = [(one, 1 + methods[:n].count(one)) for n, one in enumerate(methods)]
    assert len(points) >= 5
    for method, nth in points:
        do(lab, kind, vmid=box["vmid"], tenant="acme", state="started")
        lab.simulator.fault(method=method, path="/", nth=nth, times=None, status=403)
        assert lab.run("restore", **whole(task))["failed"], (method, nth)
        lab.simulator.clear_faults()
        foreseen, made = restore(lab, check=True, **task), restore(lab, **task)
        assert foreseen["plan"] == made["done"]
        assert made["guest"]["status"] == "running", (method, nth)
        assert "description" not in config(lab, box, "qemu" if kind == "vm" else "lxc")


@pytest.mark.parametrize("runs", [True, False])
@pytest.mark.parametrize(
    ("kind", "keep"),
    [
        *(("vm", keep) for keep in ("archive", "copy", "none")),
        *(("container", keep) for keep in ("archive", "none")),
    ],
)
def test_a_guest_that_ran_runs_after_restores_that_failed(
    lab: Lab, kind: str, keep: str, runs: bool
) -> None:
    """A failed restore leaves a VM empty and removes a container, with their notes (qemu-server:
    QemuServer.pm, restore_vma_archive; pve-container: API2/LXC.pm, create_vm): the archive of the
    state before has the note, and without an archive the tasks show who stopped the guest.
    """
    if kind == "vm":
        box = do(lab, "vm", **WEB)["vm"]
    else:
        box = container(lab, hostname="web", tags="tenant_acme")
    back_up(lab, box)
    if runs:
        do(lab, kind, vmid=box["vmid"], tenant="acme", state="started")
    task: dict[str, Any] = {"name": None, "vmid": box["vmid"], "keep": keep}
    if keep == "copy":
        task["keep_name"] = "web-before"
    failures: list[str] = []
    for _number in range(2):
        lab.simulator.fault(task="qmrestore" if kind == "vm" else "vzrestore", fail="no space left")
        failed = lab.run("restore", **whole(task))
        assert failed["failed"]
        failures.append(failed["msg"])
    assert (", and starts it" in failures[0]) is runs
    assert "Run this again with vmid" in failures[0]
    foreseen, made = restore(lab, check=True, **task), restore(lab, **task)
    assert foreseen["plan"] == made["done"]
    assert made["guest"]["status"] == ("running" if runs else "stopped")


@pytest.mark.parametrize("kind", ["vm", "container"])
@pytest.mark.parametrize("login", ["same", "other"])
def test_a_guest_that_was_stopped_for_another_reason_stays_off(
    lab: Lab, kind: str, login: str
) -> None:
    """It was stopped long before the restore that failed, or by another login."""
    if kind == "vm":
        box = do(lab, "vm", **WEB)["vm"]
    else:
        box = container(lab, hostname="web", tags="tenant_acme")
    back_up(lab, box)
    do(lab, kind, vmid=box["vmid"], tenant="acme", state="started")
    if login == "same":
        do(lab, kind, vmid=box["vmid"], tenant="acme", state="stopped", force=True)
        lab.simulator.steer("/clock", {"to": int(time.time()) + 3600})
    else:
        path = "vms" if kind == "vm" else "containers"
        lab.simulator.steer(f"/{path}/{box['vmid']}", {"running": False})
    task: dict[str, Any] = {"name": None, "vmid": box["vmid"], "keep": "none"}
    lab.simulator.fault(task="qmrestore" if kind == "vm" else "vzrestore", fail="no space left")
    assert lab.run("restore", **whole(task))["failed"]
    assert restore(lab, **task)["guest"]["status"] == "stopped"


def test_a_guest_that_was_started_and_stopped_since_stays_off(
    lab: Lab, web: dict[str, Any]
) -> None:
    do(lab, "vm", name="web", tenant="acme", state="started")
    lab.simulator.fault(method="POST", path="/vzdump", times=None, status=403)
    assert lab.run("restore", **whole({}))["failed"]
    lab.simulator.clear_faults()
    time.sleep(1.1)  # the times of tasks are whole seconds
    do(lab, "vm", name="web", tenant="acme", state="started")
    do(lab, "vm", name="web", tenant="acme", state="stopped", force=True)
    assert restore(lab)["guest"]["status"] == "stopped"


def test_a_container_is_overwritten(lab: Lab) -> None:
    box = container(lab, hostname="box", tags="tenant_acme")
    back_up(lab, box)
    do(lab, "container", vmid=box["vmid"], tenant="acme", memory="512M")
    task: dict[str, Any] = {"name": None, "vmid": box["vmid"], "confirm": "box"}
    foreseen = restore(lab, check=True, **task)
    result = restore(lab, **task)
    assert foreseen["plan"] == result["done"]
    assert config(lab, box, "lxc")["memory"] == 128
    assert result["kept"]


def test_what_is_not_overwritten(lab: Lab, web: dict[str, Any]) -> None:
    assert rejected(lab, confirm="wbe")["error"]["reason"] == "confirm"
    assert "options.node" in rejected(lab, options={"node": "pve1"})["msg"]
    assert "new_name" in lab.run("restore", name="web", new_name="w2", confirm="web")["msg"]
    assert "none" in rejected(lab, storage="none")["msg"]
    assert "ceph" in rejected(lab, keep_storage="ceph")["msg"]
    do(lab, "snapshot", name="web", tenant="acme", snapshot="s1")
    assert "snapshots would be lost: " not in rejected(lab)["msg"]
    assert "s1" in rejected(lab)["msg"]
    do(lab, "snapshot", name="web", tenant="acme", snapshot="s1", state="absent")
    left_out = [{"name": "scsi0", "backup": False}]
    do(lab, "vm", name="web", tenant="acme", disks=left_out)
    assert "scsi0 would be lost" in rejected(lab)["msg"]
    do(lab, "vm", name="web", tenant="acme", protection=True)
    assert "it is protected" in rejected(lab, keep="none")["msg"]


def test_the_archive_of_an_earlier_vm_is_refused(lab: Lab, web: dict[str, Any]) -> None:
    path = ("nodes", web["node"], "storage", "nas", "content")
    (old,) = [row["volid"] for row in lab.client.get(*path, vmid=web["vmid"])]
    do(lab, "vm", name="web", tenant="acme", state="absent")
    do(lab, "vm", vmid=web["vmid"], node=web["node"], **WEB)
    assert "UUID" in rejected(lab, name=None, archive=old)["msg"]
    none = rejected(lab)
    assert none["error"]["reason"] == "no archive"


def test_nothing_is_kept_on_request(lab: Lab, web: dict[str, Any]) -> None:
    result = restore(lab, keep="none")
    assert result["kept"] is None
    assert len(result["done"]) == 2  # the restore, and the removal of the marker


def test_a_failed_restore_is_completed_by_the_next_run(lab: Lab, web: dict[str, Any]) -> None:
    path = ("nodes", web["node"], "storage", "nas", "content")
    (archive,) = [row["volid"] for row in lab.client.get(*path, vmid=web["vmid"])]
    upid = start_restore(lab, web, archive)
    lab.client.write("DELETE", "nodes", web["node"], "tasks", upid)
    end_restore(lab, web, upid)
    result = restore(lab, name=None, vmid=web["vmid"])
    assert result["kept"] is None
    found = config(lab, web)
    assert (found["name"], int(found["memory"])) == ("web", 256)


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("path", [r"/vzdump$", r"/qemu$", r"/config$"])
def test_a_lost_answer_is_looked_after(
    lab: Lab, web: dict[str, Any], path: str, moment: str
) -> None:
    lab.simulator.fault(path=path, method="PUT" if "config" in path else "POST", drop=moment)
    result = restore(lab)
    found = config(lab, web)
    assert (found["name"], int(found["memory"])) == ("web", 256)
    assert "run=" not in str(found.get("description"))
    assert result["guest"]["vmid"] == web["vmid"]


def test_a_failure_names_the_way_back(lab: Lab, web: dict[str, Any]) -> None:
    lab.simulator.fault(task="qmrestore", fail="no space left on device")
    result = lab.run("restore", name="web", tenant="acme", confirm="web")
    assert result["failed"]
    assert "Its former state is the newest archive" in result["msg"]


@pytest.mark.usefixtures("fast")
def test_an_earlier_backup_is_not_taken_for_the_state_before(lab: Lab, web: dict[str, Any]) -> None:
    """A lost answer to the backup is looked after, and the backup of a minute ago is not it."""
    lab.simulator.fault(path=r"/vzdump$", method="POST", status=503, message="no", times=99)
    result = lab.run("restore", name="web", tenant="acme", confirm="web")
    assert result["failed"]
    assert int(config(lab, web)["memory"]) == 512


def test_a_vm_of_the_ha_manager_is_stopped_and_started_by_it(lab: Lab, web: dict[str, Any]) -> None:
    """PVE itself does not look at HA before a restore (qemu-server: API2/Qemu.pm, create_vm): the
    HA manager must not start the VM while its disks are written.
    """
    do(lab, "vm", name="web", tenant="acme", state="started")
    do(lab, "ha_resource", sid=f"vm:{web['vmid']}", request_state="started")
    assert "it runs" in rejected(lab, stop=False)["msg"]
    result = restore(lab)
    assert result["guest"]["status"] == "running"
    assert int(config(lab, web)["memory"]) == 256
    (managed,) = lab.client.get("cluster", "ha", "resources")
    assert (managed["sid"], managed["state"]) == (f"vm:{web['vmid']}", "started")


def test_a_vm_that_the_ha_manager_may_start_is_refused(lab: Lab, web: dict[str, Any]) -> None:
    lab.simulator.fault(
        method="GET",
        path=rf"/qemu/{web['vmid']}/status/current$",
        steer=[["PUT", f"/vms/{web['vmid']}", {"running": False}]],
        times=None,
    )
    do(lab, "ha_resource", sid=f"vm:{web['vmid']}", request_state="started")
    error = refused_in_run(lab)
    assert "the HA manager may start it" in error["msg"]
    assert int(config(lab, web)["memory"]) == 512


def refused_in_run(lab: Lab) -> dict[str, Any]:
    """Return the failure of a run that must not have written."""
    lab.simulator.reset_log()
    result = lab.run("restore", **whole({}))
    assert result.get("failed"), result
    assert lab.simulator.writes() == []
    return result


def test_an_empty_vm_with_the_lock_of_its_restore_is_recognized(
    lab: Lab, web: dict[str, Any]
) -> None:
    """The node has gone down during a restore from a backup server: PVE lifts the lock never."""
    archive = back_up(lab, web)
    upid = start_restore(lab, web, archive)
    lab.client.write("DELETE", "nodes", web["node"], "tasks", upid)
    end_restore(lab, web, upid)
    lab.simulator.steer(f"/vms/{web['vmid']}", {"lock": "create"})
    error = rejected(lab, name=None, vmid=web["vmid"])
    assert f"qm unlock {web['vmid']}" in error["msg"]
    lab.simulator.steer(f"/vms/{web['vmid']}", {"lock": None})
    result = restore(lab, name=None, vmid=web["vmid"])
    assert result["guest"]["name"] == "web"


def test_an_empty_vm_with_a_lock_is_named_by_a_new_restore(lab: Lab, web: dict[str, Any]) -> None:
    archive = back_up(lab, web)
    left = {**web, "vmid": 9555}
    upid = start_restore(lab, left, archive, force=0)
    lab.client.write("DELETE", "nodes", left["node"], "tasks", upid)
    end_restore(lab, left, upid)
    lab.simulator.steer("/vms/9555", {"lock": "create"})
    result = restore(lab, confirm=None, new_name="web2")
    assert any("qm unlock 9555" in text for text in result["warnings"])
    lab.simulator.steer("/vms/9555", {"lock": None})
    restore(lab, confirm=None, new_name="web3")
    rows = lab.client.get("cluster", "resources", type="vm")
    assert 9555 not in {row["vmid"] for row in rows}


def test_a_tenant_overwrites_its_own_vm_with_its_own_token(lab: Lab, web: dict[str, Any]) -> None:
    """Source: qemu-server, PVE/API2/Qemu.pm, create_vm: VM.Backup on the VM is enough."""
    roles = {
        "/pool/acme": "PVEVMAdmin,PVEPoolUser",
        "/storage/nas": "PVEDatastoreUser",
        "/storage/ceph": "PVEDatastoreUser",
        "/sdn/zones/localnetwork": "PVESDNUser",
    }
    token = limited(lab, "overwriter", roles)
    other = do(lab, "vm", **{**WEB, "name": "shop", "tenant": "globex", "pool": "globex"})["vm"]
    theirs = back_up(lab, other)
    result = restore(lab, **token)
    assert result["kept"]
    assert int(config(lab, web)["memory"]) == 256
    hidden = rejected(lab, name=None, archive=theirs, confirm="shop", **token)
    assert hidden["error"]["reason"] == "unknown archive"
    named = rejected(lab, name="shop", confirm="shop", **token)
    assert named["error"]["category"] in ("NotFound", "Conflict", "UnknownVm"), named


@pytest.fixture
def box(lab: Lab) -> dict[str, Any]:
    """A container with an archive, changed afterwards, that a failed restore has removed.

    Source: pve-container, PVE/API2/LXC.pm, create_vm, from destroy_lxc_container on.
    """
    nic = "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:77,type=veth"
    made = container(lab, hostname="box", tags="tenant_acme", net0=nic)
    back_up(lab, made)
    do(lab, "container", vmid=made["vmid"], tenant="acme", memory="512M")
    lab.simulator.fault(task="vzrestore", fail="lvcreate error: insufficient free space")
    failed = lab.run("restore", tenant="acme", vmid=made["vmid"], confirm="box")
    assert f"Run this again with vmid {made['vmid']}" in failed["msg"]
    (made["kept"],) = re.findall(r"archive (nas:\S+[a-z])", failed["msg"])
    assert made["vmid"] not in vmids(lab)
    return made


def vmids(lab: Lab) -> set[int]:
    return {row["vmid"] for row in resources(lab)}


def resources(lab: Lab) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = lab.client.get("cluster", "resources", type="vm")
    return rows


@pytest.mark.parametrize("choice", ["vmid", "name"])
def test_a_removed_container_is_restored_by_the_next_run(
    lab: Lab, box: dict[str, Any], choice: str
) -> None:
    task: dict[str, Any] = {"name": None, choice: box[choice], "confirm": "box"}
    lab.simulator.reset_log()
    foreseen = restore(lab, check=True, **task)
    assert lab.simulator.writes() == []
    result = restore(lab, **task)
    assert foreseen["plan"] == result["plan"] == result["done"]
    assert "as a failed restore has removed it" in result["plan"][0]
    assert (result["guest"]["vmid"], result["guest"]["node"]) == (box["vmid"], box["node"])
    found = config(lab, box, "lxc")
    assert (found["hostname"], found["memory"], found["tags"]) == ("box", 128, "tenant_acme")
    assert "BC:24:11:00:00:77" in found["net0"]
    assert "description" not in found
    again = restore(lab, **task)
    assert again["archive"]["volume"] == result["archive"]["volume"]
    assert again["kept"]


def test_a_tenant_restores_its_removed_container_with_its_own_token(lab: Lab) -> None:
    """The membership in the pool stays, and with it the rights of the tenant (pve-container:
    API2/LXC.pm, create_vm).
    """
    made = container(lab, hostname="box", tags="tenant_acme", pool="acme", unprivileged=1)
    back_up(lab, made)
    roles = {
        "/pool/acme": "PVEVMAdmin,PVEPoolUser",
        "/storage/nas": "PVEDatastoreUser",
        "/storage/local-lvm": "PVEDatastoreUser",
    }
    task = {"name": None, "vmid": made["vmid"], "confirm": "box", **limited(lab, "maker", roles)}
    lab.simulator.fault(task="vzrestore", fail="lvcreate error: insufficient free space")
    assert lab.run("restore", **whole(task))["failed"]
    assert made["vmid"] not in vmids(lab)
    restore(lab, **task)
    (row,) = [row for row in resources(lab) if row["vmid"] == made["vmid"]]
    assert row["pool"] == "acme"


def test_the_state_before_comes_back_to_a_removed_container(lab: Lab, box: dict[str, Any]) -> None:
    restore(lab, name=None, archive=box["kept"], confirm="box")
    assert config(lab, box, "lxc")["memory"] == 512


def test_nothing_else_is_taken_for_a_removed_container(lab: Lab, box: dict[str, Any]) -> None:
    task: dict[str, Any] = {"name": None, "vmid": box["vmid"], "confirm": "box"}
    assert rejected(lab, **{**task, "confirm": "bax"})["error"]["reason"] == "confirm"
    foreign = rejected(lab, **task, tenant="globex")
    assert foreign["error"]["reason"] == "foreign tenant"
    by_volume: dict[str, Any] = {"name": None, "archive": box["kept"], "confirm": "box"}
    data: dict[str, Any] = {"vmid": box["vmid"], "name": "box", "tags": "tenant_acme"}
    lab.client.task("POST", "nodes", box["node"], "qemu", data=data)
    assert rejected(lab, **by_volume)["error"]["reason"] == "no guest to overwrite"
    lab.client.task("DELETE", "nodes", box["node"], "qemu", box["vmid"])
    other = {"vmid": box["vmid"], "hostname": "other", "tags": "tenant_acme"}
    template = {"ostemplate": "local:vztmpl/debian-13.tar.zst", "rootfs": "local-lvm:1"}
    lab.client.task("POST", "nodes", box["node"], "lxc", data={**other, **template})
    assert rejected(lab, **by_volume)["error"]["reason"] == "confirm"


def test_a_container_that_was_removed_on_purpose_stays_removed(
    lab: Lab, box: dict[str, Any]
) -> None:
    task: dict[str, Any] = {"name": None, "archive": box["kept"], "confirm": "box"}
    restore(lab, **task)
    do(lab, "container", vmid=box["vmid"], tenant="acme", state="absent")
    assert rejected(lab, **task)["error"]["reason"] == "no guest to overwrite"
