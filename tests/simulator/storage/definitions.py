"""Storage definitions: kind, content and usage on a node of each storage."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ..cluster.resources import plugin_content
from ..core.api import Ctx, api
from ..core.state import SHARED_KINDS, Storage
from ..errors import ParamError, PveError
from ..schema.formats import split_list
from ..volumes.activation import activate, is_active
from ..volumes.space import used_bytes
from ..volumes.volumes import DIR_FORMATS, default_format, formats, is_path_based
from .hooks import added, take_secrets, updated
from .kinds import DEFAULT_CONTENT, REQUIRED, check_known, checked_content, fixed, known

_PREFIX = "storage failed: "
# The definition of this name if none is stored (Plugin.pm, parse_config).
LOCAL = {
    "path": "/var/lib/vz",
    "priority": "0",
    "prune-backups": "keep-all=1",
    "content": "backup,images,iso,rootdir,snippets,vztmpl",
}
_MOUNTED = ("nfs", "cifs", "cephfs")


def make_storage(name: str, kind: str, config: dict[str, str], total: int, used: int) -> Storage:
    """A storage with its defaults filled in."""
    if "content" not in config:
        config["content"] = DEFAULT_CONTENT.get(kind, "images")
    if kind in _MOUNTED and "path" not in config:
        config["path"] = f"/mnt/pve/{name}"
    if name == "local":
        config.pop("nodes", None)
    return Storage(name, kind, config, total, used)


def _digest(ctx: Ctx) -> str:
    text = json.dumps(
        {name: [s.kind, s.config] for name, s in ctx.cluster.storages.items()}, sort_keys=True
    )
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def _shown(ctx: Ctx, storage: Storage) -> dict[str, Any]:
    """The definition as read from the file: booleans and numbers are numbers.

    Source: pve-common, SectionConfig.pm, check_value and write_config; Plugin.pm, parse_config.
    """
    types = ctx.sim.schema.methods[("POST", "/storage")].props
    result: dict[str, Any] = {"storage": storage.name, "type": storage.kind}
    for key, value in storage.config.items():
        if key == "disable" and value != "1":
            continue
        kind = "integer" if key == "priority" else types.get(key, {}).get("type")
        result[key] = _number(value) if kind in ("boolean", "integer", "number") else value
    result["content"] = plugin_content(storage)
    if storage.kind in SHARED_KINDS:
        result["shared"] = 1
    return result


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdigit() else float(text)


@api("GET /storage")
def index(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The definitions that the caller may see."""
    digest = _digest(ctx)
    return [
        {**_shown(ctx, storage), "digest": digest}
        for storage in ctx.cluster.storages.values()
        if p.get("type") in (None, storage.kind)
        and ctx.may(
            f"/storage/{storage.name}", "Datastore.Audit", "Datastore.AllocateSpace", any_of=True
        )
    ]


@api("GET /storage/{storage}")
def read(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One definition."""
    return {**_shown(ctx, ctx.cluster.storage(p["storage"])), "digest": _digest(ctx)}


def _answer(storage: Storage, returned: dict[str, Any] | None) -> dict[str, Any]:
    answer: dict[str, Any] = {"storage": storage.name, "type": storage.kind}
    if returned is not None:
        answer["config"] = returned
    return answer


@contextmanager
def _prefixed(verb: str) -> Iterator[None]:
    """An error under the lock of the file begins with the operation."""
    try:
        yield
    except PveError as error:
        raise PveError(f"{verb} {_PREFIX}{error.message}") from None


@api("POST /storage")
def create(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """Define a storage; if it is enabled on this node, it must be usable."""
    cluster = ctx.cluster
    name, kind = p.pop("storage"), p.pop("type")
    if not p.get("nodes"):
        p.pop("nodes", None)
    secrets = take_secrets(kind, p, [])
    config = _checked(kind, p)
    with _prefixed("create"):
        cluster.check_cfs("storage_cfg")
        if name in cluster.storages:
            raise PveError(f"storage ID '{name}' already defined")
        returned = added(ctx, kind, config, secrets)
        local = next(iter(cluster.storages.values()), None)
        total, used = (local.total, local.base_used) if local else (100 << 30, 1 << 30)
        storage = make_storage(name, kind, config, total, used)
        if not storage.disabled and storage.available_on(cluster.local):
            activate(cluster, storage)
    cluster.storages[name] = storage
    cluster.revision += 1
    return _answer(storage, returned)


def _checked(kind: str, p: dict[str, Any]) -> dict[str, str]:
    """The options of a new definition. Raises PveError (SectionConfig.pm, check_config)."""
    for key in sorted(p):
        check_known(kind, key)
    config = {key: _value(kind, key, value) for key, value in p.items() if value is not None}
    for key in REQUIRED.get(kind, ()):
        if key not in config:
            raise PveError(f"missing value for required option '{key}'")
    if kind in ("dir", "btrfs"):
        path = config["path"]
        if not re.fullmatch(r"/[-/a-zA-Z0-9_.@]+", path):
            raise PveError(f"illegal path for directory storage: {path}")
        parts = [part for part in path.split("/") if part not in ("", ".")]
        config["path"] = "/" + "/".join(parts)
    return config


def _value(kind: str, key: str, value: Any) -> str:
    text = str(int(value)) if isinstance(value, bool) else str(value)
    if "\n" in text or "\r" in text:
        raise PveError("property contains a line feed")
    if key == "content":
        return checked_content(kind, text)
    if key == "nodes":
        return ",".join(dict.fromkeys(split_list(text)))
    return text


def _changed(storage: Storage, key: str, value: Any) -> str:
    if key in fixed(storage.kind):
        raise PveError(f"can't change value of fixed parameter '{key}'")
    if value is None:
        raise PveError(f"got undefined value for option '{key}'")
    check_known(storage.kind, key)
    return _value(storage.kind, key, value)


def _check_removable(storage: Storage, key: str, config: dict[str, str]) -> None:
    if key not in known(storage.kind):
        raise PveError(f"no such option '{key}'")
    if key in REQUIRED.get(storage.kind, ()):
        raise PveError(f"unable to delete required option '{key}'")
    if key in fixed(storage.kind):
        raise PveError(f"unable to delete fixed option '{key}'")
    if key in config:
        raise PveError(f"cannot set and delete property '{key}' at the same time!")


@api("PUT /storage/{storage}")
def update(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """Change a definition."""
    name = p.pop("storage")
    digest, delete = p.pop("digest", None), split_list(p.pop("delete", None) or "")
    with _prefixed("update"):
        ctx.cluster.check_cfs("storage_cfg")
        if digest and digest != _digest(ctx):
            raise PveError(
                "detected modified configuration - file changed by other user? Try again."
            )
        storage = ctx.cluster.storage(name)
        secrets = take_secrets(storage.kind, p, delete)
        config = {key: _changed(storage, key, p[key]) for key in sorted(p)}
        for key in delete:
            _check_removable(storage, key, config)
        returned = updated(ctx, storage.kind, config, secrets)
    for key in delete:
        storage.config.pop(key, None)
    storage.config.update(config)
    make_storage(name, storage.kind, storage.config, 0, 0)  # fills in the defaults
    ctx.cluster.revision += 1
    return _answer(storage, returned)


@api("DELETE /storage/{storage}")
def delete(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a definition; the volumes stay, but are no longer visible."""
    cluster, name = ctx.cluster, p["storage"]
    with _prefixed("delete"):
        cluster.check_cfs("storage_cfg")
        storage = cluster.storage(name)
        bases = (other.config.get("base", "") for other in cluster.storages.values())
        if any(base.partition(":")[0] == name for base in bases):
            raise PveError("can't remove storage - storage is used as base of another storage")
    del cluster.storages[name]
    if name == "local":
        cluster.storages[name] = replace(storage, kind="dir", config=dict(LOCAL))
    ctx.acl.entries.pop(f"/storage/{name}", None)
    for pool in cluster.pools.values():
        pool["storage"].pop(name, None)
    ctx.acl.changed()
    cluster.revision += 1


# -- on a node -----------------------------------------------------------------------------------


def _is_enabled(storage: Storage, node: str) -> bool:
    return not storage.disabled and storage.available_on(node)


def _figures(ctx: Ctx, storage: Storage, node: str) -> dict[str, Any]:
    here = _is_enabled(storage, node)
    active = here and is_active(ctx.cluster, storage)
    result: dict[str, Any] = {
        "type": storage.kind,
        "content": plugin_content(storage),
        "shared": 1 if storage.shared else 0,
        "enabled": 1 if here else 0,
        "active": 1 if active else 0,
        "total": 0,
        "used": 0,
        "avail": 0,
    }
    if active:
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
        if not _offers(ctx, storage.name, node, wanted) or (
            p.get("enabled") and not _is_enabled(storage, node)
        ):
            continue
        if target and not (
            storage.available_on(node) and storage.available_on(target) and storage.shared
        ):
            continue
        entry = {"storage": storage.name, **_figures(ctx, storage, node)}
        if entry["total"]:
            entry["used_fraction"] = entry["used"] / entry["total"]
        if p.get("format"):
            entry.update(_formats(storage))
        result.append(entry)
    return result


def _offers(ctx: Ctx, name: str, node: str, wanted: set[str]) -> bool:
    """Whether the storage is defined and, if a content is requested, holds it and is usable on the
    node.
    """
    storage = ctx.cluster.storages.get(name)
    if storage is None:
        return False
    return not wanted or (_is_enabled(storage, node) and bool(wanted & set(storage.content)))


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
    return _figures(ctx, ctx.cluster.storages[p["storage"]], p["node"])
