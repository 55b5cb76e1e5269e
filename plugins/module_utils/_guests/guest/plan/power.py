# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that bring a VM to the desired power state (pure).

A VM is running, paused (its CPUs stand still), hibernated (its memory is on disk, PVE's lock is
"suspended"), stopped, or has another status of QEMU. Two states are actions that every run repeats:
restarted and reset.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from ...._foundation.core.errors import Conflict, ValidationFailed
from ...._foundation.resource.plan import Step
from ...kinds.model import Actual, Guest

# The status of a VM in each desired state; a state that is missing here does not change the power.
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
# States that a VM can only reach from running (PVE: VM 300 not running).
_NEED_RUNNING = frozenset(("resumed", "reset", "paused", "hibernated"))
_OF_TEMPLATES = frozenset(("present", "stopped", "template"))
# The states that also create a VM.
CREATING = frozenset(("present", "started", "stopped", "template"))
OFF = frozenset(("stopped", "hibernated"))
_STOPS = frozenset(("stop", "shutdown"))
# Seconds that PVE may take for a stop, and for a hibernation.
_STOP_TIMEOUT = 120
_HIBERNATE_TIMEOUT = 600


def require_possible_state(desired: Guest, actual: Actual | None) -> None:
    """Raise if a VM cannot reach the desired state: a template does not run, for example."""
    if actual is None:
        if desired.state not in CREATING:
            raise ValidationFailed(
                f"{desired.label} could not become {desired.state}: there is no such VM",
                "Create it first, with state=present or state=started",
                "unknown VM",
            )
        return
    attempted = f"{actual.label} could not become {desired.state}"
    suits_template = desired.state in _OF_TEMPLATES
    if actual.template and not suits_template:
        raise Conflict(
            f"{attempted}: it is a template", "Clone it, and start the clone", "template"
        )
    if desired.state in _NEED_RUNNING and _is_off(desired, actual):
        raise Conflict(
            f"{attempted}: it is {actual.status}",
            "Start it first, with state=started",
            "not running",
        )


def _is_off(desired: Guest, actual: Actual) -> bool:
    """Return whether the VM counts as off: it cannot be resumed, or stay hibernated."""
    if actual.status == "hibernated":
        return desired.state in ("paused", "reset")
    return actual.status == "stopped"


def stops_first(desired: Guest, actual: Actual) -> bool:
    """Return whether the VM is stopped first, so that all changes are applied at once."""
    return actual.running and desired.state in ("stopped", "template")


def stop(actual: Actual, desired: Guest, *, hard: bool = False) -> Step:
    """Return the step that stops a running VM: a shutdown with a deadline, or a stop at once. PVE
    does not shut down a paused VM.
    """
    is_patient = desired.shutdown_timeout > 0
    can_answer = actual.status == "running"
    if hard or not (is_patient and can_answer):
        return _power(actual, "stop", f"Stop {actual.label}", timeout=_STOP_TIMEOUT)
    data: dict[str, Any] = {"timeout": desired.shutdown_timeout}
    if desired.force:
        data["forceStop"] = 1
    timeout = desired.shutdown_timeout + 60
    return _power(actual, "shutdown", f"Shut down {actual.label}", data, timeout=timeout)


def will_start(desired: Guest) -> bool:
    """Return whether a hibernated VM is started."""
    return desired.state in ("started", "restarted", "resumed")


def wake(actual: Actual) -> Step:
    """Return the step that starts a VM on its node."""
    return _power(actual, "start", f"Start {actual.label}")


def reboots(desired: Guest, *, waiting: bool) -> bool:
    """Return whether the plan ends with a restart of a running VM."""
    if desired.state == "restarted":
        return True
    if desired.state not in ("present", "started", "resumed"):
        return False
    if desired.reboot == "if_needed":
        return waiting
    return desired.reboot == "always"


def is_restart(steps: Collection[Step]) -> bool:
    """Return whether the steps restart a VM: by PVE's reboot, or by a stop and a start."""
    actions = [step.action for step in steps]
    if "reboot" in actions:
        return True
    ends_with_start = actions[-1:] == ["start"]
    return ends_with_start and not _STOPS.isdisjoint(actions)


def is_stopped_by(steps: Collection[Step], done: Collection[Step], current: Actual) -> bool:
    """Return whether a forced restart has already stopped the VM: it must not be stopped again."""
    planned = {step.action for step in steps}
    is_by_pve = "reboot" in planned
    if is_by_pve or not is_restart(steps):
        return False
    if not current.running:
        return True
    finished = {step.action for step in done}
    return not _STOPS.isdisjoint(finished)


def after_stop(desired: Guest) -> Guest:
    """Return the desired VM after the stop of a forced restart: only the start is left."""
    return replace(desired, state="started", reboot="never")


def finish(
    desired: Guest,
    actual: Actual,
    *,
    running: bool,
    waiting: bool,
    unconverted: Collection[str] = (),
) -> list[Step]:
    """Return the power steps, which follow all others.

    `running` is whether the VM runs until then, `waiting` whether changes wait for a stop,
    `unconverted` are the disks of a template that are not base volumes yet.
    """
    actual = replace(actual, node=desired.node or actual.node)
    if desired.state == "template":
        if actual.template:
            return [_convert(actual, slot) for slot in unconverted]
        return [_convert(actual)]
    if running and reboots(desired, waiting=waiting):
        return _restart(actual, desired)
    if running:
        return _switch(actual, desired.state)
    return [wake(actual)] if will_start(desired) else []


def status_after(desired: Guest, actual: Actual) -> str:
    """Return the power state after the plan."""
    is_hibernated = actual.status == "hibernated"
    if is_hibernated and desired.state == "stopped":
        return "hibernated"  # it is off, and keeps its memory on disk
    return _AFTER.get(desired.state, actual.status)


def _power(
    actual: Actual,
    action: str,
    summary: str,
    data: dict[str, Any] | None = None,
    *,
    timeout: int | None = None,
) -> Step:
    path = (*actual.path, "status", action)
    return Step(action, summary, method="POST", path=path, data=data or {}, timeout=timeout)


def _restart(actual: Actual, desired: Guest) -> list[Step]:
    """Return the steps that restart the VM and so apply the options that wait for a stop.

    PVE's reboot cannot be forced (qemu-server, API2/Qemu.pm: vm_reboot has no forceStop and refuses
    a paused VM). A forced restart is therefore a stop and a start; without force, a paused VM is
    resumed first.
    """
    if desired.force or desired.shutdown_timeout == 0:
        return [stop(actual, desired), wake(actual)]
    data = {"timeout": desired.shutdown_timeout}
    timeout = desired.shutdown_timeout + 120
    reboot = _power(actual, "reboot", f"Reboot {actual.label}", data, timeout=timeout)
    if actual.status == "running":
        return [reboot]
    return [_power(actual, "resume", f"Resume {actual.label}"), reboot]


def _switch(actual: Actual, state: str) -> list[Step]:
    """Return the step that brings a running VM to a state; no step if it has that state."""
    label = actual.label
    if state == "reset":
        return [_power(actual, "reset", f"Reset {label}")]
    if state == "hibernated":
        data, timeout = {"todisk": 1}, _HIBERNATE_TIMEOUT
        return [_power(actual, "suspend", f"Hibernate {label}", data, timeout=timeout)]
    if state == "paused" and actual.status != "paused":
        return [_power(actual, "suspend", f"Pause {label}")]
    if state in ("started", "resumed") and actual.status != "running":
        return [_power(actual, "resume", f"Resume {label}")]
    return []


def _convert(actual: Actual, disk: str = "") -> Step:
    """Return the final step that converts the VM, or one disk of a template; reread first."""
    summary = f"Convert {actual.label} into a template"
    data: dict[str, Any] = {}
    if disk:
        summary = f"Convert {disk} of {actual.label} into a base volume"
        data = {"disk": disk}
    return Step(
        "template",
        summary,
        method="POST",
        path=(*actual.path, "template"),
        data=data,
        is_task=actual.kind.template_is_task,
        reread=bool(disk),
    )
