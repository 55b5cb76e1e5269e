# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the desired and the actual VM to a plan: steps, a diff, what waits for a stop (pure).

Check mode shows the plan, and apply carries it out; nothing else decides what is written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from ..._core.errors import Conflict, ValidationFailed
from ..._resource.plan import Plan, Step
from ..._schema.check import check_options
from ..config.actual import DRIVE
from ..config.changes import Change, apply_to, changes, with_images
from ..config.drives import unconverted_disks
from ..config.hotplug import waits_for_stop
from ..config.view import show
from ..model import Actual, Desired
from . import power
from .preconditions import check_preconditions, require_there
from .steps import (
    Update,
    boot_devices,
    changes_pool,
    finish_building,
    grow,
    is_stale,
    migrate,
    move_disks,
    switch_protection,
    to_pool,
    update_steps,
)

# What a request to create a VM has beside options.
_NOT_OPTIONS = ("vmid", "pool", "digest")
# What PVE adds to the configuration of a VM while its memory is on disk.
_OF_HIBERNATION = frozenset("lock vmstate runningmachine runningcpu running-nets-host-mtu".split())


def plan_update(
    desired: Desired,
    actual: Actual,
    *,
    shared: Collection[str] = (),
    building: bool = False,
    contested: bool = False,
    images: Mapping[str, int] | None = None,
    bases: Collection[str] = (),
) -> Plan:
    """Return what makes an existing VM, as it was just read, the desired one.

    `shared` are the storages that all nodes share; `building` is set for a VM that is new, whose
    whole configuration is then the diff, and `contested` where its quota and place are checked
    before the last step. `images` are the sizes, in bytes, of the images that new disks import:
    such a disk grows after it is made. `bases` are the storages on which the disks of a template
    become base volumes.
    """
    change = changes(desired, actual.target)
    change = with_images(change, desired, actual.target, images or {})
    return plan_change(
        desired,
        actual,
        change,
        shared=shared,
        building=building,
        contested=contested,
        bases=bases,
    )


def plan_change(
    desired: Desired,
    actual: Actual,
    change: Change,
    *,
    shared: Collection[str] = (),
    building: bool = False,
    contested: bool = False,
    bases: Collection[str] = (),
) -> Plan:
    """Return the plan of a change that was computed before, see `plan_update`."""
    power.check_state(desired, actual)
    check_data(actual.label, change.sets)
    after = apply_to(change, actual.target)
    stops = power.stops_first(desired, actual)
    running = actual.running and not stops
    update = Update(desired, actual, change, after, running)
    changes_something = update.moves or bool(change.keys)
    if actual.status == "hibernated" and changes_something:
        return _wake_first(desired, actual, change, shared)
    check_preconditions(desired, actual, change, after)
    waiting = _waiting(update)
    if running:
        require_there(actual, change.drives.grown_later, change.drives.sets)
    switch = power.finish(
        desired,
        actual,
        running=running,
        waiting=bool(waiting),
        unconverted=unconverted_disks(actual.live, bases),
    )
    steps = _ordered(update, shared, switch, contested=contested)
    if stops:
        # a stop applies what waited for it
        stop = power.stop(actual, desired)
        steps.insert(0, replace(stop, reread=True))
    return _finished(update, steps, waiting, building=building)


def _ordered(
    update: Update, shared: Collection[str], switch: list[Step], *, contested: bool
) -> list[Step]:
    """Return the steps after a stop in the order that PVE needs; `switch` are the power steps.

    Where the VM is being made, the last step of all removes its marker, and nothing else where the
    VM is `contested`.
    """
    written = update_steps(update)
    grown_later = update.change.drives.grown_later
    if grown_later:
        # An imported disk has its size once it is there.
        written[0] = replace(written[0], reread=True)
    disk_steps, grown_there = _disk_steps(update, is_written=bool(written))
    last: list[Step] = []
    if update.ends_building:
        others = [*written[1:], *disk_steps, *grown_there, *switch]
        is_alone = not others and not update.moves and not contested
        if written[0].is_task or not is_alone:
            # The marker goes when nothing is left that could be interrupted.
            written = update_steps(update.without("description"))
            node = update.desired.node or update.actual.node
            last = [finish_building(update.actual, update.change, node)]
    steps = _beside(written, disk_steps, running=update.running)
    if update.running:
        steps += grow(update.actual, grown_later)
    steps += to_pool(update.desired, update.actual)
    if update.moves:
        steps.append(migrate(update, shared))
    return [*steps, *grown_there, *switch, *last]


def _disk_steps(update: Update, *, is_written: bool) -> tuple[list[Step], list[Step]]:
    """Return the steps that move and grow disks, and those that only grow them on the new node.

    A disk is moved before it grows: the storage that it leaves may be the one that is full.
    """
    grown = dict(update.change.drives.grown)
    if not update.running:
        grown |= update.change.drives.grown_later
    moved = move_disks(update.desired, update.actual, update.change)
    grows_here = not update.moves or (update.running and is_written)
    if grows_here:
        return [*moved, *grow(update.actual, grown)], []
    there = replace(update.actual, node=str(update.desired.node))
    return moved, grow(there, grown)


def _beside(written: list[Step], disk_steps: list[Step], *, running: bool) -> list[Step]:
    """Return both in order: a pending option of a running VM would be lost by a resize after it."""
    both = bool(disk_steps) and bool(written)
    if not running or not both:
        return [*written, *disk_steps]
    last_disk = replace(disk_steps[-1], reread=True)
    return [*disk_steps[:-1], last_disk, *written]


def _wake_first(desired: Desired, actual: Actual, change: Change, shared: Collection[str]) -> Plan:
    """Return the plan for a hibernated VM, which PVE locks: it is started, and then updated.

    Raises Conflict where the task does not start it.
    """
    if not power.wakes(desired):
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
    rest = plan_change(replace(desired, state="started"), awake, change, shared=shared)
    steps = (replace(power.wake(actual), reread=True), *rest.steps)
    return replace(
        rest,
        steps=steps,
        before={**rest.before, "status": actual.status},
        after={**rest.after, "status": awake.status},
    )


def _without_hibernation(config: Mapping[str, str]) -> dict[str, str]:
    awake = dict(config)
    for key in _OF_HIBERNATION:
        awake.pop(key, None)
    return awake


def check_data(label: str, data: Mapping[str, Any]) -> None:
    """Raise ValidationFailed for options that PVE would refuse, before the first request that
    writes.
    """
    options = dict(data)
    for key in _NOT_OPTIONS:
        options.pop(key, None)
    refused = check_options(options)
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


def _finished(
    update: Update, steps: list[Step], waiting: Collection[str], *, building: bool
) -> Plan:
    """Return the plan with its diff: only what changes, except for a VM that is new."""
    desired = update.desired
    actual = update.actual
    change = update.change
    keys = None
    if not building:
        keys = change.keys
    before = show(actual.target, keys)
    then = show(update.after, keys)
    if change.secret:
        then["cipassword"] = "(changed)"
    if steps and is_stale(actual):
        before["cloud_init_drive"] = "outdated"
        then["cloud_init_drive"] = "current"
    if update.moves:
        before["node"] = actual.node
        then["node"] = desired.node
    if changes_pool(desired, actual):
        before["pool"] = actual.pool
        then["pool"] = desired.pool or None
    conversions = filter(_is_conversion, steps)
    converted = [str(step.data["disk"]) for step in conversions]
    if converted:
        before["unconverted_disks"] = converted
        then["unconverted_disks"] = []
    restarts = power.is_restart(steps)
    resets = "reset" in [step.action for step in steps]
    if restarts or resets:
        before["restarted"] = False
        then["restarted"] = True
    status = power.status_after(desired, actual)
    if restarts:
        status = "running"
    if building or status != actual.status:
        before["status"] = actual.status
        then["status"] = status
    if building:
        before = {}
    if restarts or status in power.OFF:
        waiting = ()
    return Plan(
        tuple(steps),
        before,
        then,
        pending=tuple(waiting),
    )


def _is_conversion(step: Step) -> bool:
    """Return whether a step converts one disk of a template."""
    return step.action == "template" and "disk" in step.data


def _waiting(update: Update) -> list[str]:
    """Return the keys that wait for a stop after the update, with those that wait already."""
    live, target = update.actual.live, update.actual.target
    if not update.actual.running:
        return []
    waiting: list[str] = []
    for key in sorted(live.keys() | update.after.keys()):
        if live.get(key) == update.after.get(key):
            continue
        if key in update.change.keys:
            waits = _waits(key, update)
        else:
            waits = live.get(key) != target.get(key)
        if waits:
            waiting.append(key)
    return waiting


def _waits(key: str, update: Update) -> bool:
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
        # Growing and moving is live; what is written beside it is judged without them.
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
    """Return the options that run when volumes are destroyed, by a request after the update."""
    old, new = live.get("hotplug"), after.get("hotplug")
    if old == new or waits_for_stop("hotplug", old, new, live):
        return live
    rest = dict(live)
    rest.pop("hotplug", None)
    if new:
        rest["hotplug"] = new
    return rest


def plan_absent(desired: Desired, actual: Actual) -> Plan:
    """Return what removes a VM with its disks. Raises Conflict for a protected VM."""
    steps: list[Step] = []
    if actual.live.get("protection") == "1":
        _require_lifted(desired, actual)
        steps.append(switch_protection(actual, "0"))
    if actual.running:
        steps.append(power.stop(actual, desired, hard=not desired.graceful))
    summary = f"Remove {actual.label} and its disks"
    destroy = Step(
        "destroy",
        summary,
        method="DELETE",
        path=actual.path,
        data={"purge": 1, "destroy-unreferenced-disks": 1},
    )
    steps.append(destroy)
    before = show(actual.target)
    before["vmid"] = actual.vmid
    before["node"] = actual.node
    before["status"] = actual.status
    return Plan(tuple(steps), before, {})


def _require_lifted(desired: Desired, actual: Actual) -> None:
    """Raise Conflict where the task does not lift the protection of a VM that it removes."""
    if desired.scalars.get("protection") == "0":
        return
    raise Conflict(
        attempted=f"{actual.label} was not removed",
        answer="it is protected",
        next_step="Set protection=false in the same task to lift the protection",
        reason="protected",
    )
