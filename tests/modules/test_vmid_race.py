# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Many runs in several processes that make VMs at once, all from the same stale listing."""

from __future__ import annotations

import multiprocessing
import threading
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import (
    Client,
    connect,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import FleetError
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.vm import vm_spec
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.run import run as converge
from tests.modules.estate_lab import Lab, open_lab_of_processes

VMS, PROCESSES = 50, 8
DEFAULTS = {name: option.get("default") for name, option in vm_spec().items()}
BLANK: dict[str, Any] = {"disks": [{"size": 1, "storage": "ceph"}], "cores": 1, "memory": "256M"}

Job = tuple[dict[str, Any], dict[str, Any]]
Outcome = tuple[str, dict[str, Any] | None, dict[str, int], str]


def make(job: Job) -> Outcome:
    """Make one VM and return its name, what the run says of it, how many requests it took, and its
    failure.
    """
    connection, options = job
    with connect({**connection, "lock_timeout": 120}, {}) as client:
        try:
            vm = dict(converge({**DEFAULTS, **options}, client).values["vm"])
        except FleetError as error:
            return options["name"], None, client.counts(), str(error.as_result())
        return options["name"], vm, client.counts(), ""


def make_several(jobs: list[Job]) -> list[Outcome]:
    """The work of one process: its VMs side by side."""
    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(make, jobs))


def race(lab: Lab, all_wanted: list[dict[str, Any]]) -> list[Outcome]:
    """Make all VMs at once from several processes."""
    jobs = [(lab.connection, wanted) for wanted in all_wanted]
    shares = [jobs[start::PROCESSES] for start in range(PROCESSES)]
    with ProcessPoolExecutor(PROCESSES, mp_context=multiprocessing.get_context("fork")) as pool:
        return [outcome for outcomes in pool.map(make_several, shares) for outcome in outcomes]


def fifty_at_once(source: str | None) -> None:
    """Fifty runs, fifty VMs, fifty numbers, each result its own VM, and none too many."""
    what = {"source": source} if source else BLANK
    all_wanted = [
        {"name": f"race-{index}", "tenant": f"t{index % 3}", **what} for index in range(VMS)
    ]
    with open_lab_of_processes("--lag-s", "8", "--latency-ms", "20") as lab:
        outcomes = race(lab, all_wanted)
        assert [text for _name, _vm, _counts, text in outcomes if text] == []
        vms = {name: vm for name, vm, _counts, _text in outcomes if vm is not None}
        assert vms.keys() == {wanted["name"] for wanted in all_wanted}
        assert len({vm["vmid"] for vm in vms.values()}) == VMS
        assert all(10000 <= vm["vmid"] <= 99999 for vm in vms.values())
        tenants = {wanted["name"]: wanted["tenant"] for wanted in all_wanted}
        for name, vm in vms.items():
            config = lab.config(vm)
            assert (config["name"], vm["name"], vm["tenant"]) == (name, name, tenants[name])
            assert "lock" not in config
        rows = lab.client.get("cluster", "resources", type="vm")
        assert {row["vmid"] for row in rows} == {9000, 9001} | {vm["vmid"] for vm in vms.values()}
        # No process asked for a number more often than a handful of times.
        writes = [
            sum(number for verb, number in counts.items() if verb != "GET")
            for _n, _v, counts, _t in outcomes
        ]
        assert sum(writes) <= VMS * 8
        # What the losers decided again, they decided from what the winners had done: no node gets
        # them all.
        on = Counter(vm["node"] for vm in vms.values())
        assert len(on) == 3


@pytest.mark.parametrize("source", [None, "9000"], ids=["created", "cloned"])
def test_fifty_vms_from_eight_processes(source: str | None) -> None:
    fifty_at_once(source)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("source", [None, "9000"], ids=["created", "cloned"])
@pytest.mark.parametrize("turn", range(10))
def test_fifty_vms_from_eight_processes_again(source: str | None, turn: int) -> None:
    fifty_at_once(source)


def test_a_band_that_fills_up_while_they_run(name: str) -> None:
    """Twelve runs and ten numbers: ten VMs, and two errors that say so."""
    with open_lab_of_processes("--lag-s", "8", "--latency-ms", "5") as lab:
        all_wanted = [
            {"name": f"{name}-{index}", "vmid_range": [30000, 30009], **BLANK}
            for index in range(12)
        ]
        outcomes = race(lab, all_wanted)
        numbers = [vm["vmid"] for _name, vm, _counts, _text in outcomes if vm is not None]
        assert sorted(numbers) == list(range(30000, 30010))
        failures = [text for _name, _vm, _counts, text in outcomes if text]
        assert len(failures) == 2
        assert all("QuotaExceeded" in text and "30000 to 30009" in text for text in failures)


def test_an_explicit_number_that_is_lost_is_an_error(quiet: Lab, name: str) -> None:
    """The number was free when the listing was made, and another VM has it when the request
    arrives.
    """
    real = Client.task

    def slower(self: Client, method: str, *segments: Any, **more: Any) -> Any:
        quiet.client.task = real.__get__(quiet.client)  # type: ignore[method-assign]
        quiet.client.task("POST", "nodes", "pve3", "qemu", data={"vmid": 40000, "name": "faster"})
        Client.task = real  # type: ignore[method-assign]
        return real(self, method, *segments, **more)

    Client.task = slower  # type: ignore[method-assign]
    try:
        result = quiet.run("vm", name=name, vmid=40000, tenant="acme", source="9000", node="pve1")
    finally:
        Client.task = real  # type: ignore[method-assign]
    assert (result["error"]["category"], result["error"]["reason"]) == ("Conflict", "vmid taken"), (
        result
    )
    assert quiet.client.get("nodes", "pve3", "qemu", 40000, "config")["name"] == "faster"


def test_a_lost_answer_and_a_number_that_went_to_another_vm(quiet: Lab, name: str) -> None:
    """The clone request is lost on its way, and the number is taken in between: no other VM is
    changed.
    """
    quiet.simulator.fault(method="POST", path=r"/qemu/9000/clone$", drop="before", delay_ms=600)

    def faster() -> None:
        quiet.client.task(
            "POST", "nodes", "pve1", "qemu", data={"vmid": 10000, "name": "faster", "memory": 77}
        )

    timer = threading.Timer(0.3, faster)
    timer.start()
    try:
        made = quiet.vm(name=name, source="9000", node="pve1", tenant="acme", cores=3)
    finally:
        timer.join()
        quiet.simulator.clear_faults()
    assert made["vm"]["vmid"] != 10000
    assert made["vm"]["name"] == name
    theirs = quiet.client.get("nodes", "pve1", "qemu", 10000, "config")
    assert (theirs["name"], theirs["memory"]) == ("faster", "77")
    assert "tags" not in theirs
