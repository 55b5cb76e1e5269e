# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module relocate, killed at random requests, while tunnels break, tasks fail, nodes reboot and people
start sources: the next run completes or takes back each move, whatever its way. No guest is lost,
and none runs twice.

`PVE_FLEET_CASES=1 pytest -m "slow or long or not slow" -rP` of this file prints a line for each move;
docs/relocation.md has their sums.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from contextlib import suppress
from typing import Any, NoReturn
from unittest import mock

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.http.backend import (
    ProxmoxerTransport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import FleetError
from tests.cases import repeated
from tests.labs.maintenance import Killed
from tests.labs.relocate import (
    add_vaults,
    both_states,
    make_guest,
    make_managed,
    managed_in,
    options,
    prepare,
    share_vaults,
    unlock,
)
from tests.modules.estate_lab import Lab
from tests.simulator_tests.test_killed_moves import COMMANDS

SEEDS = 300
MODES = ("online", "offline", "restart")
WAYS = (*MODES, "archive")
KILLS = 6  # of each move; then nothing breaks any more
RUNS = 60
_send = ProxmoxerTransport.send


class Fate:
    """The disturbances of one move, drawn from a seed, and the check after each request. The way
    `archive` is taken by a guest of any of the modes, because it has a snapshot.
    """

    def __init__(self, here: Lab, away: Lab, seed: int) -> None:
        self.here, self.away = here, away
        self.chance = random.Random(seed)
        self.way = WAYS[seed % len(WAYS)]
        self.mode = MODES[seed // len(WAYS) % len(MODES)] if self.way == "archive" else self.way
        self.guest = make_guest(here, self.mode)
        kind = "ct" if self.mode == "restart" else "vm"
        self.sid = f"{kind}:{self.guest}"
        self.managed = bool(seed // len(WAYS) % 2)
        self.path = ("nodes", "pve1", "lxc" if kind == "ct" else "qemu", self.guest)
        self.tool = "pct" if kind == "ct" else "qm"
        if self.way == "archive":
            add_vaults(here, away)
            here.client.task("POST", *self.path, "snapshot", data={"snapname": "before"})
            time.sleep(1.1)  # a start in the second of a backup may be one after it
        if self.managed:
            make_managed(here, self.guest, kind)
        self.runs = 0
        self.seen: Counter[str] = Counter()
        self.point = 0
        self.reboots = False

    @property
    def options(self) -> dict[str, Any]:
        """The options of the way."""
        archive = {"archive_storage": "nas", "archive_without": ["snapshots"]}
        return archive if self.way == "archive" else {}

    def prepare(self) -> None:
        """Draw the next disturbance."""
        for lab in (self.here, self.away):
            lab.simulator.clear_faults()
        self.point, self.reboots = 0, False
        self.runs += 1
        if sum(self.seen.values()) >= KILLS or self.runs > RUNS // 2:
            return
        what = self.chance.choice(("kill", "kill", "break", "reboot"))
        kind = "lxc" if self.mode == "restart" else "qemu"
        command = self.chance.choice(COMMANDS[self.mode])
        rule = {"method": "TUNNEL", "path": f"/{kind}/{self.guest}/mtunnel/{command}$"}
        if what == "kill":
            self.point = self.chance.randint(1, 60)
        elif self.way == "archive":
            self.reboots = what == "reboot"
            restore = "vzrestore" if kind == "lxc" else "qmrestore"
            lab, task = self.chance.choice(((self.here, "vzdump"), (self.away, restore)))
            if what == "break":
                lab.simulator.fault(task=task, fail="no space left on device")
        elif what == "break":
            self.away.simulator.fault(**rule, drop=self.chance.choice(("before", "after")))
        else:
            self.away.simulator.fault(**rule, delay_ms=100)
            self.reboots = True

    def send(self, transport: ProxmoxerTransport, request: Request) -> Any:
        """Send a request of the module, unless the process dies before or after it."""
        self.point -= 1
        if self.point == 0 and self.chance.random() < 0.5:
            self.die("killed")
        if self.way == "archive" and request.path[-1] == "content":
            share_vaults(self.here, self.away)
        answer = _send(transport, request)
        if request.method != "GET":
            self.check()
        if self.reboots and str(request.path[-1]) in ("remote_migrate", "vzdump"):
            self.reboots = False
            self.reboot()
            self.die("killed, and its node rebooted")
        if self.point == 0:
            self.die("killed")
        return answer

    def die(self, how: str) -> NoReturn:
        """End the process."""
        self.seen[how] += 1
        raise Killed

    def reboot(self) -> None:
        """Reboot the node of the source while its migration runs. The HA manager fences such a node,
        removes the lock of its resources and starts them (pve-ha-manager: HA/Manager.pm,
        fence_recovery_cleanup).
        """
        time.sleep(self.chance.random() * 0.15)
        self.here.simulator.steer("/nodes/pve1", {"reboot": True})
        if self.sid in managed_in(self.here):
            unlock({"": self.here}, [{"site": "", "command": f"{self.tool} unlock {self.guest}"}])
            self.here.client.task("POST", *self.path, "status", "start")

    def meddle(self) -> None:
        """Start the source by hand, as long as no target exists: the archive is out of date then. A
        container can also be started between root's unlock and the removal, see 0036.
        """
        if self.way == "archive" and self.check()[1] == "gone" and self.chance.random() < 0.2:
            with suppress(FleetError):
                self.here.client.task("POST", *self.path, "status", "start")
            self.seen["started by hand"] += 1
            self.check()

    def check(self) -> tuple[str, str]:
        """Return the states of both sides: at most one guest runs, and at least one is there."""
        found = both_states(self.here, self.away, self.guest)
        assert [one.split()[0] for one in found].count("running") <= 1, found
        assert found != ("gone", "gone")
        managed = [self.sid in managed_in(lab) for lab in (self.here, self.away)]
        assert not all(managed), "it is an HA resource at both sites"
        if managed[1]:
            assert not found[0].startswith("running"), found
        return found


def is_complete(row: dict[str, Any]) -> bool:
    return bool(row["outcome"] == "complete")


def run(fate: Fate, given: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a run, None if it was killed."""

    def send(transport: ProxmoxerTransport, request: Request) -> Any:
        return fate.send(transport, request)

    fate.prepare()
    with mock.patch.object(ProxmoxerTransport, "send", send):
        try:
            result: dict[str, Any] = fate.here.run("relocate", **given)
        except Killed:
            return None
    for lab in (fate.here, fate.away):
        for rule in lab.simulator.ask("GET", "/faults"):
            fate.seen["tunnel broken"] += bool(rule["done"] and rule.get("drop"))
            fate.seen["task failed"] += bool(rule["done"] and rule.get("fail"))
    return result


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("seed", repeated(range(SEEDS), first=8, more=4))
def test_a_killed_move_is_completed_by_the_next_run(unused: Lab, munich: Lab, seed: int) -> None:
    """The guest ends at the target with its disk and its power state, and the source is gone."""
    prepare(munich)
    fate = Fate(unused, munich, seed)
    given = options(
        unused,
        munich,
        vms=["mover"],
        storage_map={"ceph": "local-lvm"},
        networks={"vmbr0": "vmbr1"},
        hold="0s",
        task_timeout=30,
        **fate.options,
    )
    for _number in range(RUNS):
        result = run(fate, given)
        fate.check()
        if fate.runs < RUNS // 2:
            fate.meddle()
        if result is None:
            continue
        error = result.get("error") or {}
        assert error.get("reason") != "unclear move", result
        rows = result.get("guests", ())
        if fate.check()[0] == "gone" and not error and all(map(is_complete, rows)):
            break  # without a row if the run before was killed after its last write
        if fate.chance.random() < 0.8:  # root may be late
            unlock({"vienna": unused, "munich": munich}, result.get("commands", ()))
            fate.check()
    else:
        raise AssertionError(f"not complete: {fate.check()} {fate.seen}")
    powers = {"stopped"} if fate.mode == "offline" else {"running"}
    if fate.seen["started by hand"]:
        powers.add("running")
    assert fate.check()[0] == "gone"
    assert fate.check()[1] in powers
    volumes = {row["volid"] for row in munich.simulator.ask("GET", "/volumes")}
    assert any(f"-{fate.guest}-disk-" in volume for volume in volumes)
    assert (fate.sid in managed_in(munich)) == fate.managed
    print(f"{fate.way} {json.dumps({'HA': fate.managed, **fate.seen})}")
