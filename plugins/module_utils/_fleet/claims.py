# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the VMs of one run take: seen by the decisions about its other VMs, before Proxmox VE shows it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from .._cluster.picture import FRESH, Picture, VmRow, read_picture
from .._cluster.scene import Scene
from .._cluster.tenant import parse_tags
from .._vm.limits import figures_of
from .._vm.placing import cores_of, memory_of

if TYPE_CHECKING:
    from .._api.client import Client


def row_of(
    vmid: int, node: str, config: Mapping[str, str], *, pool: str | None, status: str, disk: int | None = None
) -> VmRow:
    """Return the row of a VM as the listing will show it; `disk` is what its disks count where that is known better."""
    return VmRow(
        vmid=vmid,
        node=node,
        name=config.get("name") or "",
        status=status,
        tags=tuple(parse_tags(config.get("tags") or "")),
        pool=pool,
        template=config.get("template") == "1",
        lock=None,
        cores=cores_of(config),
        memory=memory_of(config),
        disk=figures_of(config).disk if disk is None else disk,
        uptime=0,
    )


class Stage(Scene):
    """The cluster while a run is planned: as it was when it was read, with what the VMs planned so far will be."""

    def __init__(self, client: Client, picture: Picture) -> None:
        super().__init__(client)
        self._vms = dict(picture.vms)
        self._taken = set(picture.taken)
        # One look is what the whole plan rests on; what has changed meanwhile is seen when it is carried out.
        self.picture = replace(picture, vms=self._vms, taken=self._taken, read_at=float("inf"))

    def now(self) -> Picture:
        return self.picture

    def fresh(self, picture: Picture) -> Picture:
        return picture

    def put(self, row: VmRow) -> None:
        """Show a VM as it will be."""
        self._vms[row.vmid] = row
        self._taken.add(row.vmid)


class Claims:
    """The VMs that this run is about to make or change, as they will be; safe to use from several threads."""

    def __init__(self, client: Client, picture: Picture) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._rows: dict[int, VmRow] = {}
        self._latest = picture
        self._before = frozenset(picture.vms)
        self._made: frozenset[int] = frozenset()

    def put(self, row: VmRow) -> None:
        """Claim what a VM will take."""
        with self._lock:
            self._rows[row.vmid] = row

    def drop(self, vmid: int) -> None:
        """Give up a claim."""
        with self._lock:
            self._rows.pop(vmid, None)

    def made(self, vmid: int) -> None:
        """Note that this run has made the VM of this number."""
        with self._lock:
            self._made |= {vmid}

    def familiar(self) -> frozenset[int]:
        """Return the VMs that were there before, and those that this run has made."""
        with self._lock:
            return self._before | self._made

    def renumber(self, old: int, new: int, node: str) -> None:
        """Move a claim to another number and node."""
        with self._lock:
            row = self._rows.pop(old, None)
            if row is not None:
                self._rows[new] = replace(row, vmid=new, node=node)

    def read(self, not_before: float) -> Picture:
        """Return a picture whose reading began then or later, by the client's monotonic clock; one reads for all."""
        with self._reading:
            if self._latest.read_at < not_before:
                self._latest = read_picture(self._client)
            return self._latest

    def over(self, picture: Picture, without: int) -> Picture:
        """Return the picture with all claims but that of one VM."""
        with self._lock:
            rows = {vmid: row for vmid, row in self._rows.items() if vmid != without}
        return replace(picture, vms={**picture.vms, **rows}, taken=picture.taken | rows.keys())


class View(Scene):
    """The cluster as one VM of a run sees it while the others are worked on too."""

    def __init__(self, client: Client, claims: Claims, vmid: int) -> None:
        super().__init__(client)
        self._claims = claims
        self.vmid = vmid

    def now(self) -> Picture:
        return self._claims.over(self._claims.read(self.client.clock.monotonic()), self.vmid)

    def fresh(self, picture: Picture) -> Picture:
        now = self.client.clock.monotonic()
        if now - picture.read_at <= FRESH:
            return picture
        return self._claims.over(self._claims.read(now - FRESH), self.vmid)

    def seen(self) -> Picture:
        return self._claims.read(self.client.clock.monotonic())

    def familiar(self) -> frozenset[int]:
        return self._claims.familiar()

    def made(self, vmid: int) -> None:
        self._claims.made(vmid)

    def claim(self, vmid: int, node: str) -> None:
        self._claims.renumber(self.vmid, vmid, node)
        self.vmid = vmid
