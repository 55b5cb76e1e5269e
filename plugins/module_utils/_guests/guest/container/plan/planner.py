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
from ....kinds.container.config.actual import mounts, nics, volumes_in
from ....kinds.container.config.changes import all_changes
from ....kinds.container.kind import CONTAINER
from ....kinds.hardware import DesiredContainer, Disk
from ....kinds.model import Actual
from ...plan.intent import Source
from ...plan.planner import GuestPlanner
from ...plan.steps import (
    PlannedUpdate,
    config_step,
    migration,
    require_migration_allowed,
    with_digest,
)
from .decide import CONTAINER_RULES, ContainerIntent

# Options that a clone does not inherit from its source (API2/LXC.pm, clone_vm).
_NOT_CLONED = frozenset("template lock digest parent snapstate".split())


class PlannedContainerUpdate(PlannedUpdate[DesiredContainer]):
    """A planned update of a container."""

    def require_possible(self) -> None:
        change = self.change
        if self.running:
            moved = set(change.drives.moved)
            if change.relocation is not None:
                moved = {*change.relocation.before, *change.relocation.after}
            _require_stopped(self, moved, "moved to another storage")
            mounted = change.drives.removed & mounts(self.actual.target).keys()
            _require_stopped(self, mounted, "destroyed while it is mounted")

    def written(self, *, first: bool) -> list[Step]:
        # A mounted volume first becomes an unused volume, which is then deleted (LXC/Config.pm,
        # vmconfig_apply_pending).
        actual, removals = self.actual, []
        used = {slot for slot in actual.target if slot.startswith("unused")}
        for slot in sorted(self.change.drives.removed):
            unused = slot
            if slot in mounts(actual.target):
                summary = f"Unmount {slot} of {actual.label}"
                removals.append(config_step(actual, summary, {"delete": slot}))
                if slot not in volumes_in(actual.target):
                    continue
                unused = next(f"unused{n}" for n in range(256) if f"unused{n}" not in used)
                used.add(unused)
            summary = f"Remove {unused} and its volume from {actual.label}"
            step = config_step(actual, summary, {"delete": unused})
            removals.append(replace(step, action="remove_volume"))
        if self.change.sets or self.change.deletes:
            return [self.write_options(first=first), *removals]
        if first and removals:
            unmount = removals[0]
            removals[0] = replace(unmount, data=with_digest(unmount.data, self.actual))
        return removals

    def migrate(self, shared: Collection[str]) -> Step:
        """Return the step that moves the container; PVE stops a running one and starts it there."""
        desired = self.desired.guest
        require_migration_allowed(desired, self.actual)
        data: dict[str, Any] = {}
        relocation = self.change.relocation
        if relocation is not None and relocation.mapped:
            data["target-storage"] = relocation.storage_map
        if not self.running:
            return migration(desired, self.actual, "offline", data)
        data |= {"restart": 1, "timeout": desired.shutdown_timeout or 180}
        return migration(desired, self.actual, "restart", data)


class ContainerPlanner(GuestPlanner[DesiredContainer, PlannedContainerUpdate]):
    """Plans containers."""

    kind = CONTAINER
    update_type = PlannedContainerUpdate
    rules = CONTAINER_RULES
    all_changes = staticmethod(all_changes)

    def creation_data(self, intent: ContainerIntent, source: Source) -> dict[str, Any]:
        hardware = intent.desired.hardware
        data: dict[str, Any] = {"ostemplate": source.volume}
        if hardware.password:
            data["password"] = hardware.password
        if hardware.ssh_keys:
            data["ssh-public-keys"] = "\n".join(hardware.ssh_keys)
        return data

    def restore_data(self, desired: DesiredContainer, source: Source) -> dict[str, Any]:
        """Return the parameters of a restore. PVE restores all volumes to one storage; some are
        moved afterwards.
        """
        storage = desired.hardware.default_storage
        for disk in desired.hardware.disks:
            if disk.slot == "rootfs" and disk.storage:
                storage = disk.storage
        data: dict[str, Any] = {"ostemplate": source.volume, "restore": 1, "storage": storage}
        if desired.guest.source is None or not desired.guest.source.in_place:
            data["unique"] = 1
        return data

    def copy_of(
        self, source: Actual, *, restored: bool, vmid: int, node: str, data: Mapping[str, Any]
    ) -> Actual:
        config: dict[str, str] = {}
        for key, value in source.target.items():
            if key not in _NOT_CLONED and not key.startswith(("unused", "snap")):
                config[key] = value
        if not restored or data.get("unique"):
            config |= _without_macs(config)
        storage = data.get("storage")
        if storage:
            moved: dict[str, str] = {}
            for slot, volume in volumes_in(config).items():
                moved[slot] = config[slot].replace(volume, f"{storage}:new", 1)
            config |= moved
        copied_name = source.name if restored else f"Copy-of-CT-{source.name}"
        config["hostname"] = data.get("hostname") or copied_name
        config["description"] = data["description"]
        if restored and data.get("tags"):
            config["tags"] = str(data["tags"])
        return Actual(
            CONTAINER, vmid, node, "stopped", live=config, target=config, pool=data.get("pool")
        )

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


def _without_macs(config: Mapping[str, str]) -> dict[str, str]:
    """Return the NICs without their MAC addresses: PVE gives a clone, and a restored container with
    C(unique), new ones (pve-container: API2/LXC.pm, clone_vm; LXC/Create.pm, restore_configuration).
    """
    found: dict[str, str] = {}
    for key, nic in nics(config).items():
        kept = [f"{name}={text}" for name, text in nic.items() if name != "hwaddr"]
        found[key] = ",".join(kept)
    return found


def _require_stopped(update: PlannedContainerUpdate, slots: Collection[str], what: str) -> None:
    if not slots:
        return
    raise Conflict(
        f"{', '.join(sorted(slots))} of {update.actual.label} was not changed: the container "
        f"runs, and PVE lets no volume of a running container be {what}",
        "Stop it in the same task with state=stopped, and start it again afterwards",
        "container runs",
    )


CONTAINER_PLANNER = ContainerPlanner()
