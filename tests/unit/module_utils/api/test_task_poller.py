# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for many tasks by one list a node, and a client that asks each question once."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.layers.caching import (
    CachingReader,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.task_poller import (
    ALONE_EVERY,
    FRESH_SHARE,
    LONGEST_FRESH,
    SHORTEST_FRESH,
    TaskPoller,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.upid import Upid, parse_upid
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    NetworkError,
    NotFound,
)
from tests.fake_api import FakeApi


def upid(number: int, node: str = "n1") -> Upid:
    return parse_upid(f"UPID:{node}:{number:08X}:00000000:65000000:qmstart:{number}:root@pam:")


class Nodes(FakeApi):
    """Nodes that list the tasks which run there."""

    def __init__(self) -> None:
        super().__init__(self._list)
        self.running: list[Upid] = []
        self.fails = False

    def _list(self, request: Request) -> Any:
        if self.fails:
            return NetworkError(reason="no connection")
        return [{"upid": task.text} for task in self.running if task.node == request.segments[1]]


@pytest.fixture
def nodes() -> Nodes:
    return Nodes()


def poller_of(nodes: Nodes, *tasks: Upid) -> TaskPoller:
    poller = TaskPoller(nodes.client())
    nodes.running = list(tasks)
    for task in tasks:
        poller.joins(task)
    nodes.clock.now += 0.1
    return poller


def test_one_list_has_all(nodes: Nodes) -> None:
    tasks = [upid(number) for number in range(1, 6)]
    poller = poller_of(nodes, *tasks)
    assert all(poller.still_runs(task) for task in tasks)
    assert len(nodes.asked) == 1
    nodes.running = tasks[1:]
    assert poller.still_runs(tasks[0])  # by the same list
    nodes.clock.now += SHORTEST_FRESH + 0.01
    assert [poller.still_runs(task) for task in tasks] == [False, True, True, True, True]
    assert len(nodes.asked) == 2


@pytest.mark.parametrize(
    ("youngest", "fresh"), [(0.1, SHORTEST_FRESH), (5.0, 5.0 * FRESH_SHARE), (100.0, LONGEST_FRESH)]
)
def test_a_list_does_for_a_share_of_what_the_youngest_task_was_waited_for(
    nodes: Nodes, youngest: float, fresh: float
) -> None:
    tasks = [upid(number) for number in range(1, 4)]
    poller = poller_of(nodes, *tasks)
    nodes.clock.now += youngest - fresh - 0.1
    for _round in range(2):  # the first may ask for each task itself
        for task in tasks:
            poller.still_runs(task)
    assert len(nodes.asked) == 1
    nodes.clock.now += fresh * 0.9
    assert poller.still_runs(tasks[0])
    assert len(nodes.asked) == 1
    nodes.clock.now += fresh * 0.3
    assert poller.still_runs(tasks[1])
    assert poller.still_runs(tasks[2])
    assert len(nodes.asked) == 2


def test_one_alone_is_asked_for_itself(nodes: Nodes) -> None:
    alone, there = upid(1), [upid(2, "n2"), upid(3, "n2")]
    poller = poller_of(nodes, alone, *there)
    assert not poller.still_runs(alone)
    assert len(nodes.asked) == 0
    poller.leaves(there[0])
    assert not poller.still_runs(there[1])


def test_a_list_from_before_a_task_began_does_not_tell(nodes: Nodes) -> None:
    tasks = [upid(1), upid(2)]
    poller = poller_of(nodes, *tasks)
    assert poller.still_runs(tasks[0])
    young = upid(3)
    nodes.clock.now += 0.01
    poller.joins(young)
    assert poller.still_runs(young)
    assert len(nodes.asked) == 1


def test_what_the_list_says_is_not_believed_for_ever(nodes: Nodes) -> None:
    tasks = [upid(1), upid(2)]
    poller = poller_of(nodes, *tasks)
    nodes.clock.now += ALONE_EVERY
    assert not poller.still_runs(tasks[0])
    assert poller.still_runs(tasks[0])


def test_a_node_that_does_not_list_is_asked_task_by_task(nodes: Nodes) -> None:
    tasks = [upid(1), upid(2)]
    poller = poller_of(nodes, *tasks)
    nodes.fails = True
    assert [poller.still_runs(task) for task in tasks] == [False, False]


def server_of(answers: dict[tuple[Any, ...], Any]) -> FakeApi:
    return FakeApi(lambda request: answers[request.segments])


def test_each_question_is_asked_once() -> None:
    server = server_of(
        {("any",): [1], ("version",): {"version": "9.2"}, ("gone",): NotFound(answer="no")}
    )
    client = server.client()
    memory = CachingReader(client)
    assert memory.get("any") == memory.get("any") == [1]
    assert memory.get("any", full=True) == [1]
    for attempted in ("Could not look", "Could not look again"):
        with pytest.raises(NotFound) as found:
            memory.get("gone", attempted=attempted)
        assert found.value.attempted.startswith("Could not look")
    assert memory.version() == memory.version() == (9, 2)
    assert len(server.asked) == 4
    assert client.get("any") == [1]
    assert len(server.asked) == 5


@pytest.mark.parametrize("how", ["write", "task"])
def test_what_remembers_cannot_write(how: str) -> None:
    server = server_of({})
    with pytest.raises(TypeError, match="asked to write"):
        getattr(CachingReader(server.client()), how)(
            "POST", "nodes", "n1", "qemu", data={"vmid": 1}
        )
    assert server.asked == []
