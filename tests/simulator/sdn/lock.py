"""The lock of the configuration, its apply and its rollback (pve-network: API2/Network/SDN.pm)."""

from __future__ import annotations

import json
from typing import Any

from ..core.api import HANDLERS, Ctx, api
from ..core.tasks import Task
from ..errors import PveError
from ..schema.formats import split_list
from .config import APPLIED, Sdn, locked, sdn_of

BASE = "/cluster/sdn"
_PENDING = "configuration has pending changes at /usr/share/perl5/PVE/API2/Network/SDN.pm line 150."


def _names(path: str, key: str, words: str) -> None:
    entries = [{key: word} for word in words.split()]
    HANDLERS[("GET", path)] = lambda _ctx, _p: entries


_names(BASE, "id", "vnets zones controllers ipams dns fabrics")
_names(f"{BASE}/fabrics", "subdir", "fabric node all")
_names("/nodes/{node}/sdn", "name", "fabrics vnets zones")


@api(f"POST {BASE}/lock")
def lock(ctx: Ctx, p: dict[str, Any]) -> str:
    """Lock the configuration and return the token that every write needs from then on."""
    with locked(ctx, "could not acquire lock for SDN config", None) as sdn:
        if not p.get("allow-pending") and sdn.has_pending:
            raise PveError(_PENDING)
        sdn.token = ctx.cluster.uuid()
        return sdn.token


@api(f"DELETE {BASE}/lock")
def unlock(ctx: Ctx, p: dict[str, Any]) -> None:
    """Release the lock; `force` releases the lock of others."""
    if p.get("force"):
        sdn_of(ctx).token = None
        return
    with locked(ctx, "could not release lock", p.get("lock-token")) as sdn:
        sdn.token = None


def _is_released(p: dict[str, Any]) -> bool:
    return bool(p.get("lock-token")) and p.get("release-lock") in (None, 1, True)


@api(f"POST {BASE}/rollback")
def roll_back(ctx: Ctx, p: dict[str, Any]) -> None:
    """Restore the running state as the configuration."""
    with locked(ctx, "could not rollback SDN configuration", p.get("lock-token")) as sdn:
        sdn.roll_back()
        if _is_released(p):
            sdn.token = None


@api(f"PUT {BASE}")
def apply(ctx: Ctx, p: dict[str, Any]) -> str:
    """Apply the configuration; the nodes reload their networks in tasks of their own."""
    with locked(ctx, "could not commit SDN config", p.get("lock-token")) as sdn:
        sdn.apply()
        if _is_released(p):
            sdn.token = None

    sdn.not_reloaded = set(ctx.cluster.nodes)

    async def reload(task: Task) -> None:
        await task.work()
        sdn.not_reloaded.discard(task.node)

    async def reload_all(task: Task) -> None:
        ctx.cluster.check_quorum()
        await task.work()
        for node in ctx.cluster.nodes:
            # A node that cannot reload is only a warning in the log: the task ends with OK
            # (create_reload_network_worker; pvesh prints the refusal of the node).
            path = f"/nodes/{node}/network"
            fault = ctx.cluster.tasks.faults.pick("PUT", path)
            cause = fault.message if fault is not None else ""
            if not ctx.cluster.nodes[node].online:
                cause = "ssh: connect to host port 22: No route to host"
            if cause:
                task.say(f"{node}: reloading network config")
                task.say(cause)
                task.say(f"command 'pvesh set {path} --regenerate-frr 0' failed: exit code 255")
                continue
            ctx.cluster.nodes[node].vnets = _vnets_of(sdn_of(ctx), node)
            upid = ctx.cluster.tasks.start(node, "srvreload", "networking", ctx.who, reload)
            task.say(f"{node}: reloading network config")
            task.say(upid)

    return ctx.task(ctx.cluster.local, "reloadnetworkall", "", reload_all)


def _vnets_of(sdn: Sdn, node: str) -> dict[str, dict[str, Any]]:
    """The virtual networks that run on a node."""
    zones = sdn.running.get("zones", {})
    found = {}
    for name, vnet in sdn.running.get("vnets", {}).items():
        zone = zones.get(vnet["zone"], {})
        nodes = split_list(str(zone.get("nodes") or ""))
        if nodes and node not in nodes:
            continue
        found[name] = {
            "zone": vnet["zone"],
            "ipam": int(bool(zone.get("ipam"))),
            "vlanaware": int(vnet.get("vlanaware") or 0),
            "comments": vnet.get("alias"),
            "mtu": zone.get("mtu"),
        }
    return found


@api("GET /nodes/{node}/sdn/zones")
def zone_status(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The status of the running zones on a node (pve-network: SDN/Zones.pm, status)."""
    rows = []
    for name, status in sdn_of(ctx).zones_on(p["node"]).items():
        if ctx.may(f"/sdn/zones/{name}", "SDN.Audit", "SDN.Allocate", any_of=True):
            rows.append({"zone": name, "status": status})
    return rows


@api(f"GET {BASE}/dry-run")
def dry_run(ctx: Ctx, _p: dict[str, Any]) -> dict[str, Any]:
    """The difference that an apply would make to the files of a node."""
    sdn = sdn_of(ctx)
    lines = []
    for name in APPLIED:
        for ident, row in sdn.pending(name).items():
            if "pending" in row:
                change = json.dumps(row["pending"], sort_keys=True)
                lines.append(f"+# {name} {ident} {row['state']} {change}")
    return {"frr-diff": "", "interfaces-diff": "\n".join(lines)}
