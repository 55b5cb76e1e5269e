# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs that die at any write: the next run ends in the state that an undisturbed run has. While the
task of the last write continues, the next run either completes the work or fails; it never reports
success early.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.cases import strides
from tests.faults.world import VmState, World, read_world
from tests.labs.killed import GOING, MOMENTS, end_tasks, is_working, run_killed
from tests.modules.access_lab import do
from tests.modules.backup_lab import add_nas, container, share_archives
from tests.modules.estate_lab import Lab
from tests.modules.test_container_image import container as proxy
from tests.modules.test_container_image import holders, publish
from tests.modules.test_drill import WEB, back_up
from tests.modules.test_drill import plan as drill_plan
from tests.modules.test_failover import guests_of_vienna, stop
from tests.modules.test_failover import options as failover_options
from tests.modules.test_failover import prepare as prepare_munich
from tests.modules.test_images import NEW, OLD, image
from tests.modules.test_template_copies import NAME
from tests.simulator.core.locks import ConfigLock

LIMITS = {"task_timeout": 20, "lock_timeout": 2}
_wait = ConfigLock.wait


@dataclass
class Case:
    """A task on a cluster that was prepared for it, and the check of the cluster after it."""

    module: str
    options: dict[str, Any]
    require: Callable[[World], None]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, fast: None) -> None:
    """PVE waits 10 seconds for the lock of a guest: a part of it is enough."""

    async def wait(lock: ConfigLock, shared: bool, timeout: float) -> bool:
        return await _wait(lock, shared, min(timeout, 0.05))

    monkeypatch.setattr(ConfigLock, "wait", wait)


def reset(lab: Lab) -> None:
    lab.simulator.clear_faults()
    lab.simulator.reset()
    lab.simulator.steer("/settings", {"task_ms": "default=5", "lag_s": 0})
    add_nas(lab)


def attack(lab: Lab, make: Callable[[Lab], Case], stride: int) -> None:
    """Kill the task at each write and moment, or at one of each `stride`, and run it again."""
    number, tried = 0, 0
    while True:
        for moment in MOMENTS:
            nth, number = number // len(MOMENTS), number + 1
            if nth and number % stride:
                continue
            case = make(lab)
            last = run_killed(lab, nth + 1, moment, case.module, case.options)
            if not last:
                assert tried > 1
                return
            tried += 1
            complete(lab, case, moment, f"killed at {last}, {moment}")


def complete(lab: Lab, case: Case, moment: str, where: str) -> None:
    """Run the task until it succeeds: at once, or when the task of the dead run has ended."""
    result: dict[str, Any] = {"failed": True}
    if moment == GOING and is_working(lab):
        result = lab.run(case.module, **case.options)
    end_tasks(lab, moment)
    if result.get("failed"):
        foreseen = lab.run(case.module, check=True, **case.options)
        result = lab.run(case.module, **case.options)
        assert foreseen["plan"] == result.get("done"), (where, foreseen, result)
    assert not result.get("failed"), (where, result)
    world = read_world(lab)
    assert world.leaked() == set(), where
    try:
        case.require(world)
    except AssertionError as error:
        raise AssertionError(f"{where}: {error}") from error


def require_clean(guest: VmState, *, running: bool, pool: str, world: World) -> None:
    """Check that a guest is finished: no note of a run, no lock, no unused disk."""
    assert guest.running is running
    notes = str(guest.config.get("description", ""))
    assert " run=" not in notes
    assert " ran=" not in notes
    assert "lock" not in guest.config
    assert not any(key.startswith("unused") for key in guest.config)
    assert guest.vmid in world.pools[pool]["vms"]


# -- restore


def overwriting(kind: str, keep: str, runs: bool) -> Callable[[Lab], Case]:
    """A guest with its archive, changed since; the restore keeps the present state."""

    def make(lab: Lab) -> Case:
        reset(lab)
        box = one_of(lab, kind)
        back_up(lab, box)
        do(lab, kind, vmid=box["vmid"], tenant="acme", memory=512)
        if runs:
            do(lab, kind, vmid=box["vmid"], tenant="acme", state="started")
        options = {"tenant": "acme", "vmid": box["vmid"], "confirm": "web", "keep": keep, **LIMITS}
        if keep == "copy":
            options["keep_name"] = "web-before"
        before = len(read_world(lab).vms)

        def require(world: World) -> None:
            guest = world.vms[box["vmid"]]
            require_clean(guest, running=runs, pool="acme", world=world)
            assert int(guest.config["memory"]) == (256 if kind == "vm" else 128)
            assert len(world.vms) == before + (keep == "copy")
            if keep != "none":
                assert 512 in kept_memory(lab, world, box)

        return Case("restore", options, require)

    return make


def one_of(lab: Lab, kind: str) -> dict[str, Any]:
    """Make a VM or a container web of tenant acme."""
    if kind == "container":
        return container(lab, hostname="web", tags="tenant_acme", pool="acme")
    made: dict[str, Any] = do(lab, "vm", nics=[{"bridge": "vmbr0"}], **WEB)["vm"]
    return made


def kept_memory(lab: Lab, world: World, box: dict[str, Any]) -> set[int]:
    """Return the memory of the guest in its archives, and of its copies."""
    found = {int(one.config["memory"]) for one in world.named("web-before", "acme")}
    for _node, volume in world.volumes:
        if f"-{box['vmid']}-" in volume and "vzdump" in volume:
            text = lab.client.get("nodes", box["node"], "vzdump", "extractconfig", volume=volume)
            found |= {int(line[8:]) for line in text.splitlines() if line.startswith("memory: ")}
    return found


@pytest.mark.parametrize("stride", strides(11))
@pytest.mark.parametrize(
    ("kind", "keep", "runs"),
    [
        *(("vm", keep, runs) for keep in ("archive", "none") for runs in (True, False)),
        *(("container", keep, runs) for keep in ("archive", "none") for runs in (True, False)),
        ("vm", "copy", False),
        ("container", "copy", False),
    ],
)
def test_a_restore_in_place(unused: Lab, kind: str, keep: str, runs: bool, stride: int) -> None:
    """The guest has the state of the archive, its former state is kept, and it runs if it ran."""
    attack(unused, overwriting(kind, keep, runs), stride)


def new_guest(lab: Lab, module: str, **options: Any) -> Case:
    """Return a task that makes guest new of tenant acme."""
    before = set(read_world(lab).vms)

    def require(world: World) -> None:
        (made,) = set(world.vms) - before
        assert world.vms[made].name == "new"
        runs = options.get("state") == "started"
        require_clean(world.vms[made], running=runs, pool="acme", world=world)

    return Case(module, {"tenant": "acme", **options, **LIMITS}, require)


def creation(module: str) -> Callable[[Lab], Case]:
    """A new guest from a template or from an archive, which starts if the module starts guests."""

    def make(lab: Lab) -> Case:
        reset(lab)
        if module in ("restore", "clone"):
            box = one_of(lab, "vm")
            back_up(lab, box)
            return new_guest(lab, module, **SOURCES[module])
        return new_guest(lab, module, name="new", pool="acme", state="started", **SOURCES[module])

    return make


SOURCES: dict[str, dict[str, Any]] = {
    "vm": {"source": "debian-13", "node": "pve2", "full": True},
    "container": {"source": "debian-13-standard", "rootfs": {"size": "1G", "storage": "local-lvm"}},
    "restore": {"name": "web", "new_name": "new"},
    "clone": {"name": "new", "source": "web", "full": True, "pool": "acme"},
}


@pytest.mark.parametrize("stride", strides(5))
@pytest.mark.parametrize("module", SOURCES)
def test_a_creation(unused: Lab, module: str, stride: int) -> None:
    """There is one guest of that name, and it is finished."""
    attack(unused, creation(module), stride)


# -- drill and failover


def drill(kind: str) -> Callable[[Lab], Case]:
    def make(lab: Lab) -> Case:
        reset(lab)
        back_up(lab, one_of(lab, kind))
        planned = drill_plan(lab)
        guests = planned["rounds"][0]
        return Case("drill", {"run": planned["run"], "guests": guests, "settle": 0}, pass_by)

    return make


def pass_by(_world: World) -> None:
    """Check nothing."""


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("kind", ["vm", "container"])
def test_a_drill(unused: Lab, kind: str, moment: str) -> None:
    """The removal of the copies leaves nothing of a drill that was killed, also if it is killed
    itself.
    """
    nth, last = 0, "first"
    while last:
        nth += 1
        case = drill(kind)(unused)
        before = read_world(unused)
        last = run_killed(unused, nth, moment, "drill", {**case.options, **LIMITS})
        removal = {"run": case.options["run"], "state": "absent", **LIMITS}

        def require(world: World, before: World = before) -> None:
            assert set(world.vms) == set(before.vms)
            assert set(world.volumes) == set(before.volumes)

        complete(unused, Case("drill", removal, require), moment, f"killed at {last}, {moment}")


@pytest.mark.parametrize("stride", strides(3))
def test_the_removal_of_a_drill(unused: Lab, stride: int) -> None:
    def make(lab: Lab) -> Case:
        reset(lab)
        box = one_of(lab, "vm")
        back_up(lab, box)
        before = set(read_world(lab).vms)
        planned = drill_plan(lab)
        guests = planned["rounds"][0]
        lab.run("drill", run=planned["run"], guests=guests, settle=0)

        def require(world: World) -> None:
            assert set(world.vms) == before

        return Case("drill", {"run": planned["run"], "state": "absent", **LIMITS}, require)

    attack(unused, make, stride)


@pytest.mark.parametrize("stride", strides(7))
def test_a_failover(unused: Lab, munich: Lab, stride: int) -> None:
    """Each guest is up at the other site, once."""
    reset(unused)
    prepare_munich(munich)
    web = guests_of_vienna(unused, munich)
    stop(unused, web)

    def make(lab: Lab) -> Case:
        prepare_munich(lab)
        lab.simulator.steer("/settings", {"task_ms": "default=5"})
        share_archives(unused.simulator, lab.simulator)
        before = len(read_world(lab).vms)
        moved = {"addresses": {"10.1.0.0/24": "10.2.0.0/24"}, **LIMITS}

        def require(world: World) -> None:
            assert len(world.vms) == before + 2
            for name in ("web", "box"):
                (guest,) = world.named(name, "acme")
                require_clean(guest, running=True, pool="acme", world=world)
                assert "10.2.0." in str(guest.config)

        return Case("failover", failover_options(unused, lab, **moved), require)

    attack(munich, make, stride)


# -- images


def vm_image(state: str) -> Callable[[Lab], Case]:
    def make(lab: Lab) -> Case:
        reset(lab)
        image(lab, "pve2", 2, OLD)
        wanted: dict[str, Any] = {
            "name": "web",
            "source": NAME,
            "node": "pve2",
            "state": state,
            "full": True,
        }
        made = lab.vm(**wanted)["vm"]
        before = lab.config(made)
        image(lab, "pve2", 3, NEW, scsi0="local-lvm:3")

        def require(world: World) -> None:
            guest = world.vms[made["vmid"]]
            assert guest.running is (state == "started")
            assert f"image={NAME}:{NEW} -->" in guest.config["description"]
            unused = {key: one for key, one in guest.config.items() if key.startswith("unused")}
            assert unused == {"unused0": before["scsi0"].partition(",")[0]}
            assert not lab.run("vm", **wanted, replace_image=True)["changed"]

        return Case("vm", {**wanted, "replace_image": True, **LIMITS}, require)

    return make


@pytest.mark.parametrize("stride", strides(5))
@pytest.mark.parametrize("state", ["stopped", "started"])
def test_another_image_of_a_vm(unused: Lab, state: str, stride: int) -> None:
    """The VM has one disk of the image, its former disk is kept, and it runs if it ran."""
    attack(unused, vm_image(state), stride)


def container_image(start: bool) -> Callable[[Lab], Case]:
    def make(lab: Lab) -> Case:
        reset(lab)
        publish(lab, "1")
        vmid = proxy(lab, state="started")
        before = lab.client.get("nodes", "pve1", "lxc", vmid, "config")
        publish(lab, "2")

        def require(world: World) -> None:
            guest = world.vms[vmid]
            assert guest.running is start
            assert "golden:2" in guest.config["description"]
            assert guest.config["mp0"] == before["mp0"]
            unused = [one for key, one in guest.config.items() if key.startswith("unused")]
            assert unused == [before["rootfs"].partition(",")[0]]
            assert holders(lab) == [f"replace-{vmid}"]

        options = {"name": "web", "source": "golden", "start": start, **LIMITS}
        return Case("container_image", options, require)

    return make


@pytest.mark.parametrize("stride", strides(9))
@pytest.mark.parametrize("start", [False, True])
def test_another_image_of_a_container(unused: Lab, start: bool, stride: int) -> None:
    """The container has the root of the image, its former root is kept, and there is one holder."""
    attack(unused, container_image(start), stride)
