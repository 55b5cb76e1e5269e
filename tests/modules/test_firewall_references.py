# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Aliases and IP sets that any place uses are not removed.

PVE removes them, and then ignores each rule and each member that names them, so a packet that such
a rule drops is accepted (pve-firewall: Firewall.pm, verify_rule, ruleset_generate_vm_rules and
generate_ipset_chains).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab
from tests.modules.test_firewall import refused

DROP = {"type": "in", "action": "DROP"}
ALIAS, SET = {"source": "dc/office"}, {"dest": "+dc/bad"}
PLAIN = [{"source": "Office"}, {"dest": "+bad"}]
OFFICE = {"name": "Office", "cidr": "192.0.2.0/24"}
BAD = {"name": "bad", "members": [{"cidr": "198.51.100.0/24"}]}
NAMES: dict[str, Any] = {"scope": "cluster", "aliases": [OFFICE], "ip_sets": [BAD]}
EMPTY: dict[str, Any] = {"scope": "cluster", "aliases": [], "ip_sets": [], "exact": True}
GUESTS: list[dict[str, Any]] = [{"scope": "guest", "name": name} for name in ("web", "box")]
MEMBER = [{"name": "own", "members": [{"cidr": "dc/office", "nomatch": True}]}]


@pytest.fixture
def lab(unused: Lab) -> Lab:
    template = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"
    nic = {"bridge": "vmbr0"}
    do(unused, "vm", name="web", node="pve2", memory="1G", nics=[nic])
    do(unused, "container", name="box", node="pve3", source=template)
    do(unused, "sdn", zones=[{"name": "lan", "type": "simple"}])
    do(unused, "sdn", vnets=[{"name": "front", "zone": "lan"}])
    do(unused, "firewall", **NAMES)
    return unused


PLACES = [
    *GUESTS,
    {"scope": "node", "node": "pve3"},
    {"scope": "group", "group": "shared"},
    {"scope": "cluster"},
]


@pytest.mark.parametrize("address", [ALIAS, SET, *PLAIN], ids=str)
@pytest.mark.parametrize("place", PLACES, ids=str)
def test_a_name_that_a_rule_uses_is_not_removed(
    lab: Lab, place: dict[str, Any], address: dict[str, str]
) -> None:
    for enable in (True, False):
        do(lab, "firewall", **place, rules=[{**DROP, **address, "enable": enable}])
        result = refused(lab, **EMPTY)
        assert result["error"]["reason"] == "in use"
        assert "rules[0]" in result["msg"]
    do(lab, "firewall", **place, rules=[])
    assert do(lab, "firewall", **EMPTY)["changed"]


def test_a_name_that_a_vnet_uses_is_not_removed(lab: Lab) -> None:
    vnet: dict[str, Any] = {"scope": "vnet", "vnet": "front"}
    do(lab, "firewall", **vnet, rules=[{"type": "forward", "action": "DROP", **SET}])
    assert "VNet front" in refused(lab, **EMPTY)["msg"]


@pytest.mark.parametrize("place", [*GUESTS, {"scope": "cluster"}], ids=str)
def test_an_alias_that_is_a_member_of_a_set_is_not_removed(lab: Lab, place: dict[str, Any]) -> None:
    do(lab, "firewall", **place, ip_sets=MEMBER)
    task = {"scope": "cluster", "aliases": [], "exact": True}
    assert "member dc/office of IP set 'own'" in refused(lab, **task)["msg"]


def test_names_of_a_guest_are_not_those_of_the_cluster(lab: Lab) -> None:
    rules = [{**DROP, **PLAIN[0]}, {**DROP, **PLAIN[1]}, {**DROP, "source": "guest/office"}]
    own: dict[str, Any] = {"aliases": [OFFICE], "ip_sets": [BAD]}
    do(lab, "firewall", **GUESTS[0], rules=rules, **own)
    removal = {"aliases": [], "exact": True}
    assert "rules[0]" in refused(lab, **GUESTS[0], **removal)["msg"]
    assert do(lab, "firewall", **EMPTY)["changed"]


def test_an_alias_of_a_guest_that_is_a_member_of_its_set_is_not_removed(lab: Lab) -> None:
    sets = [{"name": "own", "members": [{"cidr": "home"}]}]
    do(lab, "firewall", **GUESTS[1], aliases=[{"name": "home", "cidr": "10.0.0.1"}], ip_sets=sets)
    result = refused(lab, **GUESTS[1], aliases=[], exact=True)
    assert "member home of IP set 'own'" in result["msg"]


def test_a_login_that_does_not_see_every_guest_removes_no_name(lab: Lab) -> None:
    """The listing contains only guests with VM.Audit (pve-manager: API2/Cluster.pm, resources)."""
    privileges = "Sys.Audit Sys.Modify SDN.Audit"
    write = lab.client.write
    write("POST", "access", "roles", data={"roleid": "Firewaller", "privs": privileges})
    write("POST", "access", "users", data={"userid": "fw@pve"})
    rights = {"path": "/", "roles": "Firewaller", "users": "fw@pve"}
    write("PUT", "access", "acl", data=rights)
    token = write("POST", "access", "users", "fw@pve", "token", "own", data={"privsep": 0})
    login = {"token_id": "fw@pve!own", "token_secret": token["value"]}
    result = refused(lab, **EMPTY, **login)
    assert result["error"]["reason"] == "hidden guests"
    assert "force=true" not in result["msg"]


def test_the_simulator_shows_rules_and_members_that_are_ignored(lab: Lab) -> None:
    """Firewall.pm, generic_fw_config_parser: rules and members get errors, which the API lists."""
    rules = [{**DROP, **ALIAS}, {**DROP, **SET}]
    do(lab, "firewall", **GUESTS[0], rules=rules, ip_sets=MEMBER)
    base = ("cluster", "firewall")
    lab.client.write("DELETE", *base, "aliases", "office")
    lab.client.write("DELETE", *base, "ipset", "bad", data={"force": 1})
    vm = do(lab, "vm", name="web")["vm"]
    own = ("nodes", "pve2", "qemu", vm["vmid"], "firewall")
    found = lab.client.get(*own, "rules")
    assert [row["errors"] for row in found] == [
        {"source": "no such alias 'dc/office'"},
        {"dest": "no such ipset 'bad'"},
    ]
    assert lab.client.get(*own, "ipset", "own")[0]["errors"] == {"cidr": "no such alias 'office'"}


@pytest.mark.parametrize("place", [*GUESTS, {"scope": "cluster"}], ids=str)
def test_a_set_of_sdn_exists_or_is_refused(lab: Lab, place: dict[str, Any]) -> None:
    """A running VNet has four sets (proxmox-ve-rs: proxmox-ve-config, src/sdn/config.rs, ipsets),
    which the list of references has (pve-firewall: API2/Firewall/Cluster.pm, refs).
    """
    rule = {**DROP, "source": "+sdn/front-al"}
    message = refused(lab, **place, rules=[rule])["msg"]
    assert "no IP set of SDN 'front-al'" in message
    assert "front-all" in message
    for known in ("front-all", "front-gateway", "front-no-gateway", "front-dhcp"):
        rules = [{**DROP, "source": f"+sdn/{known}"}]
        assert lab.run("firewall", check=True, **place, rules=rules)["changed"]
        assert do(lab, "firewall", **place, rules=rules)["changed"]
        assert not do(lab, "firewall", **place, rules=rules)["changed"]


SIX = {"name": "six", "cidr": "2001:db8::/32"}


@pytest.mark.parametrize("place", [*GUESTS, {"scope": "cluster"}], ids=str)
@pytest.mark.parametrize(
    "other", [{"dest": "192.0.2.1"}, {"dest": "dc/office"}, {"proto": "icmp"}], ids=str
)
def test_an_alias_has_the_version_of_the_rule(
    lab: Lab, place: dict[str, Any], other: dict[str, str]
) -> None:
    """pve-firewall: Firewall.pm, verify_rule, set_ip_version."""
    new = {**place, "aliases": [SIX, *([OFFICE] if place["scope"] == "cluster" else [])]}
    rules = [{**DROP, "source": "six", **other}]
    assert "it has both IPv4 and IPv6" in refused(lab, **new, rules=rules)["msg"]
    do(lab, "firewall", **new)
    assert "it has both IPv4 and IPv6" in refused(lab, **place, rules=rules)["msg"]
    same = [{**DROP, "source": "six", "dest": "2001:db8::1"}]
    assert do(lab, "firewall", **place, rules=same)["changed"]
