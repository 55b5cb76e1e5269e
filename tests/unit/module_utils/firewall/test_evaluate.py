# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The evaluator of rules, compared with one that follows the chains of pve-firewall."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.evaluate.chains import (
    guest_chain,
    node_chain,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.evaluate.macros import (
    MACROS,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.evaluate.match import (
    decide,
    networks_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.evaluate.model import (
    ACCEPT,
    UNKNOWN,
    FirewallCluster,
    FirewallGuest,
    FirewallNic,
    FirewallNode,
    Packet,
    RuleNames,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.model import (
    Firewall,
    IpSet,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.rules.model import (
    Rule,
    canonical,
)
from tests.cases import cases
from tests.simulator.network import firewall_rules as simulated
from tests.unit.module_utils.firewall.reference import accepts_guest, accepts_host

EXAMPLES = cases(2000, 100)
ADDRESSES = ["10.0.0.1", "10.0.1.9", "192.168.0.5", "224.0.0.7", "127.0.0.1"]
ADDRESSES_6 = ["fd00::1", "fd00::2:1", "fe80::1234", "ff02::1"]
NETS = ["10.0.0.0/24", "10.0.0.0/8", "10.0.1.9", "192.168.0.0/16", "fd00::/64", "fd00::2:0/112"]
TARGETS = ["", "", *NETS, "10.0.0.1-10.0.1.9", "10.0.0.1,192.168.0.5", "office", "dc/office"]
TARGETS += ["guest/office", "Nowhere", "+admins", "+dc/admins", "+guest/admins", "+gone", "v6"]
PORTS = ["", "22", "53,443", "1:1024", "8006", "5405"]
SETS = st.lists(st.tuples(st.sampled_from([*NETS, "office", "absent"]), st.booleans()), max_size=4)
ALIASES = st.dictionaries(st.sampled_from(["office", "v6"]), st.sampled_from(NETS), max_size=2)


def rule_of(kinds: list[str], ifaces: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    group = {
        "type": st.just("group"),
        "action": st.sampled_from(["web", "deny", "missing"]),
        "iface": st.sampled_from(ifaces),
    }
    addresses = {"source": st.sampled_from(TARGETS), "dest": st.sampled_from(TARGETS)}
    shared = {
        "type": st.sampled_from(["in", "out"]),
        "action": st.sampled_from(["ACCEPT", "DROP", "REJECT"]),
        "iface": st.sampled_from(ifaces),
        **addresses,
    }
    ports = {"dport": st.sampled_from(PORTS), "sport": st.sampled_from(["", "", "1:60000"])}
    found = [
        st.fixed_dictionaries(shared),
        st.fixed_dictionaries({**shared, "proto": st.sampled_from(["tcp", "udp"]), **ports}),
        st.fixed_dictionaries({**shared, "macro": st.sampled_from(["SSH", "DNS", "Ping"])}),
        st.fixed_dictionaries(
            {
                **shared,
                "proto": st.sampled_from(["icmp", "icmpv6"]),
                "icmp-type": st.sampled_from(["", "echo-request", "destination-unreachable"]),
            }
        ),
    ]
    if "group" in kinds:
        found.append(st.fixed_dictionaries(group))
    enabled = st.sampled_from([1, 1, 1, 0])
    return st.tuples(st.one_of(found), enabled).map(
        lambda pair: {**{key: one for key, one in pair[0].items() if one}, "enable": pair[1]}
    )


def rules(kinds: list[str], ifaces: list[str]) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(rule_of(kinds, ifaces), max_size=6)


POLICY = st.sampled_from(["", "ACCEPT", "DROP", "REJECT"])
CLUSTERS = st.fixed_dictionaries(
    {
        "options": st.fixed_dictionaries(
            {"enable": st.sampled_from([1, 1, 1, 0]), "policy_in": POLICY, "policy_out": POLICY}
        ),
        "rules": rules(["group"], ["", "", "vmbr0", "vmbr1"]),
        "aliases": ALIASES,
        "ipset": st.dictionaries(
            st.sampled_from(["admins", "blacklist", "management"]), SETS, max_size=3
        ),
        "groups": st.fixed_dictionaries({"web": rules([], [""]), "deny": rules([], [""])}),
    }
)
FLAG = st.sampled_from([0, 1])
GUESTS = st.fixed_dictionaries(
    {
        "options": st.fixed_dictionaries(
            {"enable": st.sampled_from([1, 1, 1, 0]), "policy_in": POLICY, "policy_out": POLICY},
            optional={"dhcp": FLAG, "ndp": FLAG, "radv": FLAG, "ipfilter": FLAG},
        ),
        "rules": rules(["group"], ["", "", "net0", "net1"]),
        "aliases": ALIASES,
        "ipset": st.dictionaries(st.sampled_from(["admins", "ipfilter-net0"]), SETS, max_size=2),
        "device_ips": st.just([("fe80::5054:ff:fe12:3456", False)]),
    }
)
HOSTS = st.fixed_dictionaries(
    {
        "options": st.fixed_dictionaries({}, optional={"enable": FLAG, "ndp": FLAG}),
        "rules": rules(["group"], ["", "", "vmbr0", "vmbr1"]),
        "local_network": st.sampled_from(["10.0.0.0/24", "fd00::/64"]),
        "rings": st.just([("10.0.0.1", "10.0.1.9")]),
    }
)
PAIRS = st.one_of(
    st.tuples(st.sampled_from(ADDRESSES), st.sampled_from(ADDRESSES)),
    st.tuples(st.sampled_from(ADDRESSES_6), st.sampled_from(ADDRESSES_6)),
)


@st.composite
def packets(draw: st.DrawFn) -> dict[str, Any]:
    source, dest = draw(PAIRS)
    icmp = "icmpv6" if ":" in dest else "icmp"
    proto = draw(st.sampled_from(["tcp", "tcp", "udp", icmp]))
    kinds = [(8, 0), (0, 0), (3, 4), (3, 1), (11, 0)]
    if icmp == "icmpv6":
        kinds = [(128, 0), (1, 0), (2, 0), (3, 1), (133, 0), (134, 0), (135, 0)]
    has_ports = proto in ("tcp", "udp")
    return {
        "source": ipaddress.ip_address(source),
        "dest": ipaddress.ip_address(dest),
        "proto": proto,
        "dport": draw(st.sampled_from([22, 53, 443, 8006, 5405, 67, 68])) if has_ports else 0,
        "sport": draw(st.sampled_from([50000, 60001, 68, 67])) if has_ports else 0,
        "icmp": draw(st.sampled_from(kinds)) if proto == icmp else (0, 0),
        "iface": "vmbr0",
    }


def firewall_of(one: dict[str, Any]) -> Firewall:
    members = {
        name: IpSet("", {cidr: (excluded, "") for cidr, excluded in rows})
        for name, rows in one.get("ipset", {}).items()
    }
    return Firewall(
        {key: str(value) for key, value in one["options"].items() if value != ""},
        tuple(rule_from(row) for row in one["rules"]),
        {name: (cidr, "") for name, cidr in one.get("aliases", {}).items()},
        members,
    )


def rule_from(row: dict[str, Any]) -> Rule:
    values = {key.replace("-", "_"): value for key, value in row.items()}
    return canonical({**values, "enable": bool(row["enable"])})


def cluster_of(one: dict[str, Any]) -> FirewallCluster:
    groups = {name: tuple(rule_from(row) for row in rows) for name, rows in one["groups"].items()}
    return FirewallCluster(firewall_of(one), groups)


def packet_of(one: dict[str, Any]) -> Packet:
    values = {key: value for key, value in one.items() if key != "icmp"}
    return Packet(**values, icmp_type=one["icmp"])


@settings(max_examples=EXAMPLES, deadline=None)
@given(CLUSTERS, GUESTS, packets(), st.sampled_from(["in", "out"]))
def test_a_guest_decides_as_the_chains_of_pve(
    cluster: dict[str, Any], guest: dict[str, Any], packet: dict[str, Any], direction: str
) -> None:
    nic = FirewallNic("net0", True, "52:54:00:12:34:56")
    links = guest_chain(
        cluster_of(cluster), FirewallGuest("VM 1", firewall_of(guest), (nic,)), nic, direction
    )
    found = decide(links, packet_of(packet))
    expected = accepts_guest(cluster, guest, "net0", direction, packet)
    assert (found.verdict == ACCEPT) is expected, found.reason
    assert found.verdict != UNKNOWN


@settings(max_examples=EXAMPLES, deadline=None)
@given(CLUSTERS, HOSTS, packets(), st.sampled_from(["in", "out"]))
def test_a_node_decides_as_the_chains_of_pve(
    cluster: dict[str, Any], host: dict[str, Any], packet: dict[str, Any], direction: str
) -> None:
    rings = {"pve1": ("10.0.0.1",), "pve2": ("10.0.1.9",)}
    node = FirewallNode("pve1", firewall_of(host), host["local_network"], rings)
    found = decide(node_chain(cluster_of(cluster), node, direction), packet_of(packet))
    assert (found.verdict == ACCEPT) is accepts_host(cluster, host, direction, packet), found.reason


def test_macros_are_those_of_pve() -> None:
    """The names are those of GET /cluster/firewall/macros, which the simulator lists."""
    known = set(simulated.MACROS.values())
    assert {*MACROS, "NeighborDiscovery", "DHCPv6"} == known


ON = Firewall({"enable": "1"})
PACKET = Packet(ipaddress.ip_address("10.0.0.1"), ipaddress.ip_address("10.0.0.2"), dport=443)


@pytest.mark.parametrize(
    ("rules", "verdict"),
    [
        ([Rule("in", "ACCEPT", source="+sdn/v1-all")], UNKNOWN),
        ([Rule("in", "ACCEPT", source="+v1-all")], UNKNOWN),
        ([Rule("in", "DROP", source="+sdn/v1-all")], "DROP"),
        ([Rule("in", "ACCEPT", proto="tcp", dport="noservice")], UNKNOWN),
        ([Rule("in", "ACCEPT", proto="tcp", dport="https")], ACCEPT),
        ([Rule("in", "ACCEPT", proto="esp", dport="443")], "DROP"),
        ([Rule("in", "ACCEPT", macro="HTTPS", proto="udp")], "DROP"),
    ],
)
def test_what_cannot_be_evaluated_is_unknown(rules: list[Rule], verdict: str) -> None:
    nic = FirewallNic("net0", True)
    guest = FirewallGuest("VM 1", Firewall({"enable": "1"}, tuple(rules)), (nic,))
    assert decide(guest_chain(FirewallCluster(ON), guest, nic, "in"), PACKET).verdict == verdict


def test_a_nic_without_the_firewall_accepts() -> None:
    nic = FirewallNic("net0", False)
    found = decide(
        guest_chain(FirewallCluster(ON), FirewallGuest("VM 1", ON, (nic,)), nic, "in"), PACKET
    )
    assert found.verdict == ACCEPT
    assert found.reason == "the firewall is off"


@pytest.mark.parametrize("name", ["office", "n1", "fd"])
def test_an_alias_is_a_name_of_letters_and_digits(name: str) -> None:
    """pve-firewall: PVE/Firewall.pm, $ip_alias_pattern, begins with a letter."""
    names = RuleNames(Firewall(aliases={name: ("10.0.0.0/8", "")}), Firewall())
    assert networks_of(name, names) == [ipaddress.ip_network("10.0.0.0/8")]
