# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read ahead over the items of a loop, and that nothing old is used."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.plugin_utils import _prefetch

LISTING = ("cluster", "resources")
ROWS = [
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
    """Answers with the number of the question; counts who asked early."""

    def __init__(self) -> None:
        self.early: list[tuple[str, ...]] = []
        self.threads: set[int] = set()
        self.fails = False

    def read(self, segments: tuple[str, ...], _query: Mapping[str, str]) -> Any:
        self.early.append(segments)
        self.threads.add(threading.get_ident())
        if self.fails:
            raise OSError("no")
        return "early"


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
    ahead.end(True)
    return found[1:]


def test_the_next_item_is_asked_what_the_last_one_was() -> None:
    ahead, server = _prefetch.Prefetcher(), Server()
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
    ahead, server = _prefetch.Prefetcher(), Server()
    item(ahead, server, "a", config_of(100, "pve1"))
    item(ahead, server, target)
    assert server.early == []


def test_a_vm_that_moved_is_asked_where_it_is() -> None:
    ahead, server = _prefetch.Prefetcher(), Server()
    item(ahead, server, "a", config_of(100, "pve1"))
    assert item(ahead, server, "b", config_of(101, "pve3")) == ["asked"]


def test_nothing_is_used_after_a_write_and_a_write_is_not_an_example() -> None:
    ahead, server = _prefetch.Prefetcher(), Server()
    item(ahead, server, "a", config_of(100, "pve1"))
    assert item(ahead, server, "b", config_of(101, "pve2"), writes=True) == ["asked"]
    assert item(ahead, server, "a", config_of(100, "pve1")) == ["asked"]
    assert server.early == []


def test_an_answer_that_waited_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead, server = _prefetch.Prefetcher(), Server()
    item(ahead, server, "a", config_of(100, "pve1"))
    monkeypatch.setattr(_prefetch, "FRESH", -1.0)
    assert item(ahead, server, "b", config_of(101, "pve2")) == ["asked"]


def test_a_failure_is_left_to_the_task() -> None:
    ahead, server = _prefetch.Prefetcher(), Server()
    item(ahead, server, "a", config_of(100, "pve1"))
    server.fails = True
    assert item(ahead, server, "b", config_of(101, "pve2")) == ["asked"]
    assert server.early == [config_of(101, "pve2")]


def test_an_item_that_reads_of_many_vms_is_not_an_example() -> None:
    ahead, server = _prefetch.Prefetcher(), Server()
    item(ahead, server, "a", config_of(100, "pve1"), config_of(101, "pve2"))
    item(ahead, server, "b", config_of(101, "pve2"))
    assert server.early == []


def test_one_thread_asks_for_item_after_item() -> None:
    ahead, server = _prefetch.Prefetcher(), Server()
    for _round in range(20):
        item(ahead, server, "a", config_of(100, "pve1"))
        item(ahead, server, "b", config_of(101, "pve2"))
    assert len(server.threads) == 1
    assert threading.get_ident() not in server.threads
