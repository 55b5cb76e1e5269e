# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Eight processes provision, snapshot, migrate and delete the same VMs and different ones.

For a minute in `make test-long`, for some seconds in `make test`.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from tests.cases import cases
from tests.faults.world import World, read_world
from tests.modules.estate_lab import open_lab_of_processes
from tests.modules.module_runner import run_module

PROCESSES = 8
SECONDS = cases(full=60, short=6)
# Steps of each process at least: on a busy machine the time is over before each kind was drawn.
STEPS = 8
NODES = ("pve1", "pve2", "pve3")
QUOTA = {"vms": 6}
TENANTS = ("acme", "globex")
SHARED = tuple(f"shared-{number}" for number in range(5))
# How a run may end that meets another one at its VM; PVE fails a task whose VM is changed.
MEETINGS = {"Conflict", "Locked", "NotFound", "QuotaExceeded", "TaskFailed", "TaskTimeout"}

Outcome = tuple[str, str, str]
"""What was done, the category of the error or an empty text, and the message."""


def options_of(rng: random.Random, process: int) -> tuple[str, str, dict[str, Any]]:
    """Return one thing to do: its name, the module and its options."""
    name = rng.choice([*SHARED, f"own-{process}"])
    vm = {"name": name, "tenant": rng.choice(TENANTS), "lock_timeout": 30}
    made = {**vm, "disks": [{"size": 4, "storage": "ceph"}], "quota": QUOTA}
    snapshot = {**vm, "snapshot": rng.choice(["one", "two"])}
    work: dict[str, tuple[str, dict[str, Any]]] = {
        "provision": ("vm", {**made, "state": rng.choice(["present", "started"])}),
        "clone": ("vm", {**vm, "quota": QUOTA, "source": "debian-13", "state": "present"}),
        "snapshot": ("snapshot", snapshot),
        "delete snapshot": ("snapshot", {**snapshot, "state": "absent"}),
        "migrate": ("vm", {**made, "node": rng.choice(NODES), "migrate": True}),
        "delete": ("vm", {**vm, "state": "absent", "force": True}),
    }
    weights = {"provision": 5, "clone": 3, "delete": 3}
    what = rng.choices(list(work), [weights.get(name, 2) for name in work])[0]
    module, options = work[what]
    return what, module, options


def work_for(connection: dict[str, Any], process: int, seconds: float) -> list[Outcome]:
    """Do one thing after the other until the time is over, and return the outcome of each."""
    rng = random.Random(process)
    end = time.monotonic() + seconds
    outcomes: list[Outcome] = []
    while time.monotonic() < end or len(outcomes) < STEPS:
        what, module, options = options_of(rng, process)
        result = run_module(module, {**connection, **options})
        category = result["error"]["category"] if result.get("failed") else ""
        outcomes.append((what, category, str(result.get("msg", ""))))
    return outcomes


@pytest.fixture(scope="module")
def raced() -> Any:
    """The outcomes of all processes, and what is there before and after."""
    with open_lab_of_processes("--lag-s", "2") as lab:
        before = read_world(lab)
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(PROCESSES, mp_context=context) as pool:
            jobs = [
                pool.submit(work_for, lab.connection, number, SECONDS)
                for number in range(PROCESSES)
            ]
            outcomes = [outcome for job in jobs for outcome in job.result()]
        yield outcomes, before, read_world(lab)


Raced = tuple[list[Outcome], World, World]


def made(raced: Raced) -> list[Any]:
    """Return the VMs that the processes made."""
    _outcomes, before, after = raced
    return [vm for vmid, vm in after.vms.items() if vmid not in before.vms]


def test_each_run_succeeds_or_says_what_it_met(raced: Raced) -> None:
    outcomes, _before, _after = raced
    counts = Counter((what, category) for what, category, _text in outcomes)
    print(dict(counts))
    assert [one for one in outcomes if one[1] and one[1] not in MEETINGS] == []
    # Each kind of work is done, and not only refused.
    assert {what for what, category in counts if not category} >= {"provision", "clone", "delete"}


def test_names_are_unique_within_a_tenant(raced: Raced) -> None:
    counts = Counter((vm.name, frozenset(vm.tags)) for vm in made(raced))
    assert [key for key, number in counts.items() if number > 1] == []


def test_each_vm_is_one_tenants(raced: Raced) -> None:
    for vm in made(raced):
        owners = {tag for tag in vm.tags if tag.startswith("tenant_")}
        assert len(owners) == 1, vm
        assert owners <= {f"tenant_{tenant}" for tenant in TENANTS}


def test_quotas_hold_in_the_end(raced: Raced) -> None:
    counts = Counter(tag for vm in made(raced) for tag in vm.tags if tag.startswith("tenant_"))
    assert all(number <= QUOTA["vms"] for number in counts.values()), counts


def test_nothing_is_left_over(raced: Raced) -> None:
    outcomes, before, after = raced
    left = "could not be removed again"
    assert [text for _what, _category, text in outcomes if left in text] == []
    assert after.leaked() <= before.leaked()
    for vm in made(raced):
        assert "lock" not in vm.config, vm
        assert " run=" not in vm.config.get("description", ""), vm
        assert all("snapstate" not in kept for kept in vm.snapshots.values()), vm
    for vmid, vm in before.vms.items():
        assert after.vms[vmid] == vm
