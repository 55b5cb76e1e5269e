"""Pools of Ceph.

Source: pve-manager 9.2, API2/Ceph/Pool.pm and Ceph/Tools.pm (set_pool, create_pool). The texts of
Ceph's own refusals are not recorded; the simulator has the ones of `ceph osd pool`.
"""

from __future__ import annotations

from typing import Any

from ..core.api import Ctx, api
from ..core.state import Cluster
from ..core.tasks import Task
from ..errors import PveError
from ..schema.units import parse_size
from ..storage.definitions import make_storage
from .ceph import ceph_of

BASE = "/nodes/{node}/ceph/pool"
RULES = ("replicated_rule",)
_DEFAULTS = {"pg_num": 128, "size": 3, "min_size": 2, "application": "rbd"}
_MODE = "pg_autoscale_mode"
_METADATA_PGS = 32

Pool = dict[str, Any]


def _pools(ctx: Ctx) -> dict[str, Pool]:
    pools: dict[str, Pool] = ceph_of(ctx).setdefault("pools", {})
    return pools


def _rules(ctx: Ctx) -> list[str]:
    return [*RULES, *ceph_of(ctx).get("rules", ())]


def _pool(ctx: Ctx, name: str) -> Pool:
    pools = _pools(ctx)
    if name not in pools:
        raise PveError(f"error with 'osd pool get': mon_cmd failed -  unrecognized pool '{name}'")
    return pools[name]


@api("GET /nodes/{node}/ceph/rules")
def rules(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """The CRUSH rules."""
    return [{"name": name} for name in _rules(ctx)]


@api(f"GET {BASE}")
def listing(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """All pools."""
    names = _rules(ctx)
    return [
        {
            "pool": number,
            "pool_name": name,
            "type": pool["type"],
            "size": pool["size"],
            "min_size": pool["min_size"],
            "pg_num": pool["pg_num"],
            "pg_autoscale_mode": pool[_MODE],
            "crush_rule": names.index(pool["crush_rule"]) if pool["crush_rule"] in names else 99,
            "crush_rule_name": pool["crush_rule"],
            "application_metadata": {pool["application"]: {}} if pool["application"] else {},
            "bytes_used": 0,
            "percent_used": 0,
            **{key: pool[key] for key in _OPTIONAL if key in pool},
        }
        for number, (name, pool) in enumerate(_pools(ctx).items(), 1)
    ]


_OPTIONAL = ("pg_num_min", "target_size", "target_size_ratio")


@api(f"GET {BASE}/{{name}}")
def index(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, str]]:
    """The parts of a pool."""
    return [{"name": "status"}]


@api(f"GET {BASE}/{{name}}/status")
def status(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The settings of a pool."""
    pool = _pool(ctx, p["name"])
    shown = {key: value for key, value in pool.items() if key not in ("type", "application")}
    found = {**shown, "name": p["name"], "id": 1 + list(_pools(ctx)).index(p["name"])}
    if p.get("verbose"):
        found["application_list"] = [pool["application"]] if pool["application"] else []
    return found


def _set(ctx: Ctx, name: str, wanted: Pool, task: Task) -> None:
    """Set properties one by one, the size first; Ceph then resets the minimum (set_pool)."""
    pool = _pool(ctx, name)
    before = dict(pool)
    missing: list[str] = []
    for key in sorted(wanted, key=lambda one: (one != "size", one)):
        if str(before.get(key)) == str(wanted[key]) and key != "application":
            task.say(f"skipping '{key}', did not change")
        elif _is_refused(ctx, pool, key, wanted[key]):
            missing.append(key)
        else:
            task.say(f"pool {name}: applying {key} = {wanted[key]}")
            pool[key] = wanted[key]
            if key == "size":
                pool["min_size"] = pool["size"] - pool["size"] // 2
    if missing:
        raise PveError(f"Could not set: {', '.join(missing)}")


def _is_refused(ctx: Ctx, pool: Pool, key: str, value: Any) -> bool:
    """Whether Ceph refuses a value."""
    if pool["type"] == "erasure" and key in ("size", "crush_rule"):
        return True
    if key == "crush_rule":
        return value not in _rules(ctx)
    if key == "min_size":
        return bool(value > pool["size"])
    return key == "application" and bool(pool["application"]) and pool["application"] != value


def _wanted(p: dict[str, Any]) -> Pool:
    """The settings of a request; Ceph calls the target size otherwise."""
    known = ("size", "min_size", "pg_num", "crush_rule", "application", _MODE, *_OPTIONAL)
    found = {key: p[key] for key in known if p.get(key) is not None}
    if "target_size" in found:
        found["target_size"] = parse_size(str(found["target_size"]))
    return found


def _new(ctx: Ctx, name: str, kind: str, wanted: Pool, task: Task) -> None:
    """Create a pool; one that exists stays, and is changed (ceph osd pool create)."""
    blank = {
        "type": kind,
        "size": 3,
        "min_size": 2,
        "pg_num": wanted["pg_num"],
        _MODE: "on",
        "crush_rule": RULES[0] if kind == "replicated" else name,
        "application": "",
    }
    _pools(ctx).setdefault(name, blank)
    _set(ctx, name, wanted, task)


def _add_storage(cluster: Cluster, name: str, pool: str, data_pool: str | None) -> None:
    config = {"pool": pool, "content": "rootdir,images", "krbd": "0"}
    if data_pool:
        config["data-pool"] = data_pool
    cluster.storages[name] = make_storage(name, "rbd", config, 2**40, 0)
    cluster.revision += 1


@api(f"POST {BASE}")
def create(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that creates a pool."""
    ctx.cluster.check_quorum()
    ceph_of(ctx)
    name, coding = p["name"], p.get("erasure-coding")
    keys = dict(part.partition("=")[::2] for part in (coding or "").split(","))
    if keys.get("profile"):
        raise PveError(f"Erasure code profile '{keys['profile']}' does not exist.")
    adds = p.get("add_storages", bool(coding))
    if adds:
        ctx.need("/storage", "Datastore.Allocate")
    wanted = {**_DEFAULTS, _MODE: "warn", **_wanted(p)}

    async def work(task: Task) -> None:
        if not coding:
            _new(ctx, name, "replicated", wanted, task)
        else:
            replicated = ("size", "min_size", "crush_rule")
            data = {key: value for key, value in wanted.items() if key not in replicated}
            _new(ctx, f"{name}-data", "erasure", data, task)
            metadata = {**wanted, "pg_num": _METADATA_PGS}
            _new(ctx, f"{name}-metadata", "replicated", metadata, task)
        if adds:
            pool = f"{name}-metadata" if coding else name
            _add_storage(ctx.cluster, name, pool, f"{name}-data" if coding else None)

    return ctx.task(p["node"], "cephcreatepool", name, work)


@api(f"PUT {BASE}/{{name}}")
def update(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that changes a pool."""
    ceph_of(ctx)
    name, wanted = p["name"], _wanted(p)

    async def work(task: Task) -> None:
        _set(ctx, name, wanted, task)

    return ctx.task(p["node"], "cephsetpool", name, work)


def _storages_on(cluster: Cluster, pool: str) -> list[str]:
    return [
        name
        for name, storage in cluster.storages.items()
        if storage.kind == "rbd"
        and pool in (storage.config.get("pool", "rbd"), storage.config.get("data-pool"))
    ]


@api(f"DELETE {BASE}/{{name}}")
def destroy(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that destroys a pool, unless a storage on it has images."""
    ceph_of(ctx)
    name, cluster = p["name"], ctx.cluster
    if p.get("remove_storages"):
        ctx.need("/storage", "Datastore.Allocate")

    async def work(task: Task) -> None:
        storages = _storages_on(cluster, name)
        for storage in storages if not p.get("force") else ():
            task.say(f"checking storage '{storage}' for RBD images..")
            if any(cluster.storages[storage].volumes.values()):
                raise PveError(f"ceph pool '{name}' still in use by storage '{storage}'")
        _pool(ctx, name)
        del _pools(ctx)[name]
        for storage in storages if p.get("remove_storages") else ():
            if not cluster.storages[storage].config.get("monhost"):
                del cluster.storages[storage]
                cluster.revision += 1

    return ctx.task(p["node"], "cephdestroypool", name, work)
