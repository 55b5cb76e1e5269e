# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The backup of one guest: its plan (pure), its task, and the removal of old archives."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

from ...._foundation.api.tasks import find_task
from ...._foundation.api.upid import is_upid
from ...._foundation.cluster.state import ClusterState, VmRow, refreshed
from ...._foundation.cluster.tenant import parse_tags
from ...._foundation.core.errors import (
    ConfigurationError,
    Conflict,
    FleetError,
    NotFound,
    UnknownVm,
)
from ...._foundation.core.formatting import counted
from ...._guests.guest.registry import list_of
from ...snapshot.read import running_task
from ..archive import Archive, archive_of, by_guest
from ..read import CONTENT
from ..select import label_of
from .desired import DesiredBackup
from .prune import NEW, REMOVE, MarkedArchive, mark_archives, offset_of

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

FOREIGN = "foreign"
_CAUSE = re.compile(r"ERROR: Backup of VM \d+ failed - (.+)")
# Tolerated clock difference between controller and node in the search for a task, in seconds.
_CLOCKS = 10


@dataclass(frozen=True)
class GuestBackupPlan:
    """The plan for a guest. `is_backed_up` is false if its backup is skipped. `known` are the
    volumes of its VMID on the storage. `marks` are the marks of its archives there, including the
    new one. `left_out` are the disks that the backup leaves out, None if they are unknown.
    """

    row: VmRow
    is_backed_up: bool
    known: frozenset[str]
    marks: tuple[MarkedArchive, ...] = ()
    left_out: list[str] | None = None

    @property
    def removals(self) -> list[Archive]:
        return [one.archive for one in self.marks if one.mark == REMOVE]

    def summary(self, storage: str) -> str:
        """Return the backup in words."""
        without = f", without {', '.join(self.left_out)}" if self.left_out else ""
        return f"Back up {label_of(self.row)} to storage {storage}{without}"

    def summaries(self, storage: str) -> list[str]:
        """Return the steps in words."""
        steps: list[str] = []
        if self.is_backed_up:
            steps.append(self.summary(storage))
        return [*steps, *(f"Remove archive {one.volume}" for one in self.removals)]


@dataclass
class BackupOutcome:
    """The result for one guest."""

    label: str
    row: VmRow | None = None
    plan: GuestBackupPlan | None = None
    archive: Archive | None = None
    duration: int | None = None
    done: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    error: FleetError | None = None


@dataclass(frozen=True)
class BackupContext:
    """The values that are the same for all guests of a task.

    `maximum` is the number of archives of a guest that the storage accepts, 0 for no limit.
    """

    client: Client
    desired: DesiredBackup
    cluster: ClusterState
    removals: Mapping[int, int]
    offsets: Mapping[str, float]  # from UTC to the local time of each node, in seconds
    maximum: int = 0


def plan_guest(
    context: BackupContext, row: VmRow, archives: Collection[Archive]
) -> GuestBackupPlan:
    """Return the plan for a guest from the archives on the storage (pure)."""
    desired = context.desired
    own = by_guest(archives, [row], context.removals)[row.vmid]
    newest = max((one.time for one in own), default=0)
    is_recent = desired.max_age is not None and desired.now - newest <= desired.max_age
    known = list(own)
    if not is_recent:
        moment = max(int(desired.now), newest + 1)
        is_protected = bool(desired.data.get("protected"))
        known.append(
            Archive(
                volume=NEW,
                storage=desired.storage,
                storage_kind="",
                node=row.node,
                place="",
                type=row.type,
                vmid=row.vmid,
                time=moment,
                size=0,
                protected=is_protected,
            )
        )
    volumes = frozenset(one.volume for one in archives if one.vmid == row.vmid)
    return GuestBackupPlan(row, not is_recent, volumes, tuple(_marks(context, row, known)))


def find_full(
    context: BackupContext, plan: GuestBackupPlan, archives: Collection[Archive]
) -> FleetError | None:
    """Return an error if PVE would refuse another archive of the guest, or None (pure)."""
    row, storage = plan.row, context.desired.storage
    own = [one for one in archives if one.vmid == row.vmid and one.type == row.type]
    count = sum(not one.protected for one in own)
    if not plan.is_backed_up or not 0 < context.maximum <= count:
        return None
    return ConfigurationError(
        f"Could not back up {label_of(row)}: storage {storage} keeps "
        f"{counted(context.maximum, 'archive')} of a guest, and has {count}; only a login with "
        "Datastore.Allocate on it may add one and remove none",
        "Remove an archive first, or use another storage",
        "storage full of archives",
    )


def _marks(context: BackupContext, row: VmRow, archives: Sequence[Archive]) -> list[MarkedArchive]:
    """Return the marks of the archives, or no marks without a retention.

    If an archive to remove may not belong to the task's tenant, it is kept, and the other archives
    are marked again without it.
    """
    keep = context.desired.keep
    if keep is None:
        return []
    offset = context.offsets.get(row.node)
    if offset is None:
        offset = offset_of(archives)
    rest, foreign = list(archives), list[MarkedArchive]()
    while True:
        marks = mark_archives(rest, keep, offset)
        refused: list[Archive] = []
        for one in marks:
            if one.mark == REMOVE:
                why = _foreign_reason(context, row, one.archive)
                if why:
                    foreign.append(MarkedArchive(one.archive, FOREIGN, why))
                    refused.append(one.archive)
        if not refused:
            return [*marks, *foreign]
        rest = [one for one in rest if one not in refused]


def _foreign_reason(context: BackupContext, row: VmRow, one: Archive) -> str:
    """Return the reason why an archive may not belong to the task's tenant, or an empty text.

    One request if the task has a tenant: VMIDs are reused, and the configuration in the archive
    contains the tags of its guest.
    """
    owner = context.desired.owner
    if owner.tag is None:
        return ""
    path = ("nodes", row.node, "vzdump", "extractconfig")
    try:
        text = str(context.client.get(*path, volume=one.volume) or "")
    except FleetError as error:
        return f"its configuration could not be read: {error.cause}"
    tags = parse_tags(_value_of(text, "tags"))
    guest = replace(row, tags=tags)
    if owner.owns(guest):
        return ""
    return f"its configuration does not have the tag {owner.tag}"


def _value_of(config: str, name: str) -> str:
    """Return the value of an option of an archived configuration, without its sections (pure)."""
    for line in config.splitlines():
        if line.startswith("["):
            break
        key, _colon, value = line.partition(":")
        if key == name:
            return value.strip()
    return ""


def execute(context: BackupContext, plan: GuestBackupPlan) -> BackupOutcome:
    """Back a guest up and remove old archives; the outcome has the error, if there is one."""
    outcome = BackupOutcome(label_of(plan.row), plan.row, plan)
    try:
        row = _current(context, plan.row)
        if plan.is_backed_up:
            row = _take_where_it_is(context, row, plan, outcome)
        _prune(context, row, plan, outcome)
    except FleetError as error:
        outcome.error = error.on(details={**error.details, "done": list(outcome.done)})
    return outcome


def _take_where_it_is(
    context: BackupContext, row: VmRow, plan: GuestBackupPlan, outcome: BackupOutcome
) -> VmRow:
    """Run the backup on the guest's node, following one move of the guest; return its new row.

    On any other node, PVE answers without a task. Raises Conflict if the guest moves again.
    """
    for _try in range(2):
        if _take(context, row, plan, outcome):
            return row
        row = _current(context, row, fresh=True)
    _raise_moving(row)


def _raise_moving(row: VmRow) -> NoReturn:
    """Raise Conflict for a guest that keeps moving (pure)."""
    raise Conflict(
        f"Could not back up {label_of(row)}: it moves from node to node", "Run this again", "moved"
    )


def _current(context: BackupContext, row: VmRow, *, fresh: bool = False) -> VmRow:
    """Return the present guest. Raises UnknownVm, and Conflict if it belongs to another tenant.

    The cluster is read again if `fresh` is set or the last reading is too old for a write.
    """
    old = replace(context.cluster, read_at=float("-inf")) if fresh else context.cluster
    cluster = refreshed(context.client, old)
    now = _require_listed(cluster, row)
    owner = context.desired.owner
    owner.require_owned(label_of(row), now.tags, unnamed=f"guest {row.vmid}")
    return replace(row, node=now.node, tags=now.tags)


def _require_listed(cluster: ClusterState, row: VmRow) -> VmRow:
    """Return the present row of a guest. Raises UnknownVm if it no longer exists (pure)."""
    now = cluster.vms.get(row.vmid)
    if now is not None and now.type == row.type:
        return now
    raise UnknownVm(
        f"{label_of(row)} was not backed up: it no longer exists", "Run this again", "unknown VM"
    )


def _take(
    context: BackupContext, row: VmRow, plan: GuestBackupPlan, outcome: BackupOutcome
) -> bool:
    """Run the backup and find its archive; return False if the guest is on another node."""
    client, desired = context.client, context.desired
    attempted = f"Could not back up {label_of(row)}"
    before = client.clock.time()
    began = client.clock.monotonic()

    def confirm() -> str | None:
        """Return the task of this backup if it still runs or has made an archive."""
        since = before - _CLOCKS
        upid = find_task(client, row.node, type="vzdump", vmid=row.vmid, since=since)
        if upid is None or find_new() or upid == running_task(client, row.node, row.vmid, "vzdump"):
            return upid
        return None

    def find_new() -> list[Archive]:
        return [one for one in _listed(context, row) if one.volume not in plan.known]

    if not _is_on_its_node(context, row):
        return False
    path = ("nodes", row.node, "vzdump")
    data = {"vmid": row.vmid, **desired.data}
    upid = client.write("POST", *path, data=data, attempted=attempted, confirm=confirm)
    if not is_upid(upid):
        return False
    try:
        result = client.wait(upid, timeout=desired.timeout, attempted=attempted)
    except FleetError as error:
        raise error.on(answer=cause_in(error)) from None
    outcome.duration = int(client.clock.monotonic() - began)
    outcome.warnings += result.warnings
    outcome.done.append(plan.summary(desired.storage))
    outcome.archive = _require_archive(find_new(), row, desired.storage, upid)
    return True


def cause_in(error: FleetError) -> str:
    """Return the cause of the error of a backup: PVE's status is only C(job errors), the log has the
    cause (pure).
    """
    causes = [found.group(1) for found in map(_CAUSE.search, error.log) if found]
    return causes[-1] if causes else error.answer


def _is_on_its_node(context: BackupContext, row: VmRow) -> bool:
    """Read a guest right before its backup, and return whether it is on its node. Raises Conflict
    if its VMID was reused, or if it belongs to another tenant.
    """
    try:
        config = context.client.direct().get(*row.path, "config")
    except NotFound:
        return False
    label, tags = label_of(row), parse_tags(config.get("tags"))
    context.desired.owner.require_owned(label, tags, unnamed=f"guest {row.vmid}")
    _require_name(row, config)
    return True


def _require_name(row: VmRow, config: Mapping[str, Any]) -> None:
    """Raise Conflict if the guest has another name than the chosen one (pure)."""
    label = label_of(row)
    name = list_of(row.type).kind.name_in(config)
    if row.own_name not in ("", name):
        raise Conflict(
            f"{label} was not backed up: guest {row.vmid} has another name now",
            "Run this again",
            "another guest",
        )


def _require_archive(found: Sequence[Archive], row: VmRow, storage: str, upid: str) -> Archive:
    """Return the newest of the new archives. Raises Conflict if there is none (pure)."""
    if found:
        return max(found, key=lambda one: one.time)
    raise Conflict(
        f"The archive of {label_of(row)} was not found: the task ended well, but storage "
        f"{storage} lists no new archive",
        "Look at the log of the task, and that the token has VM.Backup on the guest",
        "no archive",
        upid=upid,
    )


def read_own(context: BackupContext, row: VmRow) -> list[Archive]:
    """Return the present archives of a guest on the storage; one request."""
    return by_guest(_listed(context, row), [row], context.removals)[row.vmid]


def _listed(context: BackupContext, row: VmRow) -> list[Archive]:
    """Return the present archives with the guest's VMID on the storage; one request."""
    storage = context.desired.storage
    listed = context.cluster.storage_on(storage, row.node)
    if listed is None:
        return []
    answer = context.client.get(
        *("nodes", row.node, "storage", storage, "content"),
        content=CONTENT,
        vmid=row.vmid,
        attempted=f"Could not list the archives of {label_of(row)}",
    )
    return [archive_of(listed, volume) for volume in answer or ()]


def _prune(
    context: BackupContext, row: VmRow, plan: GuestBackupPlan, outcome: BackupOutcome
) -> None:
    """Read the archives again, and remove each archive that the retention does not keep."""
    if context.desired.keep is None:
        return
    archives = read_own(context, row)
    if outcome.archive is not None and outcome.archive not in archives:
        archives.append(outcome.archive)
    marks = _marks(context, row, archives)
    outcome.plan = replace(plan, marks=tuple(marks))
    for mark in marks:
        if mark.mark == REMOVE:
            _remove(context, row, mark.archive)
            outcome.removed.append(mark.archive.volume)
            outcome.done.append(f"Remove archive {mark.archive.volume}")


def _remove(context: BackupContext, row: VmRow, one: Archive) -> None:
    """Remove an archive. PVE itself refuses to remove a protected one."""
    path = ("nodes", row.node, "storage", one.storage, "content", one.volume)

    def confirm() -> bool | None:
        return None if one.volume in {own.volume for own in read_own(context, row)} else True

    context.client.task(
        "DELETE",
        *path,
        attempted=f"Could not remove archive {one.volume}",
        timeout=context.desired.timeout,
        confirm=confirm,
    )
