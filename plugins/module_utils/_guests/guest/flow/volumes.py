# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refuses to attach a volume that does not exist, and to attach or copy one of another guest."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ...._foundation.cluster.find.lookup import (
    is_file,
    require_own_source,
    require_own_volume,
    volume_owner,
)
from ...._foundation.cluster.state import ClusterState
from ...._foundation.cluster.storages.volume_users import (
    VolumeUser,
    drive_volumes,
    read_users_of_owner,
    read_volume_users,
    volume_pattern,
)
from ...._foundation.cluster.tenant import owns
from ...._foundation.core.errors import ConfigurationError, Conflict, ForeignTenant
from ...kinds.model import Actual, Guest

if TYPE_CHECKING:
    from ...._foundation.api.client import Client
    from .reads import GuestReads


def require_own_volumes(
    client: Client,
    guest: Guest,
    sets: Mapping[str, str],
    existing: Mapping[str, str],
    cluster: ClusterState,
    vmid: int | None = None,
) -> None:
    """Raise Conflict for a volume of a guest that the tenant may not clone, and for a volume that
    another guest uses.

    `vmid` is the VMID of an existing guest. Volumes in its `existing` configuration are not
    checked. The users of each other volume are read, unless it is a file such as an ISO.
    """
    tag, prefix, shared = guest.tenant_tag, guest.tenant_prefix, guest.shared_sources
    known = {volume for volume, _copied, _shared in drive_volumes(existing)}
    for volume, is_copied, is_shared in drive_volumes(sets):
        if volume in known:
            continue
        owner = volume_owner(volume)
        if owner != vmid:
            require_own_volume(volume, cluster, tag, prefix, shared)
        if owner is None and (":" not in volume or is_file(volume)):
            continue
        if is_copied and (tag is None or _is_template(cluster, owner)):
            continue
        for user in read_volume_users(client, volume, clones=not is_copied):
            if user.row.vmid == vmid:
                continue
            if is_copied:
                require_own_source(user.row, user.tags, tag, prefix, shared)
            else:
                _require_own_user(guest, volume, user, may_share=is_shared)


def require_no_other_users(client: Client, actual: Actual, slots: Iterable[str]) -> None:
    """Raise Conflict if another guest uses a disk whose volume would be destroyed.

    PVE destroys only volumes with the VMID of the guest, and looks at no other guest; a volume of
    another guest leaves the configuration and stays (qemu-server: QemuServer.pm,
    try_deallocate_drive; pve-container: LXC.pm, delete_mountpoint_volume).
    """
    volumes = actual.kind.volumes_in(actual.target)
    for slot in sorted(volumes.keys() & set(slots)):
        volume = volumes[slot]
        if volume_owner(volume) != actual.vmid:
            continue
        users = read_volume_users(client, volume, clones=False)
        step = "Detach it there first, or write state=detached here"
        _require_unused(f"{slot} of {actual.label}", volume, users, {actual.vmid}, step)


def require_no_borrowers(
    client: Client, actual: Actual, cluster: ClusterState, leaving: Collection[int] = ()
) -> list[str]:
    """Raise Conflict if another guest uses a volume of a guest to remove, and return warnings about
    guests that could not be read. Guests in `leaving`, which the same run removes, do not count.

    PVE destroys every volume with the VMID, and looks at no other guest (qemu-server:
    QemuServer.pm, destroy_vm; pve-container: LXC.pm, destroy_lxc_container).
    """
    users, warnings = read_users_of_owner(client, actual.vmid, actual.node, cluster)
    step = "Detach it there first"
    _require_unused(actual.label, "one of its volumes", users, leaving, step)
    return warnings


def _require_unused(
    subject: str, volume: str, users: Iterable[VolumeUser], known: Collection[int], step: str
) -> None:
    """Raise Conflict for the first user of a volume outside the `known` guests (pure)."""
    for user in users:
        if user.row.vmid in known:
            continue
        raise Conflict(
            f"{subject} was not removed: guest {user.row.vmid} uses {volume} as {user.places[0]}",
            step,
            "in use",
        )


def missing_volumes(reads: GuestReads, volumes: Iterable[str], node: str) -> list[str]:
    """Return the volumes that a node does not list; one request a storage."""
    missing: list[str] = []
    for volume in sorted(volumes):
        rows = reads.contents(node, volume.partition(":")[0])
        pattern = volume_pattern(volume, clones=False)
        if not any(pattern.search(str(row["volid"])) for row in rows):
            missing.append(volume)
    return missing


def require_no_missing_volumes(missing: Sequence[str], node: str, label: str) -> None:
    """Raise ConfigurationError for a volume that a node does not have (pure)."""
    if not missing:
        return
    raise ConfigurationError(
        f"{', '.join(missing)} could not be used for {label}: node {node} does not have it",
        "Check the name, with module volume_info",
        "unknown volume",
    )


def _is_template(cluster: ClusterState, owner: int | None) -> bool:
    row = None if owner is None else cluster.guest(owner)
    return row is not None and row.template


def _require_own_user(guest: Guest, volume: str, user: VolumeUser, *, may_share: bool) -> None:
    attempted = f"Volume {volume} was refused"
    if not owns(guest.tenant_tag, user.tags, guest.tenant_prefix):
        raise ForeignTenant(
            f"{attempted}: guest {user.row.vmid} uses it, which does not belong to "
            f"{guest.tenant_tag}",
            "Choose a volume of this tenant",
            "foreign tenant",
        )
    if may_share:
        return
    raise Conflict(
        f"{attempted}: {user.label} uses it",
        "Detach it there first, or set shared=true if both can use it at once",
        "in use",
    )
