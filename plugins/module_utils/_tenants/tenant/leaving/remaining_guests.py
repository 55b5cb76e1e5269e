# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The guests of a tenant, including guests whose creation is in progress; the strays, which stop its
removal; and the check that no guest remains that is missing in the plan of the removal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING

from ...._foundation.api.interface import Api
from ...._foundation.cluster.find.restoring import seems_bare
from ...._foundation.cluster.state import VmRow, fetch_cluster_state
from ...._foundation.cluster.tenant import owns, tenants_of
from ...._foundation.core.errors import Conflict, StrayGuests
from ...._foundation.core.result import Result
from ...._foundation.resource.table import DesiredResource, Precheck, ResourceChange
from ...._guests.fleet.creation_in_progress import find_creations_in_progress
from ...._guests.fleet.items import PruneScope
from ...._guests.guest.registry import LISTS, list_of
from ...access.pool import precheck_pool
from ..facts import TenantFacts
from ..marks import has_pool_alone
from ..model import Tenant

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


@dataclass(frozen=True)
class TenantGuests:
    """The guests of a tenant, and the guests that share its pool.

    `own` have its tag and are in its pool. `outside` have its tag and are not in its pool.
    `untagged` are in its pool without a tenant's tag. `foreign` are in its pool and belong to other
    tenants, or have the tags of several tenants; they are never removed. `in_creation` have neither
    tag nor pool yet: only the marker in their notes names the tenant. `unclear` are sentences about
    guests that may be unfinished guests of the tenant.
    """

    own: tuple[VmRow, ...]
    outside: tuple[VmRow, ...]
    untagged: tuple[VmRow, ...]
    foreign: tuple[VmRow, ...]
    in_creation: tuple[VmRow, ...] = ()
    unclear: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[VmRow, ...]:
        """The guests of all groups."""
        return (*self.own, *self.outside, *self.untagged, *self.foreign, *self.in_creation)

    @property
    def strays(self) -> list[str]:
        """Message lines about the guests that stop a removal."""
        lines: list[str] = []
        for row in self.outside:
            place = f"pool '{row.pool}'" if row.pool else "no pool"
            lines.append(f"{_label(row)} has the tag, but is in {place}")
        for row in self.untagged:
            missing = "a tenant"
            if seems_bare(row):
                missing = "name, tags and disks, as during a restore"
            lines.append(f"{_label(row)} is in the pool without {missing}")
        for row in self.foreign:
            lines.append(f"{_label(row)} has the tags {', '.join(row.tags)}")
        for row in self.in_creation:
            lines.append(f"{_label(row)} is unfinished, and will be its {_noun(row)}")
        return [*lines, *self.unclear]

    @property
    def labels(self) -> list[str]:
        """The tenant's own guests as messages name them."""
        return [_label(row) for row in self.own]

    @property
    def vmids(self) -> frozenset[int]:
        """The VMIDs of `rows`."""
        return frozenset(row.vmid for row in self.rows)


def guests_of(tenant: Tenant, facts: TenantFacts) -> TenantGuests:
    """Return the guests of a tenant and the strays, by VMID."""
    groups: dict[str, list[VmRow]] = {"own": [], "outside": [], "untagged": [], "foreign": []}
    is_alone = has_pool_alone(tenant, facts)
    for row in sorted(facts.cluster.guests, key=attrgetter("vmid")):
        group = _group_of(tenant, row, is_alone=is_alone)
        if group is not None:
            groups[group].append(row)
    return TenantGuests(
        own=tuple(groups["own"]),
        outside=tuple(groups["outside"]),
        untagged=tuple(groups["untagged"]),
        foreign=tuple(groups["foreign"]),
    )


def _group_of(tenant: Tenant, row: VmRow, *, is_alone: bool) -> str | None:
    """Return the field of `TenantGuests` that a guest belongs to, or None for an unrelated guest.

    If the tenant shares its pool (`is_alone` is false), other guests in the pool are ignored,
    except a guest that a restore may be writing: it has no tags until the restore ends.
    """
    is_pooled = row.pool == tenant.pool
    owners = tenants_of(row.tags, tenant.prefix)
    if owns(tenant.tag, row.tags, tenant.prefix):
        return "own" if is_pooled else "outside"
    if tenant.tag in owners:
        return "foreign"
    if is_pooled and (is_alone or seems_bare(row)):
        return "foreign" if owners else "untagged"
    return None


def require_no_strays(tenant: Tenant, guests: TenantGuests, tokens: Sequence[str]) -> None:
    """Raise Conflict for strays; `tokens` are the unmarked tokens of the tenant's user."""
    unmarked = [f"token '{tenant.user}!{name}' has no mark" for name in tokens]
    strays = [*guests.strays, *unmarked]
    if not strays:
        return
    raise Conflict(
        f"{tenant.label} was not removed: these are not clearly its own: {'; '.join(strays)}",
        "Give guests their tenant's tag and pool, and delete tokens; or set strays=keep"
        " to leave them, or strays=remove to remove the guests and tokens of no other tenant",
        "strays",
        details={"strays": strays},
    )


def names_of(rows: Iterable[VmRow]) -> str:
    """Return guests as messages name them."""
    return ", ".join(_label(row) for row in rows)


def _label(row: VmRow) -> str:
    if row.own_name:
        return f"{_noun(row)} '{row.own_name}' ({row.vmid})"
    return f"{_noun(row)} {row.vmid}"


def _noun(row: VmRow) -> str:
    return list_of(row.type).kind.noun


def read_guests(tenant: Tenant, facts: TenantFacts, client: Client) -> TenantGuests:
    """Return the guests of a tenant in the listing of the facts.

    One request for each node and kind, and one or more for each guest whose creation is in
    progress: only its notes name the tenant. Raises FleetError.
    """
    guests = guests_of(tenant, facts)
    scope = PruneScope(tenant.tag, tenant.prefix, None)
    found: list[VmRow] = []
    notes: list[str] = []
    for of in LISTS:
        cluster = facts.cluster.of_type(of.kind.type)
        known = set(guests.vmids)
        rows, unclear = find_creations_in_progress(client.direct(), cluster, scope, known, {})
        found += rows
        notes += unclear
    return replace(guests, in_creation=tuple(found), unclear=tuple(notes))


def require_no_remaining_guests(
    tenant: Tenant, facts: TenantFacts, leaving: Iterable[VmRow], client: Client
) -> Result:
    """Raise Conflict if the tenant has guests that were created since the facts were read.

    The VMID of a removed VM may have been reused.
    """
    known = {row.vmid for row in facts.cluster.guests} - {row.vmid for row in leaving}
    cluster = fetch_cluster_state(client, facts.cluster.types)
    vms = {vmid: row for vmid, row in cluster.vms.items() if vmid not in known}
    others = {vmid: row for vmid, row in cluster.others.items() if vmid not in known}
    now = replace(facts, cluster=replace(cluster, vms=vms, others=others))
    found = read_guests(tenant, now, client)
    _require_none(tenant, [*found.labels, *found.strays])
    return Result()


def _require_none(tenant: Tenant, guests: Sequence[str]) -> None:
    if guests:
        raise StrayGuests(
            f"{tenant.label} was not removed: these guests are not in the plan, because they were "
            "created since it was made, or this user or token may not see them: "
            f"{'; '.join(guests)}",
            "Log in with a user or token that sees all VMs, and run this again in check mode",
            "strays",
            details={"strays": list(guests)},
        )


def pool_check(tenant: Tenant, kept: Collection[int]) -> Precheck:
    """Return a precheck for the pool's deletion: only `kept` guests may still be its members.

    It raises Conflict for members that the caller cannot see, or that were added after the plan.
    Proxmox VE lists the members of a pool to everyone (pve-manager: PVE/API2/Pool.pm, index).
    """

    def check(client: Api, desired: DesiredResource, change: ResourceChange) -> tuple[str, ...]:
        unknown = sorted(change.removes.get("vms", frozenset()) - frozenset(kept))
        label = f"pool '{tenant.pool}'"
        _require_none(tenant, [f"VM or container {vmid} is in {label}" for vmid in unknown])
        return precheck_pool(client, desired, change)

    return check
