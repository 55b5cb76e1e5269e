# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ownership marker: one HTML comment at the end of a VM's notes, invisible in PVE's interface (pure).

A clone cannot be given tags when it is made; the notes are the one place where a new VM can say from its first
moment whose it is and which run makes it. See docs/decisions/0001-ownership-marker.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_COMMENT = re.compile(r"\n?<!-- pve\.fleet:((?: [a-z]+=[A-Za-z0-9_.+:-]*)*) -->\s*$")


@dataclass(frozen=True)
class Marker:
    """`origin` is the VMID a VM was cloned from; the rest is there only while it is being built.

    `run` is the run that makes it, `tenant` the tag it will bear, `shed` the tenants' tags that it has from its source
    and that will go.
    """

    origin: int | None = None
    run: str | None = None
    tenant: str | None = None
    shed: tuple[str, ...] = ()

    @property
    def building(self) -> bool:
        return self.run is not None

    def render(self) -> str:
        """Return the comment, or an empty text where there is nothing to say."""
        parts = [("origin", self.origin), ("run", self.run), ("tenant", self.tenant), ("shed", ":".join(self.shed))]
        text = "".join(f" {key}={value}" for key, value in parts if value)
        return f"<!-- pve.fleet:{text} -->" if text else ""


def split_notes(notes: str | None) -> tuple[str, Marker]:
    """Return a VM's notes without the marker, and the marker."""
    text = notes or ""
    found = _COMMENT.search(text)
    if not found:
        return text.rstrip("\n"), Marker()
    values = dict(part.split("=", 1) for part in found.group(1).split())
    origin = values.get("origin", "")
    shed = tuple(tag for tag in values.get("shed", "").split(":") if tag)
    marker = Marker(int(origin) if origin.isdigit() else None, values.get("run"), values.get("tenant"), shed)
    return text[: found.start()].rstrip("\n"), marker


def join_notes(notes: str, marker: Marker) -> str:
    """Return notes with the marker behind them."""
    comment = marker.render()
    return f"{notes}\n{comment}" if notes and comment else notes or comment
