"""The part that measures the move of guests to another cluster."""

from __future__ import annotations

from typing import Any

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
from tests.simulator.process import TOKEN_ID, TOKEN_SECRET, Simulator

_GUESTS = 40
_SIZES = (1, 2, 3, 4)  # GiB
_GIB_MS = 4000  # of one of the moves that share a link
_NOT_GIVEN = dict.fromkeys(("host", "token_id", "token_secret", "ca_path"))


def relocate40(bench: Bench) -> Measured:
    """40 stopped VMs with disks of 1 to 4 GiB, moved to another cluster by one task."""
    vms = [
        {
            "name": f"moved-{index:02}",
            "node": f"pve{index % NODES + 1}",
            "disks": [{"size": _SIZES[index % len(_SIZES)], "storage": "ceph"}],
        }
        for index in range(_GUESTS)
    ]
    desired = {"memory": "512M", "state": "stopped", "vms": vms}
    size = sum(_SIZES[index % len(_SIZES)] for index in range(_GUESTS))
    bound = size * _GIB_MS / 1000 / SLOTS
    plays = []
    for _turn in range(bench.few):
        with tasks_cluster() as here, tasks_cluster() as away:
            with in_no_time(here):
                bench.ours.play(here, [{"name": "Ours", FLEET: desired}]).expect(1)
            here.steer("/settings", {"task_ms": {**TASK_MS, "link": _GIB_MS}})
            task = {"name": "Ours", "pve.fleet.relocate": _options(here, away)}
            plays.append(bench.ours.play(here, [task]).expect(1))
            _must_be_there(away, _GUESTS)
    row = row_of_plays(
        f"{_GUESTS} VMs moved to another cluster, one task", bench.ours, plays, units=_GUESTS
    )
    measured = Measured([row])
    measured.keys["relocate40_over_bound"] = row.seconds.scaled(1 / bound)
    measured.notes.append(
        f"{_GUESTS} stopped VMs have disks of {_SIZES[0]} to {_SIZES[-1]} GiB on one storage. The link"
        f" sends a GiB of one move in {_GIB_MS / 1000:g} s, and {SLOTS} moves run at once, the option"
        f" `parallel_per_storage`. The bound is {size} GiB over the link divided by these moves,"
        f" {bound:g} s. The time of the task includes the plan, the records and the proofs."
    )
    return measured


def _options(here: Simulator, away: Simulator) -> dict[str, Any]:
    """Return the options of the move of all guests to the node of the other cluster that answers."""
    login = {"token_id": TOKEN_ID, "token_secret": TOKEN_SECRET}
    sites = [
        {"name": name, "host": one.url, "ca_path": one.ca, **login}
        for name, one in (("here", here), ("away", away))
    ]
    return {
        **_NOT_GIVEN,
        "sites": sites,
        "site": "here",
        "to_site": "away",
        "all": True,
        "exclude": ["kept"],
        "node": "pve1",
        "storage": "local-lvm",
        "parallel": 2 * SLOTS,
        "parallel_per_storage": SLOTS,
    }


def _must_be_there(simulator: Simulator, number: int) -> None:
    """Raise NotMeasured unless the cluster has this number of VMs."""
    rows = ask(simulator, "nodes/pve1/qemu")
    found = sum(str(row["name"]).startswith("moved-") for row in rows)
    if found != number:
        raise NotMeasured(f"{found} VMs are at the other cluster instead of {number}")
