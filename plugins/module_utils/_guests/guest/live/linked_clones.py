# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether linked clones use the disks of a template: Proxmox VE then does not remove the disks.

The name of a linked clone's volume begins with the name of its base volume, as in
`ceph:base-9000-disk-0/vm-101-disk-0`. On LVM-thin it does not, and the base volume can be removed
(pve-storage: Storage.pm, volume_is_base_and_used; qemu-server: QemuServer.pm, destroy_vm).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...._foundation.core.errors import Conflict, FleetError
from ...kinds.model import Actual, Guest

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

_MAX_LISTED = 10


@dataclass(frozen=True)
class LinkedClones:
    """The linked clones of a template, and warnings about storages that could not be read."""

    vmids: frozenset[int] = frozenset()
    warnings: tuple[str, ...] = ()


def linked_clones(client: Client, actual: Actual) -> LinkedClones:
    """Return the linked clones of a VM; one request for each storage of a template."""
    if not actual.template:
        return LinkedClones()
    volumes = set(actual.kind.volumes_in(actual.target).values())
    warnings: list[str] = []
    clones: set[int] = set()
    for storage in sorted({volume.partition(":")[0] for volume in volumes}):
        try:
            clones |= _clones_on(client, actual, storage, volumes)
        except FleetError as error:
            text = f"It is not known whether linked clones use {actual.label}: {error.cause}"
            warnings.append(text)
    return LinkedClones(frozenset(clones), tuple(warnings))


def require_no_clones(desired: Guest, actual: Actual, clones: LinkedClones) -> None:
    """Raise Conflict for a template that would be removed before its linked clones (pure).

    Clones that the same run removes do not count.
    """
    others = clones.vmids - desired.leaving
    if others:
        raise _in_use(actual, sorted(others))


def _clones_on(client: Client, actual: Actual, storage: str, volumes: set[str]) -> set[int]:
    """Return the VMIDs of the linked clones of these volumes that the caller may see."""
    attempted = f"Could not list storage {storage} on node {actual.node}"
    path = ("nodes", actual.node, "storage", storage, "content")
    rows = client.get(*path, content=actual.kind.content, attempted=attempted)
    bases = tuple(f"{volume}/" for volume in volumes)
    return {int(row["vmid"]) for row in rows if row["volid"].startswith(bases) and row.get("vmid")}


def _in_use(actual: Actual, clones: list[int]) -> Conflict:
    listed = ", ".join(map(str, clones[:_MAX_LISTED]))
    if len(clones) > _MAX_LISTED:
        listed += f" and {len(clones) - _MAX_LISTED} more"
    noun = actual.kind.noun
    if len(clones) > 1:
        noun += "s"
    return Conflict(
        f"{actual.label} was not removed: its disks are used by the linked clones of {noun} "
        f"{listed}",
        "Remove these first, or move their disks to another storage, which copies them",
        "in use",
    )
