# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compares one guest of the estate with the real one, from the plan of module vms (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._foundation.cluster.state import ClusterState
from ..._foundation.core.errors import (
    AuthenticationError,
    BeingRestored,
    FleetError,
    NetworkError,
    NodeUnhealthy,
    PermissionDenied,
    RestoreFailed,
)
from ..._guests.fleet.backup_jobs import declared_guest
from ..._guests.fleet.plan import PlannedGuest
from ..._guests.guest.flow.flow import GuestPlan
from ..._guests.guest.plan.origin import find_hidden_source, find_older_image, require_origin
from ..._guests.kinds.hardware import DesiredGuest
from ..._guests.kinds.model import Actual
from ..._guests.kinds.words import kind_name
from ..._protection.backup.job.declared import Jobs, difference
from .model import (
    DRIFTED,
    IN_SYNC,
    MISSING,
    OUTDATED,
    PENDING,
    SOURCE,
    UNKNOWN,
    UNWANTED,
    ComparedGuest,
    OptionDifference,
)

# Errors that leave the state of a VM or a resource unknown.
BLIND = (
    NetworkError,
    NodeUnhealthy,
    AuthenticationError,
    PermissionDenied,
    BeingRestored,
    RestoreFailed,
)
# An action that a desired state requires in every run. It is not a difference.
_ACTION = "restarted"
# Statuses of VMs that were read and should exist.
_COMPARED = frozenset((DRIFTED, PENDING, IN_SYNC))
# Parts of a diff that are not options of the configuration.
_BESIDE = frozenset(("node", "pool", "status", "cloud_init_drive", "vmid"))


def compare(planned: PlannedGuest, cluster: ClusterState | None = None) -> ComparedGuest:
    """Return the differences of a VM. `cluster` contains the templates that sources name."""
    desired = planned.item.desired
    found = ComparedGuest(
        name=desired.guest.name or "",
        tenant=desired.guest.tenant or "",
        site=planned.item.site,
        kind=kind_name(planned.item.kind.kind.type),
        vmid=desired.guest.vmid,
    )
    if planned.found is not None:
        found.vmid = planned.found.vmid
        found.node = planned.found.node
        found.name = found.name or planned.found.own_name
    vm_plan = planned.vm_plan
    if planned.error is not None:
        found.status = _status_of_error(planned, planned.error)
        found.reason = planned.error.message
        if cluster is not None:
            _add_refused(found, planned, planned.error, cluster)
    elif vm_plan is not None:
        found.steps = vm_plan.plan.summaries
        _add_plan(found, planned.item.desired, vm_plan)
    if cluster is not None and found.status in _COMPARED:
        _add_image(found, planned, cluster)
        source = planned.item.desired.guest.source
        hidden = find_hidden_source(source, planned.actual, cluster) if planned.actual else None
        found.reason = found.reason or (hidden and f"its {hidden}")
    return found


def _add_refused(
    found: ComparedGuest, planned: PlannedGuest, error: FleetError, cluster: ClusterState
) -> None:
    """Add the differences of a VM that a run would refuse to change, for the reason in `error`.

    Nothing is added if the VMID belongs to a VM with another name or source than in the estate.
    """
    desired, actual = planned.item.desired, planned.refused
    if actual is None or desired.guest.state == "absent" or isinstance(error, BLIND):
        return
    try:
        require_origin(desired.guest, actual, cluster)
        before, after = planned.item.kind.flow.planner.differences(desired, actual)
    except FleetError:
        return
    options = _differences(desired, actual, before, after)
    if options:
        found.options = options
        found.status = DRIFTED


def _add_image(found: ComparedGuest, planned: PlannedGuest, cluster: ClusterState) -> None:
    """Add the template of a VM if its source now names another template."""
    actual = planned.actual or planned.refused
    if actual is None:
        return
    older = find_older_image(planned.item.desired.guest.source, actual, cluster)
    if older is None:
        return
    found.options.append(OptionDifference(SOURCE, older.wanted, older.actual, None))
    found.options.sort(key=lambda option: option.option)
    if found.status == IN_SYNC:
        found.status = OUTDATED


def add_backup(found: ComparedGuest, planned: PlannedGuest, jobs: Jobs | FleetError) -> None:
    """Add the difference between the declared and the actual backup jobs of an existing guest.

    `jobs` is an error if they cannot be read; the status is then C(unknown).
    """
    guest = declared_guest(planned, found.vmid)
    if guest is None or found.status not in (*_COMPARED, OUTDATED):
        return
    if isinstance(jobs, FleetError):
        found.status, found.reason = UNKNOWN, jobs.message
        return
    values = difference(guest, jobs)
    if values is not None:
        found.options.append(OptionDifference("backup", *values, None))
        found.options.sort(key=lambda option: option.option)
        found.status = DRIFTED


def seems_gone(planned: PlannedGuest, found: ComparedGuest) -> bool:
    """Return whether a VM was not found: it is missing, or it is absent as desired."""
    if found.status == MISSING:
        return True
    is_absent = planned.item.desired.guest.state == "absent"
    return is_absent and found.status == IN_SYNC


def _status_of_error(planned: PlannedGuest, error: FleetError) -> str:
    """Return C(missing) for a VM that does not exist and cannot be created, else C(unknown)."""
    is_absent = planned.item.desired.guest.state == "absent"
    if planned.found is not None or is_absent or isinstance(error, BLIND):
        return UNKNOWN
    return MISSING


def _add_plan(found: ComparedGuest, desired: DesiredGuest, vm_plan: GuestPlan[Any]) -> None:
    """Add status and options of a VM that has a plan."""
    actual = vm_plan.actual
    if vm_plan.new is not None:
        found.status = MISSING
        return
    if actual is None:
        found.status = IN_SYNC
        return
    found.vmid = actual.vmid
    found.node = actual.node
    if desired.guest.state == "absent":
        found.status = UNWANTED
        return
    plan = vm_plan.plan
    found.options = _differences(desired, actual, plan.before, plan.after)
    found.status = status_of(found.options)
    acts = _ACTION in vm_plan.plan.after
    if not found.options and vm_plan.plan.changed and not acts:
        found.status = DRIFTED


def status_of(options: list[OptionDifference]) -> str:
    """Return the status of a VM with these differences."""
    own = [option for option in options if option.option != SOURCE]
    if not options:
        return IN_SYNC
    if not own:
        return OUTDATED
    if all(option.only_waits for option in own):
        return PENDING
    return DRIFTED


def has_creation_marker(planned: PlannedGuest) -> bool:
    """Return whether the VM exists, but a run did not finish its creation."""
    vm_plan = planned.vm_plan
    if vm_plan is None or vm_plan.actual is None:
        return False
    return vm_plan.actual.marker.building


def _differences(
    desired: DesiredGuest, actual: Actual, before: Mapping[str, Any], after: Mapping[str, Any]
) -> list[OptionDifference]:
    """Return wanted, actual and pending value of each option that differs, sorted by option.

    `before` and `after` are the values that a run would change.
    """
    changed = {*before, *after} - {_ACTION}
    target = actual.kind.formatted(actual.target)
    live = actual.kind.formatted(actual.live) if actual.running else target
    keys = live.keys() | target.keys()
    waiting = {key for key in keys if live.get(key) != target.get(key)}
    found: list[OptionDifference] = []
    for key in sorted(changed | (waiting & _named(desired))):
        wanted = after.get(key) if key in changed else target.get(key)
        actually = before.get(key) if key in _BESIDE else live.get(key)
        pending = {"value": target.get(key)} if key in waiting else None
        found.append(OptionDifference(key, wanted, actually, pending))
    return found


def _named(desired: DesiredGuest) -> set[str]:
    """Return the options of PVE that the estate names for a VM."""
    named = {*desired.hardware.scalars, *desired.hardware.property_strings, *desired.hardware.unset}
    named.update(disk.slot for disk in desired.hardware.disks)
    beside = {"tags": desired.guest.tags, "description": desired.guest.description}
    named.update(key for key, value in beside.items() if value is not None)
    return named
