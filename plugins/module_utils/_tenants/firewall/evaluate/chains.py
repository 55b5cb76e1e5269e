# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rules that a packet passes, with the built-in rules, in Proxmox VE's order (pure).

Source: pve-firewall, src/PVE/Firewall.pm: generate_tap_rules_direction, ruleset_create_vm_chain,
enable_host_firewall, ruleset_chain_add_input_filters, ruleset_add_chain_policy and
pve_std_chains_conf.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..model import Firewall, IpSet
from ..rules.model import Rule
from .model import (
    EvaluatedRule,
    FirewallCluster,
    FirewallGuest,
    FirewallNic,
    FirewallNode,
    RuleNames,
)

IN, OUT = "in", "out"
_BUILT_IN = "built-in"
_POLICY = {IN: "DROP", OUT: "ACCEPT"}
_MANAGEMENT_PORTS = ("8006", "5900:5999", "3128", "22", "60000:60050")
_LOCAL_PORTS = ("8006", "22", "5900:5999", "3128")
_COROSYNC_PORTS = "5404:5405"
_MULTICAST = ("224.0.0.0/4", "ff00::/8")
_CRITICAL_ICMP = (
    ("icmp", "fragmentation-needed"),
    ("icmp", "time-exceeded"),
    ("icmpv6", "destination-unreachable"),
    ("icmpv6", "time-exceeded"),
    ("icmpv6", "packet-too-big"),
)


def is_off(options: Mapping[str, str], default: str) -> bool:
    """Return whether option `enable` is off."""
    return options.get("enable", default) == "0"


def guest_chain(
    cluster: FirewallCluster, guest: FirewallGuest, nic: FirewallNic, direction: str
) -> tuple[EvaluatedRule, ...]:
    """Return the rules for a NIC of a guest; none if they are not in force.

    The firewall of the node does not decide about its guests.
    """
    options = guest.firewall.options
    is_unused = is_off(cluster.firewall.options, "0") or is_off(options, "0")
    if is_unused or not nic.is_filtered:
        return ()
    filtered = _with_ip_filter(guest, nic)
    names = RuleNames(filtered, cluster.firewall)
    links: list[EvaluatedRule] = []
    if direction == IN:
        links += _input_filters(cluster, {})
    links += _built_in(names, _guest_rules(options, direction))
    if direction == OUT and f"ipfilter-{nic.name}" in filtered.ip_sets:
        filter_link = EvaluatedRule(
            _BUILT_IN, Rule(OUT, "DROP"), names, outside=f"guest/ipfilter-{nic.name}"
        )
        links.append(filter_link)
    links += _built_in(names, _neighbor_rules(options, direction))
    for position, rule in enumerate(guest.firewall.rules):
        if rule.iface and rule.iface != nic.name:
            continue
        plain = replace(rule, iface="")
        links += _declared("guest", position, plain, direction, names, cluster)
    policy = options.get(f"policy_{direction}") or _POLICY[direction]
    return (*links, *_policy(names, direction, policy))


def node_chain(
    cluster: FirewallCluster, node: FirewallNode, direction: str
) -> tuple[EvaluatedRule, ...]:
    """Return the rules for packets of the node itself; none if its firewall is off."""
    options = node.firewall.options
    if is_off(cluster.firewall.options, "0") or is_off(options, "1"):
        return ()
    # The alias local_network is in the IP set management. An alias of the cluster with this name
    # replaces the network of the node (compile).
    known = {name.lower(): value for name, value in cluster.firewall.aliases.items()}
    cidr, _comment = known.get("local_network", (node.local_network or "127.0.0.0/8", ""))
    aliases = {**cluster.firewall.aliases, "local_network": (cidr, "")}
    management = cluster.firewall.ip_sets.get("management", IpSet())
    members = {**management.members, cidr: (False, "")}
    sets = {**cluster.firewall.ip_sets, "management": IpSet(management.comment, members)}
    firewall = replace(cluster.firewall, aliases=aliases, ip_sets=sets)
    cluster = FirewallCluster(firewall, cluster.groups)
    names = RuleNames(Firewall(), cluster.firewall)
    links = list(_built_in(names, [Rule(direction, "ACCEPT", iface="lo")]))
    links += _built_in(names, _neighbor_rules(options, direction))
    if direction == IN:
        links += _input_filters(cluster, options)
    links += _built_in(names, [Rule(direction, "ACCEPT", proto="igmp")])
    for origin, firewall in (("node", node.firewall), ("cluster", cluster.firewall)):
        for position, rule in enumerate(firewall.rules):
            links += _declared(origin, position, rule, direction, names, cluster)
    links += _built_in(names, _management_rules(direction))
    links += _built_in(names, _corosync_rules(node, direction))
    policy = cluster.firewall.options.get(f"policy_{direction}") or _POLICY[direction]
    return (*links, *_policy(names, direction, policy))


def _built_in(names: RuleNames, rules: Iterator[Rule] | list[Rule]) -> Iterator[EvaluatedRule]:
    for rule in rules:
        yield EvaluatedRule(_BUILT_IN, rule, names)


def _declared(
    origin: str,
    position: int,
    rule: Rule,
    direction: str,
    names: RuleNames,
    cluster: FirewallCluster,
) -> Iterator[EvaluatedRule]:
    """Yield a rule, or the rules of its security group, which use only names of the cluster."""
    if not rule.enable:
        return
    if rule.type != "group":
        if rule.type == direction:
            yield EvaluatedRule(origin, rule, names, position)
        return
    group_names = RuleNames(Firewall(), cluster.firewall)
    for place, one in enumerate(cluster.groups.get(rule.action, ())):
        if one.type == direction and one.enable:
            inner = replace(one, iface=rule.iface)
            yield EvaluatedRule(f"group {rule.action}", inner, group_names, place)


def _input_filters(
    cluster: FirewallCluster, node_options: Mapping[str, str]
) -> Iterator[EvaluatedRule]:
    names = RuleNames(Firewall(), cluster.firewall)
    if "blacklist" in cluster.firewall.ip_sets:
        yield EvaluatedRule(_BUILT_IN, Rule(IN, "DROP", source="+dc/blacklist"), names)
    if node_options.get("nosmurfs", "1") != "0":
        yield EvaluatedRule(_BUILT_IN, Rule(IN, "DROP", source=_MULTICAST[0]), names)


def _guest_rules(options: Mapping[str, str], direction: str) -> Iterator[Rule]:
    if options.get("dhcp", "1") != "0":
        ports = (("67", "68"), ("547", "546"))
        nets = ("0.0.0.0/0", "::/0")
        for (server, client), net in zip(ports, nets, strict=True):
            sport, dport = (server, client) if direction == IN else (client, server)
            yield Rule(direction, "ACCEPT", proto="udp", sport=sport, dport=dport, source=net)
    if direction == OUT and options.get("radv", "0") == "0":
        yield Rule(OUT, "DROP", proto="icmpv6", icmp_type="router-advertisement")


def _neighbor_rules(options: Mapping[str, str], direction: str) -> Iterator[Rule]:
    if options.get("ndp", "1") == "0":
        return
    types = ["router-solicitation", "neighbor-solicitation", "neighbor-advertisement"]
    if direction == IN or options.get("radv", "0") != "0":
        types.insert(1, "router-advertisement")
    for one in types:
        yield Rule(direction, "ACCEPT", proto="icmpv6", icmp_type=one)


def _management_rules(direction: str) -> Iterator[Rule]:
    if direction == IN:
        for port in _MANAGEMENT_PORTS:
            yield Rule(IN, "ACCEPT", source="+dc/management", proto="tcp", dport=port)
        return
    for port in _LOCAL_PORTS:
        yield Rule(OUT, "ACCEPT", dest="dc/local_network", proto="tcp", dport=port)


def _corosync_rules(node: FirewallNode, direction: str) -> Iterator[Rule]:
    own = node.rings.get(node.name, ())
    for name, addresses in node.rings.items():
        if name == node.name:
            continue
        for mine, theirs in zip(own, addresses, strict=False):
            source, dest = (theirs, mine) if direction == IN else (mine, theirs)
            yield Rule(
                direction, "ACCEPT", source=source, dest=dest, proto="udp", dport=_COROSYNC_PORTS
            )


def _policy(names: RuleNames, direction: str, policy: str) -> Iterator[EvaluatedRule]:
    if policy != "ACCEPT":
        for net in _MULTICAST:
            yield EvaluatedRule(_BUILT_IN, Rule(direction, "DROP", dest=net), names)
        for proto, kind in _CRITICAL_ICMP:
            yield EvaluatedRule(
                _BUILT_IN, Rule(direction, "ACCEPT", proto=proto, icmp_type=kind), names
            )
    yield EvaluatedRule(f"policy_{direction}", Rule(direction, policy), names)


def _with_ip_filter(guest: FirewallGuest, nic: FirewallNic) -> Firewall:
    """Return the firewall of a guest with the default members of its IP filter."""
    name = f"ipfilter-{nic.name}"
    firewall = guest.firewall
    declared = firewall.ip_sets.get(name)
    if declared is None and firewall.options.get("ipfilter", "0") == "0":
        return firewall
    members = dict((declared or IpSet()).members)
    if nic.mac:
        members[_link_local(nic.mac)] = (False, "")
    members["fe80::/10"] = (True, "")
    if guest.is_container:
        members.update(dict.fromkeys(nic.addresses, (False, "")))
    return replace(firewall, ip_sets={**firewall.ip_sets, name: IpSet("", members)})


def _link_local(mac: str) -> str:
    """Return the link-local IPv6 address of a MAC address (mac_to_linklocal)."""
    parts = [int(one, 16) for one in mac.split(":")]
    parts[0] ^= 2
    number = int.from_bytes(bytes([*parts[:3], 0xFF, 0xFE, *parts[3:]]), "big")
    return str(ipaddress.IPv6Address((0xFE80 << 112) | number))
