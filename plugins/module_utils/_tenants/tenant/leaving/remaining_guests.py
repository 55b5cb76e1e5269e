# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the guests of a tenant, including guests whose creation is in progress, and checks that no
guest remains that is missing in the plan of its removal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ...._foundation.api.interface import Api
from ...._foundation.cluster.state import VmRow, fetch_cluster_state
from ...._foundation.core.errors import StrayGuests
from ...._foundation.core.result import Result
from ...._foundation.resource.change import DesiredResource, ResourceChange
from ...._foundation.resource.table import Precheck
from ...._guests.fleet.creation_in_progress import find_creations_in_progress
from ...._guests.fleet.items import PruneScope
from ...._guests.guest.registry import LISTS
from ...access.checks.pool_check import precheck_pool
from ..facts import TenantFacts
from ..guests import TenantGuests, guests_of
from ..model import Tenant

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


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
            attempted=f"{tenant.label} was not removed",
            answer="these guests are not in the plan, because they were created since it was made,"
            f" or this user or token may not see them: {'; '.join(guests)}",
            next_step="Log in with a user or token that sees all VMs, and run this again in check"
            " mode",
            reason="strays",
            details={"strays": list(guests)},
        )


def pool_check(tenant: Tenant, kept: Collection[int]) -> Precheck:
    """Return a precheck for the pool's deletion: only `kept` guests may still be its members."""
    return partial(_require_known_members, tenant, frozenset(kept))


def _require_known_members(
    tenant: Tenant,
    kept: frozenset[int],
    client: Api,
    desired: DesiredResource,
    change: ResourceChange,
) -> tuple[str, ...]:
    """Raise Conflict for members that the caller cannot see, or that were added after the plan.

    Proxmox VE lists the members of a pool to everyone (pve-manager: PVE/API2/Pool.pm, index).
    """
    unknown = sorted(change.removes.get("vms", frozenset()) - kept)
    label = f"pool '{tenant.pool}'"
    _require_none(tenant, [f"VM or container {vmid} is in {label}" for vmid in unknown])
    return precheck_pool(client, desired, change)
