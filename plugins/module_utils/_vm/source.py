# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a new VM comes from: a template, an ISO, a disk image, or nothing. Reads what that needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._cluster.lookup import find_template, require_template
from .._cluster.picture import Picture, StorageRow, fill_names
from .._core.errors import ConfigurationError, Conflict, NotSupported
from .._core.quantities import render_size
from .actual import drives, is_disk, read_actual, storage_of
from .model import Actual, Desired, Disk

if TYPE_CHECKING:
    from .._api.client import Client

_ISO_ENDINGS = (".iso", ".img.iso")
# Storages on which a base volume can have linked clones, whatever its format (pve-storage: volume_has_feature).
_LINKING = frozenset("lvmthin zfspool zfs rbd btrfs".split())
_FILE_KINDS = frozenset("dir nfs cifs cephfs".split())


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
    template = read_actual(client, row.vmid, row.node, status=row.status, pool=row.pool)
    full = _full(desired, template, picture)
    shared = all(storage_of(drive) in picture.shared_storages for drive in drives(template.target).values())
    # Local disks are cloned where they are; a move to another node comes after.
    pinned = None if shared or desired.node else frozenset((row.node,))
    return Origin(desired, template, full, pinned)


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


def _full(desired: Desired, template: Actual, picture: Picture) -> bool:
    """Return whether the clone copies the disks: as asked, else linked wherever PVE allows it."""
    reason = why_not_linked(desired, template, picture)
    wish = desired.source.full if desired.source else None
    if wish is False and reason:
        raise NotSupported(
            attempted=f"A linked clone of {template.label} could not be planned",
            answer=reason,
            next_step="Leave full out, or set it to true",
            reason="linked clone",
        )
    return bool(reason) if wish is None else wish


def why_not_linked(desired: Desired, template: Actual, picture: Picture) -> str | None:
    """Return why the VM cannot be cloned linked, or None (pve-storage: volume_has_feature clone)."""
    if not template.template:
        return "it is no template"
    kinds = {row.storage: row.kind for row in picture.storages}
    for slot, drive in drives(template.target).items():
        storage = storage_of(drive)
        if not is_disk(drive) or not storage:
            continue
        kind = kinds.get(storage, "")
        by_format = kind in _FILE_KINDS and drive["file"].endswith(".qcow2")
        if kind not in _LINKING and not by_format:
            return f"{slot} is on storage {storage} ({kind or 'unknown'}), which has no linked clones of it"
        wished = next((disk.storage for disk in desired.disks if disk.slot == slot), None)
        if wished and wished != storage:
            return f"{slot} shall be on storage {wished}, a linked clone stays on {storage}"
    return None


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
