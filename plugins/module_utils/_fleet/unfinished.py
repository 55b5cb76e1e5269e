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

from .._cluster.state import ClusterState, VmRow, with_names
from .._cluster.tenant import owns
from .._cluster.vmids import Band, Numbers, read_bands
from .._core.errors import FleetError, TaskTimeout
from .._guest.marker import split_notes
from .._vm.live.making import MAKING, await_name
from .._vm.model import LIKELY
from .items import Scope

if TYPE_CHECKING:
    from .._api.client import Client

# Seconds for which a VM that is being made is waited for until its owner can be read.
PATIENCE = 30.0


def find_unfinished(
    client: Client,
    cluster: ClusterState,
    scope: Scope,
    listed: set[int],
    params: Mapping[str, Any],
) -> tuple[list[VmRow], tuple[str, ...]]:
    """Return the unfinished VMs of the scope's tenant that no item of the list means, and warnings.

    Their configuration is read where it may have the tenant's marker: PVE makes the VM and it has
    no name yet, or it has no tenant tag and the number that this tenant's VM of its name gets.
    """
    if scope.tenant_tag is None and scope.pool is None:
        return [], ()
    if scope.tenant_tag is not None:
        cluster = with_names(client, cluster)
    numbers = _numbers_of(params)
    rows: list[VmRow] = []
    notes: list[str] = []
    for row in sorted(cluster.vms.values(), key=lambda one: one.vmid):
        if (
            row.vmid in listed
            or row.template
            or not _may_be_unfinished(
                row,
                scope,
                numbers,
            )
        ):
            continue
        try:
            config = await_name(client, row.vmid, row.node, PATIENCE)
        except TaskTimeout:
            notes.append(
                f"VM {row.vmid} on node {row.node} is still being made: whether it has the "
                f"{scope.label} is not known yet. Run this again when it is complete"
            )
            continue
        except FleetError as error:
            notes.append(f"VM {row.vmid} on node {row.node} could not be read: {error.message}")
            continue
        if config is not None and is_unfinished_in(scope, config):
            rows.append(row)
    return rows, tuple(notes)


def is_unfinished_in(scope: Scope, config: Mapping[str, Any]) -> bool:
    """Return whether a configuration has the marker of an unfinished VM of the scope's tenant
    (pure).
    """
    marker = split_notes(str(config.get("description") or ""))[1]
    return marker.building and scope.tenant_tag is not None and marker.tenant == scope.tenant_tag


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
    """Return whether a VM outside the scope may be an unfinished one of its tenant (pure)."""
    if row.lock in MAKING and not row.own_name:
        return True
    if scope.tenant_tag is None or owns(scope.tenant_tag, row.tags, scope.prefix):
        return False
    return numbers.could_give(row.vmid, scope.tenant_tag, row.name)
