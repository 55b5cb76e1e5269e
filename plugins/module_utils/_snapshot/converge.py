# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module snapshot: find the VMs, plan and carry out for each. Sequences what the other rooms know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .._cluster.picture import Picture, VmRow, read_picture
from .._cluster.tenant import keep_owners, parse_tags, tenants_of
from .._core import validate
from .._core.errors import FleetError, Locked, NotFound, TaskFailed, TaskTimeout
from .._core.parallel import side_by_side
from .._core.result import Result
from .._vm.model import Plan
from .apply import carry_out
from .describe import describe_machine
from .model import ROLL_BACK, TAKE, TASK_OF_LOCK, Machine, Tree, Wish
from .plan import make_plan
from .read import chained_storages, has_snapshots, read_machine, running_task, tags_in
from .restart import START
from .select import Owner, Target, is_selection, owner_of, targets
from .storages import no_snapshots
from .wish import read_wish

if TYPE_CHECKING:
    from .._api.client import Client


@dataclass(frozen=True)
class Job:
    """What is the same for all VMs of a task."""

    client: Client
    wish: Wish
    owner: Owner
    picture: Picture
    check_mode: bool
    timeout: int


@dataclass(frozen=True)
class Outcome:
    """How it went with one VM."""

    said: str
    machine: Machine | None = None
    plan: Plan = field(default_factory=Plan)
    done: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    error: FleetError | None = None


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Make the snapshots what the options say, VM by VM; in check mode plan it and write nothing.

    One VM that fails does not stop the others; the failures are raised at the end.
    """
    wish = read_wish(params, client.clock.time())
    selected = is_selection(params)
    parallel = validate.count(params.get("parallel"), 4, "parallel")
    timeout = validate.count(params.get("task_timeout"), 300, "task_timeout")
    picture = read_picture(client)
    job = Job(client, wish, owner_of(params), picture, check_mode, timeout)
    meant = targets(client, picture, params)
    if selected and not meant and wish.state == "rolled_back":
        raise _nothing_selected()
    outcomes = side_by_side(lambda target: _one(job, target), meant, parallel)
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    if failed:
        raise _failure(job, outcomes, failed)
    warnings = [line for outcome in outcomes for line in (*outcome.plan.warnings, *outcome.warnings)]
    if not outcomes:
        why = "No VM has this tenant and these tags" if selected else "The list vms is empty"
        warnings.append(f"{why}, so there was nothing to do")
    values: dict[str, Any] = {"snapshot": wish.name, "vms": [_reported(job, outcome) for outcome in outcomes]}
    return Result(any(outcome.plan.changed for outcome in outcomes), values, _diff(outcomes), tuple(warnings))


def _one(job: Job, target: Target) -> Outcome:
    """Return how it went with one VM; a failure is part of it. One that is moved meanwhile is followed, once."""
    row = target.row
    if row is None:
        return Outcome(target.said, error=target.error)
    try:
        try:
            return _work(job, target, row)
        except FleetError as error:
            moved = _moved(job, row, error)
            if moved is None:
                raise
            return _work(job, target, moved)
    except FleetError as error:
        seen = _stub(row) if job.owner.may_see(row, error) else None
        return Outcome(target.said, seen, error=error)


def _moved(job: Job, row: VmRow, error: FleetError) -> VmRow | None:
    """Return where a VM is now that PVE did not find where it was a moment ago, before anything was done to it."""
    if error.reason != "unknown VM" or error.details.get("done"):
        return None
    return read_picture(job.client).vms.get(row.vmid)


def _work(job: Job, target: Target, row: VmRow) -> Outcome:
    machine = read_machine(job.client, row, job.picture)
    job.owner.guard(machine.label, machine.tags)
    target.check(machine.label, machine.name)
    owners, rolled_back = tenants_of(machine.tags, job.owner.prefix), False
    if machine.lock in TASK_OF_LOCK and not job.check_mode:
        rolled_back = _finish_what_runs(job, machine)
        machine = read_machine(job.client, row, job.picture)
    if job.wish.state == "rolled_back":
        machine = _before_rollback(job, machine, owners, rolled_back)
    seen = machine
    if job.check_mode and job.wish.name in machine.tree.snapshots and machine.lock == "snapshot":
        seen = _as_finished(machine, job.wish.name or "")
    plan = make_plan(job.wish, seen, rolled_back=rolled_back)
    if any(step.action == TAKE for step in plan.steps) and not has_snapshots(job.client, machine):
        raise no_snapshots(machine)
    if job.check_mode or not plan.changed:
        return Outcome(target.said, machine, plan)
    fresh = [True]  # the machine was read just now

    def guard() -> None:
        if job.owner.tag is not None and not fresh[0]:
            config = job.client.get("nodes", machine.node, "qemu", machine.vmid, "config")
            job.owner.guard(machine.label, parse_tags(str(config.get("tags") or "")))
        fresh[0] = False

    try:
        done, warnings = carry_out(job.client, plan, machine, guard=guard, timeout=job.timeout)
    except Locked as error:
        raise _left_locked(error, machine) from error
    final = read_machine(job.client, row, job.picture)
    if job.wish.state == "present":
        make_plan(replace(job.wish, retention=None), final)  # refuses a snapshot that PVE did not finish
    return Outcome(target.said, final, plan, tuple(done), tuple(warnings))


def _before_rollback(job: Job, machine: Machine, owners: tuple[str, ...], rolled_back: bool) -> Machine:
    """Return the VM with what only a rollback must know: chains of volumes, and the tags it is to have afterwards."""
    chained = chained_storages(job.client, machine.disks)
    disks = tuple(replace(disk, chained=disk.storage in chained) for disk in machine.disks)
    name = job.wish.name or ""
    if rolled_back and machine.tree.parent == name:
        then = machine.tags
    elif name in machine.tree.snapshots:
        then = tags_in(job.client, machine, name)
    else:
        return machine  # which is refused
    return replace(machine, disks=disks, tags_after=keep_owners(then, owners, job.owner.prefix))


def _nothing_selected() -> NotFound:
    return NotFound(
        attempted="No VM was rolled back",
        answer="no VM that is visible has this tenant and these tags",
        next_step="Check the spelling of tenant and tags, and that the user or token has VM.Audit on the VMs",
        reason="unknown VM",
    )


def _finish_what_runs(job: Job, machine: Machine) -> bool:
    """Wait for the snapshot task that an earlier run left behind; tell whether it was a rollback that ended well."""
    kind = TASK_OF_LOCK[machine.lock or ""]
    upid = running_task(job.client, machine.node, machine.vmid, kind)
    if upid is None:
        return False
    try:
        job.client.wait(upid, timeout=job.timeout, attempted=f"The {kind} of {machine.label} did not end")
        start = running_task(job.client, machine.node, machine.vmid, START) if kind == ROLL_BACK else None
        if start is not None:
            job.client.wait(start, timeout=job.timeout, attempted=f"The start of {machine.label} did not end")
    except TaskTimeout:
        raise
    except FleetError:
        return False  # it has failed, so this run begins anew
    return kind == ROLL_BACK


def _left_locked(error: Locked, machine: Machine) -> FleetError:
    """Return the error with the way out where a task that failed has left its lock: PVE then keeps it for ever.

    `machine` is the VM as it was when no task of the lock's kind was to be seen any more.
    """
    if machine.lock not in TASK_OF_LOCK:
        return error
    return error.on(
        next_step="No task that holds the lock is visible. If one has failed, repair what it says, and remove the "
        f"lock with 'qm unlock {machine.vmid}' on node {machine.node}"
    )


def _as_finished(machine: Machine, name: str) -> Machine:
    """Return the VM as it will be when the snapshot that is being taken is complete."""
    tree = machine.tree
    found = replace(tree.snapshots[name], state=None)
    return replace(machine, tree=replace(tree, snapshots={**tree.snapshots, name: found}))


def _stub(row: VmRow) -> Machine:
    return Machine(row.vmid, row.node, row.name or f"VM {row.vmid}", Tree(), tags=row.tags)


def _diff(outcomes: list[Outcome]) -> dict[str, Any] | list[dict[str, Any]]:
    """Return one diff for one VM, else one for each VM that differs, with a headline."""
    if len(outcomes) == 1:
        return {"before": dict(outcomes[0].plan.before), "after": dict(outcomes[0].plan.after)}
    return [
        {
            "before_header": outcome.machine.label if outcome.machine else outcome.said,
            "after_header": outcome.machine.label if outcome.machine else outcome.said,
            "before": dict(outcome.plan.before),
            "after": dict(outcome.plan.after),
        }
        for outcome in outcomes
        if outcome.plan.changed
    ]


def _reported(job: Job, outcome: Outcome) -> dict[str, Any]:
    """Return what the module says of one VM."""
    steps = [step for step in outcome.plan.steps if step.action == ROLL_BACK]
    row: dict[str, Any] = {
        "name": outcome.said,
        "vmid": None,
        "node": None,
        "failed": outcome.error is not None,
        "changed": bool(outcome.done) if outcome.error else outcome.plan.changed,
        "plan": outcome.plan.summaries,
        "done": list(outcome.done),
        "restarted": any(step.data.get("start") for step in steps) and not job.check_mode and outcome.error is None,
    }
    if outcome.machine is not None:
        row.update(describe_machine(outcome.machine, prefix=job.owner.prefix))
    if outcome.error is not None:
        done = outcome.error.details.get("done", [])
        row.update(outcome.error.as_result(), done=done, changed=bool(done), snapshots=None, status=None)
    row["conditions"] = [_condition(job, outcome)]
    return row


def _condition(job: Job, outcome: Outcome) -> dict[str, Any]:
    if outcome.error is not None:
        return {"type": "Ready", "status": False, "reason": outcome.error.category}
    settled = not (job.check_mode and outcome.plan.changed)
    return {"type": "Ready", "status": settled, "reason": "AsWished" if settled else "Planned"}


def _told(outcome: Outcome) -> str:
    """Return the message of a failure, with the VM's name before it where it is not in it."""
    message = outcome.error.message if outcome.error else ""
    name = outcome.machine.label if outcome.machine else f"VM {outcome.said}"
    named = any(one in message for one in (name, f"VM '{outcome.said}'", f"VM {outcome.said} "))
    return message if named else f"{name}: {message}"


def _failure(job: Job, outcomes: list[Outcome], failed: list[Outcome]) -> FleetError:
    """Return the error of the task: the VM's own for one VM, else one that lists them all."""
    first = failed[0].error or TaskFailed()
    if len(outcomes) == 1:
        return first
    said = " ".join(_told(outcome) for outcome in failed)
    # One category for all of them where they agree, else that of a task of which parts failed.
    kinds = {type(outcome.error) for outcome in failed}
    category = type(first) if len(kinds) == 1 else TaskFailed
    return category(
        attempted=f"{len(failed)} of {len(outcomes)} VMs failed",
        answer=said,
        next_step="Repair these and run again: what is done stays done",
        reason=first.reason if len({o.error.reason for o in failed if o.error}) == 1 else "some VMs failed",
        upid=first.upid if len(failed) == 1 else "",
        retryable=any(outcome.error.retryable for outcome in failed if outcome.error),
        details={"vms": [_reported(job, outcome) for outcome in outcomes]},
    )
