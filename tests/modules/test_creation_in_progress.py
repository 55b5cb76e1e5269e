# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest whose creation outlives its run is neither created again nor reported as absent.

Until its task ends, a container has only the lock C(create) in its configuration and is listed as
C(CT) and its VMID (pve-container: PVE/API2/LXC.pm, create_vm; PVE/LXC.pm, vmstatus). A guest joins
its pool when it is complete (also qemu-server: PVE/API2/Qemu.pm, create_vm and clone_vm), so a
tenant's token does not see it before.
"""

from __future__ import annotations

import time
from threading import Timer
from typing import Any

import pytest

from tests.cases import repeated
from tests.modules.access_lab import do
from tests.modules.backup_lab import add_nas
from tests.modules.container_lab import add_container
from tests.modules.estate_lab import Lab, first_number
from tests.modules.tenant_lab import RIGHTS, made

NAME: dict[str, Any] = {"name": "web1", "tenant": "initech"}
POOLED: dict[str, Any] = {**NAME, "pool": "initech"}
CONTAINER: dict[str, Any] = {
    **POOLED,
    "source": "debian-13-standard",
    "default_storage": "ceph",
    "memory": "1G",
}
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "container": ("container", CONTAINER),
    "vm": ("vm", {**POOLED, "disks": [{"size": 1, "storage": "ceph"}]}),
    "clone": ("clone", {**POOLED, "source": "debian-13"}),
    "list": ("vms", {"tenant": "initech", "containers": [CONTAINER]}),
}
TASKS = ("qmcreate", "qmclone", "qmrestore", "vzcreate", "vzclone", "vzrestore")
ENDLESS, QUICK = 600_000, 20


@pytest.fixture
def lab(unused: Lab) -> Lab:
    add_nas(unused)
    return unused


@pytest.fixture
def token(lab: Lab) -> dict[str, Any]:
    """The token of a tenant, with its pool."""
    return made(lab, "initech", **{**RIGHTS, "image_storages": ["local"]})


@pytest.fixture(params=["administrator", "tenant"])
def login(token: dict[str, Any], request: pytest.FixtureRequest) -> dict[str, Any]:
    return token if request.param == "tenant" else {}


def let_run(lab: Lab, milliseconds: int) -> None:
    """Set the duration of tasks that create guests; running tasks end if it has passed."""
    text = ",".join(f"{name}={milliseconds}" for name in TASKS)
    lab.simulator.steer("/settings", {"task_ms": text})


def creations(lab: Lab) -> list[str]:
    """Return the running tasks that create guests."""
    rows = [
        row
        for node in ("pve1", "pve2", "pve3")
        for row in lab.client.get("nodes", node, "tasks", source="active")
    ]
    return [row["upid"] for row in rows if row["type"] in TASKS and not row.get("endtime")]


def guests(lab: Lab, name: str = "web1") -> list[int]:
    """Return the VMIDs of the guests of that name, once no task runs."""
    let_run(lab, QUICK)
    until = time.monotonic() + 30
    nodes = ("pve1", "pve2", "pve3")
    while any(
        not row.get("endtime")
        for node in nodes
        for row in lab.client.get("nodes", node, "tasks", source="active")
    ):
        assert time.monotonic() < until, "a task does not end"
        time.sleep(0.02)
    rows = [
        row
        for node in nodes
        for kind in ("qemu", "lxc")
        for row in lab.client.get("nodes", node, kind)
    ]
    return [row["vmid"] for row in rows if row["name"] == name]


def errors_of(result: dict[str, Any]) -> list[str]:
    """Return the categories of the errors of a failed module, also of each guest of a list."""
    assert result.get("failed"), result
    rows = [*(result.get("vms") or []), *(result.get("containers") or [])]
    return [one["error"]["category"] for one in rows if one.get("error")] or [
        result["error"]["category"]
    ]


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("way", repeated(list(WAYS)))
def test_a_second_run_waits_for_the_creation(lab: Lab, login: dict[str, Any], way: str) -> None:
    module, task = WAYS[way]
    let_run(lab, ENDLESS)
    for _run in range(3):
        result = lab.run(module, **login, **task, task_timeout=1)
        assert set(errors_of(result)) == {"TaskTimeout"}, result
        assert "UPID:" in str(result)
    assert guests(lab) == [first_number("web1", "initech")]
    do(lab, module, **login, **task)
    assert len(guests(lab)) == 1
    assert not do(lab, module, **login, **task)["changed"]


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("way", repeated(list(WAYS)))
def test_a_second_login_waits_for_the_creation(lab: Lab, way: str) -> None:
    """With Sys.Audit on the node, a login sees the task of another one (pve-manager: API2/Tasks.pm,
    node_tasks).
    """
    nodes = ["pve1", "pve2"]
    token = made(lab, "initech", **{**RIGHTS, "nodes": nodes, "image_storages": ["local"]})
    module, task = WAYS[way]
    first = first_number("web1", "initech")
    let_run(lab, ENDLESS)
    lab.run(module, **task, task_timeout=1)
    if module != "vms":
        of = "vm" if way == "clone" else module
        absent = lab.run(of, **token, **NAME, state="absent", task_timeout=1)
        assert absent.get("failed") or "has a guest that this user" in absent["warnings"][-1]
    for _run in range(2):
        result = lab.run(module, **token, **task, task_timeout=120)
        assert set(errors_of(result)) == {"TaskTimeout"}, result
        assert "creat" in result["msg"] or "being made" in result["msg"]
        assert len(creations(lab)) == 1
    assert guests(lab) == [first]
    do(lab, module, **token, **task)
    assert guests(lab) == [first]
    assert not do(lab, module, **token, **task)["changed"]


@pytest.mark.parametrize("way", repeated(["container", "vm"]))
def test_a_second_login_continues_with_the_guest_that_it_has_waited_for(lab: Lab, way: str) -> None:
    """A login without Sys.Audit sees neither the task of another login nor the guest, until the guest
    is in its pool.
    """
    token = made(lab, "initech", **{**RIGHTS, "nodes": [], "image_storages": ["local"]})
    module, task = WAYS[way]
    let_run(lab, ENDLESS)
    lab.run(module, **task, task_timeout=1)
    Timer(2, let_run, (lab, QUICK)).start()
    result = do(lab, module, **token, **task, task_timeout=60)
    assert result[way]["vmid"] == first_number("web1", "initech")
    assert len(guests(lab)) == 1


@pytest.mark.usefixtures("fast")
def test_a_hidden_vmid_is_skipped_once_no_creation_can_last_any_longer(lab: Lab) -> None:
    vmid = first_number("web1", "initech")
    add_container(lab, vmid, hostname="other", tags="tenant_globex")
    token = made(lab, "initech", **{**RIGHTS, "nodes": [], "image_storages": ["local"]})
    do(lab, "container", **token, **CONTAINER)
    (made_with,) = guests(lab)
    assert made_with != vmid
    assert not do(lab, "container", **token, **CONTAINER)["changed"]


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize(("nodes", "waits"), [(["pve1", "pve2", "pve3"], False), ([], True)])
def test_only_a_login_that_sees_no_tasks_waits_for_a_skipped_vmid(
    lab: Lab, nodes: list[str], waits: bool
) -> None:
    """With C(lowest), the hidden guest can have the same name. Sys.Audit on the nodes shows that no
    task creates it (pve-manager: API2/Tasks.pm, node_tasks).
    """
    add_container(lab, 10000, hostname="other", tags="tenant_globex")
    token = made(lab, "initech", **{**RIGHTS, "nodes": nodes, "image_storages": ["local"]})
    lab.simulator.reset_log()
    do(lab, "container", **token, **CONTAINER, vmid_choice="lowest", vmid_range=[10000, 10009])
    asked = [row for row in lab.simulator.log() if row["path"] == "/cluster/nextid"]
    assert (len(asked) > 20) == waits, len(asked)
    assert len(guests(lab)) == 1


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("way", repeated(list(WAYS)))
def test_absent_does_not_ignore_a_creation(lab: Lab, login: dict[str, Any], way: str) -> None:
    module, task = WAYS[way]
    absent = {**login, **NAME, "state": "absent"}
    of = "vm" if way in ("vm", "clone") else "container"
    let_run(lab, ENDLESS)
    lab.run(module, **login, **task, task_timeout=1)
    lab.simulator.reset_log()
    result = lab.run(of, **absent, task_timeout=1)
    assert result["error"]["category"] == "TaskTimeout", result
    assert lab.simulator.writes() == []
    assert len(guests(lab)) == 1
    assert do(lab, of, **absent)["changed"]
    assert guests(lab) == []


@pytest.mark.usefixtures("fast")
def test_absent_names_a_creation_whose_vmid_does_not_follow_from_the_name(
    lab: Lab, login: dict[str, Any]
) -> None:
    let_run(lab, ENDLESS)
    lab.run("container", **login, **CONTAINER, vmid=5001, task_timeout=1)
    result = do(lab, "container", **login, **NAME, state="absent")
    assert "ontainer 5001 on node pve" in result["warnings"][-1]
    assert "may become container 'web1'" in result["warnings"][-1]
    again = lab.run("container", **login, **CONTAINER, vmid=5001, task_timeout=1)
    assert again["failed"], again
    assert "is still being made" in again["msg"] or "is being created" in again["msg"]
    assert guests(lab) == [5001]


@pytest.mark.usefixtures("fast", "token")
def test_the_other_kind_waits_for_the_name(lab: Lab) -> None:
    """Both kinds share the names of a tenant, and a guest has its VMID before its name."""
    let_run(lab, ENDLESS)
    lab.run("container", **CONTAINER, task_timeout=1)
    result = lab.run("vm", **WAYS["vm"][1], task_timeout=1)
    assert errors_of(result) == ["TaskTimeout"], result
    assert "container" in result["msg"]
    assert len(guests(lab)) == 1


@pytest.mark.usefixtures("fast")
def test_the_vmid_of_a_hidden_guest_of_others_is_skipped(lab: Lab, token: dict[str, Any]) -> None:
    """PVE checks the right before it looks for the guest (pve-http-server and pve-access-control,
    check_api2_permissions).
    """
    vmid = first_number("web1", "initech")
    add_container(lab, vmid, hostname="other", tags="tenant_globex")
    for _run in range(2):
        result = do(lab, "container", **token, **CONTAINER)
        assert result["container"]["vmid"] not in (vmid, None)
    assert len(guests(lab)) == 1


@pytest.mark.usefixtures("fast", "token")
@pytest.mark.parametrize("kind", ["vm", "container"])
def test_a_restore_with_a_new_name_makes_one_copy(lab: Lab, kind: str) -> None:
    options = {"node": "pve1", **WAYS[kind][1]}
    guest = do(lab, kind, **{**options, "name": "web"})[kind]
    data = {"vmid": guest["vmid"], "storage": "nas"}
    lab.client.task("POST", "nodes", "pve1", "vzdump", data=data)
    task: dict[str, Any] = {"name": "web", "new_name": "web1", "tenant": "initech"}
    let_run(lab, ENDLESS)
    for _run in range(3):
        result = lab.run("restore", **task, task_timeout=1)
        assert result["error"]["category"] in ("TaskTimeout", "Locked"), result
    absent = lab.run(kind, **NAME, state="absent", task_timeout=1)
    assert absent["failed"], absent
    assert len(guests(lab)) == 1
    do(lab, "restore", **task)
    assert len(guests(lab)) == 1


@pytest.mark.usefixtures("fast", "token")
def test_a_container_is_not_missing_while_a_restore_overwrites_it(lab: Lab) -> None:
    """The restore replaces the configuration by the lock (PVE/LXC.pm, destroy_lxc_container), and
    the VMID of an imported container does not follow from its name.
    """
    add_container(lab, 803, hostname="web1", tags="tenant_initech", pool="initech")
    lab.client.task("POST", "nodes", "pve1", "vzdump", data={"vmid": 803, "storage": "nas"})
    (row,) = lab.client.get("nodes", "pve1", "storage", "nas", "content", vmid=803)
    let_run(lab, 1000)
    data = {"vmid": 803, "ostemplate": row["volid"], "force": 1, "restore": 1, "storage": "ceph"}
    lab.client.write("POST", "nodes", "pve1", "lxc", data=data)
    path = ("nodes", "pve1", "lxc", 803, "config")
    until = time.monotonic() + 30
    while "rootfs" in lab.client.get(*path):
        assert time.monotonic() < until, "the restore does not write its volumes"
        time.sleep(0.01)
    let_run(lab, ENDLESS)
    for options in ({}, {"state": "absent"}):
        result = lab.run("container", **{**CONTAINER, **options}, task_timeout=1)
        assert result["error"]["reason"] == "being restored", result
        assert "container 803 on node pve1 is being restored" in result["msg"]
    assert guests(lab) == [803]
