# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random histories of a cluster, with failures and restarts: each event once, and none lost."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.pve.fleet.plugins.module_utils._operation.events.advance import advance
from ansible_collections.pve.fleet.plugins.module_utils._operation.events.model import SitePosition
from ansible_collections.pve.fleet.plugins.module_utils._operation.events.store import (
    SiteState,
    states_in,
    text_of,
)
from tests.cases import cases
from tests.labs.events import NODES, OPTIONS, SITE, World

VMIDS = (100, 101)
TENANTS = ("", "tenant_acme", "tenant_other")

ACTIONS = st.one_of(
    st.tuples(st.just("create"), st.sampled_from(VMIDS), st.sampled_from(NODES)),
    st.tuples(st.just("destroy"), st.sampled_from(VMIDS), st.just("")),
    st.tuples(st.just("tenant"), st.sampled_from(VMIDS), st.sampled_from(TENANTS)),
    st.tuples(st.just("status"), st.sampled_from(VMIDS), st.sampled_from(["running", "stopped"])),
    st.tuples(st.just("node"), st.sampled_from(VMIDS), st.sampled_from(NODES)),
    st.tuples(st.just("begin"), st.sampled_from(VMIDS), st.sampled_from(NODES)),
    st.tuples(st.just("end"), st.integers(0, 3), st.sampled_from(["OK", "failed", "WARNINGS: 1"])),
    st.tuples(st.just("wait"), st.integers(1, 3000), st.just("")),
    st.tuples(st.just("read"), st.sampled_from([(), ("pve1",), ("pve2",), NODES]), st.just("")),
    st.tuples(st.just("late read"), st.sampled_from(VMIDS), st.just("")),
    st.tuples(st.just("unreachable"), st.just(0), st.just("")),
    st.tuples(st.just("restart"), st.just(0), st.just("")),
)
SKEWS = st.fixed_dictionaries({node: st.integers(-7200, 7200) for node in NODES})


class History:
    """A world, a source that watches it, and all events so far."""

    def __init__(self, skew: dict[str, int]) -> None:
        self.world = World(skew=skew)
        self.position = SitePosition()
        self.events: list[dict[str, Any]] = []
        self.running: list[str] = []
        self.started: list[str] = []
        self.ended: list[str] = []
        self.read(())
        self.guests = {vmid: dict(row) for vmid, row in self.world.guests.items()}

    def take(self, action: tuple[str, Any, Any]) -> None:
        """Carry out one action."""
        name, first, second = action
        self.world.now += 1
        getattr(self, name.replace(" ", "_"))(*filter(lambda one: one != "", (first, second)))

    def create(self, vmid: int, node: str) -> None:
        if vmid not in self.world.guests:
            self.world.create(vmid, node)

    def destroy(self, vmid: int) -> None:
        if vmid in self.world.guests:
            node = self.world.guests[vmid]["node"]
            before = set(self.world.rows[node])
            self.world.destroy(vmid)
            upids = set(self.world.rows[node]) - before
            self.started += upids
            self.ended += upids

    def tenant(self, vmid: int, tag: str = "") -> None:
        self._change(vmid, tags=tag)

    def status(self, vmid: int, status: str) -> None:
        self._change(vmid, status=status)

    def node(self, vmid: int, node: str) -> None:
        self._change(vmid, node=node)

    def _change(self, vmid: int, **values: str) -> None:
        if vmid in self.world.guests:
            self.world.guests[vmid].update(values)

    def begin(self, vmid: int, node: str) -> None:
        upid = self.world.begin(node, "qmstart", vmid)
        self.running.append(upid)
        self.started.append(upid)

    def end(self, number: int, status: str) -> None:
        if number < len(self.running):
            upid = self.running.pop(number)
            self.world.end(upid, status)
            self.ended.append(upid)

    def wait(self, seconds: int) -> None:
        self.world.now += seconds

    def read(self, silent: tuple[str, ...] = ()) -> None:
        self._advance(self.world.read(self.position, silent))

    def late_read(self, vmid: int) -> None:
        """Between the tasks and the listing, a guest is removed and its VMID is used again."""
        tasks = self.world.answers(self.position)
        self.destroy(vmid)
        if vmid % 2:
            self.create(vmid, NODES[0])
        self._advance(self.world.reading(tasks))

    def unreachable(self, _number: int = 0) -> None:
        self._advance(self.world.failed())

    def restart(self, _number: int = 0) -> None:
        """Continue with what the file has."""
        text = text_of({SITE: SiteState(self.position)})
        restored = states_in(text)[SITE].position
        assert restored == self.position
        self.position = restored

    def _advance(self, reading: Any) -> None:
        self.position, events = advance(self.position, reading, OPTIONS)
        self.events += events


def replay(events: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return the guests that the events lead to; each event must follow from those before it."""
    guests: dict[int, dict[str, Any]] = {}
    for event in events:
        vmid = int(event.get("vmid") or 0)
        if event["type"] == "guest_appeared":
            assert vmid not in guests
            guests[vmid] = event
        elif event["type"] == "guest_disappeared":
            del guests[vmid]
        elif event["type"].startswith("guest_"):
            (previous,) = (key for key in event if key.startswith("previous_"))
            key = previous.removeprefix("previous_")
            assert event[previous] == guests[vmid][key] != event[key]
            guests[vmid] = {**guests[vmid], key: event[key]}
    return guests


@given(SKEWS, st.lists(ACTIONS, max_size=40))
@settings(max_examples=cases(2000, 60))
def test_every_event_is_reported_once(
    skew: dict[str, int], actions: list[tuple[str, Any, Any]]
) -> None:
    history = History(skew)
    for action in actions:
        history.take(action)
    for _number in range(2):
        history.wait(30)
        history.read(())
    reported = {kind: Counter[str]() for kind in ("task_started", "task_ended")}
    for event in history.events:
        if event["type"] in reported:
            reported[event["type"]][event["upid"]] += 1
    assert reported["task_started"] == Counter(history.started)
    assert reported["task_ended"] == Counter(history.ended)
    guests = replay(history.events)
    assert {vmid: (one["node"], one["status"]) for vmid, one in guests.items()} == {
        vmid: (row["node"], row["status"]) for vmid, row in history.world.guests.items()
    }
    assert len({event["id"] for event in history.events}) == len(history.events)
    seen = len(history.events)
    history.read(())
    assert len(history.events) == seen


@given(SKEWS, st.lists(ACTIONS, max_size=25))
@settings(max_examples=cases(1000, 30))
def test_a_removal_is_reported_once(
    skew: dict[str, int], actions: list[tuple[str, Any, Any]]
) -> None:
    """With a reading after each action, each guest that goes and comes has its events."""
    history = History(skew)
    gone = come = 0
    for action in actions:
        before = dict(history.world.guests)
        history.take(action)
        after = history.world.guests
        gone += sum(1 for vmid, row in before.items() if after.get(vmid) is not row)
        come += sum(1 for vmid, row in after.items() if before.get(vmid) is not row)
        history.read(())
    history.read(())
    types = Counter(event["type"] for event in history.events)
    assert types["guest_disappeared"] == gone
    assert types["guest_appeared"] == come
    replay(history.events)
