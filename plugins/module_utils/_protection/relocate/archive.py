# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way of a guest by an archive: its storage at both sites, and whether it has the last state"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._foundation.api.tasks import CONSOLE_TASKS, read_task_log
from ..._guests.kinds.model import Actual
from ..._operation.tasks.row import FAILED, OK, WARNING, TaskRow, task_of
from ..backup.read import CONTENT

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

SNAPSHOTS, DISKS = "snapshots", "disks"
BACKUP_TASK = "vzdump"
_TASKS = 100
_STOPPED = "status = stopped"
_LOCKED = "locked"
_DAMAGED = "failed"
_KEY = "encryption-key"
# The options that name the place of a storage, by its type. Other types are not the same at two
# clusters, or their options do not tell.
_PLACE: Mapping[str, Sequence[str]] = {
    "pbs": ("server", "port", "datastore", "namespace"),
    "nfs": ("server", "export", "subdir", "content-dirs"),
    "cifs": ("server", "share", "subdir", "content-dirs"),
    "cephfs": ("monhost", "fs-name", "subdir", "content-dirs"),
}


@dataclass(frozen=True)
class ArchivePlace:
    """The storage of an archive: its names at the source and at the target, the node that lists it
    at the target, and the storage to which PVE restores all disks; if empty, the archive names it.
    """

    here: str
    there: str
    node: str = ""
    storage: str = ""


def place_of(row: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the place of a storage by its definition, or None if it tells none (pure)."""
    kind = str(row.get("type"))
    if kind not in _PLACE:
        return None
    return kind, *(str(row.get(key) or "") for key in _PLACE[kind])


def find_storage(
    name: str, here: Mapping[str, Mapping[str, Any]], there: Mapping[str, Mapping[str, Any]]
) -> tuple[str, str]:
    """Return the name of a storage at the target, or why no storage there is the same (pure)."""
    own = here.get(name, {})
    place = place_of(own)
    if CONTENT not in str(own.get("content")).split(","):
        return "", f"archive_storage: {name} does not exist, or has no content backup"
    if place is None:
        return "", f"archive_storage: {name} is of type {own['type']}, not {', '.join(_PLACE)}"
    for other, row in sorted(there.items()):
        if place_of(row) == place and CONTENT in str(row.get("content")).split(","):
            if row.get(_KEY) != own.get(_KEY):
                return "", f"archive_storage: {name} and {other} have different encryption keys"
            return other, ""
    text = " ".join(filter(None, place))
    return "", f"archive_storage: the target has no storage for backups at {text}"


def find_losses(actual: Actual, snapshots: Collection[str], accepted: Collection[str]) -> list[str]:
    """Return a sentence about each part of a guest that is not in its archive (pure)."""
    problems: list[str] = []
    if snapshots and SNAPSHOTS not in accepted:
        names = ", ".join(sorted(snapshots))
        problems.append(f"its snapshots {names} are not in an archive (archive_without)")
    unsaved = actual.kind.unsaved_in(actual.target)
    if unsaved and DISKS not in accepted:
        problems.append(f"its {', '.join(unsaved)} are not in an archive (archive_without)")
    return problems


def restore_storage(actual: Actual, storages: Mapping[str, str]) -> tuple[str, str]:
    """Return the storage to which PVE restores all disks, empty if the archive names it, or why
    there is none (pure).
    """
    targets = set(storages.values())
    if len(targets) == 1:
        return min(targets), ""
    if not actual.kind.has_rootfs and all(name == other for name, other in storages.items()):
        return "", ""
    return "", "a restore puts all of its disks on one storage: set storage"


def read_last_state(
    source: Client, target: Client, actual: Actual, place: ArchivePlace, record_id: str
) -> str:
    """Return the archive with the last state of a stopped guest, or an empty text. Two requests,
    and one for each backup since. Raises FleetError.

    Its notes have the digest of the configuration that was backed up. Root locks a guest only with
    the same digest, and the configuration of a locked guest cannot change.
    """
    path = ("nodes", place.node, "storage", place.there, "content")
    rows = target.direct().get(*path, content=CONTENT, vmid=actual.vmid) or ()
    volume = newest_of(rows, record_id, "" if actual.lock else str(actual.digest))
    if not volume:
        return ""
    tasks_path = ("nodes", actual.node, "tasks")
    listed = source.direct().get(*tasks_path, vmid=actual.vmid, source="all", limit=_TASKS) or ()
    tasks = [task_of(row, actual.node) for row in listed]
    for task in tasks:
        if task.type != BACKUP_TASK or task.status not in (OK, WARNING):
            continue
        log = read_task_log(source, task.upid)
        if any(volume.partition("backup/")[2] in line for line in log):
            is_last = any(_STOPPED in line for line in log) and not has_changed(task, tasks)
            return volume if is_last else ""
    return ""


def newest_of(rows: Iterable[Mapping[str, Any]], record_id: str, digest: str) -> str:
    """Return the newest of these archives with the ID of a record, or an empty text if there is none,
    or if it has another configuration than this digest (pure).
    """
    found = notes = ""
    latest = 0
    for row in rows:
        is_damaged = (row.get("verification") or {}).get("state") == _DAMAGED
        time = int(row.get("ctime") or 0)
        if record_id in str(row.get("notes") or "") and not is_damaged and time > latest:
            found, notes, latest = str(row["volid"]), str(row["notes"]), time
    return found if digest in notes else ""


def has_changed(backup: TaskRow, tasks: Iterable[TaskRow]) -> bool:
    """Return whether a guest can have another state than in this backup: it had any other task
    since. A start that its lock refused has no effect (pure).
    """
    for task in tasks:
        is_start = task.type.endswith(("start", "resume"))
        last = task.started if is_start or not task.ended else task.ended - 1
        if last < backup.started or task.type in (BACKUP_TASK, *CONSOLE_TASKS):
            continue
        is_refused = task.status == FAILED and _LOCKED in str(task.exitstatus)
        if not is_refused and not task.type.endswith(("stop", "shutdown")):
            return True
    return False
