# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The removal of a guest, refused if it is protected or has another name (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...._foundation.core.errors import Conflict
from ...._foundation.resource.plan import Plan, Step
from ...kinds.hardware import DesiredGuest
from ...kinds.model import Actual, Guest
from ..live.linked_clones import LinkedClones, require_no_clones
from ..plan import power
from .steps import switch_protection

# Removes the guest from jobs and rules, and volumes that its configuration does not name.
PURGE: Mapping[str, int] = {"purge": 1, "destroy-unreferenced-disks": 1}


def require_named_so(desired: Guest, actual: Actual) -> None:
    """Raise Conflict if the name of a guest to remove differs from the name in the task.

    VMIDs are reused, and a removal cannot be undone.
    """
    name = desired.name
    if not name or name == actual.name:
        return
    noun = actual.kind.noun
    raise Conflict(
        f"{noun[0].upper()}{noun[1:]} {actual.vmid} was not removed: it is '{actual.name}' and "
        f"not '{name}'",
        f"Name the {noun} you mean by its vmid or its name alone",
        "name differs",
    )


def plan_removal(desired: DesiredGuest, actual: Actual, clones: LinkedClones) -> Plan:
    """Return the plan that removes a guest. Raises Conflict for the template of other guests."""
    plan = plan_absent(desired, actual)
    require_no_clones(desired.guest, actual, clones)
    return replace(plan, warnings=(*plan.warnings, *clones.warnings))


def plan_absent(desired: DesiredGuest, actual: Actual) -> Plan:
    """Return the plan that removes a guest with its disks. Raises Conflict for a protected one."""
    steps: list[Step] = []
    if actual.live.get("protection") == "1":
        if desired.hardware.scalars.get("protection") != "0":
            raise Conflict(
                f"{actual.label} was not removed: it is protected",
                "Set protection=false in the same task to lift the protection",
                "protected",
            )
        steps.append(switch_protection(actual, "0"))
    if actual.running:
        steps.append(power.stop(actual, desired.guest, hard=not desired.guest.graceful))
    summary = f"Remove {actual.label} and its disks"
    destroy = Step("destroy", summary, method="DELETE", path=actual.path, data=dict(PURGE))
    steps.append(destroy)
    before = actual.kind.formatted(actual.target)
    before["vmid"] = actual.vmid
    before["node"] = actual.node
    before["status"] = actual.status
    return Plan(tuple(steps), before, {})
