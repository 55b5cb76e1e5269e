# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which guests go with a tenant, and which are strays (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .._cluster.state import VmRow
from .._cluster.tenant import owns, tenants_of
from .._core.errors import Conflict
from .facts import Facts
from .model import Tenant


@dataclass(frozen=True)
class Guests:
    """The guests that a tenant has, or that are where its guests are.

    `outside` have its tag and are not in its pool, `untagged` are in its pool without a tenant's
    tag. `foreign` are in its pool and other tenants', or have more than one tenant's tag;
    `containers` are in its pool. Neither is ever removed.
    """

    own: tuple[VmRow, ...]
    outside: tuple[VmRow, ...]
    untagged: tuple[VmRow, ...]
    foreign: tuple[VmRow, ...]
    containers: tuple[int, ...]

    @property
    def strays(self) -> list[str]:
        """What messages say of the guests that stop a removal."""
        lines = [f"{_label(row)} has the tag, but is in {_place(row)}" for row in self.outside]
        lines += [f"{_label(row)} is in the pool without a tenant" for row in self.untagged]
        lines += [f"{_label(row)} has the tags {', '.join(row.tags)}" for row in self.foreign]
        lines += [f"container {vmid} is in the pool" for vmid in self.containers]
        return lines


def guests_of(tenant: Tenant, facts: Facts) -> Guests:
    """Return the guests of a tenant and the strays, by VMID."""
    own: list[VmRow] = []
    outside: list[VmRow] = []
    untagged: list[VmRow] = []
    foreign: list[VmRow] = []
    for _vmid, row in sorted(facts.cluster.vms.items()):
        owners = tenants_of(row.tags, tenant.prefix)
        pooled = row.pool == tenant.pool
        if owns(tenant.tag, row.tags, tenant.prefix):
            (own if pooled else outside).append(row)
        elif tenant.tag in owners or (pooled and owners):
            foreign.append(row)
        elif pooled:
            untagged.append(row)
    containers = [vmid for vmid, pool in facts.containers.items() if pool == tenant.pool]
    return Guests(
        own=tuple(own),
        outside=tuple(outside),
        untagged=tuple(untagged),
        foreign=tuple(foreign),
        containers=tuple(sorted(containers)),
    )


def require_no_strays(tenant: Tenant, guests: Guests) -> None:
    """Raise Conflict that names the strays."""
    strays = guests.strays
    if not strays:
        return
    raise Conflict(
        attempted=f"{tenant.label} was not removed",
        answer=f"these guests are not clearly its own: {'; '.join(strays)}",
        next_step="Give them their tenant's tag and pool; or set strays=keep to leave them, or"
        " strays=remove to remove the VMs among them that belong to no other tenant",
        reason="strays",
        details={"strays": strays},
    )


def names_of(rows: Iterable[VmRow]) -> str:
    """Return VMs as messages name them."""
    return ", ".join(_label(row) for row in rows)


def _label(row: VmRow) -> str:
    return f"VM '{row.own_name}' ({row.vmid})" if row.own_name else f"VM {row.vmid}"


def _place(row: VmRow) -> str:
    return f"pool '{row.pool}'" if row.pool else "no pool"
