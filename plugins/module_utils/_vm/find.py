# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which VM is meant: found in the picture, read, and seen by the tenant guard."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .._cluster.lookup import find_vm, guard_tenant
from .._cluster.picture import Picture, VmRow, ask_nodes, fill_names
from .._cluster.tenant import parse_tags
from .._core.errors import Conflict, FleetError, NodeUnhealthy
from .job import Job
from .marker import split_notes
from .model import Actual, Desired
from .moving import read_wherever

if TYPE_CHECKING:
    from .._api.client import Client


def locate(client: Client, desired: Desired, picture: Picture) -> VmRow | None:
    """Return the row of the VM that is meant, or None. A VM the listing has no name for yet is asked for it."""

    def search(seen: Picture) -> VmRow | None:
        return find_vm(
            seen,
            vmid=desired.vmid,
            name=desired.name,
            tenant_tag=desired.tenant_tag,
            prefix=desired.tenant_prefix,
        )

    try:
        row = search(picture)
    except Conflict:  # the listing may know an old name of one of them
        row = search(ask_nodes(client, picture, picture.nodes))
    if row is None and desired.vmid is None:
        row = search(fill_names(client, picture))
    return row


def read_found(job: Job, row: VmRow, picture: Picture) -> Actual:
    """Return the VM as it is, after the guard has seen its fresh tags. Raises NodeUnhealthy where its node is down."""
    desired = job.desired
    label = f"VM '{row.name}' ({row.vmid}) on node {row.node}" if row.name else f"VM {row.vmid} on node {row.node}"
    node = picture.nodes.get(row.node)
    if node is not None and not node.online:
        raise NodeUnhealthy(
            attempted=f"{label} could not be read",
            answer="the node is offline",
            next_step="Bring the node back, or wait until HA has moved the VM",
            reason="node offline",
        )
    # The listing's power state is old; it will do only where nothing rests on it.
    known = row.fresh or (desired.state == "present" and row.status in ("running", "stopped"))
    listed = row.status if known else None
    try:
        actual = read_wherever(job.client, row.vmid, row.node, status=listed, pool=row.pool)
    except FleetError as error:
        raise error.on(attempted=f"{label} could not be read") from error
    if listed:
        actual = replace(actual, uptime=row.uptime, listed=not row.fresh)
    guard(desired, actual)
    return actual


def guard(desired: Desired, actual: Actual) -> None:
    """Raise Conflict where the VM, as it is now, is not one that the task's tenant may touch."""
    tags = set(parse_tags(actual.target.get("tags")))
    marker = split_notes(actual.target.get("description"))[1]
    building = marker.building and marker.tenant == desired.tenant_tag
    if building:  # an unfinished clone of ours still bears its source's tags
        tags = {tag for tag in tags if tag.lower() not in marker.shed}
    guard_tenant(actual.label, tags, desired.tenant_tag, desired.tenant_prefix, adopt=desired.adopt or building)
