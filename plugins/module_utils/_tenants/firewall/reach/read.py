# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the firewalls that a packet passes. Sends requests, decides nothing."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.state import read_members
from ...._foundation.core import validate
from ...._foundation.core.parallel import side_by_side
from ...._foundation.core.propstring import sub_keys
from ...._guests.kinds.kind import nics_in
from ...._guests.kinds.words import CONTAINER
from ..evaluate.model import FirewallCluster, FirewallGuest, FirewallNic, FirewallNode, NodeAddress
from ..model import Firewall
from ..read import read_firewall, rules_of
from ..rules.model import Rule
from ..scope import CLUSTER, NODE, ROOT, FirewallScope, plain_scope

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

_RINGS = 8
_MAC = re.compile(r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}")
_CIDRS = ("cidr", "cidr6")


def read_cluster(client: Client, firewall: Firewall, rules: Iterable[Rule]) -> FirewallCluster:
    """Return the cluster with the security groups that its own rules and `rules` use."""
    listed = (*firewall.rules, *rules)
    names = sorted({rule.action for rule in listed if rule.type == "group"})
    if not names:
        return FirewallCluster(firewall)
    existing = {str(row["group"]) for row in client.get(*ROOT, "groups") or ()}
    known = [name for name in names if name in existing]

    def read_one(name: str) -> tuple[Rule, ...]:
        return rules_of(client.get(*ROOT, "groups", name))

    return FirewallCluster(firewall, dict(zip(known, side_by_side(read_one, known), strict=True)))


def read_cluster_firewall(client: Client) -> Firewall:
    """Return the firewall of the cluster."""
    return read_firewall(client, plain_scope(CLUSTER, None))


def read_places(client: Client, names: Iterable[str] | None = None) -> tuple[NodeAddress, ...]:
    """Return the online nodes among these (by default, all online nodes), with their firewalls.

    The firewall of a node is on the node itself, so it cannot be read while the node is offline.
    """
    wanted = None if names is None else set(names)
    members = read_members(client)
    rings = rings_of(client.get("cluster", "config", "nodes") or ())
    online = [row for row in members if row.get("online") and row.get("ip")]
    chosen = [row for row in online if wanted is None or str(row["name"]) in wanted]

    def read_one(row: Mapping[str, Any]) -> NodeAddress:
        name, address = str(row["name"]), str(row["ip"])
        firewall = read_firewall(client, plain_scope(NODE, name))
        interfaces = client.get("nodes", name, "network") or ()
        iface, network = interface_of(interfaces, address)
        node = FirewallNode(name, firewall, network or address, rings)
        return NodeAddress(node, ipaddress.ip_address(address), iface)

    return tuple(side_by_side(read_one, chosen))


def rings_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Return the addresses of corosync on each node, by ring (pure)."""
    rings = {}
    for row in rows:
        found = [str(row.get(f"ring{number}_addr") or "") for number in range(_RINGS)]
        rings[str(row["node"])] = tuple(one for one in found if one)
    return rings


def read_guest(client: Client, scope: FirewallScope, config: Mapping[str, Any]) -> FirewallGuest:
    """Return a guest with its firewall."""
    firewall = read_firewall(client, scope)
    is_container = CONTAINER.type in scope.path
    return FirewallGuest(scope.label, firewall, nics_of(config), is_container)


def local_address(host: str, port: int) -> str:
    """Return the address from which this computer reaches a host; empty if there is no route.

    No packet is sent. Behind NAT or a proxy, Proxmox VE sees another address.
    """
    try:
        family, kind, _proto, _name, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_DGRAM
        )[0]
        with socket.socket(family, kind) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    except OSError:
        return ""


def nics_of(config: Mapping[str, Any]) -> tuple[FirewallNic, ...]:
    """Return the NICs of a VM or a container, in order."""
    nics = []
    for name in nics_in(config):
        text = str(config[name])
        parts = _parts(text)
        found = _MAC.search(text)
        addressing = {**_parts(str(config.get(f"ipconfig{name[3:]}") or "")), **parts}
        addresses = [addressing.get(key, "").partition("/")[0] for key in ("ip", "ip6")]
        mac = found.group() if found else ""
        own = tuple(address for address in addresses if validate.is_address(address))
        nics.append(FirewallNic(name, parts.get("firewall", "0") == "1", mac, own))
    return tuple(nics)


def _parts(text: str) -> dict[str, str]:
    pairs = sub_keys(text)
    return {key.strip(): value.strip() for key, value in pairs.items()}


def interface_of(rows: Iterable[Mapping[str, Any]], address: str) -> tuple[str, str]:
    """Return the interface that has an address, and its network; empty texts if none has it."""
    wanted = ipaddress.ip_address(address)
    for row in rows:
        for key in _CIDRS:
            cidr = row.get(key)
            if cidr and ipaddress.ip_interface(str(cidr)).ip == wanted:
                return str(row["iface"]), str(ipaddress.ip_interface(str(cidr)).network)
    return "", ""
