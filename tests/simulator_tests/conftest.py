"""Servers for the simulator's own tests: one process for each file, back at its initial state for
each test.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.simulator.process import CLUSTERS, Simulator
from tests.simulator_tests.client import Client

QUICK = ("--lag-s", "0", "--auth-delay-s", "0", "--proxy-delay-s", "0")


@pytest.fixture(scope="module")
def server() -> Iterator[Simulator]:
    """The demo cluster; tasks end at once."""
    with Simulator("--cluster", CLUSTERS / "demo.yml", *QUICK) as sim:
        yield sim


@pytest.fixture
def sim(server: Simulator) -> Simulator:
    """The demo cluster as it is at the start."""
    server.reset()
    return server


@pytest.fixture
def pve(sim: Simulator) -> Client:
    """root's token at the demo cluster."""
    return Client(sim)


@pytest.fixture(scope="module")
def lab_server() -> Iterator[Simulator]:
    """A cluster whose storages are directories only."""
    with Simulator("--cluster", CLUSTERS / "lab.yml", *QUICK) as sim:
        yield sim


@pytest.fixture
def lab(lab_server: Simulator) -> Client:
    """root's token at the cluster of directories."""
    lab_server.reset()
    return Client(lab_server, "root@pam!test=00000000-0000-4000-8000-000000000001")
