# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How new VMs differ from other new guests: their uuid, and their copies of drives (pure)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..._guest.config.change import Change
from ..._guest.flow.placed import Placed
from ..._guest.model import Actual
from ..._guest.plan import creation as creations
from ..._guest.plan.creation import LIVE, Creation, Restore
from ..._resource.plan import Plan
from ..._schema.formats import parse_option, render_option
from ..model import DesiredVm
from .clone import archived_vm
from .new import Aim
from .origin import Origin
from .update import VM_PLANNER


def plan_create(desired: DesiredVm, change: Change, creation: Creation) -> Plan:
    """Return the plan that creates a VM that is not a clone, with a uuid that this run chose."""
    data = {"smbios1": _with_uuid(change.sets.get("smbios1", ""), creation.identity)}
    return creations.plan_create(VM_PLANNER, desired, change, creation, data)


def _with_uuid(smbios: str, identity: str) -> str:
    """Return the option smbios1 with that uuid; a desired one is written when the VM is made."""
    values = parse_option("smbios1", smbios)
    values["uuid"] = identity
    return render_option("smbios1", values)


def plan_clone(
    desired: DesiredVm, source: Actual, creation: Creation, *, full: bool, shared: Collection[str]
) -> Plan:
    """Return the plan that clones `source` and makes the clone the desired VM."""
    return creations.plan_clone(VM_PLANNER, desired, source, creation, full=full, shared=shared)


def plan_restore(desired: DesiredVm, origin: Origin, creation: Creation) -> Plan:
    """Return the plan that restores a VM from an archive, with a uuid and MACs of its own."""
    data: dict[str, Any] = {"archive": origin.volume, "unique": 1}
    if origin.storage:
        data["storage"] = origin.storage
    if desired.guest.source is not None and desired.guest.source.live:
        data[LIVE] = 1
    restore = Restore(origin.volume, data)
    source = archived_vm(origin.config, creation.node)
    return creations.plan_restore(VM_PLANNER, desired, source, creation, restore)


def plan_creation(placed: Placed[Aim], creation: Creation) -> Plan:
    """Return the plan that makes a new VM which has its node and its number."""
    desired, origin = placed.aim.desired, placed.aim.origin
    if origin.archived is not None:
        return plan_restore(desired, origin, creation)
    if origin.template is None:
        return plan_create(desired, placed.change, creation)
    return plan_clone(desired, origin.template, creation, full=origin.full, shared=placed.shared)
