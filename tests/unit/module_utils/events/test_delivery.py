# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The position and the events in files: interruptions at any moment lose and repeat nothing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ConfigurationError,
    Conflict,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.events import follow
from ansible_collections.pve.fleet.plugins.module_utils._operation.events.follow import Follower
from ansible_collections.pve.fleet.plugins.module_utils._operation.events.model import SitePosition
from ansible_collections.pve.fleet.plugins.module_utils._operation.events.store import PositionStore
from tests.fake_api import FakeApi
from tests.labs.events import OPTIONS, SITE, World

SECRET = "11111111-1111-4111-8111-111111111111"


class Killed(BaseException):
    """The process ends here."""


class Rules:
    """A queue with room for one event, as ansible-rulebook has, whose reader takes each event.

    It is killed before it takes the event of this number.
    """

    def __init__(self, killed_at: int | None = None) -> None:
        self.taken: list[dict[str, Any]] = []
        self.killed_at = killed_at

    async def put(self, event: dict[str, Any]) -> None:
        if len(self.taken) == self.killed_at:
            raise Killed
        self.taken.append(event)
        event["meta"] = {"source": "rules"}

    def empty(self) -> bool:
        return True


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.json"


@pytest.fixture
def world() -> World:
    return World()


def follower(store: PositionStore, rules: Any) -> Follower:
    client = FakeApi(lambda request: None).client(token_secret=SECRET)
    return Follower({SITE: client}, OPTIONS, store, rules)


def take_over(opened: PositionStore, world: World, rules: Rules) -> None:
    """Read the world and write what is new."""
    world.now += 30
    reading = world.read(opened.position(SITE))
    follower(opened, rules).take_over(SITE, reading)


def deliver(opened: PositionStore, rules: Any) -> None:
    asyncio.run(follower(opened, rules).deliver(SITE))


@pytest.fixture
def opened(path: Path) -> Iterator[PositionStore]:
    found = PositionStore(str(path))
    yield found
    found.close()


def restarted(opened: PositionStore, path: Path) -> PositionStore:
    opened.close()
    return PositionStore(str(path))


@pytest.mark.parametrize("killed_at", range(7))
def test_killed_between_events(path: Path, world: World, killed_at: int) -> None:
    opened = PositionStore(str(path))
    take_over(opened, world, Rules())
    upids = [world.run("pve1", "qmstart", vmid) for vmid in (100, 101, 102)]
    first = Rules(killed_at)
    take_over(opened, world, first)
    if killed_at < 6:
        with pytest.raises(Killed):
            deliver(opened, first)
    else:
        deliver(opened, first)
    opened = restarted(opened, path)
    second = Rules()
    deliver(opened, second)
    take_over(opened, world, second)
    deliver(opened, second)
    reported = [(event["type"], event["upid"]) for event in (*first.taken, *second.taken)]
    assert reported == [(type, upid) for upid in upids for type in ("task_started", "task_ended")]
    opened.close()


@pytest.mark.parametrize("written", [0, 1, 2])
def test_killed_between_an_event_and_its_note(path: Path, world: World, written: int) -> None:
    """Then the event comes twice, with the same ID: it is better than not at all."""
    opened = PositionStore(str(path))
    take_over(opened, world, Rules())
    world.run("pve1", "qmstart", 100)
    first = Rules()
    take_over(opened, world, first)
    mark, count = opened.mark_delivered, 0

    def killed(site: str, place: int) -> None:
        nonlocal count
        if count == written:
            raise Killed
        count += 1
        mark(site, place)

    with mock.patch.object(opened, "mark_delivered", killed):
        if written < 2:
            with pytest.raises(Killed):
                deliver(opened, first)
        else:
            deliver(opened, first)
    opened = restarted(opened, path)
    second = Rules()
    deliver(opened, second)
    ids = [event["id"] for event in first.taken]
    again = [event["id"] for event in second.taken]
    assert again == (ids[written:] + [one for one in again if one not in ids])
    assert len(set(ids + again)) == 2
    opened.close()


@pytest.mark.parametrize("number", range(3))
def test_killed_while_a_file_is_written(path: Path, world: World, number: int) -> None:
    """A file is replaced as a whole: the old position is read, and gives the events."""
    opened = PositionStore(str(path))
    take_over(opened, world, Rules())
    world.run("pve1", "qmstart", 100)
    seen: list[dict[str, Any]] = []
    calls = iter(range(9))
    replace = os.replace

    def killed(source: str, target: str) -> None:
        if next(calls) == number:
            raise Killed
        replace(source, target)

    with mock.patch.object(os, "replace", killed):
        first = Rules()
        with suppress(Killed):
            take_over(opened, world, first)
            deliver(opened, first)
        seen += first.taken
    assert next(calls) == number + 1
    opened = restarted(opened, path)
    second = Rules()
    deliver(opened, second)
    take_over(opened, world, second)
    deliver(opened, second)
    seen += second.taken
    assert [event["type"] for event in {event["id"]: event for event in seen}.values()] == [
        "task_started",
        "task_ended",
    ]
    opened.close()


def test_an_event_that_was_not_taken_comes_again(
    path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "_ATTEMPTS", 1)
    monkeypatch.setattr(follow, "_PAUSE", 0)
    opened = PositionStore(str(path))
    take_over(opened, world, Rules())
    world.begin("pve1", "qmstart", 100)
    take_over(opened, world, Rules())
    deliver(opened, asyncio.Queue())
    opened = restarted(opened, path)
    assert [event["type"] for _place, event in opened.undelivered(SITE)] == ["task_started"]
    opened.close()


def test_an_event_that_is_taken_late_is_offered_once_and_kept(
    path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rules are slow: the next reading does not drop the event, and does not repeat it."""
    monkeypatch.setattr(follow, "_ATTEMPTS", 1)
    monkeypatch.setattr(follow, "_PAUSE", 0)
    opened = PositionStore(str(path))
    take_over(opened, world, Rules())
    queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    source = follower(opened, queue)
    types = []
    for type in ("qmstart", "qmstop"):
        world.now += 30
        world.begin("pve1", type, 100)
        source.take_over(SITE, world.read(opened.position(SITE)))
        asyncio.run(source.deliver(SITE))
        types.append([event["task"] for _place, event in opened.undelivered(SITE)])
    assert types == [["qmstart"], ["qmstart", "qmstop"]]
    assert [queue.get_nowait()["task"] for _number in range(queue.qsize())] == types[1]
    asyncio.run(source.deliver(SITE))
    assert opened.undelivered(SITE) == []
    assert queue.empty()
    opened.close()


def test_a_file_that_cannot_be_written_ends_the_source(
    path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The position of before is kept, so that no event is lost."""
    opened = PositionStore(str(path))
    take_over(opened, world, Rules())
    before = path.read_text(encoding="utf-8")
    world.begin("pve1", "qmstart", 100)

    def full(*_unused: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ConfigurationError, match="No space left on device"):
        take_over(opened, world, Rules())
    assert path.read_text(encoding="utf-8") == before
    opened.close()


def test_the_meta_of_the_rules_is_not_kept(opened: PositionStore, world: World) -> None:
    take_over(opened, world, Rules())
    world.begin("pve1", "qmstart", 100)
    take_over(opened, world, Rules(0))
    with pytest.raises(Killed):
        deliver(opened, Rules(0))
    assert "meta" not in opened.undelivered(SITE)[0][1]


def test_nothing_is_written_without_a_change(
    opened: PositionStore, world: World, path: Path
) -> None:
    take_over(opened, world, Rules())
    before = path.stat().st_mtime_ns
    take_over(opened, world, Rules())
    assert path.stat().st_mtime_ns == before


def test_no_secret_is_in_an_event(opened: PositionStore, world: World, path: Path) -> None:
    take_over(opened, world, Rules())
    world.run("pve1", "qmstart", 100, f"command 'curl -H {SECRET}' failed")
    take_over(opened, world, Rules())
    events = [event for _place, event in opened.undelivered(SITE)]
    assert events[1]["exitstatus"] == "command 'curl -H ********' failed"
    assert SECRET not in path.read_text(encoding="utf-8")
    assert path.stat().st_mode & 0o777 == 0o600


def test_two_sources_do_not_share_a_file(opened: PositionStore, path: Path) -> None:
    with pytest.raises(Conflict, match="another event source uses"):
        PositionStore(str(path))


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"version":2,"sites":{}}', '{"version":1,"sites":{"":{}}}', "{"]
)
def test_a_broken_file_is_refused(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=str(path)):
        PositionStore(str(path))


def test_a_directory_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no directory"):
        PositionStore(str(tmp_path / "missing" / "events.json"))


def test_a_site_that_is_new_has_a_new_position(opened: PositionStore) -> None:
    assert opened.position("other") == SitePosition()
    assert opened.undelivered("other") == []
