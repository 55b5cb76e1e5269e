# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""New and ended tasks, failed backups, and lists that do not reach back."""

from __future__ import annotations

from typing import Any

from ansible_collections.pve.fleet.plugins.module_utils._operation.events.advance import advance
from ansible_collections.pve.fleet.plugins.module_utils._operation.events.kinds import COMMON, KEYS
from ansible_collections.pve.fleet.plugins.module_utils._operation.events.model import SitePosition
from tests.labs.events import OPTIONS, World

Events = list[dict[str, Any]]


def step(world: World, position: SitePosition, **more: Any) -> tuple[SitePosition, Events]:
    """Read the world half a minute later."""
    world.now += 30
    return advance(position, world.read(position, **more), OPTIONS)


def started(world: World) -> SitePosition:
    position, events = step(world, SitePosition())
    assert events == []
    return position


def types(events: Events) -> list[str]:
    return [event["type"] for event in events]


def test_tasks_before_the_first_reading_give_no_events() -> None:
    world = World()
    world.run("pve1", "qmstart", 100)
    started(world)


def test_a_task_between_two_readings_starts_and_ends() -> None:
    world = World()
    position = started(world)
    upid = world.run("pve1", "qmstart", 100)
    position, events = step(world, position)
    assert types(events) == ["task_started", "task_ended"]
    assert [event["upid"] for event in events] == [upid, upid]
    assert [event["status"] for event in events] == ["running", "ok"]
    assert set(events[1]) == {*COMMON, *KEYS["task_ended"]}
    assert step(world, position)[1] == []


def test_a_task_that_ran_at_the_start_ends() -> None:
    world = World()
    upid = world.begin("pve2", "qmclone", 100)
    position = started(world)
    world.now += 7200  # other tasks start in between, so that this one is old
    for _number in range(3):
        world.now += 1000
        world.run("pve2", "qmstart", 101)
        position, _events = step(world, position)
    world.end(upid, "clone failed: no space")
    position, events = step(world, position)
    assert types(events) == ["task_ended"]
    assert (events[0]["status"], events[0]["exitstatus"]) == ("failed", "clone failed: no space")
    assert step(world, position)[1] == []


def test_a_node_that_does_not_answer_loses_nothing() -> None:
    world = World()
    position = started(world)
    upid = world.run("pve2", "qmstart", 100)
    position, events = step(world, position, silent=["pve2"])
    assert types(events) == ["reading_failed"]
    position, events = step(world, position)
    assert types(events) == ["task_started", "task_ended", "reading_restored"]
    assert events[0]["upid"] == upid


def test_a_list_that_was_cut_is_reported() -> None:
    """PVE keeps two files of some 50,000 bytes for a node (pve-common: RESTEnvironment.pm,
    active_workers).
    """
    world = World()
    world.run("pve1", "qmstart", 100)
    position = started(world)
    world.rows["pve1"].clear()
    world.run("pve1", "qmstop", 100)
    position, events = step(world, position)
    assert types(events) == ["task_started", "task_ended", "tasks_lost"]
    assert events[2]["node"] == "pve1"
    assert step(world, position)[1] == []


def test_a_running_task_that_is_listed_no_more_has_an_unknown_end() -> None:
    world = World()
    upid = world.begin("pve1", "qmclone", 100)
    position = started(world)
    world.rows["pve1"].clear()
    position, events = step(world, position)
    assert types(events) == ["task_ended"]
    assert (events[0]["upid"], events[0]["status"]) == (upid, "unknown")
    assert step(world, position)[1] == []


def test_a_clock_that_was_ahead_hides_no_task() -> None:
    world = World(skew={"pve1": 86400})
    world.run("pve1", "qmstart", 100)
    position = started(world)
    world.skew = {}
    world.run("pve1", "qmstop", 100)
    position, events = step(world, position)
    assert types(events) == ["task_started", "task_ended"]


def test_a_failed_backup_names_its_guest() -> None:
    world = World()
    position = started(world)
    world.run("pve1", "vzdump", 100, "job errors")
    world.run("pve1", "vzdump", 101)
    world.run("pve1", "vzdump", 102, "WARNINGS: 1")
    _position, events = step(world, position)
    failed = [event for event in events if event["type"] == "backup_failed"]
    assert [event["vmids"] for event in failed] == [[100]]
    assert failed[0]["exitstatus"] == "job errors"


def test_a_failed_backup_of_a_job_names_the_guests_of_its_log() -> None:
    world = World()
    position = started(world)
    upid = world.run("pve1", "vzdump", "", "job errors")
    tasks = world.answers(position)
    reading = world.reading(tasks, failed_guests={upid: (100, 103)})
    _position, events = advance(position, reading, OPTIONS)
    assert events[-1]["vmids"] == [100, 103]
