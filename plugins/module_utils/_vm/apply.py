# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carries a plan out: sends the steps in order, reads again where the plan says so. Decides nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._core.errors import FleetError, NetworkError
from .ha import await_manager
from .model import Plan, Step
from .moving import is_elsewhere
from .snippets import write_content

if TYPE_CHECKING:
    from .._api.client import Client

Replan = Callable[[list[Step], bool], Plan]
"""Gets the steps done so far and whether the state of the VM is uncertain, reads it and returns what is left to do."""

# How often a step whose answer was lost, or whose VM was changed meanwhile, is planned again.
_LOOKS = 3


def carry_out(
    client: Client,
    plan: Plan,
    *,
    replan: Replan,
    timeout: int,
    happened: Callable[[], Any] | None = None,
    before: Callable[[Step], None] | None = None,
) -> tuple[list[str], list[str]]:
    """Send the steps of a plan and return what was done, in words, and the warnings of PVE's tasks.

    Where an answer is lost or the VM was changed meanwhile, what is left is planned again from a fresh look. `happened`
    looks whether the first step, a create or clone, took effect although its answer was lost. `before` is called with
    each step right before it is sent and may raise. `timeout` in seconds bounds each task. Raises FleetError, with what
    had been done in its details.
    """
    done: list[Step] = []
    warnings: list[str] = []
    steps = list(plan.steps)
    looks = 0
    while steps:
        step = steps.pop(0)
        creates = step.action in ("create", "clone")
        try:
            if before is not None:
                before(step)
            warnings += _send(client, step, timeout, happened if creates else None)
        except FleetError as error:
            if not creates and looks < _LOOKS and _needs_look(error):
                looks += 1
                steps = _rest(replan, done, True)
                continue
            if error.reason != "hotplug" or step.action != "config":
                raise _with_done(error, done) from error
            # PVE has taken the change, but the guest does not let go of the device: it waits for a stop.
            warnings.append(error.message)
        done.append(step)
        if step.reread:
            steps = _rest(replan, done, False)
    return [step.summary for step in done], warnings


def _rest(replan: Replan, done: list[Step], uncertain: bool) -> list[Step]:
    """Return what is left to do after a fresh look; a look that fails tells what had been done before it."""
    try:
        return list(replan(done, uncertain).steps)
    except FleetError as error:
        raise _with_done(error, done) from error


def _needs_look(error: FleetError) -> bool:
    """Tell whether the step may have happened, or was planned from what is no longer so, such as the VM's node."""
    if is_elsewhere(error) or error.reason == "already running":
        return True
    if isinstance(error, NetworkError):
        return error.dispatched is not False
    return error.reason == "digest"


def _send(client: Client, step: Step, timeout: int, happened: Callable[[], Any] | None) -> list[str]:
    attempted = f"Could not {step.summary[:1].lower()}{step.summary[1:]}"
    if step.method == "FILE":
        write_content(str(step.path[0]), step.data["content"])
        return []
    if not step.is_task:
        client.write(step.method, *step.path, data=step.data, attempted=attempted)
        return []
    result = client.task(
        step.method, *step.path, data=step.data, attempted=attempted, timeout=step.timeout or timeout, happened=happened
    )
    await_manager(client, step, result, step.timeout or timeout)
    return [f"{step.summary}: {line}" for line in result.warnings]


def _with_done(error: FleetError, done: list[Step]) -> FleetError:
    """Return the error with what had been done before it, so that nobody has to guess."""
    if not done:
        return error
    return error.on(details={**error.details, "done": [step.summary for step in done]})
