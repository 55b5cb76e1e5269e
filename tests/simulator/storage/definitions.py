"""Storage definitions: which storages there are, of which kind, for what, and how full they are on
a node.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ..cluster.resources import plugin_content
from ..core.api import Ctx, api
from ..core.state import Storage
from ..errors import ParamError, PveError
from ..schema.formats import split_list
from ..volumes.space import used_bytes
from ..volumes.volumes import DIR_FORMATS, default_format, formats, is_path_based
from .kinds import DEFAULT_CONTENT, REQUIRED, check_known, checked_content, fixed, known

_INTEGERS = (
    "shared",
    "disable",
    "krbd",
    "sparse",
    "mkdir",
    "create-base-path",
    "create-subdirs",
    "saferemove",
    "nocow",
    "is_mountpoint",
)


def make_storage(name: str, kind: str, config: dict[str, str], total: int, used: int) -> Storage:
    """A storage with what goes without saying filled in."""
    if "content" not in config:
        config["content"] = DEFAULT_CONTENT.get(kind, "images")
    if kind in ("nfs", "cifs", "cephfs") and "path" not in config:
        config["path"] = f"/mnt/pve/{name}"
    return Storage(name, kind, config, total, used)


def _digest(ctx: Ctx) -> str:
    text = json.dumps(
        {name: [s.kind, s.config] for name, s in ctx.cluster.storages.items()}, sort_keys=True
    )
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def _shown(storage: Storage) -> dict[str, Any]:
    result: dict[str, Any] = {"storage": storage.name, "type": storage.kind}
    for key, value in storage.config.items():
        if key == "disable" and value != "1":
            continue
        if key == "shared" and value != "1":
            continue
        result[key] = int(value) if key in _INTEGERS and value.isdigit() else value
    return result


@api("GET /storage")
def index(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The definitions that the caller may see."""
    digest = _digest(ctx)
    return [
        {**_shown(storage), "digest": digest}
        for storage in ctx.cluster.storages.values()
        if p.get("type") in (None, storage.kind)
        and ctx.may(
            f"/storage/{storage.name}", "Datastore.Audit", "Datastore.AllocateSpace", any_of=True
        )
    ]


@api("GET /storage/{storage}")
def read(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One definition."""
    return {**_shown(ctx.cluster.storage(p["storage"])), "digest": _digest(ctx)}


def _answer(storage: Storage) -> dict[str, str]:
    return {"storage": storage.name, "type": storage.kind}


@api("POST /storage")
def create(ctx: Ctx, p: dict[str, Any]) -> dict[str, str]:
    """Define a storage."""
    prefix = "create storage failed: "
    name, kind = p.pop("storage"), p.pop("type")
    ctx.cluster.check_cfs("storage_cfg", prefix)
    if not p.get("nodes"):
        p.pop("nodes", None)
    for key in sorted(p):
        check_known(kind, key)
    for key in REQUIRED.get(kind, ()):
        if p.get(key) is None:
            raise PveError(f"missing value for required option '{key}'")
    config = {key: _value(kind, key, value) for key, value in p.items() if value is not None}
    if name in ctx.cluster.storages:
        raise PveError(f"{prefix}storage ID '{name}' already defined")
    config.pop("password", None)
    if kind in ("nfs", "cifs", "pbs") and config.get("server") not in ctx.cluster.servers:
        raise PveError(f"{prefix}storage '{name}' is not online")
    if (
        kind == "lvmthin"
        and f"{config['vgname']}/{config['thinpool']}" not in ctx.cluster.thin_pools
    ):
        raise PveError(f"{prefix}no such logical volume {config['vgname']}/{config['thinpool']}")
    local = next(iter(ctx.cluster.storages.values()), None)
    total, used = (local.total, local.base_used) if local else (100 << 30, 1 << 30)
    storage = make_storage(name, kind, config, total, used)
    ctx.cluster.storages[name] = storage
    ctx.cluster.revision += 1
    return _answer(storage)


def _value(kind: str, key: str, value: Any) -> str:
    if key == "content":
        return checked_content(kind, str(value))
    if key == "nodes":
        return ",".join(split_list(str(value)))
    return str(value)


def _changed(storage: Storage, key: str, value: Any) -> str:
    if key in fixed(storage.kind):
        raise PveError(f"can't change value of fixed parameter '{key}'")
    if value is None:
        raise PveError(f"got undefined value for option '{key}'")
    check_known(storage.kind, key)
    return _value(storage.kind, key, value)


@api("PUT /storage/{storage}")
def update(ctx: Ctx, p: dict[str, Any]) -> dict[str, str]:
    """Change a definition."""
    prefix = "update storage failed: "
    name = p.pop("storage")
    ctx.cluster.check_cfs("storage_cfg", prefix)
    storage = ctx.cluster.storages.get(name)
    if storage is None:
        raise PveError(f"{prefix}storage '{name}' does not exist")
    digest, delete = p.pop("digest", None), split_list(p.pop("delete", None) or "")
    if digest and digest != _digest(ctx):
        raise PveError(
            f"{prefix}detected modified configuration - file changed by other user? Try again."
        )
    try:
        config = {key: _changed(storage, key, p[key]) for key in sorted(p)}
    except PveError as error:
        raise PveError(f"{prefix}{error.message}") from None
    for key in delete:
        if key not in known(storage.kind):
            raise PveError(f"{prefix}no such option '{key}'")
        if key in REQUIRED.get(storage.kind, ()):
            raise PveError(f"{prefix}unable to delete required option '{key}'")
        if key in fixed(storage.kind):
            raise PveError(f"{prefix}unable to delete fixed option '{key}'")
        if key in p:
            raise PveError(f"{prefix}cannot set and delete property '{key}' at the same time!")
    for key in delete:
        storage.config.pop(key, None)
    storage.config.update(config)
    ctx.cluster.revision += 1
    return _answer(storage)


@api("DELETE /storage/{storage}")
def delete(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a definition; the volumes stay where they are, out of sight."""
    ctx.cluster.check_cfs("storage_cfg", "delete storage failed: ")
    if p["storage"] not in ctx.cluster.storages:
        raise PveError(f"delete storage failed: storage '{p['storage']}' does not exist")
    del ctx.cluster.storages[p["storage"]]
    ctx.acl.entries.pop(f"/storage/{p['storage']}", None)
    for pool in ctx.cluster.pools.values():
        pool["storage"].pop(p["storage"], None)
    ctx.acl.changed()
    ctx.cluster.revision += 1


# -- on a node -----------------------------------------------------------------------------------


def _figures(storage: Storage, node: str) -> dict[str, Any]:
    here = not storage.disabled and storage.available_on(node)
    result: dict[str, Any] = {
        "type": storage.kind,
        "content": plugin_content(storage),
        "shared": 1 if storage.shared else 0,
        "enabled": 1 if here else 0,
        "active": 1 if here else 0,
        "total": 0,
        "used": 0,
        "avail": 0,
    }
    if here:
        used = used_bytes(storage, node)
        result.update(total=storage.total, used=used, avail=storage.total - used)
    return result


@api("GET /nodes/{node}/storage")
def node_index(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The storages of a node."""
    node, target = p["node"], p.get("target")
    if target in (node, "localhost"):
        target = None
    wanted = set(split_list(p.get("content") or ""))
    result = []
    asked = p.get("storage")
    if asked is not None and not _offers(ctx, asked, node, wanted):
        raise ParamError({"storage": "No such storage."})
    for storage in ctx.cluster.storages.values():
        if p.get("storage") not in (None, storage.name):
            continue
        if not ctx.may(
            f"/storage/{storage.name}", "Datastore.Audit", "Datastore.AllocateSpace", any_of=True
        ):
            continue
        if not _offers(ctx, storage.name, node, wanted) or (p.get("enabled") and storage.disabled):
            continue
        if target and not (
            storage.available_on(node) and storage.available_on(target) and storage.shared
        ):
            continue
        entry = {"storage": storage.name, **_figures(storage, node)}
        if entry["total"]:
            entry["used_fraction"] = entry["used"] / entry["total"]
        if p.get("format"):
            entry.update(_formats(storage))
        result.append(entry)
    return result


def _offers(ctx: Ctx, name: str, node: str, wanted: set[str]) -> bool:
    """Whether the storage is defined and, where a content is asked for, holds it and can be used on
    the node.
    """
    storage = ctx.cluster.storages.get(name)
    if storage is None:
        return False
    here = storage.available_on(node) and not storage.disabled
    return not wanted or (here and bool(wanted & set(storage.content)))


def _formats(storage: Storage) -> dict[str, Any]:
    names = [*DIR_FORMATS, "subvol"] if is_path_based(storage) else list(formats(storage))
    default = default_format(storage)
    return {
        "format": [dict.fromkeys(names, 1), default],
        "formats": {"default": default, "supported": sorted(names)},
    }


@api("GET /nodes/{node}/storage/{storage}/status")
def node_status(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One storage on a node."""
    if not _offers(ctx, p["storage"], p["node"], set(split_list(p.get("content") or ""))):
        raise ParamError({"storage": "No such storage."})
    return _figures(ctx.cluster.storages[p["storage"]], p["node"])
