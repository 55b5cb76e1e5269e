# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Guests that appear, disappear, move, or change their power state or tenant (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..._foundation.cluster.state import ClusterState, VmRow
from ..._foundation.cluster.tenant import tenant_of
from ..._guests.kinds.words import kind_name
from ..events import kinds
from .event import Event, event_of
from .model import EventReading, KnownGuest, NodeAnswers, SitePosition

# The listing shows the state of up to ten seconds ago (pve-manager: PVE/Service/pvestatd.pm).
_LAG = 20.0
# Seconds for which the record of a removed guest waits for the task that removed it.
_FORGOTTEN_AFTER = 3600.0
_NOT_KNOWN = "unknown"
# The report of each changed key: the type of the event, and the key of the old value.
_CHANGES = (
    ("tenant", kinds.GUEST_TENANT, "previous_tenant"),
    ("node", kinds.GUEST_MOVED, "previous_node"),
    ("status", kinds.GUEST_POWER, "previous_status"),
)


def guest_changes(
    before: SitePosition, reading: EventReading, cluster: ClusterState, prefix: str
) -> tuple[dict[int, KnownGuest], dict[int, float], list[Event]]:
    """Return the known guests by VMID, the removed guests whose task is still unseen, and the
    events. The first reading gives no events.
    """
    known: dict[int, KnownGuest] = {}
    events: list[Event] = []
    removals = new_removals(before, reading.tasks)
    for vmid, row in sorted(cluster.vms.items()):
        old = before.guests.get(vmid)
        # A removal that the listing showed before the task was seen is already reported.
        was_removed = removals[vmid] > (vmid in before.removed)
        if old is not None and (was_removed or old.kind != kind_name(row.type)):
            events.append(_event(kinds.GUEST_DISAPPEARED, reading, vmid, old))
            old = None
        known[vmid] = _known(old, row, reading.taken, prefix)
        events += _changes(old, known[vmid], vmid, reading)
    gone = sorted(before.guests.keys() - known.keys())
    for vmid in gone:
        events.append(_event(kinds.GUEST_DISAPPEARED, reading, vmid, before.guests[vmid]))
    # Guests whose removal was seen before its task, without comparing clocks. The task may never
    # appear, for example because the guest was removed without one.
    removed = {
        vmid: when
        for vmid, when in before.removed.items()
        if not removals[vmid] and reading.taken - when < _FORGOTTEN_AFTER
    }
    for vmid in gone:
        if removals[vmid] <= (vmid in before.removed):
            removed[vmid] = reading.taken
    return known, removed, [] if before.is_new else events


def new_removals(before: SitePosition, tasks: NodeAnswers) -> Counter[int]:
    """Return the number of tasks that removed a guest since the last reading, by VMID.

    Tasks are read before the listing. If the listing still contains a known guest that such a task
    removed, it is another guest with the same VMID.
    """
    found: Counter[int] = Counter()
    for node, answer in tasks.items():
        known = before.tasks.get(node)
        if known is None or not isinstance(answer, list):
            continue
        for task in answer:
            if task.removes and task.vmid is not None and task.upid not in known.ended:
                found[task.vmid] += 1
    return found


def _known(old: KnownGuest | None, row: VmRow, taken: float, prefix: str) -> KnownGuest:
    """Return a guest of the listing; values that the listing does not know are unchanged."""
    tenant, problem = tenant_of(row.tags, prefix)
    guest = KnownGuest(
        kind=kind_name(row.type),
        name=row.own_name,
        node=row.node,
        tenant=tenant,
        tenant_problem=problem,
        status=row.status,
        template=row.template,
    )
    if old is None:
        return guest
    settles = taken + _LAG if row.lock == "backup" else old.settles
    guest = replace(guest, settles=settles, name=guest.name or old.name)
    if row.status == _NOT_KNOWN or taken < settles:
        return replace(guest, status=old.status)
    return guest


def _changes(
    old: KnownGuest | None, guest: KnownGuest, vmid: int, reading: EventReading
) -> list[Event]:
    if old is None:
        return [_event(kinds.GUEST_APPEARED, reading, vmid, guest)]
    events: list[Event] = []
    for key, type, previous in _CHANGES:
        value = getattr(old, key)
        if value == getattr(guest, key) or (key == "status" and value == _NOT_KNOWN):
            continue
        events.append(_event(type, reading, vmid, guest, {previous: value}))
    return events


def _event(
    type: str,
    reading: EventReading,
    vmid: int,
    guest: KnownGuest,
    more: Mapping[str, Any] | None = None,
) -> Event:
    values = {
        "vmid": vmid,
        "kind": guest.kind,
        "name": guest.name,
        "node": guest.node,
        "tenant": guest.tenant or "",
        "tenant_problem": guest.tenant_problem,
        "status": guest.status,
        "template": guest.template,
        **(more or {}),
    }
    if "previous_tenant" in values:
        values["previous_tenant"] = values["previous_tenant"] or ""
    return event_of(type, reading.site, reading.taken, values)
