# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result of one guest's run: the guest, the plan, the finished steps, options that wait for a
stop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...._foundation.core.result import Result
from ...._foundation.core.times import iso
from ...._foundation.resource.execute import Execution
from ...._foundation.resource.plan import Plan
from ...._foundation.resource.result import result_of
from ...kinds.hardware import AnyDesired
from ...kinds.model import Actual
from ..context import RunContext
from ..describe import NO_GUEST_REPORT, PENDING, WAITS_FOR_STOP, conditions, describe
from .flow import GuestFlow

# Keys of a diff beside the options of the guest's configuration.
_NO_OPTIONS = frozenset(("vmid", "node", "pool", "status", "restarted", "cloud_init_drive"))


def report(
    flow: GuestFlow[AnyDesired],
    context: RunContext[AnyDesired],
    plan: Plan,
    actual: Actual | None,
    *,
    done: list[str],
    new: tuple[int, str] | None = None,
) -> Result:
    """Return the result of the module.

    The diff is the plan's, in check mode and after applying it. `new` is the VMID and the node
    of a guest that does not exist yet.
    """
    described: dict[str, Any] | None = None
    if actual is not None:
        url = context.client.connection.endpoint.web
        described = describe(
            actual,
            checked=context.client.clock.time(),
            prefix=context.desired.guest.tenant_prefix,
            url=url,
            guest=_query_guest(flow, context, actual),
        )
    elif new is not None:
        vmid, node = new
        described = {
            "vmid": vmid,
            "node": node,
            "name": context.desired.guest.name,
            "phase": PENDING,
        }
        described["checked"] = iso(context.client.clock.time())
    notes = [*context.desired.advice, *plan.warnings]
    if context.check_mode and plan.changed:
        notes += context.unverified
    if plan.pending and not context.check_mode and actual is not None:
        notes.append(f"{actual.label}: {', '.join(plan.pending)} {WAITS_FOR_STOP}")
    applied = {*plan.before, *plan.after} - _NO_OPTIONS - set(plan.pending)
    values = {
        flow.key: described,
        "applied": sorted(applied) if described is not None else [],
        "pending": list(plan.pending),
        "needs_reboot": bool(plan.pending),
        "conditions": conditions(actual, plan, applied=not context.check_mode),
        "placement": context.choice.as_dict() if context.choice is not None else None,
    }
    execution = Execution(tuple(done))
    result = result_of(plan, values, execution, header=context.desired.guest.label)
    return replace(result, warnings=tuple(notes))


def _query_guest(
    flow: GuestFlow[AnyDesired], context: RunContext[AnyDesired], actual: Actual
) -> Mapping[str, Any]:
    """Return the report of the guest if it is requested."""
    if not context.settings.guest.needs_agent:
        return NO_GUEST_REPORT
    return flow.guest_report(context, actual)
