# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of resource pools (pve-manager: PVE/API2/Pool.pm; pve-access-control:
AccessControl.pm).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..._foundation.api.interface import Api
from ..._foundation.cluster.find.visible import (
    hidden_storages,
    is_in_use,
    require_no_hidden_storages,
)
from ..._foundation.core import validate
from ..._foundation.core.arguments.options import did_you_mean
from ..._foundation.core.errors import ConfigurationError, Conflict, NotFound, UnknownVm
from ..._foundation.resource.table import Call, DesiredResource, Key, Members, ResourceChange, Table
from ..._foundation.resource.values import comment_field
from .own_loss import find_pool_loss

_ONE = {"poolid": "{name}"}
# pve-manager since 9.0: PVE/API2/Pool.pm, create_pool.
_LETTER_SINCE = (9, 0)


def _guests(answer: Mapping[str, Any]) -> frozenset[int]:
    rows = answer.get("members") or []
    return frozenset(int(row["vmid"]) for row in rows if "vmid" in row)


def _storages(answer: Mapping[str, Any]) -> frozenset[str]:
    rows = answer.get("members") or []
    return frozenset(str(row["storage"]) for row in rows if row.get("type") == "storage")


def _above(keys: Mapping[str, str]) -> dict[str, Any]:
    return {"parent": keys["name"].rpartition("/")[0] or None}


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
        rows = client.get("pools") or []
        _require_no_pools_below(name, frozenset(str(row["poolid"]) for row in rows))
        return ()
    if change.creates:
        parent = name.rpartition("/")[0]
        _require_parent(name, parent, exists=not parent or _exists(client, parent))
        if not re.match("[A-Za-z]", name.rpartition("/")[2]):
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
    unknown = sorted(vms - facts.pool_of.keys() - facts.hidden)
    if unknown:
        raise UnknownVm(
            f"{attempted}: there is no VM or container {', '.join(map(str, unknown))}",
            "Check the numbers in vms: Proxmox VE itself would accept them",
            "unknown VM",
            details={"vmids": unknown},
        )
    missing = sorted(adds.get("storages", frozenset()) - facts.storages)
    if missing:
        known = ", ".join(sorted(facts.storages)) or "no storage that this user or token may see"
        raise ConfigurationError(
            f"{attempted}: there is no storage {', '.join(missing)}; the cluster has "
            f"{known}{did_you_mean(missing[0], facts.storages)}",
            "Check the names in storages",
            "unknown storage",
            details={"storages": missing},
        )
    pools = {vmid: facts.pool_of.get(vmid) for vmid in sorted(vms)}
    others = {vmid: pool for vmid, pool in pools.items() if pool not in (None, name)}
    if others and not allow_move:
        places = [f"VM {vmid} in pool '{pool}'" for vmid, pool in others.items()]
        raise Conflict(
            f"{attempted}: already in another pool: {', '.join(places)}",
            "Set allow_move=true to move it here, or take it out of that pool first",
            "in a pool",
            details={"pools": {str(vmid): pool for vmid, pool in others.items()}},
        )


def _require_letter(name: str, version: tuple[int, int]) -> None:
    if version >= _LETTER_SINCE:
        raise ConfigurationError(
            f"Pool '{name}' was not created: the name of a new pool must start with a letter",
            "Choose another name",
            "name",
        )


def _require_parent(name: str, parent: str, *, exists: bool) -> None:
    if not exists:
        raise ConfigurationError(
            f"Pool '{name}' was not created: pool '{parent}' above it does not exist",
            f"Create pool '{parent}' first",
            "unknown pool",
        )


def _exists(client: Api, name: str) -> bool:
    try:
        client.get("pools", params={"poolid": name}, type="storage")
    except NotFound:
        return False
    return True


def _require_no_pools_below(name: str, pools: frozenset[str]) -> None:
    below = sorted(pool for pool in pools if pool.startswith(f"{name}/"))
    if below:
        quoted = [f"pool '{pool}'" for pool in below]
        raise Conflict(
            f"Pool '{name}' was not deleted: it contains {', '.join(quoted)}",
            "Delete the pools in it first",
            "not empty",
            details={"pools": below},
        )


POOL = Table(
    kind="pool",
    keys=(Key("name", "poolid", validate.pool),),
    fields=(comment_field(),),
    members=(
        Members("vms", "vms", "VM", lambda item: validate.vmid(item, "vms"), _guests),
        Members(
            "storages",
            "storage",
            "storage",
            lambda item: validate.storage(item, "storages"),
            _storages,
        ),
    ),
    # API paths that contain the name of the pool do not support nested pools.
    list_call=Call(("pools",)),
    read_call=Call(("pools",), _ONE),
    pick=lambda answer, _keys: answer[0] if answer else None,
    switches={"allow_move": "allow-move"},
    derived=_above,
    precheck=precheck_pool,
    guard=find_pool_loss,
    list_is_whole=False,
)
