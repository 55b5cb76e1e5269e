# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Modules firewall and firewall_info against the simulator."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import FleetError
from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.resource import (
    FirewallOfScope,
)
from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab

SSH = {"type": "in", "action": "ACCEPT", "macro": "SSH"}
WEB = {"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "80,443", "comment": "web"}
DROP = {"type": "in", "action": "DROP"}
RULES = ("cluster", "firewall", "rules")


def many(count: int) -> list[dict[str, Any]]:
    return [{**WEB, "dport": str(1000 + number), "comment": ""} for number in range(count)]


@pytest.fixture
def guest(lab: Lab) -> dict[str, Any]:
    """A VM with a NIC, as the choice of its firewall."""
    lab.vm(name="filtered", node="pve2", memory="1G", nics=[{"bridge": "vmbr0"}])
    return {"scope": "guest", "name": "filtered"}


def writes(lab: Lab) -> list[tuple[str, str]]:
    return [(row["method"], row["path"]) for row in lab.simulator.writes()]


def converge(lab: Lab, **options: Any) -> dict[str, Any]:
    """Check that check mode foresees the run, and that a second run changes nothing."""
    lab.simulator.reset_log()
    foreseen = do(lab, "firewall", check=True, **options)
    assert writes(lab) == []
    result = do(lab, "firewall", **options)
    made = writes(lab)
    for key in ("plan", "diff", "changed", "firewall"):
        assert result[key] == foreseen[key], key
    assert result["done"] == result["plan"]
    assert len(made) == len(result["plan"])
    lab.simulator.reset_log()
    again = do(lab, "firewall", **options)
    assert not again["changed"], again["plan"]
    assert again["diff"] == {"before": {}, "after": {}}
    assert writes(lab) == []
    return result


def refused(lab: Lab, **options: Any) -> dict[str, Any]:
    lab.simulator.reset_log()
    for check in (True, False):
        result = lab.run("firewall", check=check, **options)
        assert result.get("failed"), result
        assert "Traceback" not in str(result)
    assert writes(lab) == []
    return result


def test_each_scope_is_managed_and_read_back(lab: Lab, guest: dict[str, Any]) -> None:
    group = {"scope": "group", "group": "web"}
    converge(lab, **group, comment="Web servers", rules=[SSH, WEB])
    aliases = [{"name": "office", "cidr": "192.0.2.0/24", "comment": "Head office"}]
    members = [{"cidr": "198.51.100.7", "nomatch": True}, {"cidr": "office"}]
    sets = [{"name": "admins", "members": members}]
    converge(lab, scope="cluster", aliases=aliases, ip_sets=sets, options={"ebtables": False})
    rules = [{**SSH, "source": "+dc/admins"}, {"type": "group", "action": "web"}, DROP]
    options = {"enable": True, "policy_in": "DROP", "log_level_in": "info"}
    result = converge(lab, **guest, rules=rules, options=options)
    assert result["plan"][-1].startswith("Set options of VM ")
    assert "enable=1" in result["plan"][-1]
    node = {"scope": "node", "node": "pve1"}
    converge(lab, **node, rules=[{**SSH, "iface": "vmbr0"}], options={"nosmurfs": True})
    for scope in (group, {"scope": "cluster"}, guest, node):
        shown = do(lab, "firewall_info", **scope)["firewall"]
        assert not do(lab, "firewall", **scope, **shown)["changed"]
        assert not do(lab, "firewall", **scope, **shown, exact=True)["changed"]
    assert do(lab, "firewall_info", scope="cluster")["groups"] == [
        {"name": "web", "comment": "Web servers"}
    ]


def test_three_changed_rules_of_300_are_three_writes(lab: Lab) -> None:
    rules = many(300)
    for rule in reversed(rules):
        lab.client.write("POST", *RULES, data={**rule, "enable": 1})
    rules = [dict(rule) for rule in rules]
    for place in (0, 150, 299):
        rules[place]["source"] = "10.0.0.0/8"
    lab.simulator.reset_log()
    result = do(lab, "firewall", scope="cluster", rules=rules)
    assert len(writes(lab)) == 3, result["plan"]
    # Each write reads the rules before it, and one reads whether the cluster's firewall is on.
    assert len(lab.simulator.log()) == 3 + 3 + 4 + 1
    lab.simulator.reset_log()
    assert not do(lab, "firewall", scope="cluster", rules=rules)["changed"]
    assert len(lab.simulator.log()) == 2


def test_an_inserted_rule_is_created_and_moved(lab: Lab) -> None:
    converge(lab, scope="cluster", rules=[SSH, WEB, DROP])
    new = {**WEB, "dport": "22", "comment": "new"}
    result = converge(lab, scope="cluster", rules=[SSH, WEB, new, DROP])
    assert [line.split(" ")[0] for line in result["plan"]] == ["Create", "Move"]
    result = converge(lab, scope="cluster", rules=[DROP, SSH, WEB, new])
    assert [line.split(" ")[0] for line in result["plan"]] == ["Move"]
    assert converge(lab, scope="cluster", rules=[])["firewall"]["rules"] == []


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({**DROP, "source": "nowhere"}, "there is no alias 'nowhere'"),
        ({**DROP, "source": "+dc/nowhere"}, "there is no IP set 'nowhere'"),
        ({"type": "group", "action": "nowhere"}, "there is no security group 'nowhere'"),
        ({**DROP, "macro": "SSSH"}, "there is no macro 'SSSH'"),
        ({**DROP, "iface": "net7"}, "there is no interface 'net7'"),
        ({**DROP, "dport": "22"}, "need proto"),
        ({"type": "forward", "action": "DROP"}, "have type in, out, group"),
        ({"type": "in", "action": "accept"}, "Write it in upper case"),
    ],
)
def test_mistakes_are_refused(
    lab: Lab, guest: dict[str, Any], rule: dict[str, Any], said: str
) -> None:
    result = refused(lab, **guest, rules=[SSH, rule])
    assert said in result["msg"]
    assert "rules[1]" in result["msg"]


def test_what_a_scope_lacks_is_refused(lab: Lab, guest: dict[str, Any]) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"scope": "node", "node": "pve1", "aliases": []}, "node pve1 has no aliases"),
        ({**guest, "options": {"ebtables": True}}, "options.ebtables was refused"),
        ({**guest, "state": "absent"}, "only a security group can be removed"),
        ({"scope": "cluster", "comment": "x"}, "the cluster has no comment"),
        ({"scope": "cluster", "aliases": [{"name": "a1", "cidr": "10.0.0.300"}]}, "10.0.0.300"),
        ({"scope": "guest", "name": "nowhere", "rules": []}, "was not found"),
    ]
    for options, said in cases:
        assert said in refused(lab, **options)["msg"]


def converge_empty(lab: Lab) -> None:
    """Remove the names that the cluster file or an earlier test has."""
    do(lab, "firewall", scope="cluster", rules=[], exact=True, aliases=[], ip_sets=[])


def test_names_are_added_changed_and_removed_if_exact(unused: Lab) -> None:
    lab = unused
    one, two = {"name": "one", "cidr": "10.0.0.1"}, {"name": "two", "cidr": "10.0.0.0/8"}
    member = {"cidr": "10.1.0.0/16", "comment": "c"}
    converge(
        lab, scope="cluster", aliases=[one, two], ip_sets=[{"name": "set", "members": [member]}]
    )
    assert not do(lab, "firewall", scope="cluster", aliases=[{**one, "name": "ONE"}])["changed"]
    changed = {"name": "set", "comment": "new", "members": [{"cidr": "fd00::/64"}]}
    converge(lab, scope="cluster", ip_sets=[changed])
    rules = [{**SSH, "source": "two"}]
    converge(lab, scope="cluster", rules=rules)
    result = refused(lab, scope="cluster", aliases=[one], exact=True)
    assert result["error"]["reason"] == "in use"
    result = converge(lab, scope="cluster", aliases=[one], ip_sets=[changed], exact=True, rules=[])
    assert [line.split(" of ")[0] for line in result["plan"]] == [
        "Remove 10.1.0.0/16 from IP set 'set'",
        "Remove rule 0",
        "Remove alias 'two'",
    ]


def test_a_change_by_another_run_is_planned_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    converge(lab, scope="cluster", rules=[SSH, DROP])
    send, foreign = FirewallOfScope.send, [{**WEB, "enable": 1}]

    def send_late(self: FirewallOfScope, step: Any) -> Any:
        while foreign:
            lab.client.write("POST", *RULES, data=foreign.pop())
        return send(self, step)

    monkeypatch.setattr(FirewallOfScope, "send", send_late)
    result = do(lab, "firewall", scope="cluster", rules=[SSH, {**DROP, "comment": "last"}])
    rules = result["firewall"]["rules"]
    assert [rule.get("comment") for rule in rules] == [None, "last"]
    assert [rule["comment"] for rule in lab.client.get(*RULES) if "comment" in rule] == ["last"]


@pytest.mark.parametrize("drop", ["before", "after"])
def test_a_lost_answer_is_looked_after(lab: Lab, drop: str) -> None:
    converge(lab, scope="cluster", rules=[SSH])
    lab.simulator.fault(method="POST", path="/firewall/rules$", drop=drop, times=1)
    do(lab, "firewall", scope="cluster", rules=[WEB, SSH])
    lab.simulator.clear_faults()
    assert len(lab.client.get(*RULES)) == 2
    assert not do(lab, "firewall", scope="cluster", rules=[WEB, SSH])["changed"]


def test_a_group_is_removed_with_its_rules(lab: Lab) -> None:
    converge(lab, scope="group", group="old", rules=[SSH, WEB])
    result = converge(lab, scope="group", group="old", state="absent")
    assert result["firewall"] is None
    assert result["plan"][-1] == "Remove security group 'old'"


def test_a_group_in_use_is_not_removed(lab: Lab, guest: dict[str, Any]) -> None:
    use = {"type": "group", "action": "busy"}
    do(lab, "firewall", scope="group", group="busy", rules=[WEB])
    do(lab, "firewall", **guest, rules=[use])
    do(lab, "firewall", scope="node", node="pve1", rules=[use])
    error = refused(lab, scope="group", group="busy", state="absent")
    assert error["error"]["reason"] == "in use"
    assert "rules of node pve1, VM " in error["msg"]
    do(lab, "firewall", scope="node", node="pve1", rules=[])
    do(lab, "firewall", **guest, rules=[])
    assert do(lab, "firewall", scope="group", group="busy", state="absent")["changed"]


@pytest.mark.parametrize("drop", ["before", "after"])
@pytest.mark.parametrize(
    "options", [{}, {"comment": "changed"}, {"state": "absent"}], ids=["create", "change", "remove"]
)
def test_a_lost_answer_about_a_group_is_looked_after(
    lab: Lab, drop: str, options: dict[str, Any]
) -> None:
    group: dict[str, Any] = {"scope": "group", "group": "lost"}
    if options:
        converge(lab, **group, comment="first")
    method = "DELETE" if "state" in options else "POST"
    lab.simulator.fault(method=method, path="/firewall/groups", drop=drop, times=1)
    result = do(lab, "firewall", **group, **options)
    lab.simulator.clear_faults()
    assert result["done"] == result["plan"]
    assert not do(lab, "firewall", **group, **options)["changed"]
    exists = "lost" in [row["group"] for row in lab.client.get("cluster", "firewall", "groups")]
    assert exists is (options.get("state") != "absent")


def test_a_tenant_manages_its_own_guests_only(lab: Lab) -> None:
    lab.vm(name="own", node="pve1", memory="1G", tenant="acme")
    lab.vm(name="other", node="pve1", memory="1G", tenant="globex")
    own = {"scope": "guest", "name": "own", "tenant": "acme"}
    converge(lab, **own, rules=[SSH], options={"enable": True})
    other = lab.vm(name="other", tenant="globex")["vm"]["vmid"]
    result = refused(lab, scope="guest", vmid=other, tenant="acme", rules=[SSH])
    assert "belongs to another tenant" in result["msg"]


def test_three_of_many_changed_rules_are_three_writes(lab: Lab) -> None:
    """The figure firewall300_writes of the benchmarks."""
    base = ("cluster", "firewall", "groups")
    lab.client.write("POST", *base, data={"group": "many"})
    ports = [str(1000 + number) for number in range(300)]
    tcp: dict[str, Any] = {"type": "in", "action": "ACCEPT", "proto": "tcp"}
    for port in reversed(ports):
        lab.client.write("POST", *base, "many", data={**tcp, "dport": port, "enable": 1})
    for place in (0, 100, 200):
        ports[place] = str(7000 + place)
    lab.simulator.reset_log()
    do(lab, "firewall", scope="group", group="many", rules=[{**tcp, "dport": one} for one in ports])
    assert len(lab.simulator.writes()) == 3


def test_groups_and_ip_sets_with_upper_case_letters_are_those_in_lower_case(unused: Lab) -> None:
    """PVE reads the names of groups and IP sets in lower case (Firewall.pm,
    generic_fw_config_parser), and refuses a rule or a request with another spelling (verify_rule).
    """
    lab = unused
    converge(lab, scope="group", group="Web", rules=[SSH], comment="Web servers")
    members = [{"cidr": "198.51.100.7"}]
    converge(lab, scope="cluster", ip_sets=[{"name": "Admins", "members": members}])
    lab.vm(name="filtered", node="pve2", memory="1G", nics=[{"bridge": "vmbr0"}])
    own = [{"name": "Own", "members": [{"cidr": "10.0.0.1"}]}]
    rules = [
        {"type": "group", "action": "WEB"},
        {**SSH, "source": "+dc/Admins"},
        {**SSH, "source": "+Own"},
    ]
    result = converge(lab, scope="guest", name="filtered", ip_sets=own, rules=rules)
    assert [rule.get("source") for rule in result["firewall"]["rules"]] == [
        None,
        "+dc/admins",
        "+own",
    ]
    changed = [{**members[0], "nomatch": True}, {"cidr": "10.9.0.0/16"}]
    converge(lab, scope="cluster", ip_sets=[{"name": "ADMINS", "comment": "x", "members": changed}])
    twice = [{"name": "Own"}, {"name": "own"}]
    assert "listed more than once" in refused(lab, scope="cluster", ip_sets=twice)["msg"]
    do(lab, "firewall", scope="guest", name="filtered", rules=[])
    assert converge(lab, scope="group", group="wEB", state="absent")["firewall"] is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"rules": [{**SSH, "comment": "-"}]}, {"rules": [SSH]}),
        ({"rules": [{**SSH, "comment": " x "}]}, {"rules": [{**SSH, "comment": "x"}]}),
        ({"rules": [{**SSH, "comment": "0"}]}, {"rules": [SSH]}),
        ({"rules": [{**SSH, "source": "dc/Office"}]}, {"rules": [{**SSH, "source": "office"}]}),
        ({"rules": [{**SSH, "source": "+dc/Set"}]}, {"rules": [{**SSH, "source": "+set"}]}),
        ({"rules": [{**SSH, "iface": "-", "log": "nolog"}]}, {"rules": [SSH]}),
        (
            {"ip_sets": [{"name": "set", "members": [{"cidr": "dc/office"}]}]},
            {"ip_sets": [{"name": "set", "members": [{"cidr": "Office"}]}]},
        ),
        (
            {"ip_sets": [{"name": "set", "comment": " a"}]},
            {"ip_sets": [{"name": "set", "comment": "a "}]},
        ),
        (
            {"aliases": [{"name": "own", "cidr": "10.0.0.1", "comment": " a"}]},
            {"aliases": [{"name": "OWN", "cidr": "10.0.0.1/32", "comment": "a"}]},
        ),
    ],
    ids=str,
)
def test_another_spelling_changes_nothing(
    unused: Lab, first: dict[str, Any], second: dict[str, Any]
) -> None:
    """Source: Firewall.pm, copy_rule_data (a dash removes a property), resolve_alias,
    ipt_gen_src_or_dst_match, format_rules and parse_fw_rule.
    """
    lab = unused
    office = {"name": "office", "cidr": "192.0.2.0/24"}
    do(lab, "firewall", scope="cluster", aliases=[office], ip_sets=[{"name": "set"}])
    converge(lab, scope="cluster", **first)
    again = do(lab, "firewall", scope="cluster", **second)
    assert not again["changed"], again["plan"]
    lab.vm(name="filtered", node="pve2", memory="1G", nics=[{"bridge": "vmbr0"}])
    guest: dict[str, Any] = {"scope": "guest", "name": "filtered"}
    converge(lab, **guest, **first)
    again = do(lab, "firewall", **guest, **second)
    assert not again["changed"], again["plan"]


def test_an_alias_of_the_guest_is_another_one_than_that_of_the_cluster(unused: Lab) -> None:
    """A guest's own alias precedes that of the cluster (Firewall.pm, resolve_alias)."""
    lab = unused
    office = {"name": "office", "cidr": "192.0.2.0/24"}
    do(lab, "firewall", scope="cluster", aliases=[office])
    lab.vm(name="filtered", node="pve2", memory="1G", nics=[{"bridge": "vmbr0"}])
    guest: dict[str, Any] = {"scope": "guest", "name": "filtered"}
    converge(lab, **guest, aliases=[office], rules=[{**SSH, "source": "office"}])
    assert do(lab, "firewall", **guest, rules=[{**SSH, "source": "dc/office"}])["changed"]
    sets = [{"name": "set", "members": [{"cidr": "office"}]}]
    converge(lab, **guest, ip_sets=sets)
    sets = [{"name": "set", "members": [{"cidr": "dc/office"}]}]
    assert do(lab, "firewall", **guest, ip_sets=sets, exact=True)["changed"]


@pytest.mark.parametrize(
    ("rule", "answer"),
    [
        ({"proto": "icmp", "icmp_type": "echo-reqest"}, "has no icmp_type 'echo-reqest'"),
        ({"proto": "icmp", "icmp_type": "8"}, "has no icmp_type '8'"),
        ({"proto": "icmp", "icmp_type": "packet-too-big"}, "has no icmp_type 'packet-too-big'"),
        ({"proto": "icmpv6", "icmp_type": "any"}, "has no icmp_type 'any'"),
        ({"proto": "ipv6-icmp", "icmp_type": "nothing"}, "has no icmp_type 'nothing'"),
        ({"proto": "tcp", "icmp_type": "echo-request"}, "needs one of the protocols"),
        ({"proto": "1", "icmp_type": "echo-request"}, "needs one of the protocols"),
        ({"macro": "Ping", "icmp_type": "echo-request"}, "need proto"),
        ({"macro": "SSH", "dport": "22"}, "need proto"),
        ({"proto": "icmp", "icmp_type": "any", "dport": "echo-request"}, "exclude each other"),
        ({"source": "10.0.0.1", "dest": "fd00::1"}, "both IPv4 and IPv6"),
        ({"source": "10.0.0.1-10.0.0.9", "proto": "icmpv6"}, "both IPv4 and IPv6"),
        ({"dest": "fd00::/64,fd01::/64", "proto": "icmp"}, "both IPv4 and IPv6"),
        ({"source": "+5"}, "invalid ipset name '+5'"),
        ({"dest": "+10.1.0.1"}, "invalid ipset name '+10.1.0.1'"),
    ],
    ids=str,
)
def test_a_rule_that_pve_refuses_is_refused_first(
    lab: Lab, rule: dict[str, str], answer: str
) -> None:
    """Source: Firewall.pm, $icmp_type_names, $icmpv6_type_names, $proto_is_icmp and verify_rule.
    The simulator refuses each of them too.
    """
    rules = [{"type": "in", "action": "ACCEPT", **rule}]
    assert answer in refused(lab, scope="node", node="pve1", rules=rules)["msg"]
    data = {key.replace("_", "-"): value for key, value in rules[0].items()}
    with pytest.raises(FleetError):
        lab.client.write("POST", "nodes", "pve1", "firewall", "rules", data=data)
