# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disarms the HA manager and arms it again (pve-ha-manager: PVE/API2/HA/Status.pm).

A call only queues a command. The HA manager carries it out in its next round, some 10 s later, and
ignores a command whose state it already has (PVE/HA/Manager.pm, update_crm_commands). So a second
call does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.core import validate
from ...._foundation.core.errors import (
    ApiError,
    Conflict,
    FleetError,
    TaskTimeout,
    ValidationFailed,
)
from ...._foundation.core.result import Result
from ...._foundation.resource.engine import Execution, result_of
from ...._foundation.resource.manage import Hooks, manage
from ...._foundation.resource.plan import Plan, Step

ARMED, DISARMED = "armed", "disarmed"
_REACHED = {ARMED: (ARMED, "standby"), DISARMED: (DISARMED,)}
_ON_THE_WAY = (DISARMED, "disarming")
_SINCE = (9, 2)
_BEFORE = "Set request_state=ignored of each HA resource: pve.fleet.ha_resource"
_STATUS = ("cluster", "ha", "status")
_NOT_CHANGED = "The HA manager was not {}"


@dataclass(frozen=True)
class HaArmingState:
    """Whether the HA manager is armed; `mode` is the resource mode of a disarmed one."""

    state: str
    mode: str = ""

    def reaches(self, wanted: HaArmingState) -> bool:
        """Return whether this state is the desired one; an armed manager may be in standby."""
        return self.state in _REACHED[wanted.state] and self.mode == wanted.mode

    def as_dict(self) -> dict[str, Any]:
        """Return the state in the form of results."""
        return {"armed_state": self.state, "resource_mode": self.mode or None}


def run(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Arm or disarm the HA manager and wait until it is; check mode writes nothing."""
    desired = read_desired(params)
    timeout = validate.count(params.get("wait_timeout"), 300, "wait_timeout")
    attempted = _NOT_CHANGED.format(desired.state)
    validate.require_since(_SINCE, client.version(), attempted, "this", _BEFORE)

    def report(plan: Plan, actual: HaArmingState, execution: Execution | None) -> Result:
        if execution is None:
            reported = desired if plan.changed else actual
            return result_of(plan, {"ha_state": reported.as_dict()})
        planned = plan if execution.done else Plan()  # else another run has sent the command
        return result_of(planned, {"ha_state": actual.as_dict()}, execution)

    def is_final(actual: HaArmingState) -> bool:
        if actual.reaches(desired):
            return True
        if desired.state == DISARMED and actual.state in _ON_THE_WAY:
            _require_mode(desired, actual)
        return False

    def timed_out(actual: HaArmingState) -> FleetError:
        return TaskTimeout(
            f"Timed out after {timeout} s waiting until the HA manager is {desired.state}: it is "
            f"{actual.state}",
            "A guest that moves or a fenced node delays it: read cluster_info, and run this again",
            "HA manager",
        )

    hooks = Hooks[HaArmingState](timeout, (), is_final, timed_out)
    plan = partial(build_plan, desired)
    read = partial(read_arming, client)
    return manage(client, read, plan, report, check_mode=check_mode, hooks=hooks)


def read_desired(params: Mapping[str, Any]) -> HaArmingState:
    """Return the desired state (pure). Raises ValidationFailed for a mode of an armed manager."""
    state, mode = params["armed_state"], params.get("resource_mode") or ""
    if state == ARMED and mode:
        raise ValidationFailed(
            "resource_mode was refused: it is about resources while the HA manager is disarmed",
            "Leave out resource_mode, or set armed_state=disarmed",
            "resource_mode",
        )
    return HaArmingState(state, mode)


def read_arming(client: Api) -> HaArmingState:
    """Return the present state; one request."""
    rows = client.get(*_STATUS, "current", attempted="Could not read the state of the HA manager")
    return arming_of(rows or [])


def arming_of(rows: Iterable[Mapping[str, Any]]) -> HaArmingState:
    """Return the state from the rows of `status/current` (pure). Raises ApiError if none has it."""
    for row in rows:
        if row.get("type") == "fencing" and row.get("armed-state"):
            return HaArmingState(row["armed-state"], row.get("resource_mode") or "")
    raise ApiError(
        "Could not read the state of the HA manager: Proxmox VE does not return whether it is "
        "armed",
        "Look at the HA panel of the datacenter",
        "armed-state",
    )


def build_plan(desired: HaArmingState, actual: HaArmingState) -> Plan:
    """Return the command that is needed (pure).

    Raises Conflict if the HA manager is disarmed with another mode: it would ignore the command.
    """
    is_disarmed = actual.state in _ON_THE_WAY
    if desired.state == ARMED:
        steps = (_step("Arm the HA manager", "arm-ha"),) if is_disarmed else ()
    elif is_disarmed:
        _require_mode(desired, actual)
        steps = ()
    else:
        summary = f"Disarm the HA manager with resource mode {desired.mode}"
        steps = (_step(summary, "disarm-ha", {"resource-mode": desired.mode}),)
    if not steps:
        return Plan()
    return Plan(steps, actual.as_dict(), desired.as_dict())


def _step(summary: str, call: str, data: Mapping[str, Any] | None = None) -> Step:
    return Step(call, summary, "POST", (*_STATUS, call), data or {}, is_task=False)


def _require_mode(desired: HaArmingState, actual: HaArmingState) -> None:
    if actual.mode != desired.mode:
        raise Conflict(
            f"The resource mode of the HA manager was not changed: it is {actual.state} with "
            f"resource mode {actual.mode}, and Proxmox VE ignores another mode until it is armed",
            "Set armed_state=armed first, which lets nodes be fenced again",
            "resource mode",
        )
