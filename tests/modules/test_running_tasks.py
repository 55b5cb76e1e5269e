# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest that a running task has locked: the task is awaited or named, and no message
advises to remove the lock while it runs.

Proxmox VE writes the lock into the configuration, and the task outlives its client (qemu-server:
PVE/QemuMigrate.pm, prepare; pve-guest-common: PVE/AbstractConfig.pm, check_lock). A login without
Sys.Audit on a node sees only its own tasks (pve-manager: PVE/API2/Tasks.pm, node_tasks).
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.labs.maintenance import NODE, evacuate, populate
from tests.labs.maintenance import do as maintain
from tests.modules.access_lab import do
from tests.modules.backup_lab import add_nas
from tests.modules.container_lab import add_container
from tests.modules.estate_lab import Lab
from tests.modules.tenant_lab import made

ENDLESS, QUICK = 600_000, 20
# Requests that lock a guest, by the type of their task: kind, request, data.
LOCKING: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "qmigrate": ("qemu", ("migrate",), {"target": "pve2", "online": 1}),
    "vzmigrate": ("lxc", ("migrate",), {"target": "pve2", "restart": 1}),
    "qmsnapshot": ("qemu", ("snapshot",), {"snapname": "one"}),
    "vzsnapshot": ("lxc", ("snapshot",), {"snapname": "one"}),
    "qmsuspend": ("qemu", ("status", "suspend"), {"todisk": 1}),
    "move_volume": ("lxc", ("move_volume",), {"volume": "rootfs", "storage": "local-lvm"}),
}
MODULE = {"qemu": "vm", "lxc": "container"}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    """A cluster with a running VM 300 and container 301 of a tenant."""
    add_nas(unused)
    config = {"memory": "512", "scsi0": "ceph:vm-300-disk-0,size=1G"}
    entry = {"node": "pve1", "name": "web", "running": True, "tags": ["tenant_initech"]}
    unused.simulator.ask("POST", "/vms/300", {**entry, "config": config})
    add_container(unused, 301, running=True, hostname="box", tags="tenant_initech")
    return unused


def let_run(lab: Lab, kind: str, milliseconds: int) -> None:
    """Set the duration of the tasks of a type; running tasks end if it has passed."""
    lab.simulator.steer("/settings", {"task_ms": f"{kind}={milliseconds}"})


def start(lab: Lab, task: str) -> tuple[str, dict[str, Any]]:
    """Start a task that does not end; return its UPID and the options that name its guest."""
    kind, path, data = LOCKING[task]
    vmid = 300 if kind == "qemu" else 301
    let_run(lab, task, ENDLESS)
    if task == "move_volume":  # PVE moves a volume of a stopped container only
        lab.simulator.steer("/containers/301", {"running": False})
    upid = lab.client.write("POST", "nodes", "pve1", kind, vmid, *path, data=data)
    until = time.monotonic() + 10
    while not lab.client.get("nodes", "pve1", kind, vmid, "config").get("lock"):
        assert time.monotonic() < until, "the task locks nothing"
        time.sleep(0.02)
    return upid, {"vmid": vmid, "tenant": "initech"}


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("change", [{"memory": "1G"}, {"node": "pve3"}, {"state": "absent"}])
@pytest.mark.parametrize("task", LOCKING)
def test_the_task_that_holds_a_lock_is_named(lab: Lab, task: str, change: dict[str, Any]) -> None:
    upid, guest = start(lab, task)
    more = {"force": True} if "state" in change else {}
    module = MODULE[LOCKING[task][0]]
    result = lab.run(module, **guest, **change, **more, task_timeout=1, lock_timeout=1)
    let_run(lab, task, QUICK)
    assert result.get("failed"), result
    assert result["error"]["category"] == "Locked", result
    assert upid in result["msg"]
    assert "unlock" not in result["msg"]


@pytest.mark.usefixtures("fast")
def test_a_backup_of_several_guests_is_named(lab: Lab) -> None:
    """The task of such a backup has no VMID (pve-manager: PVE/API2/VZDump.pm, vzdump)."""
    let_run(lab, "vzdump", ENDLESS)
    data = {"vmid": "300,301", "storage": "nas", "mode": "snapshot"}
    upid = lab.client.write("POST", "nodes", "pve1", "vzdump", data=data)
    lab.simulator.steer("/vms/300", {"lock": "backup"})
    result = lab.run("vm", vmid=300, memory="1G", task_timeout=1, lock_timeout=1)
    let_run(lab, "vzdump", QUICK)
    assert upid in result["msg"]
    assert "unlock" not in result["msg"]


@pytest.mark.parametrize("task", ["qmigrate", "vzmigrate"])
def test_a_second_run_waits_for_a_migration(lab: Lab, task: str) -> None:
    _upid, guest = start(lab, task)
    let_run(lab, task, 1500)
    module = MODULE[LOCKING[task][0]]
    result = do(lab, module, **guest, node="pve2", memory="1G", lock_timeout=1)
    assert result[module]["node"] == "pve2"
    kind = LOCKING[task][0]
    config = lab.client.get("nodes", "pve2", kind, guest["vmid"], "config")
    assert int(config["memory"]) == 1024


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("task", ["qmigrate", "vzmigrate"])
def test_absent_waits_for_a_migration(lab: Lab, task: str) -> None:
    """The guest is removed on the node to which it has moved."""
    _upid, guest = start(lab, task)
    let_run(lab, task, 600)
    do(lab, MODULE[LOCKING[task][0]], **guest, state="absent", force=True)
    assert guest["vmid"] not in {row["vmid"] for row in lab.simulator.ask("GET", "/vms")}
    assert guest["vmid"] not in {row["vmid"] for row in lab.simulator.ask("GET", "/containers")}


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("task", LOCKING)
def test_a_tenant_gets_no_advice_to_unlock(lab: Lab, task: str) -> None:
    """The tenant's token does not see the administrator's task: the lock alone shows it."""
    token = made(lab, "initech", nodes=[])
    pool = {"poolid": "initech", "vms": "300,301"}
    lab.client.write("PUT", "pools", data=pool)
    _upid, guest = start(lab, task)
    module = MODULE[LOCKING[task][0]]
    result = lab.run(module, **token, **guest, memory="1G", task_timeout=1, lock_timeout=1)
    let_run(lab, task, QUICK)
    assert result["error"]["category"] == "Locked", result
    assert "unlock" not in result["msg"]
    assert "Sys.Audit on /nodes/pve1" in result["msg"]


@pytest.mark.usefixtures("fast")
def test_a_lock_without_a_task_may_be_removed(lab: Lab) -> None:
    lab.simulator.steer("/vms/300", {"lock": "migrate"})
    result = lab.run("vm", vmid=300, memory="1G", lock_timeout=1)
    assert "remove the lock with 'qm unlock'" in result["msg"]


@pytest.mark.usefixtures("fast")
def test_tidy_does_not_tell_a_tenant_to_unlock(lab: Lab) -> None:
    token = made(lab, "initech", nodes=[])
    lab.client.write("PUT", "pools", data={"poolid": "initech", "vms": "300,301"})
    upid, _guest = start(lab, "qmsnapshot")
    (seen,) = lab.run("tidy", tenant="initech", check=True)["unfinished"]
    (unseen,) = lab.run("tidy", **token, tenant="initech", check=True)["unfinished"]
    let_run(lab, "qmsnapshot", QUICK)
    assert upid in seen["detail"]
    assert "Sys.Audit" in unseen["next_step"]
    assert {seen["remedy"], unseen["remedy"]} == {"wait"}


@pytest.mark.usefixtures("fast")
def test_a_return_waits_for_migrations_of_a_killed_run(lab: Lab) -> None:
    """A run that ended early leaves the migration of a guest back to its node."""
    populate(lab)
    maintain(lab)
    row = next(row for row in lab.simulator.ask("GET", "/vms") if row["vmid"] == 201)
    let_run(lab, "qmigrate", 600)
    data = {"target": NODE, "online": 1}
    lab.client.write("POST", "nodes", row["node"], "qemu", 201, "migrate", data=data)
    result = evacuate(lab, state="returned")
    assert not result.get("failed"), (result["msg"], result["error"])
    assert (
        next(row for row in lab.simulator.ask("GET", "/vms") if row["vmid"] == 201)["node"] == NODE
    )
