# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rules that only plans of containers have (pure).

The rules come from pve-container: API2/LXC.pm, API2/LXC/Config.pm and LXC/Migrate.pm.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from ....._foundation.core.errors import Conflict
from ....._foundation.resource.plan import Step
from ....kinds.config.change import ConfigChange
from ....kinds.container.config.actual import mounts, volumes_in
from ....kinds.container.config.changes import all_changes
from ....kinds.container.config.hotplug import waits_for_stop
from ....kinds.container.kind import CONTAINER
from ....kinds.container.model import DesiredContainer
from ....kinds.hardware import Disk
from ....kinds.model import Actual
from ...flow.intent import Source
from ...plan.planner import GuestPlanner
from ...plan.refusals import require_one_tenant, require_unprotected
from ...plan.steps import (
    PlannedUpdate,
    config_step,
    migration,
    require_migration_allowed,
    switch_protection,
    with_digest,
)
from .decide import needs_of, refuse, refuse_listed, unverified

# Options that a clone does not inherit from its source (API2/LXC.pm, clone_vm).
_NOT_CLONED = frozenset("template lock digest parent snapstate".split())


def restore_storage(desired: DesiredContainer) -> str:
    """Return the storage to which PVE restores all volumes; some are moved afterwards."""
    for disk in desired.hardware.disks:
        if disk.slot == "rootfs" and disk.storage:
            return disk.storage
    return desired.hardware.default_storage


class ContainerPlanner(GuestPlanner[DesiredContainer, PlannedUpdate[DesiredContainer]]):
    """Plans containers."""

    kind = CONTAINER
    update_type = PlannedUpdate[DesiredContainer]
    needs_of = staticmethod(needs_of)
    refuse_listed = staticmethod(refuse_listed)
    refuse = staticmethod(refuse)
    unverified = staticmethod(unverified)

    def creation_data(
        self, desired: DesiredContainer, source: Source, change: ConfigChange, identity: str
    ) -> dict[str, Any]:
        data: dict[str, Any] = {"ostemplate": source.volume}
        if source.archived is not None:
            data |= {"restore": 1, "storage": source.storage}
            if desired.guest.source is None or not desired.guest.source.in_place:
                data["unique"] = 1
            return data
        if desired.hardware.password:
            data["password"] = desired.hardware.password
        if desired.hardware.ssh_keys:
            data["ssh-public-keys"] = "\n".join(desired.hardware.ssh_keys)
        return data

    def all_changes(
        self, desired: DesiredContainer, target: Mapping[str, str], *, new: bool = False
    ) -> ConfigChange:
        return all_changes(desired, target, new=new)

    def clone_of(self, source: Actual, *, vmid: int, node: str, data: Mapping[str, Any]) -> Actual:
        config: dict[str, str] = {}
        for key, value in source.target.items():
            if key not in _NOT_CLONED and not key.startswith(("unused", "snap")):
                config[key] = value
        storage = data.get("storage")
        if storage:
            config |= _volumes_on(storage, config)
        config["hostname"] = data.get("hostname") or f"Copy-of-CT-{source.name}"
        config["description"] = data["description"]
        return Actual(
            CONTAINER, vmid, node, "stopped", live=config, target=config, pool=data.get("pool")
        )

    def restore_storage(self, desired: DesiredContainer, archived: Mapping[str, str]) -> str:
        return restore_storage(desired)

    def restored(self, source: Actual, *, vmid: int, node: str, data: Mapping[str, Any]) -> Actual:
        named = {"hostname": source.name, **data}
        restored = self.clone_of(source, vmid=vmid, node=node, data=named)
        if not data.get("tags"):
            return restored
        config = {**restored.target, "tags": str(data["tags"])}
        return replace(restored, live=config, target=config)

    def require_possible(self, update: PlannedUpdate[DesiredContainer]) -> None:
        change = update.change
        taken = {*change.drives.removed, *change.drives.detached}
        require_unprotected(update.desired, update.actual, taken)
        require_one_tenant(update.desired.guest, update.actual, update.after)
        if update.running:
            moved = set(change.drives.moved)
            if change.relocation is not None:
                moved = {*change.relocation.before, *change.relocation.after}
            _require_stopped(update, moved, "moved to another storage")
            mounted = change.drives.removed & mounts(update.actual.target).keys()
            _require_stopped(update, mounted, "destroyed while it is mounted")

    def written(self, update: PlannedUpdate[DesiredContainer]) -> list[Step]:
        protection = update.change.sets.get("protection")
        taken = {*update.change.drives.removed, *update.change.drives.detached}
        if protection is None or not taken:
            return _options_and_removals(update, first=True)
        rest = update.without("protection")
        switch = switch_protection(update.actual, protection)
        if protection == "0":
            return [switch, *_options_and_removals(rest, first=False)]
        return [*_options_and_removals(rest, first=True), switch]

    def still_desired(
        self, desired: DesiredContainer, first: Actual, current: Actual
    ) -> DesiredContainer:
        """Return the container with the current slots of unmounted volumes: one request unmounts a
        volume, the next destroys it.
        """
        before = volumes_in(first.target)
        unused: dict[str, str] = {}
        for slot, volume in volumes_in(current.target).items():
            if slot.startswith("unused"):
                unused[volume] = slot
        disks: list[Disk] = []
        for disk in desired.hardware.disks:
            slot = unused.get(before.get(disk.slot, ""), disk.slot)
            disks.append(replace(disk, slot=slot) if disk.state == "absent" else disk)
        return desired.with_hardware(disks=tuple(disks))

    def migrate(self, update: PlannedUpdate[DesiredContainer], shared: Collection[str]) -> Step:
        """Return the step that moves the container; PVE stops a running one and starts it there."""
        desired = update.desired.guest
        require_migration_allowed(desired, update.actual)
        data: dict[str, Any] = {}
        relocation = update.change.relocation
        if relocation is not None and relocation.mapped:
            data["target-storage"] = relocation.storage_map
        if not update.running:
            return migration(desired, update.actual, "offline", data)
        data |= {"restart": 1, "timeout": desired.shutdown_timeout or 180}
        return migration(desired, update.actual, "restart", data)

    def waits(self, key: str, update: PlannedUpdate[DesiredContainer]) -> bool:
        change, live = update.change, update.actual.live
        if key in {*change.drives.grown, *change.drives.moved} and key not in change.drives.sets:
            return False
        return waits_for_stop(key, live.get(key), update.after.get(key), live)


def _options_and_removals(update: PlannedUpdate[DesiredContainer], *, first: bool) -> list[Step]:
    """Return the steps that write options and then destroy volumes.

    `first` is set for the first write of the plan: the digest is valid only for it.
    """
    removals = _removals(update)
    if update.change.sets or update.change.deletes:
        return [update.write_options(first=first), *removals]
    if first and removals:
        unmount = removals[0]
        removals[0] = replace(unmount, data=with_digest(unmount.data, update.actual))
    return removals


def _removals(update: PlannedUpdate[DesiredContainer]) -> list[Step]:
    """Return the steps that destroy volumes: a mounted volume first becomes an unused volume, which
    is then deleted (LXC/Config.pm, vmconfig_apply_pending).
    """
    actual, steps = update.actual, []
    used = {slot for slot in actual.target if slot.startswith("unused")}
    for slot in sorted(update.change.drives.removed):
        unused = slot
        if slot in mounts(actual.target):
            summary = f"Unmount {slot} of {actual.label}"
            steps.append(config_step(actual, summary, {"delete": slot}))
            if slot not in volumes_in(actual.target):
                continue
            unused = next(f"unused{n}" for n in range(256) if f"unused{n}" not in used)
            used.add(unused)
        summary = f"Remove {unused} and its volume from {actual.label}"
        step = config_step(actual, summary, {"delete": unused})
        steps.append(replace(step, action="remove_volume"))
    return steps


def _require_stopped(
    update: PlannedUpdate[DesiredContainer], slots: Collection[str], what: str
) -> None:
    if not slots:
        return
    raise Conflict(
        attempted=f"{', '.join(sorted(slots))} of {update.actual.label} was not changed",
        answer=f"the container runs, and PVE lets no volume of a running container be {what}",
        next_step="Stop it in the same task with state=stopped, and start it again afterwards",
        reason="container runs",
    )


def _volumes_on(storage: str, config: Mapping[str, str]) -> dict[str, str]:
    """Return the volumes of a full clone to one storage."""
    moved: dict[str, str] = {}
    for slot, volume in volumes_in(config).items():
        moved[slot] = config[slot].replace(volume, f"{storage}:new", 1)
    return moved


CONTAINER_PLANNER = ContainerPlanner()
