# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guests that appear, disappear, move, or change, and nodes."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._operation.events.advance import advance
from ansible_collections.pve.fleet.plugins.module_utils._operation.events.model import SitePosition
from tests.labs.events import NODES, OPTIONS, World


@pytest.fixture
def world() -> World:
    world = World()
    world.create(100, tags="tenant_acme", status="running")
    return world


def step(world: World, position: SitePosition) -> tuple[SitePosition, list[dict[str, Any]]]:
    """Read the world half a minute later, and leave out the events of tasks."""
    world.now += 30
    position, events = advance(position, world.read(position), OPTIONS)
    return position, [event for event in events if not event["type"].startswith("task_")]


def types(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def test_guests_of_the_first_reading_give_no_events(world: World) -> None:
    assert step(world, SitePosition())[1] == []


def test_an_untagged_guest_appears_without_a_tenant(world: World) -> None:
    position, _events = step(world, SitePosition())
    world.create(101)
    world.create(102, tags="tenant_acme;tenant_other")
    position, events = step(world, position)
    assert types(events) == ["guest_appeared", "guest_appeared"]
    assert [event["tenant"] for event in events] == ["", ""]
    assert events[0]["tenant_problem"] == "no tenant tag"
    assert "several tenant tags" in events[1]["tenant_problem"]
    assert step(world, position)[1] == []


@pytest.mark.parametrize(
    ("change", "type", "previous"),
    [
        ({"tags": "tenant_other"}, "guest_tenant_changed", {"previous_tenant": "acme"}),
        ({"tags": ""}, "guest_tenant_changed", {"previous_tenant": "acme"}),
        ({"node": "pve2"}, "guest_moved", {"previous_node": "pve1"}),
        ({"status": "stopped"}, "guest_power_changed", {"previous_status": "running"}),
    ],
)
def test_a_change(
    world: World, change: dict[str, Any], type: str, previous: dict[str, Any]
) -> None:
    position, _events = step(world, SitePosition())
    world.guests[100].update(change)
    position, events = step(world, position)
    assert types(events) == [type]
    assert previous.items() <= events[0].items()
    assert step(world, position)[1] == []


def test_a_guest_disappears(world: World) -> None:
    position, _events = step(world, SitePosition())
    world.destroy(100)
    position, events = step(world, position)
    assert types(events) == ["guest_disappeared"]
    assert (events[0]["vmid"], events[0]["tenant"]) == (100, "acme")
    assert step(world, position)[1] == []


def test_a_reused_vmid_is_another_guest(world: World) -> None:
    position, _events = step(world, SitePosition())
    world.destroy(100)
    world.create(100)
    position, events = step(world, position)
    assert types(events) == ["guest_disappeared", "guest_appeared"]
    assert [event["tenant"] for event in events] == ["acme", ""]
    assert step(world, position)[1] == []


def test_a_removal_whose_task_is_seen_late_is_reported_once(world: World) -> None:
    """The node answers again after its guest is gone and its VMID is used again."""
    position, _events = step(world, SitePosition())
    world.destroy(100)
    world.now += 30
    position, events = advance(position, world.read(position, silent=NODES), OPTIONS)
    assert "guest_disappeared" in types(events)
    world.create(100)
    world.now += 30
    position, events = advance(position, world.read(position, silent=NODES), OPTIONS)
    assert types(events) == ["guest_appeared"]
    position, events = step(world, position)
    assert types(events) == ["reading_restored", "reading_restored"]


def test_a_stopped_guest_that_is_backed_up_does_not_start(world: World) -> None:
    """QEMU runs for the backup, and the listing shows it for ten seconds more."""
    world.guests[100]["status"] = "stopped"
    position, _events = step(world, SitePosition())
    world.guests[100].update(status="running", lock="backup")
    position, events = step(world, position)
    assert events == []
    del world.guests[100]["lock"]
    world.now -= 25
    position, events = step(world, position)
    assert events == []
    position, events = step(world, position)
    assert types(events) == ["guest_power_changed"]


def test_an_unknown_power_state_changes_nothing(world: World) -> None:
    position, _events = step(world, SitePosition())
    world.guests[100]["status"] = "unknown"
    position, events = step(world, position)
    assert events == []
    world.guests[100]["status"] = "stopped"
    position, events = step(world, position)
    assert events[0]["previous_status"] == "running"


def test_nodes_go_and_come(world: World) -> None:
    position, _events = step(world, SitePosition())
    world.offline.add("pve2")
    position, events = step(world, position)
    assert [(event["type"], event["node"]) for event in events] == [("node_offline", "pve2")]
    position, events = step(world, position)
    assert events == []
    world.offline.clear()
    position, events = step(world, position)
    assert [(event["type"], event["node"]) for event in events] == [("node_online", "pve2")]


def test_a_site_that_does_not_answer_keeps_its_guests(world: World) -> None:
    position, _events = step(world, SitePosition())
    position, events = advance(position, world.failed(), OPTIONS)
    assert types(events) == ["site_unreachable"]
    assert "no route to host" in events[0]["reason"]
    position, events = advance(position, world.failed(), OPTIONS)
    assert events == []
    world.create(101)
    position, events = step(world, position)
    assert types(events) == ["guest_appeared", "site_reachable"]
