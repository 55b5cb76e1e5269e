# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks of a tenant as options of module sdn: tags, IPv6 and DHCP ranges, and their export."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.tenant import vnet_id
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import Conflict
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.sdn.forms import (
    read_desired,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.sdn.plan import after_plan
from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.rules.model import Rule
from ansible_collections.pve.fleet.plugins.module_utils._tenants.tenant.network.export import (
    isolation_of,
    networks_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.tenant.network.model import (
    read_networking,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.tenant.network.sdn import (
    params_of,
    require_distinct,
    require_no_overlap,
)

TAG = "tenant_acme"
VNET = vnet_id(TAG, "front")
ZONES = {
    "over": {"type": "vxlan"},
    "routed": {"type": "evpn", "vrf-vxlan": "5000"},
    "teams": {"type": "vlan"},
    "lab": {"type": "simple"},
}
OTHERS = {
    "wide": {"zone": "over", "tag": "5001"},
    "apps": {"zone": "routed", "tag": "5002"},
    "blue": {"zone": "teams", "tag": "5003"},
}
RANGE = {"start_address": "10.1.0.100", "end_address": "10.1.0.199"}
IPV6 = {"subnet": "2001:db8:1::/64", "gateway": "2001:db8:1::1"}


def running(**more: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"subnets": {}, "controllers": {}}
    return {"zones": ZONES, "vnets": OTHERS, **empty, **more}


def networking_of(**front: Any) -> Any:
    return read_networking({"networks": {"front": front}}, TAG, "tenant_")


def written(**front: Any) -> dict[str, Any]:
    """Return SDN after a run for a tenant with this network."""
    params = params_of(networking_of(**front).networks, TAG, running())
    return after_plan(running(), read_desired(params, running()))


@pytest.mark.parametrize("zone", ["over", "routed"])
def test_zones_of_vxlan_and_evpn_share_their_tags(zone: str) -> None:
    """pve-network: PVE/Network/SDN/Zones/VxlanPlugin.pm, vnet_update_hook."""
    after = written(zone=zone, tag_range=[5000, 5010], subnet="10.1.0.0/24")
    assert after["vnets"][VNET]["tag"] == "5003"


def test_a_vlan_zone_has_tags_of_its_own() -> None:
    after = written(zone="teams", tag_range=[5001, 5003], subnet="10.1.0.0/24")
    assert after["vnets"][VNET]["tag"] == "5001"


@pytest.mark.parametrize(
    "front",
    [
        {"zone": "lab", "subnet": "10.1.0.0/24", "dhcp_ranges": [RANGE], "snat": True},
        {"zone": "lab", "subnet": "10.1.0.0/24", "dhcp_dns_server": "10.1.0.2"},
        {"zone": "routed", "tag": 7000, **IPV6},
        {"zone": "teams", "tag": 70, **IPV6},
    ],
)
def test_a_network_is_exported_as_it_is_declared(front: dict[str, Any]) -> None:
    assert networks_of(TAG, written(**front)) == {"front": front}


def test_an_ipv6_subnet_is_named_and_replaced() -> None:
    """The ID of a subnet is its zone, network and prefix (pve-network: SubnetPlugin.pm)."""
    after = written(zone="teams", tag=70, **IPV6)
    assert list(after["subnets"]) == ["teams-2001:db8:1::-64"]
    moved = networking_of(zone="teams", tag=70, subnet="2001:db8:2::/64").networks
    rows = params_of(moved, TAG, after)["subnets"]
    assert [(row["cidr"], row.get("state")) for row in rows] == [
        ("2001:db8:1::/64", "absent"),
        ("2001:db8:2::/64", None),
    ]


@pytest.mark.parametrize(
    ("subnet", "is_refused"),
    [("2001:db8:1:0:8000::/65", True), ("2001:db8:2::/64", False), ("10.1.0.0/24", False)],
)
def test_overlaps_with_ipv6_subnets_of_others(subnet: str, is_refused: bool) -> None:
    after = written(zone="teams", tag=70, **IPV6)
    other = read_networking(
        {"networks": {"back": {"zone": "lab", "subnet": subnet}}}, "tenant_hooli", "tenant_"
    )
    assert other is not None
    if is_refused:
        with pytest.raises(Conflict, match="overlaps 2001:db8:1::/64 of another tenant"):
            require_distinct(other, "tenant_hooli", after)
    else:
        require_distinct(other, "tenant_hooli", after)


def test_an_alias_or_a_range_in_the_set_of_all_tenants_is_skipped() -> None:
    """Members of an IP set can be the name of an alias (pve-firewall: Firewall.pm, ipset)."""
    members = ["dc/office", "10.9.0.1-10.9.0.9", "10.1.0.0/24"]
    require_no_overlap(["10.2.0.0/24"], members)
    with pytest.raises(Conflict, match=r"overlaps 10\.1\.0\.0/24"):
        require_no_overlap(["10.1.0.128/25"], members)


@pytest.mark.parametrize(
    ("rules", "isolation"),
    [
        (None, {"isolation": "none"}),
        ((Rule("in", "ACCEPT", source="+dc/fleet-tenants"),), {"isolation": "shared"}),
        ((Rule("in", "ACCEPT", source="+dc/tenant_acme"),), {"isolation": "own"}),
        (
            (
                Rule("in", "ACCEPT", source="+dc/tenant_acme"),
                Rule("in", "ACCEPT", source="+dc/tenant_hooli"),
                Rule("in", "DROP", source="+dc/fleet-tenants"),
            ),
            {"isolation": "own", "peers": ["hooli"]},
        ),
    ],
)
def test_isolation_follows_from_the_rules_of_the_group(rules: Any, isolation: Any) -> None:
    owners = {"tenant_acme": TAG, "tenant_hooli": "tenant_hooli"}
    assert isolation_of(TAG, rules, owners, "tenant_") == isolation
