"""Which guest is right after an interrupted migration to another cluster: the table of decision
0036, checked for every command at which the tunnel can break or the node of the source can go down.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.move import MoveRecord
from ansible_collections.pve.fleet.plugins.module_utils._protection.relocate.decide import (
    SideState,
    decide,
)
from tests.simulator.process import CLUSTERS, Simulator
from tests.simulator_tests.client import Client
from tests.simulator_tests.conftest import QUICK
from tests.simulator_tests.test_remote_migration import VM, container, options, states, vm

VM_COMMANDS = (
    "version disk disk-import disk-data query-disk-import config start memory nbdstop resume"
    " unlock quit"
).split()
CT_COMMANDS = "version disk-import disk-data query-disk-import config unlock start quit".split()
Case = tuple[str, str, str, str]  # kind of guest, mode, command, way of the interruption


def _cases() -> Iterator[Case]:
    for how in ("before", "after", "reboot"):
        for command in VM_COMMANDS:
            if "import" in command or command == "disk-data":
                continue  # a running machine copies its disks itself
            yield "qemu", "online", command, how
        for command in ("version", "disk-data", "query-disk-import", "config", "unlock", "quit"):
            yield "qemu", "offline", command, how
        for command in CT_COMMANDS:
            yield "lxc", "restart", command, how


CASES = list(_cases())
# A sample in the ordinary run, all in the slow one.
SOME = [pytest.param(one, id="-".join(one)) for one in CASES[::4]]
REST = [
    pytest.param(one, id="-".join(one), marks=pytest.mark.slow)
    for index, one in enumerate(CASES)
    if index % 4
]


@pytest.fixture(scope="module")
def other_server() -> Iterator[Simulator]:
    """The cluster that guests move to."""
    with Simulator("--cluster", CLUSTERS / "demo.yml", *QUICK) as sim:
        yield sim


@pytest.fixture
def away(other_server: Simulator) -> Client:
    """The other cluster as it is at the start."""
    other_server.reset()
    return Client(other_server)


def side_state(text: str, mode: str) -> SideState:
    """The state of one side in the form of the module, from a text such as `stopped migrate`."""
    if text == "gone":
        return SideState()
    power, _blank, lock = text.partition(" ")
    is_bare = lock == "create"
    record = None if is_bare else MoveRecord("0f", 200, "away", 300, mode, False, 0)
    return SideState(power, lock, record, is_bare)


def right_side(source: str, target: str, mode: str) -> str:
    """The side that the module names for two states."""
    return decide(side_state(source, mode), side_state(target, mode)).side


def interrupt(pve: Client, away: Client, case: Case) -> list[str]:
    """Move a guest, interrupt that, and return the states of both sides."""
    kind, mode, command, how = case
    path = container(pve, onboot=1) if kind == "lxc" else vm(pve, onboot=1)
    if mode != "offline":
        pve.ok("POST", f"{path}/status/start")
    how_it_moves = {"online": {"online": 1}, "restart": {"restart": 1}, "offline": {}}[mode]
    rule = {"method": "TUNNEL", "path": f"/{kind}/300/mtunnel/{command}$"}
    if how != "reboot":
        away.sim.fault(**rule, drop=how)
        pve.do("POST", f"{path}/remote_migrate", **options(away, **how_it_moves))
    else:
        away.sim.fault(**rule, delay_ms=150)
        upid = pve.post(f"{path}/remote_migrate", **options(away, **how_it_moves))
        pve.until(lambda: _is_met(away) or pve.status_of(upid)["status"] == "stopped")
        pve.sim.steer("/nodes/pve1", {"reboot": True})
        pve.until(lambda: pve.call("GET", f"{path}/status/current").status == 200)
    away.until(lambda: not _running_tunnels(away))
    return states(pve, away, kind)


def _is_met(away: Client) -> bool:
    return any(rule["done"] for rule in away.sim.ask("GET", "/faults"))


def _running_tunnels(away: Client) -> list[str]:
    rows = away.get("/nodes/pve1/tasks", source="active")
    return [row["upid"] for row in rows if "tunnel" in row["type"] and not row.get("endtime")]


def sides_with_all_data(case: Case, source: str) -> set[str]:
    """The sides whose guest has all data: known from the place of the interruption. The source has
    all data until the target has run, and the target from the command that completes its copy.
    """
    _kind, mode, command, how = case
    commands = CT_COMMANDS if mode == "restart" else VM_COMMANDS
    completing, starting = {
        "online": ("memory", "resume"),
        "offline": ("config", ""),
        "restart": ("config", "start"),
    }[mode]

    def has_passed(other: str) -> bool:
        if not other or source.startswith("running"):
            return False
        index, at = commands.index(command), commands.index(other)
        return index > at or (index == at and how != "before")

    found = {"target"} if has_passed(completing) else set()
    return found if has_passed(starting) else found | {"source"}


@pytest.mark.parametrize("case", [*SOME, *REST])
def test_the_table_names_a_side_with_all_data(pve: Client, away: Client, case: Case) -> None:
    """No interruption leaves two guests that execute, and the side that the table names has all
    data. A source that is locked does not start with its node.
    """
    source, target = interrupt(pve, away, case)
    executing = [side for side in (source, target) if side.split()[0] == "running"]
    assert len(executing) <= 1, (source, target)
    side = right_side(source, target, case[1])
    assert side != "none"
    assert side == "unknown" or side in sides_with_all_data(case, source), (source, target)
    if source.endswith("migrate") and case[3] == "reboot":
        assert source.startswith("stopped")


def test_a_locked_source_is_not_started_by_its_node(pve: Client, away: Client) -> None:
    """QemuServer.pm, vm_start_nolock: check_lock, also for a start by `startall`."""
    path = vm(pve, onboot=1)
    pve.ok("POST", f"{path}/remote_migrate", **options(away))
    pve.sim.steer("/nodes/pve1", {"reboot": True})
    pve.until(lambda: pve.call("GET", f"{VM}/status/current").status == 200)
    assert states(pve, away)[0] == "stopped migrate"
