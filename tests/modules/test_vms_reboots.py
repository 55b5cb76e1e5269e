# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Module vms and reboots: in batches, anti-affinity kept, none after a VM that does not come
back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.modules.estate_lab import Lab, open_lab, watched_tasks

BLANK: dict[str, Any] = {
    "disks": [{"size": 1, "storage": "ceph"}],
    "state": "started",
    "tenant": "acme",
}
NODES = ("pve1", "pve2", "pve3")


@pytest.fixture
def slow() -> Iterator[Lab]:
    """A cluster in which a reboot takes long enough to be seen beside others."""
    with open_lab("--lag-s", "0", "--task-ms", "qmreboot=400,default=10") as opened:
        yield opened


def estate(names: str, **more: Any) -> list[dict[str, Any]]:
    return [{"name": name, **more} for name in names]


def made(lab: Lab, names: str, **more: Any) -> dict[int, str]:
    """Create running VMs and return their names by VMID."""
    result = lab.run("vms", **BLANK, cores=1, vms=estate(names, **more))
    assert not result.get("failed"), result
    return {vm["vmid"]: vm["name"] for vm in result["vms"]}


@contextmanager
def watched(lab: Lab, names: dict[int, str]) -> Iterator[list[set[str]]]:
    """Collect the sets of VMs that were seen rebooting at the same time."""
    seen: list[set[str]] = []
    with watched_tasks(lab, "qmreboot", *NODES) as running:
        yield seen
    seen += [{names[int(vmid)] for vmid in vmids} for vmids in running if vmids]


def grown(lab: Lab, names: str, *, batch: int | None = None, **more: Any) -> dict[str, Any]:
    """Give VMs another core, which waits for a reboot, and reboot them."""
    size: dict[str, Any] = {} if batch is None else {"reboot_batch": batch}
    return lab.run("vms", **BLANK, cores=2, reboot="if_needed", vms=estate(names, **more), **size)


def test_no_more_vms_than_a_batch_are_down_at_once(slow: Lab) -> None:
    names = made(slow, "abcdef")
    with watched(slow, names) as seen:
        result = grown(slow, "abcdef", batch=2)
    assert not result.get("failed"), result
    assert all(vm["rebooted"] for vm in result["vms"])
    assert max(len(down) for down in seen) == 2
    assert all(slow.status(vm) == "running" for vm in result["vms"])


def test_the_next_batch_begins_when_all_of_the_one_before_run_again(slow: Lab) -> None:
    made(slow, "abcdef")
    slow.simulator.reset_log()
    assert not grown(slow, "abcdef", batch=3).get("failed")
    down: set[int] = set()
    batches: list[set[int]] = [set()]
    for row in slow.simulator.log():
        parts = row["path"].split("/")
        if row["method"] == "POST" and parts[-1] == "reboot":
            down.add(int(parts[-3]))
            batches[-1].add(int(parts[-3]))
        if (
            row["method"] == "GET"
            and parts[-2:] == ["status", "current"]
            and int(parts[-3]) in down
        ):
            down.discard(int(parts[-3]))
            if not down:
                batches.append(set())
    assert [len(batch) for batch in batches if batch] == [3, 3]


def test_a_few_are_rebooted_at_once_unless_the_task_sets_another_number(slow: Lab) -> None:
    names = made(slow, "abcdefgh")
    with watched(slow, names) as usual:
        grown(slow, "abcdefgh")
    assert max(len(down) for down in usual) <= 5
    with watched(slow, names) as unlimited:
        slow.run(
            "vms",
            **{**BLANK, "state": "restarted"},
            reboot_batch=0,
            vms=estate("abcdefgh"),
            parallel_per_node=0,
        )
    assert max(len(down) for down in unlimited) > 5


@pytest.mark.parametrize("rule", [["web"], ["name:?"]], ids=["tag", "name"])
def test_vms_that_are_kept_apart_are_never_down_together(slow: Lab, rule: list[str]) -> None:
    apart = {"tags": ["web"], "placement": {"anti_affinity": rule, "affinity_policy": "preferred"}}
    names = made(slow, "abc", **apart)
    with watched(slow, names) as seen:
        result = grown(slow, "abc", batch=0, **apart)
    assert not result.get("failed"), result
    assert all(vm["rebooted"] for vm in result["vms"])
    assert {len(down) for down in seen} == {1}


def test_no_vm_is_taken_down_after_one_that_does_not_come_back(slow: Lab) -> None:
    made(slow, "abc")
    slow.simulator.reset_log()
    silent = "QEMU guest agent is not running"
    slow.simulator.fault(method="GET", path="/agent/", status=500, message=silent, times=None)
    options: dict[str, Any] = {
        "reboot_batch": 1,
        "wait_for": "agent",
        "wait_timeout": 1,
        "agent": True,
    }
    result = slow.run("vms", **BLANK, cores=2, reboot="if_needed", vms=estate("abc"), **options)
    reboots = [row for row in slow.simulator.writes() if row["path"].endswith("/reboot")]
    assert len(reboots) == 1
    reasons = sorted(vm["error"]["reason"] for vm in result["vms"])
    assert reasons == ["earlier reboot failed", "earlier reboot failed", "waiting for agent"]
    left = [vm for vm in result["vms"] if vm["error"]["reason"] == "earlier reboot failed"]
    assert all(slow.status(vm) == "running" for vm in left)


def test_a_reboot_that_pve_refuses_does_not_keep_the_others_from_theirs(slow: Lab) -> None:
    names = made(slow, "ab")
    first = min(names)
    slow.simulator.fault(
        method="POST", path=rf"/{first}/status/reboot$", status=500, message="no", times=1
    )
    result = grown(slow, "ab", batch=1)
    assert sorted(vm["action"] for vm in result["vms"]) == ["changed", "failed"]
