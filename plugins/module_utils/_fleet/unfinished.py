# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""VMs that a run left unfinished: they have no tenant tag yet, so only their marker names the
owner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._cluster.state import ClusterState, VmRow, pool_of, with_names
from .._cluster.tenant import owns
from .._cluster.view import PATIENCE
from .._cluster.vmids import Band, Numbers, read_bands
from .._core.errors import FleetError, TaskTimeout
from .._guest.marker import split_notes
from .._vm.live.making import MAKING, await_name, owner_tags
from .._vm.model import LIKELY
from .items import Scope

if TYPE_CHECKING:
    from .._api.client import Client


def find_unfinished(
    client: Client,
    cluster: ClusterState,
    scope: Scope,
    listed: set[int],
    params: Mapping[str, Any],
) -> tuple[list[VmRow], tuple[str, ...]]:
    """Return the unfinished VMs in the scope that no item of the list means, and warnings.

    Their configuration is read where they may be in it: PVE is making the VM, so that its name,
    tags or pool are not there yet, or it has no tenant tag and the number that this tenant's VM of
    its name gets.
    """
    if scope.tenant_tag is not None:
        cluster = with_names(client, cluster)
    numbers = _numbers_of(params)
    until = client.clock.monotonic() + PATIENCE
    rows: list[VmRow] = []
    notes: list[str] = []
    for row in sorted(cluster.vms.values(), key=lambda one: one.vmid):
        if row.vmid in listed or row.template:
            continue
        if not _may_be_unfinished(row, scope, numbers):
            continue
        left = max(0.0, until - client.clock.monotonic())
        try:
            if _is_in(client, row, scope, left):
                rows.append(row)
        except TaskTimeout:
            notes.append(
                f"VM {row.vmid} on node {row.node} is still being made: whether it has the "
                f"{scope.label} is not known yet. Run this again when it is complete"
            )
        except FleetError as error:
            notes.append(f"VM {row.vmid} on node {row.node} could not be read: {error.message}")
    return rows, tuple(notes)


def _is_in(client: Client, row: VmRow, scope: Scope, seconds: float) -> bool:
    """Return whether an unfinished VM is in the scope, once that can be read.

    PVE puts a VM into its pool when it is complete (qemu-server: clone_vm, create_vm). Raises
    TaskTimeout after `seconds`.
    """
    by_pool = scope.pool is not None
    config = await_name(client, row.vmid, row.node, seconds, complete=by_pool) or {}
    tags = owner_tags(config, scope.prefix)
    if not owns(scope.tenant_tag, tags, scope.prefix):
        return False
    return not by_pool or pool_of(client, row.vmid) == scope.pool


def is_unfinished_in(scope: Scope, config: Mapping[str, Any], pool: str | None) -> bool:
    """Return whether an unfinished VM is in the scope: the marker in its notes has that tenant, and
    it is in that pool (pure).
    """
    _notes, marker = split_notes(config.get("description"))
    is_of_tenant = marker.tenant == scope.tenant_tag
    is_of_pool = scope.pool in (None, pool)
    return marker.building and is_of_tenant and is_of_pool


def within(row: VmRow, scope: Scope) -> bool:
    """Return whether a VM is in a scope: it has that tenant's tag alone, and that pool (pure)."""
    if not owns(scope.tenant_tag, row.tags, scope.prefix):
        return False
    return scope.pool in (None, row.pool)


@dataclass(frozen=True)
class _NumbersOf:
    """How the VMs of the run get their numbers."""

    bands: tuple[Band, ...]
    by_name: bool

    def could_give(self, vmid: int, tag: str, name: str) -> bool:
        """Return whether the VM of that name and tenant may have got the number."""
        if not self.by_name:
            return any(first <= vmid <= last for first, last in self.bands)
        return any(
            vmid
            in Numbers(
                band,
                tag,
                name,
            ).first(LIKELY)
            for band in self.bands
        )


def _numbers_of(params: Mapping[str, Any]) -> _NumbersOf:
    bands = read_bands(params.get("vmid_range"), params.get("vmid_bands"))
    by_name = params.get("vmid_choice") != "lowest"
    return _NumbersOf((bands.automatic, bands.template), by_name)


def _may_be_unfinished(
    row: VmRow,
    scope: Scope,
    numbers: _NumbersOf,
) -> bool:
    """Return whether a VM outside the scope may be an unfinished one in it (pure)."""
    if row.lock in MAKING:
        return not within(row, scope)
    if scope.tenant_tag is None:
        return False
    if owns(scope.tenant_tag, row.tags, scope.prefix):
        return False
    if scope.pool is not None:
        return row.pool == scope.pool
    return numbers.could_give(row.vmid, scope.tenant_tag, row.name)
