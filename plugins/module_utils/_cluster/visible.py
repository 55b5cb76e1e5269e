# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a VMID that the listing does not have is free, or only hidden from the caller.

The listing leaves out what the caller may not see. C(GET /cluster/nextid) with a VMID says to every
caller whether that number is in use (pve-manager: API2/Cluster.pm).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core.errors import PermissionDenied, VmidTaken
from .state import ClusterState, node_of

if TYPE_CHECKING:
    from .._api.client import Client
    from .._api.protocols import Reader


def is_in_use(client: Reader, vmid: int) -> bool:
    """Return whether any VM or container has that number, visible or not; one request."""
    try:
        client.get("cluster", "nextid", vmid=vmid)
    except VmidTaken:
        return True
    return False


def require_no_container(cluster: ClusterState, vmid: int | None, attempted: str) -> None:
    """Raise Conflict for a VMID that is a container's (pure)."""
    if not cluster.is_container(vmid):
        return
    raise VmidTaken(
        attempted=attempted,
        answer=f"a container has the number {vmid}",
        next_step="Choose another vmid, or leave it out",
        reason="taken vmid",
    )


def require_visible(
    client: Client,
    cluster: ClusterState,
    vmid: int | None,
    attempted: str,
) -> None:
    """Raise PermissionDenied for a VMID that is in use, but hidden from the caller.

    One request where the listing lacks the number, and a second where it is in use. Raises Conflict
    for a VM that was created since the listing was read.
    """
    if vmid is None or vmid in cluster.taken or not is_in_use(client, vmid):
        return
    guest = f"a VM or container with the number {vmid}"
    if node_of(client, vmid) is not None:
        raise VmidTaken(
            attempted=attempted,
            answer=f"{guest} was created a moment ago",
            next_step="Run this again",
            reason="taken vmid",
        )
    raise PermissionDenied(
        attempted=attempted,
        answer=f"{guest} exists that this user or token may not see",
        next_step=f"Check the number, or give the user (and its token) VM.Audit on /vms/{vmid}",
        reason="VM not visible",
        details={"privilege": "VM.Audit", "acl_path": f"/vms/{vmid}"},
    )
