# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds out whether a VMID missing from the listing is free, or only hidden from the caller.

The listing leaves out guests that the caller may not see. C(GET /cluster/nextid) with a VMID tells
every caller whether that VMID is in use (pve-manager: API2/Cluster.pm). The privileges of the
caller show whether a missing storage could be hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...api.access.privileges import Privileges
from ...core.errors import PermissionDenied, VmidTaken
from ..state import ClusterState, node_of

if TYPE_CHECKING:
    from ...api.client import Client
    from ...api.protocols import Reader


def is_in_use(client: Reader, vmid: int) -> bool:
    """Return whether any VM or container has that VMID, visible or not; one request."""
    try:
        client.get("cluster", "nextid", vmid=vmid)
    except VmidTaken:
        return True
    return False


def hidden_storages(client: Reader, names: Iterable[str]) -> list[str]:
    """Return the storages that the caller could not see; one request for each.

    The listing contains only storages on which the caller has Datastore.Audit (pve-manager:
    PVE/API2/Cluster.pm, resources), so a missing storage may exist.
    """
    hidden: list[str] = []
    for name in names:
        path = f"/storage/{name}"
        answer = client.get("access", "permissions", path=path) or {}
        if "Datastore.Audit" not in (answer.get(path) or {}):
            hidden.append(name)
    return hidden


def require_no_hidden_storages(hidden: Sequence[str], attempted: str) -> None:
    """Raise PermissionDenied for storages that are not listed and may be hidden (pure)."""
    if not hidden:
        return
    listed = ", ".join(hidden)
    paths = ", ".join(f"/storage/{name}" for name in hidden)
    raise PermissionDenied(
        f"{attempted}: this user or token cannot see whether storage {listed} exists",
        f"Check the name, and give it Datastore.Audit on {paths}",
        "hidden storage",
        details={"storages": list(hidden)},
    )


def sees_all_guests(client: Reader) -> bool:
    """Return whether the listing has all guests; one request.

    The listing contains only guests on which the caller has VM.Audit (pve-manager:
    PVE/API2/Cluster.pm, resources).
    """
    answer = client.get("access", "permissions", path="/vms") or {}
    return bool((answer.get("/vms") or {}).get("VM.Audit"))


def sees_tasks(client: Client, nodes: Iterable[str]) -> bool:
    """Return whether the caller sees the tasks of all users on these nodes (pve-manager:
    API2/Tasks.pm, node_tasks).
    """
    held = Privileges(client.privileges())
    return all("Sys.Audit" in held.on(f"/nodes/{node}") for node in nodes)


def require_all_guests_visible(
    is_complete: bool, attempted: str, otherwise: str = ", or set force=true"
) -> None:
    """Raise PermissionDenied if the listing may lack guests; `otherwise` is another next step."""
    if is_complete:
        return
    raise PermissionDenied(
        f"{attempted}: this user or token does not see all guests, and a hidden one may use it",
        f"Give it VM.Audit on /vms{otherwise}",
        "hidden guests",
        details={"privilege": "VM.Audit", "acl_path": "/vms"},
    )


def require_no_other_kind(
    cluster: ClusterState, vmid: int | None, attempted: str, other: str
) -> None:
    """Raise Conflict for a VMID of a guest of the other kind, which is called `other` (pure)."""
    if not cluster.is_of_other_kind(vmid):
        return
    raise taken(attempted, f"a {other} has the number {vmid}")


def taken(attempted: str, answer: str) -> VmidTaken:
    """Return the error of a VMID that another guest has."""
    return VmidTaken(f"{attempted}: {answer}", "Choose another vmid, or leave it out", "taken vmid")


@dataclass(frozen=True)
class VmidVisibility:
    """PVE's answer about a VMID that the listing lacks."""

    in_use: bool = False
    created: bool = False  # whether the guest was not listed because it is new


def probe_vmid(client: Client, cluster: ClusterState, vmid: int | None) -> VmidVisibility:
    """Return PVE's answer about a VMID.

    One request if the listing lacks the VMID, and a second one if the VMID is in use.
    """
    if vmid is None or vmid in cluster.taken | cluster.freed or not is_in_use(client, vmid):
        return VmidVisibility()
    return VmidVisibility(in_use=True, created=node_of(client, vmid) is not None)


def require_visible(sight: VmidVisibility, vmid: int | None, attempted: str) -> None:
    """Raise PermissionDenied for a VMID that is in use, but hidden from the caller (pure).

    Raises Conflict for a guest that is new.
    """
    if not sight.in_use:
        return
    guest = f"a VM or container with the number {vmid}"
    if sight.created:
        raise VmidTaken(
            f"{attempted}: {guest} was created a moment ago, or is being created",
            "Run this again when it is complete",
            "taken vmid",
        )
    raise PermissionDenied(
        f"{attempted}: {guest} exists that this user or token may not see",
        f"Check the number, or give the user (and its token) VM.Audit on /vms/{vmid}",
        "VM not visible",
        details={"privilege": "VM.Audit", "acl_path": f"/vms/{vmid}"},
    )
