# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part that measures plans as files."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.bench.figures import Figure, Measured, ratio
from tests.bench.parts import Bench, made_up_cluster, row_of_plays
from tests.bench.sides import Played
from tests.bench.workloads.fleets import ALL, FLEET, desired_made_up_vms


def plan1000(bench: Bench) -> Measured:
    """A change of 1,000 VMs: planned into a file, applied from it, and the same run without a plan."""
    vms = {"vms": desired_made_up_vms(ALL)}
    change = {"vms": "{{ vms | map('combine', {'onboot': false}) | list }}"}
    unchanged: list[Played] = []
    planned: list[Played] = []
    applied: list[Played] = []
    without: list[Played] = []
    sizes: list[float] = []
    with tempfile.TemporaryDirectory() as place, made_up_cluster(ALL) as simulator:
        file = Path(place) / "plan.json"
        noop = {"name": "Ours", FLEET: {"vms": "{{ vms }}"}}
        plan = {"name": "Ours", FLEET: {**change, "plan_file": str(file)}, "check_mode": True}
        apply = {"name": "Ours", FLEET: {**change, "apply_plan": str(file)}}
        run = {"name": "Ours", FLEET: change}
        for _turn in range(bench.runs):
            simulator.reset()
            unchanged.append(bench.ours.play(simulator, [noop], variables=vms).expect(0))
            planned.append(bench.ours.play(simulator, [plan], variables=vms).expect(1))
            sizes.append(file.stat().st_size / (1 << 20))
            applied.append(bench.ours.play(simulator, [apply], variables=vms).expect(1))
            simulator.reset()
            without.append(bench.ours.play(simulator, [run], variables=vms).expect(1))
    measured = Measured(
        [
            row_of_plays(f"{ALL:,} VMs unchanged, one task", bench.ours, unchanged, units=ALL),
            row_of_plays(f"{ALL:,} changes planned into a file", bench.ours, planned, units=ALL),
            row_of_plays(f"{ALL:,} changes, applied from the file", bench.ours, applied, units=ALL),
            row_of_plays(f"{ALL:,} changes without a plan", bench.ours, without, units=ALL),
        ]
    )
    _noop, _plan, of_plan, of_run = (row.seconds for row in measured.rows)
    measured.keys["plan1000_mib"] = Figure(tuple(sizes))
    requests = zip(planned, unchanged, strict=True)
    shares = tuple(check.requests / noop.requests for check, noop in requests)
    measured.keys["plan1000_check_requests_ratio"] = Figure(shares)
    measured.keys["apply_over_run"] = ratio(of_plan, of_run)
    return measured
