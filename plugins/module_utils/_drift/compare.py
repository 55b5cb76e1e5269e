# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One VM as the estate describes it beside the VM as it is, from the plan of module vms (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.errors import (
    AuthenticationError,
    FleetError,
    NetworkError,
    NodeUnhealthy,
    PermissionDenied,
)
from .._fleet.plan import Planned
from .._vm.config.view import show
from .._vm.model import Actual, Desired
from .._vm.run import VmPlan
from .model import DRIFTED, IN_SYNC, MISSING, PENDING, UNKNOWN, UNWANTED, Compared, Difference

# Errors that say nothing about the VM itself: what it is like cannot be known.
_BLIND = (
    NetworkError,
    NodeUnhealthy,
    AuthenticationError,
    PermissionDenied,
)
# An action that a state asks for in every run. It is not a difference.
_ACTION = "restarted"
# Parts of a diff that are not options of the configuration.
_BESIDE = frozenset(("node", "pool", "status", "cloud_init_drive", "vmid"))


def compare(planned: Planned) -> Compared:
    """Return what differs of a VM."""
    found = _identity(planned)
    vm_plan = planned.vm_plan
    if planned.error is not None:
        found.status = _status_of_error(planned, planned.error)
        found.reason = planned.error.message
    elif vm_plan is not None:
        found.steps = vm_plan.plan.summaries
        _add_plan(found, planned.item.desired, vm_plan)
    return found


def seems_gone(planned: Planned, found: Compared) -> bool:
    """Return whether a VM was not found: one that is missing, or one that is to be absent."""
    if found.status == MISSING:
        return True
    is_absent = planned.item.desired.state == "absent"
    return is_absent and found.status == IN_SYNC


def _identity(planned: Planned) -> Compared:
    """Return which VM it is, with its number and node where it exists."""
    desired = planned.item.desired
    found = Compared(
        name=desired.name or "",
        tenant=desired.tenant or "",
        site=planned.item.site,
        vmid=desired.vmid,
    )
    if planned.found is not None:
        found.vmid = planned.found.vmid
        found.node = planned.found.node
        found.name = found.name or planned.found.own_name
    return found


def _status_of_error(planned: Planned, error: FleetError) -> str:
    """Return missing for a VM that is not there and cannot be created either, else unknown."""
    if planned.found is not None:
        return UNKNOWN
    if isinstance(error, _BLIND):
        return UNKNOWN
    if planned.item.desired.state == "absent":
        return UNKNOWN
    return MISSING


def _add_plan(found: Compared, desired: Desired, vm_plan: VmPlan) -> None:
    """Add status and options of a VM that has a plan."""
    actual = vm_plan.actual
    if vm_plan.draft is not None:
        found.status = MISSING
        return
    if actual is None:
        found.status = IN_SYNC
        return
    found.vmid = actual.vmid
    found.node = actual.node
    if desired.state == "absent":
        found.status = UNWANTED
        return
    found.options = _differences(desired, vm_plan, actual)
    found.status = status_of(found.options)
    acts = _ACTION in vm_plan.plan.after
    if not found.options and vm_plan.plan.changed and not acts:
        found.status = DRIFTED


def status_of(options: list[Difference]) -> str:
    """Return the status of a VM with these differences."""
    if not options:
        return IN_SYNC
    if all(option.only_waits for option in options):
        return PENDING
    return DRIFTED


def is_unfinished(planned: Planned) -> bool:
    """Return whether a VM exists that a run did not finish making."""
    vm_plan = planned.vm_plan
    if vm_plan is None or vm_plan.actual is None:
        return False
    return vm_plan.actual.marker.building


def _differences(desired: Desired, vm_plan: VmPlan, actual: Actual) -> list[Difference]:
    """Return wanted, actual and pending value of each option that differs, sorted by option."""
    plan = vm_plan.plan
    changed = {*plan.before, *plan.after} - {_ACTION}
    target = show(actual.target)
    live = target
    if actual.running:
        live = show(actual.live)
    waiting = _differing(live, target)
    found: list[Difference] = []
    for key in sorted(changed | (waiting & _named(desired))):
        wanted = target.get(key)
        if key in changed:
            wanted = plan.after.get(key)
        actually = live.get(key)
        if key in _BESIDE:
            actually = plan.before.get(key)
        pending = None
        if key in waiting:
            pending = {"value": target.get(key)}
        found.append(Difference(key, wanted, actually, pending))
    return found


def _differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> set[str]:
    """Return the keys whose values differ."""
    keys = first.keys() | second.keys()
    return {key for key in keys if first.get(key) != second.get(key)}


def _named(desired: Desired) -> set[str]:
    """Return the options of PVE that the estate names for a VM."""
    named = {
        *desired.scalars,
        *desired.property_strings,
        *desired.unset,
    }
    named.update(disk.slot for disk in desired.disks)
    beside = {
        "tags": desired.tags,
        "description": desired.description,
    }
    named.update(key for key, value in beside.items() if value is not None)
    return named
