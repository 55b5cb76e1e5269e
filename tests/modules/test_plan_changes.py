# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Something changes behind an approved plan of guests, in each module that has one: only what was
approved is written, the changed guest is named with planned and now, and the others reach the plan.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.labs.maintenance import NODE, places
from tests.modules.estate_lab import Lab
from tests.modules.test_plans import written

pytestmark = pytest.mark.usefixtures("fast")

# A refusal names what was planned and what is there now.
BOTH = re.compile(
    r"planned .*, now |not planned: .* \(planned: |planned and now differ in "
    r"|changed since it was planned: .* (?:->|added|removed)"
)
CHANGED, OTHER, STOPPED = 501, 502, 503
VMIDS = (CHANGED, OTHER, STOPPED)


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "plan.json")


@dataclass(frozen=True)
class Work:
    """A task about the guests, and whether a guest is as its plan wants it."""

    module: str
    task: dict[str, Any]
    is_reached: Callable[[Lab, int], bool]
    before: dict[str, Any] = field(default_factory=dict)


def runs(lab: Lab, vmid: int) -> bool:
    return places(lab)[vmid][1]


WORKS = {
    "stop": Work(
        "power", {"state": "stopped", "tenants": ["acme"]}, lambda lab, vmid: not runs(lab, vmid)
    ),
    "start": Work(
        "power",
        {"state": "started", "tenants": ["acme"], "selection": "all"},
        runs,
        {"running": False},
    ),
    "evacuate": Work(
        "evacuation",
        {"node": NODE, "wait_timeout": 5, "unmovable": "leave"},
        lambda lab, vmid: places(lab)[vmid][0] != NODE,
    ),
    "remove": Work(
        "vms",
        {
            "vms": [{"name": f"vm{vmid}", "tenant": "acme"} for vmid in VMIDS],
            "remove": True,
            "force": True,
        },
        lambda lab, vmid: vmid not in places(lab),
    ),
    "change": Work(
        "vms",
        {
            "vms": [{"name": f"vm{vmid}", "tenant": "acme"} for vmid in VMIDS],
            "description": "second",
            "memory": "1G",
        },
        lambda lab, vmid: memory(lab, vmid) == "1024",
    ),
}


def memory(lab: Lab, vmid: int) -> str:
    node = places(lab)[vmid][0]
    return str(lab.client.get("nodes", node, "qemu", vmid, "config")["memory"])


def path(lab: Lab) -> tuple[str | int, ...]:
    return ("nodes", places(lab)[CHANGED][0], "qemu", CHANGED)


def config(lab: Lab, **data: Any) -> None:
    lab.client.write("PUT", *path(lab), "config", data=data)


def power(lab: Lab, action: str) -> None:
    lab.client.task("POST", *path(lab), "status", action)


def remove(lab: Lab) -> None:
    if runs(lab, CHANGED):
        power(lab, "stop")
    lab.client.task("DELETE", *path(lab))


def create_again(lab: Lab, **values: Any) -> None:
    was_running = runs(lab, CHANGED)
    remove(lab)
    create(lab, CHANGED, **values)
    if was_running:
        power(lab, "start")


def create(lab: Lab, vmid: int, **values: Any) -> None:
    given = {"name": f"vm{vmid}", "tags": "tenant_acme", "memory": 512, "scsi0": "ceph:2"}
    lab.client.task("POST", "nodes", NODE, "qemu", data={"vmid": vmid, **given, **values})


CHANGES: dict[str, Callable[[Lab], None]] = {
    "moved": lambda lab: lab.simulator.steer(f"/vms/{CHANGED}", {"node": "pve3"}),
    "switched": lambda lab: power(lab, "stop" if runs(lab, CHANGED) else "start"),
    "memory": lambda lab: config(lab, memory=768),
    "description": lambda lab: config(lab, description="by hand"),
    "disk": lambda lab: config(lab, scsi3="ceph:2"),
    "renamed": lambda lab: config(lab, name="other"),
    "retagged": lambda lab: config(lab, tags="tenant_globex"),
    "removed": remove,
    "created again": create_again,
    "created as another": lambda lab: create_again(lab, name="another"),
    "created for another": lambda lab: create_again(lab, tags="tenant_globex"),
}


def populate(lab: Lab, work: Work) -> None:
    for vmid in VMIDS:
        create(lab, vmid)
        if vmid != STOPPED and work.before.get("running", True):
            lab.client.task("POST", "nodes", NODE, "qemu", vmid, "status", "start")


def approved(place: str) -> set[tuple[str, str]]:
    rows = [
        one
        for part in json.loads(Path(place).read_text())["parts"]
        for change in part["changes"]
        for one in change["requests"]
    ]
    return {(one["method"], one["path"]) for one in rows}


# The changes that do not concern a plan: it does not write what has changed, or its goal is reached.
HARMLESS: dict[str, set[str]] = {
    "stop": {"switched", "memory", "description", "disk"},
    "start": {"switched", "memory", "description", "disk"},
    "evacuate": {"moved", "memory", "description", "disk"},
    "remove": {"switched", "removed"},
    "change": {"switched", "disk"},
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", WORKS)
def test_a_guest_that_changed_is_refused_and_the_others_are_not(
    unused: Lab, place: str, name: str, change: str
) -> None:
    work = WORKS[name]
    populate(unused, work)
    planned = unused.run(work.module, check=True, plan_file=place, **work.task)
    assert not planned.get("failed"), planned["msg"]
    CHANGES[change](unused)
    before = config_of(unused)
    is_refused = change not in HARMLESS[name]
    unused.simulator.reset_log()
    foreseen = unused.run(work.module, check=True, apply_plan=place, **work.task)
    assert unused.simulator.writes() == []
    result = unused.run(work.module, apply_plan=place, **work.task)
    assert written(unused) <= approved(place)
    for found in (foreseen, result):
        assert found.get("failed", False) == is_refused, found
        if is_refused:
            assert found["error"]["reason"] == "not the approved plan"
            assert BOTH.search(found["msg"]), found["msg"]
    failures = [line for line in result["report"] if line.startswith("! ")]
    assert len(failures) == is_refused  # a guest is named once
    assert not is_refused or config_of(unused) == before
    for vmid in (OTHER, *(() if is_refused else (CHANGED,))):
        assert work.is_reached(unused, vmid)
    unused.simulator.reset_log()
    again = unused.run(work.module, apply_plan=place, **work.task)
    assert again.get("failed", False) == is_refused
    assert not again["changed"]
    assert unused.simulator.writes() == []


def config_of(lab: Lab) -> Any:
    """Return the changed guest: its place, whether it runs, and its configuration."""
    found = places(lab).get(CHANGED)
    return found and (*found, lab.client.get(*path(lab), "config"))


NET0 = "name=eth0,bridge=vmbr0"


def recreate_container(lab: Lab, path: tuple[Any, ...]) -> None:
    """Create it again with the same values. PVE draws another MAC address, and stores neither a UUID
    nor the time of the creation (pve-container: PVE/LXC/Config.pm, parse_lxc_network).
    """
    lab.client.task("POST", *path, "status", "stop")
    lab.client.task("DELETE", *path)
    data = {
        "vmid": CHANGED,
        "hostname": f"ct{CHANGED}",
        "ostemplate": "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst",
        "rootfs": "ceph:2",
        "net0": NET0,
        "tags": "tenant_acme",
    }
    lab.client.task("POST", *path[:-1], data=data)
    lab.client.task("POST", *path, "status", "start")


CONTAINERS: dict[str, Callable[[Lab, tuple[Any, ...]], Any]] = {
    "created again": recreate_container,
    "renamed": lambda lab, path: lab.client.write(
        "PUT", *path, "config", data={"hostname": "other"}
    ),
    "retagged": lambda lab, path: lab.client.write(
        "PUT", *path, "config", data={"tags": "tenant_globex"}
    ),
    "moved": lambda lab, path: lab.client.task(
        "POST", *path, "migrate", data={"target": "pve3", "restart": 1}
    ),
}


@pytest.mark.parametrize("change", CONTAINERS)
@pytest.mark.parametrize("name", ["stop", "remove"])
def test_a_container_that_changed_is_refused_and_the_other_is_not(
    unused: Lab, place: str, name: str, change: str
) -> None:
    for vmid in (CHANGED, OTHER):
        net0 = f"{NET0},hwaddr=BC:24:11:00:0{vmid // 100}:0{vmid % 100}"
        disk = f"ceph:vm-{vmid}-disk-0,size=2G"
        config = {"hostname": f"ct{vmid}", "rootfs": disk, "net0": net0}
        entry = {"node": NODE, "running": True, "config": {**config, "tags": "tenant_acme"}}
        unused.simulator.ask("POST", f"/containers/{vmid}", entry)
    module, task = WORKS[name].module, dict(WORKS[name].task)
    if name == "remove":
        named = [{"name": f"ct{vmid}", "tenant": "acme"} for vmid in (CHANGED, OTHER)]
        task |= {"vms": [], "containers": named}
    assert unused.run(module, check=True, plan_file=place, **task)["changed"]
    CONTAINERS[change](unused, ("nodes", NODE, "lxc", CHANGED))
    for _run in range(2):
        unused.simulator.reset_log()
        assert unused.run(module, check=True, apply_plan=place, **task)["failed"]
        result = unused.run(module, apply_plan=place, **task)
        assert BOTH.search(result["msg"]), result["msg"]
        assert len([line for line in result["report"] if line.startswith("! ")]) == 1
        assert written(unused) <= approved(place)
    assert unused.simulator.writes() == []
    assert places(unused)[CHANGED][1]
    assert not places(unused).get(OTHER, ("", False))[1]
