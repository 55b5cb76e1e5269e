"""Time is skipped while everybody waits, and only then."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from tests.labs.shortcut import shortcut
from tests.simulator.process import CLUSTERS
from tests.simulator.skipping import CLOCK
from tests.simulator.threaded import ThreadedSimulator
from tests.simulator_tests.conftest import QUICK
from tests.simulator_tests.test_threaded import send, session_for


@pytest.fixture(autouse=True)
def _skipped() -> Iterator[None]:
    with CLOCK.skip_pauses():
        yield


@pytest.fixture(scope="module")
def threaded() -> Iterator[ThreadedSimulator]:
    options = ("--cluster", CLUSTERS / "demo.yml", *QUICK, "--task-ms", "default=60000")
    simulator = ThreadedSimulator(*options)
    with simulator, shortcut(simulator):
        yield simulator


@pytest.fixture
def sim(threaded: ThreadedSimulator) -> ThreadedSimulator:
    threaded.reset()
    return threaded


class Taken:
    """Real seconds, and those of the clock."""

    def __init__(self) -> None:
        self._real, self._own = time.perf_counter(), time.monotonic()

    @property
    def real(self) -> float:
        return time.perf_counter() - self._real

    @property
    def own(self) -> float:
        return time.monotonic() - self._own


def test_a_pause_in_which_nothing_happens_is_skipped() -> None:
    taken, before = Taken(), time.time()
    time.sleep(600)
    assert taken.own >= 600
    assert time.time() - before >= 600
    assert taken.real < 600


def test_a_task_ends_while_its_client_waits(sim: ThreadedSimulator) -> None:
    taken = Taken()
    with session_for(sim) as session:
        created = send(session, sim, "POST", "/nodes/pve1/qemu", data={"vmid": 7777})
        path = f"/nodes/pve1/tasks/{created.json()['data']}/status"
        states = []
        while "stopped" not in states:
            states.append(send(session, sim, "GET", path).json()["data"]["status"])
            time.sleep(1)
    # Each second is looked at: the next moment comes, not the end of the task.
    assert 59 <= states.count("running") <= 61
    assert taken.real < taken.own


def test_threads_wake_up_in_the_order_of_their_times() -> None:
    woken: list[tuple[int, float]] = []
    taken = Taken()

    def wait(seconds: int) -> None:
        time.sleep(seconds)
        woken.append((seconds, taken.own))

    threads = [threading.Thread(target=wait, args=(seconds,)) for seconds in (50, 30, 70)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [seconds for seconds, _own in woken] == [30, 50, 70]
    for seconds, own in woken:
        assert seconds <= own < seconds + 20
    assert taken.real < 70


def test_nothing_is_skipped_while_a_thread_may_work() -> None:
    """It waits for what no thread of the process may do."""
    over = threading.Event()
    other = threading.Thread(target=over.wait, args=(60,))
    other.start()
    taken = Taken()
    time.sleep(0.2)
    real = taken.real
    over.set()
    other.join()
    assert real >= 0.2


def test_time_is_real_again_after_it() -> None:
    with CLOCK.skip_pauses():
        time.sleep(60)
        ahead = time.monotonic()
    assert time.sleep == CLOCK.sleep  # of the fixture
    assert time.monotonic() >= ahead
