# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of a pool before the first write, also for mistakes that Proxmox VE would accept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.cluster.find.visible import (
    hidden_storages,
    is_in_use,
    require_no_hidden_storages,
)
from ...._foundation.core.errors import ConfigurationError, Conflict, NotFound, UnknownVm
from ...._foundation.resource.change import DesiredResource, ResourceChange

# pve-manager since 9.0: PVE/API2/Pool.pm, create_pool.
_LETTER_SINCE = (9, 0)


@dataclass(frozen=True)
class PoolFacts:
    """Facts of the cluster for a change of a pool.

    `pool_of` contains the guests that the caller may see, each with its pool.
    """

    pool_of: Mapping[int, str | None] = field(default_factory=dict)
    storages: frozenset[str] = frozenset()
    hidden: frozenset[int] = frozenset()  # existing guests that the caller may not see


def precheck_pool(client: Api, desired: DesiredResource, change: ResourceChange) -> tuple[str, ...]:
    """Raise any refusal before the first write. There are no warnings."""
    name = desired.keys["name"]
    if change.deletes:
        _require_no_pools_below(name, _pools(client))
        return ()
    if change.creates:
        parent = name.rpartition("/")[0]
        _require_parent(name, parent, exists=not parent or _exists(client, parent))
        if not _starts_with_letter(name):
            _require_letter(name, client.version())
    if change.adds:
        facts = read_facts(client, change.adds.get("vms", frozenset()))
        unlisted = change.adds.get("storages", frozenset()) - facts.storages
        hidden = hidden_storages(client, sorted(unlisted))
        require_no_hidden_storages(hidden, f"Pool '{name}' was not changed")
        require_addable(name, change.adds, facts, allow_move=bool(desired.switches))
    return ()


def read_facts(client: Api, vms: frozenset[int]) -> PoolFacts:
    """Return the facts; one request, and one for each VM that is missing in the listing."""
    pool_of: dict[int, str | None] = {}
    storages: set[str] = set()
    for row in client.get("cluster", "resources") or []:
        if "vmid" in row:
            vmid = int(row["vmid"])
            pool_of[vmid] = row.get("pool") or None
        elif row.get("type") == "storage":
            storages.add(str(row["storage"]))
    unlisted = vms - pool_of.keys()
    hidden = [vmid for vmid in unlisted if is_in_use(client, vmid)]
    return PoolFacts(pool_of=pool_of, storages=frozenset(storages), hidden=frozenset(hidden))


def require_addable(
    name: str, adds: Mapping[str, frozenset[Any]], facts: PoolFacts, *, allow_move: bool
) -> None:
    """Raise if a member belongs to another pool or does not exist (pure).

    Proxmox VE accepts members that do not exist.
    """
    attempted = f"Pool '{name}' was not changed"
    vms = adds.get("vms", frozenset())
    _require_vms(vms, facts, attempted)
    _require_storages(adds.get("storages", frozenset()), facts, attempted)
    if not allow_move:
        _require_unpooled(name, vms, facts, attempted)


def _require_vms(vms: frozenset[int], facts: PoolFacts, attempted: str) -> None:
    unknown = sorted(vms - facts.pool_of.keys() - facts.hidden)
    if not unknown:
        return
    vmids = ", ".join(map(str, unknown))
    raise UnknownVm(
        attempted=attempted,
        answer=f"there is no VM or container {vmids}",
        next_step="Check the numbers in vms: Proxmox VE itself would accept them",
        reason="unknown VM",
        details={"vmids": unknown},
    )


def _require_storages(storages: frozenset[str], facts: PoolFacts, attempted: str) -> None:
    missing = sorted(storages - facts.storages)
    if not missing:
        return
    known = ", ".join(sorted(facts.storages))
    if not known:
        known = "no storage that this user or token may see"
    raise ConfigurationError(
        attempted=attempted,
        answer=f"there is no storage {', '.join(missing)}; the cluster has {known}",
        next_step="Check the names in storages",
        reason="unknown storage",
        details={"storages": missing},
    )


def _require_unpooled(name: str, vms: frozenset[int], facts: PoolFacts, attempted: str) -> None:
    """Raise Conflict for VMs of other pools."""
    places: list[str] = []
    pools: dict[str, str] = {}
    for vmid in sorted(vms):
        pool = facts.pool_of.get(vmid)
        if pool is None or pool == name:
            continue
        places.append(f"VM {vmid} in pool '{pool}'")
        pools[str(vmid)] = pool
    if not pools:
        return
    raise Conflict(
        attempted=attempted,
        answer=f"already in another pool: {', '.join(places)}",
        next_step="Set allow_move=true to move it here, or take it out of that pool first",
        reason="in a pool",
        details={"pools": pools},
    )


def _starts_with_letter(name: str) -> bool:
    return re.match("[A-Za-z]", name.rpartition("/")[2]) is not None


def _require_letter(name: str, version: tuple[int, int]) -> None:
    if version < _LETTER_SINCE:
        return
    raise ConfigurationError(
        attempted=f"Pool '{name}' was not created",
        answer="the name of a new pool must start with a letter",
        next_step="Choose another name",
        reason="name",
    )


def _require_parent(name: str, parent: str, *, exists: bool) -> None:
    if exists:
        return
    raise ConfigurationError(
        attempted=f"Pool '{name}' was not created",
        answer=f"pool '{parent}' above it does not exist",
        next_step=f"Create pool '{parent}' first",
        reason="unknown pool",
    )


def _exists(client: Api, name: str) -> bool:
    try:
        client.get("pools", params={"poolid": name}, type="storage")
    except NotFound:
        return False
    return True


def _pools(client: Api) -> frozenset[str]:
    rows = client.get("pools") or []
    return frozenset(str(row["poolid"]) for row in rows)


def _require_no_pools_below(name: str, pools: frozenset[str]) -> None:
    start = f"{name}/"
    below = sorted(pool for pool in pools if pool.startswith(start))
    if not below:
        return
    quoted = [f"pool '{pool}'" for pool in below]
    raise Conflict(
        attempted=f"Pool '{name}' was not deleted",
        answer=f"it contains {', '.join(quoted)}",
        next_step="Delete the pools in it first",
        reason="not empty",
        details={"pools": below},
    )
