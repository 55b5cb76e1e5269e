"""The firewall: what is kept, and what is refused."""

from __future__ import annotations

import pytest

from tests.simulator_tests.client import Client

BASE = "/nodes/pve1/qemu/100/firewall"


@pytest.fixture
def fw(lab: Client) -> Client:
    """A cluster with one machine."""
    lab.create(100)
    return lab


def test_options(fw: Client) -> None:
    empty = fw.get(f"{BASE}/options")
    assert empty == {"digest": "da39a3ee5e6b4b0d3255bfef95601890afd80709"}
    fw.put(f"{BASE}/options", enable=1, policy_in="DROP", digest=empty["digest"])
    assert {"enable": 1, "policy_in": "DROP"}.items() <= fw.get(f"{BASE}/options").items()
    answer = fw.call("PUT", f"{BASE}/options", {"enable": 0, "digest": empty["digest"]})
    assert (
        answer.reason == "detected modified configuration - file changed by other user? Try again."
    )
    answer = fw.call("PUT", f"{BASE}/options", {"delete": "nosuch"})
    assert answer.errors == {"delete": "no such option 'nosuch'"}


def test_rules_come_on_top_and_can_be_moved(fw: Client) -> None:
    for comment in ("a", "b", "c"):
        fw.post(f"{BASE}/rules", type="in", action="ACCEPT", comment=comment, pos=9)

    def order() -> list[str]:
        return [rule["comment"] for rule in fw.get(f"{BASE}/rules")]

    assert order() == ["c", "b", "a"]
    fw.put(f"{BASE}/rules/0", moveto=2)
    assert order() == ["b", "c", "a"]
    fw.put(f"{BASE}/rules/2", moveto=0)
    assert order() == ["a", "b", "c"]
    fw.put(f"{BASE}/rules/0", enable=1, source="10.0.0.0/8", comment="-")
    rule = fw.get(f"{BASE}/rules/0")
    del rule["digest"]
    assert rule == {
        "type": "in",
        "action": "ACCEPT",
        "enable": 1,
        "source": "10.0.0.0/8",
        "ipversion": 4,
        "pos": "0",
    }
    fw.delete(f"{BASE}/rules/0")
    assert fw.call("GET", f"{BASE}/rules/2").reason == "no rule at position 2"


@pytest.mark.parametrize(
    ("rule", "errors"),
    [
        ({"dport": "22"}, {"proto": "missing property - 'dport' requires this property"}),
        ({"dport": "99999", "proto": "tcp"}, {"dport": "invalid format - invalid port '99999'\n"}),
        ({"dport": "22", "proto": "gre"}, {"dport": "protocol 'gre' does not support ports"}),
        ({"proto": "nosuch"}, {"proto": "invalid format - unknown protocol 'nosuch'\n"}),
        ({"macro": "nosuch"}, {"macro": "unknown macro 'nosuch'"}),
        ({"source": "nosuch"}, {"source": "no such alias 'nosuch'"}),
        ({"source": "+nosuch"}, {"source": "no such ipset 'nosuch'"}),
        ({"iface": "eth0"}, {"iface": "value does not match the regex pattern 'net\\d+'"}),
        ({"action": "NOPE"}, {"action": "unknown action 'NOPE'"}),
        ({"type": "forward"}, {"type": "invalid rule type 'forward' for rule_env 'vm'"}),
    ],
)
def test_rules_that_make_no_sense(fw: Client, rule: dict[str, str], errors: dict[str, str]) -> None:
    answer = fw.call("POST", f"{BASE}/rules", {"type": "in", "action": "ACCEPT", **rule})
    assert (answer.status, answer.errors) == (400, errors)


def test_aliases(fw: Client) -> None:
    fw.post(f"{BASE}/aliases", name="Lan", cidr="10.0.0.0/8")
    assert fw.get(f"{BASE}/aliases/lan") == {"name": "Lan", "cidr": "10.0.0.0/8", "ipversion": 4}
    answer = fw.call("POST", f"{BASE}/aliases", {"name": "lan", "cidr": "10.0.0.1"})
    assert answer.errors == {"name": "alias 'lan' already exists"}
    fw.put(f"{BASE}/aliases/lan", cidr="10.0.0.1", rename="host")
    assert [alias["name"] for alias in fw.get(f"{BASE}/aliases")] == ["host"]
    assert fw.call("GET", f"{BASE}/aliases/lan").errors == {"name": "no such alias"}
    assert fw.get(f"{BASE}/refs") == [
        {"type": "alias", "name": "host", "ref": "host", "scope": "guest"}
    ]


def test_address_sets(fw: Client) -> None:
    fw.post(f"{BASE}/ipset", name="web", comment="x")
    assert fw.get(f"{BASE}/ipset")[0].items() >= {"name": "web", "comment": "x"}.items()
    fw.post(f"{BASE}/ipset/web", cidr="10.1.2.3/8", nomatch=1)
    assert (
        fw.get(f"{BASE}/ipset/web/10.0.0.0/8").items()
        >= {"cidr": "10.0.0.0/8", "nomatch": 1}.items()
    )
    answer = fw.call("POST", f"{BASE}/ipset/web", {"cidr": "10.0.0.0/8"})
    assert answer.errors == {"cidr": "address '10.0.0.0/8' already exists"}
    assert fw.call("DELETE", f"{BASE}/ipset/web").reason == "IPSet 'web' is not empty"
    fw.delete(f"{BASE}/ipset/web/10.0.0.0%2F8")
    fw.delete(f"{BASE}/ipset/web")
    assert fw.call("GET", f"{BASE}/ipset/web").reason == "no such IPSet 'web'"


def test_a_clone_has_the_settings_too_and_a_destroyed_machine_leaves_none(fw: Client) -> None:
    fw.put(f"{BASE}/options", enable=1)
    fw.ok("POST", "/nodes/pve1/qemu/100/clone", newid=101)
    assert fw.get("/nodes/pve1/qemu/101/firewall/options")["enable"] == 1
    fw.ok("DELETE", "/nodes/pve1/qemu/101")
    fw.create(101)
    assert "enable" not in fw.get("/nodes/pve1/qemu/101/firewall/options")


CLUSTER = "/cluster/firewall"


def test_what_a_rule_may_say_depends_on_its_place(fw: Client) -> None:
    """pve-firewall: Firewall.pm, rule_env_direction_lookup and rule_env_iface_lookup."""
    fw.post(f"{CLUSTER}/groups", group="web")
    rule = {"type": "forward", "action": "ACCEPT"}
    assert fw.call("POST", f"{BASE}/rules", rule).errors == {
        "type": "invalid rule type 'forward' for rule_env 'vm'"
    }
    fw.post(f"{CLUSTER}/groups/web", **rule)
    fw.post("/nodes/pve1/firewall/rules", **rule)
    vnet = "/cluster/sdn/vnets/v1/firewall/rules"
    assert fw.call("GET", vnet).reason == "invalid vnet specified"
    fw.post("/cluster/sdn/zones", zone="lan", type="simple")
    fw.post("/cluster/sdn/vnets", vnet="v1", zone="lan")
    assert fw.call("GET", vnet).reason == "invalid vnet specified"
    fw.ok("PUT", "/cluster/sdn")
    refused = fw.call("POST", vnet, {**rule, "iface": "vmbr0"})
    assert refused.errors == {"type": "parameter -i not allowed for this rule type"}
    refused = fw.call("POST", f"{CLUSTER}/rules", {"type": "forward", "action": "REJECT"})
    assert refused.errors == {"action": "cannot define REJECT rules on forward chain"}


def test_names_of_the_cluster_are_names_of_each_guest(fw: Client) -> None:
    """A rule that names an alias which is gone is listed with the error."""
    fw.post(f"{CLUSTER}/aliases", name="office", cidr="10.7.0.0/16")
    refused = fw.call("POST", f"{CLUSTER}/ipset", {"name": "o1", "rename": "o2"})
    assert refused.errors == {"name": "IPSet 'o2' does not exist"}
    fw.post(f"{BASE}/rules", type="in", action="ACCEPT", source="dc/office")
    (rule,) = fw.get(f"{BASE}/rules")
    assert (rule["ipversion"], "errors" in rule) == (4, False)
    fw.delete(f"{CLUSTER}/aliases/office")
    (rule,) = fw.get(f"{BASE}/rules")
    assert rule["errors"] == {"source": "no such alias 'dc/office'"}


def test_rules_follow_the_new_name_of_a_security_group(fw: Client) -> None:
    """pve-firewall: API2/Firewall/Groups.pm, create_security_group with `rename`."""
    fw.post(f"{CLUSTER}/groups", group="old")
    fw.post(f"{BASE}/rules", type="group", action="old")
    fw.post(f"{CLUSTER}/groups", group="new", rename="old")
    assert [rule["action"] for rule in fw.get(f"{BASE}/rules")] == ["new"]
    assert [row["group"] for row in fw.get(f"{CLUSTER}/groups")] == ["new"]


def test_names_of_sets_and_groups_are_read_in_lower_case(fw: Client) -> None:
    """Firewall.pm, generic_fw_config_parser: the section in lower case is later in the file."""
    base = "/cluster/firewall"
    fw.post(f"{base}/ipset", name="Admins", comment="one")
    assert [(row["name"], row["comment"]) for row in fw.get(f"{base}/ipset")] == [("admins", "one")]
    answer = fw.call("POST", f"{base}/ipset/Admins", {"cidr": "10.0.0.1"})
    assert answer.reason == "no such IPSet 'Admins'"
    fw.post(f"{base}/ipset/admins", cidr="10.0.0.1")
    fw.post(f"{base}/ipset", name="ADMINS")
    assert [row["cidr"] for row in fw.get(f"{base}/ipset/admins")] == ["10.0.0.1"]
    fw.post(f"{base}/groups", group="Web")
    assert [row["group"] for row in fw.get(f"{base}/groups")] == ["web"]
    answer = fw.call("POST", f"{base}/groups/Web", {"type": "in", "action": "DROP"})
    assert answer.reason == "no such security group 'Web'"
    rule = {"type": "in", "action": "DROP", "source": "+dc/Admins"}
    answer = fw.call("POST", f"{BASE}/rules", rule)
    assert answer.errors == {"source": "no such ipset 'Admins'"}


def test_a_member_whose_alias_is_gone_has_an_error(fw: Client) -> None:
    """Firewall.pm, generic_fw_config_parser and copy_list_with_digest."""
    base = "/cluster/firewall"
    fw.post(f"{base}/aliases", name="Office", cidr="192.0.2.0/24")
    fw.post(f"{base}/ipset", name="own")
    fw.post(f"{base}/ipset/own", cidr="dc/Office")
    assert "errors" not in fw.get(f"{base}/ipset/own")[0]
    fw.delete(f"{base}/aliases/office")
    assert fw.get(f"{base}/ipset/own")[0]["errors"] == {"cidr": "no such alias 'Office'"}
