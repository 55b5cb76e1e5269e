# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Alarms: one event when a condition begins to hold, one when it ends (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .conditions import AlarmCondition, is_checked
from .event import Event, event_of
from .kinds import ENDS
from .model import EventReading, SitePosition

Alarm = Mapping[str, Any]


def alarm_events(
    before: SitePosition, reading: EventReading, conditions: Iterable[AlarmCondition]
) -> tuple[dict[str, Alarm], list[Event]]:
    """Return the lasting alarms by name, and the events of alarms that begin or end.

    The event at the end contains the present values, or the values of the beginning if the object
    is gone.
    """
    alarms: dict[str, Alarm] = {}
    events: list[Event] = []
    by_name = {one.name: one for one in conditions}
    for name, alarm in before.alarms.items():
        condition = by_name.get(name)
        if _lasts(name, alarm, condition, reading):
            alarms[name] = alarm
            continue
        values = alarm["values"]
        if condition is not None:
            values = {**values, **condition.values}
        events.append(event_of(ENDS[alarm["type"]], reading.site, reading.taken, values))
    for name, condition in by_name.items():
        if condition.holds and name not in before.alarms:
            alarms[name] = {"type": condition.type, "values": dict(condition.values)}
            event = event_of(condition.type, reading.site, reading.taken, condition.values)
            events.append(event)
    return alarms, events


def _lasts(
    name: str, alarm: Alarm, condition: AlarmCondition | None, reading: EventReading
) -> bool:
    if condition is None:
        return not is_checked(name, alarm, reading)
    return condition.holds is not False
