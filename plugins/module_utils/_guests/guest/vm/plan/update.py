# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rules that only plans of VMs have: drives, hotplug, hibernation (pure)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from ....._foundation.core.errors import Conflict
from ....._foundation.resource.plan import Plan, Step
from ....._foundation.schema.formats import parse_option, render_option
from ....kinds.config.change import ConfigChange
from ....kinds.model import Actual
from ....kinds.vm.config.actual import DRIVE
from ....kinds.vm.config.changes import all_changes, with_images
from ....kinds.vm.config.hotplug import waits_for_stop
from ....kinds.vm.kind import VM
from ....kinds.vm.model import DesiredVm
from ...actual import unconverted_disks
from ...flow.intent import Source
from ...plan import power
from ...plan.creation import LIVE
from ...plan.planner import CreationOptions, GuestPlanner, require_valid_data
from .clone import clone_of, restore_storage, restored_of
from .decide import needs_of, refuse, refuse_listed
from .refusals.update import require_preconditions
from .replacement import without_replaced
from .steps import PlannedVmUpdate, boot_devices, migrate, update_steps

# Keys that PVE adds to the configuration of a VM while its memory is on disk.
_OF_HIBERNATION = frozenset("lock vmstate runningmachine runningcpu running-nets-host-mtu".split())


class VmPlanner(GuestPlanner[DesiredVm, PlannedVmUpdate]):
    """Plans VMs."""

    kind = VM
    update_type = PlannedVmUpdate
    needs_of = staticmethod(needs_of)
    refuse_listed = staticmethod(refuse_listed)
    refuse = staticmethod(refuse)
    all_changes = staticmethod(all_changes)
    with_images = staticmethod(with_images)
    clone_of = staticmethod(clone_of)
    restored = staticmethod(restored_of)
    restore_storage = staticmethod(restore_storage)
    written = staticmethod(update_steps)
    migrate = staticmethod(migrate)
    unconverted = staticmethod(unconverted_disks)
    still_desired = staticmethod(without_replaced)

    def creation_data(
        self, desired: DesiredVm, source: Source, change: ConfigChange, identity: str
    ) -> dict[str, Any]:
        """Return the uuid that this run chose, or the parameters of a restore, which gets another
        uuid and other MACs.
        """
        if source.archived is None:
            return {"smbios1": _with_uuid(change.sets.get("smbios1", ""), identity)}
        data: dict[str, Any] = {"archive": source.volume, "unique": 1}
        if source.storage:
            data["storage"] = source.storage
        if desired.guest.source is not None and desired.guest.source.live:
            data[LIVE] = 1
        return data

    def plan_change(
        self,
        desired: DesiredVm,
        actual: Actual,
        change: ConfigChange,
        *,
        shared: Collection[str] = (),
        creating: CreationOptions | None = None,
        bases: Collection[str] = (),
    ) -> Plan:
        after = self.applied(change, actual.target)
        update = PlannedVmUpdate(desired, actual, change, after, running=False)
        if actual.status == "hibernated" and (update.moves or change.keys):
            return self._wake_first(desired, actual, change, shared)
        return super().plan_change(
            desired, actual, change, shared=shared, creating=creating, bases=bases
        )

    def _wake_first(
        self, desired: DesiredVm, actual: Actual, change: ConfigChange, shared: Collection[str]
    ) -> Plan:
        """Return the plan for a hibernated VM, which PVE locks: it is started, and then updated.

        Raises Conflict if the task does not start it.
        """
        power.require_possible_state(desired.guest, actual)
        require_valid_data(self.kind, actual.label, change.sets)
        if not power.will_start(desired.guest):
            raise Conflict(
                attempted=f"{actual.label} was not changed",
                answer="it is hibernated, and PVE changes nothing of it until it has been started",
                next_step=(
                    "Start it in the same task with state=started, or leave its options as they are"
                ),
                reason="hibernated",
            )
        awake = replace(
            actual,
            status="running",
            live=_without_hibernation(actual.live),
            target=_without_hibernation(actual.target),
        )
        rest = self.plan_change(desired.with_guest(state="started"), awake, change, shared=shared)
        steps = (replace(power.wake(actual), reread=True), *rest.steps)
        return replace(
            rest,
            steps=steps,
            before={**rest.before, "status": actual.status},
            after={**rest.after, "status": awake.status},
        )

    def require_possible(self, update: PlannedVmUpdate) -> None:
        require_preconditions(update.desired, update.actual, update.change, update.after)

    def add_hidden_values(
        self,
        update: PlannedVmUpdate,
        steps: Collection[Step],
        before: dict[str, Any],
        new_values: dict[str, Any],
    ) -> None:
        if update.change.secret:
            new_values["cipassword"] = "(changed)"
        if steps and update.actual.marker.stale:
            before["cloud_init_drive"] = "outdated"
            new_values["cloud_init_drive"] = "current"

    def waits(self, key: str, update: PlannedVmUpdate) -> bool:
        return _waits(key, update)


def _with_uuid(smbios: str, identity: str) -> str:
    """Return smbios1 with that uuid; a desired uuid is written after the creation."""
    values = parse_option("smbios1", smbios)
    values["uuid"] = identity
    return render_option("smbios1", values)


def _without_hibernation(config: Mapping[str, str]) -> dict[str, str]:
    awake = dict(config)
    for key in _OF_HIBERNATION:
        awake.pop(key, None)
    return awake


def _waits(key: str, update: PlannedVmUpdate) -> bool:
    """Return whether the change of a key waits for a stop."""
    live = update.actual.live
    after = update.after
    change = update.change
    is_drive = DRIVE.match(key) is not None
    is_unplugged = is_drive and key in change.gone
    if is_unplugged and key in boot_devices(live):
        return True  # a disk that the VM boots from cannot be unplugged
    old = live.get(key)
    if key in {*change.drives.grown, *change.drives.moved}:
        # Growing and moving is live; only the other sub-keys that are written can wait.
        written = change.drives.sets.get(key)
        if written is None:
            return False
        return waits_for_stop(key, old, written, live)
    others = change.keys - change.drives.removed
    is_removed = key in change.drives.removed
    if is_removed and others:
        live = _with_new_hotplug(live, after)
    return waits_for_stop(key, old, after.get(key), live)


def _with_new_hotplug(live: Mapping[str, str], after: Mapping[str, str]) -> Mapping[str, str]:
    """Return the running options when volumes are destroyed, by a request after the update."""
    old, new = live.get("hotplug"), after.get("hotplug")
    if old == new or waits_for_stop("hotplug", old, new, live):
        return live
    rest = dict(live)
    rest.pop("hotplug", None)
    if new:
        rest["hotplug"] = new
    return rest


VM_PLANNER = VmPlanner()
plan_update = VM_PLANNER.plan_update
plan_change = VM_PLANNER.plan_change
