# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An evaluator of firewalls of its own: it builds chains as pve-firewall does, and follows them.

Written from pve-firewall, src/PVE/Firewall.pm, without the code under test: the same functions with
the same names, and the targets of iptables. Macros, services and ICMP types are few.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any

Packet = dict[str, Any]
Match = Callable[[Packet], bool]
ALWAYS: Match = lambda _packet: True  # noqa: E731
MACROS = {
    "SSH": [{"proto": "tcp", "dport": "22"}],
    "DNS": [{"proto": "udp", "dport": "53"}, {"proto": "tcp", "dport": "53"}],
    "HTTPS": [{"proto": "tcp", "dport": "443"}],
    "Ping": [{"proto": "icmp", "dport": "echo-request"}],
}
PING6 = [{"proto": "icmpv6", "dport": "echo-request"}]
TYPES = {
    ("icmp", "echo-request"): {(8, 0)},
    ("icmp", "echo-reply"): {(0, 0)},
    ("icmp", "destination-unreachable"): {(3, code) for code in range(16)},
    ("icmp", "fragmentation-needed"): {(3, 4)},
    ("icmp", "time-exceeded"): {(11, 0), (11, 1)},
    ("icmpv6", "echo-request"): {(128, 0)},
    ("icmpv6", "destination-unreachable"): {(1, code) for code in range(7)},
    ("icmpv6", "time-exceeded"): {(3, 0), (3, 1)},
    ("icmpv6", "packet-too-big"): {(2, 0)},
    ("icmpv6", "router-solicitation"): {(133, 0)},
    ("icmpv6", "router-advertisement"): {(134, 0)},
    ("icmpv6", "neighbor-solicitation"): {(135, 0)},
    ("icmpv6", "neighbor-advertisement"): {(136, 0)},
}


class Broken(Exception):
    """A rule for which pve-firewall writes a warning."""


class Ruleset:
    """The chains of one IP version."""

    def __init__(self, version: int, cluster: dict[str, Any]) -> None:
        self.version = version
        self.cluster = cluster
        self.chains: dict[str, list[tuple[Match, str]]] = {}
        self.add("SET-MARK", ALWAYS, "MARK 1")
        self._standard_chains()

    def add(self, chain: str, match: Match, target: str) -> None:
        self.chains.setdefault(chain, []).append((match, target))

    def _standard_chains(self) -> None:
        net = "224.0.0.0/4" if self.version == 4 else "ff00::/8"
        self.add("reject", ALWAYS, "REJECT")
        for name in ("Drop", "Reject"):
            self.add(name, in_net("dest", net), "DROP")
            kinds = ["fragmentation-needed", "time-exceeded"]
            if self.version == 6:
                kinds = ["destination-unreachable", "time-exceeded", "packet-too-big"]
            proto = "icmp" if self.version == 4 else "icmpv6"
            for kind in kinds:
                self.add(name, is_type(proto, kind), "ACCEPT")
            self.add(name, lambda p: p["proto"] == "udp" and p["dport"] in (135, 445), "DROP")
        self.add("smurfs", in_net("source", "0.0.0.0/32"), "RETURN")
        self.add("smurfs", in_net("source", "224.0.0.0/4"), "DROP")

    # -- one rule ------------------------------------------------------------------------------

    def generate_rule(self, chain: str, rule: dict[str, Any], fw: Any, accept: str) -> None:
        try:
            commands = [self.match_of(one, fw) for one in self.apply_macro(rule)]
        except Broken:
            return
        target = {"ACCEPT": accept, "REJECT": "GOTO reject"}.get(rule["action"], rule["action"])
        for match in commands:
            self.add(chain, match, target)

    def apply_macro(self, rule: dict[str, Any]) -> list[dict[str, Any]]:
        if "macro" not in rule:
            return [rule]
        templates = MACROS[rule["macro"]]
        if rule["macro"] == "Ping" and self.version == 6:
            templates = PING6
        found = []
        for template in templates:
            one = {key: value for key, value in rule.items() if key != "macro"}
            for key, value in template.items():
                if one.setdefault(key, value) != value:
                    raise Broken
            found.append(one)
        return found

    def match_of(self, rule: dict[str, Any], fw: Any) -> Match:
        tests: list[Match] = []
        if "iface_match" in rule:
            tests.append(lambda p: p["iface"] == rule["iface_match"])
        for key in ("source", "dest"):
            if key in rule:
                tests.append(self.address_match(key, rule[key], fw))
        proto = rule.get("proto")
        if proto is None and ("dport" in rule or "sport" in rule):
            raise Broken
        if proto in ("icmp", "icmpv6"):
            kind = rule.get("icmp-type") or rule.get("dport")
            tests.append(is_type(proto, kind) if kind else lambda p: p["proto"] == proto)
        elif proto is not None:
            tests.append(lambda p: p["proto"] == proto)
            for key in ("dport", "sport"):
                if key in rule:
                    tests.append(port_match(key, rule[key]))
        return lambda p: all(test(p) for test in tests)

    def address_match(self, key: str, text: str, fw: Any) -> Match:
        places = [one for one in (fw, self.cluster) if one]
        if text.startswith(("dc/", "+dc/")):
            places = [self.cluster]
        if text.startswith(("guest/", "+guest/")):
            places = [fw] if fw else []
        name = text.lstrip("+").rpartition("/")[2]
        if text.startswith("+"):
            for place in places:
                if name in place["ipset"]:
                    return self.set_match(key, place["ipset"][name], place)
            raise Broken
        if text[0].isalpha():
            for place in places:
                if name.lower() in place["aliases"]:
                    return in_net(key, place["aliases"][name.lower()])
            raise Broken
        matches = [in_net(key, part) for part in text.split(",")]
        return lambda p: any(match(p) for match in matches)

    def set_match(self, key: str, members: list[tuple[str, bool]], place: Any) -> Match:
        """The kernel's hash:net: the member with the longest prefix decides."""
        known: dict[Any, bool] = {}
        for cidr, nomatch in members:
            if cidr[0].isalpha() and ":" not in cidr:
                found = place["aliases"].get(cidr) or self.cluster["aliases"].get(cidr)
                if found is None:
                    continue
                cidr = found
            known[ipaddress.ip_network(cidr)] = nomatch
        ordered = sorted(known, key=lambda net: -net.prefixlen)

        def match(packet: Packet) -> bool:
            for net in ordered:
                if packet[key] in net:
                    return not known[net]
            return False

        return match

    # -- chains --------------------------------------------------------------------------------

    def group_chains(self, group: str, direction: str) -> str:
        chain = f"GROUP-{group}-{direction}"
        if chain not in self.chains:
            self.add(chain, ALWAYS, "MARK 0")
            for rule in self.cluster["groups"].get(group, []):
                if rule["type"] == direction and rule["enable"] and self.is_version(rule, None):
                    self.generate_rule(chain, rule, None, "GOTO SET-MARK")
        return chain

    def is_version(self, rule: dict[str, Any], fw: Any) -> bool:
        """Whether verify_rule gives the rule this IP version, or none."""
        versions = set()
        if rule.get("proto") in ("icmp", "icmpv6"):
            versions.add(4 if rule["proto"] == "icmp" else 6)
        for key in ("source", "dest"):
            text = rule.get(key, "")
            if not text or text.startswith("+"):
                continue
            if text[0].isalpha():
                name = text.rpartition("/")[2].lower()
                found = None
                if not text.startswith("dc/") and fw:
                    found = fw["aliases"].get(name)
                if not text.startswith("guest/") and found is None:
                    found = self.cluster["aliases"].get(name)
                if found is None:
                    return False
                text = found
            versions.add(ipaddress.ip_network(text.split(",")[0].partition("-")[0]).version)
        return not versions or versions == {self.version}

    def rules(self, chain: str, rules: Any, fw: Any, direction: str, accept: str) -> None:
        for rule in rules:
            if not rule["enable"] or not self.is_version(rule, fw):
                continue
            iface = rule.get("iface")
            here = {**rule, "iface_match": iface} if iface else rule
            if rule["type"] == "group":
                name = self.group_chains(rule["action"], direction)
                match = (lambda p, i=iface: p["iface"] == i) if iface else ALWAYS
                self.add(chain, match, f"JUMP {name}")
                self.add(chain, lambda p: p["mark"] == 1, accept)
            elif rule["type"] == direction:
                self.generate_rule(chain, here, fw, accept)

    def ndp(self, chain: str, options: dict[str, Any], direction: str, accept: str) -> None:
        if self.version != 6 or options.get("ndp", 1) == 0:
            return
        kinds = ["router-solicitation", "neighbor-solicitation", "neighbor-advertisement"]
        if direction != "out" or options.get("radv"):
            kinds.append("router-advertisement")
        for kind in kinds:
            self.add(chain, is_type("icmpv6", kind), accept)

    def policy(self, chain: str, policy: str, accept: str) -> None:
        if policy == "ACCEPT":
            self.add(chain, ALWAYS, accept)
            return
        self.add(chain, ALWAYS, "JUMP Drop" if policy == "DROP" else "JUMP Reject")
        self.add(chain, ALWAYS, "DROP" if policy == "DROP" else "GOTO reject")

    def input_filters(self, chain: str) -> None:
        if "blacklist" in self.cluster["ipset"]:
            members = self.cluster["ipset"]["blacklist"]
            self.add(chain, self.set_match("source", members, self.cluster), "DROP")
        if self.version == 4:
            self.add(chain, ALWAYS, "JUMP smurfs")

    def tap_chain(self, guest: dict[str, Any], netid: str, direction: str) -> str:
        options, chain = guest["options"], f"tap-{direction}"
        accept = "ACCEPT" if direction == "in" else "GOTO SET-MARK"
        if direction == "in":
            self.input_filters(chain)
        if options.get("dhcp", 1) != 0:
            server, client = (67, 68) if self.version == 4 else (547, 546)
            sport, dport = (server, client) if direction == "in" else (client, server)
            self.add(
                chain,
                lambda p: (p["proto"], p["sport"], p["dport"]) == ("udp", sport, dport),
                accept,
            )
        if direction == "out":
            if self.version == 6 and not options.get("radv"):
                self.add(chain, is_type("icmpv6", "router-advertisement"), "DROP")
            self.ip_filter(chain, guest, netid)
            self.add(chain, ALWAYS, "MARK 0")
        self.ndp(chain, options, direction, accept)
        own = [one for one in guest["rules"] if one.get("iface") in (None, netid)]
        plain = [{key: one[key] for key in one if key != "iface"} for one in own]
        self.rules(chain, plain, guest, direction, accept)
        default = "DROP" if direction == "in" else "ACCEPT"
        self.policy(chain, options.get(f"policy_{direction}") or default, accept)
        return chain

    def ip_filter(self, chain: str, guest: dict[str, Any], netid: str) -> None:
        name = f"ipfilter-{netid}"
        if not guest["options"].get("ipfilter") and name not in guest["ipset"]:
            return
        members = [*guest["ipset"].get(name, []), *guest["device_ips"], ("fe80::/10", True)]
        inside = self.set_match("source", members, guest)
        self.add(chain, lambda p: not inside(p), "DROP")

    def host_chain(self, host: dict[str, Any], direction: str) -> str:
        options, chain = host["options"], f"host-{direction}"
        self.add(chain, lambda p: p["source"].is_loopback, "ACCEPT")
        self.ndp(chain, options, direction, "RETURN")
        if direction == "in":
            self.input_filters(chain)
        self.rules(chain, [*host["rules"], *self.cluster["rules"]], None, direction, "RETURN")
        self.management(chain, host, direction)
        for mine, theirs in host["rings"]:
            ends = (theirs, mine) if direction == "in" else (mine, theirs)
            self.add(chain, corosync_match(*ends), "RETURN")
        default = "DROP" if direction == "in" else "ACCEPT"
        self.policy(chain, self.cluster["options"].get(f"policy_{direction}") or default, "RETURN")
        return chain

    def management(self, chain: str, host: dict[str, Any], direction: str) -> None:
        local = self.cluster["aliases"].get("local_network", host["local_network"])
        ports = [range(8006, 8007), range(5900, 6000), range(3128, 3129), range(22, 23)]
        if direction == "in":
            ports.append(range(60000, 60051))
            members = [*self.cluster["ipset"].get("management", []), (local, False)]
            match = self.set_match("source", members, self.cluster)
        else:
            match = in_net("dest", local)
        self.add(
            chain,
            lambda p: match(p) and p["proto"] == "tcp" and any(p["dport"] in one for one in ports),
            "RETURN",
        )

    # -- following -------------------------------------------------------------------------------

    def follow(self, chain: str, packet: Packet) -> str | None:
        """The verdict of a chain; None at its end."""
        for match, target in self.chains.get(chain, []):
            if not match(packet):
                continue
            word, _space, rest = target.partition(" ")
            if word == "MARK":
                packet["mark"] = int(rest)
            elif word in ("JUMP", "GOTO"):
                verdict = self.follow(rest, packet)
                if verdict is not None or word == "GOTO":
                    return verdict
            elif word == "RETURN":
                return None
            else:
                return word
        return None


def in_net(key: str, text: str) -> Match:
    first, dash, last = text.partition("-")
    if dash:
        low, high = ipaddress.ip_address(first), ipaddress.ip_address(last)
        return lambda p: p[key].version == low.version and low <= p[key] <= high
    net = ipaddress.ip_network(text)
    return lambda p: p[key] in net


def corosync_match(source: str, dest: str) -> Match:
    def match(packet: Packet) -> bool:
        ends = (str(packet["source"]), str(packet["dest"]))
        return (
            ends == (source, dest)
            and packet["proto"] == "udp"
            and (5404 <= packet["dport"] <= 5405)
        )

    return match


def is_type(proto: str, kind: str) -> Match:
    if kind == "any":
        return lambda p: p["proto"] == proto
    if (proto, kind) not in TYPES:
        raise Broken
    return lambda p: p["proto"] == proto and p["icmp"] in TYPES[(proto, kind)]


def port_match(key: str, text: str) -> Match:
    ranges = []
    for part in text.split(","):
        first, _colon, last = part.partition(":")
        ranges.append(range(int(first), int(last or first) + 1))
    return lambda p: any(p[key] in one for one in ranges)


def accepts_guest(
    cluster: dict[str, Any], guest: dict[str, Any], nic: str, direction: str, packet: Packet
) -> bool:
    """Whether a packet passes the chain of a guest's NIC."""
    if not cluster["options"].get("enable") or not guest["options"].get("enable"):
        return True
    ruleset = Ruleset(packet["dest"].version, cluster)
    chain = ruleset.tap_chain(guest, nic, direction)
    return ruleset.follow(chain, dict(packet, mark=0)) not in ("DROP", "REJECT")


def accepts_host(
    cluster: dict[str, Any], host: dict[str, Any], direction: str, packet: Packet
) -> bool:
    """Whether a packet passes the chain of a node."""
    if not cluster["options"].get("enable") or host["options"].get("enable") == 0:
        return True
    ruleset = Ruleset(packet["dest"].version, cluster)
    chain = ruleset.host_chain(host, direction)
    return ruleset.follow(chain, dict(packet, mark=0)) not in ("DROP", "REJECT")
