# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which VM a task means: found in the cluster, read, complete, and seen by the tenant guard."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..._cluster.locate import locate
from ..._cluster.lookup import guard_tenant, namesakes
from ..._cluster.restoring import (
    await_restored,
    is_bare,
    restore_began,
    restore_failed,
    seems_bare,
    suspects,
)
from ..._cluster.state import ClusterState, VmRow, with_names, without_vm
from ..._cluster.tenant import is_of_others, tenants_of
from ..._core.errors import (
    BeingRestored,
    Conflict,
    FleetError,
    NodeUnhealthy,
    NotFound,
    TaskTimeout,
    UnknownVm,
)
from ..context import GuestContext
from ..marker import split_notes
from ..model import Actual, Guest
from ..unread import refuse_unread_vm
from .creation import (
    CREATION_LOCKS,
    await_creation,
    await_name,
    is_being_created,
    is_desired,
    owner_tags,
)
from .read import read_wherever

if TYPE_CHECKING:
    from ..._api.client import Client

# How often a VM is searched again if it is gone, or its number was reused, when it is read.
_LOOKS = 3


def find(context: GuestContext, cluster: ClusterState) -> tuple[Actual | None, ClusterState]:
    """Return the present state of the task's VM, or None, and the cluster state that was searched.

    If a VM is being created or restored, this waits for it. If None is returned for a name, the
    cluster state has the names of all VMs from their nodes. Raises FleetError if the task may not
    touch the VM.
    """
    desired = context.guest
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
        cluster = replace(cluster, asked_nodes=frozenset())
        cluster = with_names(context.client.direct(), cluster)
    if desired.vmid is not None:
        return None, cluster
    return _find_unclear(context, cluster)


def _find_unclear(
    context: GuestContext, cluster: ClusterState
) -> tuple[Actual | None, ClusterState]:
    """Return the same for a name that the listing does not have: the VMs whose name it does not
    show are read.
    """
    desired = context.guest
    # a VM that is being created changes from look to look
    context = context.direct()
    for row in unclear(desired, cluster):
        config = _await_name(context, row)
        if config is None:
            cluster = without_vm(cluster, row.vmid)
            continue
        named = replace(row, name=desired.kind.name_in(config), fresh=False)
        if not is_desired(config, desired):
            cluster = replace(cluster, vms={**cluster.vms, row.vmid: named})
            continue
        actual = read_found(context, named, cluster)
        if actual is not None:
            return actual, cluster
        cluster = without_vm(cluster, row.vmid)
    refuse_unread_vm(desired, cluster)
    return None, cluster


def _await_name(context: GuestContext, row: VmRow) -> Mapping[str, Any] | None:
    """Return the configuration of a VM that is being created once it has a name; None if it is
    gone.

    A VM that the task could have created is awaited to the end; any other for a short time, and
    returned without a name if that is not enough.
    """
    client = context.client
    if seems_bare(row):
        return _await_restored(context, row)
    numbers = context.guest.likely_vmids
    is_likely = numbers is None or row.vmid in numbers
    if row.own_name or is_likely:
        timeout = context.settings.task_timeout
        return await_name(client, context.guest.kind, row.vmid, row.node, timeout)
    try:
        seconds = context.cluster_view.seconds_for_names()
        return await_name(client, context.guest.kind, row.vmid, row.node, seconds)
    except TaskTimeout:
        return {}


def _await_restored(context: GuestContext, row: VmRow) -> Mapping[str, Any] | None:
    """Return the configuration of a VM that may be the one of the name once no restore writes it.

    None if it is gone. Raises BeingRestored: any name can come back with the restore. Raises
    RestoreFailed for a bare VM with a VMID that follows from the name: it is not there, and a new
    one would be its duplicate when the restore is repeated.
    """
    desired = context.guest
    attempted = f"{desired.label} could not be found"
    config = await_restored(
        context.client, row.path, seconds=_patience(context), attempted=attempted
    )
    likely = desired.likely_vmids or ()
    if row.vmid in likely and is_bare(config):
        raise restore_failed(attempted, row.vmid, row.node)
    return config


def _patience(context: GuestContext) -> float:
    """Return how many seconds a restore is waited for: one takes as long as its disks are large."""
    if context.check_mode:
        return 0.0
    return context.cluster_view.seconds_for_names()


def unclear(desired: Guest, cluster: ClusterState) -> list[VmRow]:
    """Return the VMs whose listing does not say whether they have the name of the task (pure).

    These are VMs without a name that are being created with a number which this task would choose,
    and VMs of the name with another tenant's tag: an unfinished clone has the tags of its source. A
    VM that must be absent may have any number: the task that created it may have chosen it. A VM
    that a restore writes can have any VMID: it may have been imported, or got its VMID from a task.
    """
    numbers = desired.likely_vmids
    rows = suspects(cluster, desired.tenant_tag, desired.tenant_prefix)
    restored = {row.vmid for row in rows}
    for row in cluster.vms.values():
        if row.vmid in restored:
            continue
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
    return row.lock in CREATION_LOCKS and not row.own_name


def still_nameless(desired: Guest, cluster: ClusterState) -> tuple[str, ...]:
    """Return a warning for each VM that may be the VM to remove (pure)."""
    if desired.vmid is not None:
        return ()
    warnings: list[str] = []
    for row in filter(is_nameless, cluster.vms.values()):
        label = f"{desired.kind.noun} {row.vmid} on node {row.node}"
        state = "is still being created and has no name yet"
        warnings.append(
            f"{label} {state}: it may become {desired.label}. Run this again when it is complete"
        )
    return tuple(warnings)


def read_found(context: GuestContext, row: VmRow, cluster: ClusterState) -> Actual | None:
    """Return the present VM, complete and past the tenant guard; None if it is gone.

    Raises NodeUnhealthy if its node is down.
    """
    desired = context.guest
    label = f"{desired.kind.noun} {row.vmid} on node {row.node}"
    if row.own_name:
        label = f"{desired.kind.noun} '{row.name}' ({row.vmid}) on node {row.node}"
    node = cluster.nodes.get(row.node)
    if node is not None and not node.online:
        raise NodeUnhealthy(
            attempted=f"{label} could not be read",
            answer="the node is offline",
            next_step="Bring the node back, or wait until HA has moved the VM",
            reason="node offline",
        )
    try:
        actual = _read_complete(context, row)
    except UnknownVm:
        return None
    except (NotFound, BeingRestored):
        raise
    except FleetError as error:
        raise error.on(attempted=f"{label} could not be read") from error
    if actual is not None and not _is_another(actual, desired):  # else the caller searches again
        guard(desired, actual)
    return actual


def _read_complete(context: GuestContext, row: VmRow) -> Actual | None:
    """Return the present VM once nothing creates or restores it; None if it is gone."""
    desired = context.guest
    # The listing's power state is old; it is enough only if no decision depends on it.
    is_clear = row.status in ("running", "stopped")
    will_do = desired.state == "present" and is_clear
    listed = row.status if row.fresh or will_do else None
    actual: Actual | None = read_wherever(
        context.client, desired.kind, row.vmid, row.node, status=listed, pool=row.pool
    )
    if actual is not None and _is_to_be_awaited(actual, desired):
        timeout = context.settings.task_timeout
        actual = await_creation(context.client.direct(), actual, timeout)
        listed = None
    if actual is not None and is_bare(actual.live):
        actual = _read_restored(context, actual)
        listed = None
    if actual is not None and listed:
        return replace(actual, uptime=row.uptime, listed=not row.fresh)
    return actual


def _read_restored(context: GuestContext, actual: Actual) -> Actual | None:
    """Return the present VM once no restore writes it; None if it is gone. Raises BeingRestored."""
    attempted = f"{actual.kind.noun} {actual.vmid} on node {actual.node} was not changed"
    config = await_restored(
        context.client, actual.path, seconds=_patience(context), attempted=attempted
    )
    if config is None:
        return None
    client = context.client.direct()
    return read_wherever(client, actual.kind, actual.vmid, actual.node, pool=actual.pool)


def _is_another(actual: Actual, desired: Guest) -> bool:
    """Return whether a VM that was found by its name is not the VM of the task.

    It has another name than the listing says, or is being created for another tenant.
    """
    if desired.vmid is not None:
        return False
    if actual.name != desired.name:
        return True
    prefix = desired.tenant_prefix
    tags = owner_tags(actual.target, prefix)
    return actual.marker.building and is_of_others(desired.tenant_tag, tags, prefix)


def _with_owner(
    cluster: ClusterState, row: VmRow, config: Mapping[str, Any], desired: Guest
) -> ClusterState:
    """Return the cluster state with the tenant for which a VM is being made (pure)."""
    owned = replace(row, tags=owner_tags(config, desired.tenant_prefix))
    return replace(cluster, vms={**cluster.vms, row.vmid: owned})


def guard(desired: Guest, actual: Actual, known: Actual | None = None) -> None:
    """Raise Conflict if the present VM belongs to another tenant.

    `known` is the VM as the plan has it. Raises BeingRestored if a restore has started since then.
    """
    if known is not None and is_bare(actual.live) and not is_bare(known.live):
        raise restore_began(f"{known.label} was not changed", actual.vmid, actual.node)
    if desired.only_unowned:
        require_unowned(actual, owner_tags(actual.target, desired.tenant_prefix), desired)
    guard_tenant(
        actual.label,
        owner_tags(actual.target, desired.tenant_prefix),
        desired.tenant_tag,
        desired.tenant_prefix,
        adopt=desired.adopt,
        number=actual.vmid,
    )


def require_unowned(actual: Actual, tags: Iterable[str], desired: Guest) -> None:
    """Raise Conflict for a VM of a tenant: the task has none, and one is required for such a VM."""
    if not tenants_of(tags, desired.tenant_prefix):
        return
    raise Conflict(
        attempted=f"{actual.label} was refused",
        answer="it has the tag of a tenant, the task has no tenant, and require_tenant is set",
        next_step="Set tenant, or choose another name or vmid",
        reason="require_tenant",
    )


def _search(
    client: Client, desired: Guest, cluster: ClusterState
) -> tuple[VmRow | None, ClusterState]:
    """Return the row of the VM by number or name.

    If several VMs have the name, the unfinished ones are read: their marker names the tenant.
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
    client: Client, cluster: ClusterState, desired: Guest
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
    """Return the configuration of a VM, an empty one if it cannot be read."""
    try:
        config: Mapping[str, Any] = client.get(*row.path, "config")
    except FleetError:
        return {}
    return config


def _is_to_be_awaited(actual: Actual, desired: Guest) -> bool:
    """Return whether a VM is being made, for the tenant of the task as far as that can be read."""
    marker = actual.marker
    is_own = desired.tenant_tag in (None, marker.tenant)
    if marker.building and not is_own:
        return False
    return is_being_created(actual)
