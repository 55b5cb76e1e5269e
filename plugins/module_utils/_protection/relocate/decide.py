# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The right side of a move between clusters and its next step, from the state of both sides (pure).

It is the table of docs/decisions/0036-a-guest-moves-between-clusters.md. `decide` is only called if
both sides were read in the same run, and no migration of the guest runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._guests.kinds.move import ARCHIVE, COMPLETE, ONLINE, PROVEN, RETURNED, VOID, MoveRecord

SOURCE, TARGET, NEITHER, UNKNOWN = "source", "target", "none", "unknown"

# The next steps. Only root can do the steps of BY_ROOT.
MOVE, REVOKE, DROP_TARGET, START_SOURCE = "move", "void", "drop", "start source"
UNLOCK_SOURCE, UNLOCK_TARGET = "unlock source", "unlock target"
START_TARGET, RESUME_TARGET, PROVE = "start target", "resume", "prove"
HOLD, DROP_SOURCE, FINISH, DONE, REFUSE = "hold", "drop source", "finish", "done", "refuse"
# The steps of the way back.
SHUT_DOWN, RETURN, CLEAR = "shut down", "return", "clear"
# The steps that take a side out of HA, before any other step.
RELEASE_SOURCE, RELEASE_TARGET = "release source", "release target"
# The steps of a move by an archive.
LOCK_SOURCE, RESTORE = "lock source", "restore"
BY_ROOT = (UNLOCK_SOURCE, UNLOCK_TARGET, LOCK_SOURCE)

_MIGRATE, _BACKUP = "migrate", "backup"
_STOPPED = ("stopped", "postmigrate")
_NOT_RUNNING = (*_STOPPED, "paused", "prelaunch", "inmigrate")


@dataclass(frozen=True)
class SideState:
    """The guest on one side. `power` is running, stopped or another state of the machine; empty if
    there is no guest. `bare` is whether its configuration is empty, `managed` whether it is an HA
    resource.
    """

    power: str = ""
    lock: str = ""
    record: MoveRecord | None = None
    bare: bool = False
    managed: bool = False

    @property
    def exists(self) -> bool:
        return bool(self.power)

    @property
    def executes(self) -> bool:
        """Whether its memory changes, or can continue: a paused source is not copied yet."""
        return self.exists and self.power not in _STOPPED

    @property
    def runs(self) -> bool:
        """Whether it runs: a paused target waits for the memory, or for the handover."""
        return self.exists and self.power not in _NOT_RUNNING

    @property
    def state(self) -> str:
        """The state in its record, or an empty text."""
        return "" if self.record is None else self.record.state


@dataclass(frozen=True)
class Verdict:
    """The right side, the next step, and the reason of a refusal."""

    side: str
    step: str
    why: str = ""


def decide(
    source: SideState,
    target: SideState,
    *,
    handed_over: bool | None = None,
    archived: bool | None = None,
) -> Verdict:
    """Return the right side and the next step.

    `handed_over` is whether the log of the source's migration shows that the memory has arrived;
    None if there is no log. `archived` is whether an archive has the last state of the source; None
    unless the guest moves by an archive.
    """
    if not source.exists:
        return _without_source(target)
    foreign = _find_foreign(source, target)
    if foreign:
        return Verdict(NEITHER, REFUSE, foreign)
    is_archived = archived is not None and is_by_archive(source) and is_on_its_way(target)
    if source.lock == _BACKUP:
        verdict = Verdict(SOURCE, UNLOCK_SOURCE)
    elif is_archived and not source.executes:
        verdict = _by_archive(source, target, bool(archived))
    elif source.executes:
        verdict = _source_executes(source, target)
    elif not source.lock:
        verdict = _source_is_free(source, target)
    else:
        verdict = _source_is_locked(source, target, handed_over)
    return _release_first(source, target, verdict)


def is_by_archive(source: SideState) -> bool:
    """Return whether a source moves by an archive, and its record is not revoked."""
    return source.record is not None and source.record.mode == ARCHIVE and not source.state


def is_on_its_way(target: SideState) -> bool:
    """Return whether the guest has not arrived at the target."""
    return not target.exists or target.bare


def _by_archive(source: SideState, target: SideState, archived: bool) -> Verdict:
    """Return the verdict for a source that is stopped, and a target that is absent or incomplete.
    The target is only restored while root's lock keeps the source from starting.
    """
    if target.exists and not source.lock:
        return _source_is_free(source, target)
    if not source.lock:
        return Verdict(SOURCE, LOCK_SOURCE if archived else MOVE)
    if target.exists:
        return Verdict(SOURCE, UNLOCK_TARGET if target.lock else DROP_TARGET)
    return Verdict(SOURCE, RESTORE if archived else UNLOCK_SOURCE)


def _release_first(source: SideState, target: SideState, verdict: Verdict) -> Verdict:
    """Return the step that takes the wrong side out of HA, if it is in HA: the HA manager removes
    the lock of a guest whose node was fenced, and starts it (pve-ha-manager: HA/Manager.pm,
    fence_recovery_cleanup).
    """
    if verdict.step == REFUSE:
        return verdict
    if verdict.side == TARGET and source.managed:
        return Verdict(TARGET, RELEASE_SOURCE)
    if verdict.side == SOURCE and target.managed:
        return Verdict(SOURCE, RELEASE_TARGET)
    return verdict


def _without_source(target: SideState) -> Verdict:
    if target.record is not None and target.state != COMPLETE:
        return Verdict(TARGET, FINISH)
    if target.exists:
        return Verdict(TARGET, DONE)
    return Verdict(UNKNOWN, REFUSE, "it is at neither site: restore its newest archive")


def _find_foreign(source: SideState, target: SideState) -> str:
    """Return why both guests are not the two sides of one move, or an empty text."""
    is_backup = source.lock == _BACKUP and is_by_archive(source) and is_on_its_way(target)
    if source.lock not in ("", _MIGRATE) and not is_backup:
        return f"it has the lock {source.lock} of another task"
    if source.lock and source.record is None:
        return "it is locked by a migration that this module did not start"
    if is_on_its_way(target):
        return ""
    ids = [one.record.id for one in (source, target) if one.record is not None]
    if len(ids) < 2 or len(set(ids)) > 1:
        return "another guest has its VMID at the other site"
    if target.lock not in ("", _MIGRATE):
        return f"the target has the lock {target.lock} of another task"
    return ""


def _source_executes(source: SideState, target: SideState) -> Verdict:
    if target.runs:
        why = "it runs at both sites, because a lock was removed by hand: shut one of them down"
        return Verdict(NEITHER, REFUSE, why)
    if source.lock:
        return Verdict(SOURCE, UNLOCK_SOURCE)
    if not target.exists:
        return Verdict(SOURCE, MOVE)
    return _remove_target(source, target)


def _remove_target(source: SideState, target: SideState) -> Verdict:
    """Return the next step to remove an incomplete target, which does not run. The record of the
    source is revoked first: it shows that root has unlocked the target for its removal.
    """
    if _is_revoked(source, target):
        return Verdict(SOURCE, UNLOCK_TARGET if target.lock else DROP_TARGET)
    if target.lock or target.bare:
        return Verdict(SOURCE, REVOKE)
    why = "the lock of the target was removed by hand: remove the guest that is wrong"
    return Verdict(SOURCE, REFUSE, why)


def _source_is_free(source: SideState, target: SideState) -> Verdict:
    """Return the verdict for a source that is stopped and can be started by anybody."""
    record = source.record
    if target.exists and target.state == PROVEN:
        return Verdict(TARGET, DROP_SOURCE)
    if target.runs:
        why = "the target runs, and nothing keeps the source from starting: remove the source"
        return Verdict(TARGET, REFUSE, why)
    if target.exists and not target.bare and not target.lock and not _is_revoked(source, target):
        return Verdict(SOURCE, REFUSE, "both locks were removed by hand: remove the wrong guest")
    if record is not None and record.ran:
        return Verdict(SOURCE, START_SOURCE)
    return Verdict(SOURCE, MOVE) if not target.exists else _remove_target(source, target)


def _is_revoked(source: SideState, target: SideState) -> bool:
    return source.state == VOID or target.state == RETURNED


def _source_is_locked(source: SideState, target: SideState, handed_over: bool | None) -> Verdict:
    """Return the verdict for a source that is stopped and cannot be started by anybody but root."""
    if is_on_its_way(target):
        return Verdict(SOURCE, UNLOCK_SOURCE)
    if target.state == RETURNED:
        if target.runs:
            return Verdict(TARGET, REFUSE, "the target was started again after the way back")
        return Verdict(SOURCE, UNLOCK_SOURCE)
    if not target.lock:
        return _target_is_free(target)
    # offline, the copy is complete when the configuration arrives
    is_online = target.record is not None and target.record.mode == ONLINE
    is_complete = target.power != "stopped" or not is_online
    if is_complete or handed_over:
        return Verdict(TARGET, UNLOCK_TARGET)
    if handed_over is None:
        why = "the log of the migration is missing: compare the disks of both sides"
        return Verdict(UNKNOWN, REFUSE, why)
    return Verdict(SOURCE, UNLOCK_SOURCE)


def _target_is_free(target: SideState) -> Verdict:
    if target.state == PROVEN:
        return Verdict(TARGET, HOLD)
    if target.power == "paused":
        return Verdict(TARGET, RESUME_TARGET)
    if not target.runs and target.record is not None and target.record.ran:
        return Verdict(TARGET, START_TARGET)
    return Verdict(TARGET, PROVE)


def decide_return(source: SideState, target: SideState, verdict: Verdict) -> Verdict:
    """Return the next step of the way back, from the verdict about both sides.

    An incomplete move is completed first if the target is right.
    """
    if verdict.step in (REFUSE, RELEASE_SOURCE, RELEASE_TARGET) or target.state == RETURNED:
        return verdict
    if not source.exists:
        return Verdict(TARGET, REFUSE, "the source was removed: move the guest back instead")
    if verdict.side == SOURCE:
        is_back = verdict.step == MOVE
        return Verdict(SOURCE, CLEAR if is_back and source.record else verdict.step)
    if target.lock:
        return verdict
    step = SHUT_DOWN if target.executes else RETURN
    return _release_first(source, target, Verdict(SOURCE, step))
