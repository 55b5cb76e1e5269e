# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""VMs that a run left unfinished: they have no tenant tag yet, so only their marker names the
owner.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.find.restoring import find_restored, suspects
from ..._foundation.cluster.state import CREATION_LOCKS, ClusterState, VmRow, pool_of, with_names
from ..._foundation.cluster.tenant import owns
from ..._foundation.cluster.view import PATIENCE
from ..._foundation.cluster.vmids import VmidAllocator, read_vmid_ranges
from ..._foundation.core.errors import FleetError, TaskTimeout
from ..guest.live.creation import await_name, with_hidden_creations
from ..guest.registry import list_of
from ..kinds.kind import Kind
from ..kinds.marker import owner_tags, split_notes
from ..kinds.model import LIKELY
from .items import PruneScope

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


def find_creations_in_progress(
    client: Client,
    cluster: ClusterState,
    scope: PruneScope,
    listed: set[int],
    params: Mapping[str, Any],
) -> tuple[list[VmRow], tuple[str, ...]]:
    """Return the unfinished guests of the scope that are not in the list, and warnings. Warnings
    also name VMs that a restore is writing. `cluster` has the guests of one kind.

    The configuration of a VM is read if the VM may be in the scope. Either PVE is still creating
    it, and it has no name, tags or pool yet; or it does not have the tag of this tenant, but is in
    the pool of the scope or, without a pool, has a VMID that the tenant's VM of its name could get.
    """
    kind = list_of(next(iter(cluster.types))).kind
    if scope.tenant_tag is not None:
        cluster = with_names(client, cluster)
    cluster = with_hidden_creations(client, kind, cluster)
    restored = find_restored(client, suspects(cluster, scope.tenant_tag, scope.prefix, listed))
    until = client.clock.monotonic() + PATIENCE
    rows: list[VmRow] = []
    notes = list(restored.values())
    skipped = {*listed, *restored}
    for row in sorted(cluster.vms.values(), key=lambda one: one.vmid):
        if row.vmid in skipped or row.template:
            continue
        if not _may_be_in_progress(row, scope, params):
            continue
        remaining = max(0.0, until - client.clock.monotonic())
        try:
            if _is_in(client, kind, row, scope, remaining):
                rows.append(row)
        except TaskTimeout:
            notes.append(
                f"{kind.noun} {row.vmid} on node {row.node} is still being made: whether it has "
                f"the {scope.label} is not known yet. Run this again when it is complete"
            )
        except FleetError as error:
            notes.append(
                f"{kind.noun} {row.vmid} on node {row.node} could not be read: {error.message}"
            )
    return rows, tuple(notes)


def _is_in(client: Client, kind: Kind, row: VmRow, scope: PruneScope, seconds: float) -> bool:
    """Wait until the owner of an unfinished VM can be read, and return whether it is in the scope.

    PVE puts a VM into its pool when it is complete (qemu-server: clone_vm, create_vm). Raises
    TaskTimeout after `seconds`.
    """
    by_pool = scope.pool is not None
    config = await_name(client, kind, row.vmid, row.node, seconds, complete=by_pool) or {}
    tags = owner_tags(config, scope.prefix)
    if not owns(scope.tenant_tag, tags, scope.prefix):
        return False
    return not by_pool or pool_of(client, row.vmid) == scope.pool


def is_creation_in(scope: PruneScope, config: Mapping[str, Any], pool: str | None) -> bool:
    """Return whether an unfinished VM is in the scope, by its marker and its pool (pure)."""
    _notes, marker = split_notes(config.get("description"))
    is_of_tenant = marker.tenant == scope.tenant_tag
    is_of_pool = scope.pool in (None, pool)
    return marker.building and is_of_tenant and is_of_pool


def within(row: VmRow, scope: PruneScope) -> bool:
    """Return whether a VM has only the tenant tag of a scope, and is in its pool (pure)."""
    if not owns(scope.tenant_tag, row.tags, scope.prefix):
        return False
    return scope.pool in (None, row.pool)


def _may_be_in_progress(row: VmRow, scope: PruneScope, params: Mapping[str, Any]) -> bool:
    """Return whether a VM that seems outside the scope may be an unfinished VM of it (pure)."""
    if row.lock in CREATION_LOCKS:
        return not within(row, scope)
    if scope.tenant_tag is None:
        return False
    if owns(scope.tenant_tag, row.tags, scope.prefix):
        return False
    if scope.pool is not None:
        return row.pool == scope.pool
    vmid_ranges = read_vmid_ranges(params.get("vmid_range"), params.get("vmid_bands"))
    both = (vmid_ranges.automatic, vmid_ranges.template)
    if params.get("vmid_choice") == "lowest":
        return any(first <= row.vmid <= last for first, last in both)
    allocators = [VmidAllocator(one, scope.tenant_tag, row.name) for one in both]
    return any(row.vmid in allocator.first(LIKELY) for allocator in allocators)
