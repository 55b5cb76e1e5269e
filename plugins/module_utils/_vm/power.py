# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Power: which steps bring a VM to the wished state (pure).

What a VM can be: running, paused (stands still in memory), hibernated (its memory is on disk, PVE's lock "suspended"),
stopped, or something else that QEMU says of itself. Two wishes are actions and happen in every run: restarted, reset.
"""

from __future__ import annotations

from typing import Any

from .._core.errors import Conflict, ValidationFailed
from .model import Actual, Desired, Step

# What a VM is when a wish is fulfilled; a wish that is not here leaves the power alone.
_AFTER = {
    "started": "running",
    "resumed": "running",
    "restarted": "running",
    "reset": "running",
    "paused": "paused",
    "hibernated": "hibernated",
    "stopped": "stopped",
    "template": "stopped",
}
# A VM that does not run cannot be any of these (PVE: VM 300 not running).
_NEED_RUNNING = frozenset(("resumed", "reset", "paused", "hibernated"))
# The wishes that also make a VM.
CREATING = frozenset(("present", "started", "stopped", "template"))
OFF = frozenset(("stopped", "hibernated"))


def check_wish(desired: Desired, actual: Actual | None) -> None:
    """Raise where a VM cannot get to the wished state: what is off cannot be paused, a template does not run."""
    if actual is None:
        if desired.state not in CREATING:
            raise ValidationFailed(
                attempted=f"{desired.label} could not become {desired.state}",
                answer="there is no such VM",
                next_step="Create it first, with state=present or state=started",
                reason="unknown VM",
            )
        return
    if actual.template and desired.state not in ("present", "stopped", "template"):
        raise Conflict(
            attempted=f"{actual.label} could not become {desired.state}",
            answer="it is a template",
            next_step="Clone it, and start the clone",
            reason="template",
        )
    off = actual.status == "stopped" or (actual.status == "hibernated" and desired.state in ("paused", "reset"))
    if desired.state in _NEED_RUNNING and off:
        raise Conflict(
            attempted=f"{actual.label} could not become {desired.state}",
            answer=f"it is {actual.status}",
            next_step="Start it first, with state=started",
            reason="not running",
        )


def stops_first(desired: Desired, actual: Actual) -> bool:
    """Tell whether the VM is stopped before anything else, so that all changes are applied at once."""
    return actual.running and desired.state in ("stopped", "template")


def stop(actual: Actual, desired: Desired, *, hard: bool | None = None) -> Step:
    """Return the step that stops a running VM: a shutdown with a deadline, or the plug at once."""
    if hard or (hard is None and desired.shutdown_timeout == 0) or actual.status != "running":
        return _step("stop", f"Stop {actual.label}", actual, timeout=120)
    data: dict[str, Any] = {"timeout": desired.shutdown_timeout}
    if desired.force:
        data["forceStop"] = 1
    return _step("shutdown", f"Shut down {actual.label}", actual, data, timeout=desired.shutdown_timeout + 60)


def wakes(desired: Desired) -> bool:
    """Tell whether a VM that is hibernated shall run."""
    return desired.state in ("started", "restarted", "resumed")


def wake(actual: Actual) -> Step:
    """Return the step that starts a hibernated VM where it is."""
    return _step("start", f"Start {actual.label}", actual)


def finish(desired: Desired, actual: Actual, *, running: bool, waiting: bool) -> list[Step]:
    """Return the power steps behind all others. `running` is the state until then, `waiting` whether changes wait."""
    state, label = desired.state, _label(desired, actual)
    step = _Steps(desired, actual, label)
    if state == "template":
        return [] if actual.template else [step.convert()]
    if wakes(desired) and not running:
        return [step.power("start", f"Start {label}")]
    if not running:
        return []
    restart = {"timeout": desired.shutdown_timeout}
    if state == "restarted":
        return [step.power("reboot", f"Reboot {label}", restart, timeout=desired.shutdown_timeout + 120)]
    if state == "reset":
        return [step.power("reset", f"Reset {label}")]
    if state in ("started", "resumed") and actual.status != "running":
        return [step.power("resume", f"Resume {label}")]
    if state == "paused":
        return [] if actual.status == "paused" else [step.power("suspend", f"Pause {label}")]
    if state == "hibernated":
        return [step.power("suspend", f"Hibernate {label}", {"todisk": 1}, timeout=600)]
    if state != "stopped" and (desired.reboot == "always" or (desired.reboot == "if_needed" and waiting)):
        return [step.power("reboot", f"Reboot {label}", restart, timeout=desired.shutdown_timeout + 120)]
    return []


def status_after(desired: Desired, actual: Actual) -> str:
    """Return the power state that the plan leads to."""
    if desired.state == "stopped" and actual.status == "hibernated":
        return "hibernated"  # it is off, and its memory is not thrown away
    return _AFTER.get(desired.state, actual.status)


def _label(desired: Desired, actual: Actual) -> str:
    """A VM that is migrated before it is switched has another node by then."""
    node = desired.node or actual.node
    return actual.label if node == actual.node else f"VM '{actual.name}' ({actual.vmid}) on node {node}"


def _step(
    action: str, summary: str, actual: Actual, data: dict[str, Any] | None = None, *, timeout: int | None = None
) -> Step:
    path = (*actual.path, "status", action)
    return Step(action, summary, "POST", path, data or {}, timeout=timeout)


class _Steps:
    """Steps on the node where the VM is by then."""

    def __init__(self, desired: Desired, actual: Actual, label: str) -> None:
        self.base = ("nodes", desired.node or actual.node, "qemu", actual.vmid)
        self.label = label

    def power(
        self, action: str, summary: str, data: dict[str, Any] | None = None, *, timeout: int | None = None
    ) -> Step:
        return Step(action, summary, "POST", (*self.base, "status", action), data or {}, timeout=timeout)

    def convert(self) -> Step:
        return Step("template", f"Convert {self.label} into a template", "POST", (*self.base, "template"))
