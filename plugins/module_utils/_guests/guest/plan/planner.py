# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compares the desired with the actual guest: a plan with steps, diff, options that wait for a stop
(pure).

Check mode shows the plan, and apply carries it out; nothing else decides the writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic

from ...._foundation.api.settings import ConnectionSettings
from ...._foundation.cluster.placement import PlacementNeeds
from ...._foundation.cluster.state import ClusterState
from ...._foundation.cluster.storages.allocation import base_storages
from ...._foundation.core.errors import ValidationFailed
from ...._foundation.resource.plan import Plan, Step
from ...._foundation.schema.check import find_refusals
from ...kinds.config.change import ConfigChange, Relocation, applied, with_images
from ...kinds.hardware import AnyDesired
from ...kinds.kind import Kind
from ...kinds.model import Actual
from ..plan import power
from .intent import Facts, Intent, Source
from .refusals import require_one_tenant, require_unprotected
from .steps import (
    AnyUpdate,
    PlannedUpdate,
    changes_pool,
    grow,
    hand_over,
    isolate,
    move_disks,
    switch_protection,
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


@dataclass(frozen=True)
class GuestRules(Generic[AnyDesired]):
    """The rules of one kind for the node of a guest, and its refusals.

    `needs_of` returns the needs of a guest on its node, except the room for its disks.
    `refuse_listed` raises FleetError for a change that the listing alone shows to be impossible,
    `refuse` for a guest that its kind does not allow; it returns warnings. `unverified` returns
    warnings about options that only the server can judge.
    """

    needs_of: Callable[[Intent[AnyDesired]], PlacementNeeds]
    refuse_listed: Callable[[Intent[AnyDesired], ClusterState, ConnectionSettings], None]
    refuse: Callable[[Intent[AnyDesired], Facts, ConnectionSettings], tuple[str, ...]]
    unverified: Callable[[Intent[AnyDesired], Facts], tuple[str, ...]] = lambda _intent, _facts: ()


class GuestPlanner(Generic[AnyDesired, AnyUpdate]):
    """Plans guests of one kind; each kind overrides the methods in which it differs.

    `rules` has its refusals, `update_type` the requests of its updates.
    """

    kind: Kind
    rules: GuestRules[AnyDesired]
    update_type: type[AnyUpdate]

    # -- the differences of the kinds

    def all_changes(
        self, desired: AnyDesired, target: Mapping[str, str], *, new: bool = False
    ) -> ConfigChange:
        """Return the change to the desired guest, including differences that PVE cannot change."""
        raise NotImplementedError

    def creation_data(self, intent: Intent[AnyDesired], source: Source) -> dict[str, Any]:
        """Return the parameters of a creation that do not come from an option."""
        raise NotImplementedError

    def restore_data(self, desired: AnyDesired, source: Source) -> dict[str, Any]:
        """Return the parameters of a restore that do not come from an option."""
        raise NotImplementedError

    def copy_of(
        self, source: Actual, *, restored: bool, vmid: int, node: str, data: Mapping[str, Any]
    ) -> Actual:
        """Return the expected guest before it is configured: a clone of `source`, or `source` as
        restored from an archive. `data` are the parameters of the request.
        """
        raise NotImplementedError

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
        data: dict[str, Any] = {"description": ""}
        if desired.guest.name:
            data[self.kind.name_option] = desired.guest.name
        if source.archived is not None:
            archived = source.archived_guest(self.kind, "")
            data = {**self.restore_data(desired, source), "unique": 1, **data}
            start = self.copy_of(archived, restored=True, vmid=0, node="", data=data)
        elif source.template is not None:
            start = self.copy_of(source.template, restored=False, vmid=0, node="", data=data)
        else:
            start = Actual(self.kind, 0, "", "stopped", live={}, target={})
        change = self.changes(desired, start.target, new=not start.target)
        return Intent(desired, start, change, self.applied(change, start.target), source)

    def changes(
        self, desired: AnyDesired, target: Mapping[str, str], *, new: bool = False
    ) -> ConfigChange:
        """Return the change from `target` to the desired configuration.

        Raises FleetError for a difference that no change can remove.
        """
        change = self.all_changes(desired, target, new=new)
        for error in change.drives.refused.values():
            raise error
        return change

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
        bases: Collection[str] = (),
    ) -> Plan:
        """Return the plan from an existing guest, as just read, to the desired guest.

        `shared` are the storages that all nodes share; `creating` is set for a guest that this run
        creates. `bases` are the storages on which the disks of a template become base volumes.
        """
        change = self.changes(desired, actual.target)
        return self.plan_change(
            desired, actual, change, shared=shared, creating=creating, bases=bases
        )

    def plan_intent(self, intent: Intent[AnyDesired], facts: Facts) -> Plan:
        """Return the plan of an existing guest, from its intent and the answers of the cluster."""
        cluster, start = facts.cluster, intent.start
        change = with_images(intent.change, intent.desired, intent.before, facts.sizes)
        bases = base_storages(cluster) if start.template else frozenset()
        shared = cluster.shared_storages
        return self.plan_change(intent.desired, start, change, shared=shared, bases=bases)

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
        if change.sets:
            require_valid_data(self.kind, actual.label, change.sets)
        after = self.applied(change, actual.target)
        replaces = desired.guest.replacement is not None and bool(change.drives.volumes)
        stops = power.stops_first(desired.guest, actual) or (replaces and actual.running)
        running = actual.running and not stops
        update = self.update_type(desired, actual, change, after, running)
        if change.keys or update.moves:
            require_unprotected(desired, actual, update.taken)
            require_one_tenant(desired.guest, actual, after)
            update.require_possible()
        waiting = self._waiting(update)
        switch = power.finish(
            desired.guest,
            actual,
            running=running,
            waiting=bool(waiting),
            unconverted=unconverted_disks(actual, bases) if self.kind.converts_disks else (),
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
        if not update.change.keys and not update.moves:
            return [*update.renew_drive(), *to_pool(update.desired.guest, update.actual), *switch]
        written = self._written(update)
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
                written = self._written(update.without("description"))
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
            steps.append(update.migrate(shared))
        return [*steps, *disk_steps_on_target, *switch, *last]

    def _written(self, update: AnyUpdate) -> list[Step]:
        """Return the steps that write options. The protection is lifted before disks are taken
        away, and set after that.
        """
        protection = update.change.sets.get("protection")
        if protection is None or not update.taken:
            return [*update.written(first=True), *update.renew_drive()]
        rest = update.without("protection")
        switch = switch_protection(update.actual, protection)
        if protection == "0":
            steps = [switch, *rest.written(first=False)]
        else:
            steps = [*rest.written(first=True), switch]
        return [*steps, *rest.renew_drive()]

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
        update.add_hidden_values(steps, before, new_values)
        _add_place(update, before, new_values)
        actions = {step.action for step in steps}
        if "template" in actions and actual.template:
            conversions = [step for step in steps if step.action == "template"]
            before["unconverted_disks"] = [str(step.data["disk"]) for step in conversions]
            new_values["unconverted_disks"] = []
        if "isolate" in actions:
            before["isolated"] = False
            new_values["isolated"] = True
        restarts = power.is_restart(steps)
        if restarts or "reset" in actions:
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
        update.add_hidden_values((), before, new_values)
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
                waits = update.waits(key)
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
        f"{label} could not be planned: {'; '.join(reasons)}",
        "Correct these options; the reasons are PVE's",
        ", ".join(sorted(refused)),
        parameters=refused,
    )


def unconverted_disks(actual: Actual, bases: Collection[str]) -> list[str]:
    """Return the disks of a template that an interrupted conversion did not convert, by slot.

    `bases` are the storages with base volumes. PVE marks the guest as a template, and then converts
    one disk after the other (qemu-server: API2/Qemu.pm, template; QemuServer.pm, template_create).
    """
    if not actual.template:
        return []
    found: list[str] = []
    for slot, disk in actual.kind.disks_in(actual.live).items():
        storage, colon, volume = disk.get("file", "").partition(":")
        is_base = volume.rpartition("/")[2].startswith(("base-", "basevol-"))
        if colon and storage in bases and not is_base:
            found.append(slot)
    return sorted(found)


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
