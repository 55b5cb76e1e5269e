# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds the VM of a task: searches the cluster, reads it, awaits it, and checks its tenant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...._foundation.api.access.listed import Way, require_listed
from ...._foundation.cluster.find.lookup import (
    find_vm,
    locate,
    namesakes,
    require_own_guest,
    require_unowned,
)
from ...._foundation.cluster.find.restoring import (
    await_restored,
    is_bare,
    require_no_restore,
    require_restore_succeeded,
    seems_bare,
    suspects,
)
from ...._foundation.cluster.find.unread import require_readable
from ...._foundation.cluster.find.visible import is_in_use, sees_tasks
from ...._foundation.cluster.state import (
    CREATION_LOCKS,
    ClusterState,
    VmRow,
    read_config,
    with_names,
    with_vm,
    without_vm,
)
from ...._foundation.cluster.tenant import is_of_others, tenants_of
from ...._foundation.core.errors import (
    BeingRestored,
    Conflict,
    FleetError,
    NodeUnhealthy,
    NotFound,
    PermissionDenied,
    TaskTimeout,
    UnknownVm,
)
from ...kinds.marker import owner_tags, split_notes
from ...kinds.model import Actual, Guest
from ..context import RunContext
from .creation import (
    await_creation,
    await_name,
    is_being_created,
    is_desired,
    with_hidden_creations,
)
from .read import read_wherever

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

# How often a VM is searched if it is gone, or its VMID was reused, when it is read.
_ATTEMPTS = 3


def find(context: RunContext[Any], cluster: ClusterState) -> tuple[Actual | None, ClusterState]:
    """Return the present state of the task's VM, or None, and the cluster state that was searched.

    Waits for a VM that is being created or restored. If there is no VM of the name, the returned
    cluster state contains the names of all VMs from their nodes. Raises FleetError if the task may
    not touch the VM.
    """
    desired = context.guest
    for _attempt in range(_ATTEMPTS):
        row, cluster = _search(context.client, desired, cluster)
        if row is None:
            break
        actual = _read_found(context, row, cluster)
        if actual is not None and not _is_another(actual, desired):
            require_own(desired, actual)
            return actual, cluster
        cluster = _corrected(context, row, actual, cluster)
    if desired.vmid is not None:
        return None, cluster
    return _find_unclear(context, cluster)


def require_listed_guest(client: Client, guest: Guest, pool: str | None) -> None:
    """Raise PermissionDenied if the guest is to be removed by its name, and is perhaps only hidden
    from the caller; one request. `pool` is the pool of its tenant, by default the one of its name.

    The listing has guests with VM.Audit only, which a pool can give (pve-manager: API2/Cluster.pm,
    resources). PVE answers to everybody whether a VMID is in use.
    """
    if guest.state != "absent" or guest.vmid is not None:
        return
    ways: list[Way] = [(("/vms/", "VM.Audit"),)]
    own = pool or guest.tenant
    if own:
        ways.append(((f"/pool/{own}", "VM.Audit"),))
    require_listed(client.privileges(), guest.label, *ways)


def _corrected(
    context: RunContext[Any], row: VmRow, actual: Actual | None, cluster: ClusterState
) -> ClusterState:
    """Return the cluster state without the error of this row, which is not the task's VM."""
    if actual is not None and actual.name == context.guest.name:
        return _with_owner(cluster, row, actual.target, context.guest)
    if actual is None:
        return without_vm(cluster, row.vmid)
    # the listing shows the name of the VM that had this VMID before
    cluster = replace(cluster, queried_nodes=frozenset())
    return with_names(context.client.direct(), cluster)


def _find_unclear(
    context: RunContext[Any], cluster: ClusterState
) -> tuple[Actual | None, ClusterState]:
    """Return the same for a name that the listing lacks: reads the VMs without a clear name."""
    desired = context.guest
    if desired.state == "absent":
        vmid = desired.vmids.free(cluster.taken)
        cluster = with_hidden_creations(context.client, desired.kind, cluster, vmid)
    # a VM that is being created changes between two readings
    context = context.direct()
    for row in unclear(desired, cluster):
        actual, named = _read_unclear(context, row, cluster)
        if actual is not None:
            return actual, cluster
        cluster = without_vm(cluster, row.vmid) if named is None else with_vm(cluster, named)
    require_readable_vm(desired, cluster)
    return None, cluster


def _read_unclear(
    context: RunContext[Any], row: VmRow, cluster: ClusterState
) -> tuple[Actual | None, VmRow | None]:
    """Return the VM of a row if it is the task's VM, otherwise its row with its name; two None if
    it is gone.
    """
    desired = context.guest
    try:
        config = _await_name(context, row)
    except PermissionDenied:  # a guest that this login failed to create
        config = None
    if config is None:
        return None, None
    named = replace(row, name=desired.kind.name_in(config), fresh=False)
    if not is_desired(config, desired):
        return None, named
    actual = _read_found(context, named, cluster)
    if actual is not None:
        require_own(desired, actual)
    return actual, None


def _await_name(context: RunContext[Any], row: VmRow) -> Mapping[str, Any] | None:
    """Return the configuration of a VM that is being created once it has a name; None if it is
    gone.

    If the task could have created the VM, this waits for `task_timeout`. For any other VM it waits
    a short time, then returns an empty configuration.

    If a restore may be writing the VM, this waits for the restore. Raises BeingRestored if the
    restore takes longer, because the restored VM can have any name. Raises RestoreFailed for a bare
    VM with a VMID that follows from the name: a new VM would be its duplicate once the restore is
    repeated.
    """
    client, desired = context.client, context.guest
    patience = _patience(context)
    attempted = f"{desired.label} could not be found"
    vmids = desired.likely_vmids
    is_likely = vmids is None or row.vmid in vmids
    if seems_bare(row):
        config = await_restored(client, row.path, seconds=patience, attempted=attempted)
        if is_likely and vmids:
            require_restore_succeeded(config, attempted, row.vmid, row.node)
        may_be_created = is_nameless(row) and (is_likely or desired.state == "absent")
        if not may_be_created:
            return config
    if row.own_name or is_likely:
        timeout = context.settings.task_timeout
        return await_name(client, context.guest.kind, row.vmid, row.node, timeout)
    try:
        seconds = context.cluster_view.seconds_for_names()
        return await_name(client, context.guest.kind, row.vmid, row.node, seconds)
    except TaskTimeout:
        return {}


def _patience(context: RunContext[Any]) -> float:
    """Return the seconds to wait for a restore, which can take long if the disks are large."""
    return 0.0 if context.check_mode else context.cluster_view.seconds_for_names()


def unclear(desired: Guest, cluster: ClusterState) -> list[VmRow]:
    """Return the VMs of which the listing does not show whether they are the task's VM (pure).

    These are VMs without a name that are being created with a VMID which this task would choose,
    and VMs of the name with another tenant's tag: an unfinished clone has the tags of its source. A
    VM that must be absent may have any VMID: the task that created it may have set it. A VM that a
    restore writes can have any VMID: it may have been imported, or a task may have set its VMID.
    """
    vmids = desired.likely_vmids
    rows = suspects(cluster, desired.tenant_tag, desired.tenant_prefix)
    restored = {row.vmid for row in rows}
    for row in cluster.vms.values():
        if row.vmid in restored:
            continue
        if is_nameless(row):
            is_likely = vmids is None or row.vmid in vmids
            if is_likely or desired.state == "absent":
                rows.append(row)
            continue
        if row.name != desired.name:
            continue
        if is_of_others(desired.tenant_tag, row.tags, desired.tenant_prefix):
            rows.append(row)
    return rows


def is_nameless(row: VmRow) -> bool:
    """Return whether PVE is creating the VM and it has no name yet (pure)."""
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


def hidden_creation(context: RunContext[Any], cluster: ClusterState) -> tuple[str, ...]:
    """Return a warning if another login may be creating the guest to remove; one request, and one
    more if a hidden guest has the VMID that follows from its name.
    """
    client, desired = context.client, context.guest
    if desired.vmid is not None or not desired.name or desired.tenant_tag is None:
        return ()
    vmid = desired.vmids.free(cluster.taken)
    if (
        not desired.vmids.by_name
        or not is_in_use(client, vmid)
        or sees_tasks(client, cluster.nodes)
    ):
        return ()
    text = (
        f"The number {vmid}, which follows from the name of {desired.label}, has a guest that this"
        " user or token may not see. If another login is creating it, run this again when it is"
        " complete"
    )
    return (text,)


def _read_found(context: RunContext[Any], row: VmRow, cluster: ClusterState) -> Actual | None:
    """Return the present VM, complete, or None. Raises NodeUnhealthy if its node is down."""
    desired = context.guest
    label = f"{desired.kind.noun} {row.vmid} on node {row.node}"
    if row.own_name:
        label = f"{desired.kind.noun} '{row.name}' ({row.vmid}) on node {row.node}"
    _require_online(cluster, row.node, f"{label} could not be read")
    try:
        return _read_complete(context, row)
    except UnknownVm:
        return None
    except (NotFound, BeingRestored):
        raise
    except FleetError as error:
        raise error.on(attempted=f"{label} could not be read") from error


def _require_online(cluster: ClusterState, node: str, attempted: str) -> None:
    """Raise NodeUnhealthy if the node is down (pure)."""
    row = cluster.nodes.get(node)
    if row is None or row.online:
        return
    raise NodeUnhealthy(
        f"{attempted}: the node is offline",
        "Bring the node back, or wait until HA has moved the VM",
        "node offline",
    )


def _read_complete(context: RunContext[Any], row: VmRow) -> Actual | None:
    """Return the VM once nothing creates it, or None if it is gone. Raises BeingRestored."""
    desired, patience = context.guest, _patience(context)
    # The power state in the listing is old: enough only if no decision depends on it.
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
        attempted = f"{actual.kind.noun} {actual.vmid} on node {actual.node} was not changed"
        client = context.client.direct()
        config = await_restored(client, actual.path, seconds=patience, attempted=attempted)
        if config is None:
            return None
        actual = read_wherever(client, actual.kind, actual.vmid, actual.node, pool=actual.pool)
        listed = None
    if actual is not None and listed:
        return replace(actual, uptime=row.uptime, listed=not row.fresh)
    return actual


def _is_another(actual: Actual, desired: Guest) -> bool:
    """Return whether a VM found by its name has another name, or is created for another tenant."""
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
    """Return the cluster state with the tenant for which a VM is being created (pure)."""
    owned = replace(row, tags=owner_tags(config, desired.tenant_prefix))
    return with_vm(cluster, owned)


def require_own(desired: Guest, actual: Actual, known: Actual | None = None) -> None:
    """Raise Conflict if the present VM belongs to another tenant.

    `known` is the VM in the plan. Raises BeingRestored if a restore has started since then.
    """
    tags = owner_tags(actual.target, desired.tenant_prefix)
    if known is not None and not is_bare(known.live):
        require_no_restore(actual.live, f"{known.label} was not changed", actual.vmid, actual.node)
    if desired.only_unowned:
        require_unowned(actual.label, tags, desired.tenant_prefix)
    require_own_guest(
        actual.label,
        tags,
        desired.tenant_tag,
        desired.tenant_prefix,
        adopt=desired.adopt,
        unnamed=actual.unnamed,
    )


def _search(
    client: Client, desired: Guest, cluster: ClusterState
) -> tuple[VmRow | None, ClusterState]:
    """Return the row of the VM by VMID or name.

    If several VMs have the name, the unfinished ones are read: their marker names the tenant.
    """
    try:
        return _locate(client, cluster, desired)
    except Conflict:
        if desired.tenant_tag is None:
            raise
    cluster = with_names(client, cluster)
    for row in namesakes(cluster, desired.name, desired.tenant_tag, desired.tenant_prefix):
        try:
            config = read_config(client, row.path) or {}
        except FleetError:
            continue  # such as a VM on a node that is down
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


def find_row(cluster: ClusterState, desired: Guest) -> VmRow | None:
    """Return the row of the desired guest. Raises Conflict if its name is ambiguous (pure)."""
    return find_vm(
        cluster,
        vmid=desired.vmid,
        name=desired.name,
        tenant_tag=desired.tenant_tag,
        prefix=desired.tenant_prefix,
    )


def _is_to_be_awaited(actual: Actual, desired: Guest) -> bool:
    """Return whether a VM is being created, for the tenant of the task if its marker names one."""
    marker = actual.marker
    is_own = desired.tenant_tag in (None, marker.tenant)
    if marker.building and not is_own:
        return False
    return is_being_created(actual)


def require_readable_vm(desired: Guest, cluster: ClusterState) -> None:
    """Raise NodeUnhealthy if the VM may exist but its name cannot be read.

    A VM without a tenant tag can be the task's VM only if the task may adopt it, or if a run of the
    tenant may have left it unfinished.
    """
    tag = desired.tenant_tag
    prefix = desired.tenant_prefix

    def may_be(row: VmRow) -> bool:
        if is_of_others(tag, row.tags, prefix):
            return False
        if tag is None or tenants_of(row.tags, prefix):
            return True
        return desired.adopt or row.vmid in (desired.likely_vmids or ())

    require_readable(cluster, desired.label, may_be)
