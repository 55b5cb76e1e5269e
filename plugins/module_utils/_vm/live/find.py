# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which VM a task means: found in the cluster, read, complete, and seen by the tenant guard."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..._cluster.locate import locate
from ..._cluster.lookup import guard_tenant, namesakes
from ..._cluster.state import ClusterState, VmRow, with_names, without_vm
from ..._cluster.tenant import is_of_others, parse_tags
from ..._core.errors import Conflict, FleetError, NodeUnhealthy, NotFound, UnknownVm
from ..._guest.marker import split_notes
from ..context import RunContext
from ..model import Actual, Desired
from .making import MAKING, await_made, await_name, is_being_made, is_meant
from .read import read_wherever

if TYPE_CHECKING:
    from ..._api.client import Client

# How often a VM is searched again that is gone, or another one, when it is read.
_LOOKS = 3


def find(context: RunContext, cluster: ClusterState) -> tuple[Actual | None, ClusterState]:
    """Return the VM that the task means as it is now, or None, and the cluster state that was
    searched.

    A VM that is being made is waited for. Where None is returned for a name, the cluster state has
    the names of all VMs from their nodes. Raises FleetError where the task may not touch the VM.
    """
    desired = context.desired
    for _look in range(_LOOKS):
        row, cluster = _search(context.client, desired, cluster)
        if row is None:
            break
        actual = read_found(context, row, cluster)
        if actual is None:
            cluster = without_vm(cluster, row.vmid)
        elif desired.vmid is not None or actual.name == desired.name:
            return actual, cluster
        else:  # the listing has the name of the VM that had this number before
            cluster = with_names(context.client.direct(), replace(cluster, asked=frozenset()))
    if desired.vmid is not None:
        return None, cluster
    # what is being made changes from look to look
    context = replace(context, client=context.client.direct())
    for row in unclear(desired, cluster):
        config = await_name(context.client, row.vmid, row.node, context.settings.task_timeout)
        if config is None:
            cluster = without_vm(cluster, row.vmid)
        elif is_meant(config, desired):
            named = replace(row, name=desired.name or "", fresh=False)
            actual = read_found(context, named, cluster)
            if actual is not None:
                return actual, cluster
            cluster = without_vm(cluster, row.vmid)
    return None, cluster


def unclear(desired: Desired, cluster: ClusterState) -> list[VmRow]:
    """Return the VMs whose listing does not say whether they are the one that is meant (pure).

    Those are VMs without a name that are being made with a number which this task would choose, and
    VMs of the name with another tenant's tag: an unfinished clone has the tags of its source.
    """
    numbers = desired.likely_vmids
    rows: list[VmRow] = []
    for row in cluster.vms.values():
        if row.lock in MAKING and not row.own_name:
            suspect = numbers is None or row.vmid in numbers
        else:
            suspect = row.name == desired.name and is_of_others(
                desired.tenant_tag, row.tags, desired.tenant_prefix
            )
        if suspect:
            rows.append(row)
    return rows


def read_found(context: RunContext, row: VmRow, cluster: ClusterState) -> Actual | None:
    """Return the VM as it is, complete and past the tenant guard; None where it is gone.

    Raises NodeUnhealthy where its node is down.
    """
    desired = context.desired
    label = f"VM {row.vmid} on node {row.node}"
    if row.own_name:
        label = f"VM '{row.name}' ({row.vmid}) on node {row.node}"
    node = cluster.nodes.get(row.node)
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
        actual: Actual | None = read_wherever(
            context.client, row.vmid, row.node, status=listed, pool=row.pool
        )
        if actual is not None and _is_to_be_awaited(actual, desired):
            timeout = context.settings.task_timeout
            actual = await_made(context.client.direct(), actual, timeout)
            listed = None
    except UnknownVm:
        return None
    except NotFound:
        raise
    except FleetError as error:
        raise error.on(attempted=f"{label} could not be read") from error
    if actual is None:
        return None
    if listed:
        actual = replace(actual, uptime=row.uptime, listed=not row.fresh)
    if desired.vmid is None and actual.name != desired.name:
        return actual  # another VM: the caller searches again
    guard(desired, actual)
    return actual


def guard(desired: Desired, actual: Actual) -> None:
    """Raise Conflict where the VM, as it is now, is not one that the task's tenant may touch."""
    tags = set(parse_tags(actual.target.get("tags")))
    marker = split_notes(actual.target.get("description"))[1]
    building = marker.building and marker.tenant == desired.tenant_tag
    if building:  # an unfinished clone of ours still has its source's tags
        tags = {tag for tag in tags if tag.lower() not in marker.inherited_tags}
    guard_tenant(
        actual.label,
        tags,
        desired.tenant_tag,
        desired.tenant_prefix,
        adopt=desired.adopt or building,
        number=actual.vmid,
    )


def _search(
    client: Client, desired: Desired, cluster: ClusterState
) -> tuple[VmRow | None, ClusterState]:
    """Return the row of the VM by number or name.

    Of several that a name can mean, ours has the marker.
    """
    try:
        return locate(
            client,
            cluster,
            vmid=desired.vmid,
            name=desired.name,
            tenant_tag=desired.tenant_tag,
            prefix=desired.tenant_prefix,
        )
    except Conflict:
        if desired.tenant_tag is None:
            raise
        cluster = with_names(client, cluster)
        rows = namesakes(cluster, desired.name, desired.tenant_tag, desired.tenant_prefix)
        own = [row for row in rows if _is_unfinished_own(client, row, desired)]
        if len(own) != 1:
            raise
        return own[0], cluster


def _is_unfinished_own(client: Client, row: VmRow, desired: Desired) -> bool:
    try:
        config = client.get("nodes", row.node, "qemu", row.vmid, "config")
    except FleetError:
        return False
    return split_notes(config.get("description"))[1].building and is_meant(config, desired)


def _is_to_be_awaited(actual: Actual, desired: Desired) -> bool:
    """Return whether a VM is being made, for the tenant of the task as far as that can be read."""
    marker = split_notes(actual.target.get("description"))[1]
    if marker.building and marker.tenant != desired.tenant_tag and desired.tenant_tag is not None:
        return False
    return is_being_made(actual)
