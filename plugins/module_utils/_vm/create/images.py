# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images, ISOs and volumes that a VM uses, new or not: whether they exist, fit and may be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..._cluster.lookup import guard_volume, volume_owner
from ..._cluster.state import ClusterState
from ..._core.errors import ConfigurationError
from ..._core.quantities import render_size
from ..config.actual import drives
from ..model import Desired, Disk

if TYPE_CHECKING:
    from ..._api.client import Client

IMAGES = frozenset(("iso", "import"))


def guard_volumes(desired: Desired, cluster: ClusterState) -> None:
    """Raise Conflict where a disk would be made from, or be, a disk of a VM that this tenant may
    not clone.
    """
    volumes: set[str | None] = set()
    for disk in desired.disks:
        if disk.state == "present":
            volumes.add(disk.import_from or disk.volume)
    if desired.source is not None:
        volumes.add(desired.source.volume)
    for volume in sorted(filter(None, volumes)):
        _guard_volume(desired, volume, cluster)


def guard_drives(
    desired: Desired,
    sets: Mapping[str, str],
    target: Mapping[str, str],
    cluster: ClusterState,
    vmid: int | None = None,
) -> None:
    """Raise Conflict where an update would attach or import a disk of a VM that this tenant may not
    clone.

    What the VM (`target`) has already stays out of it.
    """
    known = {drive.get("file") for drive in drives(target).values()}
    for drive in drives(sets).values():
        volumes = {drive.get("file"), drive.get("import-from")}
        for volume in filter(None, volumes - known):
            if volume_owner(volume) != vmid:
                _guard_volume(desired, volume, cluster)


def _guard_volume(desired: Desired, volume: str, cluster: ClusterState) -> None:
    guard_volume(
        volume,
        cluster,
        desired.tenant_tag,
        desired.tenant_prefix,
        desired.shared_sources,
    )


def with_new_volumes(desired: Desired, target: Mapping[str, str]) -> Desired:
    """Return the desired VM with those disks only that use an image or ISO new to the VM (pure)."""
    existing = drives(target)
    disks: list[Disk] = []
    for disk in desired.disks:
        is_new = disk.slot not in existing
        there = existing.get(disk.slot, {}).get("file")
        inserts = disk.volume not in (None, there)
        imports = is_new and disk.import_from is not None
        if imports or inserts:
            disks.append(disk)
    return replace(desired, disks=tuple(disks))


def check_images(client: Client, desired: Desired, node: str) -> dict[str, int]:
    """Return the size in bytes of each image that a disk imports, by slot.

    Raises ConfigurationError unless every ISO and image is there and every image fits into its
    disk: PVE would notice only after the import.
    """
    sizes: dict[str, int] = {}
    for disk in desired.disks:
        if disk.state != "present":
            continue
        volume = disk.import_from or disk.volume
        if volume in (None, "none"):
            continue
        _require_volume(client, desired, node, volume)
        if not disk.import_from:
            continue
        storage, _colon, _name = volume.partition(":")
        image = client.get(
            "nodes",
            node,
            "storage",
            storage,
            "content",
            volume,
        )
        size = int(image.get("size") or 0)
        _require_fit(desired, disk, size)
        sizes[disk.slot] = size
    return sizes


def _require_volume(client: Client, desired: Desired, node: str, volume: str) -> None:
    """Raise ConfigurationError where a node does not have an ISO or image."""
    storage, _colon, _name = volume.partition(":")
    rows = client.get("nodes", node, "storage", storage, "content")
    images: list[str] = []
    for row in rows:
        if row["volid"] == volume:
            return
        if row.get("content") in IMAGES:
            images.append(row["volid"])
    names = ", ".join(sorted(images))
    raise ConfigurationError(
        attempted=f"{volume} could not be used for {desired.label}",
        answer=f"node {node} does not have it; it has {names or 'no image'}",
        next_step="Upload it first, or name one that is there",
        reason="unknown volume",
    )


def _require_fit(desired: Desired, disk: Disk, size: int) -> None:
    if disk.size is None or size <= disk.size:
        return
    needed = render_size(size)
    wanted = render_size(disk.size)
    raise ConfigurationError(
        attempted=f"Disk {disk.slot} of {desired.label} could not be planned",
        answer=f"image {disk.import_from} has {needed}, and the disk would have {wanted}",
        next_step=f"Ask for at least {needed}",
        reason="image larger than disk",
    )
