"""Subnets of virtual networks (pve-network: API2/Network/SDN/Subnets.pm, SubnetPlugin.pm)."""

from __future__ import annotations

import ipaddress
from typing import Any

from ..cluster.sections import SectionType
from ..core.api import Ctx, api
from ..errors import ParamError, PveError
from ..schema.formats import split_list
from ..schema.validate import split_property_string
from .config import locked, view
from .ipam import forget_subnet, keep_gateway
from .vnets import need_vnet

BASE = "/cluster/sdn/vnets/{vnet}/subnets"
_TYPE = SectionType(
    "subnet",
    frozenset({"vnet"}),
    frozenset({"gateway", "snat", "dnszoneprefix", "dhcp-range", "dhcp-dns-server"}),
)


def _shown(name: str, entry: dict[str, Any], digest: str | None) -> dict[str, Any]:
    zone, network, mask = name.split("-", 2)
    ranges = [split_property_string({}, text) for text in entry.get("dhcp-range", [])]
    row = {key: value for key, value in entry.items() if key != "dhcp-range"}
    row.update(
        subnet=name,
        id=name,
        zone=zone,
        network=network,
        mask=mask,
        cidr=f"{network}/{mask}",
        digest=digest,
    )
    row["dhcp-range"] = ranges
    return row


@api(f"GET {BASE}")
def listing(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The subnets of a network."""
    need_vnet(ctx, p["vnet"], "SDN.Audit", "SDN.Allocate")
    entries, digest = view(ctx, "subnets", p)
    return [
        _shown(name, entry, digest)
        for name, entry in sorted(entries.items())
        if entry.get("vnet") == p["vnet"]
    ]


@api(f"GET {BASE}/{{subnet}}")
def read(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One subnet."""
    need_vnet(ctx, p["vnet"], "SDN.Audit", "SDN.Allocate")
    entries, digest = view(ctx, "subnets", p)
    if p["subnet"] not in entries:
        raise PveError(f"sdn subnet '{p['subnet']}' does not exist")
    if entries[p["subnet"]].get("vnet") != p["vnet"]:
        raise ParamError({"vnet": "wrong vnet"})
    return _shown(p["subnet"], entries[p["subnet"]], digest)


@api(f"POST {BASE}")
def create(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a subnet; its ID has the zone in front."""
    cidr, token = p.pop("subnet"), p.pop("lock-token", None)
    p.pop("type", None)
    vnet = need_vnet(ctx, p["vnet"], "SDN.Allocate")
    ctx.cluster.check_quorum()
    name = f"{vnet['zone']}-{cidr.replace('/', '-')}"
    with locked(ctx, "create sdn subnet object failed", token) as sdn:
        entry = _TYPE.check(p, create=True)
        if name in sdn.entries("subnets"):
            raise PveError(f"sdn subnet object ID '{name}' already defined")
        sdn.entries("subnets")[name] = entry
        _check(cidr, entry, vnet)
        keep_gateway(sdn, name, None)


@api(f"PUT {BASE}/{{subnet}}")
def update(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change a subnet; the change does not run yet."""
    name, token = p.pop("subnet"), p.pop("lock-token", None)
    digest, delete = p.pop("digest", None), split_list(p.pop("delete", None) or "")
    p.pop("type", None)
    vnet = need_vnet(ctx, p["vnet"], "SDN.Allocate")
    with locked(ctx, "update sdn subnet object failed", token) as sdn:
        entry = sdn.entries("subnets").get(name)
        if entry is None:
            raise PveError(f"sdn subnet '{name}' does not exist")
        sdn.file("subnets").check_digest(digest)
        before = dict(entry)
        options = _TYPE.check(p, create=False)
        _TYPE.delete(entry, delete, p)
        entry.update(options)
        _zone, network, mask = name.split("-", 2)
        _check(f"{network}/{mask}", entry, vnet)
        keep_gateway(sdn, name, before)


@api(f"DELETE {BASE}/{{subnet}}")
def delete(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a subnet; succeeds if it does not exist."""
    need_vnet(ctx, p["vnet"], "SDN.Allocate")
    with locked(ctx, "delete sdn subnet object failed", p.get("lock-token")) as sdn:
        if p["subnet"] in sdn.entries("subnets"):
            forget_subnet(ctx, sdn, p["subnet"])
            del sdn.entries("subnets")[p["subnet"]]


def _check(cidr: str, entry: dict[str, Any], vnet: dict[str, Any]) -> None:
    """Refuse what lies outside of the subnet (SubnetPlugin.pm, on_update_hook)."""
    if vnet.get("vlanaware"):
        raise ParamError({"vnet": "you can't add a subnet on a vlanaware vnet"})
    network = ipaddress.ip_network(cidr, strict=False)
    gateway = entry.get("gateway")
    is_single = network.version == 4 and network.prefixlen == 32
    if gateway and not is_single and ipaddress.ip_address(gateway) not in network:
        raise ParamError({"gateway": f"{gateway} is not in subnet {cidr}"})
    taken: list[tuple[Any, Any]] = []
    for text in entry.get("dhcp-range", []):
        ends = split_property_string({}, text)
        start = ipaddress.ip_address(ends["start-address"])
        end = ipaddress.ip_address(ends["end-address"])
        _check_range(cidr, network, start, end)
        if any(start <= last and first <= end for first, last in taken):
            raise ParamError({"dhcp-range": "dhcp ranges must not overlap"})
        taken.append((start, end))


def _check_range(cidr: str, network: Any, start: Any, end: Any) -> None:
    if start > end:
        text = f"start-address {start} must be smaller than end-address {end}"
        raise ParamError({"dhcp-range": text})
    for name, address in (("start-address", start), ("end-address", end)):
        if address not in network:
            raise ParamError({"dhcp-range": f"{name} {address} is not in subnet {cidr}"})
