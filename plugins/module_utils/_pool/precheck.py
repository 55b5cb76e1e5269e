# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Proxmox VE would refuse about a pool, or accept although it is a mistake, known before the
first write.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._cluster.visible import is_in_use
from .._core.errors import ConfigurationError, Conflict, NotFound, UnknownVm
from .._resource.change import Change, Desired
from .._resource.protocols import Api

# pve-manager since 9.0: PVE/API2/Pool.pm, create_pool.
_LETTER_SINCE = (9, 0)


@dataclass(frozen=True)
class Facts:
    """What a change of a pool has to know of the cluster.

    `pool_of` has the guests that the caller may see.
    """

    pool_of: Mapping[int, str | None] = field(default_factory=dict)
    storages: frozenset[str] = frozenset()
    hidden: frozenset[int] = frozenset()  # guests that exist and that the caller may not see


def check_pool(client: Api, desired: Desired, change: Change) -> tuple[str, ...]:
    """Raise what is refused before the first write.

    Return warnings. One request where something is added.
    """
    name = desired.keys["name"]
    if change.deletes:
        _require_no_pools_below(name, _pools(client))
        return ()
    if change.creates:
        _require_parent(client, name)
    if change.adds:
        facts = read_facts(client, change.adds.get("vms", frozenset()))
        judge_additions(name, change.adds, facts, allow_move=bool(desired.switches))
    return ()


def read_facts(client: Api, vms: frozenset[int]) -> Facts:
    """Return the facts; one request, and one for each VM that the listing does not have."""
    pool_of: dict[int, str | None] = {}
    storages: set[str] = set()
    for row in client.get("cluster", "resources") or []:
        kind = row.get("type")
        if kind in ("qemu", "lxc"):
            vmid = int(row["vmid"])
            pool_of[vmid] = row.get("pool") or None
        elif kind == "storage":
            storages.add(str(row["storage"]))
    unlisted = vms - pool_of.keys()
    hidden = [vmid for vmid in unlisted if is_in_use(client, vmid)]
    return Facts(pool_of=pool_of, storages=frozenset(storages), hidden=frozenset(hidden))


def judge_additions(
    name: str, adds: Mapping[str, frozenset[Any]], facts: Facts, *, allow_move: bool
) -> None:
    """Raise where a member does not exist, which Proxmox VE accepts, or belongs to another pool
    (pure).
    """
    attempted = f"Pool '{name}' was not changed"
    vms = adds.get("vms", frozenset())
    _require_vms(vms, facts, attempted)
    _require_storages(adds.get("storages", frozenset()), facts, attempted)
    if not allow_move:
        _require_unpooled(name, vms, facts, attempted)


def _require_vms(vms: frozenset[int], facts: Facts, attempted: str) -> None:
    unknown = sorted(vms - facts.pool_of.keys() - facts.hidden)
    if not unknown:
        return
    numbers = ", ".join(map(str, unknown))
    raise UnknownVm(
        attempted=attempted,
        answer=f"there is no VM or container {numbers}",
        next_step="Check the numbers in vms: Proxmox VE itself would accept them",
        reason="unknown VM",
        details={"vmids": unknown},
    )


def _require_storages(storages: frozenset[str], facts: Facts, attempted: str) -> None:
    missing = sorted(storages - facts.storages)
    if not missing:
        return
    known = ", ".join(sorted(facts.storages))
    if not known:
        known = "no storage that this user or token may see"
    raise ConfigurationError(
        attempted=attempted,
        answer=f"there is no storage {', '.join(missing)}; the cluster has {known}",
        next_step=(
            "Check the names in storages; the user or token needs Datastore.Audit to see a storage"
        ),
        reason="unknown storage",
        details={"storages": missing},
    )


def _require_unpooled(name: str, vms: frozenset[int], facts: Facts, attempted: str) -> None:
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


def _require_parent(client: Api, name: str) -> None:
    parent, _slash, leaf = name.rpartition("/")
    attempted = f"Pool '{name}' was not created"
    if parent:
        _require_pool(client, parent, attempted)
    starts_with_letter = re.match("[A-Za-z]", leaf) is not None
    if not starts_with_letter and client.version() >= _LETTER_SINCE:
        raise ConfigurationError(
            attempted=attempted,
            answer="the name of a new pool must start with a letter",
            next_step="Choose another name",
            reason="name",
        )


def _require_pool(client: Api, name: str, attempted: str) -> None:
    try:
        client.get("pools", params={"poolid": name}, type="storage")
    except NotFound as error:
        raise ConfigurationError(
            attempted=attempted,
            answer=f"pool '{name}' above it does not exist",
            next_step=f"Create pool '{name}' first",
            reason="unknown pool",
        ) from error


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
