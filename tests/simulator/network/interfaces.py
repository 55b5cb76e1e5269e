"""The network configuration of nodes: the active one, and the one of the next reload."""

from __future__ import annotations

import difflib
import ipaddress
import time
from typing import Any

from ..core.api import Ctx, Result, api
from ..core.state import NodeInfo
from ..core.tasks import Task
from ..errors import ParamError, PveError
from ..schema.formats import split_list
from .network_file import PORTS, ports, written

_BRIDGES = ("bridge", "OVSBridge")
_FILTERS = {"any_bridge": _BRIDGES, "any_local_bridge": _BRIDGES, "include_sdn": _BRIDGES}


def make_bridge(name: str, priority: int, cidr: str | None = None, **more: Any) -> dict[str, Any]:
    """A bridge in force."""
    iface: dict[str, Any] = {
        "type": "bridge",
        "active": 1,
        "autostart": 1,
        "bridge_fd": "0",
        "bridge_ports": "",
        "bridge_stp": "off",
        "families": ["inet"],
        "method": "manual",
        "method6": "manual",
        "priority": priority,
        **more,
    }
    if cidr:
        address, _dummy, mask = cidr.partition("/")
        iface.update(method="static", address=address, netmask=mask, cidr=cidr)
    return iface


def physical(priority: int) -> dict[str, Any]:
    """A network card that is there."""
    return {
        "type": "eth",
        "active": 1,
        "exists": 1,
        "families": ["inet"],
        "method": "manual",
        "method6": "manual",
        "priority": priority,
    }


def _current(node: NodeInfo) -> dict[str, dict[str, Any]]:
    return node.ifaces if node.new_ifaces is None else node.new_ifaces


def _text(ifaces: dict[str, dict[str, Any]]) -> list[str]:
    lines = ["auto lo", "iface lo inet loopback", ""]
    for name, iface in ifaces.items():
        if iface.get("autostart"):
            lines.append(f"auto {name}")
        lines.append(f"iface {name} inet {iface['method']}")
        for key in (
            "cidr",
            "gateway",
            "bridge_ports",
            "bridge_stp",
            "bridge_fd",
            "bridge_vids",
            "mtu",
            "slaves",
            "bond_mode",
        ):
            if iface.get(key) not in (None, ""):
                label = {"cidr": "address", "slaves": "bond-slaves"}.get(key, key.replace("_", "-"))
                lines.append(f"\t{label} {iface[key]}")
        lines.append("")
    return lines


def _stamp() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())


def _write_pending(node: NodeInfo, ifaces: dict[str, dict[str, Any]]) -> None:
    """Write the file of the pending configuration."""
    node.new_ifaces = ifaces
    node.new_ifaces_written = _stamp()


def _changes(node: NodeInfo) -> str:
    """The difference with the times at which the files were written (pve-common: PVE/INotify.pm,
    diff: `diff -b -N -u`).
    """
    diff = difflib.unified_diff(
        _text(node.ifaces),
        _text(node.new_ifaces or {}),
        "/etc/network/interfaces",
        "/etc/network/interfaces.new",
        node.ifaces_written,
        node.new_ifaces_written,
        lineterm="",
    )
    return "\n".join(diff) + "\n"


@api("GET /nodes/{node}/network")
def index(ctx: Ctx, p: dict[str, Any]) -> Any:
    """The interfaces; with changes that wait for a reload as a diff beside them."""
    node = ctx.cluster.nodes[p["node"]]
    kind = p.get("type")
    allowed = _FILTERS.get(kind, (kind,)) if kind else None
    result = [
        {**iface, "iface": name}
        for name, iface in _current(node).items()
        if (allowed is None or iface["type"] in allowed) and _visible(ctx, name, iface)
    ]
    if kind in ("any_bridge", "include_sdn", "vnet"):
        result += _vnets(ctx, node)
    if node.new_ifaces is None:
        return result
    return Result(result, {"changes": _changes(node)})


def _vnets(ctx: Ctx, node: NodeInfo) -> list[dict[str, Any]]:
    """The virtual networks that run and that the caller may use (pve-network: SDN.pm,
    get_local_vnets).
    """
    rows = []
    for name, vnet in node.vnets.items():
        path = f"/sdn/zones/{vnet['zone']}/{name}"
        if ctx.may(path, "SDN.Audit", "SDN.Use", any_of=True):
            row = {key: value for key, value in vnet.items() if key not in ("zone", "mtu")}
            rows.append({"iface": name, "type": "vnet", "active": "1", **row})
    return rows


def _visible(ctx: Ctx, name: str, iface: dict[str, Any]) -> bool:
    if iface["type"] not in _BRIDGES:
        return True
    return ctx.may(f"/sdn/zones/localnetwork/{name}", "SDN.Audit", "SDN.Use", any_of=True)


@api("GET /nodes/{node}/network/{iface}")
def read(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One interface."""
    found = _current(ctx.cluster.nodes[p["node"]]).get(p["iface"])
    if found is None:
        raise ParamError({"iface": "interface does not exist"})
    return dict(found)


def _addresses(p: dict[str, Any]) -> None:
    """Split a CIDR, and check that an IPv6 address is valid for a host."""
    for six in ("", "6"):
        if p.get(f"cidr{six}"):
            for key in ("address", "netmask"):
                if p.get(f"{key}{six}"):
                    raise ParamError({f"{key}{six}": f"{key}{six} conflicts with cidr{six}"})
            address, _dummy, mask = p.pop(f"cidr{six}").partition("/")
            p[f"address{six}"], p[f"netmask{six}"] = address, mask
    if p.get("address6"):
        kind = _kind_of_address(p["address6"])
        if kind:
            text = f"{p['address6']} with type '{kind}', cannot be used as host IPv6 address."
            raise ParamError({"address6": text})


def _kind_of_address(address: str) -> str | None:
    """The purpose of an address, unless it is for hosts."""
    found = ipaddress.IPv6Address(address)
    kinds = {
        "UNSPECIFIED": found.is_unspecified,
        "LOOPBACK": found.is_loopback,
        "MULTICAST": found.is_multicast,
    }
    return next((kind for kind, it_is in kinds.items() if it_is), None)


def _check_alone(ifaces: dict[str, dict[str, Any]], name: str, p: dict[str, Any]) -> None:
    """There is one default gateway, and a port belongs to one interface."""
    others = {other: iface for other, iface in ifaces.items() if other != name}
    for key, label in (("gateway", "Default gateway"), ("gateway6", "Default ipv6 gateway")):
        holder = next((other for other, iface in others.items() if iface.get(key)), None)
        if p.get(key) and holder:
            raise ParamError({key: f"{label} already exists on interface '{holder}'."})
    wanted = set(ports(p))
    for other, iface in others.items():
        for port in ports(iface):
            if port in wanted:
                option = next(key for key in PORTS if p.get(key))
                raise ParamError({option: f"{port} is already used on interface '{other}'."})


def _settings(p: dict[str, Any]) -> dict[str, Any]:
    """The settings of the parameters: the methods of both families depend on the addresses in this
    request.
    """
    iface = {
        key: value
        for key, value in p.items()
        if key not in ("node", "iface", "delete") and value is not None
    }
    iface["method"] = "static" if iface.get("address") else "manual"
    iface["method6"] = "static" if iface.get("address6") else "manual"
    families = [name for name, six in (("inet", ""), ("inet6", "6")) if iface.get(f"address{six}")]
    iface["families"] = families or ["inet"]
    if iface.get("bridge_vids") and not split_list(iface["bridge_vids"]):
        raise ParamError({"bridge_vids": "VLAN list items are empty"})
    return iface


def _copy(node: NodeInfo) -> dict[str, dict[str, Any]]:
    return {name: dict(iface) for name, iface in _current(node).items()}


@api("POST /nodes/{node}/network")
def create(ctx: Ctx, p: dict[str, Any]) -> None:
    """Define an interface; it comes with the next reload."""
    node = ctx.cluster.nodes[p["node"]]
    ifaces = _copy(node)
    name = p["iface"]
    if name in ifaces:
        raise ParamError({"iface": "interface already exists"})
    _check_alone(ifaces, name, p)
    _addresses(p)
    if p["type"].startswith("OVS"):
        raise PveError("Open VSwitch is not installed (need package 'openvswitch-switch')")
    ifaces[name] = _settings(p)
    _write_pending(node, written(ifaces, name, ctx.cluster.ifupdown2))


@api("PUT /nodes/{node}/network/{iface}")
def update(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change an interface.

    Options that are not named stay, but an address is static only if it is named.
    """
    node = ctx.cluster.nodes[p["node"]]
    ifaces = _copy(node)
    name = p["iface"]
    iface = ifaces.get(name)
    if iface is None:
        raise ParamError({"iface": "interface does not exist"})
    for key in split_list(p.get("delete") or ""):
        iface.pop(key, None)
        if key in ("cidr", "cidr6"):
            six = key[4:]
            iface.pop(f"address{six}", None)
            iface.pop(f"netmask{six}", None)
    _addresses(p)
    _check_alone(ifaces, name, p)
    iface.update(_settings(p))
    _write_pending(node, written(ifaces, name, ctx.cluster.ifupdown2))


@api("DELETE /nodes/{node}/network/{iface}")
def delete(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove an interface with the next reload."""
    node = ctx.cluster.nodes[p["node"]]
    ifaces = _copy(node)
    if p["iface"] not in ifaces:
        raise ParamError({"iface": "interface does not exist"})
    del ifaces[p["iface"]]
    _write_pending(node, written(ifaces, p["iface"], ctx.cluster.ifupdown2))


@api("DELETE /nodes/{node}/network")
def revert(ctx: Ctx, p: dict[str, Any]) -> None:
    """Forget the changes that are not in force yet."""
    ctx.cluster.nodes[p["node"]].new_ifaces = None


@api("PUT /nodes/{node}/network")
def reload_network(ctx: Ctx, p: dict[str, Any]) -> str:
    """Put the changes in force."""
    node = ctx.cluster.nodes[p["node"]]
    if not ctx.cluster.ifupdown2:
        raise PveError("you need ifupdown2 to reload network configuration")

    async def work(task: Task) -> None:
        if node.new_ifaces is not None:  # the file is replaced before it is applied
            node.ifaces = node.new_ifaces
            node.ifaces_written = node.new_ifaces_written
            node.new_ifaces = None
        await task.work()
        for iface in node.ifaces.values():
            if iface.get("autostart"):
                iface["active"] = 1
                iface["exists"] = 1

    return ctx.task(p["node"], "srvreload", "networking", work)
