# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module snapshot: find the VMs, then read, plan and execute for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._cluster.allocation import with_allocations
from .._cluster.state import ClusterState, VmRow, fetch_cluster_state
from .._cluster.tenant import keep_owners, tenants_of
from .._core import validate
from .._core.errors import FleetError, Locked, TaskTimeout, UnknownVm, failure_of_several
from .._core.parallel import side_by_side
from .._core.result import Result
from .._guest.identity import require_name, require_same_creation, require_same_disks
from .._resource.engine import apply_plan
from .._resource.result import diff_of
from .describe import describe_machine
from .desired import read_desired
from .model import ROLL_BACK, TAKE, TASK_OF_LOCK, Desired, Machine, Tree
from .plan import make_plan
from .read import chained_storages, has_snapshots, read_machine, read_owned, running_task, tags_in
from .resource import Outcome, SnapshotsOfVm, left_locked
from .restart import START
from .select import Owner, Target, is_selection, owner_of, targets
from .storages import no_snapshots, require_state_room
from .untracked import wait_for_unlocked

if TYPE_CHECKING:
    from .._api.client import Client


@dataclass(frozen=True)
class RunContext:
    """What is the same for all VMs of a task."""

    client: Client
    desired: Desired
    owner: Owner
    cluster: ClusterState
    check_mode: bool
    timeout: int

    def look_at(self, machine: Machine) -> Callable[[bool], None]:
        """Return the check before each request that the VM is still the one that was planned for,
        and still belongs to the tenant; for one that destroys, that it has the same disks too.

        The first call asks nothing where nothing was asked since the machine was read.
        """
        is_fresh = [self.desired.state != "rolled_back"]

        def look(destroys: bool) -> None:
            is_needed = destroys or self.owner.tag is not None
            if is_needed and not is_fresh[0]:
                seen, tags = read_owned(self.client, machine)
                self.owner.guard(machine.label, tags, machine.vmid)
                require_same_creation(machine.label, machine.identity, seen)
                require_name(machine.label, seen, [machine.name])
                if destroys:
                    require_same_disks(machine.label, machine.identity, seen)
            is_fresh[0] = False

        return look


def run(
    params: Mapping[str, Any],
    client: Client,
    check_mode: bool = False,
) -> Result:
    """Bring the snapshots of each VM to the desired state; check mode plans and writes nothing.

    A VM that fails does not stop the others: the result reports all of them, with the failure.
    """
    desired = read_desired(params, client.clock.time())
    by_selection = is_selection(params)
    parallel = validate.count(params.get("parallel"), 4, "parallel")
    context = RunContext(
        client=client,
        desired=desired,
        owner=owner_of(params),
        cluster=fetch_cluster_state(client),
        check_mode=check_mode,
        timeout=validate.count(params.get("task_timeout"), 300, "task_timeout"),
    )
    chosen = targets(client, context.cluster, params)
    if by_selection and not chosen and desired.state == "rolled_back":
        raise _nothing_selected()
    outcomes = side_by_side(
        lambda target: _one(context, target),
        chosen,
        parallel,
    )
    warnings: list[str] = []
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
        values={"snapshot": desired.name, "vms": rows},
        diff=_diff(outcomes),
        warnings=tuple(warnings),
        failure=_failure(outcomes),
    )


def _one(context: RunContext, target: Target) -> Outcome:
    """Return the outcome for one VM, with its error; a VM that moves is tried again once."""
    row = target.row
    if row is None:
        return Outcome(target.label, error=target.error)
    try:
        try:
            return _work(context, target, row)
        except FleetError as error:
            moved = _moved(context, row, error)
            if moved is None:
                raise
            return _work(context, target, moved)
    except FleetError as error:
        known = None
        if context.owner.may_see(row, error):
            name = row.name or f"VM {row.vmid}"
            known = Machine(row.vmid, row.node, name, Tree(), tags=row.tags)
        return Outcome(target.label, known, error=error)


def _moved(
    context: RunContext,
    row: VmRow,
    error: FleetError,
) -> VmRow | None:
    """Return the new row of a VM that PVE did not find on its node before anything was done."""
    if not isinstance(error, UnknownVm) or error.details.get("done"):
        return None
    return fetch_cluster_state(context.client).vms.get(row.vmid)


def _work(context: RunContext, target: Target, row: VmRow) -> Outcome:
    """Read, plan and execute for one VM. Raises FleetError."""
    client = context.client
    desired = context.desired
    machine = read_machine(client, row, context.cluster)
    context.owner.guard(machine.label, machine.tags, machine.vmid)
    target.check(machine.label, machine.name)
    owners = tenants_of(machine.tags, context.owner.prefix)
    rolled_back = False
    if machine.lock in TASK_OF_LOCK and not context.check_mode:
        rolled_back = _finish_running_task(context, machine)
        machine = read_machine(client, row, context.cluster)
    if desired.state == "rolled_back":
        machine = _before_rollback(context, machine, owners, rolled_back)
    planned_for = machine
    if context.check_mode:
        planned_for = _as_finished(machine, desired.name or "")
    plan = make_plan(desired, planned_for, rolled_back=rolled_back)
    takes = any(step.action == TAKE for step in plan.steps)
    if takes and not has_snapshots(client, machine):
        raise no_snapshots(machine)
    if takes and _with_memory(desired, machine):
        _require_room(context, machine)

    def read_again() -> Machine:
        final = read_machine(client, row, context.cluster)
        if desired.state == "present":
            # Raises for a snapshot that PVE did not finish.
            make_plan(replace(desired, retention=None), final)
        return final

    snapshots = SnapshotsOfVm(
        client,
        machine,
        plan,
        timeout=context.timeout,
        look=context.look_at(machine),
        read_again=read_again,
        label=target.label,
    )
    return apply_plan(snapshots, context.check_mode)


def _with_memory(desired: Desired, machine: Machine) -> bool:
    """Return whether a new snapshot has the memory of the VM."""
    return desired.vmstate and machine.tree.running


def _require_room(context: RunContext, machine: Machine) -> None:
    """Raise QuotaExceeded where the storage has no room for the memory of the VM.

    One request where the definition of the storage decides that.
    """
    room = {machine.state_storage: machine.state_bytes}
    cluster = with_allocations(context.client, context.cluster, room)
    require_state_room(cluster, machine)


def _before_rollback(
    context: RunContext,
    machine: Machine,
    owners: tuple[str, ...],
    rolled_back: bool,
) -> Machine:
    """Return the VM with what only a rollback needs: chains of volumes, and the tags after it."""
    chained = chained_storages(context.client, machine.disks)
    disks = tuple(replace(disk, chained=disk.storage in chained) for disk in machine.disks)
    name = context.desired.name or ""
    if rolled_back and machine.tree.parent == name:
        tags = machine.tags
    elif name in machine.tree.snapshots:
        tags = tags_in(context.client, machine, name)
    else:
        return machine  # the plan refuses it
    tags_after = keep_owners(tags, owners, context.owner.prefix)
    return replace(machine, disks=disks, tags_after=tags_after)


_MAY_SEE = "the user or token has VM.Audit on the VMs"


def _nothing_selected() -> UnknownVm:
    return UnknownVm(
        attempted="No VM was rolled back",
        answer="no VM that is visible has this tenant and these tags",
        next_step=f"Check the spelling of tenant and tags, and that {_MAY_SEE}",
        reason="unknown VM",
    )


def _finish_running_task(context: RunContext, machine: Machine) -> bool:
    """Wait for the snapshot task of an earlier run; return whether it was a successful rollback."""
    client = context.client
    kind = TASK_OF_LOCK[machine.lock or ""]
    upid = running_task(client, machine.node, machine.vmid, kind)
    is_rollback = kind == ROLL_BACK
    if upid is None:
        if is_rollback and context.desired.state == "rolled_back":
            _wait_for_unlocked(client, machine)
        return False
    try:
        attempted = f"The {kind} of {machine.label} did not end"
        client.wait(upid, timeout=context.timeout, attempted=attempted)
        start = None
        if is_rollback:
            start = running_task(client, machine.node, machine.vmid, START)
        if start is not None:
            attempted = f"The start of {machine.label} did not end"
            client.wait(start, timeout=context.timeout, attempted=attempted)
    except TaskTimeout:
        raise
    except FleetError:
        return False  # it failed, so this run starts over
    return is_rollback


def _wait_for_unlocked(client: Client, machine: Machine) -> None:
    try:
        wait_for_unlocked(client, machine)
    except Locked as error:
        raise left_locked(error, machine) from None


def _as_finished(machine: Machine, name: str) -> Machine:
    """Return the VM as it will be when the snapshot that is being taken is complete."""
    tree = machine.tree
    if machine.lock != "snapshot" or name not in tree.snapshots:
        return machine
    complete = replace(tree.snapshots[name], state=None)
    snapshots = {**tree.snapshots, name: complete}
    return replace(machine, tree=replace(tree, snapshots=snapshots))


def _diff(outcomes: list[Outcome]) -> dict[str, Any] | list[dict[str, Any]]:
    """Return one diff for one VM, else one with a headline for each VM that differs."""
    if len(outcomes) == 1:
        return diff_of(outcomes[0].plan)
    diffs = []
    for outcome in outcomes:
        plan = outcome.plan
        if outcome.error is not None or not plan.changed:
            continue
        diffs.append(diff_of(plan, outcome.machine.label if outcome.machine else outcome.label))
    return diffs


def _reported(context: RunContext, outcome: Outcome) -> dict[str, Any]:
    """Return what the module returns for one VM."""
    error = outcome.error
    rollbacks = [step for step in outcome.plan.steps if step.action == ROLL_BACK]
    is_done = error is None and not context.check_mode
    restarted = is_done and any(step.data.get("start") for step in rollbacks)
    row: dict[str, Any] = {
        "name": outcome.label,
        "vmid": None,
        "node": None,
        "failed": error is not None,
        "changed": outcome.plan.changed,
        "plan": outcome.plan.summaries,
        "done": list(outcome.done),
        "restarted": restarted,
    }
    if outcome.machine is not None:
        row.update(describe_machine(outcome.machine, prefix=context.owner.prefix))
    if error is not None:
        row.update(error.as_result())
        done = error.details.get("done", [])
        row["done"] = done
        row["changed"] = bool(done)
        row["snapshots"] = None
        row["status"] = None
    row["conditions"] = [_condition(context, outcome)]
    return row


def _condition(context: RunContext, outcome: Outcome) -> dict[str, Any]:
    if outcome.error is not None:
        return {"type": "Ready", "status": False, "reason": outcome.error.category}
    if context.check_mode and outcome.plan.changed:
        return {"type": "Ready", "status": False, "reason": "Planned"}
    return {"type": "Ready", "status": True, "reason": "InSync"}


def _labelled(outcome: Outcome, error: FleetError) -> str:
    """Return the message of a failure, after the VM's label where the message lacks it."""
    label = outcome.machine.label if outcome.machine else f"VM {outcome.label}"
    for name in (label, f"VM '{outcome.label}'", f"VM {outcome.label} "):
        if name in error.message:
            return error.message
    return f"{label}: {error.message}"


def _failure(outcomes: list[Outcome]) -> FleetError | None:
    """Return the error of the task: that of its only VM, or one for all VMs that failed."""
    errors: list[FleetError] = []
    messages: list[str] = []
    for outcome in outcomes:
        if outcome.error is not None:
            errors.append(outcome.error)
            messages.append(_labelled(outcome, outcome.error))
    if not errors:
        return None
    first = errors[0]
    if len(outcomes) == 1:
        return first
    return failure_of_several(errors, " ".join(messages), len(outcomes))
