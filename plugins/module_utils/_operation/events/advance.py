# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Derives the events and the next position from a position and a reading (pure)."""

from __future__ import annotations

from dataclasses import replace

from ..events import kinds
from .alarms import alarm_events
from .conditions import conditions_of
from .event import Event, event_of
from .guests import guest_changes
from .model import EventOptions, EventReading, SitePosition
from .tasks import task_events


def advance(
    before: SitePosition, reading: EventReading, wanted: EventOptions
) -> tuple[SitePosition, list[Event]]:
    """Return the next position and the events, in the order of their times.

    The first reading of a site gives no events of tasks, guests and nodes, but it gives events of
    conditions such as a full storage. A site that could not be read keeps its position.
    """
    alarms, events = alarm_events(before, reading, conditions_of(reading, wanted))
    if reading.cluster is None:
        return replace(before, alarms=alarms), events
    tasks, of_tasks = task_events(before, reading)
    guests = guest_changes(before, reading, reading.cluster, wanted.prefix)
    events = [*of_tasks, *_node_events(before, reading), *guests.events, *events]
    after = SitePosition(
        taken=reading.taken,
        checked=reading.taken if reading.checks is not None else before.checked,
        nodes=tuple(sorted(reading.online)),
        tasks=tasks,
        guests=guests.known,
        alarms=alarms,
        removed=guests.removed,
    )
    # The sort is stable: a task that starts and ends within a second starts first.
    return after, sorted(events, key=lambda event: str(event["time"]))


def _node_events(before: SitePosition, reading: EventReading) -> list[Event]:
    if before.is_new:
        return []
    events: list[Event] = []
    for node in sorted(reading.online.keys() - set(before.nodes)):
        events.append(event_of(kinds.NODE_APPEARED, reading.site, reading.taken, {"node": node}))
    for node in sorted(set(before.nodes) - reading.online.keys()):
        events.append(event_of(kinds.NODE_DISAPPEARED, reading.site, reading.taken, {"node": node}))
    return events


def is_slow_due(position: SitePosition, now: float, wanted: EventOptions) -> bool:
    """Return whether it is time to read backups, disks and drift again."""
    return wanted.has_slow_part and now - position.checked >= wanted.slow_interval
