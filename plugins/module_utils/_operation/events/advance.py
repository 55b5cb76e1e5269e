# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Derives the events and the next position from a position and a reading (pure).

Lasting conditions, such as a full storage, begin and end alarms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..._foundation.cluster.quota import figures_by_vm, total
from ..._foundation.cluster.state import ClusterState, StorageRow
from ..._foundation.cluster.tenant import tenant_of, tenant_tag
from ..._foundation.core.errors import FleetError
from ..._foundation.core.times import iso
from ..._guests.kinds.words import kind_name
from ..drift.model import DRIFTED, MISSING, OUTDATED, PENDING, UNKNOWN, UNWANTED
from . import kinds
from .event import Event, event_of
from .guests import guest_changes
from .kinds import ENDS
from .model import TASKS, EventOptions, EventReading, ReadFailure, SitePosition, SlowChecks
from .tasks import task_events

Alarm = Mapping[str, Any]
# Percent below the limit at which an alarm ends: a figure near the limit gives no series of alarms.
_MARGIN = 2.0
_DRIFTS = frozenset((DRIFTED, PENDING, MISSING, UNWANTED, OUTDATED))
_DISK = "disk"
_HOUR = 3600


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
    guests, removed, of_guests = guest_changes(before, reading, reading.cluster, wanted.prefix)
    events = [*of_tasks, *_node_events(before, reading), *of_guests, *events]
    after = SitePosition(
        taken=reading.taken,
        checked=reading.taken if reading.checks is not None else before.checked,
        nodes=tuple(sorted(reading.online)),
        tasks=tasks,
        guests=guests,
        alarms=alarms,
        removed=removed,
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
        if condition is not None:
            lasts = condition.holds is not False
        else:
            lasts = not is_checked(name, alarm, reading)
        if lasts:
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


@dataclass(frozen=True)
class AlarmCondition:
    """Whether a condition holds; None if this is not known, or if an existing alarm may stay.

    `type` is the event at its beginning, `key` distinguishes it from other conditions of this type.
    """

    type: str
    key: str
    holds: bool | None
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.type}/{self.key}"


def conditions_of(reading: EventReading, wanted: EventOptions) -> list[AlarmCondition]:
    """Return the conditions of a site; for a site that was not read, only its failure.

    If a condition is missing in a complete reading, it has ended: its object is gone.
    """
    failure = ReadFailure.of(reading.error) if reading.error is not None else None
    found = [_failure(kinds.SITE_UNREACHABLE, "site", failure)]
    if reading.cluster is None:
        return found
    found.append(AlarmCondition(kinds.QUORUM_LOST, "", not reading.quorate))
    for node, is_online in reading.online.items():
        found.append(AlarmCondition(kinds.NODE_OFFLINE, node, not is_online, {"node": node}))
    for node, answer in reading.tasks.items():
        failure = ReadFailure.of(answer) if isinstance(answer, FleetError) else None
        found.append(_failure(kinds.READING_FAILED, f"{TASKS} of {node}", failure))
    found += _storages(reading.cluster, wanted.storage_limit)
    found += _quotas(reading.cluster, None, wanted)
    checks = reading.checks
    if checks is not None:
        found += [_failure(kinds.READING_FAILED, *one) for one in checks.failed.items()]
        found += _backups(reading, checks, wanted)
        found += _drift(checks)
        if checks.disks is not None:
            found += _quotas(reading.cluster, checks.disks, wanted)
    return found


def is_checked(name: str, alarm: Mapping[str, Any], reading: EventReading) -> bool:
    """Return whether a reading without a condition of this name ends its alarm.

    An alarm about slow readings lasts until its part is read again without an error.
    """
    if reading.cluster is None:
        return False
    type = alarm["type"]
    checks = reading.checks or SlowChecks()
    if type == kinds.BACKUP_MISSING:
        return checks.newest is not None
    if type == kinds.DRIFT_FOUND:
        return checks.drift is not None
    if type == kinds.QUOTA_ABOVE and alarm["values"].get("resource") == _DISK:
        return checks.disks is not None
    if type == kinds.READING_FAILED and not name.startswith(f"{type}/{TASKS}"):
        return reading.checks is not None
    return True


def _failure(type: str, part: str, failure: ReadFailure | None) -> AlarmCondition:
    if failure is None:
        return AlarmCondition(type, part, False, {"part": part})
    values = {"part": part, "category": failure.category, "reason": failure.reason}
    return AlarmCondition(type, part, True, values)


def _over(percent: float, limit: float) -> bool | None:
    """Return whether a figure is above its limit, None shortly below it."""
    if percent >= limit:
        return True
    if percent < limit - _MARGIN:
        return False
    return None


def _storages(cluster: ClusterState, limit: float) -> Iterator[AlarmCondition]:
    """Yield the conditions of the storages; a shared storage once, from a node that has it."""
    rows: dict[str, StorageRow] = {}
    for row in cluster.storages:
        key = f"{row.place}/{row.storage}"
        if row.available and row.total > 0:
            rows.setdefault(key, row)
    for row in cluster.storages:
        key = f"{row.place}/{row.storage}"
        if key not in rows:
            yield AlarmCondition(kinds.STORAGE_ABOVE, key, None)
    for key, row in rows.items():
        percent = round(100 * row.used / row.total, 1)
        values = {
            "storage": row.storage,
            "node": row.place,
            "used": row.used,
            "total": row.total,
            "percent": percent,
            "limit": limit,
        }
        yield AlarmCondition(kinds.STORAGE_ABOVE, key, _over(percent, limit), values)


def _quotas(
    cluster: ClusterState, disks: Mapping[int, int] | None, wanted: EventOptions
) -> Iterator[AlarmCondition]:
    """Yield the conditions of quotas: of disks if their sizes are given, else of all others."""
    for tenant, limits in wanted.quotas.items():
        tag = tenant_tag(tenant, wanted.prefix)
        figures = figures_by_vm(cluster, tag, wanted.prefix, disks)
        amounts = total(figures.values())
        for resource, quota in limits.items():
            if (resource == _DISK) is not (disks is not None):
                continue
            used = getattr(amounts, resource)
            percent = 100.0 if used else 0.0
            if quota:
                percent = round(100 * used / quota, 1)
            values = {
                "tenant": tenant,
                "resource": resource,
                "used": used,
                "quota": quota,
                "percent": percent,
                "limit": wanted.quota_limit,
            }
            holds = _over(percent, wanted.quota_limit)
            yield AlarmCondition(kinds.QUOTA_ABOVE, f"{tenant}/{resource}", holds, values)


def _backups(
    reading: EventReading, checks: SlowChecks, wanted: EventOptions
) -> Iterator[AlarmCondition]:
    """Yield for each guest whether its newest backup is too old."""
    if checks.newest is None or wanted.max_age is None or reading.cluster is None:
        return
    for vmid, row in reading.cluster.vms.items():
        if row.template:
            continue
        newest = checks.newest.get(vmid)
        holds = reading.taken - newest > wanted.max_age if newest is not None else None
        tenant, _why = tenant_of(row.tags, wanted.prefix)
        values = {
            "vmid": row.vmid,
            "kind": kind_name(row.type),
            "name": row.own_name,
            "node": row.node,
            "tenant": tenant or "",
            "newest": iso(newest or 0),
            "max_age_hours": wanted.max_age / _HOUR,
        }
        yield AlarmCondition(kinds.BACKUP_MISSING, str(vmid), holds, values)


def _drift(checks: SlowChecks) -> Iterator[AlarmCondition]:
    """Yield for each guest of the estate whether it differs; None if it could not be compared."""
    for vm in (checks.drift or {}).get("vms", ()):
        holds = None if vm["status"] == UNKNOWN else vm["status"] in _DRIFTS
        values = {
            "vmid": vm["vmid"],
            "kind": vm["kind"],
            "name": vm["name"],
            "node": vm["node"],
            "tenant": vm["tenant"],
            "status": vm["status"],
            "options": [one["option"] for one in vm["options"]],
        }
        key = f"{vm['kind']}/{vm['tenant']}/{vm['name']}"
        yield AlarmCondition(kinds.DRIFT_FOUND, key, holds, values)
