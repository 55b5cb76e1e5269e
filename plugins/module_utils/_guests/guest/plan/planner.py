# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compares the desired with the actual guest: a plan with steps, diff, options that wait for a stop
(pure).

Check mode shows the plan, and apply carries it out; nothing else decides the writes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic

from ...._foundation.api.settings import ConnectionSettings
from ...._foundation.cluster.placement import PlacementNeeds
from ...._foundation.cluster.state import ClusterState
from ...._foundation.core.errors import ValidationFailed
from ...._foundation.resource.plan import Plan, Step
from ...._foundation.schema.check import find_refusals
from ...kinds.config.change import ConfigChange, Relocation, possible
from ...kinds.config.update import applied
from ...kinds.hardware import AnyDesired
from ...kinds.kind import Kind
from ...kinds.model import Actual
from ..flow.facts import Facts
from ..flow.intent import Intent, Source
from ..plan import power
from .steps import (
    AnyUpdate,
    PlannedUpdate,
    changes_pool,
    grow,
    hand_over,
    isolate,
    move_disks,
    to_pool,
    write_notes_last,
)

# Parameters of a request to create a guest that are not options of its configuration.
_NOT_OPTIONS = ("vmid", "pool", "digest")


@dataclass(frozen=True)
class CreationOptions:
    """Options of an update that is part of the creation of a guest.

    `whole` is set if the diff shows the whole configuration, `contested` if quota and place are
    checked before the last step.
    """

    whole: bool = False
    contested: bool = False


class GuestPlanner(Generic[AnyDesired, AnyUpdate]):
    """Plans guests of one kind; each kind overrides the methods in which it differs.

    `update_type` has the requests of its updates.
    """

    kind: Kind
    update_type: type[AnyUpdate]

    # -- the differences of the kinds

    def needs_of(self, intent: Intent[AnyDesired]) -> PlacementNeeds:
        """Return the needs of the guest on its node, except the room for its disks."""
        raise NotImplementedError

    def refuse_listed(
        self, intent: Intent[AnyDesired], cluster: ClusterState, connection: ConnectionSettings
    ) -> None:
        """Raise FleetError for a change that the listing alone shows to be impossible."""
        raise NotImplementedError

    def refuse(
        self, intent: Intent[AnyDesired], facts: Facts, connection: ConnectionSettings
    ) -> tuple[str, ...]:
        """Raise FleetError for a guest that its kind does not allow; return warnings."""
        raise NotImplementedError

    def unverified(self, intent: Intent[AnyDesired], facts: Facts) -> tuple[str, ...]:
        """Return warnings about options that only the server can judge."""
        return ()

    def creation_data(
        self, desired: AnyDesired, source: Source, change: ConfigChange, identity: str
    ) -> dict[str, Any]:
        """Return the parameters of a creation or a restore that do not come from an option."""
        raise NotImplementedError

    def all_changes(
        self, desired: AnyDesired, target: Mapping[str, str], *, new: bool = False
    ) -> ConfigChange:
        """Return the change to the desired guest, including differences that PVE cannot change."""
        raise NotImplementedError

    def with_images(
        self,
        change: ConfigChange,
        desired: AnyDesired,
        target: Mapping[str, str],
        images: Mapping[str, int],
    ) -> ConfigChange:
        """Return the change with the sizes of the images that new disks import."""
        return change

    def clone_of(self, source: Actual, *, vmid: int, node: str, data: Mapping[str, Any]) -> Actual:
        """Return the expected state of a clone before it is configured."""
        raise NotImplementedError

    def restore_storage(self, desired: AnyDesired, archived: Mapping[str, str]) -> str | None:
        """Return the storage to which PVE restores all disks, None if each disk keeps its storage.

        `archived` is the configuration in the archive.
        """
        raise NotImplementedError

    def restored(self, source: Actual, *, vmid: int, node: str, data: Mapping[str, Any]) -> Actual:
        """Return the expected guest after a restore of `source`, before it is configured."""
        raise NotImplementedError

    def require_possible(self, update: AnyUpdate) -> None:
        """Raise FleetError for a change that PVE would refuse half way."""

    def written(self, update: AnyUpdate) -> list[Step]:
        """Return the steps that write options, in the order that PVE needs."""
        raise NotImplementedError

    def migrate(self, update: AnyUpdate, shared: Collection[str]) -> Step:
        """Return the step that moves the guest to its node. Raises Conflict, NotSupported."""
        raise NotImplementedError

    def waits(self, key: str, update: AnyUpdate) -> bool:
        """Return whether the change of a key waits for a stop."""
        raise NotImplementedError

    def unconverted(self, actual: Actual, bases: Collection[str]) -> list[str]:
        """Return the disks of a template that can become base volumes, but are not yet."""
        return []

    def add_hidden_values(
        self,
        update: AnyUpdate,
        steps: Collection[Step],
        before: dict[str, Any],
        new_values: dict[str, Any],
    ) -> None:
        """Add values that the configuration does not show, before and after the change."""

    def still_desired(self, desired: AnyDesired, first: Actual, current: Actual) -> AnyDesired:
        """Return the desired guest for the rest of a plan; `first` is the guest before it."""
        return desired

    # -- the common part

    def intent_of(self, desired: AnyDesired, actual: Actual) -> Intent[AnyDesired]:
        """Return the changes of an existing guest.

        Raises FleetError for options that no change can set.
        """
        change = self.changes(desired, actual.target)
        return Intent(desired, actual, change, self.applied(change, actual.target))

    def intent_from(self, desired: AnyDesired, source: Source) -> Intent[AnyDesired]:
        """Return the changes of a new guest, from the guest that PVE creates from its source.

        Raises FleetError for options that no change can set.
        """
        start = self._start_of(desired, source)
        change = self.changes(desired, start.target, new=not start.target)
        return Intent(desired, start, change, self.applied(change, start.target), source)

    def _start_of(self, desired: AnyDesired, source: Source) -> Actual:
        """Return the guest that PVE creates from the source, without VMID and node; its
        configuration is empty if nothing is copied.
        """
        data: dict[str, Any] = {"description": ""}
        if desired.guest.name:
            data[self.kind.name_option] = desired.guest.name
        if source.archived is not None:
            data |= {"storage": source.storage, "unique": 1}
            archived = source.archived_guest(self.kind, "")
            return self.restored(archived, vmid=0, node="", data=data)
        if source.template is not None:
            return self.clone_of(source.template, vmid=0, node="", data=data)
        return Actual(self.kind, 0, "", "stopped", live={}, target={})

    def changes(
        self, desired: AnyDesired, target: Mapping[str, str], *, new: bool = False
    ) -> ConfigChange:
        """Return the change from `target` to the desired configuration.

        Raises FleetError for a difference that no change can remove.
        """
        return possible(self.all_changes(desired, target, new=new))

    def applied(self, change: ConfigChange, target: Mapping[str, str]) -> dict[str, str]:
        """Return the configuration after the change."""
        return applied(change, target, self.kind)

    def plan_update(
        self,
        desired: AnyDesired,
        actual: Actual,
        *,
        shared: Collection[str] = (),
        creating: CreationOptions | None = None,
        images: Mapping[str, int] | None = None,
        bases: Collection[str] = (),
    ) -> Plan:
        """Return the plan from an existing guest, as just read, to the desired guest.

        `shared` are the storages that all nodes share; `creating` is set for a guest that this run
        creates. `images` are the sizes, in bytes, of the images that new disks import: such a
        disk grows after the import. `bases` are the storages on which the disks of a template
        become base volumes.
        """
        change = self.changes(desired, actual.target)
        change = self.with_images(change, desired, actual.target, images or {})
        return self.plan_change(
            desired, actual, change, shared=shared, creating=creating, bases=bases
        )

    def plan_change(
        self,
        desired: AnyDesired,
        actual: Actual,
        change: ConfigChange,
        *,
        shared: Collection[str] = (),
        creating: CreationOptions | None = None,
        bases: Collection[str] = (),
    ) -> Plan:
        """Return the plan of a change that was computed before, see `plan_update`."""
        power.require_possible_state(desired.guest, actual)
        require_valid_data(self.kind, actual.label, change.sets)
        after = self.applied(change, actual.target)
        stops = power.stops_first(desired.guest, actual)
        running = actual.running and not stops
        update = self.update_type(desired, actual, change, after, running)
        self.require_possible(update)
        waiting = self._waiting(update)
        switch = power.finish(
            desired.guest,
            actual,
            running=running,
            waiting=bool(waiting),
            unconverted=self.unconverted(actual, bases),
        )
        switch = [*isolate(desired.guest, actual), *switch]
        is_contested = creating is not None and creating.contested
        steps = self._ordered(update, shared, switch, contested=is_contested)
        if stops:
            # a stop applies the pending options
            stop = power.stop(actual, desired.guest)
            steps.insert(0, replace(stop, reread=True))
        is_whole = creating is not None and creating.whole
        return self._finished(update, steps, waiting, building=is_whole)

    def _ordered(
        self, update: AnyUpdate, shared: Collection[str], switch: list[Step], *, contested: bool
    ) -> list[Step]:
        """Return the steps after a stop in the order that PVE needs; `switch` are the power steps.

        If the guest is being created, the last step removes its marker; it does nothing else if the
        guest is `contested`.
        """
        written = self.written(update)
        grown_later = update.change.drives.grown_later
        if grown_later:
            # The size of an imported disk is known once it exists.
            written[0] = replace(written[0], reread=True)
        disk_steps, disk_steps_on_target = self._disk_steps(update, is_written=bool(written))
        last: list[Step] = []
        if update.ends_with_notes:
            others = [*written[1:], *disk_steps, *disk_steps_on_target, *switch]
            is_alone = not others and not update.moves and not contested
            if written[0].is_task or not is_alone:
                # The marker is removed when no other step is left that could be interrupted.
                written = self.written(update.without("description"))
                node = update.desired.guest.node or update.actual.node
                notes_image = update.notes_image
                last = [
                    write_notes_last(update.actual, update.change, node, notes_image=notes_image)
                ]
        steps = _beside(written, disk_steps, running=update.running)
        if update.running:
            steps += grow(update.actual, grown_later)
        steps += to_pool(update.desired.guest, update.actual)
        if update.moves:
            steps.append(self.migrate(update, shared))
        return [*steps, *disk_steps_on_target, *switch, *last]

    def _disk_steps(self, update: AnyUpdate, *, is_written: bool) -> tuple[list[Step], list[Step]]:
        """Return the steps that move and grow disks before a migration, and those after it.

        A disk is moved before it grows: its old storage may be full.
        """
        grown = dict(update.change.drives.grown)
        if not update.running:
            grown |= update.change.drives.grown_later
        handed = hand_over(update.actual, update.change.drives.handed)
        if not update.moves:
            moved = move_disks(update, update.change.drives.moved)
            return [*handed, *moved, *grow(update.actual, grown)], []
        relocation = update.change.relocation or Relocation(before=update.change.drives.moved)
        arrived = replace(update, actual=replace(update.actual, node=update.desired.guest.node))
        here = [*handed, *move_disks(update, relocation.before)]
        grown_here: dict[str, int] = {}
        if update.running and is_written:
            late = relocation.after.keys() | relocation.mapped_slots
            grown_here = {slot: size for slot, size in grown.items() if slot not in late}
        grown_there = {slot: size for slot, size in grown.items() if slot not in grown_here}
        there = [*move_disks(arrived, relocation.after), *grow(arrived.actual, grown_there)]
        return [*here, *grow(update.actual, grown_here)], there

    def _finished(
        self, update: AnyUpdate, steps: list[Step], waiting: Collection[str], *, building: bool
    ) -> Plan:
        """Return the plan with its diff: only the changed keys, except for a guest that is new."""
        actual = update.actual
        keys = None if building else update.change.keys
        before = self.kind.formatted(actual.target, keys)
        new_values = self.kind.formatted(update.after, keys)
        self.add_hidden_values(update, steps, before, new_values)
        _add_place(update, before, new_values)
        conversions = [step for step in steps if step.action == "template"]
        converted = [str(step.data["disk"]) for step in conversions if "disk" in step.data]
        if converted:
            before["unconverted_disks"] = converted
            new_values["unconverted_disks"] = []
        if "isolate" in [step.action for step in steps]:
            before["isolated"] = False
            new_values["isolated"] = True
        restarts = power.is_restart(steps)
        resets = "reset" in [step.action for step in steps]
        if restarts or resets:
            before["restarted"] = False
            new_values["restarted"] = True
        status = power.status_after(update.desired.guest, actual)
        if restarts:
            status = "running"
        if building or status != actual.status:
            before["status"] = actual.status
            new_values["status"] = status
        if building:
            before = {}
        if restarts or status in power.OFF:
            waiting = ()
        return Plan(tuple(steps), before, new_values, pending=tuple(waiting))

    def differences(
        self, desired: AnyDesired, actual: Actual
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the values before and after of all differences, also if no update is possible.

        Used if a plan was refused: differences that PVE cannot change are included. Raises
        FleetError if the options themselves cannot be parsed.
        """
        change = self.all_changes(desired, actual.target)
        after = self.applied(change, actual.target)
        update = self.update_type(desired, actual, change, after, actual.running)
        before = self.kind.formatted(actual.target, change.keys)
        new_values = self.kind.formatted(after, change.keys)
        self.add_hidden_values(update, (), before, new_values)
        _add_place(update, before, new_values)
        status = power.status_after(desired.guest, actual)
        if status != actual.status:
            before["status"] = actual.status
            new_values["status"] = status
        return before, new_values

    def _waiting(self, update: AnyUpdate) -> list[str]:
        """Return all keys that wait for a stop after the update, also from earlier changes."""
        live, target = update.actual.live, update.actual.target
        if not update.actual.running:
            return []
        waiting: list[str] = []
        for key in sorted(live.keys() | update.after.keys()):
            if live.get(key) == update.after.get(key):
                continue
            if key in update.change.keys:
                waits = self.waits(key, update)
            else:
                waits = live.get(key) != target.get(key)
            if waits:
                waiting.append(key)
        return waiting


def require_valid_data(kind: Kind, label: str, data: Mapping[str, Any]) -> None:
    """Raise ValidationFailed for options that PVE would refuse, before the first write."""
    options = dict(data)
    for key in _NOT_OPTIONS:
        options.pop(key, None)
    refused = find_refusals(options, schema=kind.schema)
    if not refused:
        return
    reasons = [f"{key}: {reason}" for key, reason in sorted(refused.items())]
    raise ValidationFailed(
        attempted=f"{label} could not be planned",
        answer="; ".join(reasons),
        next_step="Correct these options; the reasons are PVE's",
        reason=", ".join(sorted(refused)),
        parameters=refused,
    )


def _beside(written: list[Step], disk_steps: list[Step], *, running: bool) -> list[Step]:
    """Return both in order: a resize of a running guest would lose options that are pending."""
    both = bool(disk_steps) and bool(written)
    if not running or not both:
        return [*written, *disk_steps]
    last_disk = replace(disk_steps[-1], reread=True)
    return [*disk_steps[:-1], last_disk, *written]


def _add_place(
    update: PlannedUpdate[Any], before: dict[str, Any], new_values: dict[str, Any]
) -> None:
    """Add node and pool to the values before and after an update, if they change."""
    desired = update.desired.guest
    if update.moves:
        before["node"] = update.actual.node
        new_values["node"] = desired.node
    if changes_pool(desired, update.actual):
        before["pool"] = update.actual.pool
        new_values["pool"] = desired.pool or None
