"""Virtual networks of zones (pve-network: API2/Network/SDN/Vnets.pm, the plugins of zones)."""

from __future__ import annotations

from typing import Any

from ..cluster.sections import SectionType
from ..core.api import Ctx, api
from ..errors import ParamError, PveError
from ..schema.formats import split_list
from .config import Sdn, locked, sdn_of, view

BASE = "/cluster/sdn/vnets"
_TYPE = SectionType(
    "vnet", frozenset({"zone"}), frozenset({"tag", "alias", "vlanaware", "isolate-ports"})
)
_LOOKUP = (
    "cannot lookup undefined type! at /usr/share/perl5/PVE/API2/Network/SDN/Vnets.pm line 326."
)
_LARGEST_VLAN = 4096
_LARGEST_VXLAN = 16777216


def need_vnet(ctx: Ctx, name: str, *privileges: str) -> dict[str, Any]:
    """The configured network, if the caller has one of the privileges on it."""
    found: dict[str, Any] | None = sdn_of(ctx).entries("vnets").get(name)
    if found is None:
        raise PveError(f"sdn vnet '{name}' does not exist")
    ctx.need(f"/sdn/zones/{found['zone']}/{name}", *privileges, any_of=True)
    return found


@api(f"GET {BASE}")
def listing(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The networks that the caller may see."""
    entries, digest = view(ctx, "vnets", p)
    rows = []
    for name, entry in entries.items():
        zone = entry.get("zone") or entry["pending"]["zone"]
        if ctx.may(f"/sdn/zones/{zone}/{name}", "SDN.Audit", "SDN.Allocate", any_of=True):
            rows.append({**entry, "vnet": name, "digest": digest})
    return rows


@api(f"GET {BASE}/{{vnet}}")
def read(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One network."""
    need_vnet(ctx, p["vnet"], "SDN.Audit", "SDN.Allocate")
    entries, digest = view(ctx, "vnets", p)
    if p["vnet"] not in entries:
        raise PveError(f"sdn vnet '{p['vnet']}' does not exist")
    return {**entries[p["vnet"]], "vnet": p["vnet"], "digest": digest}


@api(f"POST {BASE}")
def create(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a network to a zone; it does not run yet."""
    name, token = p.pop("vnet"), p.pop("lock-token", None)
    p.pop("type", None)
    ctx.cluster.check_quorum()
    with locked(ctx, "create sdn vnet object failed", token) as sdn:
        entry = _TYPE.check(p, create=True)
        if name in sdn.entries("vnets"):
            raise PveError(f"sdn vnet object ID '{name}' already defined")
        sdn.entries("vnets")[name] = entry
        _check(sdn, name)


@api(f"PUT {BASE}/{{vnet}}")
def update(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change a network; the change does not run yet."""
    name, token = p.pop("vnet"), p.pop("lock-token", None)
    digest, delete = p.pop("digest", None), split_list(p.pop("delete", None) or "")
    p.pop("type", None)
    need_vnet(ctx, name, "SDN.Allocate")
    with locked(ctx, "update sdn vnet object failed", token) as sdn:
        sdn.file("vnets").check_digest(digest)
        options = _TYPE.check(p, create=False)
        entry = sdn.entries("vnets")[name]
        zone = entry["zone"]
        _TYPE.delete(entry, delete, p)
        entry.update(options)
        if entry["zone"] != zone and subnets_of(sdn, name):
            raise ParamError({"zone": "can't change zone if subnets exist"})
        _check(sdn, name)


@api(f"DELETE {BASE}/{{vnet}}")
def delete(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a network without subnets; it runs until the next apply."""
    need_vnet(ctx, p["vnet"], "SDN.Allocate")
    with locked(ctx, "delete sdn vnet object failed", p.get("lock-token")) as sdn:
        if subnets_of(sdn, p["vnet"]):
            raise ParamError({"vnet": "Can't delete vnet if subnets exists"})
        del sdn.entries("vnets")[p["vnet"]]


def subnets_of(sdn: Sdn, vnet: str) -> list[str]:
    """The subnets of a network by their IDs."""
    return [name for name, entry in sdn.entries("subnets").items() if entry["vnet"] == vnet]


def _check(sdn: Sdn, name: str) -> None:
    """Refuse a tag that the zone cannot have (the plugins' vnet_update_hook)."""
    vnet = sdn.entries("vnets")[name]
    zone = sdn.entries("zones").get(vnet["zone"])
    if zone is None:
        raise PveError(_LOOKUP)
    if zone["type"] == "simple":
        if vnet.get("tag") is not None:
            raise ParamError({"tag": "vlan tag is not allowed on simple zone"})
    elif zone["type"] in ("vxlan", "evpn"):
        _check_vxlan(sdn, name, vnet, zone)
    else:
        _check_vlan(sdn, name, vnet, zone)
    if vnet.get("vlanaware") and subnets_of(sdn, name):
        raise ParamError({"vlanaware": "vlanaware vnet is not compatible with subnets"})


def _check_vlan(sdn: Sdn, name: str, vnet: dict[str, Any], zone: dict[str, Any]) -> None:
    tag, inner = vnet.get("tag"), zone["type"] == "qinq"
    if tag is None and not inner:
        raise ParamError({"tag": "missing vlan tag"})
    if tag is not None and int(tag) > _LARGEST_VLAN:
        text = "VLAN tag maximal value is 4096" if inner else "vlan tag max value is 4096"
        raise ParamError({"tag": text})
    for other, entry in sdn.entries("vnets").items():
        if other == name or entry["zone"] != vnet["zone"] or entry.get("tag") != tag:
            continue
        place = f"zone {vnet['zone']} vnet {other}" if inner else f"vnet {other}"
        if tag is None:
            raise ParamError({"tag": f"tag-less vnet already exists in {place}"})
        raise ParamError({"tag": f"tag {tag} already exist in {place}"})


def _check_vxlan(sdn: Sdn, name: str, vnet: dict[str, Any], zone: dict[str, Any]) -> None:
    tag = vnet.get("tag")
    if tag is None:
        raise ParamError({"tag": "missing vxlan tag"})
    if int(tag) > _LARGEST_VXLAN:
        raise ParamError({"tag": "vxlan tag max value is 16777216"})
    if zone["type"] == "evpn" and vnet.get("vlanaware"):
        raise ParamError({"vlan-aware": "vlan-aware option can't be enabled with evpn"})
    for other, entry in sdn.entries("vnets").items():
        place = sdn.entries("zones").get(entry["zone"], {})
        is_peer = other != name and place.get("type") in ("vxlan", "evpn")
        if is_peer and entry.get("tag") == tag:
            text = f"vxlan tag {tag} already exist in vnet {other} in zone {entry['zone']} "
            raise ParamError({"tag": text})
