"""A demo cluster for the module tests, and modules bound to it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from unittest import mock

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.clock import Clock
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.live import creation as making
from tests.fast_time import FastTime
from tests.labs.sites import SITES, Labs
from tests.modules.estate_lab import Lab, open_lab
from tests.simulator.skipping import CLOCK

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module", autouse=True)
def _skipped_pauses(request: pytest.FixtureRequest) -> Iterator[None]:
    """Time in which everybody waits is skipped, except for moves between clusters: each of them
    waits for the other one, and for its HA manager.
    """
    is_move = "relocat" in request.module.__name__
    with CLOCK.stay() if is_move else CLOCK.skip_pauses():
        yield


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """The demo cluster, running for the whole session; tests use names of their own."""
    with open_lab() as opened:
        yield opened


@pytest.fixture(scope="module")
def cluster() -> Iterator[Lab]:
    """A demo cluster for one file of tests, whose listing is fresh and whose logins are fast."""
    with open_lab("--lag-s", "0", "--auth-delay-s", "0") as opened:
        yield opened


@pytest.fixture(scope="module")
def site_clusters() -> Iterator[Labs]:
    """The clusters of three sites for one file of tests."""
    with ExitStack() as stack:
        options = ("--lag-s", "0", "--auth-delay-s", "0")
        yield {site: stack.enter_context(open_lab(*options)) for site in SITES}


@pytest.fixture
def labs(site_clusters: Labs) -> Labs:
    """The clusters of three sites as they are at the start."""
    for lab in site_clusters.values():
        lab.simulator.clear_faults()
        lab.simulator.reset()
    return site_clusters


@pytest.fixture(scope="module")
def old_cluster() -> Iterator[Lab]:
    """The same with Proxmox VE 8.4."""
    with open_lab("--lag-s", "0", "--auth-delay-s", "0", "--pve-version", "8.4") as opened:
        yield opened


@pytest.fixture
def unused(cluster: Lab) -> Lab:
    """The cluster of the file as it is at the start."""
    cluster.simulator.clear_faults()
    cluster.simulator.reset()
    return cluster


@pytest.fixture(scope="module")
def other_cluster() -> Iterator[Lab]:
    """A second cluster for one file of tests, as the first."""
    with open_lab("--lag-s", "0", "--auth-delay-s", "0") as opened:
        yield opened


@pytest.fixture
def munich(other_cluster: Lab) -> Lab:
    """Another site: the second cluster of the file as it is at the start."""
    other_cluster.simulator.reset()
    return other_cluster


@pytest.fixture
def old(old_cluster: Lab) -> Lab:
    """The old cluster of the file as it is at the start."""
    old_cluster.simulator.clear_faults()
    old_cluster.simulator.reset()
    return old_cluster


@pytest.fixture
def quiet() -> Iterator[Lab]:
    """A demo cluster of its own, in which nothing else happens and the listing is fresh."""
    with open_lab("--lag-s", "0") as opened:
        yield opened


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A VM name that no other test has; each process of tests has clusters of its own."""
    words = "".join(char if char.isalnum() else "-" for char in request.node.name.lower())
    return f"t{next(_NUMBERS):05}-{words[:40].strip('-')}"


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one run at a time makes VMs: what an earlier one left is taken up soon after its last
    change, which is six seconds otherwise.
    """
    monkeypatch.setattr(making, "QUIET", 0.5)


@pytest.fixture(scope="session")
def fast_time() -> Iterator[FastTime]:
    """What the clocks of the collection show from now on; they never go back."""
    fast = FastTime()
    with mock.patch.object(Clock, "monotonic", fast.monotonic):
        yield fast


@pytest.fixture
def fast(fast_time: FastTime, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses are skipped, so that to try again or to wait for a task costs next to nothing.

    It is for tests in which nothing else happens that takes seconds on the server.
    """
    monkeypatch.setattr(Clock, "sleep", fast_time.sleep)
