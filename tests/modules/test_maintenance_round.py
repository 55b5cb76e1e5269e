# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A round over five nodes with 100 guests, killed at ten random places and completed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import connect
from tests.labs.maintenance import Places, places, put_vm, run_until
from tests.modules.estate_lab import TOKEN_ID, TOKEN_SECRET, Lab
from tests.simulator.process import Simulator

NODES = [f"pve{number}" for number in range(1, 6)]
GUESTS = 100
KILLS = 10
ALIVE = 10**6  # more points than a run has


@pytest.fixture
def five() -> Iterator[Lab]:
    arguments = "--nodes 5 --lag-s 0 --auth-delay-s 0 --proxy-delay-s 0 --control"
    with Simulator(*arguments.split(), "--task-ms", "default=10") as simulator:
        options = {
            "host": simulator.url,
            "ca_path": str(simulator.ca),
            "token_id": TOKEN_ID,
            "token_secret": TOKEN_SECRET,
        }
        with connect(options, {}) as client:
            yield Lab(simulator, client)


def populate(lab: Lab) -> Places:
    """Create 100 guests: VMs, some with local disks or under the HA manager, containers, one VM
    with a device of its node, and some that do not run.
    """
    for number in range(GUESTS):
        vmid, node = 1000 + number, NODES[number % 5]
        disk = "local-lvm" if number % 7 == 0 else "ceph"
        config = {"memory": "512", "scsi0": f"{disk}:vm-{vmid}-disk-0,size=2G"}
        if number % 6 == 0:
            config["startup"] = f"order={number % 4 + 1}"
        if number == 42:
            config = {"memory": "512", "hostpci0": "0000:01:00.0"}
        if number % 10 == 9:
            rootfs = f"ceph:vm-{vmid}-disk-0,size=2G"
            config = {"hostname": f"ct{vmid}", "memory": "512", "rootfs": rootfs}
            entry = {"node": node, "running": True, "config": config}
            lab.simulator.ask("POST", f"/containers/{vmid}", entry)
            continue
        put_vm(lab, vmid, config, node=node, running=number % 11 != 10)
        if number % 8 == 1:
            lab.client.write("POST", "cluster", "ha", "resources", data={"sid": f"vm:{vmid}"})
    return places(lab)


def open_nodes(lab: Lab) -> list[str]:
    return [row["node"] for row in lab.run("evacuation_info")["maintenances"]]


def maintain(lab: Lab, rng: random.Random, kills: int) -> tuple[list[str], int]:
    """Maintain all nodes in order, as the role does, and return the places at which runs were
    killed, and the number of runs.
    """
    killed: list[str] = []
    runs, at = 0, 0
    options: dict[str, Any] = {"unmovable": "shutdown"}
    while at < len(NODES):
        node, following = NODES[at], {"next_node": NODES[at + 1]} if at < 4 else {}
        for state in ("evacuated", "complete", "returned"):
            runs += 1
            point = rng.randint(1, 40) if len(killed) < kills else ALIVE
            more = following if state == "returned" else {}
            if run_until(lab, point, node=node, state=state, **options, **more) is None:
                killed.append(f"{node} {state} at point {point}")
                break
        else:
            at += 1
            continue
        # The next run begins with the node that is recorded.
        at = min(map(NODES.index, open_nodes(lab)), default=at)
    return killed, runs


@pytest.mark.slow
@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("seed", [1])
def test_a_round_that_is_killed_at_ten_random_places(five: Lab, seed: int) -> None:
    before = populate(five)
    assert len(before) == GUESTS
    killed, runs = maintain(five, random.Random(seed), KILLS)
    assert len(killed) == KILLS
    assert places(five) == before
    assert open_nodes(five) == []
    print(f"seed {seed}: {GUESTS} guests, {KILLS} of {runs} runs killed: {'; '.join(killed)}")
