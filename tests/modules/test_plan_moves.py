# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Something changes behind an approved plan of module relocate: the changed guest is refused with
planned and now, the other one moves, and nothing beside the plan is written.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cases import repeated
from tests.labs.relocate import make_guest, make_managed, options, prepare, state
from tests.modules.estate_lab import Lab
from tests.modules.test_plan_changes import BOTH
from tests.modules.test_plan_relocate import MAPS, approved, of_guests, planned
from tests.modules.test_plans import written

pytestmark = pytest.mark.usefixtures("fast")

CHANGED, OTHER = 20301, 20302
MODES = ("offline", "online", "restart")
KINDS = {"offline": "qemu", "online": "qemu", "restart": "lxc"}


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "plan.json")


@pytest.fixture
def away(munich: Lab) -> Lab:
    """The other site."""
    prepare(munich)
    return munich


class Guest:
    """The guest that changes behind the plan."""

    def __init__(self, here: Lab, away: Lab, mode: str) -> None:
        self.here, self.away, self.mode = here, away, mode
        self.kind = KINDS[mode]

    @property
    def path(self) -> tuple[str | int, ...]:
        key = "/vms" if self.kind == "qemu" else "/containers"
        rows = self.here.simulator.ask("GET", key)
        node = next(row["node"] for row in rows if int(row["vmid"]) == CHANGED)
        return ("nodes", node, self.kind, CHANGED)

    def config(self, **data: Any) -> None:
        if self.kind == "lxc" and "name" in data:
            data["hostname"] = data.pop("name")
        self.here.client.write("PUT", *self.path, "config", data=data)

    def power(self, action: str) -> None:
        self.here.client.task("POST", *self.path, "status", action)

    def switch(self) -> None:
        self.power("start" if state(self.here, CHANGED) == "stopped" else "stop")

    def remove(self) -> None:
        if state(self.here, CHANGED) == "running":
            self.power("stop")
        self.here.client.task("DELETE", *self.path)

    def create_again(self, **values: Any) -> None:
        self.remove()
        make_guest(self.here, self.mode, CHANGED, "w1")
        if values:
            self.config(**values)

    def move(self) -> None:
        key = "/vms" if self.kind == "qemu" else "/containers"
        self.here.simulator.steer(f"{key}/{CHANGED}", {"node": "pve2"})

    def add_disk(self) -> None:
        disk = {"scsi3": "ceph:2"} if self.kind == "qemu" else {"mp0": "ceph:2,mp=/srv"}
        self.config(**disk)

    def snapshot(self) -> None:
        self.here.client.task("POST", *self.path, "snapshot", data={"snapname": "by-hand"})

    def take_vmid(self) -> None:
        data = {"vmid": CHANGED, "name": "other"}
        self.away.client.task("POST", "nodes", "pve1", "qemu", data=data)

    def manage(self) -> None:
        make_managed(self.here, CHANGED, "vm" if self.kind == "qemu" else "ct")


CHANGES: dict[str, Callable[[Guest], None]] = {
    "moved": Guest.move,
    "switched": Guest.switch,
    "memory": lambda guest: guest.config(memory=768),
    "description": lambda guest: guest.config(description="by hand"),
    "protection": lambda guest: guest.config(protection=1),
    "nic": lambda guest: guest.config(
        net1="virtio,bridge=vmbr1" if guest.kind == "qemu" else "name=eth1,bridge=vmbr1"
    ),
    "disk": Guest.add_disk,
    "snapshot": Guest.snapshot,
    "HA": Guest.manage,
    "renamed": lambda guest: guest.config(name="other"),
    "retagged": lambda guest: guest.config(tags="tenant_globex"),
    "removed": Guest.remove,
    "created again": Guest.create_again,
    "created as another": lambda guest: guest.create_again(name="another"),
    "created for another": lambda guest: guest.create_again(tags="tenant_globex"),
    "VMID at the target": Guest.take_vmid,
}


def found_in(lab: Lab, kind: str) -> Any:
    """Return the state and the configuration of the changed guest, None if it is gone."""
    now = state(lab, CHANGED)
    if now == "gone":
        return None
    key = "/vms" if kind == "qemu" else "/containers"
    (row,) = [row for row in lab.simulator.ask("GET", key) if int(row["vmid"]) == CHANGED]
    return now, lab.client.get("nodes", row["node"], kind, CHANGED, "config")


def disable_storage(lab: Lab) -> None:
    lab.client.write("PUT", "storage", "local-lvm", data={"disable": 1})


def fill_storage(lab: Lab) -> None:
    for node in ("pve1", "pve2", "pve3"):
        values = {"volid": f"local-lvm:vm-99{node[-1]}9-disk-0", "new": True, "size": 1 << 50}
        lab.simulator.steer(f"/volumes/{node}", values)


@pytest.mark.parametrize("change", [disable_storage, fill_storage])
def test_a_target_without_its_storage_is_named_with_the_plan(
    unused: Lab, away: Lab, place: str, change: Callable[[Lab], None]
) -> None:
    make_guest(unused, "offline", CHANGED, "w1")
    given = options(unused, away, tenant="acme", **MAPS)
    planned(unused, away, place, given)
    change(away)
    for lab in (unused, away):
        lab.simulator.reset_log()
    for check in (True, False):
        refused = unused.run("relocate", check=check, apply_plan=place, **given)
        assert f"planned VMID {CHANGED} on node pve1, now " in refused["msg"]
        assert "storage" in refused["msg"].lower()
    assert written(unused) == written(away) == set()


# Each change with each mode, one mode of each in `make test`.
CASES = [
    pytest.param(MODES[(number + turn) % len(MODES)], change)
    for turn in range(len(MODES))
    for number, change in enumerate(CHANGES)
]


@pytest.mark.parametrize(("mode", "change"), repeated(CASES, first=len(CHANGES), more=8))
def test_a_guest_that_changed_is_refused_and_the_other_moves(
    unused: Lab, away: Lab, place: str, mode: str, change: str
) -> None:
    make_guest(unused, mode, CHANGED, "w1")
    make_guest(unused, "offline", OTHER, "w2")
    given = options(unused, away, tenant="acme", **MAPS)
    planned(unused, away, place, given)
    guest = Guest(unused, away, mode)
    CHANGES[change](guest)
    before = found_in(unused, guest.kind), found_in(away, "qemu")
    apply = {**given, "apply_plan": place}
    for number in range(2):
        for lab in (unused, away):
            lab.simulator.reset_log()
        foreseen = unused.run("relocate", check=True, **apply)
        assert unused.simulator.writes() == away.simulator.writes() == []
        found = unused.run("relocate", **apply)
        assert of_guests(unused) <= approved(place, "vienna")
        assert of_guests(away) <= approved(place, "munich")
        for result in (foreseen, found):
            assert result.get("failed"), result
            assert BOTH.search(result["msg"]), result["msg"]
        outcomes = {row["vmid"]: row["outcome"] for row in found["guests"]}
        assert outcomes.get(CHANGED, "failed") == "failed"
        assert outcomes[OTHER] == "held", found["msg"]
        assert found["changed"] == (number == 0)
    assert (found_in(unused, guest.kind), found_in(away, "qemu")) == before
