# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module snapshot: find the VMs, then read, plan and execute for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from ..._foundation.cluster.find.owner import OwnerScope, owner_of
from ..._foundation.cluster.find.restoring import find_restored, require_restored
from ..._foundation.cluster.state import ClusterState, VmRow, fetch_cluster_state
from ..._foundation.cluster.storages.allocation import with_allocations
from ..._foundation.cluster.tenant import keep_owners, tenants_of
from ..._foundation.core import validate
from ..._foundation.core.errors import (
    FleetError,
    ForeignTenant,
    PowerChanged,
    TaskTimeout,
    UnknownVm,
)
from ..._foundation.core.failures.several import FailedGuest, failure_of
from ..._foundation.core.parallel import side_by_side
from ..._foundation.core.result import Result
from ..._foundation.core.texts.plan_lines import guest_lines
from ..._foundation.resource.engine import apply_plan, diff_of
from ..._guests.kinds.identity import require_name, require_same_creation, require_same_disks
from ..._guests.kinds.words import kind_of_row
from .describe import describe_vm
from .desired import read_desired
from .model import (
    ACTION_OF_LOCK,
    ROLL_BACK,
    START,
    TAKE,
    DesiredSnapshots,
    SnapshotTree,
    SnapshotVm,
)
from .plan import plan_snapshots
from .read import chained_storages, has_snapshots, read_owned, read_vm, running_action, tags_in
from .resource import (
    SnapshotOutcome,
    SnapshotsOfVm,
    locked,
    require_same_power,
    runs_or_starts,
    wait_for_unlocked,
    with_unlock_step,
)
from .select import GuestTarget, is_selection, restored_rows, targets
from .storages import require_snapshots, require_state_room

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


@dataclass(frozen=True)
class SnapshotContext:
    """The values that are the same for all VMs of a task."""

    client: Client
    desired: DesiredSnapshots
    owner: OwnerScope
    cluster: ClusterState
    check_mode: bool
    timeout: int

    def precheck_of(self, vm: SnapshotVm) -> Callable[[bool], None]:
        """Return a check to run before each request: the VM is still the planned one and still
        belongs to the tenant. Before a destructive request it must have the same disks too.

        The first call sends no request if the VM was read immediately before.
        """
        is_fresh = [self.desired.state != "rolled_back"]

        def check(destroys: bool) -> None:
            is_needed = destroys or self.owner.tag is not None
            if is_needed and not is_fresh[0]:
                if destroys and self.desired.state == "rolled_back" and self.desired.restart:
                    require_same_power(vm, runs_or_starts(self.client, vm))
                current, tags = read_owned(self.client, vm)
                self.owner.require_owned(vm.label, tags, unnamed=vm.unnamed)
                require_same_creation(vm.label, vm.identity, current)
                require_name(vm.label, current, [vm.name])
                if destroys:
                    require_same_disks(vm.label, vm.identity, current)
            is_fresh[0] = False

        return check


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Bring the snapshots of each VM to the desired state; check mode plans and writes nothing.

    A failed VM does not stop the others: the result reports all VMs, including the failure.
    """
    desired = read_desired(params, client.clock.time())
    by_selection = is_selection(params)
    parallel = validate.count(params.get("parallel"), 4, "parallel")
    context = SnapshotContext(
        client=client,
        desired=desired,
        owner=owner_of(params),
        cluster=fetch_cluster_state(client),
        check_mode=check_mode,
        timeout=validate.count(params.get("task_timeout"), 300, "task_timeout"),
    )
    chosen = targets(client, context.cluster, params)
    warnings: list[str] = []
    if by_selection:
        warnings += _restored(context, chosen)
    outcomes = side_by_side(lambda target: _one(context, target), chosen, parallel)
    if by_selection:
        outcomes, notes = _still_selected(outcomes)
        warnings += notes
    for outcome in outcomes:
        warnings += [*outcome.plan.warnings, *outcome.warnings]
    if not outcomes:
        reason = "The list vms is empty"
        if by_selection:
            reason = "No VM has this tenant and these tags"
        warnings.append(f"{reason}, so there was nothing to do")
    rows = [_reported(context, outcome) for outcome in outcomes]
    return Result(
        changed=any(row["changed"] for row in rows),
        values={
            "snapshot": desired.name,
            "vms": rows,
            "report": guest_lines(rows, check_mode=check_mode),
        },
        diff=_diff(outcomes),
        warnings=tuple(warnings),
        failure=_failure(outcomes),
    )


def _restored(context: SnapshotContext, chosen: Sequence[GuestTarget]) -> Iterable[str]:
    """Return a sentence about each VM being restored that may belong to the selection.

    Raises BeingRestored or UnknownVm if there is no other VM to roll back.
    """
    rows = restored_rows(context.client, context.cluster, context.owner)
    if not chosen and context.desired.state == "rolled_back":
        require_restored(context.client, rows, "No VM was rolled back")
        _raise_empty_selection()
    return find_restored(context.client, rows).values()


def _raise_empty_selection() -> NoReturn:
    """Raise UnknownVm for a rollback of no VM (pure)."""
    raise UnknownVm(
        "No VM was rolled back: no VM that is visible has this tenant and these tags",
        "Check the spelling of tenant and tags, and that the user or token has VM.Audit on the VMs",
        "unknown VM",
    )


def _still_selected(outcomes: Iterable[SnapshotOutcome]) -> tuple[list[SnapshotOutcome], list[str]]:
    """Return the outcomes without VMs that left the tenant or were removed after the selection, and
    a warning about each such VM (pure).
    """
    kept: list[SnapshotOutcome] = []
    notes: list[str] = []
    for outcome in outcomes:
        error = outcome.error
        is_late = isinstance(error, (ForeignTenant, UnknownVm))
        if error is None or not is_late or error.came_after_changes:
            kept.append(outcome)
        else:
            notes.append(f"It was selected, and left as it is now: {error.message.rstrip('.')}")
    return kept, notes


def _one(context: SnapshotContext, target: GuestTarget) -> SnapshotOutcome:
    """Return the outcome for one VM; if another run changes the VM first, try once more."""
    row = target.row
    if row is None:
        return SnapshotOutcome(target.label, error=target.error)
    try:
        try:
            return _work(context, target, row)
        except FleetError as error:
            # Another run may have moved, started or stopped the VM.
            if error.details.get("done") or not isinstance(error, (PowerChanged, UnknownVm)):
                raise
            now: VmRow | None = row
            if isinstance(error, UnknownVm):
                now = fetch_cluster_state(context.client, context.cluster.types).vms.get(row.vmid)
            if now is None:
                raise
            return _work(context, target, now)
    except FleetError as error:
        known = None
        if context.owner.may_see(row, error):
            kind = kind_of_row(row)
            name = row.name or f"{kind.noun} {row.vmid}"
            known = SnapshotVm(kind, row.vmid, row.node, name, SnapshotTree(), tags=row.tags)
        return SnapshotOutcome(target.label, known, error=error)


def _work(context: SnapshotContext, target: GuestTarget, row: VmRow) -> SnapshotOutcome:
    """Read, plan and execute for one VM. Raises FleetError."""
    client = context.client
    desired = context.desired
    vm = read_vm(client, row, context.cluster)
    context.owner.require_owned(vm.label, vm.tags, unnamed=vm.unnamed)
    target.require_name(vm.label, vm.name)
    owners = tenants_of(vm.tags, context.owner.prefix)
    rolled_back = False
    if vm.lock in ACTION_OF_LOCK and not context.check_mode:
        rolled_back = _finish_running_task(context, vm)
        vm = read_vm(client, row, context.cluster)
    is_rollback = rolled_back or desired.state == "rolled_back"
    may_start = is_rollback and not vm.tree.running
    if may_start and not context.check_mode and _await_rollback_and_start(context, vm):
        vm = read_vm(client, row, context.cluster)
    if desired.state == "rolled_back":
        vm = _before_rollback(context, vm, owners, rolled_back)
    planned_for = _as_finished(vm, desired.name or "") if context.check_mode else vm
    plan = plan_snapshots(desired, planned_for, rolled_back=rolled_back)
    creates = any(step.action == TAKE for step in plan.steps)
    if creates:
        require_snapshots(vm, has_snapshots(client, vm))
    if creates and desired.vmstate and vm.tree.running:
        room = {vm.state_storage: vm.state_bytes}
        require_state_room(with_allocations(client, context.cluster, room), vm)

    def read_again() -> SnapshotVm:
        final = read_vm(client, row, context.cluster)
        if desired.state == "present":
            # Raises for a snapshot that PVE did not finish.
            plan_snapshots(replace(desired, retention=None), final)
        return final

    snapshots = SnapshotsOfVm(
        client,
        vm,
        plan,
        timeout=context.timeout,
        check=context.precheck_of(vm),
        read_again=read_again,
    )
    return replace(apply_plan(snapshots, context.check_mode), label=target.label)


def _before_rollback(
    context: SnapshotContext, vm: SnapshotVm, owners: tuple[str, ...], rolled_back: bool
) -> SnapshotVm:
    """Return the VM with the data for a rollback: chains of volumes, and the tags after it."""
    chained = chained_storages(context.client, vm.disks)
    disks = tuple(replace(disk, chained=disk.storage in chained) for disk in vm.disks)
    name = context.desired.name or ""
    if rolled_back and vm.tree.parent == name:
        tags = vm.tags
    elif name in vm.tree.snapshots:
        tags = tags_in(context.client, vm, name)
    else:
        return vm  # the plan refuses it
    tags_after = keep_owners(tags, owners, context.owner.prefix)
    return replace(vm, disks=disks, tags_after=tags_after)


def _finish_running_task(context: SnapshotContext, vm: SnapshotVm) -> bool:
    """Wait for the snapshot task of an earlier run; return whether it was a successful rollback."""
    client = context.client
    action = ACTION_OF_LOCK[vm.lock or ""]
    upid = running_action(client, vm, action)
    is_rollback = action == ROLL_BACK
    if upid is None:
        if is_rollback and context.desired.state == "rolled_back":
            _require_unlocked(vm, wait_for_unlocked(client, vm))
        return False
    # If it failed, this run starts over.
    return _ends_well(context, vm, upid, action) and is_rollback


def _require_unlocked(vm: SnapshotVm, is_unlocked: bool) -> None:
    """Raise Locked for a VM that keeps the lock of a rollback (pure)."""
    if not is_unlocked:
        raise with_unlock_step(locked(vm), vm)


def _ends_well(context: SnapshotContext, vm: SnapshotVm, upid: str, action: str) -> bool:
    """Wait for a task of another run, and return whether it succeeded. Raises TaskTimeout."""
    attempted = f"The {vm.task_of(action)} of {vm.label} did not end"
    try:
        context.client.wait(upid, timeout=context.timeout, attempted=attempted)
    except TaskTimeout:
        raise
    except FleetError:
        return False
    return True


def _await_rollback_and_start(context: SnapshotContext, vm: SnapshotVm) -> bool:
    """Wait for the running rollback or start task of a stopped VM; return whether there was one.

    PVE removes the lock of a rollback before the task starts the VM (pve-guest-common:
    AbstractConfig.pm, snapshot_rollback; qemu-server: API2/Qemu.pm, rollback). A VM that is read in
    between is stopped, and a rollback planned from this state would leave it stopped.
    """
    found = False
    for action in (ROLL_BACK, START):
        upid = running_action(context.client, vm, action)
        if upid is not None:
            found = True
            _ends_well(context, vm, upid, action)  # a failed task changes nothing any more
    return found


def _as_finished(vm: SnapshotVm, name: str) -> SnapshotVm:
    """Return the VM as it will be after the snapshot in progress is complete."""
    tree = vm.tree
    if vm.lock != "snapshot" or name not in tree.snapshots:
        return vm
    complete = replace(tree.snapshots[name], state=None)
    snapshots = {**tree.snapshots, name: complete}
    return replace(vm, tree=replace(tree, snapshots=snapshots))


def _diff(outcomes: list[SnapshotOutcome]) -> dict[str, Any] | list[dict[str, Any]]:
    """Return one diff for a single VM, or a diff with a header for each VM that differs."""
    if len(outcomes) == 1:
        return diff_of(outcomes[0].plan)
    diffs = []
    for outcome in outcomes:
        plan = outcome.plan
        if outcome.error is not None or not plan.changed:
            continue
        diffs.append(diff_of(plan, outcome.vm.label if outcome.vm else outcome.label))
    return diffs


def _reported(context: SnapshotContext, outcome: SnapshotOutcome) -> dict[str, Any]:
    """Return the values that the module returns for one VM."""
    error = outcome.error
    rollbacks = [step for step in outcome.plan.steps if step.action == ROLL_BACK]
    is_done = error is None and not context.check_mode
    restarted = is_done and any(step.data.get("start") for step in rollbacks)
    row: dict[str, Any] = {
        "kind": None,
        "name": outcome.label,
        "vmid": None,
        "node": None,
        "failed": error is not None,
        "changed": outcome.plan.changed,
        "plan": outcome.plan.summaries,
        "done": list(outcome.done),
        "restarted": restarted,
    }
    if outcome.vm is not None:
        row.update(describe_vm(outcome.vm, prefix=context.owner.prefix))
    reason = "InSync"
    if context.check_mode and outcome.plan.changed:
        reason = "Planned"
    if error is not None:
        reason = error.category
        row.update(error.as_result())
        done = error.details.get("done", [])
        row["done"] = done
        row["changed"] = error.came_after_changes
        row["snapshots"] = None
        row["status"] = None
    is_ready = error is None and reason == "InSync"
    row["conditions"] = [{"type": "Ready", "status": is_ready, "reason": reason}]
    return row


def _failure(outcomes: list[SnapshotOutcome]) -> FleetError | None:
    labels = [one.vm.label if one.vm else f"VM '{one.label}'" for one in outcomes]
    ends = zip(labels, [one.error for one in outcomes], strict=True)
    failed = [FailedGuest(label, error) for label, error in ends if error is not None]
    return failure_of(failed, labels)
