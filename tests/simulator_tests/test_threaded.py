"""A simulator in a thread answers requests of its process as it answers over HTTPS."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.http.transport import (
    new_requests_session,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.settings import resolve
from tests.labs.shortcut import shortcut
from tests.simulator.process import CLUSTERS, TOKEN_ID, TOKEN_SECRET, Simulator, SimulatorError
from tests.simulator.threaded import ThreadedSimulator
from tests.simulator_tests.conftest import QUICK

# Of the connection, or different in each answer.
NOT_COMPARED = ("Date", "Connection")


@pytest.fixture(scope="module")
def threaded() -> Iterator[ThreadedSimulator]:
    simulator = ThreadedSimulator("--cluster", CLUSTERS / "demo.yml", *QUICK)
    with simulator, shortcut(simulator):
        yield simulator


@pytest.fixture
def sim(threaded: ThreadedSimulator) -> ThreadedSimulator:
    threaded.reset()
    return threaded


def session_for(sim: Simulator, **options: Any) -> requests.Session:
    """The session of the collection's client."""
    given = {"host": sim.url, "ca_path": sim.ca, "token_id": TOKEN_ID, "token_secret": TOKEN_SECRET}
    session: requests.Session = new_requests_session(resolve({**given, **options}, {}))
    session.headers["Authorization"] = f"PVEAPIToken={sim.token}"
    return session


def send(session: requests.Session, sim: Simulator, verb: str, path: str, **more: Any) -> Any:
    return session.request(verb, f"{sim.url}/api2/json{path}", timeout=(5, 5), **more)


def has_connected(session: requests.Session) -> bool:
    """Whether a request of this session took a connection."""
    adapter: Any = session.get_adapter("https://")
    return len(adapter.poolmanager.pools) > 0


REQUESTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a listing": ("GET", "/cluster/resources", {"params": {"type": "storage"}}),
    "no such method": ("PATCH", "/version", {}),
    "no such path": ("GET", "/nope", {}),
    "letters beyond ASCII": ("GET", "/nodes/m%C3%BCnchen/status", {}),
    "a refused form": ("POST", "/pools", {"data": {"poolid": "a b", "comment": "Zürich & more"}}),
    "a created pool": ("POST", "/pools", {"data": {"poolid": "new", "comment": "Zürich & more"}}),
    "no such user": ("GET", "/version", {"headers": {"Authorization": "PVEAPIToken=no@pam!x=y"}}),
    "a plain text": ("GET", "/nodes/pve1/qemu/9999999999/config", {}),
    "JSON": ("PUT", "/cluster/options", {"json": {"description": "x"}}),
    "broken JSON": (
        "PUT",
        "/cluster/options",
        {"data": b"{", "headers": {"Content-Type": "application/json"}},
    ),
}


@pytest.mark.parametrize("kind", REQUESTS)
def test_an_answer_is_the_same_as_over_https(sim: ThreadedSimulator, kind: str) -> None:
    verb, path, more = REQUESTS[kind]
    with session_for(sim) as session, session_for(sim) as connected:
        short = send(session, sim, verb, path, **more)
        assert not has_connected(session)
        sim.reset()
        sim.fault(method="GET", path="^/never$", drop="after")
        long = send(connected, sim, verb, path, **more)
        assert has_connected(connected)
    assert (short.status_code, short.reason) == (long.status_code, long.reason)
    assert short.content == long.content
    for answer in (short, long):
        for name in NOT_COMPARED:
            answer.headers.pop(name, None)
    assert dict(short.headers) == dict(long.headers)


@pytest.mark.parametrize("effect", [{"drop": "before"}, {"drop": "after"}, {"cut": 5}])
def test_a_broken_connection_is_a_real_one(sim: ThreadedSimulator, effect: dict[str, Any]) -> None:
    sim.fault(method="GET", path="^/version$", **effect)
    with session_for(sim) as session:
        with pytest.raises(requests.exceptions.ConnectionError):
            send(session, sim, "GET", "/version")
        assert has_connected(session)


def test_a_status_fault_needs_no_connection(sim: ThreadedSimulator) -> None:
    sim.fault(method="GET", path="^/version$", status=596)
    with session_for(sim) as session:
        answer = send(session, sim, "GET", "/version")
        assert (answer.status_code, answer.reason) == (596, "Connection timed out")
        assert not has_connected(session)


def test_an_answer_that_comes_too_late_is_a_timeout(sim: ThreadedSimulator) -> None:
    sim.steer("/settings", {"latency_ms": 500})
    with session_for(sim) as session:
        with pytest.raises(requests.exceptions.ReadTimeout):
            session.get(f"{sim.url}/api2/json/version", timeout=(5, 0.01))
        assert not has_connected(session)


def test_a_client_that_does_not_trust_the_server_fails_in_the_handshake(
    sim: ThreadedSimulator,
) -> None:
    with Simulator() as other, session_for(sim, ca_path=other.ca) as session:
        with pytest.raises(requests.exceptions.SSLError, match="certificate verify failed"):
            send(session, sim, "GET", "/version")


@pytest.mark.parametrize(
    "more",
    [
        {"params": {"type": "x" * 5000}},
        {"headers": {"User-Agent": "Zürich"}},
        {"data": iter([b"a=b"])},
    ],
    ids=["a long query", "letters beyond ASCII", "a streamed body"],
)
def test_a_request_that_http_may_refuse_takes_a_connection(
    sim: ThreadedSimulator, more: dict[str, Any]
) -> None:
    with session_for(sim) as session:
        send(session, sim, "GET", "/version", **more)
        assert has_connected(session)


def test_a_fork_takes_a_connection(sim: ThreadedSimulator) -> None:
    context = multiprocessing.get_context("fork")
    notes = context.SimpleQueue()

    def ask() -> None:
        with session_for(sim) as session:
            send(session, sim, "GET", "/version")
            notes.put((has_connected(session), sim.counts()))

    fork = context.Process(target=ask)
    fork.start()
    fork.join()
    assert fork.exitcode == 0
    assert notes.get() == (True, {"GET /version": 1})
    assert sim.counts() == {"GET /version": 1}


def test_a_stopped_simulator_refuses_connections() -> None:
    sim = ThreadedSimulator()
    with sim, shortcut(sim), session_for(sim) as session:
        send(session, sim, "GET", "/version")
    with session_for(sim, validate_certs=False, ca_path=None) as session:
        with pytest.raises(requests.exceptions.ConnectionError, match="refused"):
            send(session, sim, "GET", "/version")


def test_wrong_options_are_named() -> None:
    with pytest.raises(SimulatorError, match="--nodes: 1 to 64"):
        ThreadedSimulator("--nodes", "65").start()
