# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan that overwrites a guest with an archive, and its refusals (pure)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...._foundation.cluster.find.restoring import is_bare
from ...._foundation.cluster.placement import PlacementNeeds, require_room, require_storage
from ...._foundation.cluster.rules import PlacementRules
from ...._foundation.cluster.state import ClusterState
from ...._foundation.core.errors import Conflict, ValidationFailed
from ...._foundation.core.quantities import read_size
from ...._foundation.resource.plan import Plan, Step
from ...._guests.guest.container.plan.decide import require_unprivileged
from ...._guests.guest.flow.flow import GuestPlan
from ...._guests.guest.live.creation import has_creation_marker
from ...._guests.guest.plan import power
from ...._guests.guest.plan.archive import dropped_in, remark_on_unsaved, warn_of_unsaved
from ...._guests.guest.plan.capacity import new_bytes
from ...._guests.guest.plan.planner import CreationOptions, GuestPlanner
from ...._guests.guest.plan.steps import with_digest
from ...._guests.kinds.kind import Kind
from ...._guests.kinds.marker import join_notes, split_notes
from ...._guests.kinds.model import Actual
from ...._guests.kinds.words import CONTAINER, VM
from ..choose import SAFETY_BACKUP_NOTES, ChosenArchive
from ..desired import KEEP_ARCHIVE, KEEP_COPY, DesiredRestore

# States in which the HA manager does not start a service by itself.
_AT_REST = frozenset(("stopped", "disabled", "ignored", "error"))
NOTE, KEEP, RESTORE = "note", "keep", "restore"
_NOTES = "{{guestname}}: " + SAFETY_BACKUP_NOTES


@dataclass(frozen=True)
class Overwrite:
    """A guest that an archive overwrites; `desired` is the desired VM or container.

    PVE restores all disks to `storage`, or each disk to its own storage if it is None. `copy` is
    the plan of the copy that keeps its present state. `ran` is the last start of a guest that runs,
    or ran before an interrupted restore, None if it stays off.
    """

    restore: DesiredRestore
    chosen: ChosenArchive
    desired: Any
    actual: Actual
    run: str
    storage: str | None
    copy: GuestPlan[Any] | None = None
    ran: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing can be lost: a failed restore left it empty, or it was not finished."""
        return is_bare(self.actual.live) or has_creation_marker(self.actual)

    @property
    def archives(self) -> bool:
        """Whether its present state is kept as an archive."""
        return self.restore.keep == KEEP_ARCHIVE and not self.is_empty

    @property
    def copies(self) -> bool:
        """Whether its present state is kept as a copy."""
        return self.restore.keep == KEEP_COPY and not self.is_empty

    @property
    def keeps(self) -> bool:
        """Whether its present state is kept."""
        return self.archives or self.copies

    @property
    def keep_storage(self) -> str:
        """The storage of the archive that keeps the present state."""
        return self.restore.keep_storage or self.chosen.archive.storage


def plan_overwrite(planner: GuestPlanner[Any, Any], task: Overwrite) -> Plan:
    """Return the plan: stop the guest, keep its state, restore it, and apply the options.

    The steps after the restore are a prediction: they are planned again when it has ended.
    """
    actual, guest = task.actual, task.desired.guest
    steps: list[Step] = []
    if actual.running:
        steps += _note_step(task)
        steps.append(power.stop(actual, guest))
    if task.copy is not None:
        steps.append(_copy_step(task, task.copy))
    elif task.archives:
        steps.append(_keep_step(task))
    restore = restore_step(task)
    steps.append(restore)
    source = archived_guest(task)
    vmid, node = actual.vmid, actual.node
    restored = planner.copy_of(source, restored=True, vmid=vmid, node=node, data=restore.data)
    restored = replace(restored, pool=actual.pool)
    rest = planner.plan_update(task.desired, restored, creating=CreationOptions())
    before = task.actual.kind.formatted(actual.target)
    change = planner.changes(task.desired, restored.target)
    after = task.actual.kind.formatted(planner.applied(change, restored.target))
    before["status"], after["status"] = actual.status, power.status_after(guest, restored)
    changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
    return Plan(
        (*steps, *rest.steps),
        {key: value for key, value in before.items() if key in changed},
        {key: value for key, value in after.items() if key in changed},
        pending=rest.pending,
        warnings=(*warnings_of(task), *rest.warnings),
    )


def archived_guest(task: Overwrite) -> Actual:
    """Return the archived guest with the VMID and node of the present one."""
    config, actual = task.chosen.config, task.actual
    return Actual(actual.kind, actual.vmid, actual.node, "stopped", live=config, target=config)


def _note_step(task: Overwrite) -> list[Step]:
    """Return the step that notes in the guest that it ran: the run that completes an interrupted
    restore starts it.
    """
    if task.ran is None:
        return []
    actual = task.actual
    notes = join_notes(actual.notes, replace(actual.marker, ran=task.ran))
    data = with_digest({"description": notes}, actual)
    summary = f"Note that {actual.label} runs"
    return [Step(NOTE, summary, "PUT", (*actual.path, "config"), data, is_task=False)]


def _keep_step(task: Overwrite) -> Step:
    """Return the step that backs the guest up; no retention can remove the protected archive."""
    actual = task.actual
    data = {
        "vmid": actual.vmid,
        "storage": task.keep_storage,
        "mode": "stop",
        "compress": "zstd",
        "remove": 0,
        "protected": 1,
        "notes-template": _NOTES,
    }
    summary = f"Keep the state of {actual.label} as an archive on storage {task.keep_storage}"
    return Step(KEEP, summary, "POST", ("nodes", actual.node, "vzdump"), data)


def _copy_step(task: Overwrite, copy: GuestPlan[Any]) -> Step:
    """Return the step that clones the guest; the plan of the copy executes it."""
    actual = task.actual
    name = copy.context.desired.guest.name
    vmid, node = copy.place
    label = f"{actual.kind.noun} '{name}' ({vmid}) on node {node}"
    summary = f"Keep the state of {actual.label} as its copy {label}"
    return Step(KEEP, summary, "POST", (*actual.path, "clone"), {"full": 1}, is_task=False)


def restore_step(task: Overwrite) -> Step:
    """Return the step that restores the guest. PVE removes its disks, and keeps the VMID, MACs and
    UUID of the archive (qemu-server: API2/Qemu.pm, create_vm; pve-container: API2/LXC.pm,
    create_vm).
    """
    actual, volume = task.actual, task.chosen.archive.volume
    notes, marker = split_notes(task.chosen.config.get("description"))
    guest = task.desired.guest
    kept = replace(marker.completed, move="")
    marker = replace(kept, run=task.run, tenant=guest.tenant_tag, ran=task.ran)
    data: dict[str, Any] = {
        "vmid": actual.vmid,
        "force": 1,
        "description": join_notes(notes, marker),
    }
    if actual.kind is CONTAINER:
        data |= {"ostemplate": volume, "restore": 1}
    else:
        data["archive"] = volume
    if task.restore.live:
        data["live-restore"] = 1
    if task.storage:
        data["storage"] = task.storage
    name = task.chosen.name or str(actual.vmid)
    label = f"{actual.kind.noun} '{name}' ({actual.vmid}) on node {actual.node}"
    unsaved = remark_on_unsaved(actual.kind, task.chosen.config)
    summary = f"Restore {label} from {volume}{unsaved}"
    path = actual.kind.path(actual.node)
    return Step(RESTORE, summary, "POST", path, data, reread=True)


# -- refusals


def require_possible(
    task: Overwrite, snapshots: Collection[str], status: Mapping[str, Any]
) -> None:
    """Raise FleetError for a guest that must not be overwritten.

    `snapshots` are the names of its snapshots, `status` is its present status as PVE returns it.
    """
    actual = task.actual
    _require_confirmed(task)
    _require_unlocked(actual)
    _require_at_rest(actual, status)
    if actual.template:
        raise _refused(actual, "it is a template", "Restore a new guest")
    if actual.target.get("protection") == "1":
        raise _refused(actual, "it is protected", "Lift its protection first")
    _require_same_guest(task)
    _require_reachable(task)
    if actual.kind is CONTAINER:
        attempted = f"{actual.label} was not overwritten"
        require_unprivileged(attempted, task.desired, task.chosen.config)
    if actual.running and not task.restore.stop:
        raise _refused(actual, "it runs", "Stop it first, or leave out stop=false")
    if not task.keeps:
        return
    if snapshots:
        names = ", ".join(sorted(snapshots))
        raise _refused(
            actual,
            f"its snapshots would be lost, and no archive or copy has them: {names}",
            "Remove them first, set keep=none, or restore a new guest",
        )
    lost = disks_not_kept(actual, task.chosen.config, copies=task.copies)
    if lost:
        remedy = "Attach it or remove it" if task.copies else "Set keep=copy, include it in backups"
        raise _refused(
            actual,
            f"{', '.join(lost)} would be lost, because keep={task.restore.keep} leaves it out",
            f"{remedy}, or restore a new guest",
        )


def _require_unlocked(actual: Actual) -> None:
    """Raise Conflict for an empty VM that still has the lock of a restore, because the node went
    down during the restore. PVE neither restores nor removes a locked VM (pve-guest-common:
    AbstractConfig.pm, create_and_lock_config; qemu-server: QemuServer.pm, destroy_vm).
    """
    if not is_bare(actual.live) or not actual.lock:
        return
    raise _refused(
        actual,
        f"an interrupted restore has left it with the lock {actual.lock}",
        f"Run '{actual.kind.tool} unlock {actual.vmid}' on node {actual.node}, then this again",
    )


def _require_at_rest(actual: Actual, status: Mapping[str, Any]) -> None:
    """Raise Conflict for a stopped guest that the HA manager may start at any moment. PVE itself
    does not check HA before a restore (qemu-server: API2/Qemu.pm, create_vm).
    """
    managed = status.get("ha") or {}
    state = str(managed.get("state") or "")
    is_managed = str(managed.get("managed") or "0") != "0"
    if actual.running or not is_managed or state in _AT_REST:
        return
    raise _refused(
        actual,
        f"the HA manager may start it during the restore: it is {state or 'unknown'} there",
        "Set request_state=stopped with module ha_resource first",
    )


def _require_confirmed(task: Overwrite) -> None:
    actual = task.actual
    name = task.chosen.name if is_bare(actual.live) else actual.name
    if task.restore.confirm == name:
        return
    raise ValidationFailed(
        f"{actual.kind.noun} {actual.vmid} on node {actual.node} was not overwritten: confirm is "
        f"'{task.restore.confirm}', and its name is '{name}'",
        "Correct confirm if this guest is meant",
        "confirm",
    )


def _require_same_guest(task: Overwrite) -> None:
    """Raise Conflict for the archive of an earlier VM with this VMID, which had another UUID."""
    kind, actual = task.actual.kind, task.actual
    archived = kind.identity_in(task.chosen.config, name="", volumes={})
    if is_bare(actual.live) or not archived.uuid or not actual.identity.uuid:
        return
    if archived.uuid == actual.identity.uuid:
        return
    raise _refused(
        actual,
        "the archive is of an earlier VM with this VMID: its UUID is another one",
        "Restore a new guest",
    )


def _require_reachable(task: Overwrite) -> None:
    """Raise Conflict for an archive on a storage of another node."""
    place, actual = task.chosen.archive.place, task.actual
    if place and place != actual.node:
        raise _refused(
            actual,
            f"the archive is on node {place}, and it is on node {actual.node}",
            f"Migrate it to node {place}, or restore a new guest",
        )


def disks_not_kept(
    actual: Actual, archived: Mapping[str, str], *, copies: bool = False
) -> list[str]:
    """Return the disks that a restore removes, and that the backup or copy before it leaves out.

    A copy leaves out unused disks only. A restore of a container removes all its volumes
    (pve-container: API2/LXC.pm, create_vm).
    """
    kind = actual.kind
    if kind is VM:
        replaced = restored_slots(kind, archived)
        return (
            [] if copies else [slot for slot in kind.unsaved_in(actual.target) if slot in replaced]
        )
    unused = [slot for slot in kind.volumes_in(actual.target) if slot.startswith("unused")]
    return sorted(unused if copies else [*unused, *kind.unsaved_in(actual.target)])


def restored_slots(kind: Kind, archived: Mapping[str, str]) -> set[str]:
    """Return the slots of the disks that a restore creates. A restore of a VM removes the present
    disks in these slots only; its other disks remain as unused disks (qemu-server: QemuServer.pm,
    restore_cleanup_oldconf and update_disk_config).
    """
    return kind.disks_in(archived).keys() - set(dropped_in(kind, archived))


def warnings_of(task: Overwrite) -> tuple[str, ...]:
    """Return the warnings about disks without data in the archive, and about present disks that
    remain as unused disks.
    """
    actual, archived = task.actual, task.chosen.config
    warnings = warn_of_unsaved(actual.kind, actual.label, archived)
    if actual.kind is CONTAINER:
        return warnings
    kept = sorted(
        actual.kind.disks_in(actual.target).keys() - restored_slots(actual.kind, archived)
    )
    if kept:
        slots = ", ".join(kept)
        warnings += (f"{slots} of {actual.label} is not in the archive, and remains unused",)
    return warnings


def require_space(
    planner: GuestPlanner[Any, Any], task: Overwrite, cluster: ClusterState
) -> Mapping[str, str]:
    """Return the restored configuration.

    Raises FleetError for a storage that the node lacks or that has no room: PVE would fail only
    after it has removed the disks. It removes the volumes of a container only after it has created
    the new ones (pve-container: API2/LXC.pm, create_vm).
    """
    actual, source = task.actual, archived_guest(task)
    vmid, node, data = actual.vmid, actual.node, restore_step(task).data
    restored = planner.copy_of(source, restored=True, vmid=vmid, node=node, data=data)
    if task.archives:
        require_storage(cluster, task.keep_storage, actual.node, "backup")
    for storage in sorted(actual.kind.storages_in(restored.target)):
        if storage:
            require_storage(cluster, storage, actual.node, actual.kind.content)
    room = new_bytes(actual.kind, {}, restored.target, copied=True)
    freed = {} if actual.kind is CONTAINER else actual.kind.disks_in(actual.target)
    for slot, drive in freed.items():
        storage = drive.get("file", "").partition(":")[0]
        if slot in restored.target and storage in room:
            room[storage] -= read_size(drive.get("size")) or 0
    needed = {storage: size for storage, size in room.items() if size > 0}
    needs = PlacementNeeds(room=needed, label=actual.label)
    require_room(cluster, actual.node, needs, PlacementRules(), actual.label)
    return restored.target


def _refused(actual: Actual, answer: str, next_step: str) -> Conflict:
    return Conflict(f"{actual.label} was not overwritten: {answer}", next_step, "not overwritten")
