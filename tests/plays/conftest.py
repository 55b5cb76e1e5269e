# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated clusters of the tests, and who works with them: players of playbooks, a lister of
the inventory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.demo.lab import Lab
from tests.plays.inventory_helpers import Lister
from tests.plays.provision_helpers import Player
from tests.simulator.process import Simulator


@pytest.fixture(scope="module")
def inventory_cluster() -> Iterator[Simulator]:
    """A cluster of three nodes with twelve VMs (VMIDs from 10000) and a template."""
    arguments = "--nodes 3 --vms 12 --lag-s 0 --auth-delay-s 0 --proxy-delay-s 0 --control"
    with Simulator(*arguments.split()) as simulator:
        yield simulator


@pytest.fixture
def simulator(inventory_cluster: Simulator) -> Iterator[Simulator]:
    """The cluster in its first state."""
    yield inventory_cluster
    inventory_cluster.steer("/settings", {"lag_s": 0})
    inventory_cluster.reset()


@pytest.fixture
def listed(simulator: Simulator, tmp_path: Path) -> Lister:
    """Lists an inventory file that is made of the given options."""
    return Lister(simulator, tmp_path)


@pytest.fixture(scope="module")
def running_lab() -> Iterator[Lab]:
    with Lab(task_ms="default=10", lag_s=0, auth_delay_s=0) as lab:
        yield lab


@pytest.fixture
def lab(running_lab: Lab) -> Lab:
    """A cluster of three nodes with templates, pools and bridges, without VMs, whose tasks are
    quick.
    """
    running_lab.reset()
    return running_lab


@pytest.fixture
def player(tmp_path: Path, lab: Lab) -> Player:
    return Player(tmp_path, lab.environment)


@pytest.fixture
def stranger(tmp_path: Path) -> Player:
    """A user without PROXMOX_* in the environment."""
    return Player(tmp_path, {})
