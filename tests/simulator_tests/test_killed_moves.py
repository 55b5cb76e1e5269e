"""Moves to another cluster that are killed at random until they end: the steps of decision 0036, one
at a time, each from a new reading of both sides. No guest is lost, and none runs twice.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cases import repeated
from tests.simulator.process import CLUSTERS, Simulator
from tests.simulator_tests.client import Client
from tests.simulator_tests.conftest import QUICK
from tests.simulator_tests.test_interrupted_moves import CT_COMMANDS, VM_COMMANDS, right_side
from tests.simulator_tests.test_remote_migration import container, options, states, vm

MODES: dict[str, tuple[str, dict[str, Any]]] = {
    "online": ("qemu", {"online": 1}),
    "offline": ("qemu", {}),
    "restart": ("lxc", {"restart": 1}),
}
COMMANDS = {
    "online": [one for one in VM_COMMANDS if "import" not in one and one != "disk-data"],
    "offline": [one for one in CT_COMMANDS if one != "start"],
    "restart": CT_COMMANDS,
}
KILLS = 6  # of each move; then nothing breaks any more
STEPS = 40
SEEDS = 150


@pytest.fixture(scope="module")
def other_server() -> Iterator[Simulator]:
    """The cluster that guests move to."""
    with Simulator("--cluster", CLUSTERS / "demo.yml", *QUICK) as sim:
        yield sim


class Move:
    """One move: each call of `step` reads both sides and does one thing."""

    def __init__(self, pve: Client, away: Client, mode: str, chance: random.Random) -> None:
        self.pve = pve
        self.away = away
        self.mode = mode
        self.kind, self.how = MODES[mode]
        self.chance = chance
        self.kills = 0
        self.seen: Counter[str] = Counter()
        self.here = f"/nodes/pve1/{self.kind}/200"
        self.there = f"/nodes/pve1/{self.kind}/300"
        make = container if self.kind == "lxc" else vm
        # a stopped machine must stay stopped when its node reboots before the move
        make(pve, onboot=int(mode != "offline" and chance.random() < 0.5))
        if mode != "offline":
            pve.ok("POST", f"{self.here}/status/start")

    def read(self) -> tuple[str, str]:
        """The states of both sides; at most one guest executes, and at least one is there."""
        source, target = states(self.pve, self.away, self.kind)
        executing = [side for side in (source, target) if side.split()[0] == "running"]
        assert len(executing) <= 1, (source, target)
        assert (source, target) != ("gone", "gone")
        self.seen[f"{self.mode}: {source} | {target}"] += 1
        return source, target

    def step(self) -> bool:
        """Do the next step, and return whether the move is complete."""
        source, target = self.read()
        side = self._right_side(source, target)
        if side == "target":
            return self._complete(source, target)
        self._return_to_source(source, target)
        return False

    def _right_side(self, source: str, target: str) -> str:
        if source == "gone" or self._is_proven(target):
            return "target"
        side = right_side(source, target, self.mode)
        if side == "unknown":
            return "target" if self._has_handed_over() else "source"
        return side

    def _is_proven(self, target: str) -> bool:
        """Whether the record of the target says so."""
        return target != "gone" and "proven" in self.away.config(self.there).get("description", "")

    def _has_handed_over(self) -> bool:
        """Whether the log of the newest task of the source shows that the memory has arrived."""
        rows = self.pve.get("/nodes/pve1/tasks", typefilter="qmigrate")
        return any("migration status: completed" in line for line in self._log(rows[0]["upid"]))

    def _log(self, upid: str) -> list[str]:
        return self.pve.task_log(upid)

    def _complete(self, source: str, target: str) -> bool:
        """The target is right: unlock it, let it run, then remove the source."""
        if target.endswith("migrate"):
            self._unlock(self.away, 300)
        elif target == "paused":
            self.away.ok("POST", f"{self.there}/status/resume")
        elif target == "stopped" and self.mode != "offline":
            self.away.ok("POST", f"{self.there}/status/start")
        elif not self._is_proven(target):
            self.away.put(f"{self.there}/config", description="proven")
        elif source.endswith("migrate"):
            self._unlock(self.pve, 200)
        elif source == "stopped":
            self.pve.ok("DELETE", self.here)
        else:
            assert source == "gone"
            return True
        return False

    def _return_to_source(self, source: str, target: str) -> None:
        """The source is right: remove the rest of the target, and move again."""
        if target.split()[-1] in ("create", "migrate"):
            self._unlock(self.away, 300)
            if not target.startswith("stopped"):
                self.away.ok("POST", f"{self.there}/status/stop")
            self.away.ok("DELETE", self.there)
        elif source.endswith("migrate"):
            self._unlock(self.pve, 200)
        elif source == "stopped" and self.mode != "offline":
            self.pve.ok("POST", f"{self.here}/status/start")
        else:
            self._move()

    def _unlock(self, client: Client, vmid: int) -> None:
        """As root does with `qm unlock` or `pct unlock` on the node."""
        if self.kind == "qemu":
            client.sim.steer(f"/vms/{vmid}", {"lock": None})
        else:
            client.sim.steer(f"/containers/{vmid}", {"config": {"lock": None}})

    def _move(self) -> None:
        """Move the guest; a random command breaks the tunnel, or the node reboots during it."""
        self.away.sim.clear_faults()
        if self.kills < KILLS:
            self.kills += 1
            command = self.chance.choice(COMMANDS[self.mode])
            rule = {"method": "TUNNEL", "path": f"/{self.kind}/300/mtunnel/{command}$"}
            if self.chance.random() < 0.3:
                self.away.sim.fault(**rule, delay_ms=100)
                self._reboot_during_it()
                return
            self.away.sim.fault(**rule, drop=self.chance.choice(("before", "after")))
        upid = self.pve.post(f"{self.here}/remote_migrate", **options(self.away, **self.how))
        self.pve.wait(upid)
        self._await_tunnel()

    def _reboot_during_it(self) -> None:
        pve = self.pve
        upid = pve.post(f"{self.here}/remote_migrate", **options(self.away, **self.how))
        pve.until(lambda: self._is_met() or pve.status_of(upid)["status"] == "stopped")
        pve.sim.steer("/nodes/pve1", {"reboot": True})
        pve.until(lambda: pve.call("GET", f"{self.here}/status/current").status == 200)
        self._await_tunnel()

    def _is_met(self) -> bool:
        return any(rule["done"] for rule in self.away.sim.ask("GET", "/faults"))

    def _await_tunnel(self) -> None:
        self.away.until(lambda: not self._running_tunnels())

    def _running_tunnels(self) -> list[str]:
        rows = self.away.get("/nodes/pve1/tasks", source="active")
        return [row["upid"] for row in rows if "tunnel" in row["type"] and not row.get("endtime")]


# A move ends with the first kill that comes too late for it: all moves together are killed 300 times.
@pytest.mark.parametrize("seed", repeated(range(SEEDS), first=3, more=3))
def test_a_move_that_is_killed_again_and_again_ends(
    pve: Client, other_server: Simulator, seed: int
) -> None:
    """The guest ends on the other cluster, with its disk, in the power state that it had."""
    other_server.reset()
    chance = random.Random(seed)
    mode = sorted(MODES)[seed % len(MODES)]
    move = Move(pve, Client(other_server), mode, chance)
    for _number in range(STEPS):
        if move.step():
            break
    else:
        raise AssertionError(f"not complete: {move.seen}")
    source, target = move.read()
    assert (source, target) == ("gone", "stopped" if mode == "offline" else "running")
    config = move.away.config(move.there)
    disk = config["rootfs" if mode == "restart" else "scsi0"]
    assert disk.partition(",")[0] in move.away.volumes("local-lvm")
