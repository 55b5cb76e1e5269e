# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks, images and snippets that a VM cannot have, refused before the first write (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from ......_foundation.cluster.find.lookup import require_own_volume
from ......_foundation.cluster.snippets.visible import SET_DIRECTORY, unchecked, why_elsewhere
from ......_foundation.cluster.state import ClusterState
from ......_foundation.core.arguments.options import did_you_mean
from ......_foundation.core.errors import ConfigurationError, Conflict
from ......_foundation.core.quantities import readable_sizes, render_size
from .....kinds.hardware import DesiredVm, Disk
from .....kinds.model import Actual
from .....kinds.vm.config.actual import drives, volume_of
from .....kinds.vm.config.changes import ConfigChange
from ....plan.intent import DiskImage, SeenSnippet


def require_own_volumes(desired: DesiredVm, cluster: ClusterState) -> None:
    """Raise Conflict for a disk that is a disk of another tenant's VM, or a copy of one."""
    volumes: set[str | None] = set()
    for disk in desired.hardware.disks:
        if disk.state == "present":
            volumes.add(disk.import_from or disk.volume)
    if desired.guest.source is not None:
        volumes.add(desired.guest.source.volume)
    for volume in sorted(filter(None, volumes)):
        guest = desired.guest
        require_own_volume(
            volume, cluster, guest.tenant_tag, guest.tenant_prefix, guest.shared_sources
        )


def with_new_volumes(desired: DesiredVm, target: Mapping[str, str]) -> DesiredVm:
    """Return the desired VM with only the disks whose image or ISO is new to the VM."""
    existing = drives(target)
    disks: list[Disk] = []
    for disk in desired.hardware.disks:
        is_new = disk.slot not in existing
        volume = existing.get(disk.slot, {}).get("file")
        inserts = disk.volume not in (None, volume)
        imports = (is_new or disk.replaces) and disk.import_from is not None
        if imports or inserts:
            disks.append(disk)
    return desired.with_hardware(disks=tuple(disks))


def volumes_used(desired: DesiredVm) -> Iterator[tuple[Disk, str]]:
    """Yield the disks that use an ISO or image, each with its volume."""
    for disk in desired.hardware.disks:
        volume = disk.import_from or disk.volume
        if disk.state == "present" and volume not in (None, "none"):
            yield disk, str(volume)


def image_sizes(desired: DesiredVm, images: Mapping[str, DiskImage]) -> dict[str, int]:
    """Return the size in bytes of each image that a disk imports or attaches, by slot."""
    sizes: dict[str, int] = {}
    for disk, volume in volumes_used(desired):
        if not disk.is_cdrom:
            sizes[disk.slot] = images[volume].size
    return sizes


def require_images(desired: DesiredVm, node: str, images: Mapping[str, DiskImage]) -> None:
    """Raise ConfigurationError unless every ISO and image exists and every image fits its disk.

    PVE would notice only after the import.
    """
    for disk, volume in volumes_used(desired):
        image = images[volume]
        if not image.exists:
            names = ", ".join(image.others) or "no image"
            raise ConfigurationError(
                f"{volume} could not be used for {desired.guest.label}: node {node} does not have "
                f"it; it has {names}{did_you_mean(volume, image.others)}",
                "Upload it first, or name one that is there",
                "unknown volume",
            )
        if disk.import_from:
            _require_fit(desired, disk, image.size)


def _require_fit(desired: DesiredVm, disk: Disk, size: int) -> None:
    if disk.size is None or size <= disk.size:
        return
    needed, wanted = readable_sizes(size, disk.size)
    raise ConfigurationError(
        f"Disk {disk.slot} of {desired.guest.label} could not be planned: image "
        f"{disk.import_from} has {needed}, and the disk would have {wanted}",
        f"Write a size of at least {render_size(size)}",
        "image larger than disk",
    )


def converts(desired: DesiredVm, actual: Actual) -> bool:
    """Return whether the VM becomes a template."""
    return desired.guest.state == "template" and not actual.template


def lost_volumes(actual: Actual, change: ConfigChange) -> dict[str, str]:
    """Return the volumes of disks that are removed or moved, by slot."""
    volumes: dict[str, str] = {}
    for slot in {*change.drives.removed, *change.drives.moved}:
        volume = volume_of(slot, actual.target.get(slot, ""))
        if volume:
            volumes[slot] = volume
    return volumes


def require_no_snapshots(
    desired: DesiredVm,
    actual: Actual,
    change: ConfigChange,
    snapshots: Mapping[str, Collection[str]] | None,
) -> None:
    """Raise Conflict for changes that PVE refuses for a VM with snapshots.

    PVE does not convert such a VM into a template, and does not remove or move a disk of a
    snapshot. `snapshots` are the volumes of each snapshot, None if no such change is planned.
    """
    if snapshots is None:
        return
    if converts(desired, actual) and snapshots:
        raise Conflict(
            f"{actual.label} was not converted into a template: it has snapshots: "
            f"{', '.join(snapshots)}",
            "Remove them first, with module snapshot",
            "snapshots",
        )
    volumes = lost_volumes(actual, change)
    for name, held in snapshots.items():
        for slot, volume in sorted(volumes.items()):
            if volume in held:
                moves = slot in change.drives.moved
                raise _held_by_snapshot(actual, slot, name, moves=moves)


def _held_by_snapshot(actual: Actual, slot: str, snapshot: str, *, moves: bool) -> Conflict:
    verb, other = "removed", ", or detach the disk instead"
    if moves:
        verb, other = "moved", ""
    return Conflict(
        f"Disk {slot} of {actual.label} was not {verb}: its volume is part of snapshot "
        f"'{snapshot}'",
        f"Remove the snapshot first, with module snapshot{other}",
        "snapshots",
    )


def require_snippets(snippets: Iterable[SeenSnippet], node: str) -> tuple[str, ...]:
    """Return warnings about snippets that could not be checked.

    Raises ConfigurationError for a snippet that the node would not see: the VM could not start.
    """
    unknown: list[str] = []
    for snippet in snippets:
        if snippet.listed is None:
            if snippet.written is not None:
                unknown.append(snippet.volume)
            continue
        if snippet.written is not None:
            why = why_elsewhere(snippet.name, snippet.before, snippet.listed, snippet.after)
        elif snippet.name in snippet.listed:
            why = None
        else:
            why = f"node {node} does not have it"
        if why is not None:
            step = "Upload it to that storage, or correct cloud_init.snippets"
            if snippet.written is not None:
                step = SET_DIRECTORY
            raise ConfigurationError(
                f"Snippet {snippet.volume} could not be used: {why}", step, "snippet not visible"
            )
    return tuple(map(unchecked, unknown))
