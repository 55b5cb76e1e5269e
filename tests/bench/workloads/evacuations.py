"""The part that measures the evacuation of a node."""

from __future__ import annotations

from tests.bench.environment import NotMeasured
from tests.bench.figures import Measured
from tests.bench.parts import (
    NODES,
    SLOTS,
    TASK_MS,
    Bench,
    ask,
    in_no_time,
    row_of_plays,
    tasks_cluster,
)
from tests.bench.workloads.fleets import FLEET
from tests.simulator.process import Simulator

_NODE, _GUESTS = "pve1", 60
_MIGRATION_MS = 1000
_AWAY = {"name": "Ours", "pve.fleet.evacuation": {"node": _NODE, "parallel": SLOTS}}
_BACK = {"name": "Ours", "pve.fleet.evacuation": {"node": _NODE, "state": "returned"}}


def evacuate60(bench: Bench) -> Measured:
    """60 running VMs with a shared disk, moved off one of five nodes by one task."""
    vms = [{"name": f"moved-{index:02}", "node": _NODE} for index in range(_GUESTS)]
    disks = [{"size": 1, "storage": "ceph"}]
    desired = {"memory": "512M", "disks": disks, "state": "started", "vms": vms}
    bound = _GUESTS * _MIGRATION_MS / 1000 / SLOTS
    plays = []
    with tasks_cluster() as simulator:
        with in_no_time(simulator):
            bench.ours.play(simulator, [{"name": "Ours", FLEET: desired}]).expect(1)
        for _turn in range(bench.few):
            simulator.steer("/settings", {"task_ms": {**TASK_MS, "qmigrate": _MIGRATION_MS}})
            _must_run_there(simulator, _GUESTS)
            plays.append(bench.ours.play(simulator, [_AWAY]).expect(1))
            _must_run_there(simulator, 0)
            with in_no_time(simulator):
                bench.ours.play(simulator, [_BACK]).expect(1)
    row = row_of_plays(
        f"{_GUESTS} VMs moved off a node, one task", bench.ours, plays, units=_GUESTS
    )
    measured = Measured([row])
    measured.keys["evacuate60_over_bound"] = row.seconds.scaled(1 / bound)
    measured.notes.append(
        f"{_GUESTS} VMs run on one of {NODES} nodes, with disks on shared storage. A migration"
        f" takes {_MIGRATION_MS / 1000:g} s for any size of memory, and {SLOTS} migrations run at"
        " once, the default of the option `parallel`. The bound is the time of the migrations"
        f" divided by these slots, {bound:g} s. The time of the task includes the checks of the"
        " cluster, the plan and the record of the evacuation."
    )
    return measured


def _must_run_there(simulator: Simulator, number: int) -> None:
    """Raise NotMeasured unless this number of VMs runs on the node."""
    rows = ask(simulator, f"nodes/{_NODE}/qemu")
    running = sum(row["status"] == "running" for row in rows)
    if running != number:
        raise NotMeasured(f"{running} VMs run on node {_NODE} instead of {number}")
