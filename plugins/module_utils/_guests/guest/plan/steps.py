# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of an update that VMs and containers share, and the steps for user data and the
cloud-init drive: their requests and summaries (pure).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from ...._foundation.core.errors import Conflict
from ...._foundation.core.quantities import render_size
from ...._foundation.plans.requests import STAND_IN
from ...._foundation.resource.plan import Plan, Step
from ...kinds.config.change import ConfigChange
from ...kinds.hardware import AnyDesired, Disk, Snippet
from ...kinds.marker import join_notes, split_notes
from ...kinds.model import Actual, Guest

AnyUpdate = TypeVar("AnyUpdate", bound="PlannedUpdate[Any]")
_LONGEST_VALUE = 40  # in the summary of a step


@dataclass(frozen=True)
class PlannedUpdate(Generic[AnyDesired]):
    """A planned update: the guest, the change, and the configuration after it."""

    desired: AnyDesired
    actual: Actual
    change: ConfigChange
    after: Mapping[str, str]
    running: bool  # whether the guest runs when its options are written

    @property
    def moves(self) -> bool:
        return moves_node(self.desired.guest, self.actual)

    @property
    def notes(self) -> str | None:
        """The notes that are written, marker included, or None if they stay."""
        if "description" in self.change.deletes:
            return ""
        return self.change.sets.get("description")

    @property
    def ends_building(self) -> bool:
        """Whether the update removes the marker of a guest that is being created."""
        return self.actual.marker.building and self.notes is not None

    @property
    def ends_with_notes(self) -> bool:
        """Whether the notes are written last: they show that everything before is done.

        PVE writes the options of one request one after the other, so it could write the notes
        before a disk in the same request (qemu-server: API2/Qemu.pm, update_vm_api).
        """
        return self.ends_building or self.notes_image

    @property
    def notes_image(self) -> bool:
        """Whether the update notes the image of a replaced disk in a finished guest."""
        is_replaced = self.desired.guest.replacement is not None and self.notes is not None
        return is_replaced and not self.ends_building

    @property
    def taken(self) -> set[str]:
        """The disks that the update removes or detaches."""
        detached = filter(self.actual.kind.volume_option.match, self.change.deletes)
        return {*self.change.drives.removed, *detached}

    def require_possible(self) -> None:
        """Raise FleetError for a change that PVE would refuse half way."""

    def written(self, *, first: bool) -> list[Step]:
        """Return the steps that write options and remove disks, in the order that PVE needs.

        `first` is set for the first write of the plan: the digest is valid only for it.
        """
        raise NotImplementedError

    def migrate(self, shared: Collection[str]) -> Step:
        """Return the step that moves the guest to its node. Raises Conflict, NotSupported."""
        raise NotImplementedError

    def waits(self, key: str) -> bool:
        """Return whether the change of a key waits for a stop."""
        return self.waits_for(key, self.actual.live)

    def waits_for(self, key: str, live: Mapping[str, str]) -> bool:
        """Return whether the change of a key waits for a stop of a guest with these running
        options. Growing and moving is live; only the other sub-keys that are written can wait.
        """
        drives, value = self.change.drives, self.after.get(key)
        if key in {*drives.grown, *drives.moved}:
            if key not in drives.sets:
                return False
            value = drives.sets[key]
        return self.actual.kind.waits_for_stop(key, self.actual.live.get(key), value, live)

    def renew_drive(self) -> list[Step]:
        """Return the steps that write the cloud-init drive again; only VMs have one."""
        return []

    def add_hidden_values(
        self, steps: Collection[Step], before: dict[str, Any], new_values: dict[str, Any]
    ) -> None:
        """Add values that the configuration does not show, before and after the change."""

    def without(self: AnyUpdate, option: str) -> AnyUpdate:
        """Return the update with one option removed from its change."""
        return replace(self, change=self.change.without(option))

    def write_options(self, *, first: bool) -> Step:
        """Return the step that writes and deletes options.

        `first` is set for the first write of the plan: the digest is valid only for it.
        """
        actual, change = self.actual, self.change
        data: dict[str, Any] = dict(change.sets)
        if change.deletes:
            data["delete"] = ",".join(sorted(change.deletes))
        if first:
            data = with_digest(data, actual)
        summary = f"Set {_summary_of(self)} on {actual.label}"
        written = {*change.sets, *change.deletes}
        if self.ends_with_notes and written == {"description"}:
            summary = _summary_of_notes(actual, notes_image=self.notes_image)
        return config_step(actual, summary, data)


def moves_node(desired: Guest, actual: Actual) -> bool:
    """Return whether the guest moves to another node."""
    return bool(desired.node) and desired.node != actual.node


def _summary_of(update: PlannedUpdate[Any]) -> str:
    """Return the keys of an update in words, with their values if they are short."""
    change = update.change
    formatted = update.actual.kind.formatted(update.after, change.sets.keys())
    words: list[str] = []
    for key in sorted({*change.sets, *change.deletes}):
        if is_short(formatted.get(key)) and key not in update.actual.kind.secret_options:
            words.append(f"{key}={formatted[key]}")
        elif key in change.deletes:
            words.append(f"{key} (removed)")
        else:
            words.append(key)
    return ", ".join(words)


def is_short(value: Any) -> bool:
    """Return whether a value is short enough for the summary of a step."""
    if value is None or isinstance(value, (dict, list)):
        return False
    return len(str(value)) <= _LONGEST_VALUE


def with_digest(data: Mapping[str, Any], actual: Actual) -> dict[str, Any]:
    """Return the data with the digest, so PVE refuses it if the guest was changed since."""
    if not actual.digest:
        return dict(data)
    return {**data, "digest": actual.digest}


def config_step(actual: Actual, summary: str, data: Mapping[str, Any]) -> Step:
    """Return the step that writes options of a guest."""
    return Step(
        "config", summary, method="PUT", path=(*actual.path, "config"), data=data, is_task=False
    )


def switch_protection(actual: Actual, wanted: str) -> Step:
    """Return the step that switches the protection."""
    data: dict[str, Any] = {"protection": int(wanted)}
    if wanted == "1":
        return config_step(actual, f"Protect {actual.label}", data)
    summary = f"Lift the protection of {actual.label}"
    return config_step(actual, summary, with_digest(data, actual))


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


def move_disks(update: PlannedUpdate[Any], moved: Mapping[str, str]) -> list[Step]:
    """Return the steps that move disks to other storages, by slot."""
    actual, hardware = update.actual, update.desired.hardware
    request, option = actual.kind.move_request
    disks = {disk.slot: disk for disk in hardware.disks}
    steps: list[Step] = []
    for slot, storage in sorted(moved.items()):
        disk = disks.get(slot, Disk(slot))
        limits = {"bwlimit": disk.bwlimit, "format": disk.format or None}
        more = {name: value for name, value in limits.items() if value is not None}
        step = Step(
            "move_disk",
            f"Move {slot} of {actual.label} to storage {storage}",
            method="POST",
            path=(*actual.path, request),
            data={option: slot, "storage": storage, "delete": 1, **more},
        )
        steps.append(step)
    return steps


HAND_OVER = "hand_over"
"""The action of a step that moves a disk to another guest."""


def hand_over(actual: Actual, disks: Mapping[str, Disk]) -> list[Step]:
    """Return the steps that move disks to other guests of the same node."""
    request, option = actual.kind.move_request
    steps: list[Step] = []
    for slot, disk in sorted(disks.items()):
        receiver = f"{disk.target_slot} of {actual.kind.noun} {disk.target_vmid}"
        step = Step(
            HAND_OVER,
            f"Move {slot} of {actual.label} to {receiver}",
            method="POST",
            path=(*actual.path, request),
            data={
                option: slot,
                "target-vmid": disk.target_vmid,
                f"target-{option}": disk.target_slot,
            },
        )
        steps.append(step)
    return steps


def changes_pool(desired: Guest, actual: Actual) -> bool:
    """Return whether the guest is put into a pool or taken out of its pool."""
    if desired.pool is None:
        return False
    current = actual.pool or ""
    return desired.pool != current


def to_pool(desired: Guest, actual: Actual) -> list[Step]:
    """Return the step that puts the guest into its pool or takes it out, if needed."""
    if not changes_pool(desired, actual):
        return []
    if desired.pool:
        summary = f"Put {actual.label} into pool {desired.pool}"
        data = {"poolid": desired.pool, "vms": str(actual.vmid), "allow-move": 1}
    else:
        summary = f"Take {actual.label} out of pool {actual.pool}"
        data = {"poolid": actual.pool, "vms": str(actual.vmid), "delete": 1}
    step = Step("pool", summary, method="PUT", path=("pools",), data=data, is_task=False)
    return [step]


def require_migration_allowed(desired: Guest, actual: Actual) -> None:
    """Raise Conflict if the task does not allow a migration."""
    if desired.migrate:
        return
    raise Conflict(
        f"{actual.label} was not moved: node {desired.node} is asked for and migrate is false",
        "Allow the move with migrate=true, or leave node out",
        "node differs",
    )


def migration(desired: Guest, actual: Actual, kind: str, data: Mapping[str, Any]) -> Step:
    """Return the step that moves a guest to its node; `kind` is the kind of the migration."""
    return Step(
        "migrate",
        f"Migrate {actual.label} to node {desired.node} ({kind})",
        method="POST",
        path=(*actual.path, "migrate"),
        data={"target": desired.node, **data},
        reread=True,
    )


def notes_data(notes: str | None) -> dict[str, Any]:
    """Return the data of a request that writes the notes, or removes them if they are empty."""
    if not notes:
        return {"delete": "description"}
    return {"description": notes}


def complete(
    actual: Actual,
    change: ConfigChange,
    rest: Sequence[Step],
    *,
    tags: str | None,
    contested: bool = False,
) -> list[Step]:
    """Return the steps after the creation of a guest: first its tags, if they are not written yet,
    and last the removal of its marker. One request does both if no step is between them and the
    guest is not `contested`.
    """
    last = write_notes_last(actual, change, actual.node)
    if not tags:
        return [*rest, last]
    if rest or contested:
        step = config_step(actual, f"Set tags on {actual.label}", {"tags": tags})
        return [step, *rest, last]
    notes = change.sets.get("description")
    words = "description, tags"
    if notes is None:
        words = "description (removed), tags"
    elif is_short(notes):
        words = f"description={notes}, tags"
    return [config_step(actual, f"Set {words} on {actual.label}", {**last.data, "tags": tags})]


def _summary_of_notes(actual: Actual, *, notes_image: bool) -> str:
    """Return the summary of the step that writes the notes last."""
    if notes_image:
        return f"Note the image of {actual.label}"
    return f"Remove the creation marker from {actual.label}"


def write_notes_last(
    actual: Actual, change: ConfigChange, node: str, *, notes_image: bool = False
) -> Step:
    """Return the step that writes the notes when everything else is done.

    With `notes_image` they name the image of a replaced disk, otherwise they end the creation.
    """
    moved = replace(actual, node=node)
    data = notes_data(change.sets.get("description"))
    return config_step(moved, _summary_of_notes(moved, notes_image=notes_image), data)


def writes_notes_only(step: Step) -> bool:
    """Return whether a step writes only the notes, as does the last step of a new guest."""
    if step.action != "config":
        return False
    written = step.data.keys() - {"digest"}
    if written == {"delete"}:
        return step.data["delete"] == "description"
    return written == {"description"}


def isolate(desired: Guest, actual: Actual) -> list[Step]:
    """Return the step that writes the firewall of a guest; none if nothing is left to do.

    The step represents several requests. They are planned from the guest's firewall when the step
    is sent, since a clone has the firewall of its source (qemu-server: PVE/API2/Qemu.pm, clone_vm).
    """
    isolation = desired.isolation
    if isolation is None:
        return []
    moved = replace(actual, node=desired.node or actual.node)
    nics = ", ".join(sorted(isolation.members))
    summary = f"Isolate {nics} of {moved.label} with security group '{isolation.group}'"
    data = {
        "label": moved.label,
        "group": isolation.group,
        "members": [" ".join((nic, *ips)) for nic, ips in sorted(isolation.members.items())],
        "tag": desired.tenant_tag,
        "prefix": desired.tenant_prefix,
    }
    path = (*moved.path, "firewall")
    return [Step("isolate", summary, STAND_IN, path, data, is_task=False)]


# Actions that write the cloud-init drive of a running VM again, or lead to a start that does.
_RENEWING = frozenset(("reboot", "shutdown", "stop"))


def with_user_data(plan: Plan, snippet: Snippet | None, actual: Actual | None, node: str) -> Plan:
    """Return the plan with the file written first, unless it already has the content (pure).

    `node` is the future node of the VM. The cloud-init drive of a running VM is written again; the
    drive of any other VM is written when it starts.
    """
    if snippet is None or not snippet.is_written:
        return plan
    steps = [write_step(snippet, node)]
    actions = [step.action for step in plan.steps]
    renewed_first = _RENEWING.intersection(actions[:1])
    is_renewed = "cloudinit" in actions or bool(renewed_first)
    runs = actual is not None and actual.running
    if actual is not None and runs and not is_renewed:
        # The mark is written before the file: if this run ends in between, the next run writes the
        # drive.
        steps = [
            mark(actual),
            *steps,
            regenerate(actual),
            replace(unmark(actual), reread=bool(plan.steps)),
        ]
    steps += plan.steps
    before = dict(plan.before)
    if actual is not None:
        before["user_data"] = fingerprint(snippet.now)
    after = {**plan.after, "user_data": fingerprint(snippet.content)}
    return replace(plan, steps=tuple(steps), before=before, after=after)


def fingerprint(content: str | None) -> str | None:
    """Return user data in the form of a diff: a fingerprint, because it may contain secrets."""
    if content is None:
        return None
    digest = hashlib.sha256(content.encode())
    return f"sha256:{digest.hexdigest()[:16]}"


def write_step(snippet: Snippet, node: str) -> Step:
    """Return the step that writes the file."""
    is_new = snippet.now is None
    data = {"content": snippet.content, "volume": snippet.volume, "node": node, "new": is_new}
    return Step(
        "snippet",
        f"Write user data to {snippet.file}",
        "FILE",
        (snippet.file,),
        data,
        is_task=False,
    )


def marked_notes(actual: Actual, notes: str | None = None) -> str:
    """Return the notes, or new ones, with the mark that the cloud-init drive is stale."""
    if notes is None:
        notes = actual.target.get("description")
    text, marker = split_notes(notes)
    return join_notes(text, replace(marker, stale=True))


def mark(actual: Actual) -> Step:
    """Return the step that marks the cloud-init drive as stale, before its data changes."""
    data = with_digest({"description": marked_notes(actual)}, actual)
    return config_step(actual, f"Mark the cloud-init drive of {actual.label} as outdated", data)


def unmark(actual: Actual, notes: str | None = None) -> Step:
    """Return the step that removes that mark once the drive is written; `notes` are new ones."""
    if notes is None:
        notes = join_notes(actual.notes, replace(actual.marker, stale=False))
    summary = f"Mark the cloud-init drive of {actual.label} as current"
    return config_step(actual, summary, notes_data(notes))


def regenerate(actual: Actual) -> Step:
    """Return the step that writes the cloud-init drive of a running VM again.

    At a start PVE writes it anyway.
    """
    return Step(
        "cloudinit",
        f"Regenerate the cloud-init drive of {actual.label}",
        method="PUT",
        path=(*actual.path, "cloudinit"),
        is_task=False,
    )
