# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a new VM comes from: a template, an ISO, a disk image, or nothing. Reads what that needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._cluster.lookup import find_template, guard_source, guard_volume, require_template, volume_owner
from .._cluster.picture import Picture, StorageRow, VmRow, fill_names
from .._cluster.tenant import parse_tags
from .._core.errors import ConfigurationError, Conflict
from .._core.quantities import render_size
from .actual import drives
from .cloning import chained_stores, decide_full, in_snapshot, nodes_for, read_source, spread_storage
from .model import Actual, Desired, Disk

if TYPE_CHECKING:
    from .._api.client import Client

_ISO_ENDINGS = (".iso", ".img.iso")


@dataclass(frozen=True)
class Origin:
    """What a new VM starts from. `wish` is the wish with an image or ISO turned into a disk of it."""

    wish: Desired
    template: Actual | None = None
    full: bool = True
    nodes: frozenset[str] | None = None  # where the source can be used, None: anywhere


def read_origin(client: Client, desired: Desired, picture: Picture) -> Origin:
    """Return the origin of a new VM. Raises NotFound, Conflict or ConfigurationError where the source is not clear."""
    source = desired.source
    if source is None:
        return Origin(desired)
    if source.volume:
        return _from_volume(desired, source.volume, picture)
    row = find_template(picture, vmid=source.vmid, name=source.name)
    if row is None and source.name:
        row = find_template(fill_names(client, picture), name=source.name)
    if row is None and source.name:
        volume = _find_image(client, desired, source.name, picture)
        if volume:
            return _from_volume(desired, volume, picture)
    said = str(source.vmid) if source.vmid else f"'{source.name}'"
    row = require_template(row, said, picture.vms)
    _guard(desired, replace(row, template=True), row.tags)  # a new template is none in the listing yet
    template = read_source(client, row, picture)
    row = replace(row, name=row.name or template.name, template=template.template)
    _guard(desired, row, parse_tags(template.target.get("tags")))
    if source.snapshot:
        template = in_snapshot(client, template, source.snapshot)
    wish = spread_storage(desired, template)
    full = decide_full(wish, template, picture, chained_stores(client, wish, picture))
    return Origin(wish, template, full, nodes_for(desired, template, picture))


def _guard(desired: Desired, row: VmRow, tags: Iterable[str]) -> None:
    guard_source(row, tags, desired.tenant_tag, desired.tenant_prefix, desired.shared_sources)


def guard_volumes(desired: Desired, picture: Picture) -> None:
    """Raise Conflict where a disk would be made from, or be, a disk of a VM that this tenant may not clone."""
    volumes = {disk.import_from or disk.volume for disk in desired.disks if disk.state == "present"}
    if desired.source is not None:
        volumes.add(desired.source.volume)
    for volume in sorted(filter(None, volumes)):
        guard_volume(volume, picture, desired.tenant_tag, desired.tenant_prefix, desired.shared_sources)


def guard_drives(
    desired: Desired, sets: Mapping[str, str], target: Mapping[str, str], picture: Picture, vmid: int | None = None
) -> None:
    """Raise Conflict where an update would attach or import a disk of a VM that this tenant may not clone.

    What the VM (`target`) has already stays out of it.
    """
    known = {drive.get("file") for drive in drives(target).values()}
    for drive in drives(sets).values():
        for volume in {drive.get("file"), drive.get("import-from")} - known:
            if volume and volume_owner(volume) != vmid:
                guard_volume(volume, picture, desired.tenant_tag, desired.tenant_prefix, desired.shared_sources)


def _from_volume(desired: Desired, volume: str, picture: Picture) -> Origin:
    storage = volume.partition(":")[0]
    nodes = frozenset(row.node for row in picture.storages if row.storage == storage and row.available)
    if not nodes:
        raise ConfigurationError(
            attempted=f"{desired.label} could not be created from {volume}",
            answer=f"no storage {storage} is visible",
            next_step="Check the volume ID; the token needs Datastore.Audit to see a storage",
            reason="unknown storage",
        )
    disks = list(desired.disks)
    if volume.lower().endswith(_ISO_ENDINGS):
        slot = "ide2" if desired.cloud_init_drive != "ide2" else "ide0"
        if not any(disk.volume == volume for disk in disks):
            disks.append(Disk(slot, volume=volume, options={"media": "cdrom"}))
    else:
        at = next((index for index, disk in enumerate(disks) if not disk.is_cdrom and disk.state == "present"), None)
        if at is None:
            disks.insert(0, Disk("scsi0", import_from=volume))
        elif disks[at].import_from not in (None, volume):
            raise Conflict(
                attempted=f"{desired.label} could not be created from {volume}",
                answer=f"its first disk imports {disks[at].import_from}",
                next_step="Name the image once",
                reason="two images",
            )
        else:
            disks[at] = replace(disks[at], import_from=volume)
    return Origin(replace(desired, disks=tuple(disks)), nodes=nodes)


def _find_image(client: Client, desired: Desired, name: str, picture: Picture) -> str | None:
    """Return the one ISO or importable image whose file has that name, with or without its ending."""
    found: set[str] = set()
    asked: set[str] = set()
    for row in picture.storages:
        wanted = row.content & {"iso", "import"}
        usable = row.available and (not desired.node or row.node == desired.node)
        if not usable or not wanted or (row.shared and row.storage in asked):
            continue
        asked.add(row.storage)
        for volume in _contents(client, row):
            file = str(volume["volid"]).rpartition("/")[2]
            if volume.get("content") in wanted and name in (file, file.rpartition(".")[0]):
                found.add(volume["volid"])
    if len(found) > 1:
        raise Conflict(
            attempted=f"Image '{name}' could not be chosen",
            answer=f"several volumes have that name: {', '.join(sorted(found))}",
            next_step="Name the one you mean as storage:path",
            reason="ambiguous image",
        )
    return next(iter(found), None)


def _contents(client: Client, row: StorageRow) -> list[dict[str, Any]]:
    return client.get("nodes", row.node, "storage", row.storage, "content")


def with_new_volumes(desired: Desired, target: Mapping[str, str]) -> Desired:
    """Return the wish with those disks alone that import an image or take an ISO which the VM does not have (pure)."""
    there = drives(target)
    disks = [
        disk
        for disk in desired.disks
        if (disk.import_from and disk.slot not in there)
        or (disk.volume and disk.volume != there.get(disk.slot, {}).get("file"))
    ]
    return replace(desired, disks=tuple(disks))


def check_images(client: Client, desired: Desired, node: str) -> dict[str, int]:
    """Return the size in bytes of each image that a disk imports, by slot.

    Raises ConfigurationError unless every ISO and image is there and every image fits into its disk: PVE would notice
    only after the import.
    """
    sizes: dict[str, int] = {}
    for disk in desired.disks:
        volume = disk.import_from or disk.volume
        if not volume or volume == "none" or disk.state != "present":
            continue
        storage = volume.partition(":")[0]
        there = {row["volid"]: row for row in client.get("nodes", node, "storage", storage, "content")}
        if volume not in there:
            same = sorted(name for name, row in there.items() if row.get("content") in ("iso", "import"))
            raise ConfigurationError(
                attempted=f"{volume} could not be used for {desired.label}",
                answer=f"node {node} does not have it; it has {', '.join(same) or 'no image'}",
                next_step="Upload it first, or name one that is there",
                reason="unknown volume",
            )
        if disk.import_from:
            image = client.get("nodes", node, "storage", storage, "content", volume)
            sizes[disk.slot] = int(image.get("size") or 0)
            _require_fit(desired, disk, sizes[disk.slot])
    return sizes


def _require_fit(desired: Desired, disk: Disk, size: int) -> None:
    if disk.size is not None and size > disk.size:
        raise ConfigurationError(
            attempted=f"Disk {disk.slot} of {desired.label} could not be planned",
            answer=f"image {disk.import_from} has {render_size(size)}, the disk shall have {render_size(disk.size)}",
            next_step=f"Ask for at least {render_size(size)}",
            reason="image larger than disk",
        )
