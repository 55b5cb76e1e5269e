"""Subscriptions of nodes. The shop knows every key but those that end with zeros only.

Source: pve-manager, API2/Subscription.pm (get, set, update, delete) and proxmox-subscription.
"""

from __future__ import annotations

import hashlib
from typing import Any

from ..core.api import Ctx, api
from ..errors import PveError

_UNKNOWN = "0000000000"
_LEVELS = {"c": "Community", "b": "Basic", "s": "Standard", "p": "Premium"}


def _keys(ctx: Ctx) -> dict[str, dict[str, Any]]:
    keys: dict[str, dict[str, Any]] = ctx.cluster.sections.setdefault("subscriptions", {})
    return keys


def _server_id(node: str) -> str:
    return hashlib.md5(node.encode(), usedforsecurity=False).hexdigest().upper()


def _checked(ctx: Ctx, key: str) -> dict[str, Any]:
    """What the shop says of a key."""
    now = int(ctx.cluster.now())
    if key.endswith(_UNKNOWN):
        return {"key": key, "status": "invalid", "message": "Unknown key", "checktime": now}
    level = key[4]
    return {
        "key": key,
        "status": "active",
        "checktime": now,
        "level": level,
        "productname": f"Proxmox VE {_LEVELS[level]} Subscription {key[3]} CPU/year",
        "regdate": "2026-01-01 00:00:00",
        "nextduedate": "2027-01-01",
        "url": "https://www.proxmox.com/en/proxmox-virtual-environment/pricing",
    }


@api("GET /nodes/{node}/subscription")
def read(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The subscription; the key and the server are shown to who may audit the node."""
    node = p["node"]
    entry = _keys(ctx).get(node)
    if entry is None:
        found = {"status": "notfound", "message": "There is no subscription key"}
        return {**found, "serverid": _server_id(node)}
    shown = {**entry, "serverid": _server_id(node), "sockets": ctx.cluster.nodes[node].sockets}
    if not ctx.may(f"/nodes/{node}", "Sys.Audit"):
        return {name: shown[name] for name in ("status", "level", "message") if name in shown}
    return shown


@api("PUT /nodes/{node}/subscription")
def write(ctx: Ctx, p: dict[str, Any]) -> None:
    """Set the key, which must be for enough sockets, and ask the shop."""
    key, node = p["key"].strip(), p["node"]
    sockets, own = int(key[3]), ctx.cluster.nodes[node].sockets
    if sockets < own:
        raise PveError(f"wrong number of sockets ({sockets} < {own})")
    _keys(ctx)[node] = _checked(ctx, key)


@api("POST /nodes/{node}/subscription")
def update(ctx: Ctx, p: dict[str, Any]) -> None:
    """Ask the shop again."""
    entry = _keys(ctx).get(p["node"])
    if entry is not None:
        _keys(ctx)[p["node"]] = _checked(ctx, entry["key"])


@api("DELETE /nodes/{node}/subscription")
def delete(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove the key."""
    _keys(ctx).pop(p["node"], None)
