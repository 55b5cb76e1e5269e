# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One template name on several nodes: copies of one template, on local storages (pure).

The copy on the node of the new VM is cloned, or else the nearest copy that can get there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from ..._core.errors import Conflict
from ..._guest.model import Actual
from ..config.actual import drives, is_disk, storage_of

# The line that the role image writes into the notes of a template.
_MADE_FROM = re.compile(r"^Template \S+, made from (\S+)", re.MULTILINE)


def nearest(copies: Sequence[Actual], node: str | None, shared: Collection[str]) -> Actual:
    """Return the copy on that node, or else a copy whose disks all nodes share.

    The lowest VMID decides.
    """

    def distance(copy: Actual) -> tuple[bool, bool, int]:
        is_elsewhere = copy.node != node
        is_local = not is_shared(copy, shared)
        return is_elsewhere, is_local, copy.vmid

    return min(copies, key=distance)


def is_shared(template: Actual, shared: Collection[str]) -> bool:
    """Return whether all volumes of a template are on storages that all nodes share."""
    for drive in drives(template.target).values():
        if drive.get("file") == "none":
            continue
        if storage_of(drive) not in shared:
            return False
    return True


def require_alike(name: str, copies: Sequence[Actual]) -> None:
    """Raise Conflict if templates of one name are not copies of each other.

    Two on one node are never copies. Others must have the same disks, and be made from the same
    image if both have the notes of the role image.
    """
    nodes = {copy.node for copy in copies}
    if len(nodes) < len(copies):
        raise _ambiguous(name, copies, "two are on one node", _places(copies))
    images: set[str] = set()
    disks: set[str] = set()
    made_from: list[str] = []
    having: list[str] = []
    for copy in copies:
        place = _place(copy)
        image = _made_from(copy)
        images.update(filter(None, [image]))
        made_from.append(f"{place} from {image or 'an unknown image'}")
        sizes = _disks(copy)
        disks.add(sizes)
        having.append(f"{place} has {sizes or 'none'}")
    if len(images) > 1:
        facts = ", ".join(made_from)
        raise _ambiguous(name, copies, "they were made from different images", facts)
    if len(disks) > 1:
        facts = ", ".join(having)
        raise _ambiguous(name, copies, "their disks differ", facts)


def why_copy(chosen: Actual, copies: Sequence[Actual]) -> str:
    """Return the reason that names the copy which is cloned."""
    places = _places(sorted(copies, key=lambda copy: copy.vmid))
    return f"template {_place(chosen)} is cloned, of the copies {places}"


def _place(copy: Actual) -> str:
    return f"{copy.vmid} on {copy.node}"


def _places(copies: Sequence[Actual]) -> str:
    return ", ".join(map(_place, copies))


def _made_from(copy: Actual) -> str | None:
    found = _MADE_FROM.search(copy.notes)
    if found is None:
        return None
    return found.group(1)


def _disks(copy: Actual) -> str:
    texts = []
    for slot, drive in sorted(drives(copy.target).items()):
        if is_disk(drive):
            texts.append(f"{slot} {drive.get('size', '')}".strip())
    return " ".join(texts)


def _ambiguous(name: str, copies: Sequence[Actual], why: str, facts: str) -> Conflict:
    return Conflict(
        attempted=f"Template '{name}' could not be chosen",
        answer=f"{len(copies)} templates have that name, and {why}: {facts}",
        next_step="Name the one you mean by its VMID, or give them different names",
        reason="ambiguous template",
        details={"templates": sorted(copy.vmid for copy in copies)},
    )
