# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read ahead over the items of a loop, and that nothing old is used."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._api.endpoint import parse_endpoint
from ansible_collections.pve.fleet.plugins.module_utils._api.protocols import Row
from ansible_collections.pve.fleet.plugins.module_utils._api.settings import Connection
from ansible_collections.pve.fleet.plugins.plugin_utils import _prefetch
from ansible_collections.pve.fleet.plugins.plugin_utils._clients import Clients
from tests.fake_api import FakeApi

LISTING = ("cluster", "resources")
ROWS: list[dict[str, Any]] = [
    {"type": "qemu", "vmid": 100, "name": "a", "node": "pve1"},
    {"type": "qemu", "vmid": 101, "name": "b", "node": "pve2"},
    {"type": "qemu", "vmid": 102, "name": "twin", "node": "pve2"},
    {"type": "qemu", "vmid": 103, "name": "twin", "node": "pve1"},
    {"type": "lxc", "vmid": 104, "name": "c", "node": "pve1"},
    {"type": "node", "node": "pve1"},
]


def config_of(vmid: int, node: str) -> tuple[str, ...]:
    return ("nodes", node, "qemu", str(vmid), "config")


class Server:
    """Answers early questions with a word, or the rows of its listing; counts who asked early."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows
        self.early: list[tuple[str, ...]] = []
        self.threads: set[int] = set()
        self.fails = False

    def read(self, segments: tuple[str, ...], _query: Mapping[str, str], record: list[Row]) -> Any:
        self.early.append(segments)
        record.append(("GET", "/" + "/".join(segments), 200, 1.0, 1))
        self.threads.add(threading.get_ident())
        if self.fails:
            raise OSError("no")
        return self.rows if segments == LISTING else "early"


def item(
    ahead: _prefetch.Prefetcher,
    server: Server,
    target: Any,
    *reads: tuple[str, ...],
    writes: bool = False,
) -> list[Any]:
    """Play a task that reads the listing and then these paths; return what each path gave."""
    server.early.clear()
    ahead.begin("vm", target)
    found = []
    for number, segments in enumerate([LISTING, *reads]):
        if number and writes:
            ahead.wrote()
        early = ahead.take(server.read, segments, {})
        data = ROWS if segments == LISTING else "asked"
        if early is not None:
            data = early[0]
        ahead.saw(segments, {}, data)
        found.append(data)
    ahead.end(not writes)
    return found[1:]


def test_the_next_item_is_asked_what_the_last_one_was() -> None:
    ahead, server = _prefetch.Prefetcher(), Server(ROWS)
    assert item(ahead, server, "a", config_of(100, "pve1")) == ["asked"]
    assert server.early == []
    assert item(ahead, server, 101, config_of(101, "pve2")) == ["early"]
    assert server.early == [config_of(101, "pve2")]
    assert item(ahead, server, "a", config_of(100, "pve1"), config_of(100, "pve1")) == [
        "early",
        "asked",
    ]


@pytest.mark.parametrize("target", ["twin", "c", "nosuch", "", None])
def test_who_is_not_known_for_certain_is_not_asked(target: Any) -> None:
    ahead, server = _prefetch.Prefetcher(), Server(ROWS)
    item(ahead, server, "a", config_of(100, "pve1"))
    item(ahead, server, target)
    assert server.early == []


def test_a_vm_that_moved_is_asked_where_it_is() -> None:
    ahead, server = _prefetch.Prefetcher(), Server(ROWS)
    item(ahead, server, "a", config_of(100, "pve1"))
    assert item(ahead, server, "b", config_of(101, "pve3")) == ["asked"]


def test_nothing_is_used_after_a_write_and_a_write_is_not_an_example() -> None:
    ahead, server = _prefetch.Prefetcher(), Server(ROWS)
    item(ahead, server, "a", config_of(100, "pve1"))
    assert item(ahead, server, "b", config_of(101, "pve2"), writes=True) == ["asked"]
    assert item(ahead, server, "a", config_of(100, "pve1")) == ["asked"]
    assert server.early == []


def test_an_answer_that_waited_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead, server = _prefetch.Prefetcher(), Server(ROWS)
    item(ahead, server, "a", config_of(100, "pve1"))
    monkeypatch.setattr(_prefetch, "FRESH", -1.0)
    assert item(ahead, server, "b", config_of(101, "pve2")) == ["asked"]


def test_a_failure_is_left_to_the_task() -> None:
    ahead, server = _prefetch.Prefetcher(), Server(ROWS)
    item(ahead, server, "a", config_of(100, "pve1"))
    server.fails = True
    assert item(ahead, server, "b", config_of(101, "pve2")) == ["asked"]
    assert server.early == [config_of(101, "pve2")]


def test_an_item_that_reads_of_many_vms_is_not_an_example() -> None:
    ahead, server = _prefetch.Prefetcher(), Server(ROWS)
    item(ahead, server, "a", config_of(100, "pve1"), config_of(101, "pve2"))
    item(ahead, server, "b", config_of(101, "pve2"))
    assert server.early == []


def test_one_thread_asks_for_item_after_item() -> None:
    ahead, server = _prefetch.Prefetcher(), Server(ROWS)
    for _round in range(20):
        item(ahead, server, "a", config_of(100, "pve1"))
        item(ahead, server, "b", config_of(101, "pve2"))
    assert len(server.threads) == 1
    assert threading.get_ident() not in server.threads


# Names in an order of their own: VMIDs are chosen at random, and 10 comes after 2.
IN_ORDER: list[dict[str, Any]] = [
    {"type": "qemu", "vmid": vmid, "name": f"web-{number}", "node": "pve1"}
    for number, vmid in ((1, 905), (2, 310), (9, 777), (10, 120), (11, 412), (12, 633))
]


class Loop:
    """Items about VMs of `IN_ORDER`; each reads the listing, then the configuration of its VM."""

    def __init__(self) -> None:
        self.prefetcher = _prefetch.Prefetcher()
        self.server = Server(IN_ORDER)
        self.early = self.server.early

    def item(self, index: int, writes: bool = False) -> list[str]:
        """Play an item; return how it came by its listing and its configuration."""
        row = IN_ORDER[index]
        found = []
        self.prefetcher.begin("vm", row["name"])
        for segments in (LISTING, config_of(int(row["vmid"]), "pve1")):
            early = self.prefetcher.take(self.server.read, segments, {})
            found.append("asked" if early is None else "early")
            self.prefetcher.saw(segments, {}, IN_ORDER if segments == LISTING else "")
        if writes:
            self.prefetcher.wrote()
        self.prefetcher.end(not writes)
        return found


def test_where_items_follow_the_names_the_next_one_is_asked_about_during_the_one_before() -> None:
    loop = Loop()
    assert loop.item(0) == ["asked", "asked"]
    assert [loop.item(index) for index in (1, 2, 3)] == [["asked", "early"]] * 3
    assert [loop.item(index) for index in (4, 5)] == [["early", "early"]] * 2
    assert len(loop.early) == 3 + 2 * 2, "the last one has no follower to be guessed"


def test_a_loop_guesses_wrong_once() -> None:
    loop = Loop()
    for index in (0, 1, 2, 3):
        loop.item(index)
    assert loop.item(0) == ["early", "early"], "its listing is of use all the same"
    loop.early.clear()
    rest = [loop.item(index) for index in (1, 2, 3, 4, 5)]
    assert rest == [["asked", "early"]] * 5
    assert LISTING not in loop.early


def test_a_write_discards_what_was_asked_for_the_next_item() -> None:
    loop = Loop()
    for index in (0, 1, 2):
        loop.item(index)
    loop.item(3, writes=True)
    assert loop.item(4) == ["asked", "asked"]


def test_a_write_past_the_layer_discards_it_too() -> None:
    prefetcher = _prefetch.Prefetcher()
    api = FakeApi(lambda request: IN_ORDER if request.segments == LISTING else {})
    client = api.client()
    configs = [config_of(int(row["vmid"]), "pve1") for row in IN_ORDER]
    for number, row in enumerate(IN_ORDER[:5]):
        client.requests.clear()
        with prefetcher.item(client, "vm", {"name": row["name"]}) as lent:
            lent.get(*LISTING)
            lent.get(*configs[number])
            if number == 3:
                client.requests.append(("PUT", "/nodes/pve1/qemu/120/config", 200, 1.0, 1))
    assert [api.paths.count(config) for config in configs[:5]] == [1, 1, 1, 1, 2]


@pytest.mark.parametrize("between", ["another client", "another process"])
def test_what_works_between_two_items_of_a_client_ends_its_guesses(between: str) -> None:
    api = FakeApi(lambda request: IN_ORDER if request.segments == LISTING else {})
    clients = Clients(make=lambda _connection: api.client())
    here, elsewhere = (Connection(parse_endpoint(host, None), user="u") for host in ("a", "b"))
    configs = [config_of(int(row["vmid"]), "pve1") for row in IN_ORDER]
    for number, row in enumerate(IN_ORDER[:5]):
        with clients.lend(here, {}) as kept:
            with kept.prefetcher.item(kept.client, "vm", {"name": row["name"]}) as client:
                client.get(*LISTING)
                client.get(*configs[number])
        if number == 3 and between == "another client":
            with clients.lend(elsewhere, {}):
                pass
        if number == 3 and between == "another process":
            clients.stop_guessing()
    assert [api.paths.count(config) for config in configs[:5]] == [1, 1, 1, 1, 2]


def test_what_waited_too_long_for_the_next_item_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = Loop()
    for index in (0, 1, 2, 3):
        loop.item(index)
    with monkeypatch.context() as patch:
        patch.setattr(_prefetch, "FRESH", -1.0)
        assert loop.item(4) == ["asked", "asked"]
    loop.early.clear()
    loop.item(5)
    assert LISTING not in loop.early


def test_a_request_is_on_the_record_of_the_item_that_it_was_for() -> None:
    loop = Loop()
    for index in (0, 1, 2, 3):
        loop.item(index)
    record = loop.prefetcher._record
    record.clear()
    loop.item(4)
    assert [row[1].split("/")[-2] for row in record] == ["cluster", "412"]
