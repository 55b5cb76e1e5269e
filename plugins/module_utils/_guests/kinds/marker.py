# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ownership marker: one HTML comment at the end of a VM's notes, invisible in PVE's interface
(pure).

PVE does not accept tags in the request for a clone. Only the notes of a new VM can name its owner
and its run from the first moment. See docs/decisions/0001-ownership-marker.md.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..._foundation.cluster.storages.images import ImageVersion
from ..._foundation.cluster.tenant import parse_tags, tenants_of
from ..._foundation.core.quantities import whole_number

_COMMENT = re.compile(r"\n?<!-- pve\.fleet:((?: [a-z]+=[A-Za-z0-9_.+:-]*)*) -->\s*\Z")
_STALE = "stale"


@dataclass(frozen=True)
class Marker:
    """`origin` is the VMID of the VM's source, `image` the image version of its system disk.
    `restored`: the source is an archive, so `origin` is the VMID of the guest in it, which can be of
    another cluster.

    The other values are set only while the VM is being created or changed.

    `run` is the run that creates the VM, `tenant` its future tag. `inherited_tags` are the tags of
    its source that will be removed (`shed` in the notes). `stale`: the cloud-init drive of a
    running VM is older than its configuration. `ran` is the last start of a VM that a restore stops
    and starts again at its end, in seconds since the epoch. `next` is the image that replaces the
    system disk, `over` the digest of the volume that it replaces. `move` is the record of a move to
    another cluster, which every other change keeps.
    """

    origin: int | None = None
    image: ImageVersion | None = None
    restored: bool = False
    run: str | None = None
    tenant: str | None = None
    inherited_tags: tuple[str, ...] = ()
    stale: bool = False
    ran: int | None = None
    next: ImageVersion | None = None
    over: str = ""
    move: str = ""

    @property
    def building(self) -> bool:
        return self.run is not None

    @property
    def completed(self) -> Marker:
        """The marker of a guest that is complete."""
        return Marker(self.origin, self.image, self.restored, move=self.move)

    def replacing(self, image: ImageVersion | None, volume: str) -> Marker:
        """The marker of a guest whose system disk, this volume, is being replaced by an image."""
        return replace(self, next=image, over=_digest(volume))

    def has_replaced(self, image: ImageVersion | None, volume: str) -> bool:
        """Return whether the system disk, now this volume, has come from the image."""
        return self.next is not None and self.next == image and self.over != _digest(volume)

    def render(self) -> str:
        """Return the comment, or an empty text if the marker has no values."""
        values: dict[str, Any] = {
            "origin": self.origin,
            "image": _image_text(self.image),
            "restored": int(self.restored),
            "run": self.run,
            "tenant": self.tenant,
            "shed": ":".join(self.inherited_tags),
            "ran": self.ran,
            "next": _image_text(self.next),
            "over": self.over,
            "move": self.move,
        }
        if self.stale:
            values["drive"] = _STALE
        parts = [f"{key}={value}" for key, value in values.items() if value]
        if not parts:
            return ""
        text = " ".join(parts)
        return f"<!-- pve.fleet: {text} -->"


def split_notes(notes: str | None) -> tuple[str, Marker]:
    """Return a VM's notes without the blanks at their end, which PVE drops, and the marker."""
    text = notes or ""
    found = _COMMENT.search(text)
    if not found:
        return text.rstrip(), Marker()
    parts = found.group(1).split()
    values = dict(part.split("=", 1) for part in parts)
    origin = values.get("origin", "")
    inherited_tags = values.get("shed", "").split(":")
    marker = Marker(
        origin=whole_number(origin),
        image=_image_in(values.get("image", "")),
        restored=values.get("restored") == "1",
        run=values.get("run"),
        tenant=values.get("tenant"),
        inherited_tags=tuple(filter(None, inherited_tags)),
        stale=values.get("drive") == _STALE,
        ran=whole_number(values.get("ran", "")),
        next=_image_in(values.get("next", "")),
        over=values.get("over", ""),
        move=values.get("move", ""),
    )
    before = text[: found.start()]
    return before.rstrip(), marker


def join_notes(notes: str, marker: Marker) -> str:
    """Return notes followed by the marker."""
    comment = marker.render()
    lines = filter(None, (notes, comment))
    return "\n".join(lines)


def _digest(volume: str) -> str:
    return hashlib.sha256(volume.encode()).hexdigest()[:12]


def _image_text(image: ImageVersion | None) -> str:
    """Return the text of an image in the marker, whose values cannot contain `@`."""
    return f"{image.name}:{image.version}" if image is not None else ""


def _image_in(text: str) -> ImageVersion | None:
    name, _colon, version = text.partition(":")
    return ImageVersion(name, version) if name and version else None


def owner_tags(config: Mapping[str, Any], prefix: str) -> tuple[str, ...]:
    """Return the tags of a VM that show its tenant.

    For an unfinished clone: without the tags of its source, and with the tenant in its marker.
    """
    marker = split_notes(config.get("description"))[1]
    tags = parse_tags(str(config.get("tags") or ""))
    if not marker.building or not marker.tenant:
        return tags
    own = tuple(tag for tag in tags if tag.lower() not in marker.inherited_tags)
    return own if tenants_of(own, prefix) else (*own, marker.tenant)
