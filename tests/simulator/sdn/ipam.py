"""Addresses that the address management of PVE gives out.

Source: pve-network, SDN/SubnetPlugin.pm (on_update_hook), SDN/Subnets.pm, SDN/Ipams/PVEPlugin.pm
and API2/Network/SDN/Ipams.pm. A guest gets its address when it is created (qemu-server:
QemuServer/Network.pm, create_ifaces_ipams_ips), here when a client reads the addresses.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Any

from ..core.api import Ctx, api
from ..errors import PveError
from ..schema.validate import split_property_string
from .config import Sdn, sdn_of

_IPS = "/cluster/sdn/vnets/{vnet}/ips"
_NO_SUBNET = "at /usr/share/perl5/PVE/Network/SDN/Subnets.pm line 115."
_BUILT_IN = "pve"
_MAC = re.compile(r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}")
_NIC = re.compile(r"net\d+")
Addresses = dict[str, dict[str, Any]]


def cidr_of(name: str) -> str:
    """The network of the ID of a subnet."""
    _zone, network, mask = name.split("-", 2)
    return f"{network}/{mask}"


def _is_managed(sdn: Sdn, zone: str) -> bool:
    ipam = sdn.entries("zones").get(zone, {}).get("ipam")
    return sdn.entries("ipams").get(str(ipam), {}).get("type") == _BUILT_IN


def keep_gateway(sdn: Sdn, name: str, before: dict[str, Any] | None) -> None:
    """Add a subnet with its gateway, or change the gateway, after a write."""
    zone, entry = name.partition("-")[0], sdn.entries("subnets")[name]
    if not _is_managed(sdn, zone):
        return
    addresses = sdn.addresses.setdefault(zone, {}).setdefault(cidr_of(name), {})
    old, new = (before or {}).get("gateway"), entry.get("gateway")
    if old != new and old:
        addresses.pop(old, None)
    if old != new and new:
        if not addresses.get(new, {"gateway": 1}).get("gateway"):
            raise PveError(f"IP '{new}' already exist")
        addresses[new] = {"gateway": 1}


def forget_subnet(ctx: Ctx, sdn: Sdn, name: str) -> None:
    """Remove a subnet; refused while addresses beside the gateway are in use."""
    zone, cidr = name.partition("-")[0], cidr_of(name)
    if not _is_managed(sdn, zone):
        return
    _give_out(ctx, sdn)
    if zone not in sdn.addresses:
        raise PveError(f"zone '{zone}' doesn't exist in IPAM DB")
    if cidr not in sdn.addresses[zone]:
        raise PveError(f"subnet '{cidr}' doesn't exist in IPAM DB")
    used = [one for one in sdn.addresses[zone][cidr].values() if not one.get("gateway")]
    if used:
        raise PveError(f"cannot delete subnet '{cidr}', not empty")
    del sdn.addresses[zone][cidr]


# -- guests --------------------------------------------------------------------------------------


def _nics(ctx: Ctx) -> Iterator[tuple[int, str, str, str]]:
    """Each NIC: VMID and name of its guest, bridge and MAC address."""
    for guest in sorted(ctx.cluster.guests(), key=lambda one: one.vmid):
        for key, value in guest.conf.items():
            mac, bridge = _MAC.search(str(value)), re.search(r"bridge=([^,]+)", str(value))
            if _NIC.fullmatch(key) and mac and bridge:
                name = guest.conf.get("name") or guest.conf.get("hostname") or ""
                yield guest.vmid, str(name), bridge[1], mac[0]


def _subnets_of(sdn: Sdn, vnet: str) -> list[tuple[str, dict[str, Any]]]:
    running = sorted(sdn.running.get("subnets", {}).items())
    return [(name, entry) for name, entry in running if entry.get("vnet") == vnet]


def _give_out(ctx: Ctx, sdn: Sdn) -> None:
    """Give each NIC on a virtual network with DHCP an address, and release all other addresses."""
    seen = set()
    for vmid, name, bridge, mac in _nics(ctx):
        seen.add(mac)
        zone = sdn.entries("zones").get(str(sdn.entries("vnets").get(bridge, {}).get("zone")), {})
        if not zone.get("ipam") or not zone.get("dhcp"):
            continue
        for subnet, entry in _subnets_of(sdn, bridge):
            known = sdn.addresses.get(subnet.partition("-")[0], {}).get(cidr_of(subnet))
            if known is not None and not any(one.get("mac") == mac for one in known.values()):
                lease = {"mac": mac, "hostname": name, "vmid": vmid}
                _take_next(known, entry, lease)
    for subnets in sdn.addresses.values():
        for addresses in subnets.values():
            gone = [ip for ip, one in addresses.items() if "vmid" in one and one["mac"] not in seen]
            for ip in gone:
                del addresses[ip]


def _take_next(addresses: Addresses, subnet: dict[str, Any], lease: dict[str, Any]) -> None:
    for text in subnet.get("dhcp-range", []):
        ends = split_property_string({}, text)
        first = ipaddress.ip_address(ends["start-address"])
        last = ipaddress.ip_address(ends["end-address"])
        for number in range(int(first), int(last) + 1):
            ip = str(ipaddress.ip_address(number))
            if ip not in addresses:
                addresses[ip] = lease
                return


# -- calls ---------------------------------------------------------------------------------------


@api("GET /cluster/sdn/ipams/{ipam}/status")
def status(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The addresses in use in zones with DHCP."""
    sdn = sdn_of(ctx)
    if p["ipam"] not in sdn.entries("ipams"):
        raise PveError(f"sdn '{p['ipam']}' does not exist")
    _give_out(ctx, sdn)
    rows = []
    for name, subnet in sorted(sdn.running.get("subnets", {}).items()):
        zone, vnet = name.partition("-")[0], subnet["vnet"]
        settings = sdn.running.get("zones", {}).get(zone, {})
        if settings.get("ipam") != p["ipam"] or not settings.get("dhcp"):
            continue
        if not ctx.may(f"/sdn/zones/{zone}/{vnet}", "SDN.Audit", "SDN.Allocate", any_of=True):
            continue
        place = {"zone": zone, "subnet": cidr_of(name), "vnet": vnet}
        for ip, one in sdn.addresses.get(zone, {}).get(cidr_of(name), {}).items():
            rows.append({**one, **place, "ip": ip})
    return rows


def _addresses(sdn: Sdn, vnet: str, ip: str) -> Addresses:
    """The addresses of the running subnet with this address; an empty one if nothing manages it."""
    for name, _entry in _subnets_of(sdn, vnet):
        if ip and ipaddress.ip_address(ip) in ipaddress.ip_network(cidr_of(name)):
            zone = name.partition("-")[0]
            return sdn.addresses.get(zone, {}).get(cidr_of(name), {})
    raise PveError(f"can't find any subnet for ip {ip} {_NO_SUBNET}")


def _add(addresses: Addresses, ip: str, lease: dict[str, Any]) -> None:
    if ip in addresses:
        raise PveError(f"IP '{ip}' already exist")
    addresses[ip] = {key: value for key, value in lease.items() if value}


@api(f"POST {_IPS}")
def add_address(ctx: Ctx, p: dict[str, Any]) -> None:
    """Take an address."""
    addresses = _addresses(sdn_of(ctx), p["vnet"], p["ip"])
    _add(addresses, p["ip"], {"mac": p.get("mac")})


@api(f"DELETE {_IPS}")
def delete_address(ctx: Ctx, p: dict[str, Any]) -> None:
    """Give an address back."""
    addresses = _addresses(sdn_of(ctx), p["vnet"], p["ip"])
    if addresses.pop(p["ip"], None) is None:
        raise PveError(f"IP '{p['ip']}' does not exist in IPAM DB")


@api(f"PUT {_IPS}")
def move_address(ctx: Ctx, p: dict[str, Any]) -> None:
    """Give the owner of a MAC address another address."""
    sdn = sdn_of(ctx)
    old = _address_of(sdn, p["vnet"], str(p.get("mac") or ""), ipaddress.ip_address(p["ip"]))
    _addresses(sdn, p["vnet"], old).pop(old)
    lease = {"mac": p.get("mac"), "vmid": p.get("vmid")}
    try:
        _add(_addresses(sdn, p["vnet"], p["ip"]), p["ip"], lease)
    except PveError:
        _add(_addresses(sdn, p["vnet"], old), old, lease)
        raise


def _address_of(sdn: Sdn, vnet: str, mac: str, like: Any) -> str:
    """The address of a MAC address with the same version, empty if it has none."""
    for name, _entry in _subnets_of(sdn, vnet):
        known = sdn.addresses.get(name.partition("-")[0], {}).get(cidr_of(name), {})
        for ip, one in known.items():
            is_like = ipaddress.ip_address(ip).version == like.version
            if one.get("mac") == mac and is_like:
                return ip
    return ""
