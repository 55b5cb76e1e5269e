"""What a node finds: exports, shares, datastores and targets of servers, and its own pools.

Source: pve-storage, API2/Storage/Scan.pm, Storage.pm (scan_nfs, scan_cifs, scan_iscsi, scan_zfs),
PBSPlugin.pm (scan_datastores), LVMPlugin.pm (lvm_vgs) and LvmThinPlugin.pm (list_thinpools).
"""

from __future__ import annotations

import ipaddress
from typing import Any

from ..core.api import Ctx, api
from ..errors import ParamError, PveError
from ..volumes.activation import PBS_PORT, refusal_of, thin_pool_of

SCANNED = ("cifs", "iscsi", "nfs", "pbs")
Rows = list[dict[str, Any]]


def _is_address(server: str) -> bool:
    try:
        ipaddress.ip_address(server)
    except ValueError:
        return False
    return True


def _resolve(ctx: Ctx, server: str) -> None:
    if server not in ctx.cluster.servers and not _is_address(server):
        raise PveError(f"unable to resolve address for server '{server}'")


@api("GET /nodes/{node}/scan/nfs")
def scan_nfs(ctx: Ctx, p: dict[str, Any]) -> Rows:
    """The exports of a server; showmount fails without it."""
    server = p["server"]
    _resolve(ctx, server)
    if server not in ctx.cluster.servers:
        command = f"/sbin/showmount --no-headers --exports {server}"
        raise PveError(f"command '{command}' failed: exit code 1")
    return ctx.cluster.offers.get(("nfs", server), [])


@api("GET /nodes/{node}/scan/cifs")
def scan_cifs(ctx: Ctx, p: dict[str, Any]) -> Rows:
    """The shares of a server; the message is that of smbclient."""
    server = p["server"]
    _resolve(ctx, server)
    if server not in ctx.cluster.servers:
        error = "Error NT_STATUS_IO_TIMEOUT"
        raise PveError(f"do_connect: Connection to {server} failed ({error})\n")
    return ctx.cluster.offers.get(("cifs", server), [])


@api("GET /nodes/{node}/scan/pbs")
def scan_pbs(ctx: Ctx, p: dict[str, Any]) -> Rows:
    """The datastores of a backup server."""
    server = p["server"]
    if server not in ctx.cluster.servers:
        address = f"{server}:{p.get('port', PBS_PORT)}"
        reason = refusal_of(server)
        raise PveError(f"error fetching datastores - 500 Can't connect to {address} ({reason})")
    return ctx.cluster.offers.get(("pbs", server), [])


@api("GET /nodes/{node}/scan/iscsi")
def scan_iscsi(ctx: Ctx, p: dict[str, Any]) -> Rows:
    """The targets of a portal, none if it does not answer (ISCSIPlugin.pm, iscsi_discovery)."""
    host, colon, port = p["portal"].rpartition(":")
    server = host if colon and port.isdigit() else p["portal"]
    if server not in ctx.cluster.servers and not _is_address(server.strip("[]")):
        raise ParamError({"portal": f"unable to resolve portal address '{p['portal']}'"})
    return ctx.cluster.offers.get(("iscsi", server), [])


def _groups(ctx: Ctx) -> dict[str, dict[str, Any]]:
    """The volume groups of the storages."""
    found: dict[str, dict[str, Any]] = {}
    for storage in ctx.cluster.storages.values():
        if storage.kind in ("lvm", "lvmthin"):
            size = {"size": storage.total, "free": storage.total - storage.base_used, "lvcount": 1}
            found.setdefault(storage.config["vgname"], size)
    return found


@api("GET /nodes/{node}/scan/lvm")
def scan_lvm(ctx: Ctx, _p: dict[str, Any]) -> Rows:
    """The volume groups of a node."""
    groups = _groups(ctx)
    return [{"vg": name, **groups[name]} for name in sorted(groups)]


@api("GET /nodes/{node}/scan/lvmthin")
def scan_lvmthin(ctx: Ctx, p: dict[str, Any]) -> Rows:
    """The thin pools of a volume group; lvs fails without the group."""
    if p["vg"] not in _groups(ctx):
        raise PveError(f"command '/sbin/lvs {p['vg']}' failed: exit code 5")
    sizes = {
        thin_pool_of(storage.config): {"lv_size": storage.total, "used": storage.base_used}
        for storage in ctx.cluster.storages.values()
        if storage.kind == "lvmthin"
    }
    names = [name for name in sorted(ctx.cluster.thin_pools) if name.startswith(f"{p['vg']}/")]
    return [
        {"lv": name.partition("/")[2], "vg": p["vg"], "lv_type": "t", **sizes.get(name, {})}
        for name in names
    ]


@api("GET /nodes/{node}/scan/zfs")
def scan_zfs(ctx: Ctx, _p: dict[str, Any]) -> Rows:
    """The ZFS pools of the storages. The size is what `zfs list` calls available."""
    return [
        {
            "pool": storage.config["pool"],
            "size": storage.total - storage.base_used,
            "free": storage.total - 2 * storage.base_used,
        }
        for storage in ctx.cluster.storages.values()
        if storage.kind == "zfspool"
    ]
