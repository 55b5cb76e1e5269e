# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""HA rules of the affinity and anti-affinity of guests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.rules import (
    read_rules,
    require_not_kept,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import VmRow
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    Conflict,
    FleetError,
    PermissionDenied,
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.ha.keep import (
    HaConfiguration,
    KeptPlacement,
    plan_kept,
    require_allowed,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.ha.placement import (
    DerivedRule,
    GuestPlacement,
    derive_rules,
    marked_tenant,
    scope_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.ha.resource import (
    HA_RESOURCE,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.ha.rule import (
    HA_RULE,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.estate.placement import (
    placements_of,
)

ACME = "tenant_acme"


def row(vmid: int, name: str, *tags: str, template: bool = False) -> VmRow:
    return VmRow("qemu", vmid, "pve1", name, "running", tags, None, template, None, 1, 1, 1, 0)


WEB1, WEB2, WEB3 = (row(100 + n, f"web{n}", ACME, "web") for n in (1, 2, 3))
DB1, DB2 = (row(200 + n, f"db-{n}", ACME, "db") for n in (1, 2))
OTHER = row(301, "web9", "tenant_globex", "web")
TEMPLATE = row(900, "web-template", ACME, "web", template=True)
ALL = (WEB1, WEB2, WEB3, DB1, DB2, OTHER, TEMPLATE)


def kept(one: VmRow, tenant: str | None = ACME, **rules: list[str]) -> GuestPlacement:
    return GuestPlacement(one, read_rules({"keep": True, **rules}), tenant)


def members(rules: list[DerivedRule]) -> list[tuple[str, list[str]]]:
    return [(rule.direction, sorted(rule.resources)) for rule in rules]


def test_guests_that_all_keep_apart_are_one_rule() -> None:
    guests = [kept(one, anti_affinity=["web"]) for one in (WEB1, WEB2, WEB3)]
    (rule,) = derive_rules(guests, ALL)
    assert sorted(rule.resources) == ["vm:101", "vm:102", "vm:103"]
    assert rule.comment == "apart: web [pve.fleet: placement=tenant_acme]"
    assert marked_tenant(rule.comment) == ACME


def test_a_guest_apart_from_others_does_not_keep_these_apart() -> None:
    """Proxmox VE keeps every two resources of a negative rule apart (pve-ha-manager:
    PVE/HA/Rules/ResourceAffinity.pm).
    """
    found = derive_rules([kept(WEB1, anti_affinity=["db"])], ALL)
    assert sorted(members(found)) == [
        ("apart", ["vm:101", "vm:201"]),
        ("apart", ["vm:101", "vm:202"]),
    ]


def test_guests_together_are_one_rule() -> None:
    found = derive_rules([kept(WEB1, affinity=["name:db-*"])], ALL)
    assert members(found) == [("together", ["vm:101", "vm:201", "vm:202"])]


def test_name_of_a_rule_stays_if_guests_come_and_go() -> None:
    two = derive_rules([kept(one, anti_affinity=["web"]) for one in (WEB1, WEB2)], (WEB1, WEB2))
    three = derive_rules([kept(one, anti_affinity=["web"]) for one in (WEB1, WEB2, WEB3)], ALL)
    assert [rule.name for rule in two] == [rule.name for rule in three]
    other = derive_rules([kept(OTHER, "tenant_globex", anti_affinity=["web"])], (OTHER, WEB1))
    assert other == []


def test_guests_of_other_tenants_and_templates_are_left_out() -> None:
    found = derive_rules([kept(WEB1, affinity=["web"])], ALL)
    assert members(found) == [("together", ["vm:101", "vm:102", "vm:103"])]


@pytest.mark.parametrize("what", ["a single VM", "an evacuation"])
def test_keep_of_a_single_guest_is_refused(what: str) -> None:
    for keep in (True, False):
        with pytest.raises(ValidationFailed, match=r"pve\.fleet\.vms"):
            require_not_kept(read_rules({"keep": keep}), what)
    require_not_kept(read_rules({}), what)


def test_keep_of_a_preference_is_refused() -> None:
    with pytest.raises(ValidationFailed, match="always required"):
        read_rules({"keep": True, "affinity_policy": "preferred"})


# -- the plan -------------------------------------------------------------------------------------


def placement(*rules: DerivedRule, listed: str = "vm:101 vm:102 vm:103") -> KeptPlacement:
    sids = frozenset(listed.split())
    nodes = frozenset({"n1", "n2", "n3"})
    known = sids | {"vm:201"}
    return KeptPlacement(rules, scope_of([ACME]), sids, known, frozenset({"vm:101"}), nodes)


def rule(**answer: str) -> dict[str, object]:
    known = {"type": "resource-affinity", "affinity": "negative", **answer}
    return HA_RULE.values(known)


NO_CLIENT: Any = None  # a plan needs no request


def planned(kept_rules: KeptPlacement, state: HaConfiguration) -> list[str]:
    plan = plan_kept(kept_rules, state, NO_CLIENT)
    return [text for one in plan.resources for text in one.plan.summaries]


APART = derive_rules([kept(one, anti_affinity=["web"]) for one in (WEB1, WEB2)], (WEB1, WEB2))[0]
MARK = "[pve.fleet: placement=tenant_acme]"


def test_resources_are_created_before_the_rule_with_their_power_state() -> None:
    plan = plan_kept(placement(APART), HaConfiguration(), NO_CLIENT)
    assert [one.plan.summaries[0] for one in plan.resources] == [
        "Create HA resource 'vm:101'",
        "Create HA resource 'vm:102'",
        f"Create HA rule '{APART.name}'",
    ]
    states = [one.plan.steps[0].data["state"] for one in plan.resources[:2]]
    assert states == ["started", "stopped"]


def test_what_the_list_no_longer_says_is_removed() -> None:
    mine = rule(resources="vm:101,vm:102", comment=f"apart: web {MARK}")
    resources = {
        "vm:101": HA_RESOURCE.values({"comment": MARK}),
        "vm:102": HA_RESOURCE.values({"comment": "by hand"}),
    }
    found = planned(placement(), HaConfiguration({"fleet-apart-1": mine}, resources))
    assert found == ["Delete HA rule 'fleet-apart-1'", "Delete HA resource 'vm:101'"]


FOREIGN = {
    "by hand": ("spread", rule(resources="vm:101,vm:102", comment="ours")),
    "without the mark": ("fleet-apart-1", rule(resources="vm:101,vm:102")),
    "of another tenant": (
        "fleet-apart-1",
        rule(resources="vm:101,vm:102", comment="x [pve.fleet: placement=tenant_globex]"),
    ),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_rules_of_others_stay_with_their_resources(case: str) -> None:
    name, values = FOREIGN[case]
    resources = {"vm:101": HA_RESOURCE.values({"comment": MARK})}
    assert planned(placement(), HaConfiguration({name: values}, resources)) == []


def test_rule_with_a_guest_that_is_not_listed_stays() -> None:
    mine = rule(resources="vm:101,vm:201", comment=f"apart: db {MARK}")
    plan = plan_kept(placement(), HaConfiguration({"fleet-apart-1": mine}), NO_CLIENT)
    assert not plan.resources
    assert "fleet-apart-1" in plan.warnings[0]


def test_contradiction_with_a_rule_of_others_is_explained() -> None:
    together = rule(resources="vm:101,vm:102", affinity="positive")
    with pytest.raises(Conflict) as refused:
        planned(placement(APART), HaConfiguration({"by-hand": together}))
    error: FleetError = refused.value
    assert f"{APART.name} (apart: web): vm:101, vm:102 run on one node" in error.message
    assert "by-hand" in error.message


def login(*privileges: str) -> Any:
    """Return a client with these privileges on C(/)."""
    answer = {"/": dict.fromkeys(privileges, 1)}
    return SimpleNamespace(privileges=lambda: answer, login="ops@pve", release=lambda: (9, 2, 11))


def test_login_without_the_privilege_is_refused_before_the_first_guest() -> None:
    """The API of HA rules needs Sys.Console on / (pve-ha-manager: PVE/API2/HA/Rules.pm)."""
    plan = plan_kept(placement(APART), HaConfiguration(), NO_CLIENT)
    with pytest.raises(PermissionDenied, match=r"\(/, Sys\.Console\)"):
        require_allowed(plan, login("Sys.Audit"))
    require_allowed(plan, login("Sys.Audit", "Sys.Console"))
    unchanged = plan_kept(placement(), HaConfiguration(), NO_CLIENT)
    require_allowed(unchanged, NO_CLIENT)


def rules_in(cluster: list[DerivedRule]) -> dict[str, dict[str, Any]]:
    enabled = {"disable": False}
    return {
        one.name: {**enabled, "comment": one.comment, "resources": one.resources} for one in cluster
    }


def test_kept_placement_is_expressed_again() -> None:
    """A guest that a selector matches does not get the selector, unless its rules need it."""
    guests = [kept(one, anti_affinity=["web"]) for one in (WEB1, WEB2, WEB3)]
    guests.append(kept(DB1, anti_affinity=["name:web2"], affinity=["name:web1"]))
    found, lost = placements_of(rules_in(derive_rules(guests, ALL)), ALL, "tenant_")
    web = {"keep": True, "anti_affinity": ["web"]}
    assert found == {
        **{one.vmid: web for one in (WEB1, WEB2, WEB3)},
        DB1.vmid: {"keep": True, "anti_affinity": ["name:web2"], "affinity": ["name:web1"]},
    }
    assert lost == []


def test_edited_rule_of_a_placement_is_not_expressed() -> None:
    guests = [kept(one, anti_affinity=["web"]) for one in (WEB1, WEB2, WEB3)]
    ((name, rule),) = rules_in(derive_rules(guests, ALL)).items()
    others = {"fleet-apart-by-hand": {**rule, "comment": ""}}
    for edit in ({"resources": rule["resources"] - {"vm:101"}}, {"disable": True}):
        rules = {name: {**rule, **edit}, **others}
        assert placements_of(rules, ALL, "tenant_") == ({}, [name])
