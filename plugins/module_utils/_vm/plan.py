# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From a wish and what is there to a plan: ordered steps, a diff, what waits for a stop. Pure.

Check mode shows the plan, apply carries it out, tests read it; nothing else decides what is written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from .._core.errors import Conflict, ValidationFailed
from .._core.quantities import render_size
from .._schema.check import check_options
from . import power
from .actual import DRIVE
from .config import Change, apply_to, changes
from .drives import DriveChange
from .hotplug import waits_for_stop
from .model import Actual, Desired, Plan, Step
from .refusals import check_refusals, require_there
from .steps import ends_building, finish_building, grow, migrate, move_disks, to_pool, update_steps
from .view import show

# What PVE adds to the configuration of a VM while its memory is on disk.
_OF_HIBERNATION = frozenset("lock vmstate runningmachine runningcpu running-nets-host-mtu".split())


def plan_update(
    desired: Desired,
    actual: Actual,
    *,
    shared: Collection[str] = (),
    building: bool = False,
    images: Mapping[str, int] | None = None,
) -> Plan:
    """Return what makes an existing VM the desired one.

    `shared` are the storages that all nodes share; `building` says that the VM was just made and starts as a wish.
    `images` says how large (in bytes) the images are that new disks import: such a disk grows after it is made.
    """
    power.check_wish(desired, actual)
    change = changes(desired, actual.target)
    if desired.state == "template" and not actual.template:
        change.follows["template"] = "1"
    check_data(actual.label, change.sets)
    late = _grown_after_import(desired, actual, change, images or {})
    after = apply_to(change, actual.target)
    if actual.status == "hibernated" and (change.keys or (desired.node and desired.node != actual.node)):
        return _wake_first(desired, actual, shared)
    check_refusals(desired, actual, change, after)
    waiting = _waiting(change, actual, after)
    steps: list[Step] = []
    runs = actual.running
    if power.stops_first(desired, actual):
        steps.append(replace(power.stop(actual, desired), reread=True))  # a stop applies what waited for it
        runs = False
    if runs:
        require_there(actual, late, change.drives.sets)
    else:
        change.drives.grown.update(late)
    steps += _ordered(desired, actual, change, after, late, shared, running=runs)
    steps += power.finish(desired, actual, running=runs, waiting=bool(waiting))
    return _finished(desired, actual, change, after, steps, waiting, building=building)


def _grown_after_import(desired: Desired, actual: Actual, change: Change, images: Mapping[str, int]) -> dict[str, int]:
    """Return to how many bytes new disks grow once their images are imported; those have their images' sizes then."""
    late = {}
    for disk in desired.disks:
        size = images.get(disk.slot) if disk.slot not in actual.target else None
        if size and disk.size is None:
            change.drives.shown[disk.slot] += f",size={render_size(size)}"
        elif size and disk.size and disk.size > size:
            late[disk.slot] = disk.size
    return late


def _ordered(
    desired: Desired,
    actual: Actual,
    change: Change,
    after: Mapping[str, str],
    late: dict[str, int],
    shared: Collection[str],
    *,
    running: bool,
) -> list[Step]:
    """Return the steps between a stop and a start, in the order that PVE needs."""
    moves_node = bool(desired.node and desired.node != actual.node)
    steps: list[Step] = []
    disk_steps = [*grow(actual, change), *move_disks(desired, actual, change)]
    update = update_steps(desired, actual, change, after, running=running)
    if late:  # what was imported has its size once it is there
        update[0] = replace(update[0], reread=True)
    finish: list[Step] = []
    if ends_building(actual, change) and (disk_steps or moves_node or len(update) > 1 or update[0].is_task):
        # The marker goes when nothing is left that a run could be interrupted in.
        rest = replace(change, sets={key: text for key, text in change.sets.items() if key != "description"})
        update = update_steps(desired, actual, rest, after, running=running)
        finish = [finish_building(actual, change.sets["description"], desired.node or actual.node)]
    if running and disk_steps and update:  # an option that is pending would be lost by the resize
        disk_steps[-1] = replace(disk_steps[-1], reread=True)
        steps += [*disk_steps, *update]
    else:
        steps += [*update, *disk_steps]
    if running:
        steps += grow(actual, Change(drives=DriveChange(grown=late)))
    steps += to_pool(desired, actual)
    if moves_node:
        steps.append(migrate(desired, actual, after, shared, running=running))
    return steps + finish


def _wake_first(desired: Desired, actual: Actual, shared: Collection[str]) -> Plan:
    """Return the plan for a VM that PVE locks while its memory is on disk: started, and then made what it shall be.

    Raises Conflict where it shall not be started.
    """
    if not power.wakes(desired):
        raise Conflict(
            attempted=f"{actual.label} was left alone",
            answer="it is hibernated, and PVE changes nothing of it until it has been started",
            next_step="Start it in the same task with state=started, or leave its options as they are",
            reason="hibernated",
        )
    live, target = (
        {key: text for key, text in config.items() if key not in _OF_HIBERNATION}
        for config in (actual.live, actual.target)
    )
    awake = replace(actual, status="running", live=live, target=target)
    rest = plan_update(replace(desired, state="started"), awake, shared=shared)
    steps = (replace(power.wake(actual), reread=True), *rest.steps)
    return replace(
        rest,
        steps=steps,
        before={**rest.before, "status": actual.status},
        after={**rest.after, "status": awake.status},
    )


def check_data(label: str, data: Mapping[str, Any]) -> None:
    """Raise ValidationFailed for options that PVE would refuse, before the first request that writes."""
    refused = check_options({key: value for key, value in data.items() if key not in ("vmid", "pool", "digest")})
    if refused:
        raise ValidationFailed(
            attempted=f"{label} could not be planned",
            answer="; ".join(f"{key}: {reason}" for key, reason in sorted(refused.items())),
            next_step="Correct these options; the reasons are PVE's",
            reason=", ".join(sorted(refused)),
            parameters=refused,
        )


def _finished(
    desired: Desired,
    actual: Actual,
    change: Change,
    after: Mapping[str, str],
    steps: list[Step],
    waiting: list[str],
    *,
    building: bool,
) -> Plan:
    """Return the plan with its diff: only what changes, except for a VM that is new."""
    keys = None if building else change.keys
    before = {} if building else show(actual.target, keys)
    then = show(after, keys)
    if change.secret:
        then["cipassword"] = "(changed)"
    if desired.node and desired.node != actual.node:
        before["node"], then["node"] = actual.node, desired.node
    if desired.pool and desired.pool != actual.pool:
        before["pool"], then["pool"] = actual.pool, desired.pool
    status = power.status_after(desired, actual)
    if any(step.action in ("reboot", "reset") for step in steps):
        before["restarted"], then["restarted"] = False, True
    if building:
        then["status"] = status
    elif status != actual.status:
        before["status"], then["status"] = actual.status, status
    if building:
        before = {}
    restarts = any(step.action == "reboot" for step in steps) or status in power.OFF
    pending = () if restarts else tuple(waiting)
    return Plan(tuple(steps), before, then, pending)


def _waiting(change: Change, actual: Actual, after: Mapping[str, str]) -> list[str]:
    """Return the keys that wait for a stop once the update is made, those that wait already included."""
    if not actual.running:
        return []
    keys = {key for key in actual.live.keys() | after.keys() if actual.live.get(key) != after.get(key)}
    still = {key for key in keys if key not in change.keys and actual.live.get(key) != actual.target.get(key)}
    new = {key for key in keys & change.keys if _waits(key, change, actual, after)}
    return sorted(still | new)


def _waits(key: str, change: Change, actual: Actual, after: Mapping[str, str]) -> bool:
    """Growing and moving a disk is live; what is written beside it is judged without them.

    A disk that the VM boots from cannot be unplugged.
    """
    if key in change.gone and key in actual.live.get("boot", "").partition("order=")[2].split(";") and DRIVE.match(key):
        return True
    if key in change.drives.grown or key in change.drives.moved:
        written = change.drives.sets.get(key)
        return written is not None and waits_for_stop(key, actual.live.get(key), written, actual.live)
    live = actual.live
    if key in change.drives.removed and change.keys - change.drives.removed:
        # Volumes are destroyed by a second request: what the first one says of hotplug holds by then.
        old, new = live.get("hotplug"), after.get("hotplug")
        if old != new and not waits_for_stop("hotplug", old, new, live):
            live = {
                **{name: text for name, text in live.items() if name != "hotplug"},
                **({"hotplug": new} if new else {}),
            }
    return waits_for_stop(key, actual.live.get(key), after.get(key), live)


def plan_absent(desired: Desired, actual: Actual) -> Plan:
    """Return what removes a VM with its disks. Raises Conflict for a protected one that the task does not release."""
    steps: list[Step] = []
    base = actual.path
    if actual.live.get("protection") == "1":
        if desired.plain.get("protection") != "0":
            raise Conflict(
                attempted=f"{actual.label} was not removed",
                answer="it is protected",
                next_step="Set protection=false in the same task to lift the protection",
                reason="protected",
            )
        data = {"protection": 0, **({"digest": actual.digest} if actual.digest else {})}
        steps.append(
            Step("config", f"Lift the protection of {actual.label}", "PUT", (*base, "config"), data, is_task=False)
        )
    if actual.running:
        steps.append(power.stop(actual, desired, hard=not desired.graceful))
    data = {"purge": 1, "destroy-unreferenced-disks": 1}
    steps.append(Step("destroy", f"Remove {actual.label} and its disks", "DELETE", base, data))
    before = show(actual.target) | {"vmid": actual.vmid, "node": actual.node, "status": actual.status}
    return Plan(tuple(steps), before, {})
