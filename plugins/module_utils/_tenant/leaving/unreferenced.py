# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes that have the VMID of a guest in their name and that the guest does not refer to.

With C(Datastore.AllocateSpace) on a storage, a user can allocate a volume with the VMID of any
guest (pve-storage: PVE/API2/Storage/Content.pm, create, checks no right on the guest).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ..._cluster.storages.contents import Contents
from ..._core.errors import FleetError, NotFound
from ..._guest.model import Actual

if TYPE_CHECKING:
    from ..._api.client import Client

# The configuration of a guest with one of these locks lacks volumes that it had or will have.
_LOCKS = frozenset({"clone", "create", "migrate", "rollback", "snapshot", "snapshot-delete"})


def suspects(contents: Contents, guests: Mapping[int, Actual]) -> dict[int, list[str]]:
    """Return the volumes that no current configuration has, by the VMID in their names (pure).

    A locked guest has none: its next audit checks it.
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
    """Return the volumes that no snapshot of a guest has either, or [] if the guest is gone.

    One request, and one for each snapshot. Raises FleetError if one of them cannot be read.
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
    """Return the volumes that belong to no guest or snapshot, and the guests that could not be
    read, both by VMID.

    It sends the requests of `without_snapshots`, only for guests with suspects.
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
    """Return storage and name of each volume that these values of a configuration begin with."""
    heads = (value.partition(",")[0] for value in values)
    return {_name(head.removeprefix("file=")) for head in heads if ":" in head}


def _name(volid: str) -> str:
    """Return a volume without the base image that some storages write before it.

    A listing can have C(ceph:vm-1-disk-0) for C(ceph:base-9-disk-0/vm-1-disk-0) in a configuration
    (pve-storage: PVE/Storage/RBDPlugin.pm, list_images).
    """
    storage, _colon, path = volid.partition(":")
    return f"{storage}:{path.rpartition('/')[2]}"
