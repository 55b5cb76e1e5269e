# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No choice of isolation, peers and rules of guests opens a tenant that does not allow it.

The pairs are judged by the evaluator that was written from the source of pve-firewall
(`tests/iptables_oracle.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.tenant import group_name
from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.isolation import goal_of
from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.model import (
    Firewall,
    IpSet,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.plan import after_plan
from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.rules.model import Rule
from ansible_collections.pve.fleet.plugins.module_utils._tenants.tenant.network.firewall import (
    group_goal,
    names_goal,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.tenant.network.model import (
    OWN,
    SHARED,
    TenantNetwork,
    TenantNetworking,
)
from tests.cases import cases
from tests.iptables_oracle import Config, Oracle, Packet, Tap

EXAMPLES = cases(2000, 60)
TAGS = {"tenant_acme": "10.1.0", "tenant_globex": "10.2.0", "tenant_initech": "10.3.0"}
RULES = st.builds(
    Rule,
    type=st.just("in"),
    action=st.sampled_from(["ACCEPT", "ACCEPT", "DROP"]),
    source=st.sampled_from(["", "10.0.0.0/8", "10.2.0.0/24", "10.3.0.7"]),
    proto=st.just("tcp"),
    dport=st.sampled_from(["22", "1:65535"]),
)


def of_tenant(tag: str) -> st.SearchStrategy[TenantNetworking]:
    network = TenantNetwork("front", tag[-5:], "teams", subnet=f"{TAGS[tag]}.0/24")
    others = [one for one in TAGS if one != tag]
    return st.builds(
        TenantNetworking,
        networks=st.just((network,)),
        isolation=st.sampled_from([OWN, OWN, SHARED]),
        peers=st.lists(st.sampled_from(others), unique=True).map(tuple),
    )


TENANTS = st.fixed_dictionaries({tag: of_tenant(tag) for tag in TAGS})
GUESTS = st.fixed_dictionaries({tag: st.lists(RULES, max_size=3) for tag in TAGS})


def rows_of(rules: tuple[Rule, ...]) -> list[dict[str, Any]]:
    return [rule.as_data() for rule in rules]


def members_of(sets: Mapping[str, IpSet]) -> dict[str, list[dict[str, Any]]]:
    return {name: [{"cidr": cidr} for cidr in one.members] for name, one in sets.items()}


def cluster_of(tenants: Mapping[str, TenantNetworking], order: list[str]) -> Config:
    """Return the firewall of the cluster after a run of module tenant for each tenant."""
    firewall, groups = Firewall(), {}
    for tag in order:
        goal = names_goal(tenants[tag], tag, firewall)
        firewall = after_plan(firewall, goal)
        group = after_plan(Firewall(), group_goal(tenants[tag], tag))
        groups[group_name(tag)] = rows_of(group.rules)
    aliases = {name: cidr for name, (cidr, _comment) in firewall.aliases.items()}
    return Config({"enable": 1}, (), aliases, members_of(firewall.ip_sets), groups)


def tap_of(tag: str, rules: list[Rule]) -> Tap:
    """Return the NIC of a guest of the tenant with rules of its own."""
    own = Firewall(rules=tuple(rules))
    isolated = after_plan(own, goal_of(own, group_name(tag), {"net0": (f"{TAGS[tag]}.7",)}))
    config = Config(isolated.options, rows_of(isolated.rules), ipsets=members_of(isolated.ip_sets))
    number = list(TAGS).index(tag) + 1
    return Tap("net0", f"BC:24:11:00:00:0{number}", True, config)


def is_declared(source: str, dest: str, tenants: Mapping[str, TenantNetworking]) -> bool:
    return tenants[dest].isolation == SHARED or source in tenants[dest].peers


@settings(max_examples=EXAMPLES)
@given(TENANTS, GUESTS, st.permutations(list(TAGS)))
def test_a_guest_reaches_other_tenants_as_declared_and_not_otherwise(
    tenants: dict[str, TenantNetworking], guests: dict[str, list[Rule]], order: list[str]
) -> None:
    oracle = Oracle(cluster_of(tenants, order))
    taps = {tag: tap_of(tag, guests[tag]) for tag in TAGS}
    for source, dest in permutations(TAGS, 2):
        mac, target = taps[source].mac, f"{TAGS[dest]}.7"
        honest = Packet(f"{TAGS[source]}.7", target, mac, "tcp", 22)
        found = oracle.reaches(taps[source], taps[dest], honest)
        assert found == is_declared(source, dest, tenants), (source, dest)
        for other in TAGS:
            spoofed = replace(honest, source=f"{TAGS[other]}.8")
            assert not oracle.reaches(taps[source], taps[dest], spoofed), (source, other)
        forged = replace(honest, mac=taps[dest].mac)
        assert not oracle.reaches(taps[source], taps[dest], forged)
