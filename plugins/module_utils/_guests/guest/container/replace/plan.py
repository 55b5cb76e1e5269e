# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that replace the root file system of a container, or restore the old one (pure).

PVE moves mount points to another container, but not root file systems (pve-container: API2/LXC.pm,
move_volume); a container can use any of its volumes as its root file system (LXC/Config.pm,
update_pct_config). See docs/decisions/0031-the-root-of-a-container.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ....._foundation.cluster.storages.images import ImageVersion
from ....._foundation.core.quantities import parse_disk_size, render_size
from ....._foundation.resource.plan import Plan, Step
from ....kinds.container.config.actual import mounts, storage_of, volumes_in
from ....kinds.marker import Marker, join_notes
from ....kinds.model import Actual, Guest
from ...plan import power
from ...plan.copies import image_of
from ...plan.steps import config_step, with_digest
from .holder import HolderNotes, name_of_holder, record_of

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
        return Plan()
    image = image_of(template)
    first: list[Step] = []
    if facts.holder is not None and not _is_usable(facts, image):
        first = [_removal(facts.holder, reread=True)]
        facts = replace(facts, holder=None)
    steps = [*first, *_held(facts, template, image), *_stopped(facts), _swap_to_image(facts, image)]
    before = {"rootfs": facts.container.target["rootfs"], "image": _label(facts.container.marker)}
    return Plan(tuple(steps), before, {"rootfs": f"image {image.label}", "image": image.label})


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


def _held(facts: ReplacementFacts, template: Actual, image: ImageVersion) -> list[Step]:
    """Return the steps after which the volume of the image belongs to the container."""
    holder, container = facts.holder, facts.container
    steps: list[Step] = []
    if holder is None:
        holder = _future_holder(facts, template)
        steps.append(_clone(container, template, holder, image))
    record = record_of(holder) or HolderNotes(container.vmid, image)
    if record.target:
        return _handed_over(container, holder, record)
    size, wanted = _size(holder), _size(container)
    if size < wanted:
        steps.append(_grow(holder, wanted))
    if "mp0" not in holder.target:
        steps.append(_add_spare(holder))
    record = _whole_record(record, container, render_size(max(size, wanted)))
    return [*steps, _exchange(holder, record), *_handed_over(container, holder, record)]


def _handed_over(container: Actual, holder: Actual, record: HolderNotes) -> list[Step]:
    """Return the steps that move the image to the container, and note the ID of its volume."""
    volume = container.target.get(record.target, "")
    note = _note(holder, replace(record, volume=volume))
    if not volume:
        return [_move(holder, record), note]
    return [] if record.volume else [note]


def _note(holder: Actual, record: HolderNotes) -> Step:
    data = with_digest({"description": record.render()}, holder)
    summary = f"Note the volume of the image on container {holder.vmid}"
    return replace(config_step(holder, summary, data), action="note", reread=True)


def _future_holder(facts: ReplacementFacts, template: Actual) -> Actual:
    """Return the holder as the clone step will create it, for a preview of the later steps."""
    record = HolderNotes(facts.container.vmid, image_of(template))
    target = {**template.target, "description": record.render()}
    node = facts.container.node
    return replace(template, vmid=facts.vmid, node=node, target=target, digest=None)


def _size(container: Actual) -> int:
    return parse_disk_size(mounts(container.target)["rootfs"].get("size", "0"), what="rootfs")


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


def _grow(holder: Actual, size: int) -> Step:
    text = render_size(size)
    data = {"disk": "rootfs", "size": text}
    summary = f"Grow rootfs of container {holder.vmid} to {text}"
    return Step("resize", summary, "PUT", (*holder.path, "resize"), data, reread=True)


def _add_spare(holder: Actual) -> Step:
    """Return the step that adds the volume which becomes the root file system of the holder."""
    storage = storage_of(volumes_in(holder.target)["rootfs"])
    data = with_digest({"mp0": f"{storage}:{_SPARE},mp=/spare"}, holder)
    step = config_step(holder, f"Add a volume to container {holder.vmid}", data)
    return replace(step, reread=True)


def _whole_record(record: HolderNotes, container: Actual, size: str) -> HolderNotes:
    return replace(
        record,
        size=size,
        target=_free_slot(container.target),
        before=container.marker.completed,
        ostype=container.target.get("ostype", ""),
        rootfs=container.target["rootfs"],
    )


def _free_slot(config: Mapping[str, str], *taken: str) -> str:
    slots = (f"unused{number}" for number in range(_UNUSED))
    return next(slot for slot in slots if slot not in config and slot not in taken)


def _exchange(holder: Actual, record: HolderNotes) -> Step:
    """Return the step that makes the image a mount point of the holder, in one write."""
    volumes = volumes_in(holder.target)
    data = {
        "rootfs": f"{volumes.get('mp0', '')},size={_SPARE}G",
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


def _swap_to_image(facts: ReplacementFacts, image: ImageVersion) -> Step:
    """Return the step that in one write makes the image the root file system, makes the old one an
    unused volume, and notes the new version.
    """
    container, record = facts.container, facts.record or HolderNotes(0, image)
    template = facts.template
    origin = template.vmid if template is not None else None
    volume = container.target.get(record.target, "")
    old_volume = volumes_in(container.target)["rootfs"]
    data = {
        "rootfs": _with_volume(container.target["rootfs"], volume, record.size),
        _free_slot(container.target, record.target): old_volume,
        "description": join_notes(container.notes, Marker(origin=origin, image=image)),
    }
    ostype = template.target.get("ostype") if template is not None else None
    if ostype and ostype != container.target.get("ostype"):
        data["ostype"] = ostype
    return _swap(container, f"Make image {image.label} the root of {container.label}", data)


def _swap(container: Actual, summary: str, data: Mapping[str, Any]) -> Step:
    return replace(config_step(container, summary, with_digest(data, container)), action=SWAP)


def _with_volume(rootfs: str, volume: str, size: str) -> str:
    """Return a root file system with another volume and size, and its other options."""
    options = [part for part in rootfs.split(",")[1:] if not part.startswith("size=")]
    return ",".join([volume, *options, f"size={size}"])


def plan_returned(facts: ReplacementFacts) -> Plan:
    """Return the steps that give the container its old root file system again.

    Without a record of it, no steps.
    """
    container, holder, record = facts.container, facts.holder, facts.record
    if holder is None or record is None or not record.target:
        return Plan()
    removal = _removal(holder)
    volume = volumes_in(container.target).get("rootfs", "")
    if volume == record.old_volume:
        return Plan((removal,))
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
    return Plan((*_stopped(facts), _swap(container, summary, data), removal), before, after)


def plan_confirmed(facts: ReplacementFacts) -> Plan:
    """Return the step that removes the holder; the old root stays as an unused volume."""
    if facts.holder is None or facts.record is None:
        return Plan()
    return Plan((_removal(facts.holder),))


def _removal(holder: Actual, *, reread: bool = False) -> Step:
    return Step(REMOVE, f"Remove container {holder.vmid}", "DELETE", holder.path, reread=reread)


def _label(marker: Marker) -> str:
    return marker.image.label if marker.image is not None else ""
