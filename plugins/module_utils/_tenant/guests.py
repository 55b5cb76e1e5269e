# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which guests go with a tenant, and which are strays (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .._cluster.state import VmRow
from .._cluster.tenant import owns, tenants_of
from .._core.errors import Conflict
from .facts import Container, Facts
from .model import Tenant


@dataclass(frozen=True)
class Guests:
    """The guests that a tenant has, or that are where its guests are.

    `outside` have its tag and are not in its pool, `untagged` are in its pool without a tenant's
    tag. `foreign` are in its pool and other tenants', or have more than one tenant's tag;
    `containers` are in its pool or have its tag. Neither is ever removed. `unfinished` have neither
    tag nor pool yet: only the marker in their notes names the tenant. `unclear` are sentences about
    VMs that may be such ones.
    """

    own: tuple[VmRow, ...]
    outside: tuple[VmRow, ...]
    untagged: tuple[VmRow, ...]
    foreign: tuple[VmRow, ...]
    containers: tuple[Container, ...]
    unfinished: tuple[VmRow, ...] = ()
    unclear: tuple[str, ...] = ()

    @property
    def vms(self) -> tuple[VmRow, ...]:
        """All VMs among them."""
        return (*self.own, *self.outside, *self.untagged, *self.foreign, *self.unfinished)

    @property
    def strays(self) -> list[str]:
        """What messages say of the guests that stop a removal."""
        lines: list[str] = []
        for row in self.outside:
            lines.append(f"{_label(row)} has the tag, but is in {_place(row)}")
        for row in self.untagged:
            lines.append(f"{_label(row)} is in the pool without a tenant")
        for row in self.foreign:
            lines.append(f"{_label(row)} has the tags {', '.join(row.tags)}")
        for one in self.containers:
            lines.append(f"{one.label} is in {_place(one)}")
        for row in self.unfinished:
            lines.append(f"{_label(row)} is unfinished, and will be its VM")
        return [*lines, *self.unclear]

    @property
    def labels(self) -> list[str]:
        """What messages call the VMs that are the tenant's own."""
        return [_label(row) for row in self.own]

    @property
    def vmids(self) -> frozenset[int]:
        """The VMIDs of all of them."""
        guests: list[VmRow | Container] = [*self.vms, *self.containers]
        return frozenset(one.vmid for one in guests)


def guests_of(tenant: Tenant, facts: Facts) -> Guests:
    """Return the guests of a tenant and the strays, by VMID."""
    groups: dict[str, list[VmRow]] = {"own": [], "outside": [], "untagged": [], "foreign": []}
    for _vmid, row in sorted(facts.cluster.vms.items()):
        group = _group_of(tenant, row)
        if group is not None:
            groups[group].append(row)
    return Guests(
        own=tuple(groups["own"]),
        outside=tuple(groups["outside"]),
        untagged=tuple(groups["untagged"]),
        foreign=tuple(groups["foreign"]),
        containers=tuple(_containers(tenant, facts)),
    )


def _group_of(tenant: Tenant, row: VmRow) -> str | None:
    """Return the field of `Guests` that a VM belongs to, None where it is neither the tenant's nor
    in its pool.
    """
    is_pooled = row.pool == tenant.pool
    owners = tenants_of(row.tags, tenant.prefix)
    if owns(tenant.tag, row.tags, tenant.prefix):
        return "own" if is_pooled else "outside"
    if tenant.tag in owners:
        return "foreign"
    if is_pooled:
        return "foreign" if owners else "untagged"
    return None


def _containers(tenant: Tenant, facts: Facts) -> Iterator[Container]:
    """Yield the containers that are in the pool of a tenant or have its tag, by VMID."""
    for _vmid, one in sorted(facts.containers.items()):
        owners = tenants_of(one.tags, tenant.prefix)
        if one.pool == tenant.pool or tenant.tag in owners:
            yield one


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


def _place(row: VmRow | Container) -> str:
    return f"pool '{row.pool}'" if row.pool else "no pool"
