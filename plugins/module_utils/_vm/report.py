# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result of one VM's run: the VM, the plan, what was done, what waits for a stop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .._core.result import Result
from .._resource.plan import Plan
from .._resource.result import result_of
from .context import RunContext
from .describe import conditions, describe
from .live.guest import NO_GUEST_REPORT, guest_report, read_addresses, wait_for_guest
from .model import Actual

# How the warning ends that names options which a running VM takes over later.
WAITS_FOR_STOP = "will be applied at its next stop or reboot"
# What a diff shows beside the options of the VM's configuration.
_NO_OPTIONS = frozenset(("vmid", "node", "pool", "status", "restarted", "cloud_init_drive"))


def report(
    context: RunContext,
    plan: Plan,
    actual: Actual | None,
    *,
    done: list[str],
    warnings: list[str] | None = None,
    node: str | None = None,
    vmid: int | None = None,
) -> Result:
    """Return what the module reports.

    The diff is the plan's, in check mode and after applying it.
    """
    vm: dict[str, Any] | None = None
    if actual is not None:
        url = context.client.connection.endpoint.web
        vm = describe(
            actual, prefix=context.desired.tenant_prefix, url=url, guest=_ask_guest(context, actual)
        )
    elif vmid is not None:
        vm = {"vmid": vmid, "node": node, "name": context.desired.name}
    notes = [*context.desired.advice, *plan.warnings, *(warnings or [])]
    if context.check_mode and plan.changed:
        notes += context.doubts
    if plan.pending and not context.check_mode and actual is not None:
        notes.append(f"{actual.label}: {', '.join(plan.pending)} {WAITS_FOR_STOP}")
    values = {
        "vm": vm,
        "applied": sorted(_config_keys(plan) - set(plan.pending)) if vm is not None else [],
        "pending": list(plan.pending),
        "needs_reboot": bool(plan.pending),
        "conditions": conditions(actual, plan, applied=not context.check_mode),
        "placement": context.choice.as_dict() if context.choice is not None else None,
    }
    result = result_of(plan, values, done=done, header=context.desired.label)
    return replace(result, warnings=tuple(notes))


def _config_keys(plan: Plan) -> set[str]:
    """Return the options of the VM's configuration that the plan changes."""
    return {*plan.before, *plan.after} - _NO_OPTIONS


def _ask_guest(context: RunContext, actual: Actual) -> Mapping[str, Any]:
    """Return what the guest tells, after waiting for it where that is asked for.

    Check mode does not wait.
    """
    request = context.settings.guest
    if not request.asks:
        return NO_GUEST_REPORT
    if context.check_mode or actual.status != "running":
        return guest_report(actual, *read_addresses(context.client, actual), request.rule)
    return wait_for_guest(context.client, actual, request)
