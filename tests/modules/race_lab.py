# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Several processes that make the same VMs at once, on a cluster whose listing lags and lies."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from typing import Any

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import connect
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import FleetError
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.vm import vm_spec
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.run import run as converge
from tests.modules.estate_lab import Lab

DEFAULTS = {name: option.get("default") for name, option in vm_spec().items()}
NODES = ("pve1", "pve2", "pve3")

# What one run came to: the name, "created", "unchanged" or the error, and the VMID that it
# reported.
Outcome = tuple[str, str, int | None]


def run_loop(
    connection: dict[str, Any], all_wanted: list[dict[str, Any]], gate: Any
) -> list[Outcome]:
    """Run module vm over the desired VMs one after the other, as a loop of one process does."""
    outcomes: list[Outcome] = []
    gate.wait(300)
    with connect({**connection, "lock_timeout": 120}, {}) as client:
        for wanted in all_wanted:
            try:
                result = converge({**DEFAULTS, **wanted}, client)
            except FleetError as error:
                outcomes.append((wanted["name"], f"{error.category}: {error.message}", None))
                continue
            did = "created" if result.changed else "unchanged"
            vm = dict(result.values["vm"] or {})
            outcomes.append((wanted["name"], did, vm.get("vmid")))
    return outcomes


def race(lab: Lab, all_wanted: list[dict[str, Any]], processes: int) -> list[Outcome]:
    """Return the outcomes of that many processes that all run over the same desired VMs at the same
    time.
    """
    context = multiprocessing.get_context("fork")
    with context.Manager() as manager:
        gate = manager.Barrier(processes)
        with context.Pool(processes) as pool:
            work = [(lab.connection, all_wanted, gate)] * processes
            return [outcome for outcomes in pool.starmap(run_loop, work) for outcome in outcomes]


def by_name(lab: Lab) -> dict[str, list[int]]:
    """Return the VMIDs of each name, as the nodes themselves have them."""
    found: dict[str, list[int]] = {}
    for node in NODES:
        for row in lab.client.get("nodes", node, "qemu"):
            found.setdefault(row["name"], []).append(int(row["vmid"]))
    return found


def check_round(
    lab: Lab, all_wanted: list[dict[str, Any]], outcomes: list[Outcome], processes: int
) -> None:
    """Fail unless each VM is there once, was created by one run, and every other run left it
    unchanged.
    """
    failed = [outcome for outcome in outcomes if outcome[1] not in ("created", "unchanged")]
    assert failed == []
    there = by_name(lab)
    for wanted in all_wanted:
        name = wanted["name"]
        assert len(there.get(name, [])) == 1, (name, there)
        assert {vmid for said, _did, vmid in outcomes if said == name} == set(there[name])
        did = Counter(did for said, did, _vmid in outcomes if said == name)
        assert did == {"created": 1, "unchanged": processes - 1}, (name, did)
