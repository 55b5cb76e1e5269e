# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The use of guests between two samples, exact if a task proves the time of a change (pure).

Use without a proof is a span that is not certain: docs/decisions/0035-metered-use.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..tasks.row import OK, REMOVALS, WARNING, TaskRow
from .archives import archive_spans
from .model import (
    BACKUPS,
    DISKS,
    GUEST,
    SITE,
    TASKS,
    Gone,
    GuestUse,
    Lack,
    Sample,
    Span,
    Subject,
    Waiting,
    Window,
)

# The tasks of a new guest have its VMID, a clone has the VMID of its source (qemu-server:
# API2/Qemu.pm, clone_vm; pve-container: API2/LXC.pm, clone_vm).
_CREATIONS = frozenset("qmcreate qmrestore vzcreate vzrestore".split())
_CLONES: Mapping[str, str] = {"qmclone": "vm", "vzclone": "container"}
_MOVES = frozenset("qmigrate vzmigrate".split())
_RESIZE = "resize"
_STALE = 60  # seconds in which the listing may still show an earlier guest with the same VMID
_TRIES = 1  # samples that wait for the task that created or removed a guest


@dataclass
class _Found:
    """The parts of a window, while they are collected."""

    before: Sample
    now: Sample
    tasks: Sequence[TaskRow]
    spans: list[Span] = field(default_factory=list)
    missing: list[Lack] = field(default_factory=list)
    waiting: dict[int, Waiting] = field(default_factory=dict)
    gone: list[Gone] = field(default_factory=list)

    def of(self, vmid: int, kinds: Iterable[str]) -> list[TaskRow]:
        """Return the tasks of a guest that succeeded, by their end."""
        return [task for task in self.tasks if task.vmid == vmid and task.type in kinds]

    def lack(self, part: str, subject: str, reason: str) -> None:
        """Note a part that is not known in this window."""
        lack = Lack(part, subject, reason, self.before.time, self.now.time)
        self.missing.append(lack)

    def add(self, guest: GuestUse, start: int, end: int, *, certain: bool = True) -> None:
        """Add the use of a guest."""
        if end > start:
            self.spans.append(Span(_subject(guest, certain), start, end))


def use_between(
    before: Sample, now: Sample, tasks: Iterable[TaskRow], lost: Mapping[str, str], max_gap: int
) -> Window:
    """Return the use between two samples.

    `tasks` are the tasks that ended since the last sample, `lost` the nodes whose tasks are not
    known, with the reason. Nothing is known of a window that is longer than `max_gap` seconds.
    """
    start, end = before.time, now.time
    if end - start > max_gap:
        return _gap(before, end, max_gap)
    ended = [task for task in tasks if task.status in (OK, WARNING) and task.ended]
    found = _Found(before, now, sorted(ended, key=lambda task: (task.ended, task.upid)))
    for node, reason in sorted(lost.items()):
        found.lack(TASKS, node, reason)
    _settle_gone(found)
    for vmid in sorted(_vmids(found)):
        _add_guest(found, vmid)
    if any(guest.disk is None for guest in (*before.guests.values(), *now.guests.values())):
        found.lack(DISKS, "", "the disks on storages could not be listed")
    for storage in sorted(before.unread | now.unread):
        found.lack(BACKUPS, storage, "the backups on this storage could not be listed")
    found.spans += archive_spans(before, now)
    return Window(
        start, end, True, tuple(found.spans), tuple(found.missing), found.waiting, tuple(found.gone)
    )


def _gap(before: Sample, end: int, max_gap: int) -> Window:
    """Return a window of which nothing is known, and the rest of the window before it."""
    reason = f"no sample for more than {max_gap} seconds"
    missing = [Lack(SITE, "", reason, before.time, end)]
    for vmid, waiting in before.waiting.items():
        reason = "its creation was not known before the samples ended"
        missing.append(Lack(GUEST, str(vmid), reason, waiting.since, before.time))
    spans = [Span(_subject(gone.guest, False), gone.last, gone.missed) for gone in before.gone]
    return Window(before.time, end, False, tuple(spans), tuple(missing))


def _vmids(found: _Found) -> set[int]:
    before, now = found.before, found.now
    removed = {task.vmid for task in found.tasks if task.type in REMOVALS and task.vmid}
    present = before.guests.keys() | now.guests.keys() | now.unknown.keys()
    return present | before.unknown.keys() | before.waiting.keys() | removed


def _settle_gone(found: _Found) -> None:
    """Add the end of the guests that were missing in the last sample."""
    for gone in found.before.gone:
        removals = found.of(gone.guest.vmid, REMOVALS)
        if removals:
            end = _within(removals[0].ended, gone.last, gone.missed)
            found.add(gone.guest, gone.last, end)
            found.tasks = [task for task in found.tasks if task is not removals[0]]
        else:
            found.add(gone.guest, gone.last, gone.missed, certain=False)


def _add_guest(found: _Found, vmid: int) -> None:
    """Add the use of the guests that had a VMID in this window."""
    before, now = found.before, found.now
    removals = found.of(vmid, REMOVALS)
    ends = [_within(task.ended, before.time, now.time) for task in removals]
    if not ends:
        _add_kept(found, vmid)
        return
    guest, waiting = before.guests.get(vmid), before.waiting.get(vmid)
    if waiting is not None:
        _add_short(found, vmid, waiting, ends[0])
    elif guest is not None:
        for node, start, end in _places(found, vmid, removals[0].node, ends[0]):
            found.add(_named(guest, guest, node), start, end)
    elif vmid in before.unknown:
        found.lack(GUEST, str(vmid), before.unknown[vmid])
    else:
        _add_unseen(found, vmid, before.time, ends[0])
    for earlier, later in zip(ends, ends[1:], strict=False):
        _add_unseen(found, vmid, earlier, later)
    if vmid in now.guests or vmid in now.unknown:
        _add_new(found, vmid, Waiting(ends[-1]))


def _add_kept(found: _Found, vmid: int) -> None:
    """Add the use of a guest with a VMID of which no task removed a guest."""
    before, now = found.before, found.now
    guest, waiting = before.guests.get(vmid), before.waiting.get(vmid)
    is_present = vmid in now.guests or vmid in now.unknown
    if waiting is not None and is_present:
        _add_new(found, vmid, waiting)
    elif waiting is not None:
        reason = "it was removed without a task, soon after its creation"
        found.missing.append(Lack(GUEST, str(vmid), reason, waiting.since, now.time))
    elif guest is not None:
        _add_remaining(found, guest)
    elif vmid in before.unknown:
        found.lack(GUEST, str(vmid), before.unknown[vmid])
    else:
        _add_new(found, vmid, Waiting(before.time))


def _add_short(found: _Found, vmid: int, waiting: Waiting, end: int) -> None:
    """Add the use of a guest that was removed while its creation was not known yet."""
    guest = found.before.guests.get(vmid)
    if guest is None or _is_reused(found, vmid):
        _add_unseen(found, vmid, waiting.since, end)
        return
    first, last = waiting.created or _creation(found, guest, waiting.since)
    last = min(last, end)
    found.add(guest, last, end)
    found.add(guest, first, last, certain=False)


def _add_unseen(found: _Found, vmid: int, since: int, end: int) -> None:
    """Note a guest that was created and removed between two samples: nothing shows its size."""
    own = found.of(vmid, _CREATIONS)
    starts = [task.started for task in own if since <= task.started <= end]
    reason = "it was created and removed between two samples"
    found.missing.append(Lack(GUEST, str(vmid), reason, max(starts, default=since), end))


def _add_remaining(found: _Found, guest: GuestUse) -> None:
    """Add the use of a guest that no task removed."""
    before, now = found.before, found.now
    present = now.guests.get(guest.vmid)
    if present is not None and present.kind == guest.kind:
        _add_unchanged(found, guest, present)
    elif guest.vmid in now.unknown:
        found.lack(GUEST, str(guest.vmid), now.unknown[guest.vmid])
    else:
        found.gone.append(Gone(guest, before.time, now.time))
        if present is not None:
            _add_new(found, guest.vmid, Waiting(before.time))


def _add_unchanged(found: _Found, guest: GuestUse, present: GuestUse) -> None:
    """Add the use of a guest that exists in both samples: it may have moved or changed its size."""
    first, last = _resized(found, guest, present)
    least, difference = _smaller(guest, present), _difference(guest, present)
    moved = found.of(guest.vmid, _MOVES)
    final = present.node if moved else guest.node
    for node, start, end in _places(found, guest.vmid, final, found.now.time):
        found.add(_named(guest, guest, node), start, min(first, end))
        middle = (max(first, start), min(last, end))
        found.add(_named(least, guest, node), *middle)
        found.add(_named(difference, guest, node), *middle, certain=False)
        found.add(_named(present, guest, node), max(last, start), end)


def _places(found: _Found, vmid: int, node: str, end: int) -> list[tuple[str, int, int]]:
    """Return the nodes of a guest with their times; `node` is the node on which it is at the end.

    The task of a move is on the node that the guest leaves. A move without a task, such as the recovery
    of the HA manager, counts from the later sample.
    """
    start = found.before.time
    places: list[tuple[str, int, int]] = []
    for task in found.of(vmid, _MOVES):
        until = _within(task.ended, start, end)
        places.append((task.node, start, until))
        start = until
    return [*places, (node, start, end)]


def _resized(found: _Found, guest: GuestUse, present: GuestUse) -> tuple[int, int]:
    """Return the times between which the size of a guest changed.

    Only a resize is always a task; a change of the configuration is not. So the tasks are a proof
    if only the sizes of the same disks differ.
    """
    start, end = found.before.time, found.now.time
    if (guest.cores, guest.memory, guest.disk) == (present.cores, present.memory, present.disk):
        return end, end
    resizes = found.of(guest.vmid, (_RESIZE,))
    is_disk = (guest.cores, guest.memory, guest.disks) == (
        present.cores,
        present.memory,
        present.disks,
    )
    if not resizes or not is_disk:
        return start, end
    times = [_within(task.ended, start, end) for task in resizes]
    return times[0], times[-1]


def _add_new(found: _Found, vmid: int, waiting: Waiting) -> None:
    """Add the use of a new guest since its creation, or wait for the next sample."""
    now = found.now
    guest = now.guests.get(vmid)
    if guest is None:
        found.waiting[vmid] = waiting
        return
    created = waiting.created or _creation(found, guest, waiting.since)
    is_proven = created != (waiting.since, now.time)
    if not is_proven and waiting.tries < _TRIES:
        found.waiting[vmid] = replace(waiting, tries=waiting.tries + 1)
        return
    first, last = created
    if is_proven and last > now.time - _STALE and _is_reused(found, vmid):
        found.waiting[vmid] = replace(waiting, created=created)
        return
    found.add(guest, last, now.time)
    found.add(guest, first, last, certain=False)


def _creation(found: _Found, guest: GuestUse, since: int) -> tuple[int, int]:
    """Return the times between which a guest was created; without a task, the whole window."""
    end = found.now.time
    own = found.of(guest.vmid, _CREATIONS)
    if own:
        start = _within(own[-1].started, since, end)
        return start, start
    clones = [task for task in found.tasks if _CLONES.get(task.type) == guest.kind]
    starts = [_within(task.started, since, end) for task in clones if task.ended >= since]
    if not starts:
        return since, end
    return min(starts), max(starts)


def _is_reused(found: _Found, vmid: int) -> bool:
    """Return whether a guest with the same VMID was removed a short time ago.

    The listing then shows the size of the earlier guest for some seconds (pve-manager: API2Tools.pm,
    extract_vm_stats).
    """
    known = {*found.before.seen, *(task.upid for task in found.tasks)}
    return any(f":{kind}:{vmid}:" in upid for upid in known for kind in REMOVALS)


def _within(when: int, start: int, end: int) -> int:
    """Return a time inside a window: the clocks of nodes differ a little."""
    return min(max(when, start), end)


def _subject(guest: GuestUse, certain: bool) -> Subject:
    return Subject(
        guest.kind,
        str(guest.vmid),
        guest.name,
        guest.tenant,
        guest.node,
        guest.cores,
        guest.memory,
        guest.disk or 0,
        certain=certain,
    )


def _named(size: GuestUse, guest: GuestUse, node: str) -> GuestUse:
    """Return a size with the owner that the earlier sample shows."""
    return replace(size, name=guest.name, tenant=guest.tenant, node=node)


def _smaller(guest: GuestUse, present: GuestUse) -> GuestUse:
    return replace(
        present,
        cores=min(guest.cores, present.cores),
        memory=min(guest.memory, present.memory),
        disk=min(guest.disk or 0, present.disk or 0),
    )


def _difference(guest: GuestUse, present: GuestUse) -> GuestUse:
    return replace(
        present,
        cores=abs(guest.cores - present.cores),
        memory=abs(guest.memory - present.memory),
        disk=abs((guest.disk or 0) - (present.disk or 0)),
    )
