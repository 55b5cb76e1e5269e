# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the guests of a tenant, also those that are still being made, and checks that its removal
leaves none behind that its plan does not have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from .._cluster.state import VmRow, fetch_cluster_state
from .._core.errors import Conflict
from .._core.result import Result
from .._fleet.items import Scope
from .._fleet.unfinished import find_unfinished
from .._pool.precheck import check_pool
from .._resource.change import Change, Desired
from .._resource.protocols import Api
from .._resource.table import Precheck
from .facts import Facts
from .guests import Guests, guests_of
from .model import Tenant

if TYPE_CHECKING:
    from .._api.client import Client


def read_guests(tenant: Tenant, facts: Facts, client: Client) -> Guests:
    """Return the guests of a tenant in the listing of the facts.

    One request for each node, and one or more for each VM that is being made: whose it will be is
    only in its notes. Raises FleetError.
    """
    guests = guests_of(tenant, facts)
    known = {row.vmid for row in guests.vms}
    scope = Scope(tenant.tag, tenant.prefix, None)
    rows, unclear = find_unfinished(client.direct(), facts.cluster, scope, known, {})
    return replace(guests, unfinished=tuple(rows), unclear=unclear)


def require_none_left(
    tenant: Tenant, facts: Facts, leaving: Iterable[VmRow], client: Client
) -> Result:
    """Raise Conflict where the tenant has VMs that were created since the facts were read.

    The number of a VM that left may be another one's by now.
    """
    known = facts.cluster.vms.keys() - {row.vmid for row in leaving}
    cluster = fetch_cluster_state(client)
    vms = {vmid: cluster.vms[vmid] for vmid in cluster.vms.keys() - known}
    now = replace(facts, cluster=replace(cluster, vms=vms), containers={})
    found = read_guests(tenant, now, client)
    names = [*found.labels, *found.strays]
    if names:
        raise _appeared(tenant, names)
    return Result()


def pool_check(tenant: Tenant, kept: Collection[int]) -> Precheck:
    """Return a check of the pool before it is deleted: `kept` are the guests that are known to stay
    and are taken out of it.
    """
    return partial(_check_members, tenant, frozenset(kept))


def _check_members(
    tenant: Tenant, kept: frozenset[int], client: Api, desired: Desired, change: Change
) -> tuple[str, ...]:
    """Raise Conflict for members that the caller cannot see, or that came since it looked.

    Proxmox VE lists the members of a pool to everyone (pve-manager: PVE/API2/Pool.pm, index).
    """
    unknown = sorted(change.removes.get("vms", frozenset()) - kept)
    if unknown:
        label = f"pool '{tenant.pool}'"
        raise _appeared(tenant, [f"VM or container {vmid} is in {label}" for vmid in unknown])
    return check_pool(client, desired, change)


def _appeared(tenant: Tenant, guests: Iterable[str]) -> Conflict:
    strays = list(guests)
    return Conflict(
        attempted=f"{tenant.label} was not removed completely",
        answer=f"these guests are not in the plan, because they were created since it was made, or"
        f" this user or token may not see them: {'; '.join(strays)}",
        next_step="Log in as one who sees all VMs, and run this again in check mode",
        reason="strays",
        details={"strays": strays},
    )
