# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that an update of a VM is made of: which request each is, and what it says. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..._core.errors import Conflict, NotSupported
from ..._core.quantities import render_size
from ..._guest.marker import join_notes, split_notes
from ..._resource.plan import Step
from ..._schema.formats import parse_option
from ..config.actual import drives, is_cd, is_cloud_init, storage_of
from ..config.changes import Change
from ..config.hotplug import is_cloud_init_key
from ..config.view import show
from ..model import Actual, Desired
from .preconditions import taken_drives

_LONGEST_VALUE = 40  # in the summary of a step
_CARD = re.compile(r"net(\d+)$")


@dataclass(frozen=True)
class Update:
    """An update that is planned: the VM, what is written, and the configuration after it."""

    desired: Desired
    actual: Actual
    change: Change
    after: Mapping[str, str]
    running: bool  # whether the VM runs when its options are written

    @property
    def moves(self) -> bool:
        return moves_node(self.desired, self.actual)

    @property
    def notes(self) -> str | None:
        """The notes that are written, marker included, or None where they stay."""
        if "description" in self.change.deletes:
            return ""
        return self.change.sets.get("description")

    @property
    def ends_building(self) -> bool:
        """Whether it removes the marker of a VM that is being made."""
        return self.actual.marker.building and self.notes is not None

    @property
    def renews_drive(self) -> bool:
        """Whether the cloud-init drive of a running VM must be written; a start does it itself."""
        if not self.running:
            return False
        has_drive = any(map(is_cloud_init, drives(self.after).values()))
        if not has_drive:
            return False
        if is_stale(self.actual):
            return True
        return any(map(self._is_on_drive, self.change.keys))

    def _is_on_drive(self, key: str) -> bool:
        """Return whether the cloud-init drive holds what changes in an option.

        That is also the name, and the MAC of a card that has addresses (qemu-server:
        cloudinit_pending_properties; Cloudinit.pm, nocloud_network).
        """
        card = _CARD.match(key)
        if card is None:
            return key == "name" or is_cloud_init_key(key)
        if f"ipconfig{card.group(1)}" not in self.after:
            return False
        return _mac(self.actual.target.get(key)) != _mac(self.after.get(key))

    def without(self, option: str) -> Update:
        """Return the update without what it does to an option."""
        return replace(self, change=self.change.without(option))


def _mac(card: str | None) -> str:
    """Return the MAC of a network card, an empty text where PVE has not made it yet."""
    return parse_option("net0", card or "").get("macaddr", "").upper()


def moves_node(desired: Desired, actual: Actual) -> bool:
    """Return whether the VM is to go to another node."""
    if not desired.node:
        return False
    return desired.node != actual.node


def update_steps(update: Update) -> list[Step]:
    """Return the steps that write the options of a VM, in the order that PVE needs."""
    protection = update.change.sets.get("protection")
    if protection is None or not taken_drives(update.change):
        return [*_written(update, first=True), *_drive_steps(update)]
    rest = update.without("protection")
    switch = switch_protection(update.actual, protection)
    if protection == "0":
        # It goes off before the drives go, and on after them.
        return [switch, *_written(rest, first=False), *_drive_steps(rest)]
    return [*_written(rest, first=True), switch, *_drive_steps(rest)]


def switch_protection(actual: Actual, wanted: str) -> Step:
    """Return the step that switches the protection."""
    data: dict[str, Any] = {"protection": int(wanted)}
    if wanted == "1":
        return _config_step(actual, f"Protect {actual.label}", data)
    summary = f"Lift the protection of {actual.label}"
    return _config_step(actual, summary, _with_digest(data, actual))


def _written(update: Update, *, first: bool) -> list[Step]:
    """Return the steps that write options and remove drives, and then set the boot order.

    `first` is whether nothing of the plan is written before them: only then does the digest hold.
    """
    actual, change = update.actual, update.change
    steps: list[Step] = []
    boot = None
    if change.sets or change.deletes:
        step = _write_options(update, first=first)
        if _reorders(change, actual):
            data = dict(step.data)
            boot = data.pop("boot", None)
            step = replace(step, data=data)
        steps.append(step)
    if change.drives.removed:
        is_first = first and not steps
        steps.append(_remove_drives(actual, change, first=is_first))
    if boot:
        summary = f"Set the boot order of {actual.label}"
        steps.append(_config_step(actual, summary, {"boot": boot}))
    return steps


def _remove_drives(actual: Actual, change: Change, *, first: bool) -> Step:
    names = ",".join(sorted(change.drives.removed))
    data: dict[str, Any] = {"delete": names, "force": 1}
    if first:
        data = _with_digest(data, actual)
    return _config_step(actual, f"Remove {names} and their volumes from {actual.label}", data)


def _with_digest(data: Mapping[str, Any], actual: Actual) -> dict[str, Any]:
    """Return the data of a request that PVE refuses where the VM was changed since it was read."""
    if not actual.digest:
        return dict(data)
    return {**data, "digest": actual.digest}


def _drive_steps(update: Update) -> list[Step]:
    """Return the steps that write the cloud-init drive again and mark it as current."""
    actual = update.actual
    if update.renews_drive:
        return [regenerate(actual), unmark(actual, update.notes)]
    if actual.status == "hibernated":
        return []
    if is_stale(actual) and update.notes is None:
        return [unmark(actual)]
    return []


def _config_step(actual: Actual, summary: str, data: Mapping[str, Any]) -> Step:
    return Step(
        "config",
        summary,
        method="PUT",
        path=(*actual.path, "config"),
        data=data,
        is_task=False,
    )


def _write_options(update: Update, *, first: bool) -> Step:
    """Return the step that writes and deletes options."""
    actual, change = update.actual, update.change
    data: dict[str, Any] = dict(change.sets)
    deletes = set(change.deletes)
    if update.renews_drive:
        data["description"] = marked_notes(actual, update.notes)
        deletes.discard("description")
    if deletes:
        data["delete"] = ",".join(sorted(deletes))
    if first:
        data = _with_digest(data, actual)
    summary = f"Set {_summary_of(change, update.after)} on {actual.label}"
    written = {*change.sets, *change.deletes}
    if update.ends_building and written == {"description"}:
        summary = f"Remove the creation marker from {actual.label}"
    step = _config_step(actual, summary, data)
    if _allocates(change):
        # A PUT waits inside the request; allocating a volume can outlast it, so a task does it.
        return replace(step, method="POST", is_task=True)
    return step


def _allocates(change: Change) -> bool:
    """Return whether a drive of the change is a new volume, given as storage and size."""
    for text in change.drives.sets.values():
        volume, _comma, _options = text.partition(",")
        size = volume.rpartition(":")[2]
        if size.replace(".", "").isdigit():
            return True
    return False


def is_stale(actual: Actual) -> bool:
    """Return whether an interrupted run changed cloud-init data without writing the drive."""
    return actual.marker.stale


def marked_notes(actual: Actual, notes: str | None = None) -> str:
    """Return the notes, those of the VM or new ones, with the mark that its cloud-init drive is
    stale.
    """
    if notes is None:
        notes = actual.target.get("description")
    text, marker = split_notes(notes)
    return join_notes(text, replace(marker, stale=True))


def mark(actual: Actual) -> Step:
    """Return the step that marks the cloud-init drive as stale, before its data changes."""
    data = _with_digest({"description": marked_notes(actual)}, actual)
    return _config_step(actual, f"Mark the cloud-init drive of {actual.label} as outdated", data)


def unmark(actual: Actual, notes: str | None = None) -> Step:
    """Return the step that removes that mark once the drive is written; `notes` are new ones."""
    if notes is None:
        notes = join_notes(actual.notes, replace(actual.marker, stale=False))
    summary = f"Mark the cloud-init drive of {actual.label} as current"
    return _config_step(actual, summary, _notes_data(notes))


def _notes_data(notes: str | None) -> dict[str, Any]:
    """Return the data of a request that writes the notes, or removes them where they are empty."""
    if not notes:
        return {"delete": "description"}
    return {"description": notes}


def regenerate(actual: Actual) -> Step:
    """Return the step that writes the cloud-init drive of a running VM again.

    A start does that by itself.
    """
    return Step(
        "cloudinit",
        f"Regenerate the cloud-init drive of {actual.label}",
        method="PUT",
        path=(*actual.path, "cloudinit"),
        is_task=False,
    )


def _reorders(change: Change, actual: Actual) -> bool:
    """Return whether PVE itself changes the boot order: the desired one is then written after that.

    It appends a CD drive, and takes a drive out that is removed.
    """
    removed = change.drives.removed
    if not removed.isdisjoint(boot_devices(actual.live)):
        return True
    order = boot_devices(actual.target)
    for slot, drive in drives(change.drives.sets).items():
        if is_cd(drive) and slot not in order:
            return True
    return False


def boot_devices(config: Mapping[str, str]) -> list[str]:
    """Return the devices of a boot order."""
    _word, _equals, devices = config.get("boot", "").partition("order=")
    return devices.split(";")


def _summary_of(change: Change, after: Mapping[str, str]) -> str:
    """Return the keys of an update in words, with their values where they are short."""
    shown = show(after, change.sets.keys())
    shown.pop("cipassword", None)
    words: list[str] = []
    for key in sorted({*change.sets, *change.deletes}):
        if _is_short(shown.get(key)):
            words.append(f"{key}={shown[key]}")
        elif key in change.deletes:
            words.append(f"{key} (removed)")
        else:
            words.append(key)
    return ", ".join(words)


def _is_short(value: Any) -> bool:
    if value is None or isinstance(value, (dict, list)):
        return False
    return len(str(value)) <= _LONGEST_VALUE


def grow(actual: Actual, sizes: Mapping[str, int]) -> list[Step]:
    """Return the steps that grow disks to these sizes, in bytes by slot."""
    steps: list[Step] = []
    for slot, size in sorted(sizes.items()):
        text = render_size(size)
        step = Step(
            "resize",
            f"Grow {slot} of {actual.label} to {text}",
            method="PUT",
            path=(*actual.path, "resize"),
            data={"disk": slot, "size": text},
        )
        steps.append(step)
    return steps


def move_disks(desired: Desired, actual: Actual, change: Change) -> list[Step]:
    """Return the steps that move disks to other storages."""
    formats = {disk.slot: disk.format for disk in desired.disks}
    steps: list[Step] = []
    for slot, storage in sorted(change.drives.moved.items()):
        data: dict[str, Any] = {"disk": slot, "storage": storage, "delete": 1}
        if formats.get(slot):
            data["format"] = formats[slot]
        step = Step(
            "move_disk",
            f"Move {slot} of {actual.label} to storage {storage}",
            method="POST",
            path=(*actual.path, "move_disk"),
            data=data,
        )
        steps.append(step)
    return steps


def changes_pool(desired: Desired, actual: Actual) -> bool:
    """Return whether the VM is put into a pool or taken out of the one it is in."""
    if desired.pool is None:
        return False
    current = actual.pool or ""
    return desired.pool != current


def to_pool(desired: Desired, actual: Actual) -> list[Step]:
    """Return the step that puts the VM into its pool or takes it out, if any."""
    if not changes_pool(desired, actual):
        return []
    if desired.pool:
        summary = f"Put {actual.label} into pool {desired.pool}"
        data = {"poolid": desired.pool, "vms": str(actual.vmid), "allow-move": 1}
    else:
        summary = f"Take {actual.label} out of pool {actual.pool}"
        data = {"poolid": actual.pool, "vms": str(actual.vmid), "delete": 1}
    step = Step(
        "pool",
        summary,
        method="PUT",
        path=("pools",),
        data=data,
        is_task=False,
    )
    return [step]


def migrate(update: Update, shared: Collection[str]) -> Step:
    """Return the step that moves the VM to its node. Raises Conflict, NotSupported."""
    desired, actual = update.desired, update.actual
    if not desired.migrate:
        raise Conflict(
            attempted=f"{actual.label} was not moved",
            answer=f"node {desired.node} is asked for and migrate is false",
            next_step="Allow the move with migrate=true, or leave node out",
            reason="node differs",
        )
    local = _local_storages(actual.target, shared)
    _require_no_local_cd(update, local)
    data: dict[str, Any] = {"target": desired.node}
    kind = "offline"
    if update.running:
        kind = "live"
        data["online"] = 1
        if local:
            data["with-local-disks"] = 1
    return Step(
        "migrate",
        f"Migrate {actual.label} to node {desired.node} ({kind})",
        method="POST",
        path=(*actual.path, "migrate"),
        data=data,
        reread=True,
    )


def _local_storages(config: Mapping[str, str], shared: Collection[str]) -> set[str]:
    """Return the storages of a VM's drives that only its own node has."""
    local: set[str] = set()
    for drive in drives(config).values():
        storage = storage_of(drive)
        if storage and storage not in shared:
            local.add(storage)
    return local


def _require_no_local_cd(update: Update, local: Collection[str]) -> None:
    blocking: list[str] = []
    for slot, drive in drives(update.after).items():
        if not is_cd(drive):
            continue
        if storage_of(drive) in local:
            blocking.append(slot)
    if not blocking:
        return
    names = ", ".join(sorted(blocking))
    node = update.desired.node
    raise NotSupported(
        attempted=f"{update.actual.label} could not be planned to move to node {node}",
        answer=f"{names} holds an ISO on a storage that only its node has",
        next_step="Eject it with iso=none, or put the ISO on a shared storage",
        reason="local ISO",
    )


def complete(
    actual: Actual,
    change: Change,
    rest: Sequence[Step],
    *,
    tags: str | None,
    contested: bool = False,
) -> list[Step]:
    """Return the steps after the creation of a VM: its tags first, where they are still to be
    written, and the removal of its marker last. One request does both where nothing is between,
    also no check of a `contested` VM.
    """
    last = finish_building(actual, change, actual.node)
    if not tags:
        return [*rest, last]
    if rest or contested:
        step = _config_step(actual, f"Set tags on {actual.label}", {"tags": tags})
        return [step, *rest, last]
    notes = change.sets.get("description")
    words = "description, tags"
    if notes is None:
        words = "description (removed), tags"
    elif _is_short(notes):
        words = f"description={notes}, tags"
    return [_config_step(actual, f"Set {words} on {actual.label}", {**last.data, "tags": tags})]


def finish_building(actual: Actual, change: Change, node: str) -> Step:
    """Return the step that writes the notes without the marker."""
    moved = replace(actual, node=node)
    data = _notes_data(change.sets.get("description"))
    return _config_step(moved, f"Remove the creation marker from {moved.label}", data)


def writes_notes_only(step: Step) -> bool:
    """Return whether a step writes the notes and nothing else, as the one does that finishes a new
    VM.
    """
    if step.action != "config":
        return False
    written = step.data.keys() - {"digest"}
    if written == {"delete"}:
        return step.data["delete"] == "description"
    return written == {"description"}
