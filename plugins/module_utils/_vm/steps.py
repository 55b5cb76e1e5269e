# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that an update of a VM is made of: which request each is, and what it says. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from .._core.errors import Conflict, NotSupported
from .._core.quantities import render_size
from .actual import drives, is_cloud_init, is_disk, storage_of
from .config import Change
from .hotplug import is_cloud_init_key
from .marker import split_notes
from .model import Actual, Desired, Step
from .refusals import taken_drives
from .view import show


def update_steps(
    desired: Desired, actual: Actual, change: Change, after: Mapping[str, str], *, running: bool
) -> list[Step]:
    path = (*actual.path, "config")
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
        ends = ends_building(actual, change) and change.sets.keys() == {"description"} and not change.deletes
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
    if wanted is None or not taken_drives(change):
        return None
    path = (*actual.path, "config")
    data: dict[str, Any] = {"protection": int(wanted)}
    if wanted == "0" and actual.digest:
        data["digest"] = actual.digest
    words = "Protect" if wanted == "1" else "Lift the protection of"
    return Step("config", f"{words} {actual.label}", "PUT", path, data, is_task=False)


def regenerate(actual: Actual) -> Step:
    """Return the step that writes the cloud-init drive of a running VM anew; a start does that by itself."""
    path = (*actual.path, "cloudinit")
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
            (*actual.path, "resize"),
            {"disk": slot, "size": render_size(size)},
        )
        for slot, size in sorted(change.drives.grown.items())
    ]


def move_disks(desired: Desired, actual: Actual, change: Change) -> list[Step]:
    formats = {disk.slot: {"format": disk.format} for disk in desired.disks if disk.format}
    return [
        Step(
            "move_disk",
            f"Move {slot} of {actual.label} to storage {storage}",
            "POST",
            (*actual.path, "move_disk"),
            {"disk": slot, "storage": storage, "delete": 1, **formats.get(slot, {})},
        )
        for slot, storage in sorted(change.drives.moved.items())
    ]


def to_pool(desired: Desired, actual: Actual) -> list[Step]:
    if not desired.pool or desired.pool == actual.pool:
        return []
    data = {"poolid": desired.pool, "vms": str(actual.vmid), "allow-move": 1}
    return [Step("pool", f"Put {actual.label} into pool {desired.pool}", "PUT", ("pools",), data, is_task=False)]


def migrate(
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
        (*actual.path, "migrate"),
        data,
        reread=True,
    )


def _has_cloud_init(config: Mapping[str, str]) -> bool:
    return any(is_cloud_init(drive) for drive in drives(config).values())


def ends_building(actual: Actual, change: Change) -> bool:
    """Tell whether the update takes the marker of a clone that is being made."""
    return split_notes(actual.target.get("description"))[1].building and "description" in change.sets


def finish_building(actual: Actual, notes: str, node: str) -> Step:
    label = f"VM '{actual.name}' ({actual.vmid}) on node {node}"
    path = ("nodes", node, "qemu", actual.vmid, "config")
    return Step("config", f"Finish {label}", "PUT", path, {"description": notes}, is_task=False)
