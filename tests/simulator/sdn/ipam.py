"""Addresses that the address management of PVE gives out.

Source: pve-network, SDN/SubnetPlugin.pm (on_update_hook), SDN/Subnets.pm, SDN/Ipams/PVEPlugin.pm
and API2/Network/SDN/Ipams.pm. A VM gets its address when it is created, without an error if
none is left (qemu-server: QemuServer/Network.pm, create_ifaces_ipams_ips); here it gets the address
when a client reads the addresses or a guest starts. A start, a hotplug and the clone of a container
fail if no address is left.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Any

from ..config.checks import TAKE_ADDRESS
from ..core.api import Ctx, api
from ..core.state import Guest
from ..errors import PveError
from ..schema.validate import split_property_string
from .config import Sdn, sdn_of

_IPS = "/cluster/sdn/vnets/{vnet}/ips"
_NO_SUBNET = "at /usr/share/perl5/PVE/Network/SDN/Subnets.pm line 115."
_NONE_LEFT = "at /usr/share/perl5/PVE/Network/SDN/Vnets.pm line 154."
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
    """Give each NIC on a virtual network with DHCP its addresses, and release all other ones."""
    nics = list(_nics(ctx))
    present = {mac for _vmid, _name, _bridge, mac in nics}
    for subnets in sdn.addresses.values():
        for addresses in subnets.values():
            gone = [
                ip for ip, one in addresses.items() if "vmid" in one and one["mac"] not in present
            ]
            for ip in gone:
                del addresses[ip]
    for vmid, name, bridge, mac in nics:
        _take(sdn, bridge, {"mac": mac, "hostname": name, "vmid": vmid})


def _take(sdn: Sdn, vnet: str, lease: dict[str, Any]) -> int | None:
    """Give a NIC an address of each version that its network has; return the version of which no
    address is left (SDN/Vnets.pm, add_dhcp_mapping and add_next_free_cidr).
    """
    zone = str(sdn.entries("vnets").get(vnet, {}).get("zone"))
    settings = sdn.entries("zones").get(zone, {})
    if not settings.get("ipam") or not settings.get("dhcp"):
        return None
    for version in (4, 6):
        subnets = [
            (addresses, cidr_of(name), entry)
            for name, entry in _subnets_of(sdn, vnet)
            for addresses in [sdn.addresses.get(zone, {}).get(cidr_of(name))]
            if addresses is not None and ipaddress.ip_network(cidr_of(name)).version == version
        ]
        held = [one for addresses, _cidr, _entry in subnets for one in addresses.values()]
        if not subnets or any(one.get("mac") == lease["mac"] for one in held):
            continue
        if not any(_take_next(addresses, cidr, entry, lease) for addresses, cidr, entry in subnets):
            return version
    return None


def _take_next(
    addresses: Addresses, cidr: str, subnet: dict[str, Any], lease: dict[str, Any]
) -> bool:
    """Take the next free address of the ranges, or of the subnet if it has no ranges
    (SDN/Subnets.pm, add_next_free_ip).
    """
    whole = ipaddress.ip_network(cidr)
    ranges = [(whole[0] + (whole.version == 4), whole[-1] - (whole.version == 4))]
    if subnet.get("dhcp-range"):
        ends = [split_property_string({}, text) for text in subnet["dhcp-range"]]
        ranges = [
            (ipaddress.ip_address(one["start-address"]), ipaddress.ip_address(one["end-address"]))
            for one in ends
        ]
    for first, last in ranges:
        for number in range(int(first), int(last) + 1):
            ip = str(type(first)(number))
            if ip not in addresses:
                addresses[ip] = lease
                return True
    return False


def take_address(ctx: Ctx, guest: Guest, bridge: str, mac: str) -> None:
    """Take an address for a NIC that is plugged in. Raises PveError if none is left."""
    sdn = sdn_of(ctx)
    _give_out(ctx, sdn)
    name = str(guest.conf.get("name") or guest.conf.get("hostname") or "")
    version = _take(sdn, bridge, {"mac": mac, "hostname": name, "vmid": guest.vmid})
    if version:
        zone = sdn.entries("vnets")[bridge]["zone"]
        raise PveError(f"can't find any free ip in zone {zone} for IPv{version} {_NONE_LEFT}")


TAKE_ADDRESS.append(take_address)


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
