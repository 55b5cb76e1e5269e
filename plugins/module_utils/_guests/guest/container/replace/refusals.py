# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Preconditions for replacing a root file system, checked before the first write (pure)."""

from __future__ import annotations

from typing import Any

from ....._foundation.cluster.state import StorageRow
from ....._foundation.cluster.storages.images import ImageVersion
from ....._foundation.core.errors import Conflict, QuotaExceeded, ValidationFailed
from ....._foundation.core.quantities import parse_disk_size, readable_sizes
from ....kinds.container.config.actual import is_privileged, mounts, volumes_in
from ....kinds.model import Actual, Guest, GuestSource
from ...plan.copies import image_of


def require_image(desired: Guest) -> GuestSource:
    """Return the image that the task names. Raises ValidationFailed."""
    source = desired.source
    if source is not None and source.name:
        return source
    raise ValidationFailed(
        attempted=f"The root of {desired.label} was not replaced",
        answer="source names no image",
        next_step="Give source, such as debian-13 or debian-13@2026.11.20",
        reason="source",
    )


def is_of_version(container: Actual, source: GuestSource) -> bool:
    """Return whether a container has the image version of a source; the template may be gone."""
    return container.marker.image == ImageVersion(source.name or "", source.version or "")


def require_replaceable(container: Actual, template: Actual, raw: Any) -> None:
    """Raise FleetError if the root file system cannot be replaced by that of a template.

    `raw` are the options of LXC itself in the configuration of the container.
    """
    require_changeable(container)
    for cause, step in _obstacles(container, template, raw):
        raise _refused(container, f"image {image_of(template).label}: {cause}", step)


def require_changeable(container: Actual) -> None:
    """Raise FleetError if the root file system of a container cannot be changed now."""
    causes = {
        "it is a template": container.template,
        "it is protected": container.target.get("protection") == "1",
        f"it is locked ({container.lock})": container.lock is not None,
        "its root is not a volume": "rootfs" not in volumes_in(container.target),
    }
    for cause, is_true in causes.items():
        if is_true:
            raise _refused(container, cause, "Change that first, and run this again")


def _obstacles(container: Actual, template: Actual, raw: Any) -> list[tuple[str, str]]:
    """Return why the container cannot have the root of a template, with the next steps.

    The files of an unprivileged container have other owners than the files of a privileged one. The
    files of a container with its own ID map have different owners too.
    """
    found: list[tuple[str, str]] = []
    if not image_of(template).version:
        found.append(("the template has no version", "Publish it with the role pve.fleet.image"))
    slots = sorted(volumes_in(template.target))
    if slots != ["rootfs"]:
        step = "Use an image with a root file system only"
        found.append((f"the volumes of the template are {', '.join(slots)}", step))
    again = "Use an image like it, or create the container again"
    if is_privileged(container.target) != is_privileged(template.target):
        found.append(("one of both is privileged, so that the owners of files differ", again))
    if container.target.get("arch", "amd64") != template.target.get("arch", "amd64"):
        found.append(("it is for another architecture", again))
    if "idmap" in container.target["rootfs"] or "idmap" in str(raw):
        found.append(("the container has a map of IDs of its own", again))
    return found


def require_storage(container: Actual, template: Actual, row: StorageRow | None) -> None:
    """Raise FleetError if the storage cannot contain a second root file system or rename it.

    Only ZFS renames a volume that is a directory (pve-storage: Plugin.pm and BTRFSPlugin.pm,
    volume_has_feature).
    """
    volume = volumes_in(container.target)["rootfs"]
    name = volume.partition(":")[2].rpartition("/")[2]
    if row is None or (name.startswith("subvol-") and row.kind != "zfspool"):
        step = "Move the root file system to another storage first"
        raise _refused(container, f"PVE cannot rename volumes such as {volume}", step)
    sizes = (mounts(one.target)["rootfs"].get("size", "0") for one in (container, template))
    needed = max(parse_disk_size(size, what="rootfs") for size in sizes)
    free = row.total - row.used
    if not row.total or needed <= free:
        return
    needed_text, free_text = readable_sizes(needed, free)
    raise QuotaExceeded(
        attempted=f"The root of {container.label} was not replaced",
        answer=f"storage {row.storage} has {free_text} free, and a second root needs {needed_text}",
        next_step="Free space there, or move the root file system to another storage first",
        reason="storage full",
    )


def _refused(container: Actual, answer: str, next_step: str) -> Conflict:
    return Conflict(
        attempted=f"The root of {container.label} was not replaced",
        answer=answer,
        next_step=next_step,
        reason="replace",
    )
