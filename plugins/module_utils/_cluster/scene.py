# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How one run sees the cluster: which picture its decisions rest on, and where it tells what it takes."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from .picture import Picture, read_picture, refreshed

if TYPE_CHECKING:
    from .._api.client import Client


class Scene:
    """The cluster as a run sees it that works on one VM alone."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def now(self) -> Picture:
        """Return a picture that is read now."""
        return read_picture(self.client)

    def fresh(self, picture: Picture) -> Picture:
        """Return the picture, or a new one where a write may no longer rest on it."""
        return refreshed(self.client, picture)

    def seen(self) -> Picture:
        """Return a picture that is read now, without what is only planned."""
        return read_picture(self.client)

    def familiar(self) -> AbstractSet[int] | None:
        """Return the VMs that others have not made meanwhile, or None where that is not looked for."""
        return None

    def made(self, vmid: int) -> None:
        """Hear that this run has made the VM of this number."""

    def claim(self, vmid: int, node: str) -> None:
        """Hear that the VM will have this number on this node, other than was planned."""
