# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Remains of a VM from an interrupted run or drill, or from an interrupted task of Proxmox VE
(pure).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ...._foundation.cluster.drill.copies import CopyNotes
from ...._foundation.core.times import iso
from ...._guests.guest.plan.planner import unconverted_disks
from ...._guests.guest.registry import list_of
from ...._guests.kinds.model import Actual

REMOVE, WAIT, BY_HAND = "remove", "wait", "by_hand"
# Locks of an intended state or of a backup; nothing is unfinished.
_CHOSEN = frozenset(("suspended", "backup"))
_KIND_OF_LOCK: Mapping[str, str] = {
    "clone": "creation",
    "create": "creation",
    "migrate": "migration",
    "rollback": "rollback",
    "snapshot": "snapshot",
    "snapshot-delete": "snapshot",
    "suspending": "hibernation",
}
# Seconds after which the copy of a drill is abandoned.
ABANDONED = 12 * 3600
_RUN_AGAIN = "Run the task that created it again, which completes it"


@dataclass(frozen=True)
class Orphan:
    """One unfinished part of a VM, and its remedy."""

    kind: str
    detail: str
    remedy: str
    next_step: str

    def row(self, actual: Actual) -> dict[str, Any]:
        """Return the unfinished part as the module reports it."""
        place = {
            "guest": _module_of(actual),
            "vmid": actual.vmid,
            "name": actual.name,
            "node": actual.node,
        }
        return {**place, **asdict(self)}


FAILED_RESTORE = Orphan(
    "restore",
    "it is empty: a restore of the tenant's login has failed, and that login does not see it",
    REMOVE,
    "Let module tidy remove it",
)


def _module_of(actual: Actual) -> str:
    """Return the key of its kind in results, which is the name of its module."""
    return list_of(actual.kind.type).flow.key


def orphans_of(
    actual: Actual, tasks: Collection[str], bases: Collection[str], may_run: str = ""
) -> list[Orphan]:
    """Return the unfinished parts of a VM.

    `tasks` are the UPIDs of tasks that work on it now, `bases` the storages with base volumes.
    `may_run` is the next step if other tasks may work on it that the login does not see.
    """
    found: list[Orphan] = []
    lock = actual.lock
    if lock and lock not in _CHOSEN:
        kind = _KIND_OF_LOCK.get(lock, "lock")
        found = [_running(kind, tasks) if tasks else _locked(kind, actual, may_run)]
    if actual.marker.building:
        found = [_creation(actual, tasks, may_run)]
    elif actual.marker.stale:
        detail = "its cloud-init drive is older than its configuration"
        step = "Run the task that changed its cloud-init options again"
        found.append(Orphan("cloud_init", detail, BY_HAND, step))
    volume = actual.live.get("vmstate")
    if volume and not actual.lock:
        detail = f"the saved memory {volume} is of no use, because it is not hibernated"
        step = f"Run 'qm set {actual.vmid} --delete vmstate' on node {actual.node}"
        found.append(Orphan("vmstate", detail, BY_HAND, step))
    disks = unconverted_disks(actual, bases)
    if disks:
        detail = f"{', '.join(disks)} of this template are not base volumes"
        step = f"Run module {_module_of(actual)} with state=template, which converts them"
        found.append(Orphan("conversion", detail, BY_HAND, step))
    return found


def orphan_of_copy(notes: CopyNotes, now: float) -> Orphan:
    """Return the copy of a drill, which is abandoned `ABANDONED` seconds after its creation."""
    detail = f"it is a copy of drill {notes.run}, made {iso(notes.began)}"
    if now - notes.began > ABANDONED:
        step = "Let module tidy remove it, or the next drill"
        return Orphan("drill", detail, REMOVE, step)
    return Orphan("drill", detail, WAIT, "Run this again when the drill has ended")


def _creation(actual: Actual, tasks: Collection[str], may_run: str) -> Orphan:
    """Return the unfinished creation of a VM that still has the creation marker."""
    if tasks:
        return _running("creation", tasks)
    if actual.lock:
        return _locked("creation", actual, may_run)
    if actual.status != "stopped":
        detail = f"it has the creation marker, and is {actual.status}"
        return Orphan("creation", detail, BY_HAND, _RUN_AGAIN)
    detail = "it has the creation marker, and no task works on it"
    return Orphan("creation", detail, REMOVE, f"{_RUN_AGAIN}, or let module tidy remove it")


def _running(kind: str, tasks: Collection[str]) -> Orphan:
    detail = f"tasks work on it: {', '.join(sorted(tasks))}"
    return Orphan(kind, detail, WAIT, "Run this again when they have ended")


def _locked(kind: str, actual: Actual, may_run: str) -> Orphan:
    if may_run:
        return Orphan(kind, f"it has the lock {actual.lock}", WAIT, may_run)
    detail = f"it has the lock {actual.lock}, and no task works on it"
    command = f"{actual.kind.tool} unlock {actual.vmid}"
    step = f"Run '{command}' on node {actual.node}, then the task that was interrupted"
    return Orphan(kind, detail, BY_HAND, step)
