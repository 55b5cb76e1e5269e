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
    volumes = {disk.import_from or disk.volume for disk in desired.disks if disk.state == "present"}
    if desired.source is not None:
        volumes.add(desired.source.volume)
    for volume in sorted(filter(None, volumes)):
        guard_volume(
            volume, cluster, desired.tenant_tag, desired.tenant_prefix, desired.shared_sources
        )


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
        for volume in {drive.get("file"), drive.get("import-from")} - known:
            if volume and volume_owner(volume) != vmid:
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
    disks = []
    for disk in desired.disks:
        imports = disk.import_from and disk.slot not in existing
        inserts = disk.volume and disk.volume != existing.get(disk.slot, {}).get("file")
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
        volume = disk.import_from or disk.volume
        if not volume or volume == "none" or disk.state != "present":
            continue
        _require_volume(client, desired, node, volume)
        if disk.import_from:
            storage = volume.partition(":")[0]
            image = client.get("nodes", node, "storage", storage, "content", volume)
            sizes[disk.slot] = int(image.get("size") or 0)
            _require_fit(desired, disk, sizes[disk.slot])
    return sizes


def _require_volume(client: Client, desired: Desired, node: str, volume: str) -> None:
    """Raise ConfigurationError where a node does not have an ISO or image."""
    storage = volume.partition(":")[0]
    rows = client.get("nodes", node, "storage", storage, "content")
    volumes = {row["volid"]: row.get("content") for row in rows}
    if volume in volumes:
        return
    images = sorted(name for name, content in volumes.items() if content in IMAGES)
    raise ConfigurationError(
        attempted=f"{volume} could not be used for {desired.label}",
        answer=f"node {node} does not have it; it has {', '.join(images) or 'no image'}",
        next_step="Upload it first, or name one that is there",
        reason="unknown volume",
    )


def _require_fit(desired: Desired, disk: Disk, size: int) -> None:
    if disk.size is not None and size > disk.size:
        raise ConfigurationError(
            attempted=f"Disk {disk.slot} of {desired.label} could not be planned",
            answer=f"image {disk.import_from} has {render_size(size)}, "
            f"and the disk would have {render_size(disk.size)}",
            next_step=f"Ask for at least {render_size(size)}",
            reason="image larger than disk",
        )
