"""Fabrics and their nodes (pve-network: API2/Network/SDN/Fabrics.pm and the files below it).

The rules are proxmox-ve-rs: proxmox-ve-config, src/sdn/fabric/mod.rs, which checks the whole
configuration with each write. The protocols are openfabric and ospf.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import Any

from ..core.api import Ctx, api
from ..errors import PveError
from ..schema.validate import split_property_string
from .config import Entries, Sdn, locked, sdn_of, view

BASE = "/cluster/sdn/fabrics"
FABRICS, NODES = "fabrics", "fabric_nodes"
_FABRIC_PRIVILEGES = ("SDN.Audit", "SDN.Allocate")
_NODE_PRIVILEGES = ("Sys.Audit", "Sys.Modify")
_PREFIXES = (("ip", "ip_prefix"), ("ip6", "ip6_prefix"))
# Unknown properties are ignored, as serde does.
_OPTIONS = {
    "openfabric": ("ip_prefix", "ip6_prefix", "hello_interval", "csnp_interval"),
    "ospf": ("ip_prefix", "ip6_prefix", "area"),
}
_NODE_OPTIONS = ("ip", "ip6", "interfaces")
_INTERFACE = ("name", "hello_multiplier", "ip", "ip6")


# -- reading -------------------------------------------------------------------------------------


def _fabrics(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    entries, _digest = view(ctx, FABRICS, p)
    digest = None if p.get("running") else sdn_of(ctx).file(FABRICS).digest
    rows = [
        {**entry, "digest": digest}
        for name, entry in sorted(entries.items())
        if ctx.may(f"/sdn/fabrics/{name}", *_FABRIC_PRIVILEGES, any_of=True)
    ]
    return [{key: value for key, value in row.items() if value is not None} for row in rows]


def _nodes(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes that the caller may see. The path has the ID of the section, not of the node."""
    entries, _digest = view(ctx, NODES, p)
    rows = []
    for name, entry in sorted(entries.items()):
        fabric = entry.get("fabric_id") or entry["pending"]["fabric_id"]
        may_fabric = ctx.may(f"/sdn/fabrics/{fabric}", *_FABRIC_PRIVILEGES, any_of=True)
        if may_fabric and ctx.may(f"/nodes/{name}", *_NODE_PRIVILEGES, any_of=True):
            rows.append(dict(entry))
    return rows


@api(f"GET {BASE}/all")
def list_all(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The fabrics and the nodes of all of them."""
    return {"fabrics": _fabrics(ctx, p), "nodes": _nodes(ctx, p)}


@api(f"GET {BASE}/fabric")
def list_fabrics(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The fabrics."""
    return _fabrics(ctx, p)


@api(f"GET {BASE}/fabric/{{id}}")
def read_fabric(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One fabric."""
    return dict(_fabric(sdn_of(ctx), p["id"]))


@api(f"GET {BASE}/node", f"GET {BASE}/node/{{fabric_id}}")
def list_nodes(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes, of one fabric or of all."""
    wanted = p.get("fabric_id")
    return [row for row in _nodes(ctx, p) if wanted in (None, row.get("fabric_id"))]


@api(f"GET {BASE}/node/{{fabric_id}}/{{node_id}}")
def read_node(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One node of a fabric."""
    return dict(_node(sdn_of(ctx), p["fabric_id"], p["node_id"]))


# -- fabrics -------------------------------------------------------------------------------------


@api(f"POST {BASE}/fabric")
def add_fabric(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a fabric; its prefixes become networks."""
    name, protocol = p["id"], p["protocol"]
    with _writing(ctx, "adding fabric failed", p) as sdn:
        if name in sdn.entries(FABRICS):
            raise PveError(f"fabric '{name}' already exists in config")
        if protocol == "ospf" and not p.get("area"):
            raise PveError("missing field `area`")
        entry = {"id": name, "protocol": protocol, **_given(p, _OPTIONS[protocol])}
        for _option, key in _PREFIXES:
            if key in entry:
                entry[key] = str(ipaddress.ip_network(entry[key], strict=False))
        sdn.entries(FABRICS)[name] = entry


@api(f"PUT {BASE}/fabric/{{id}}")
def update_fabric(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change a fabric."""
    with _writing(ctx, "updating fabric failed", p) as sdn:
        entry = _fabric(sdn, p["id"])
        if entry["protocol"] != p["protocol"]:
            raise PveError("node has a different protocol than the referenced fabric")
        entry.update(_given(p, _OPTIONS[p["protocol"]]))
        _delete(entry, p, {key for key in _OPTIONS[p["protocol"]] if key != "area"})


@api(f"DELETE {BASE}/fabric/{{id}}")
def delete_fabric(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a fabric that nothing uses, with its nodes."""
    name = p["id"]
    with _writing(ctx, "deleting fabric failed", p) as sdn:
        for own, entry in list(sdn.entries(NODES).items()):
            node = entry["node_id"]
            if entry["fabric_id"] == name:
                if not ctx.may(f"/nodes/{node}", "Sys.Modify"):
                    text = f"permission check failed: missing 'Sys.Modify' on node {node}"
                    raise PveError(text)
                del sdn.entries(NODES)[own]
        for kind, type_, noun in (
            ("controllers", "evpn", "EVPN controller"),
            ("zones", "vxlan", "VXLAN zone"),
        ):
            for user, entry in sdn.entries(kind).items():
                if entry["type"] == type_ and entry.get("fabric") == name:
                    raise PveError(f'this fabric is still used in the {noun} "{user}"')
        _fabric(sdn, name)
        del sdn.entries(FABRICS)[name]


# -- nodes ---------------------------------------------------------------------------------------


@api(f"POST {BASE}/node/{{fabric_id}}")
def add_node(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a node to a fabric."""
    fabric, node = p["fabric_id"], p["node_id"]
    with _writing(ctx, "adding node failed", p) as sdn:
        if _fabric(sdn, fabric)["protocol"] != p["protocol"]:
            raise PveError("node has a different protocol than the referenced fabric")
        if f"{fabric}_{node}" in sdn.entries(NODES):
            raise PveError(f"node '{node}' already exists in config for fabric {fabric}")
        ids = {"fabric_id": fabric, "node_id": node, "protocol": p["protocol"]}
        entry = {**ids, "interfaces": [], **_given(p, _NODE_OPTIONS)}
        sdn.entries(NODES)[f"{fabric}_{node}"] = entry


@api(f"PUT {BASE}/node/{{fabric_id}}/{{node_id}}")
def update_node(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change a node of a fabric; a list of interfaces replaces the former one."""
    with _writing(ctx, "updating node failed", p) as sdn:
        entry = _node(sdn, p["fabric_id"], p["node_id"])
        if entry["protocol"] != p["protocol"]:
            raise PveError("node has a different protocol than the referenced fabric")
        entry.update(_given(p, _NODE_OPTIONS))
        _delete(entry, p, set(_NODE_OPTIONS))
        entry.setdefault("interfaces", [])


@api(f"DELETE {BASE}/node/{{fabric_id}}/{{node_id}}")
def delete_node(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a node from a fabric."""
    with _writing(ctx, "deleting node failed", p) as sdn:
        _node(sdn, p["fabric_id"], p["node_id"])
        del sdn.entries(NODES)[f"{p['fabric_id']}_{p['node_id']}"]


# -- rules ---------------------------------------------------------------------------------------


@contextmanager
def _writing(ctx: Ctx, attempted: str, p: dict[str, Any]) -> Iterator[Sdn]:
    """Hold the configuration during a change, and refuse a result that is not valid."""
    with locked(ctx, attempted, p.get("lock-token")) as sdn:
        sdn.file(FABRICS).check_digest(p.get("digest"))
        yield sdn
        _validate(sdn)


def _given(p: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    found = {name: p[name] for name in names if p.get(name) is not None}
    if "interfaces" in found:
        found["interfaces"] = [_interface(p["protocol"], text) for text in found["interfaces"]]
    for name in ("ip", "ip6"):
        if name in found:
            found[name] = str(ipaddress.ip_address(found[name]))
    return found


def _interface(protocol: str, text: str) -> str:
    """The property string as Rust writes it: known keys in the order of the structure."""
    parts = split_property_string({}, text)
    if "name" not in parts:
        raise PveError("missing field `name`")
    known = ("name", "ip") if protocol == "ospf" else _INTERFACE
    return ",".join(f"{key}={parts[key]}" for key in known if key in parts)


def _delete(entry: dict[str, Any], p: dict[str, Any], allowed: set[str]) -> None:
    for name in p.get("delete") or ():
        if name not in allowed:
            raise PveError(f"unknown variant `{name}`")
        entry.pop(name, None)


def _fabric(sdn: Sdn, name: str) -> dict[str, Any]:
    if name not in sdn.entries(FABRICS):
        raise PveError(f"fabric '{name}' does not exist in configuration")
    return sdn.entries(FABRICS)[name]


def _node(sdn: Sdn, fabric: str, node: str) -> dict[str, Any]:
    _fabric(sdn, fabric)
    if f"{fabric}_{node}" not in sdn.entries(NODES):
        raise PveError(f"node '{node}' does not exist in fabric '{fabric}'")
    return sdn.entries(NODES)[f"{fabric}_{node}"]


def _validate(sdn: Sdn) -> None:
    fabrics, nodes = sdn.entries(FABRICS), sdn.entries(NODES)
    for one, other in combinations(fabrics.values(), 2):
        for family, (_option, key) in zip(("IP", "IPv6"), _PREFIXES, strict=True):
            mine, theirs = one.get(key), other.get(key)
            if mine and theirs and _network(mine).overlaps(_network(theirs)):
                noun = "IPv4" if family == "IP" else family
                raise PveError(
                    f"{family} prefix {theirs} in fabric '{other['id']}' overlaps with {noun}"
                    f" prefix {mine} in fabric '{one['id']}'"
                )
    areas = [_area(one["area"]) for one in fabrics.values() if one["protocol"] == "ospf"]
    if len(areas) != len(set(areas)):
        raise PveError("duplicate OSPF area")
    _validate_interfaces(nodes)
    for name, fabric in fabrics.items():
        _validate_fabric(fabric, [one for one in nodes.values() if one["fabric_id"] == name])


def _area(text: str) -> int:
    try:
        return int(ipaddress.IPv4Address(int(text) if str(text).isdigit() else text))
    except ValueError:
        raise PveError("Area is not a number, nor an ip address") from None


def _network(text: str) -> Any:
    return ipaddress.ip_network(text)


def _validate_interfaces(nodes: Entries) -> None:
    seen = set()
    for node in nodes.values():
        for text in node["interfaces"]:
            place = (node["node_id"], split_property_string({}, text)["name"])
            if place in seen:
                raise PveError("interface is already in use by another fabric")
            seen.add(place)


def _validate_fabric(fabric: dict[str, Any], nodes: list[dict[str, Any]]) -> None:
    name, protocol = fabric["id"], fabric["protocol"]
    for option, key in _PREFIXES:
        for node in nodes:
            _validate_address(name, node, (option, node.get(option)), fabric.get(key))
        addresses = [node[option] for node in nodes if option in node]
        if len(addresses) != len(set(addresses)):
            raise PveError(f"fabric {name} contains nodes with duplicated IPs")
    for node in nodes:
        if "ip" not in node and (protocol == "ospf" or "ip6" not in node):
            raise PveError(f"node '{name}_{node['node_id']}' does not have an IP configured")
        if protocol == "ospf" and "ip6" in node:
            raise PveError("IPv6 is currently not supported for protocol ospf")
    if "ip_prefix" not in fabric and (protocol == "ospf" or "ip6_prefix" not in fabric):
        raise PveError(f"fabric '{name}' does not have an IP prefix configured")
    if protocol == "ospf" and "ip6_prefix" in fabric:
        raise PveError("IPv6 is currently not supported for protocol ospf")


def _validate_address(
    name: str, node: dict[str, Any], address: tuple[str, str | None], prefix: str | None
) -> None:
    _option, own = address
    if own and not prefix:
        text = f"fabric '{name}' does not have an IP prefix configured for the node IP {own}"
        raise PveError(text)
    if prefix and not own:
        node_id = f"{name}_{node['node_id']}"
        text = f"node '{node_id}' does not have an IP configured for this fabric prefix {prefix}"
        raise PveError(text)
    if own and prefix and ipaddress.ip_address(own) not in _network(prefix):
        raise PveError(f"node IP {own} is outside the IP prefix {prefix} of the fabric")
