# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How clients are composed: each one has its own layers over the same connections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.layers.caching import (
    CachingReader,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    Conflict,
    FleetError,
    Locked,
    NetworkError,
)
from tests.fake_api import FakeApi
from tests.fake_clock import FakeClock

UPID = "UPID:pve1:0000C3A1:0001F2E3:65A1B2C3:qmclone:100:root@pam!test:"
CLONE = ("nodes", "pve1", "qemu", 100, "clone")
LOCKED = Locked(answer="VM is locked (backup)")
STATUS = ("nodes", "pve1", "tasks", UPID, "status")


class Room:
    """A limit that has room for everything."""

    def __init__(self) -> None:
        self.admitted: list[tuple[Any, dict[str, Any]]] = []
        self.inside = 0
        self.troubles: list[FleetError] = []

    @contextmanager
    def admit(self, path: tuple[str | int, ...], data: Mapping[str, Any]) -> Iterator[None]:
        self.admitted.append((path, dict(data)))
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1

    def note_failure(self, error: FleetError) -> None:
        self.troubles.append(error)


def test_a_limited_client_is_admitted_for_the_whole_task() -> None:
    room = Room()
    inside: list[int] = []

    def answer(request: Request) -> Any:
        inside.append(room.inside)
        return UPID if request.method == "POST" else {"status": "stopped", "exitstatus": "OK"}

    api = FakeApi(answer)
    assert api.client().limited(room, None).task("POST", *CLONE, data={"full": True}).upid == UPID
    assert api.paths == [CLONE, STATUS]
    assert (room.admitted, inside, room.inside) == ([(CLONE, {"full": "1"})], [1, 1], 0)


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        (LOCKED, True),
        (NetworkError(status=503), True),
        (NetworkError(reason="no connection"), False),
        (Conflict(status=500), False),
    ],
    ids=str,
)
def test_each_lock_and_each_failure_of_the_server_is_reported(
    error: FleetError, reported: bool
) -> None:
    room, api = Room(), FakeApi(lambda _request: error)
    limited = api.client(lock_timeout=0).limited(room, None)
    with pytest.raises(type(error)):
        limited.write("PUT", "x")
    assert (room.troubles == [error]) is reported
    with pytest.raises(type(error)):
        api.client(lock_timeout=0).write("PUT", "x")
    assert len(room.troubles) == reported


def test_a_task_that_failed_because_of_a_lock_is_reported_and_repeated() -> None:
    text = "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout"
    exits = [text, "OK"]

    def answer(request: Request) -> Any:
        if request.method == "POST":
            return UPID
        if request.segments[-1] == "log":
            return [{"n": 1, "t": f"TASK ERROR: {text}"}]
        return {"status": "stopped", "exitstatus": exits.pop(0)}

    room, api = Room(), FakeApi(answer)
    api.client().limited(room, None).task("POST", *CLONE)
    assert [type(error) for error in room.troubles] == [Locked]
    assert api.paths.count(CLONE) == 2
    assert len(room.admitted) == 1


def test_a_cache_is_one_clients_own() -> None:
    api = FakeApi(lambda _request: [1])
    client = api.client()
    planning = CachingReader(client)
    for one in (planning, planning, client, planning.for_threads(FakeClock()), client):
        assert one.get("any") == [1]
    assert len(api.asked) == 4


def test_direct_asks_again() -> None:
    api = FakeApi(lambda _request: [1])
    planning = CachingReader(api.client())
    for _turn in range(2):
        planning.get("any")
        planning.direct().get("any")
    assert len(api.asked) == 3


def test_clients_of_one_transport_ask_for_the_version_once() -> None:
    api = FakeApi(lambda _request: {"version": "9.2.11"})
    client = api.client()
    derived = (
        client,
        CachingReader(client),
        client.limited(Room(), None),
        client.for_threads(FakeClock()),
    )
    assert {one.release() for one in derived} == {(9, 2, 11)}
    assert api.paths == [("version",)]
