"""Pools and their members."""

from __future__ import annotations

import re
from typing import Any

from ..core.acl import stored_text
from ..core.api import Ctx, api
from ..core.state import Cluster
from ..errors import PermError, PveError
from ..schema.formats import split_list
from .resources import guest_stats, refresh, storage_entry


def add_to_pool(cluster: Cluster, pool: str, vmid: int) -> None:
    """Make the machine or container a member."""
    old = cluster.pool_of.get(vmid)
    if old in cluster.pools:
        cluster.pools[old]["vms"].pop(vmid, None)
    cluster.pools[pool]["vms"][vmid] = 1
    cluster.pool_of[vmid] = pool
    cluster.revision += 1


def _pool(ctx: Ctx, name: str, prefix: str = "") -> dict[str, Any]:
    found = ctx.cluster.pools.get(name)
    if found is None:
        raise PveError(f"{prefix}pool '{name}' does not exist")
    return found


def _members(ctx: Ctx, pool: dict[str, Any], kind: str | None) -> list[dict[str, Any]]:
    cluster = ctx.cluster
    refresh(cluster)
    members: list[dict[str, Any]] = []
    for vmid in sorted(pool["vms"], key=str):
        guest = cluster.guest(vmid)
        if guest is not None and kind in (None, guest.kind):
            members.append(guest_stats(cluster, guest))
    if kind in (None, "storage"):
        for name in sorted(pool["storage"]):
            storage = cluster.storages.get(name)
            if storage is not None:
                node = next(
                    (node for node in cluster.nodes if storage.available_on(node)), cluster.local
                )
                members.append(storage_entry(cluster, storage, node))
    return members


def _shown(name: str, pool: dict[str, Any]) -> dict[str, Any]:
    result = {"poolid": name}
    if pool.get("comment"):
        result["comment"] = pool["comment"]
    return result


@api("GET /pools")
def index(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The pools that the caller may see, or a single pool with its members."""
    if p.get("poolid") is not None:
        # To everyone: PVE asks whether the caller has Pool.Audit and ignores the answer, unlike in
        # the deprecated path of the same meaning (pve-manager 9.2.11: API2/Pool.pm, index).
        pool = _pool(ctx, p["poolid"])
        return [{**_shown(p["poolid"], pool), "members": _members(ctx, pool, p.get("type"))}]
    return [
        _shown(name, ctx.cluster.pools[name])
        for name in sorted(ctx.cluster.pools)
        if ctx.may(f"/pool/{name}", "Pool.Audit")
    ]


@api("GET /pools/{poolid}")
def read(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One pool."""
    pool = _pool(ctx, p["poolid"])
    return {**_shown(p["poolid"], pool), "members": _members(ctx, pool, p.get("type"))}


@api("POST /pools")
def create(ctx: Ctx, p: dict[str, Any]) -> None:
    """Create a pool; the pool above it must exist."""
    name, pools = p["poolid"], ctx.cluster.pools
    ctx.cluster.check_cfs("user_cfg", "create pool failed: ")
    if name in pools:
        raise PveError(f"create pool failed: pool '{name}' already exists")
    parent = name.rpartition("/")[0]
    if parent and parent not in pools:
        raise PveError(f"create pool failed: parent '{parent}' of pool '{name}' does not exist")
    if not re.match("[A-Za-z]", name.rpartition("/")[2]):
        raise PveError("create pool failed: pool name must start with a letter")
    pools[name] = {"comment": stored_text(p.get("comment", "")), "vms": {}, "storage": {}}
    ctx.acl.changed()


def _need(ctx: Ctx, prefix: str, path: str, *privs: str) -> None:
    """A right that is looked at with the file locked: the refusal becomes a text of the failure."""
    try:
        ctx.need(path, *privs, any_of=True)
    except PermError as error:
        raise PveError(f"{prefix}{error.status} {error.message}") from None


@api("PUT /pools", "PUT /pools/{poolid}")
def update(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change the comment, add or remove members."""
    prefix = "update pools failed: "
    name = p["poolid"]
    ctx.cluster.check_cfs("user_cfg", prefix)
    pool = _pool(ctx, name, prefix)
    moves = _vms_to_add(ctx, p, pool, prefix)
    _check_stores(ctx, p, pool, prefix)
    if p.get("comment") is not None:
        pool["comment"] = stored_text(p["comment"])
    _apply(ctx, name, p, moves)


def _vms_to_add(ctx: Ctx, p: dict[str, Any], pool: dict[str, Any], prefix: str) -> list[int]:
    """Return the machines that become members, after the checks of all named ones."""
    moves: list[int] = []
    for vmid in _vmids(p):
        _need(ctx, prefix, f"/vms/{vmid}", "Permissions.Modify", "VM.Allocate")
        if p.get("delete"):
            if vmid not in pool["vms"]:
                raise PveError(f"{prefix}VM {vmid} is not a pool member")
            continue
        if vmid in pool["vms"]:
            raise PveError(f"{prefix}VM {vmid} is already a pool member")
        old = ctx.cluster.pool_of.get(vmid)
        if old is not None:
            if not p.get("allow-move"):
                raise PveError(
                    f"{prefix}VM {vmid} belongs already to pool '{old}' and 'allow-move' is not set"
                )
            _need(ctx, prefix, f"/pool/{old}", "Pool.Allocate")
        moves.append(vmid)
    return moves


def _check_stores(ctx: Ctx, p: dict[str, Any], pool: dict[str, Any], prefix: str) -> None:
    for store in split_list(p.get("storage") or ""):
        _need(ctx, prefix, f"/storage/{store}", "Permissions.Modify", "Datastore.Allocate")
        if p.get("delete"):
            if store not in pool["storage"]:
                raise PveError(f"{prefix}Storage '{store}' is not a pool member")
        elif store in pool["storage"]:
            raise PveError(f"{prefix}Storage '{store}' is already a pool member")


def _vmids(p: dict[str, Any]) -> list[int]:
    return [int(vmid) for vmid in split_list(p.get("vms") or "")]


def _apply(ctx: Ctx, name: str, p: dict[str, Any], moves: list[int]) -> None:
    cluster = ctx.cluster
    pool = cluster.pools[name]
    stores = split_list(p.get("storage") or "")
    if p.get("delete"):
        for vmid in _vmids(p):
            pool["vms"].pop(vmid, None)
            cluster.pool_of.pop(vmid, None)
        for store in stores:
            pool["storage"].pop(store, None)
    else:
        for vmid in moves:
            add_to_pool(cluster, name, vmid)
        for store in stores:
            pool["storage"][store] = 1
    cluster.revision += 1
    ctx.acl.changed()


@api("DELETE /pools", "DELETE /pools/{poolid}")
def delete(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a pool that is empty."""
    prefix = "delete pool failed: "
    name = p["poolid"]
    ctx.cluster.check_cfs("user_cfg", prefix)
    pool = _pool(ctx, name, prefix)
    below = next(
        (other for other in sorted(ctx.cluster.pools) if other.startswith(f"{name}/")), None
    )
    what = None
    if below is not None:
        what = f"pool '{below}'"
    else:
        # A member that no longer exists does not count.
        vms = sorted(vmid for vmid in pool["vms"] if ctx.cluster.guest(vmid) is not None)
        stores = sorted(store for store in pool["storage"] if store in ctx.cluster.storages)
        if vms:
            what = f"VM {vms[0]}"
        elif stores:
            what = f"storage '{stores[0]}'"
    if what:
        raise PveError(f"{prefix}pool '{name}' is not empty (contains {what})")
    for vmid in pool["vms"]:
        ctx.cluster.pool_of.pop(vmid, None)
    del ctx.cluster.pools[name]
    ctx.acl.entries.pop(f"/pool/{name}", None)
    ctx.acl.changed()
