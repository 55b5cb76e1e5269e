# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carries a plan out: one step after the other, each waited for, each behind the guard. Decides nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._core.errors import Conflict, FleetError, NotFound
from .._vm.model import Plan, Step
from .model import REMOVE, ROLL_BACK, TAG, TAKE, Machine
from .read import new_task, running_task, tree_of
from .restart import wait_for_start

if TYPE_CHECKING:
    from .._api.client import Client

# Seconds that the server's clock may differ from ours.
_LEEWAY = 300


def carry_out(
    client: Client, plan: Plan, machine: Machine, *, guard: Callable[[], None], timeout: int
) -> tuple[list[str], list[str]]:
    """Send the steps of a plan and return what was done, in words, and the warnings of PVE's tasks.

    `guard` looks before each request whether the VM may still be touched. `timeout` in seconds bounds each task.
    Raises FleetError, with what had been done in its details.
    """
    done: list[str] = []
    warnings: list[str] = []
    started: tuple[str, str] | None = None
    try:
        for step in plan.steps:
            if step.action != TAG:  # between the rollback and this step the VM bears the tags of another time
                guard()
            lines, upid = _send(client, step, machine, timeout)
            warnings += lines
            done.append(step.summary)
            if step.data.get("start"):
                started = step.summary, upid
        if started is not None:
            summary, upid = started
            warnings += [f"{summary}: {line}" for line in wait_for_start(client, machine, upid, timeout)]
    except FleetError as error:
        if not done:
            raise
        raise error.on(details={**error.details, "done": done}) from error
    return done, warnings


def _send(client: Client, step: Step, machine: Machine, timeout: int) -> tuple[list[str], str]:
    """Return the warnings of a step and the UPID of its task."""
    attempted = f"Could not {step.summary[:1].lower()}{step.summary[1:]}"
    if not step.is_task:
        client.write(step.method, *step.path, data=step.data, attempted=attempted, happened=lambda: None)
        return [], ""
    try:
        result = client.task(
            step.method,
            *step.path,
            data=step.data,
            attempted=attempted,
            timeout=timeout,
            happened=_look(client, step, machine),
        )
    except Conflict as error:
        if step.action != TAKE or error.reason != "exists":
            raise
        return [f"{step.summary}: a snapshot of that name was made meanwhile"], ""
    except NotFound as error:
        if step.action != REMOVE or error.reason != "unknown snapshot":
            raise
        return [f"{step.summary}: it was deleted meanwhile"], ""
    return [f"{step.summary}: {line}" for line in result.warnings], result.upid


def _look(client: Client, step: Step, machine: Machine) -> Callable[[], Any]:
    """Return the look at the server after a lost answer: the task's ID, True when it is over, None when it is not."""
    node, vmid = machine.node, machine.vmid
    if step.action == ROLL_BACK:
        since = client.clock.time() - _LEEWAY
        # A rollback leaves no trace but its task, so those that were there before must be known.
        rows = client.get("nodes", node, "tasks", vmid=vmid, typefilter=ROLL_BACK, source="all", since=int(since))
        known = {row["upid"] for row in rows or []}
        return lambda: new_task(client, node, vmid, ROLL_BACK, since, known)
    name = step.data.get("snapname") or step.path[-1]

    def look() -> Any:
        upid = running_task(client, node, vmid, step.action)
        if upid is not None:
            return upid
        there = name in tree_of(client.get("nodes", node, "qemu", vmid, "snapshot")).snapshots
        return True if there is (step.action == TAKE) else None

    return look
