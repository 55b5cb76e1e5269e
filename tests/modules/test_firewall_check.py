# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Module firewall_check, and the effective rules of firewall_info."""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab

ON = {"enable": True}
WEB = {"type": "in", "action": "ACCEPT", "macro": "HTTPS"}


@pytest.fixture
def shops(unused: Lab) -> Lab:
    """Two VMs with static addresses and the firewall, and a firewall of the cluster that is on."""
    for name, address in (("shop", "10.0.0.5"), ("db", "10.0.0.6")):
        nics = [{"bridge": "vmbr0", "firewall": True}, {"bridge": "vmbr1"}]
        vm = unused.vm(name=name, node="pve1", memory="1G", nics=nics)["vm"]
        config = ("nodes", "pve1", "qemu", vm["vmid"], "config")
        unused.client.write("PUT", *config, data={"ipconfig0": f"ip={address}/24"})
    do(unused, "firewall", scope="cluster", options=ON)
    return unused


def check(lab: Lab, source: dict[str, Any], dest: dict[str, Any], **more: Any) -> dict[str, Any]:
    lab.simulator.reset_log()
    result = do(lab, "firewall_check", source=source, dest=dest, **more)
    assert lab.simulator.writes() == []
    assert not result["changed"]
    return result


def test_a_guest_without_the_firewall_is_reached(shops: Lab) -> None:
    result = check(shops, {"name": "shop"}, {"name": "db"}, dport=443)
    assert result["reachable"] is True
    assert result["packet"]["source"] == "10.0.0.5"
    assert [row["reason"] for row in result["decisions"]] == ["the firewall is off"] * 2


def test_the_rule_that_decides_is_named(shops: Lab) -> None:
    do(shops, "firewall", scope="group", group="web", rules=[{**WEB, "source": "10.0.0.0/24"}])
    rules = [{"type": "in", "action": "DROP", "macro": "SSH"}, {"type": "group", "action": "web"}]
    do(shops, "firewall", scope="guest", name="db", options=ON, rules=rules)
    result = check(shops, {"name": "shop"}, {"name": "db"}, dport=443)
    assert result["reachable"] is True
    assert result["decided_by"]["origin"] == "group web"
    assert result["decided_by"]["position"] == 0
    result = check(shops, {"address": "192.0.2.1"}, {"name": "db"}, dport=443)
    assert result["reachable"] is False
    assert result["decided_by"]["reason"] == "policy_in: in DROP"
    result = check(shops, {"name": "shop"}, {"name": "db"}, dport=22)
    assert result["decided_by"]["reason"] == "guest rule 0: in DROP SSH"
    unfiltered = {"name": "db", "nic": "net1", "address": "10.0.0.6"}
    assert check(shops, {"name": "shop"}, unfiltered, dport=22)["reachable"] is True


def test_outgoing_rules_and_sets_count(shops: Lab) -> None:
    members = [{"cidr": "10.0.0.0/24"}, {"cidr": "10.0.0.6", "nomatch": True}]
    do(shops, "firewall", scope="cluster", ip_sets=[{"name": "peers", "members": members}])
    rules = [{"type": "out", "action": "ACCEPT", "dest": "+dc/peers"}]
    options = {"enable": True, "policy_out": "REJECT"}
    do(shops, "firewall", scope="guest", name="shop", options=options, rules=rules)
    result = check(shops, {"name": "shop"}, {"name": "db"}, dport=443)
    assert result["decided_by"]["place"].endswith("net0")
    assert result["decided_by"]["reason"] == "policy_out: out REJECT"
    assert check(shops, {"name": "shop"}, {"address": "10.0.0.7"}, dport=443)["reachable"] is True


def test_nodes_have_built_in_rules(shops: Lab) -> None:
    assert check(shops, {"node": "pve1"}, {"node": "pve2"}, dport=8006)["reachable"] is True
    assert check(shops, {"node": "pve1"}, {"node": "pve2"}, dport=3306)["reachable"] is False
    result = check(shops, {"address": "192.0.2.1"}, {"node": "pve2"}, dport=8006)
    assert result["reachable"] is False
    result = check(shops, {"node": "pve1"}, {"node": "pve2"}, proto="udp", dport=5405)
    assert result["decided_by"]["origin"] == "built-in"
    ping = {"proto": "icmp", "icmp_type": "fragmentation-needed"}
    assert check(shops, {"address": "192.0.2.1"}, {"node": "pve2"}, **ping)["reachable"] is True


@pytest.mark.parametrize(
    ("source", "dest", "said"),
    [
        ({"name": "shop", "nic": "net7"}, {"name": "db"}, "has net0, net1"),
        ({"name": "shop", "nic": "net1"}, {"name": "db"}, "has no address"),
        ({"address": "fd00::1"}, {"name": "db"}, "no common IP version"),
        ({"address": "nowhere"}, {"name": "db"}, "is not an address"),
        ({}, {"name": "db"}, "it names nothing"),
        ({"node": "pve9"}, {"name": "db"}, "there is no node 'pve9'"),
        ({"name": "absent"}, {"name": "db"}, "was not found"),
        ({"name": "shop", "tenant": "acme"}, {"name": "db"}, "no tenant tag"),
    ],
)
def test_mistakes_are_refused(
    shops: Lab, source: dict[str, Any], dest: dict[str, Any], said: str
) -> None:
    result = shops.run("firewall_check", source=source, dest=dest, dport=443)
    assert result.get("failed")
    assert said in result["msg"]


def test_effective_rules_are_those_of_all_scopes(shops: Lab) -> None:
    do(shops, "firewall", scope="group", group="web", rules=[WEB])
    rules = [{"type": "group", "action": "web"}, {"type": "out", "action": "DROP", "iface": "net1"}]
    do(shops, "firewall", scope="guest", name="db", options=ON, rules=rules)
    info = do(shops, "firewall_info", scope="guest", name="db", effective=True)
    rows = [row for row in info["effective"] if row["direction"] == "in"]
    assert {row["nic"] for row in info["effective"]} == {"net0"}
    origins = [row["origin"] for row in rows]
    assert origins.index("group web") < origins.index("policy_in")
    assert origins[-1] == "policy_in"
    assert "guest" not in [row["origin"] for row in info["effective"]]
    assert do(shops, "firewall_info", scope="guest", name="db")["effective"] is None
    do(shops, "firewall", scope="cluster", options={"enable": False})
    assert do(shops, "firewall_info", scope="guest", name="db", effective=True)["effective"] == []
