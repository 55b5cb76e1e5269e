# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The holder: a container that keeps the new root file system of another container, and describes
the old one in its notes (pure).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ....._foundation.cluster.storages.images import ImageVersion, parse_image
from ....._foundation.core.errors import ValidationFailed
from ....._foundation.core.quantities import whole_number
from ....kinds.marker import Marker
from ....kinds.model import Actual

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
        return _record(int(found[1]), values)
    except ValidationFailed:
        return None


def _record(vmid: int, values: Mapping[str, str]) -> HolderNotes:
    before = values.get("before", "")
    marker = Marker(
        origin=whole_number(values.get("origin", "")), image=parse_image(before) if before else None
    )
    return HolderNotes(
        vmid=vmid,
        image=parse_image(values.get("image", "")),
        size=values.get("size", ""),
        target=values.get("target", ""),
        volume=values.get("volume", ""),
        before=marker,
        ostype=values.get("ostype", ""),
        rootfs=values.get("rootfs", ""),
    )
