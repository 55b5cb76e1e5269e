# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the snapshots of a VM stand in the way of a change: asked for only where they could."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core.errors import Conflict
from .actual import drives, volume_of
from .config import Change
from .model import Actual, Desired

if TYPE_CHECKING:
    from .._api.client import Client


def check_snapshots(client: Client, desired: Desired, actual: Actual, change: Change) -> None:
    """Raise Conflict for what PVE does not do to a VM with snapshots: make it a template, remove or move their disks.

    Only for those three the snapshots are read; one request, and for disks one more each.
    """
    converts = desired.state == "template" and not actual.template
    slots = {*change.drives.removed, *change.drives.moved}
    volumes = {slot: file for slot in slots if (file := volume_of(slot, actual.target.get(slot, "")))}
    if not converts and not volumes:
        return
    base = actual.path
    names = sorted(str(row["name"]) for row in client.get(*base, "snapshot") if row["name"] != "current")
    if converts and names:
        raise Conflict(
            attempted=f"{actual.label} was not converted into a template",
            answer=f"it has snapshots: {', '.join(names)}",
            next_step="Remove them first, with module snapshot",
            reason="snapshots",
        )
    for name in names:
        config = client.get(*base, "config", snapshot=name)
        held = {drive.get("file") for drive in drives({key: str(text) for key, text in config.items()}).values()}
        for slot in sorted(slot for slot, file in volumes.items() if file in held):
            verb, other = ("moved", "") if slot in change.drives.moved else ("removed", ", or detach the disk instead")
            raise Conflict(
                attempted=f"Disk {slot} of {actual.label} was not {verb}",
                answer=f"its volume is part of snapshot '{name}'",
                next_step=f"Remove the snapshot first, with module snapshot{other}",
                reason="snapshots",
            )
