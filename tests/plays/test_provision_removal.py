# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role provision removes: the VMs of tenants that are named, and with prune those that no
list has.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pytest

from tests.demo.lab import Lab
from tests.plays.provision_helpers import DEPROVISION, PROVISION, Player, diffs, vm, writes


def test_removal_touches_no_vm_that_the_estate_does_not_mean(player: Player, lab: Lab) -> None:
    lab.make_vm("lonely", tags="tenant_globex")
    other = lab.make_vm("renamed", tags="tenant_acme")
    guarded = lab.make_vm("guarded", tags="tenant_acme", protection=1)
    mark = lab.mark()
    outcomes = player.cases(
        {"name": "no tenant", "tasks": "absent", "all": True, "vms": [vm("lonely")]},
        {
            "name": "other tenant",
            "tasks": "absent",
            "all": True,
            "vms": [vm("lonely", tenant="acme")],
        },
        {
            "name": "other name",
            "tasks": "absent",
            "all": True,
            "vms": [vm("mine", tenant="acme", vmid=other)],
        },
        {
            "name": "protected",
            "tasks": "absent",
            "tenants": ["acme"],
            "vms": [vm("guarded", tenant="acme")],
        },
        {
            "name": "gone",
            "tasks": "absent",
            "tenants": ["acme"],
            "vms": [vm("mine", tenant="acme")],
        },
    )
    assert "another tenant or name: lonely" in outcomes["no tenant"].refusal
    # By name, another tenant's VM does not exist for this one.
    other_tenant = outcomes["other tenant"].result
    assert [(row["status"], row["changed"]) for row in other_tenant] == [("absent", False)]
    assert "another tenant or name: acme/mine" in outcomes["other name"].refusal
    assert outcomes["protected"].failure_of("guarded")[0] == "Conflict"
    assert [(row["status"], row["changed"]) for row in outcomes["gone"].result] == [
        ("absent", False)
    ]
    assert writes(lab, mark) == []
    lifted = player.cases(
        {
            "name": "lifted",
            "tasks": "absent",
            "all": "yes",
            "vms": [vm("guarded", tenant="acme", protection=False)],
        }
    )["lifted"]
    assert [(row["status"], row["changed"]) for row in lifted.result] == [("absent", True)]
    assert guarded not in {one.vmid for one in lab.machines()}


def test_a_dry_run_of_the_removal_lists_exactly_what_goes(player: Player, lab: Lab) -> None:
    lab.make_vm("a-one", tags="tenant_acme", scsi0="ceph:1")
    lab.make_vm("a-two", tags="tenant_acme")
    lab.make_vm("a-unlisted", tags="tenant_acme")
    lab.make_vm("g-one", tags="tenant_globex")
    before = {one.name for one in lab.machines()}
    goes = {"a-one", "a-two"}
    estate = [vm(name, tenant="acme") for name in (*sorted(goes), "a-never-made")]
    said = {"provision_tenants": ["acme"], "provision_vms": [*estate, vm("g-one", tenant="globex")]}
    mark = lab.mark()
    foreseen = player.play(DEPROVISION, "--check", "--diff", **said).expect()
    assert writes(lab, mark) == []
    assert {one.name for one in lab.machines()} == before
    removed = player.play(DEPROVISION, "--diff", **said).expect()
    assert before - {one.name for one in lab.machines()} == goes
    assert diffs(foreseen.output) == diffs(removed.output)
    listed = "".join(diffs(foreseen.output))
    assert {name for name in before if name in listed} == goes
    again = player.play(DEPROVISION, "--check", "--diff", **said).expect()
    assert (again.changed, diffs(again.output)) == (0, [])


@pytest.mark.slow
def test_removal_ends_with_the_templates_that_others_are_linked_to(
    player: Player, lab: Lab
) -> None:
    clones = [
        {"name": name, "source": "gold", "full": False, "state": "present"}
        for name in ("one", "two")
    ]
    estate = [vm("gold", state="template"), *clones]
    made = player.cases({"name": "first", "vms": estate}, {"name": "second", "vms": estate})
    assert made["first"].failure_of("one")[0] == "Conflict"
    assert "the same list has yet to create it" in made["first"].failure_of("two")[1]
    assert [row["action"] for row in made["second"].result] == ["unchanged", "created", "created"]
    gone = player.cases({"name": "gone", "tasks": "absent", "all": True, "vms": estate})["gone"]
    assert [(row["name"], row["action"], row["status"]) for row in gone.result] == [
        ("gold", "removed", "absent"),
        ("one", "removed", "absent"),
        ("two", "removed", "absent"),
    ]


def test_removal_cares_for_nothing_else_that_the_estate_says(player: Player, lab: Lab) -> None:
    lab.make_vm("leaving", tags="tenant_acme")
    broken = vm(
        "leaving", tenant="acme", memory="4Q", nics=[{"network": "nowhere"}], state="started"
    )
    gone = player.cases(
        {
            "name": "gone",
            "tasks": "absent",
            "tenants": ["acme"],
            "vms": [{**broken, "class": "none"}],
            "parallel": 1,
        }
    )["gone"]
    assert [(row["name"], row["action"]) for row in gone.result] == [("leaving", "removed")]


# Pruning.


class Kept(NamedTuple):
    """A case in which nothing may be pruned, and a part of the message."""

    case: dict[str, Any]
    text: str


ACME = vm("a-one", tenant="acme", state="present")
KEPT: dict[str, Kept] = {
    "no tenant": Kept({"vms": [ACME]}, "tenants names none"),
    "two tenants": Kept(
        {"vms": [ACME, vm("g-one", tenant="globex")], "tenants": ["acme", "globex"]},
        "tenants names acme, globex",
    ),
    "no VM of the tenant": Kept(
        {"vms": [], "tenants": ["acme"]}, "no VM of the list has that tenant"
    ),
    "capitals": Kept(
        {"vms": [ACME, vm("a-two", tenant="Acme")], "tenants": ["acme"]},
        "as if they were not listed: Acme/a-two",
    ),
    "a prefix that makes the same tag": Kept(
        {"vms": [ACME, vm("a-two", tenant="e", tenant_prefix="tenant_acm")], "tenants": ["acme"]},
        "as if they were not listed: e/a-two",
    ),
    "given to another tenant": Kept(
        {"vms": [ACME, vm("a-two", tenant="globex")], "tenants": ["acme"]}, "but not for it: a-two"
    ),
    "without its tenant": Kept(
        {"vms": [ACME, vm("A-two")], "tenants": ["acme"]}, "but not for it: a-two"
    ),
    "outside the pool for all": Kept(
        {"vms": [{**ACME, "pool": "globex"}], "tenants": ["acme"], "defaults": {"pool": "acme"}},
        "this one says another",
    ),
}


@pytest.mark.slow
def test_nothing_is_pruned_where_it_is_not_clear_what_may_be(player: Player, lab: Lab) -> None:
    for name in ("a-one", "a-two"):
        lab.make_vm(name, tags="tenant_acme")
    mark = lab.mark()
    outcomes = player.cases(
        *({"name": name, "prune": True, **kept.case} for name, kept in KEPT.items())
    )
    messages = {name: outcome.refusal for name, outcome in outcomes.items()}
    assert {
        name: messages[name] for name, kept in KEPT.items() if kept.text not in messages[name]
    } == {}
    one_host = player.play(
        PROVISION, provision_vm={"tenant": "acme"}, provision_prune=True, provision_tenants=["acme"]
    )
    assert "provision_vm cannot be pruned" in one_host.expect(2).output
    kept_vm = {"tenant": "acme", "placement": {"keep": True}}
    kept = player.play(PROVISION, provision_vm=kept_vm)
    assert "provision_vm cannot have placement.keep" in " ".join(kept.expect(2).output.split())
    assert writes(lab, mark) == []


def test_only_unlisted_vms_of_the_tenant_are_pruned_and_only_when_all_went_well(
    player: Player, lab: Lab
) -> None:
    lab.make_vm("g-one", tags="tenant_globex")
    lab.make_vm("nobodys")
    lab.make_vm("a-one", tags="tenant_acme")
    lab.make_vm("a-two", tags="tenant_acme")
    before = {one.name for one in lab.machines()}
    estate = [ACME, vm("a-three", tenant="acme", state="present"), vm("g-two", tenant="globex")]
    said: dict[str, Any] = {"provision_prune": True, "provision_tenants": ["acme"]}
    mark = lab.mark()

    failing = player.play(
        PROVISION, provision_vms=[{**ACME, "pool": "acne"}, *estate[1:]], **said
    ).expect(2)
    assert "! acme/a-two    not removed, because other guests failed" in failing.output
    assert {one.name for one in lab.machines()} == before | {"a-three"}

    predicted = player.play(PROVISION, "--check", "--diff", provision_vms=estate, **said).expect()
    assert "Plan: 1 to remove, 2 unchanged" in predicted.output
    assert {one.name for one in lab.machines()} == before | {"a-three"}
    pruned = player.play(PROVISION, "--diff", provision_vms=estate, **said).expect()
    assert re.search(r"- acme/a-two  \w+ on pve1.*, not in the estate", pruned.output)
    assert diffs(pruned.output) == diffs(predicted.output)
    assert {one.name for one in lab.machines()} == (before | {"a-three"}) - {"a-two"}

    mark = lab.mark()
    assert player.play(PROVISION, provision_vms=estate, **said).expect().changed == 0
    assert writes(lab, mark) == []
