# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that replace the root file system of a container, or restore the old one; the container
that holds the image in the meantime (pure).

The holder keeps the new root file system of another container, and describes the old one in its
notes. PVE moves mount points to another container, but not root file systems (pve-container:
API2/LXC.pm, move_volume); a container can use any of its volumes as its root file system
(LXC/Config.pm, update_pct_config). See docs/decisions/0031-the-root-of-a-container.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ....._foundation.cluster.storages.images import ImageVersion, parse_image
from ....._foundation.core.errors import ValidationFailed
from ....._foundation.core.quantities import parse_disk_size, render_size, whole_number
from ....._foundation.plans.requests import assigned_volume
from ....._foundation.resource.plan import Plan, Step
from ....kinds.container.config.actual import mounts, storage_of, volumes_in
from ....kinds.marker import Marker, join_notes
from ....kinds.model import Actual, Guest
from ...plan import power
from ...plan.copies import image_of
from ...plan.steps import config_step, with_digest

_NOTES = re.compile(r"Holder of container (\d{1,9}): ((?:[a-z]+=\S+ ?)+)")


@dataclass(frozen=True)
class HolderNotes:
    """The notes of a holder. With `target`, the image is no longer the holder's root file system.

    `target` is the slot of container `vmid` for the volume of the image, `size` the size of this
    volume as PVE writes it, and `volume` its ID once it is in that slot. `rootfs`, `before` and
    `ostype` are the old root file system of the container, its old marker and its old ostype.
    """

    vmid: int
    image: ImageVersion
    size: str = ""
    target: str = ""
    volume: str = ""
    before: Marker = Marker()
    ostype: str = ""
    rootfs: str = ""

    def render(self) -> str:
        """Return the notes."""
        image = self.before.image
        values = {
            "image": self.image.label,
            "size": self.size,
            "target": self.target,
            "volume": self.volume,
            "origin": str(self.before.origin or ""),
            "before": image.label if image is not None else "",
            "ostype": self.ostype,
            "rootfs": self.rootfs,
        }
        parts = [f"{key}={value}" for key, value in values.items() if value]
        return f"Holder of container {self.vmid}: {' '.join(parts)}"

    @property
    def old_volume(self) -> str:
        """The volume of the old root file system."""
        return self.rootfs.partition(",")[0]


def name_of_holder(vmid: int) -> str:
    """Return the name of the holder of a container."""
    return f"replace-{vmid}"


def record_of(holder: Actual) -> HolderNotes | None:
    """Return the record in the notes of a container, None if it is not a holder."""
    found = _NOTES.fullmatch(holder.notes)
    if found is None:
        return None
    parts = found[2].split()
    values = dict(part.split("=", 1) for part in parts)
    try:
        before = values.get("before", "")
        marker = Marker(
            origin=whole_number(values.get("origin", "")),
            image=parse_image(before) if before else None,
        )
        return HolderNotes(
            vmid=int(found[1]),
            image=parse_image(values.get("image", "")),
            size=values.get("size", ""),
            target=values.get("target", ""),
            volume=values.get("volume", ""),
            before=marker,
            ostype=values.get("ostype", ""),
            rootfs=values.get("rootfs", ""),
        )
    except ValidationFailed:
        return None


CLONE, MOVE, SWAP, REMOVE = "clone", "move volume", "swap", "remove"


_SPARE = "1"  # GiB of the volume that replaces the image in the holder


_UNUSED = 256  # slots of unused volumes (pve-container: LXC/Config.pm, $MAX_UNUSED_DISKS)


@dataclass(frozen=True)
class ReplacementFacts:
    """The container, its holder if there is one, and the template of its image.

    `desired` determines how the container is stopped, and `vmid` is the VMID of the holder.
    `template` is None if the container already has the image.
    """

    desired: Guest
    container: Actual
    holder: Actual | None
    vmid: int
    template: Actual | None = None

    @property
    def record(self) -> HolderNotes | None:
        return record_of(self.holder) if self.holder is not None else None


def plan_replaced(facts: ReplacementFacts) -> Plan:
    """Return the steps that give the container the image, and keep its old root."""
    template = facts.template
    if template is None:
        return _with_start(Plan(), facts)
    image = image_of(template)
    first: list[Step] = []
    if facts.holder is not None and not _is_usable(facts, image):
        first = [_removal(facts.holder, reread=True)]
        facts = replace(facts, holder=None)
    held, record = _held(facts, template, image)
    steps = [*first, *held, *_stopped(facts), _swap_to_image(facts, template, record)]
    before = {"rootfs": facts.container.target["rootfs"], "image": _label(facts.container.marker)}
    after = {"rootfs": f"image {image.label}", "image": image.label}
    return _with_start(Plan(tuple(steps), before, after), facts)


def _stopped(facts: ReplacementFacts) -> list[Step]:
    """Return the step that stops the container; it runs until the swap."""
    if not facts.container.running:
        return []
    return [replace(power.stop(facts.container, facts.desired), reread=True)]


def _is_usable(facts: ReplacementFacts, image: ImageVersion) -> bool:
    """Return whether the image is in the holder of an earlier run, or already in the container."""
    holder, record = facts.holder, facts.record
    if holder is None or record is None or record.image != image:
        return False
    if not record.target:
        return True
    volume = facts.container.target.get(record.target, "")
    if "mp0" in holder.target:
        return not volume
    return bool(volume) and record.volume in ("", volume)


def _held(
    facts: ReplacementFacts, template: Actual, image: ImageVersion
) -> tuple[list[Step], HolderNotes]:
    """Return the steps after which the volume of the image belongs to the container, and the record
    of the holder.
    """
    holder, container = facts.holder, facts.container
    steps: list[Step] = []
    if holder is None:
        holder = _future_holder(facts, template)
        steps.append(_clone(container, template, holder, image))
    record = record_of(holder) or HolderNotes(container.vmid, image)
    if record.target:
        return _handed_over(container, holder, record), record
    size, wanted = _size(holder), _size(container)
    if size < wanted:
        text = render_size(wanted)
        data = {"disk": "rootfs", "size": text}
        summary = f"Grow rootfs of container {holder.vmid} to {text}"
        steps.append(Step("resize", summary, "PUT", (*holder.path, "resize"), data, reread=True))
    if "mp0" not in holder.target:
        steps.append(_add_spare(holder))
    record = replace(
        record,
        size=render_size(max(size, wanted)),
        target=_free_slot(container.target),
        before=container.marker.completed,
        ostype=container.target.get("ostype", ""),
        rootfs=container.target["rootfs"],
    )
    steps += [_exchange(holder, record), *_handed_over(container, holder, record)]
    return steps, record


def _handed_over(container: Actual, holder: Actual, record: HolderNotes) -> list[Step]:
    """Return the steps that move the image to the container, and note the ID of its volume."""
    volume = container.target.get(record.target, "")
    noted = replace(record, volume=volume or _assigned(container, container.vmid))
    data = with_digest({"description": noted.render()}, holder)
    summary = f"Note the volume of the image on container {holder.vmid}"
    note = replace(config_step(holder, summary, data), action="note", reread=True)
    if not volume:
        return [_move(holder, record), note]
    return [] if record.volume else [note]


def _future_holder(facts: ReplacementFacts, template: Actual) -> Actual:
    """Return the holder as the clone step will create it, for a preview of the later steps."""
    record = HolderNotes(facts.container.vmid, image_of(template))
    options = template.target["rootfs"].partition(",")[2]
    rootfs = f"{_assigned(facts.container, facts.vmid)},{options}"
    target = {**template.target, "rootfs": rootfs, "description": record.render()}
    node = facts.container.node
    return replace(template, vmid=facts.vmid, node=node, target=target, digest=None)


def _size(container: Actual) -> int:
    return parse_disk_size(mounts(container.target)["rootfs"].get("size", "0"), what="rootfs")


def _assigned(container: Actual, vmid: int) -> str:
    """Return the text for a volume that PVE creates for a guest on the storage of the root."""
    return assigned_volume(container.target["rootfs"].partition(":")[0], vmid)


def _clone(container: Actual, template: Actual, holder: Actual, image: ImageVersion) -> Step:
    storage = storage_of(volumes_in(container.target)["rootfs"])
    data: dict[str, Any] = {
        "newid": holder.vmid,
        "full": 1,
        "storage": storage,
        "hostname": name_of_holder(container.vmid),
        "description": HolderNotes(container.vmid, image).render(),
    }
    if container.pool:
        data["pool"] = container.pool
    if template.node != container.node:
        data["target"] = container.node
    summary = f"Clone image {image.label} to container {holder.vmid} for {container.label}"
    return Step(CLONE, summary, "POST", (*template.path, "clone"), data, reread=True, timeout=1800)


def _add_spare(holder: Actual) -> Step:
    """Return the step that adds the volume which becomes the root file system of the holder."""
    storage = storage_of(volumes_in(holder.target)["rootfs"])
    data = with_digest({"mp0": f"{storage}:{_SPARE},mp=/spare"}, holder)
    step = config_step(holder, f"Add a volume to container {holder.vmid}", data)
    return replace(step, reread=True)


def _free_slot(config: Mapping[str, str], *taken: str) -> str:
    slots = (f"unused{number}" for number in range(_UNUSED))
    return next(slot for slot in slots if slot not in config and slot not in taken)


def _exchange(holder: Actual, record: HolderNotes) -> Step:
    """Return the step that makes the image a mount point of the holder, in one write."""
    volumes = volumes_in(holder.target)
    data = {
        "rootfs": f"{volumes.get('mp0', _assigned(holder, holder.vmid))},size={_SPARE}G",
        "mp0": f"{volumes['rootfs']},mp=/image",
        "description": record.render(),
    }
    summary = f"Make the image a mount point of container {holder.vmid}"
    return replace(config_step(holder, summary, with_digest(data, holder)), reread=True)


def _move(holder: Actual, record: HolderNotes) -> Step:
    data = with_digest(
        {"volume": "mp0", "target-vmid": record.vmid, "target-volume": record.target}, holder
    )
    summary = f"Move the image from container {holder.vmid} to {record.target} of {record.vmid}"
    return Step(MOVE, summary, "POST", (*holder.path, "move_volume"), data, reread=True)


def _swap_to_image(facts: ReplacementFacts, template: Actual, record: HolderNotes) -> Step:
    """Return the step that in one write makes the image the root file system, makes the old one an
    unused volume, and notes the new version.
    """
    container, image = facts.container, record.image
    volume = container.target.get(record.target) or _assigned(container, container.vmid)
    old_volume = volumes_in(container.target)["rootfs"]
    rootfs = container.target["rootfs"]
    options = [part for part in rootfs.split(",")[1:] if not part.startswith("size=")]
    data = {
        "rootfs": ",".join([volume, *options, f"size={record.size}"]),
        _free_slot(container.target, record.target): old_volume,
        "description": join_notes(container.notes, Marker(origin=template.vmid, image=image)),
    }
    ostype = template.target.get("ostype")
    if ostype and ostype != container.target.get("ostype"):
        data["ostype"] = ostype
    return _swap(container, f"Make image {image.label} the root of {container.label}", data)


def _swap(container: Actual, summary: str, data: Mapping[str, Any]) -> Step:
    return replace(config_step(container, summary, with_digest(data, container)), action=SWAP)


def plan_returned(facts: ReplacementFacts) -> Plan:
    """Return the steps that give the container its old root file system again.

    Without a record of it, no steps.
    """
    container, holder, record = facts.container, facts.holder, facts.record
    if holder is None or record is None or not record.target:
        return _with_start(Plan(), facts)
    removal = _removal(holder)
    volume = volumes_in(container.target).get("rootfs", "")
    if volume == record.old_volume:
        return _with_start(Plan((removal,)), facts)
    data: dict[str, Any] = {
        "rootfs": record.rootfs,
        _free_slot(container.target, record.target): volume,
        "description": join_notes(container.notes, record.before),
    }
    if record.ostype and record.ostype != container.target.get("ostype"):
        data["ostype"] = record.ostype
    before = {"rootfs": container.target.get("rootfs"), "image": _label(container.marker)}
    after = {"rootfs": record.rootfs, "image": _label(record.before)}
    summary = f"Make {record.old_volume} the root of {container.label} again"
    steps = (*_stopped(facts), _swap(container, summary, data), removal)
    return _with_start(Plan(steps, before, after), facts)


def plan_confirmed(facts: ReplacementFacts) -> Plan:
    """Return the step that removes the holder; the old root stays as an unused volume."""
    if facts.holder is None or facts.record is None:
        return Plan()
    return Plan((_removal(facts.holder),))


def _with_start(plan: Plan, facts: ReplacementFacts) -> Plan:
    """Return the plan with the start of the container, if it is desired and needed."""
    container, is_swapped = facts.container, any(step.action == SWAP for step in plan.steps)
    running = container.running and not is_swapped
    start = power.finish(facts.desired, container, running=running, waiting=False)
    return replace(plan, steps=(*plan.steps, *start))


def with_confirmation(plan: Plan, facts: ReplacementFacts) -> Plan:
    """Return the plan of a replacement with the removal of its holder, for an approval."""
    holder = facts.holder
    if holder is None and facts.template is not None:
        holder = _future_holder(facts, facts.template)
    return plan if holder is None else replace(plan, steps=(*plan.steps, _removal(holder)))


def _removal(holder: Actual, *, reread: bool = False) -> Step:
    return Step(REMOVE, f"Remove container {holder.vmid}", "DELETE", holder.path, reread=reread)


def _label(marker: Marker) -> str:
    return marker.image.label if marker.image is not None else ""
