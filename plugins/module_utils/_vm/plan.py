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

from .._core.errors import Conflict, NotSupported, ValidationFailed
from .._core.quantities import render_size
from .._schema.check import check_options
from . import power
from .actual import DRIVE, drives, is_cloud_init, is_disk, storage_of
from .config import Change, apply_to, changes
from .drives import DriveChange
from .hotplug import is_cloud_init_key, waits_for_stop
from .marker import split_notes
from .model import Actual, Desired, Plan, Step
from .refusals import check_refusals, removes_drives, require_there
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
    late = {}
    for disk in desired.disks:
        size = (images or {}).get(disk.slot) if disk.slot not in actual.target else None
        if size and disk.size is None:
            change.drives.shown[disk.slot] += f",size={render_size(size)}"
        elif size and disk.size and disk.size > size:
            late[disk.slot] = disk.size
    after = apply_to(change, actual.target)
    if actual.status == "hibernated" and (change.keys or (desired.node and desired.node != actual.node)):
        return _wake_first(desired, actual, shared)
    check_refusals(desired, actual, change, after)
    moves_node = bool(desired.node and desired.node != actual.node)
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
    disk_steps = [*grow(actual, change), *_move(desired, actual, change)]
    update = _update_steps(desired, actual, change, after, running=runs)
    if late:  # what was imported has its size once it is there
        update[0] = replace(update[0], reread=True)
    finish: list[Step] = []
    if _ends_building(actual, change) and (disk_steps or moves_node or len(update) > 1 or update[0].is_task):
        # The marker goes when nothing is left that a run could be interrupted in.
        rest = replace(change, sets={key: text for key, text in change.sets.items() if key != "description"})
        update = _update_steps(desired, actual, rest, after, running=runs)
        finish = [_finish(actual, change.sets["description"], desired.node or actual.node)]
    if runs and disk_steps and update:  # an option that is pending would be lost by the resize (see BEHAVIOUR, Resize)
        disk_steps[-1] = replace(disk_steps[-1], reread=True)
        steps += [*disk_steps, *update]
    else:
        steps += [*update, *disk_steps]
    if runs:
        steps += grow(actual, Change(drives=DriveChange(grown=late)))
    steps += _pool(desired, actual)
    if moves_node:
        steps.append(_migrate(desired, actual, after, shared, running=runs))
    steps += finish
    steps += power.finish(desired, actual, running=runs, waiting=bool(waiting))
    return _finished(desired, actual, change, after, steps, waiting, building=building)


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


def _ends_building(actual: Actual, change: Change) -> bool:
    """Tell whether the update takes the marker of a clone that is being made."""
    return split_notes(actual.target.get("description"))[1].building and "description" in change.sets


def _finish(actual: Actual, notes: str, node: str) -> Step:
    label = f"VM '{actual.name}' ({actual.vmid}) on node {node}"
    path = ("nodes", node, "qemu", actual.vmid, "config")
    return Step("config", f"Finish {label}", "PUT", path, {"description": notes}, is_task=False)


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


def _update_steps(
    desired: Desired, actual: Actual, change: Change, after: Mapping[str, str], *, running: bool
) -> list[Step]:
    path = ("nodes", actual.node, "qemu", actual.vmid, "config")
    steps: list[Step] = []
    boot = None
    protect = _protect(actual, change)
    if protect is not None:
        change = replace(change, sets={key: text for key, text in change.sets.items() if key != "protection"})
        if not protect.data["protection"]:
            steps.append(protect)
    if change.sets or change.deletes:
        data: dict[str, Any] = dict(change.sets)
        if change.deletes:
            data["delete"] = ",".join(sorted(change.deletes))
        if actual.digest and not steps:
            data["digest"] = actual.digest
        boot = data.pop("boot", None) if _reorders(change, actual) else None
        said = _said(change, actual, after)
        creates = any(
            value.partition(",")[0].rpartition(":")[2].replace(".", "").isdigit()
            for value in change.drives.sets.values()
        )
        # A PUT waits inside the request; allocating a volume can outlast it, so that goes through a task.
        method = "POST" if creates else "PUT"
        ends = _ends_building(actual, change) and change.sets.keys() == {"description"} and not change.deletes
        summary = f"Finish {actual.label}" if ends else f"Set {said} on {actual.label}"
        steps.append(Step("config", summary, method, path, data, is_task=creates))
    if change.drives.removed:
        names = ",".join(sorted(change.drives.removed))
        data = {"delete": names, "force": 1}
        if actual.digest and not steps:
            data["digest"] = actual.digest
        steps.append(
            Step("config", f"Remove {names} and their volumes from {actual.label}", "PUT", path, data, is_task=False)
        )
    if boot:
        steps.append(
            Step("config", f"Set the boot order of {actual.label}", "PUT", path, {"boot": boot}, is_task=False)
        )
    if protect is not None and protect.data["protection"]:
        steps.append(protect)
    if running and any(is_cloud_init_key(key) for key in change.keys) and _has_cloud_init(after):
        steps.append(regenerate(actual))
    return steps


def _protect(actual: Actual, change: Change) -> Step | None:
    """Return the step that switches protection where drives go too: off before that, on when they are gone."""
    wanted = change.sets.get("protection")
    if wanted is None or not removes_drives(change):
        return None
    path = ("nodes", actual.node, "qemu", actual.vmid, "config")
    data: dict[str, Any] = {"protection": int(wanted)}
    if wanted == "0" and actual.digest:
        data["digest"] = actual.digest
    words = "Protect" if wanted == "1" else "Lift the protection of"
    return Step("config", f"{words} {actual.label}", "PUT", path, data, is_task=False)


def regenerate(actual: Actual) -> Step:
    """Return the step that writes the cloud-init drive of a running VM anew; a start does that by itself."""
    path = ("nodes", actual.node, "qemu", actual.vmid, "cloudinit")
    return Step("cloudinit", f"Regenerate the cloud-init drive of {actual.label}", "PUT", path, is_task=False)


def _reorders(change: Change, actual: Actual) -> bool:
    """Tell whether PVE itself writes a boot order, made from the one it had: a wished one is written behind that.

    It appends a CD drive, and takes a drive out that is removed.
    """
    live = actual.live.get("boot", "").partition("order=")[2].split(";")
    return _adds_cd(change, actual) or bool(change.drives.removed.intersection(live))


def _adds_cd(change: Change, actual: Actual) -> bool:
    order = actual.target.get("boot", "").partition("order=")[2].split(";")
    new = {slot: text for slot, text in change.drives.sets.items() if slot not in order}
    return any(not is_disk(drive) and not is_cloud_init(drive) for drive in drives(new).values())


def _said(change: Change, actual: Actual, after: Mapping[str, str]) -> str:
    """Return the keys of an update in words, with their values where they are short."""
    shown = show(after, change.sets.keys())
    words = []
    for key in sorted({*change.sets, *change.deletes}):
        value = shown.get(key)
        short = value is not None and not isinstance(value, (dict, list)) and len(str(value)) <= 40
        words.append(
            f"{key}={value}" if short and key != "cipassword" else f"{key} (removed)" if key in change.deletes else key
        )
    return ", ".join(words)


def grow(actual: Actual, change: Change) -> list[Step]:
    """Return the steps that grow disks."""
    return [
        Step(
            "resize",
            f"Grow {slot} of {actual.label} to {render_size(size)}",
            "PUT",
            ("nodes", actual.node, "qemu", actual.vmid, "resize"),
            {"disk": slot, "size": render_size(size)},
        )
        for slot, size in sorted(change.drives.grown.items())
    ]


def _move(desired: Desired, actual: Actual, change: Change) -> list[Step]:
    formats = {disk.slot: {"format": disk.format} for disk in desired.disks if disk.format}
    return [
        Step(
            "move_disk",
            f"Move {slot} of {actual.label} to storage {storage}",
            "POST",
            ("nodes", actual.node, "qemu", actual.vmid, "move_disk"),
            {"disk": slot, "storage": storage, "delete": 1, **formats.get(slot, {})},
        )
        for slot, storage in sorted(change.drives.moved.items())
    ]


def _pool(desired: Desired, actual: Actual) -> list[Step]:
    if not desired.pool or desired.pool == actual.pool:
        return []
    data = {"poolid": desired.pool, "vms": str(actual.vmid), "allow-move": 1}
    return [Step("pool", f"Put {actual.label} into pool {desired.pool}", "PUT", ("pools",), data, is_task=False)]


def _migrate(
    desired: Desired, actual: Actual, after: Mapping[str, str], shared: Collection[str], *, running: bool
) -> Step:
    if not desired.migrate:
        raise Conflict(
            attempted=f"{actual.label} was left where it is",
            answer=f"node {desired.node} is asked for and migrate is false",
            next_step="Allow the move with migrate=true, or leave node out",
            reason="node differs",
        )
    local = sorted(
        {store for drive in drives(actual.target).values() if (store := storage_of(drive)) and store not in shared}
    )
    cd_roms = sorted(
        slot
        for slot, drive in drives(after).items()
        if drive.get("media") == "cdrom" and not is_cloud_init(drive) and (storage_of(drive) or "") in local
    )
    if cd_roms:
        raise NotSupported(
            attempted=f"{actual.label} could not be planned to move to node {desired.node}",
            answer=f"{', '.join(cd_roms)} holds an ISO on a storage that only its node has",
            next_step="Eject it with iso=none, or put the ISO on a shared storage",
            reason="local ISO",
        )
    data: dict[str, Any] = {"target": desired.node}
    if running:
        data["online"] = 1
    if local and running:
        data["with-local-disks"] = 1
    kind = "live" if running else "offline"
    return Step(
        "migrate",
        f"Migrate {actual.label} to node {desired.node} ({kind})",
        "POST",
        ("nodes", actual.node, "qemu", actual.vmid, "migrate"),
        data,
        reread=True,
    )


def _has_cloud_init(config: Mapping[str, str]) -> bool:
    return any(is_cloud_init(drive) for drive in drives(config).values())


def plan_absent(desired: Desired, actual: Actual) -> Plan:
    """Return what removes a VM with its disks. Raises Conflict for a protected one that the task does not release."""
    steps: list[Step] = []
    base = ("nodes", actual.node, "qemu", actual.vmid)
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
