# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Processes that make the same VMs at once: each VM once, none lost, no run failed.

The simulator shows what a real cluster does: the listing has a reused VMID under the name of the
removed VM for ten seconds, and the list of a node answers 500 while a VM is removed under it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cases import repeated
from tests.modules.estate_lab import Lab, open_lab_of_processes
from tests.modules.race_lab import NODES, check_round, race

PROCESSES, NAMES = 4, 5
CLONE: dict[str, Any] = {"source": "debian-13", "tenant": "acme"}
BLANK: dict[str, Any] = {"disks": [{"size": 1, "storage": "ceph"}], "memory": "256M"}


@pytest.fixture(scope="module")
def stale() -> Iterator[Lab]:
    with open_lab_of_processes("--lag-s", "10", "--task-ms", "default=100,qmclone=400") as lab:
        yield lab


def remove_all(lab: Lab, prefix: str) -> None:
    """Remove the VMs of these names as another client would, at once and without this
    collection.
    """
    upids = []
    for node in NODES:
        for row in lab.client.get("nodes", node, "qemu"):
            if not str(row["name"]).startswith(prefix):
                continue
            base = ("nodes", node, "qemu", row["vmid"])
            lab.client.task("POST", *base, "status", "stop")
            upids.append(lab.client.task("DELETE", *base, data={"purge": 1}))
    assert len(upids) == NAMES


@pytest.mark.parametrize(
    "options",
    repeated(
        [
            pytest.param({**CLONE, "state": "started"}, id="clone-started"),
            pytest.param({**BLANK, "tenant": "acme", "state": "present"}, id="blank"),
            pytest.param({**CLONE, "state": "present"}, id="clone"),
            pytest.param({**BLANK, "state": "started"}, id="blank-started"),
        ],
        first=2,
    ),
)
def test_each_vm_is_made_once_also_with_numbers_that_were_just_freed(
    stale: Lab, options: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    prefix = f"r{abs(hash(request.node.name)) % 10000}-"
    all_wanted = [{"name": f"{prefix}{index}", **options} for index in range(NAMES)]
    for _round in range(2):
        outcomes = race(stale, all_wanted, PROCESSES)
        check_round(stale, all_wanted, outcomes, PROCESSES)
        remove_all(stale, prefix)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_twenty_rounds_on_a_cluster_as_slow_as_a_real_one() -> None:
    with open_lab_of_processes("--lag-s", "10", "--task-ms", "default=300,qmclone=1000") as lab:
        for number in range(20):
            state = "started" if number % 2 else "present"
            # Every second round has the names, and so the numbers, of the round before.
            prefix = f"round{number // 2}-"
            all_wanted = [{"name": f"{prefix}{at}", **CLONE, "state": state} for at in range(NAMES)]
            check_round(lab, all_wanted, race(lab, all_wanted, PROCESSES), PROCESSES)
            remove_all(lab, prefix)
