# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Modules ha_resource and ha_rule against the simulator, which follows pve-ha-manager."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
from tests.modules.estate_lab import Lab, open_lab
from tests.modules.table_lab import done, refused

ONE, TWO, THREE, FOUR = "vm:300", "vm:301", "vm:302", "vm:303"
TENANTS = {ONE: "acme", TWO: "acme", THREE: "globex", FOUR: "globex"}
APART: dict[str, Any] = {"name": "apart", "type": "resource-affinity", "affinity": "negative"}
TOGETHER: dict[str, Any] = {"name": "together", "type": "resource-affinity", "affinity": "positive"}
PLACE: dict[str, Any] = {"name": "place", "type": "node-affinity"}


@pytest.fixture(scope="module")
def ha_lab() -> Iterator[Lab]:
    with open_lab("--lag-s", "0", "--auth-delay-s", "0") as opened:
        yield opened


@pytest.fixture
def lab(ha_lab: Lab) -> Lab:
    """Four VMs of two tenants under the HA manager."""
    ha_lab.simulator.clear_faults()
    ha_lab.simulator.reset()
    for sid, tenant in TENANTS.items():
        vmid = int(sid[3:])
        ha_lab.vm(name=f"ha-{vmid}", vmid=vmid, tenant=tenant, memory="128M", disks=[])
        done(ha_lab, "ha_resource", sid=sid, request_state="stopped")
    return ha_lab


def test_resource_is_created_changed_and_removed(lab: Lab) -> None:
    lab.vm(name="ha-new", vmid=310, memory="128M", disks=[])
    made = done(lab, "ha_resource", sid="vm:310", request_state="stopped", max_restart=3)
    assert made["ha_resource"] == {
        "sid": "vm:310",
        "request_state": "stopped",
        "max_restart": 3,
        "max_relocate": 1,
        "failback": True,
        "group": "",
        "comment": "",
    }
    changed = done(lab, "ha_resource", sid="vm:310", failback=False, comment="slow")
    assert changed["plan"] == ["Set failback, comment of HA resource 'vm:310'"]
    done(lab, "ha_resource", sid="vm:310", comment="")
    listed = lab.run("ha_resource_info")["ha_resources"]
    (one,) = [row for row in listed if row["sid"] == "vm:310"]
    pasted = {key: value for key, value in one.items() if key != "group"}
    assert not lab.run("ha_resource", **pasted)["changed"]
    assert done(lab, "ha_resource", sid="vm:310", state="absent")["ha_resource"] is None


def test_request_budget(lab: Lab) -> None:
    done(lab, "ha_rule", **APART, resources=[ONE, TWO])
    for options, budget in (
        ({"name": "apart", "resources": [ONE]}, 1),
        ({"name": "apart", "comment": "changed"}, 5),
        ({"name": "apart", "resources": [THREE]}, 6),
    ):
        lab.simulator.reset_log()
        assert not lab.run("ha_rule", **options).get("failed")
        assert len(lab.simulator.log()) == budget


RESOURCES_REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"sid": "300"}, "sid", "Write it as vm:100"),
    ({"sid": "vm:999"}, "unknown VM", "there is no guest vm:999"),
    ({"sid": "ct:300"}, "unknown VM", "Write it as vm:300"),
    ({"sid": ONE, "group": "fast"}, "version", "pve.fleet.ha_rule"),
    ({"sid": ONE, "comment": "x", "tenant": "globex"}, "another tenant", "tenant globex"),
    ({"sid": ONE, "state": "absent", "tenant": "globex"}, "another tenant", "tenant globex"),
]


@pytest.mark.parametrize(("options", "reason", "word"), RESOURCES_REFUSED, ids=str)
def test_resource_is_refused(lab: Lab, options: dict[str, Any], reason: str, word: str) -> None:
    result = refused(lab, "ha_resource", **options)
    assert result["error"]["reason"] == reason, result["msg"]
    assert word in result["msg"]


def test_resource_that_is_removed_leaves_its_rules(lab: Lab) -> None:
    done(lab, "ha_rule", **TOGETHER, resources=[ONE, TWO])
    done(lab, "ha_rule", **PLACE, nodes=["pve1"], resources=[THREE])
    result = lab.run("ha_resource", sid=ONE, state="absent")
    assert result["warnings"] == [f"{ONE} also leaves its HA rules: together"]
    result = lab.run("ha_resource", sid=THREE, state="absent")
    assert result["warnings"] == [f"{THREE} also leaves its HA rules: place (deleted with it)"]
    assert [row["name"] for row in lab.run("ha_rule_info")["ha_rules"]] == ["together"]


def test_rule_is_created_changed_and_deleted(lab: Lab) -> None:
    made = done(lab, "ha_rule", **APART, resources=[TWO, ONE], comment="two", tenant="acme")
    assert made["ha_rule"] == {
        "name": "apart",
        "type": "resource-affinity",
        "resources": [ONE, TWO],
        "affinity": "negative",
        "disable": False,
        "comment": "two",
    }
    assert done(lab, "ha_rule", name="apart", disable=True)["ha_rule"]["disable"]
    assert not done(lab, "ha_rule", name="apart", disable=False)["ha_rule"]["disable"]
    exact = done(lab, "ha_rule", name="apart", resources=[ONE, THREE], exact=True)
    assert exact["ha_rule"]["resources"] == [ONE, THREE]
    assert done(lab, "ha_rule", name="apart", state="absent")["ha_rule"] is None


def test_rule_of_nodes(lab: Lab) -> None:
    made = done(lab, "ha_rule", **PLACE, nodes=["pve2:0", "pve1:2"], strict=True, resources=[ONE])
    assert made["ha_rule"]["nodes"] == ["pve1:2", "pve2"]
    changed = done(lab, "ha_rule", name="place", nodes=["pve3"], strict=False)
    assert changed["ha_rule"]["strict"] is False
    (listed,) = lab.run("ha_rule_info")["ha_rules"]
    assert not lab.run("ha_rule", **listed)["changed"]


RULES_REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({**APART, "resources": [ONE, "vm:9000"]}, "unknown HA resource", "vm:9000: not managed"),
    ({**APART, "resources": [ONE, "300"]}, "resources", "Write it as vm:100"),
    ({**APART, "resources": [ONE]}, "contradiction", "an affinity needs two"),
    ({**APART, "resources": [ONE, TWO, THREE, FOUR]}, "contradiction", "there are 3"),
    ({**APART, "resources": [ONE, THREE], "tenant": "acme"}, "another tenant", THREE),
    ({**APART, "nodes": ["pve1"]}, "nodes", "option of type node-affinity"),
    ({**PLACE, "resources": [ONE]}, "nodes", "nodes is required"),
    ({**PLACE, "nodes": ["nope"], "resources": [ONE]}, "unknown node", "pve1, pve2, pve3"),
    ({**PLACE, "nodes": ["pve1:x"], "resources": [ONE]}, "nodes", "pve1:2"),
    ({**PLACE, "nodes": ["pve1", "pve1:2"], "resources": [ONE]}, "nodes", "two priorities"),
    ({"name": "kept", "state": "absent", "tenant": "globex"}, "another tenant", "tenant globex"),
    ({"name": "kept", "type": "node-affinity", "nodes": ["pve1"]}, "fixed option", "type"),
    ({**APART, "resources": [ONE, TWO]}, "contradiction", "run on one node by rule kept"),
]


@pytest.mark.parametrize(("options", "reason", "word"), RULES_REFUSED, ids=str)
def test_rule_is_refused(lab: Lab, options: dict[str, Any], reason: str, word: str) -> None:
    done(lab, "ha_rule", **{**TOGETHER, "name": "kept"}, resources=[ONE, TWO])
    result = refused(lab, "ha_rule", **options)
    assert result["error"]["reason"] == reason, result["msg"]
    assert word in result["msg"]


AVOID: dict[str, Any] = {**PLACE, "affinity": "negative"}


def test_rule_keeps_resources_away_from_nodes(lab: Lab) -> None:
    """Source: pve-ha-manager, PVE/HA/Rules/NodeAffinity.pm: affinity, by default positive."""
    made = done(lab, "ha_rule", **AVOID, nodes=["pve1"], resources=[ONE], strict=True)
    assert made["ha_rule"]["affinity"] == "negative"
    changed = done(lab, "ha_rule", name="place", affinity="positive")
    assert changed["plan"] == ["Set affinity of HA rule 'place'"]
    (listed,) = lab.run("ha_rule_info")["ha_rules"]
    assert (listed["affinity"], listed["nodes"]) == ("positive", ["pve1"])
    assert not lab.run("ha_rule", **listed)["changed"]
    done(lab, "ha_rule", name="place", affinity="negative")
    result = refused(lab, "ha_rule", **{**APART, "resources": [ONE, TWO]}, nodes=["pve2"])
    assert result["error"]["reason"] == "nodes"


AVOIDING_REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"nodes": ["pve1", "pve2", "pve3"]}, "contradiction", "away from all nodes"),
    ({"nodes": ["pve1:2"]}, "contradiction", "no priority"),
    ({"nodes": ["nope"]}, "unknown node", "pve1, pve2, pve3"),
]


@pytest.mark.parametrize(("options", "reason", "word"), AVOIDING_REFUSED, ids=str)
def test_rule_that_avoids_nodes_is_refused(
    lab: Lab, options: dict[str, Any], reason: str, word: str
) -> None:
    """Source: PVE/HA/Rules/NodeAffinity.pm: check_nonempty_negative_nodes_complement and
    check_unprioritized_negative_nodes.
    """
    result = refused(lab, "ha_rule", **AVOID, resources=[ONE], **options)
    assert result["error"]["reason"] == reason, result["msg"]
    assert word in result["msg"]


@pytest.mark.parametrize("release", [(9, 0, 3), (9, 2, 5)])
def test_rule_that_avoids_nodes_needs_its_version(lab: Lab, release: tuple[int, ...]) -> None:
    """Before Proxmox VE 9.2.6 a node rule has no affinity (pve-manager: d48652d1)."""
    with mock.patch.object(Client, "release", return_value=release):
        result = refused(lab, "ha_rule", **AVOID, nodes=["pve1"], resources=[ONE])
        assert result["error"]["reason"] == "version"
        assert f"this is {'.'.join(map(str, release))}" in result["msg"]
        assert "affinity=positive" in result["msg"]
        assert done(lab, "ha_rule", **PLACE, nodes=["pve1"], resources=[ONE])["changed"]


TAKEN_OVER: list[dict[str, Any]] = [
    {"resources": [ONE, TWO], "exact": True},
    {"resources": [], "exact": True},
    {"comment": "mine"},
    {"disable": True},
]


@pytest.mark.parametrize("options", TAKEN_OVER, ids=str)
@pytest.mark.parametrize("members", [[THREE, FOUR], [ONE, THREE]], ids=str)
def test_rule_of_another_tenant_is_not_taken_over(
    lab: Lab, options: dict[str, Any], members: list[str]
) -> None:
    """A tenant owns a rule only if all guests before and after the change belong to the tenant."""
    done(lab, "ha_rule", **APART, resources=members)
    result = refused(lab, "ha_rule", name="apart", tenant="acme", **options)
    assert result["error"]["reason"] == "another tenant", result["msg"]
    assert THREE in result["msg"]


def test_disabled_rule_may_contradict(lab: Lab) -> None:
    done(lab, "ha_rule", **TOGETHER, resources=[ONE, TWO])
    done(lab, "ha_rule", **APART, resources=[ONE, TWO], disable=True)
    result = refused(lab, "ha_rule", name="apart", disable=False)
    assert result["error"]["contradictions"] == [
        f"{ONE}, {TWO} run on one node by rule together, and on different nodes by rule apart"
    ]


def test_rule_with_guests_of_several_tenants_is_warned_about(lab: Lab) -> None:
    result = lab.run("ha_rule", **APART, resources=[ONE, THREE])
    assert result["warnings"] == ["The rule has guests of several tenants: acme, globex"]


def test_older_version(old: Lab) -> None:
    """PVE 8 has groups and no rules; a group is a setting of the resource."""
    old.vm(name="ha-old", vmid=320, memory="128M", disks=[])
    for options in (APART, {"name": "apart", "state": "absent"}):
        result = refused(old, "ha_rule", **options)
        assert result["error"]["category"] == "NotSupported", result["msg"]
    assert old.run("ha_rule_info")["error"]["category"] == "NotSupported"
    result = refused(old, "ha_resource", sid="vm:320", failback=False)
    assert "came with Proxmox VE 9.0" in result["msg"]
    result = refused(old, "ha_resource", sid="vm:320", group="fast")
    assert "there is no HA group 'fast'" in result["msg"]
    done(old, "ha_group", name="fast", nodes=["pve1"])
    made = done(old, "ha_resource", sid="vm:320", group="fast", request_state="stopped")
    assert made["ha_resource"]["group"] == "fast"
    assert done(old, "ha_resource", sid="vm:320", group="")["ha_resource"]["group"] == ""
    assert done(old, "ha_resource", sid="vm:320", state="absent")["changed"]


def test_group_of_an_older_version(old: Lab) -> None:
    """PVE 8: pve-ha-manager, API2/HA/Groups.pm."""
    made = done(old, "ha_group", name="fast", nodes=["pve2:0", "pve1:2"], restricted=True)
    assert made["ha_group"] == {
        "name": "fast",
        "nodes": ["pve1:2", "pve2"],
        "restricted": True,
        "nofailback": False,
        "comment": "",
    }
    changed = done(old, "ha_group", name="fast", restricted=False, nofailback=True, comment="c")
    assert changed["plan"] == ["Set restricted, nofailback, comment of HA group 'fast'"]
    (listed,) = old.run("ha_group_info")["ha_groups"]
    assert not old.run("ha_group", **listed)["changed"]
    exported = old.run("cluster_export_info", sections=["ha_groups", "ha_rules"])
    assert (exported["missing"], list(exported["cluster"])) == ([], ["cluster_ha_groups"])
    assert not old.run("cluster", ha_groups=exported["cluster"]["cluster_ha_groups"])["changed"]
    result = refused(old, "ha_group", name="fast", nodes=["nope"])
    assert "there is no node nope" in result["msg"]
    old.vm(name="ha-in-group", vmid=321, memory="128M", disks=[])
    done(old, "ha_resource", sid="vm:321", group="fast", request_state="stopped")
    result = refused(old, "ha_group", name="fast", state="absent")
    assert result["error"]["resources"] == ["vm:321"]
    done(old, "ha_resource", sid="vm:321", state="absent")
    assert done(old, "ha_group", name="fast", state="absent")["ha_group"] is None


def test_lost_answers_about_a_group_are_looked_after(old: Lab) -> None:
    """The fault table has no group, because its cluster is Proxmox VE 9."""
    steps: tuple[tuple[str, dict[str, Any]], ...] = (
        ("POST", {"nodes": ["pve1"]}),
        ("PUT", {"nodes": ["pve1", "pve2:3"]}),
        ("DELETE", {"state": "absent"}),
    )
    for method, options in steps:
        old.simulator.fault(method=method, path="/ha/groups", drop="after")
        made = old.run("ha_group", name="lost", **options)
        assert made.get("changed"), made
        assert not old.run("ha_group", name="lost", **options)["changed"]
        old.simulator.clear_faults()
        old.simulator.reset_log()


def test_group_of_a_newer_version_is_refused(lab: Lab) -> None:
    for options in ({"nodes": ["pve1"]}, {"state": "absent"}):
        result = refused(lab, "ha_group", name="fast", **options)
        assert result["error"]["category"] == "NotSupported"
        assert "rule of type node-affinity" in result["msg"]
    assert lab.run("cluster_export_info", sections=["ha_groups"])["complete"]


def test_manager_is_disarmed_and_armed(lab: Lab) -> None:
    """PVE carries a command out in a later round (pve-ha-manager: CRM.pm, Manager.pm)."""
    lab.simulator.steer("/settings", {"task_ms": "ha=100"})
    frozen = {"armed_state": "disarmed", "resource_mode": "freeze"}
    made = done(lab, "ha_state", **frozen)
    assert (made["plan"], made["ha_state"]) == (
        ["Disarm the HA manager with resource mode freeze"],
        frozen,
    )
    result = refused(lab, "ha_state", armed_state="disarmed", resource_mode="ignore")
    assert "Proxmox VE ignores another mode" in result["msg"]
    shown = lab.run("cluster_info")["cluster"]
    assert (shown["ha"]["fencing"], shown["ha"]["resource_mode"]) == ("disarmed", "freeze")
    assert any("HA manager is disarmed" in reason for reason in shown["health"]["reasons"])
    armed = done(lab, "ha_state", armed_state="armed")["ha_state"]
    assert armed == {"armed_state": "armed", "resource_mode": None}


def test_state_of_nodes_and_services(lab: Lab) -> None:
    """The rows are those of pve-ha-manager: API2/HA/Status.pm."""
    found = lab.run("ha_state_info")["ha_state"]
    assert (found["armed_state"], found["quorate"], found["master"]) == ("armed", True, "pve1")
    assert [(one["node"], one["state"], one["mode"]) for one in found["nodes"]] == [
        ("pve1", "online", "active"),
        ("pve2", "online", "active"),
        ("pve3", "online", "active"),
    ]
    assert {one["age"] for one in found["nodes"]} <= {0, 1, 2}
    assert {one["sid"] for one in found["services"]} == set(TENANTS)
    assert (found["fenced"], found["errors"]) == ([], [])
    lab.simulator.steer("/nodes/pve3", {"maintenance": True})
    third = lab.run("ha_state_info")["ha_state"]["nodes"][2]
    assert (third["state"], third["mode"]) == ("maintenance", "maintenance")
    assert "maintenance mode" in third["status"]


def test_state_of_an_older_version(old: Lab) -> None:
    found = old.run("ha_state_info")["ha_state"]
    assert (found["armed_state"], found["nodes"], found["quorate"]) == (None, [], True)


def test_disarming_of_another_run_is_waited_for(lab: Lab) -> None:
    lab.simulator.steer("/settings", {"task_ms": "ha=100"})
    call = ("cluster", "ha", "status", "disarm-ha")
    lab.client.write("POST", *call, data={"resource-mode": "ignore"})
    task: dict[str, Any] = {"armed_state": "disarmed", "resource_mode": "ignore"}
    assert lab.run("ha_state", **task)["ha_state"] == task
    assert not lab.run("ha_state", **task)["changed"]


def test_state_of_the_manager_is_refused(lab: Lab, old: Lab) -> None:
    result = refused(lab, "ha_state", armed_state="armed", resource_mode="freeze")
    assert result["error"]["reason"] == "resource_mode"
    result = refused(lab, "ha_state", armed_state="disarmed")
    assert "resource_mode" in result["msg"]
    result = refused(old, "ha_state", armed_state="disarmed", resource_mode="freeze")
    assert result["error"]["category"] == "NotSupported"
    assert "came with Proxmox VE 9.2, and this is 8.4" in result["msg"]


KEPT: dict[str, Any] = {
    "tenant": "acme",
    "memory": "128M",
    "disks": [{"size": 1, "storage": "ceph"}],
    "placement": {"keep": True, "anti_affinity": ["web"]},
}
WEBS = [{"name": f"web{number}", "tags": ["web"], "state": "started"} for number in (1, 2)]


def rules_of(lab: Lab) -> list[dict[str, Any]]:
    return list(lab.run("ha_rule_info")["ha_rules"])


def resources_of(lab: Lab) -> dict[str, str]:
    """Return the comments of the HA resources."""
    listed = lab.run("ha_resource_info")["ha_resources"]
    return {one["sid"]: one["comment"] for one in listed}


def test_placement_of_a_list_is_kept_by_ha_rules(lab: Lab) -> None:
    before = resources_of(lab)
    foreseen = lab.run("vms", check=True, **KEPT, vms=WEBS)
    made = lab.run("vms", **KEPT, vms=WEBS)
    assert not made.get("failed"), made
    assert foreseen["placement_rules"]["plan"] == made["placement_rules"]["plan"]
    assert made["placement_rules"]["done"] == made["placement_rules"]["plan"]
    assert [one["after"] for one in foreseen["diff"]][2:] == [one["after"] for one in made["diff"]][
        2:
    ]
    sids = sorted(f"vm:{one['vmid']}" for one in made["vms"])
    (rule,) = rules_of(lab)
    assert (rule["affinity"], rule["resources"]) == ("negative", sids)
    assert resources_of(lab).keys() == before.keys() | set(sids)

    lab.simulator.reset_log()
    again = lab.run("vms", **KEPT, vms=WEBS)
    assert (again["changed"], again["placement_rules"]["plan"]) == (False, [])
    assert lab.simulator.writes() == []

    more = [*WEBS, {"name": "web3", "tags": ["web"]}]
    grown = lab.run("vms", **KEPT, vms=more)
    assert not grown.get("failed"), grown
    assert rules_of(lab)[0]["name"] == rule["name"]
    assert len(rules_of(lab)[0]["resources"]) == 3

    options = {**KEPT, "placement": {"keep": False}}
    ended = lab.run("vms", **options, vms=more)
    assert not ended.get("failed"), ended
    assert rules_of(lab) == []
    assert resources_of(lab) == before
    assert all(one["status"] == "running" for one in ended["vms"][:2])


def test_changed_placement_is_drift(lab: Lab) -> None:
    lab.run("vms", **KEPT, vms=WEBS)

    def drift() -> list[tuple[str, str, list[str]]]:
        found = lab.run("drift_info", defaults=KEPT, vms=WEBS)
        assert not found.get("failed"), found
        return [
            (one["section"], one["status"], [option["option"] for option in one["options"]])
            for one in found["drift"]["cluster"]
        ]

    assert drift() == []
    (rule,) = rules_of(lab)
    done(lab, "ha_rule", name=rule["name"], disable=True, resources=[ONE])
    assert drift() == [("ha_rules", "drifted", ["disable", "resources"])]
    done(lab, "ha_rule", name=rule["name"], state="absent")
    assert drift()[0][:2] == ("ha_rules", "missing")
    done(lab, "ha_resource", sid=rule["resources"][0], state="absent")
    assert [one[:2] for one in drift()] == [("ha_resources", "missing"), ("ha_rules", "missing")]
    assert lab.run("vms", **KEPT, vms=WEBS)["changed"]
    assert drift() == []


def test_kept_placement_is_exported(lab: Lab) -> None:
    """It belongs to the estate, so that a cluster file has neither its rules nor its resources."""
    away = {"keep": True, "anti_affinity": ["db"], "affinity": ["name:web1"]}
    front = {"name": "front", "placement": away}
    databases = [{"name": f"db{number}", "tags": ["db"]} for number in (1, 2)]
    webs = [{**one, "placement": KEPT["placement"]} for one in WEBS]
    task = {**KEPT, "placement": None}
    made = lab.run("vms", **task, vms=[*webs, front, *databases])
    assert not made.get("failed"), made
    exported = lab.run("estate_info", tenant="acme")["estate"]
    placements = {one.get("name"): one.get("placement") for one in exported["provision_vms"]}
    assert placements["web1"] == {"keep": True, "anti_affinity": ["web"]}
    assert (placements["front"], placements["db1"]) == (away, None)
    again = [{"name": name, "placement": one} for name, one in placements.items() if one]
    again += databases
    assert lab.run("vms", tenant="acme", vms=again)["placement_rules"]["plan"] == []
    file = lab.run("cluster_export_info", sections=["ha_resources", "ha_rules"])["cluster"]
    assert [one["sid"] for one in file["cluster_ha_resources"]] == [ONE, TWO, THREE, FOUR]
    assert "cluster_ha_rules" not in file


def test_contradicting_placement_is_refused_before_the_first_guest(lab: Lab) -> None:
    done(lab, "ha_rule", **TOGETHER, resources=[ONE, TWO])
    listed = [{"vmid": int(sid[3:]), "tags": ["web"]} for sid in (ONE, TWO)]
    result = refused(lab, "vms", **KEPT, vms=[*listed, *WEBS])
    assert result["error"]["reason"] == "contradiction"
    assert "together" in result["msg"]


def test_placement_is_not_kept_if_a_guest_fails(lab: Lab) -> None:
    failing = [*WEBS, {"name": "web3", "tags": ["web"], "node": "nowhere"}]
    result = lab.run("vms", **KEPT, vms=failing)
    assert result["failed"]
    assert result["placement_rules"] == {"plan": [], "done": []}
    assert any("because guests failed" in text for text in result["warnings"])
    assert rules_of(lab) == []


def test_single_vm_cannot_keep_its_placement(lab: Lab) -> None:
    result = refused(lab, "vm", name="web1", tenant="acme", placement={"keep": True})
    assert "pve.fleet.vms" in result["msg"]


def test_placement_cannot_be_kept_by_an_older_version(old: Lab) -> None:
    result = refused(old, "vms", **KEPT, vms=WEBS)
    assert result["error"]["category"] == "NotSupported", result["msg"]
