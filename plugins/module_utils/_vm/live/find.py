# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which VM a task means: found in the cluster, read, complete, and seen by the tenant guard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..._cluster.locate import locate
from ..._cluster.lookup import guard_tenant, namesakes
from ..._cluster.state import ClusterState, VmRow, with_names, without_vm
from ..._cluster.tenant import is_of_others
from ..._core.errors import Conflict, FleetError, NodeUnhealthy, NotFound, TaskTimeout, UnknownVm
from ..._guest.marker import split_notes
from ..context import RunContext
from ..model import Actual, Desired
from .making import MAKING, await_made, await_name, is_being_made, is_meant, owner_tags
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
            continue
        if not _is_another(actual, desired):
            return actual, cluster
        if actual.name == desired.name:
            cluster = _with_owner(cluster, row, actual.target, desired)
            continue
        # the listing has the name of the VM that had this number before
        cluster = replace(cluster, asked=frozenset())
        cluster = with_names(context.client.direct(), cluster)
    if desired.vmid is not None:
        return None, cluster
    # what is being made changes from look to look
    context = replace(context, client=context.client.direct())
    for row in unclear(desired, cluster):
        config = _await_name(context, row)
        if config is None:
            cluster = without_vm(cluster, row.vmid)
            continue
        named = replace(row, name=str(config.get("name") or ""), fresh=False)
        if not is_meant(config, desired):
            cluster = replace(cluster, vms={**cluster.vms, row.vmid: named})
            continue
        actual = read_found(context, named, cluster)
        if actual is not None:
            return actual, cluster
        cluster = without_vm(cluster, row.vmid)
    from ..desired.unread import refuse_unread_vm  # not loaded for an existing VM

    refuse_unread_vm(desired, cluster)
    return None, cluster


def _await_name(context: RunContext, row: VmRow) -> Mapping[str, Any] | None:
    """Return the configuration of a VM that is being made once it has a name; None if it is gone.

    A VM that the task could have made is waited for to the end; any other for a short time, and
    without a name where that is not enough.
    """
    client = context.client
    numbers = context.desired.likely_vmids
    is_likely = numbers is None or row.vmid in numbers
    if row.own_name or is_likely:
        timeout = context.settings.task_timeout
        return await_name(client, row.vmid, row.node, timeout)
    try:
        seconds = context.cluster_view.seconds_for_names()
        return await_name(client, row.vmid, row.node, seconds)
    except TaskTimeout:
        return {}


def unclear(desired: Desired, cluster: ClusterState) -> list[VmRow]:
    """Return the VMs whose listing does not say whether they are the one that is meant (pure).

    Those are VMs without a name that are being made with a number which this task would choose, and
    VMs of the name with another tenant's tag: an unfinished clone has the tags of its source. A VM
    that must be absent may have any number: the task that made it may have chosen it.
    """
    numbers = desired.likely_vmids
    rows: list[VmRow] = []
    for row in cluster.vms.values():
        if is_nameless(row):
            is_likely = numbers is None or row.vmid in numbers
            if is_likely or desired.state == "absent":
                rows.append(row)
            continue
        if row.name != desired.name:
            continue
        if is_of_others(desired.tenant_tag, row.tags, desired.tenant_prefix):
            rows.append(row)
    return rows


def is_nameless(row: VmRow) -> bool:
    """Return whether PVE is making the VM and it has no name yet (pure)."""
    return row.lock in MAKING and not row.own_name


def still_nameless(desired: Desired, cluster: ClusterState) -> tuple[str, ...]:
    """Return a warning for each VM that may be the one which must be absent (pure)."""
    if desired.vmid is not None:
        return ()
    warnings: list[str] = []
    for row in filter(is_nameless, cluster.vms.values()):
        label = f"VM {row.vmid} on node {row.node}"
        state = "is still being created and has no name yet"
        warnings.append(
            f"{label} {state}: it may become {desired.label}. Run this again when it is complete"
        )
    return tuple(warnings)


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
    is_clear = row.status in ("running", "stopped")
    will_do = desired.state == "present" and is_clear
    listed = None
    if row.fresh or will_do:
        listed = row.status
    try:
        actual: Actual | None = read_wherever(
            context.client,
            row.vmid,
            row.node,
            status=listed,
            pool=row.pool,
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
    if not _is_another(actual, desired):  # else the caller searches again
        guard(desired, actual)
    return actual


def _is_another(actual: Actual, desired: Desired) -> bool:
    """Return whether a VM that was found by its name is not the one that is meant.

    It has another name than the listing says, or is being made for another tenant.
    """
    if desired.vmid is not None:
        return False
    if actual.name != desired.name:
        return True
    prefix = desired.tenant_prefix
    tags = owner_tags(actual.target, prefix)
    return actual.marker.building and is_of_others(desired.tenant_tag, tags, prefix)


def _with_owner(
    cluster: ClusterState, row: VmRow, config: Mapping[str, Any], desired: Desired
) -> ClusterState:
    """Return the cluster state with the tenant for which a VM is being made (pure)."""
    owned = replace(row, tags=owner_tags(config, desired.tenant_prefix))
    return replace(cluster, vms={**cluster.vms, row.vmid: owned})


def guard(desired: Desired, actual: Actual) -> None:
    """Raise Conflict where the VM, as it is now, is not one that the task's tenant may touch."""
    guard_tenant(
        actual.label,
        owner_tags(actual.target, desired.tenant_prefix),
        desired.tenant_tag,
        desired.tenant_prefix,
        adopt=desired.adopt,
        number=actual.vmid,
    )


def _search(
    client: Client, desired: Desired, cluster: ClusterState
) -> tuple[VmRow | None, ClusterState]:
    """Return the row of the VM by number or name.

    Where a name can mean several, the unfinished ones are read: their marker names the tenant.
    """
    try:
        return _locate(client, cluster, desired)
    except Conflict:
        if desired.tenant_tag is None:
            raise
    cluster = with_names(client, cluster)
    for row in namesakes(cluster, desired.name, desired.tenant_tag, desired.tenant_prefix):
        config = _read_config(client, row)
        if split_notes(config.get("description"))[1].building:
            cluster = _with_owner(cluster, row, config, desired)
    return _locate(client, cluster, desired)


def _locate(
    client: Client, cluster: ClusterState, desired: Desired
) -> tuple[VmRow | None, ClusterState]:
    return locate(
        client,
        cluster,
        vmid=desired.vmid,
        name=desired.name,
        tenant_tag=desired.tenant_tag,
        prefix=desired.tenant_prefix,
    )


def _read_config(client: Client, row: VmRow) -> Mapping[str, Any]:
    """Return the configuration of a VM, an empty one where it cannot be read."""
    try:
        config: Mapping[str, Any] = client.get("nodes", row.node, "qemu", row.vmid, "config")
    except FleetError:
        return {}
    return config


def _is_to_be_awaited(actual: Actual, desired: Desired) -> bool:
    """Return whether a VM is being made, for the tenant of the task as far as that can be read."""
    marker = actual.marker
    is_own = desired.tenant_tag in (None, marker.tenant)
    if marker.building and not is_own:
        return False
    return is_being_made(actual)
