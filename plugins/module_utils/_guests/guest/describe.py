# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The `vm` value that modules return, the conditions, and the result of a run for one guest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from ..._foundation.cluster.state import VmRow
from ..._foundation.cluster.tenant import parse_tags, tenants_of
from ..._foundation.core.errors import FleetError
from ..._foundation.core.result import Result
from ..._foundation.core.times import iso
from ..._foundation.resource.engine import Execution, result_of
from ..._foundation.resource.plan import Plan
from ..kinds.hardware import AnyDesired
from ..kinds.kind import Kind
from ..kinds.marker import split_notes
from ..kinds.model import Actual
from ..kinds.move import describe_move
from .context import RunContext
from .flow.flow import GuestFlow

# A VM with any other status of QEMU is on.
_POWER = {
    "stopped": "off",
    "hibernated": "suspended",
    "paused": "suspended",
    "suspended": "suspended",
}


# States of QEMU in which a guest does not continue by itself (qapi/run-state.json).
_BROKEN = frozenset(("internal-error", "io-error", "guest-panicked"))
_PHASES = {"on": "Running", "off": "Stopped", "suspended": "Stopped"}
_CREATING_LOCKS = frozenset(("clone", "create"))
PENDING = "Pending"
# The end of the warning about options that a running guest applies later.
WAITS_FOR_STOP = "will be applied at its next stop or reboot"

# The report if the guest was not asked.
NO_GUEST_REPORT: Mapping[str, Any] = {
    "addresses": None,
    "address": None,
    "address_source": None,
    "agent_problem": None,
}
_CONDITIONS = ("Ready", "VMCreated", "ResourcesAllocated", "NetworkConfigured")


def describe(
    actual: Actual,
    *,
    checked: float = 0.0,
    prefix: str = "tenant_",
    url: str = "",
    guest: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a VM as modules report it: its name, node and state, and its configuration in PVE's
    own keys.

    `checked` is when it was read, in seconds since the epoch; `url` is the address of the user
    interface; `guest` is the guest report.
    """
    tags = parse_tags(actual.target.get("tags", ""))
    notes, marker = split_notes(actual.target.get("description"))
    return {
        **_listed(actual.kind, actual, tags, checked=checked, prefix=prefix, url=url),
        "phase": phase(actual.status, actual.lock, creation_in_progress=marker.building),
        "description": notes,
        "cloned_from": marker.origin,
        "move": describe_move(actual.target, actual.vmid),
        "config": actual.kind.formatted(actual.target),
        "macs": actual.kind.macs_in(actual.target),
        "pending": pending_keys(actual),
        **(guest or NO_GUEST_REPORT),
    }


def pending_keys(actual: Actual) -> list[str]:
    """Return the options that a running VM applies at its next stop."""
    if not actual.running:
        return []
    keys = actual.live.keys() | actual.target.keys()
    return sorted(key for key in keys if actual.live.get(key) != actual.target.get(key))


def power_state(status: str) -> str | None:
    """Return on, off or suspended for a status of PVE or QEMU; None if it is not known yet."""
    if status in ("", "unknown"):
        return None
    return _POWER.get(status, "on")  # also for a guest with an error, or in a migration


def phase(status: str, lock: str | None, *, creation_in_progress: bool = False) -> str | None:
    """Return Creating, Running, Stopped or Error for a VM that exists; None if its status is not
    known, for example on a node that is offline.

    A VM that is only planned has the phase PENDING.
    """
    if creation_in_progress or lock in _CREATING_LOCKS:
        return "Creating"
    if status in _BROKEN:
        return "Error"
    return _PHASES.get(power_state(status) or "")


def console_url(url: str, kind: Kind, vmid: int, name: str, node: str) -> str | None:
    """Return the URL of the VM's console in the user interface."""
    if not url:
        return None
    query = {
        "console": kind.console,
        "novnc": 1,
        "vmid": vmid,
        "vmname": name,
        "node": node,
        "resize": "off",
    }
    return f"{url}/?{urlencode(query)}"


def conditions(actual: Actual | None, plan: Plan, *, applied: bool) -> list[dict[str, Any]]:
    """Return Ready, VMCreated, ResourcesAllocated and NetworkConfigured, with status and reason."""
    is_applied = applied or not plan.changed
    if actual is None:
        gone = "Removed" if is_applied else "Planned"
        return [_condition(name, False, gone) for name in _CONDITIONS]
    exists = is_applied or not any(step.action in ("create", "clone") for step in plan.steps)
    nics = {key for key in plan.pending if key.startswith("net")}
    other = set(plan.pending) - nics
    return [
        _ready(actual, plan, is_applied=is_applied),
        _condition("VMCreated", exists, "Exists" if exists else "Planned"),
        _in_sync("ResourcesAllocated", other, is_applied=is_applied),
        _in_sync("NetworkConfigured", nics, is_applied=is_applied),
    ]


def _ready(actual: Actual, plan: Plan, *, is_applied: bool) -> dict[str, Any]:
    if not is_applied:
        return _condition("Ready", False, "Planned")
    if actual.status == "running" and not plan.pending:
        return _condition("Ready", True, "Running")
    reason = "PendingChanges" if plan.pending else actual.status.capitalize()
    return _condition("Ready", False, reason)


def _in_sync(name: str, pending: set[str], *, is_applied: bool) -> dict[str, Any]:
    """Return a condition that holds if no option is pending and the plan is settled."""
    if pending:
        return _condition(name, False, "NeedsReboot")
    return _condition(name, is_applied, "InSync" if is_applied else "Planned")


def conditions_of_failure(error: FleetError) -> list[dict[str, Any]]:
    """Return the same conditions for a failed task; a status of None is unknown."""
    exists = bool(error.details.get("vm_exists")) or None
    return [
        _condition("Ready", False, error.category),
        _condition("VMCreated", exists, "Exists" if exists else error.category),
        _condition("ResourcesAllocated", None, error.category),
        _condition("NetworkConfigured", None, error.category),
    ]


def _condition(name: str, status: bool | None, reason: str) -> dict[str, Any]:
    return {"type": name, "status": status, "reason": reason}


def describe_row(
    kind: Kind, row: VmRow, *, checked: float = 0.0, prefix: str = "tenant_", url: str = ""
) -> dict[str, Any]:
    """Return a VM with the same keys from the listing alone; keys that it lacks are null."""
    return _listed(kind, row, row.tags, checked=checked, prefix=prefix, url=url)


def _listed(
    kind: Kind, row: VmRow | Actual, tags: Iterable[str], *, checked: float, prefix: str, url: str
) -> dict[str, Any]:
    """Return the keys that the listing has, with null for all others."""
    tags = sorted(tags)
    owners = tenants_of(tags, prefix)
    return {
        "vmid": row.vmid,
        "name": row.name,
        "node": row.node,
        "status": row.status,
        "power_state": power_state(row.status),
        "phase": phase(row.status, row.lock),
        "checked": iso(checked),
        "template": row.template,
        # none without a tenant, and with several
        "tenant": owners[0][len(prefix) :] if len(owners) == 1 else None,
        "tags": tags,
        "pool": row.pool or None,
        "lock": row.lock,
        "uptime": row.uptime,
        "description": None,
        "cloned_from": None,
        "move": None,
        "config": None,
        "macs": None,
        "pending": None,
        "console_url": console_url(url, kind, row.vmid, row.name, row.node),
        **NO_GUEST_REPORT,
    }


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
        guest = NO_GUEST_REPORT
        if context.settings.needs_agent:
            guest = flow.guest_report(
                context.client, actual, context.settings, waits=not context.check_mode
            )
        url = context.client.endpoint.web
        described = describe(
            actual,
            checked=context.client.clock.time(),
            prefix=context.desired.guest.tenant_prefix,
            url=url,
            guest=guest,
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
