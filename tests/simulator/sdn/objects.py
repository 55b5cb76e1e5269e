"""Zones, controllers, address managements and name servers: the same calls, other rules.

Source: pve-network, API2/Network/SDN/Zones.pm, Controllers.pm, Ipams.pm and Dns.pm, and the
plugins of each type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..cluster.sections import SectionType
from ..core.api import HANDLERS, Ctx
from ..errors import ParamError, PveError
from ..schema.formats import split_list
from .config import Sdn, locked, view

_AUDIT = ("SDN.Audit", "SDN.Allocate")
_PERL = "/usr/share/perl5/PVE/Network/SDN"
_COMMON = "nodes mtu dns reversedns dnszone ipam"


def _type(name: str, required: str, optional: str) -> SectionType:
    return SectionType(name, frozenset(required.split()), frozenset(optional.split()))


ZONES = {
    "simple": _type("simple", "", f"{_COMMON} dhcp"),
    "vlan": _type("vlan", "bridge", f"{_COMMON} bridge-disable-mac-learning"),
    "qinq": _type("qinq", "tag bridge", f"{_COMMON} bridge-disable-mac-learning vlan-protocol"),
    "vxlan": _type("vxlan", "", f"{_COMMON} peers vxlan-port fabric"),
    "evpn": _type(
        "evpn",
        "vrf-vxlan controller",
        f"{_COMMON} exitnodes exitnodes-local-routing exitnodes-primary advertise-subnets"
        " disable-arp-nd-suppression bridge-disable-mac-learning rt-import vxlan-port mac",
    ),
}
CONTROLLERS = {
    "evpn": _type("evpn", "asn", "peers fabric"),
    "bgp": _type(
        "bgp", "node asn peers", "bgp-multipath-as-path-relax ebgp ebgp-multihop loopback"
    ),
    "isis": _type("isis", "isis-domain isis-net isis-ifaces node", "loopback"),
}
IPAMS = {
    "pve": _type("pve", "", ""),
    "netbox": _type("netbox", "url token", "fingerprint"),
    "phpipam": _type("phpipam", "url token section", "fingerprint"),
}
DNS = {"powerdns": _type("powerdns", "key url", "ttl reversemaskv6 reversev6mask fingerprint")}
Check = Callable[[Ctx, Sdn, str, dict[str, Any]], None]
Use = Callable[[Sdn, str], None]


class Objects:
    """The calls for one kind of object."""

    def __init__(
        self, name: str, noun: str, types: dict[str, SectionType], check: Check, use: Use
    ) -> None:
        self.name = name
        self.noun = noun
        self.types = types
        self.check = check
        self.use = use

    def register(self) -> None:
        """Register the handlers."""
        base, one = f"/cluster/sdn/{self.name}", f"/cluster/sdn/{self.name}/{{{self.noun}}}"
        HANDLERS[("GET", base)] = self.listing
        HANDLERS[("POST", base)] = self.create
        HANDLERS[("GET", one)] = self.read
        HANDLERS[("PUT", one)] = self.update
        HANDLERS[("DELETE", one)] = self.delete

    def _failed(self, verb: str) -> str:
        return f"{verb} sdn {self.noun} object failed"

    def listing(self, ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
        """The objects that the caller may see."""
        entries, digest = view(ctx, self.name, p)
        rows = []
        for name, entry in entries.items():
            is_meant = p.get("type") in (None, entry.get("type"))
            if is_meant and ctx.may(f"/sdn/{self.name}/{name}", *_AUDIT, any_of=True):
                rows.append({**entry, self.noun: name, "digest": digest})
        return rows

    def read(self, ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
        """One object."""
        entries, digest = view(ctx, self.name, p)
        name = p[self.noun]
        if name not in entries:
            raise PveError(f"sdn '{name}' does not exist")
        return {**entries[name], self.noun: name, "digest": digest}

    def create(self, ctx: Ctx, p: dict[str, Any]) -> None:
        """Add an object, which does not run yet."""
        name, token = p.pop(self.noun), p.pop("lock-token", None)
        kind = self.types.get(p.pop("type"))
        if kind is None:
            raise PveError("cannot lookup undefined type!")
        entry = kind.check(p, create=True)
        ctx.cluster.check_quorum()
        with locked(ctx, self._failed("create"), token) as sdn:
            if name in sdn.entries(self.name):
                raise PveError(f"sdn {self.noun} object ID '{name}' already defined")
            sdn.entries(self.name)[name] = entry
            self.check(ctx, sdn, name, p)

    def update(self, ctx: Ctx, p: dict[str, Any]) -> None:
        """Change an object; the change does not run yet."""
        name, token = p.pop(self.noun), p.pop("lock-token", None)
        digest, delete = p.pop("digest", None), split_list(p.pop("delete", None) or "")
        with locked(ctx, self._failed("update"), token) as sdn:
            sdn.file(self.name).check_digest(digest)
            entry = sdn.entries(self.name).get(name)
            if entry is None:
                raise PveError(f"sdn '{name}' does not exist")
            kind = self.types[entry["type"]]
            options = kind.check(p, create=False)
            kind.delete(entry, delete, p)
            entry.update(options)
            self.check(ctx, sdn, name, p)

    def delete(self, ctx: Ctx, p: dict[str, Any]) -> None:
        """Remove an object that nothing uses; it runs until the next apply."""
        name = p[self.noun]
        # The text of address managements says `zone` (API2/Network/SDN/Ipams.pm).
        noun = "zone" if self.noun == "ipam" else self.noun
        with locked(ctx, f"delete sdn {noun} object failed", p.get("lock-token")) as sdn:
            if name not in sdn.entries(self.name):
                raise PveError(f"sdn '{name}' does not exist")
            self.use(sdn, name)
            del sdn.entries(self.name)[name]
            if self.name == "ipams":
                sdn.entries("ipams").setdefault("pve", {"type": "pve"})


# -- rules ---------------------------------------------------------------------------------------


def _check_zone(ctx: Ctx, sdn: Sdn, name: str, given: dict[str, Any]) -> None:
    for option in ("dns", "reversedns"):
        server = given.get(option)
        if server and server not in sdn.entries("dns"):
            raise ParamError({option: f"{server} don't exist"})
    if given.get("dnszone") and not given.get("dns"):
        raise ParamError({"dnszone": "missing dns server"})
    ipam = given.get("ipam")
    if ipam and ipam not in sdn.entries("ipams"):
        raise ParamError({"ipam": f"{ipam} not existing"})
    zone = sdn.entries("zones")[name]
    if zone["type"] == "vxlan" and bool(zone.get("peers")) is bool(zone.get("fabric")):
        text = "must have exactly one of peers / fabric defined"
        raise ParamError({"peers": text, "fabric": text})
    if zone["type"] == "evpn":
        _check_evpn(ctx, sdn, name, zone)


def _check_evpn(ctx: Ctx, sdn: Sdn, name: str, zone: dict[str, Any]) -> None:
    controller = sdn.entries("controllers").get(zone["controller"])
    if controller is None:
        place = f"{_PERL}/Zones/EvpnPlugin.pm line 354."
        raise PveError(f"controller {zone['controller']} don't exist at {place}")
    if controller["type"] != "evpn":
        raise PveError(f"{zone['controller']} is not a evpn controller type")
    for other, entry in sdn.entries("zones").items():
        if other != name and entry.get("vrf-vxlan") == zone["vrf-vxlan"]:
            raise PveError(f"vrf-vxlan {zone['vrf-vxlan']} is already declared in {other}")
    zone.setdefault("mac", ctx.cluster.mac())


def _use_zone(sdn: Sdn, name: str) -> None:
    for vnet, entry in sdn.entries("vnets").items():
        if entry["zone"] == name:
            raise PveError(f"zone {name} is used by vnet {vnet}")


def _check_controller(_ctx: Ctx, sdn: Sdn, name: str, _given: dict[str, Any]) -> None:
    controllers = sdn.entries("controllers")
    entry = controllers[name]
    if entry["type"] != "evpn":
        return
    if any(other["type"] == "evpn" for key, other in controllers.items() if key != name):
        raise PveError("only 1 global evpn controller can be defined")
    if bool(entry.get("peers")) is bool(entry.get("fabric")):
        place = f"{_PERL}/Controllers/EvpnPlugin.pm line 498."
        raise PveError(f"must have exactly one of peers / fabric defined at {place}")


def _use_controller(sdn: Sdn, name: str) -> None:
    for zone, entry in sdn.entries("zones").items():
        if entry.get("controller") == name:
            place = f"{_PERL}/Controllers/EvpnPlugin.pm line 476."
            raise PveError(f"controller {name} is used by {zone} at {place}")


def _check_server(ctx: Ctx, sdn: Sdn, name: str, _given: dict[str, Any]) -> None:
    """Refuse a server that does not answer."""
    for kind in ("ipams", "dns"):
        entry = sdn.entries(kind).get(name, {})
        url = str(entry.get("url") or "")
        host = url.partition("://")[2].partition("/")[0]
        if not host or host.partition(":")[0] in ctx.cluster.servers:
            continue
        text = f"Invalid response from server: 500 Can't connect to {host} (Connection refused)"
        if kind == "dns":
            raise PveError(f"dns api error: {text}")
        raise PveError(f"Can't connect to {entry['type']} api: {text}")


def _unused(_sdn: Sdn, _name: str) -> None:
    """PVE does not look who uses it."""


for _objects in (
    Objects("zones", "zone", ZONES, _check_zone, _use_zone),
    Objects("controllers", "controller", CONTROLLERS, _check_controller, _use_controller),
    Objects("ipams", "ipam", IPAMS, _check_server, _unused),
    Objects("dns", "dns", DNS, _check_server, _unused),
):
    _objects.register()
