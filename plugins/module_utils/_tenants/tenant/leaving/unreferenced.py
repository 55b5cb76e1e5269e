# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes with the VMID of a guest in their names, although the guest does not refer to them.

With C(Datastore.AllocateSpace) on a storage, a user can allocate a volume with the VMID of any
guest (pve-storage: PVE/API2/Storage/Content.pm, create, checks no right on the guest).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ...._foundation.cluster.storages.contents import StorageContents
from ...._foundation.core.errors import FleetError, NotFound
from ...._guests.kinds.model import Actual

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

# While a guest has one of these locks, its configuration can lack volumes that belong to it.
_LOCKS = frozenset({"clone", "create", "migrate", "rollback", "snapshot", "snapshot-delete"})


def suspects(contents: StorageContents, guests: Mapping[int, Actual]) -> dict[int, list[str]]:
    """Return the volumes that the configuration of their guest lacks, by VMID (pure).

    Guests with one of these locks are left to the next audit.
    """
    found: dict[int, list[str]] = {}
    for _row, volume in contents.volumes:
        vmid = int(volume.get("vmid") or 0)
        actual = guests.get(vmid)
        if actual is None or actual.lock in _LOCKS:
            continue
        known = _names((*actual.live.values(), *actual.target.values()))
        volid = str(volume["volid"])
        if _name(volid) not in known:
            found.setdefault(vmid, []).append(volid)
    return found


def without_snapshots(client: Client, actual: Actual, volids: Iterable[str]) -> list[str]:
    """Return the volumes that the guest's snapshots lack too, or [] if the guest is gone.

    One request, and one for each snapshot. Raises FleetError if one of these requests fails.
    """
    try:
        rows = client.get(*actual.path, "snapshot")
        known: set[str] = set()
        for row in rows:
            if row["name"] != "current":
                config = client.get(*actual.path, "config", snapshot=row["name"])
                known |= _names(str(value) for value in config.values())
    except NotFound:
        return []
    return [volid for volid in volids if _name(volid) not in known]


def read_unreferenced(
    client: Client, guests: Mapping[int, Actual], found: Mapping[int, Iterable[str]]
) -> tuple[dict[int, list[str]], dict[int, FleetError]]:
    """Return the volumes that no guest or snapshot refers to, and the errors of guests that could
    not be read, both by VMID.

    Sends the requests of `without_snapshots`, only for guests with suspects.
    """
    volumes: dict[int, list[str]] = {}
    errors: dict[int, FleetError] = {}
    for vmid, volids in sorted(found.items()):
        try:
            rest = without_snapshots(client, guests[vmid], volids)
        except FleetError as error:
            errors[vmid] = error
            continue
        if rest:
            volumes[vmid] = rest
    return volumes, errors


def _names(values: Iterable[str]) -> set[str]:
    """Return the storage and name of the volume at the beginning of each configuration value."""
    heads = (value.partition(",")[0] for value in values)
    return {_name(head.removeprefix("file=")) for head in heads if ":" in head}


def _name(volid: str) -> str:
    """Return a volume ID without the base image that some storages put before the volume.

    A listing can show C(ceph:vm-1-disk-0) for C(ceph:base-9-disk-0/vm-1-disk-0) in a configuration
    (pve-storage: PVE/Storage/RBDPlugin.pm, list_images).
    """
    storage, _colon, path = volid.partition(":")
    return f"{storage}:{path.rpartition('/')[2]}"
