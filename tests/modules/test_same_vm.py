# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One VM of a name: also where a run was interrupted while PVE cloned, and where several runs make
it at once.
"""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import connect
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import FleetError
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.result import Result
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.fleet import fleet_spec
from ansible_collections.pve.fleet.plugins.module_utils._guests.fleet import plan
from ansible_collections.pve.fleet.plugins.module_utils._guests.fleet.run import run
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.marker import Marker
from tests.cases import repeated
from tests.modules.estate_lab import Lab, first_number, open_lab, run_at_once

# The first number of tenant acme's VM web1.
NUMBER = first_number("web1", "acme")
BLANK: dict[str, Any] = {"disks": [{"size": 1, "storage": "ceph"}], "cores": 1, "memory": "256M"}


def named(lab: Lab, name: str) -> dict[int, str]:
    """Return the VMs of that name with their tags, as the nodes themselves say."""
    rows = [
        row for node in ("pve1", "pve2", "pve3") for row in lab.client.get("nodes", node, "qemu")
    ]
    return {row["vmid"]: row.get("tags", "") for row in rows if row.get("name") == name}


@pytest.mark.usefixtures("alone", "fast")
@pytest.mark.parametrize("state", repeated(["started", "present"]))
@pytest.mark.parametrize("full", [False, True], ids=["linked", "full"])
@pytest.mark.parametrize("module", ["vm", "clone"])
def test_a_clone_that_is_still_made_is_gone_on_with(module: str, full: bool, state: str) -> None:
    with open_lab("--lag-s", "8", "--task-ms", "default=20,qmclone=2000") as lab:
        wanted: dict[str, Any] = {
            "name": "web1",
            "tenant": "acme",
            "source": "debian-13",
            "full": full,
            "cores": 3,
            "state": state,
        }
        first = lab.run(module, task_timeout=1, **wanted)
        assert first["error"]["category"] == "TaskTimeout"
        made = lab.run(module, **wanted)
        assert not made.get("failed"), made
        assert made["vm"]["vmid"] == NUMBER
        assert set(named(lab, "web1")) == {NUMBER}
        assert lab.status(made["vm"]) == ("running" if state == "started" else "stopped")
        assert made["vm"]["config"]["cores"] == 3
        assert not lab.run(module, **wanted)["changed"]
        volumes = lab.client.get("nodes", "pve1", "storage", "ceph", "content")
        assert {row["vmid"] for row in volumes} <= {9000, 9001, NUMBER}


def test_a_clone_of_another_name_or_tenant_is_not_the_runs_own() -> None:
    with open_lab("--lag-s", "8", "--task-ms", "default=20,qmclone=5000") as lab:
        others: list[dict[str, Any]] = [
            {"name": "web2", "tenant": "acme"},
            {"name": "web1", "tenant": "globex"},
            {"name": "web1"},
        ]
        for other in others:
            assert lab.run("vm", task_timeout=1, source="debian-13", **other)["failed"]
        made = lab.vm(name="web1", tenant="acme", source="debian-13")["vm"]
        assert made["vmid"] == NUMBER
        assert len(named(lab, "web1")) == 3
        assert "tenant_acme" in named(lab, "web1")[NUMBER].split(";")


@pytest.mark.parametrize("what", [BLANK, {"source": "debian-13"}], ids=["created", "cloned"])
def test_runs_that_make_one_vm_at_the_same_moment_make_one(what: dict[str, Any]) -> None:
    with open_lab("--lag-s", "8", "--latency-ms", "5") as lab:
        results = run_at_once(
            lab, [{"name": "web1", "tenant": "acme", "description": "one", **what}] * 3
        )
        assert not [result for result in results if isinstance(result, FleetError)], results
        assert set(named(lab, "web1")) == {NUMBER}
        assert {result["vm"]["vmid"] for result in results if isinstance(result, dict)} == {NUMBER}
        config = lab.client.get("nodes", *next(iter(where(lab, NUMBER))), "config")
        assert config["description"].startswith("one")


@pytest.mark.parametrize("what", [BLANK, {"source": "debian-13"}], ids=["created", "cloned"])
def test_lists_that_overlap_make_each_vm_once(what: dict[str, Any]) -> None:
    with open_lab("--lag-s", "8", "--task-ms", "default=10,qmclone=200,qmcreate=100") as lab:
        lists = [
            [{"name": f"web{number}"} for number in range(first, first + 6)] for first in (0, 3, 4)
        ]
        wanted = {"tenant": "acme", "state": "started", **what}

        def one(vms: list[dict[str, str]]) -> Result:
            params = (
                ArgumentSpecValidator(fleet_spec())
                .validate({**wanted, "vms": vms})
                .validated_parameters
            )
            with connect(lab.connection, {}) as client:
                return run(params, client)

        with ThreadPoolExecutor(len(lists)) as pool:
            results = list(pool.map(one, lists))
        assert [result.failure for result in results] == [None] * len(lists)
        for number in range(10):
            assert len(named(lab, f"web{number}")) == 1, number
        numbers = [{vm["name"]: vm["vmid"] for vm in result.values["vms"]} for result in results]
        for mine, other in itertools.combinations(numbers, 2):
            assert all(mine[name] == other[name] for name in mine.keys() & other.keys())


def where(lab: Lab, vmid: int) -> list[tuple[str, str, int]]:
    rows = lab.client.get("cluster", "resources", type="vm")
    return [(row["node"], "qemu", vmid) for row in rows if row["vmid"] == vmid]


SLOW_CLONE = ("--lag-s", "10", "--task-ms", "default=20,qmclone=2000")
LEFT: dict[str, Any] = {"name": "web1", "tenant": "acme", "source": "debian-13"}


def left_clone(lab: Lab, **options: Any) -> None:
    """Begin a clone with a run that ends while Proxmox VE still makes it."""
    left = lab.run("vm", task_timeout=1, **{**LEFT, **options})
    assert left["error"]["category"] == "TaskTimeout"


def list_of(lab: Lab, **options: Any) -> dict[str, Any]:
    return lab.run("vms", **options)


@pytest.mark.usefixtures("alone", "fast")
@pytest.mark.parametrize("module", ["vm", "vms"])
def test_a_vm_that_is_being_made_is_removed_when_it_is_complete(module: str) -> None:
    with open_lab(*SLOW_CLONE) as lab:
        left_clone(lab)
        wanted: dict[str, Any] = {"name": "web1", "tenant": "acme", "state": "absent"}
        if module == "vm":
            removed = lab.run("vm", **wanted)
        else:
            removed = list_of(lab, vms=[wanted])
        assert not removed.get("failed"), removed
        assert removed["changed"]
        assert named(lab, "web1") == {}


OTHER_NUMBERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"vmid": 5001}, {"tenant": "acme"}),
    ({"vmid_choice": "lowest"}, {"tenant": "acme"}),
    ({}, {}),
]


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("module", repeated(["vm", "vms", "remove"]))
@pytest.mark.parametrize(("made", "asked"), OTHER_NUMBERS, ids=["vmid", "lowest", "no tenant"])
def test_a_vm_that_is_being_made_with_another_number_is_removed(
    made: dict[str, Any], asked: dict[str, Any], module: str
) -> None:
    """The task that removes a VM need not know how the one that makes it chose its number."""
    with open_lab(*SLOW_CLONE) as lab:
        left_clone(lab, **made)
        options: dict[str, Any] = {"name": "web1", **asked}
        if module == "vm":
            removed = lab.run("vm", **options, state="absent")
        elif module == "vms":
            removed = list_of(lab, vms=[options], state="absent")
        else:
            removed = list_of(lab, vms=[options], remove=True)
        assert not removed.get("failed"), removed
        assert removed["changed"]
        assert removed["warnings"] == []
        assert named(lab, "web1") == {}


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("module", ["vm", "vms"])
def test_absent_says_so_where_a_vm_has_no_name_for_too_long(module: str) -> None:
    with open_lab("--lag-s", "10", "--task-ms", "default=20,qmclone=60000") as lab:
        left_clone(lab, vmid=5001)
        gone = [{"name": f"web{number}", "tenant": "acme"} for number in range(2)]
        lab.simulator.reset_log()
        if module == "vm":
            unchanged = lab.run("vm", name="web1", tenant="acme", state="absent")
        else:
            unchanged = list_of(lab, vms=gone, state="absent")
        assert not unchanged.get("failed"), unchanged
        assert not unchanged["changed"]
        assert "VM 5001 on node pve" in unchanged["warnings"][-1]
        assert "may become VM 'web1'" in unchanged["warnings"][-1]
        assert lab.simulator.writes() == []
        # With the number nothing else is waited for.
        assert lab.vm(vmid=5002, name="web1", state="absent")["warnings"] == []


@pytest.mark.usefixtures("fast")
def test_a_vm_that_is_created_without_a_source_is_removed_when_it_is_complete() -> None:
    with open_lab("--task-ms", "default=20,qmcreate=2000") as lab:
        made = lab.run("vm", name="web1", tenant="acme", task_timeout=1, **BLANK)
        assert made["error"]["category"] == "TaskTimeout"
        assert lab.vm(name="web1", tenant="acme", state="absent")["changed"]
        assert named(lab, "web1") == {}


@pytest.mark.usefixtures("fast")
def test_a_vm_that_is_made_for_too_long_is_not_reported_as_removed() -> None:
    with open_lab("--task-ms", "default=20,qmclone=8000") as lab:
        left_clone(lab)
        kept = lab.run("vm", name="web1", tenant="acme", state="absent", task_timeout=1)
        assert kept["error"]["category"] == "TaskTimeout"
        assert str(NUMBER) in kept["msg"]
        assert "UPID:" in kept["msg"]


@pytest.mark.usefixtures("alone")
def test_prune_removes_what_an_interrupted_run_left_without_a_tag() -> None:
    """The clone is finished and not configured: it has the tags of its source and the marker of the
    run.
    """
    with open_lab("--lag-s", "10") as lab:
        lab.vm(name="kept", tenant="acme", source="debian-13")
        numbers = {name: first_number(name, "acme") for name in ("web1", "own")}
        marker = Marker(origin=9000, run="r0", tenant="tenant_acme").render()
        for name, vmid in numbers.items():
            lab.client.task(
                "POST",
                "nodes",
                "pve1",
                "qemu",
                9000,
                "clone",
                data={"newid": vmid, "name": name, "description": marker if name == "web1" else ""},
            )
        wanted = {"vms": [{"name": "kept"}], "tenant": "acme", "source": "debian-13", "prune": True}
        foreseen = lab.run("vms", check=True, **wanted)
        pruned = list_of(lab, **wanted)
        assert not pruned.get("failed"), pruned
        assert named(lab, "web1") == {}
        assert set(named(lab, "own")) == {numbers["own"]}
        assert [vm["name"] for vm in foreseen["vms"]] == [vm["name"] for vm in pruned["vms"]]


@pytest.mark.usefixtures("fast")
def test_a_list_that_runs_again_beside_its_clones_makes_each_vm_once() -> None:
    """The first run gives up while Proxmox VE clones, two more begin at once."""
    with open_lab("--lag-s", "10", "--task-ms", "default=20,qmclone=3000") as lab:
        wanted: dict[str, Any] = {
            "vms": [{"name": f"web{number}"} for number in range(3)],
            "tenant": "acme",
            "source": "debian-13",
            "state": "started",
        }
        left = list_of(lab, task_timeout=1, **wanted)
        assert left["failed"]
        validated = ArgumentSpecValidator(fleet_spec()).validate(wanted).validated_parameters

        def again(_number: int) -> Result:
            with connect(lab.connection, {}) as client:
                return run(validated, client)

        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(again, range(2)))
        assert [result.failure for result in results] == [None, None]
        for number in range(3):
            made = named(lab, f"web{number}")
            assert len(made) == 1
            assert "tenant_acme" in next(iter(made.values()))
        assert not list_of(lab, **wanted)["changed"]


@pytest.mark.usefixtures("alone")
def test_prune_waits_until_it_can_read_whose_a_new_vm_is() -> None:
    with open_lab(*SLOW_CLONE) as lab:
        lab.vm(name="kept", tenant="acme", **BLANK)
        left_clone(lab)
        left_clone(lab, name="theirs", tenant="globex")
        pruned = list_of(lab, vms=[{"name": "kept"}], tenant="acme", prune=True)
        assert not pruned.get("failed"), pruned
        assert named(lab, "web1") == {}
        settled = lab.vm(name="theirs", tenant="globex", source="debian-13")["vm"]
        assert set(named(lab, "theirs")) == {settled["vmid"]}


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("options", [{}, {"tenant": "acme"}], ids=["pool", "tenant and pool"])
@pytest.mark.parametrize(
    "number", repeated([pytest.param({}, id="by name"), pytest.param({"vmid": 5001}, id="vmid")])
)
def test_prune_waits_until_a_new_vm_is_in_its_pool(
    number: dict[str, Any], options: dict[str, Any]
) -> None:
    """Proxmox VE puts a clone into its pool when it is complete; one of no pool is not pruned."""
    with open_lab(*SLOW_CLONE) as lab:
        lab.vm(name="kept", pool="acme", **options, **BLANK)
        left_clone(lab, **number, pool="acme")
        left_clone(lab, name="outside")
        foreseen = lab.run(
            "vms", check=True, vms=[{"name": "kept"}], pool="acme", prune=True, **options
        )
        pruned = list_of(lab, vms=[{"name": "kept"}], pool="acme", prune=True, **options)
        assert not pruned.get("failed"), pruned
        assert [vm["name"] for vm in pruned["vms"]] == ["kept", "web1"]
        assert [vm["name"] for vm in foreseen["vms"]] == ["kept", "web1"]
        assert named(lab, "web1") == {}
        assert set(named(lab, "outside")) == {first_number("outside", "acme")}


@pytest.mark.usefixtures("fast")
def test_a_rerun_by_number_waits_for_its_own_clone() -> None:
    with open_lab(*SLOW_CLONE) as lab:
        left_clone(lab, vmid=5001)
        made = lab.vm(**LEFT, vmid=5001)
        assert "tenant_acme" in made["vm"]["tags"]
        assert set(named(lab, "web1")) == {5001}


def test_the_number_that_is_free_again_gets_the_vm_back() -> None:
    with open_lab("--lag-s", "10") as lab:
        first = lab.vm(**LEFT)["vm"]["vmid"]
        lab.vm(name="web1", tenant="acme", state="absent")
        assert lab.vm(**LEFT)["vm"]["vmid"] == first == NUMBER


STALE: dict[str, Any] = {"tenant": "acme", "source": "debian-13", "vmid_choice": "lowest"}


@pytest.mark.parametrize("module", ["vm", "clone", "vms"])
def test_a_vm_listed_under_the_name_of_a_removed_one_is_found(module: str) -> None:
    """pve-manager takes names from statistics that are kept by number (API2Tools.pm,
    extract_vm_stats).
    """
    with open_lab("--lag-s", "0") as lab:
        lab.vm(name="old", **STALE)
        settle_listing(lab, "old")
        lab.simulator.steer("settings", {"lag_s": 300})
        lab.vm(name="old", tenant="acme", state="absent")
        vmid = lab.vm(name="new", **STALE)["vm"]["vmid"]
        assert listed_names(lab)[vmid] == "old"
        wanted = {"name": "new", **STALE}
        again = list_of(lab, vms=[wanted]) if module == "vms" else lab.run(module, **wanted)
        assert not again.get("failed"), again
        assert not again["changed"]
        assert set(named(lab, "new")) == {vmid}
        seen = lab.run("vm_info", name="new")["vms"]
        assert [vm["vmid"] for vm in seen] == [vmid]
        assert lab.run("vm_info", name="old")["vms"] == []
        assert [vm["name"] for vm in lab.run("vm_info", vmid=vmid)["vms"]] == ["new"]
        assert lab.run("vm_info", vmid=vmid, name="old")["vms"] == []
        taken = lab.run("snapshot", name="new", snapshot="s1")
        assert [vm["vmid"] for vm in taken["vms"]] == [vmid]
        assert lab.run("snapshot", name="old", snapshot="s2")["error"]["category"] == "NotFound"
        assert not lab.vm(name="old", tenant="acme", state="absent")["changed"]
        assert lab.vm(name="new", tenant="acme", state="absent")["changed"]
        assert named(lab, "new") == {}


WEB1: dict[str, Any] = {"name": "web1", "tenant": "acme"}


def see_move(lab: Lab, steer: list[list[Any]]) -> None:
    """Let something happen to a VM that has no name in the listing yet, between the request for
    the listing and the one for the list of its node.
    """
    assert listed_names(lab).get(NUMBER, "") == ""
    lab.simulator.fault(method="GET", path="^/nodes/pve1/qemu$", nth=1, steer=steer)


@pytest.mark.parametrize("module", ["vm", "clone", "vms"])
def test_a_vm_without_a_listed_name_that_moves_in_between_is_found(module: str) -> None:
    """A name is known once pvestatd has run (pve-manager: API2Tools.pm, extract_vm_stats)."""
    with open_lab("--lag-s", "300") as lab:
        wanted = {**WEB1, "source": "debian-13"}
        vmid = lab.vm(**wanted, node="pve1")["vm"]["vmid"]
        assert vmid == NUMBER
        see_move(lab, [["PUT", f"/vms/{vmid}", {"node": "pve3"}]])
        again = list_of(lab, vms=[wanted]) if module == "vms" else lab.run(module, **wanted)
        assert not again.get("failed"), again
        assert not again["changed"]
        assert set(named(lab, "web1")) == {vmid}


@pytest.mark.parametrize("module", ["vm", "vms"])
def test_a_vm_without_a_listed_name_that_moves_in_between_is_removed(module: str) -> None:
    with open_lab("--lag-s", "300") as lab:
        vmid = lab.vm(**WEB1, source="debian-13", node="pve1")["vm"]["vmid"]
        see_move(lab, [["PUT", f"/vms/{vmid}", {"node": "pve3"}]])
        gone = {**WEB1, "state": "absent"}
        done = list_of(lab, vms=[gone]) if module == "vms" else lab.run(module, **gone)
        assert not done.get("failed"), done
        assert done["changed"]
        assert named(lab, "web1") == {}


@pytest.mark.parametrize("module", ["vm", "clone", "vms"])
def test_a_vm_that_is_removed_in_between_leaves_its_number_to_the_next(module: str) -> None:
    """Runs that create one VM at the same time ask for the same number (decision 0014)."""
    with open_lab("--lag-s", "300") as lab:
        wanted = {**WEB1, "source": "debian-13"}
        vmid = lab.vm(**wanted, node="pve1")["vm"]["vmid"]
        see_move(lab, [["DELETE", f"/vms/{vmid}", None]])
        again = list_of(lab, vms=[wanted]) if module == "vms" else lab.run(module, **wanted)
        assert not again.get("failed"), again
        assert again["changed"]
        assert set(named(lab, "web1")) == {NUMBER}


@pytest.mark.parametrize("state", ["present", "absent"])
def test_two_vms_that_move_while_their_list_is_read_are_found(
    state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that is drained moves its VMs one after the other."""
    monkeypatch.setattr(plan, "READERS", 1)  # the second is read when the first has been found
    with open_lab("--lag-s", "0") as lab:
        vmids = {"web1": 5001, "web2": 5002}
        for name, vmid in vmids.items():
            lab.vm(name=name, tenant="acme", vmid=vmid, node="pve1", **BLANK)
        settle_listing(lab, "web2")
        for name, path in (("web1", "pve1/qemu/5001"), ("web2", "pve3/qemu/5001")):
            lab.simulator.fault(
                method="GET",
                path=f"^/nodes/{path}/pending$",
                nth=1,
                steer=[["PUT", f"/vms/{vmids[name]}", {"node": "pve3"}]],
            )
        wanted = [{"name": name, "tenant": "acme", "state": state, **BLANK} for name in vmids]
        result = list_of(lab, vms=wanted)
        assert not result.get("failed"), result
        assert [vm["changed"] for vm in result["vms"]] == [state == "absent"] * 2
        left = {} if state == "absent" else {5002: "tenant_acme"}
        assert named(lab, "web2") == left


@pytest.mark.parametrize("how", [{}, {"vmid": 5003}], ids=["by name", "vmid"])
def test_a_vm_listed_under_the_name_of_a_removed_one_is_not_cloned_for_it(
    how: dict[str, Any],
) -> None:
    with open_lab("--lag-s", "0") as lab:
        lab.vm(name="old", **STALE)
        settle_listing(lab, "old")
        lab.simulator.steer("settings", {"lag_s": 300})
        lab.vm(name="old", tenant="acme", state="absent")
        vmid = lab.vm(name="new", **STALE)["vm"]["vmid"]
        assert listed_names(lab)[vmid] == "old"
        options = {"name": "copy", "tenant": "acme", "full": True, **how}
        missing = lab.run("clone", source="old", **options)
        assert missing["error"]["category"] == "NotFound"
        made = lab.run("clone", source="new", **options)
        assert made["vm"]["cloned_from"] == vmid


def listed_names(lab: Lab) -> dict[int, str]:
    rows = lab.client.get("cluster", "resources", type="vm")
    return {int(row["vmid"]): row.get("name", "") for row in rows}


def settle_listing(lab: Lab, name: str) -> None:
    """Wait until the listing has a new VM's name."""
    deadline = lab.client.clock.monotonic() + 30
    while name not in listed_names(lab).values():
        assert lab.client.clock.monotonic() < deadline
        lab.client.clock.sleep(0.25)


def test_two_tenants_have_a_vm_of_the_same_name() -> None:
    with open_lab() as lab:
        mine = lab.vm(name="web1", tenant="acme", **BLANK)["vm"]
        other = lab.vm(name="web1", tenant="globex", **BLANK)["vm"]
        assert mine["vmid"] != other["vmid"]
        assert lab.vm(name="web1", tenant="acme", memory="512M")["vm"]["vmid"] == mine["vmid"]
        assert lab.config(other)["memory"] == "256"
        both = list_of(
            lab, vms=[{"name": "db1", "tenant": tenant} for tenant in ("acme", "globex")], **BLANK
        )
        assert not both.get("failed"), both
        assert len(named(lab, "db1")) == 2
        lab.vm(name="web1", tenant="acme", state="absent")
        assert set(named(lab, "web1")) == {other["vmid"]}


@pytest.mark.usefixtures("alone", "fast")
def test_what_another_tenants_run_left_unfinished_is_that_tenants() -> None:
    """It has the tags of its template still; the marker says whose it will be."""
    with open_lab("--lag-s", "0", "--task-ms", "default=20,qmclone=1500") as lab:
        for tenant in ("globex", "initech"):
            left_clone(lab, tenant=tenant)
        theirs = {first_number("web1", tenant) for tenant in ("globex", "initech")}
        await_names(lab, "web1", theirs)
        own: dict[str, Any] = {"name": "web1", "tenant": "acme"}
        assert not lab.vm(**own, state="absent")["changed"]
        for module, options in (
            ("vm", {**own, "adopt": True, "source": "debian-13"}),
            ("clone", {**own, "source": "debian-13"}),
        ):
            made = lab.run(module, **options)
            assert not made.get("failed"), made
            assert made["vm"]["vmid"] == NUMBER
        both = list_of(
            lab,
            vms=[{"name": "web1", "tenant": tenant} for tenant in ("acme", "globex")],
            source="debian-13",
        )
        assert not both.get("failed"), both
        assert [vm["vmid"] for vm in both["vms"]] == [NUMBER, first_number("web1", "globex")]
        refused = lab.refused(vmid=first_number("web1", "initech"), tenant="acme", adopt=True)
        assert refused["error"]["reason"] == "foreign tenant"
        assert "web1" not in refused["msg"]
        assert set(named(lab, "web1")) == {NUMBER, *theirs}


@pytest.mark.usefixtures("alone", "fast")
def test_a_list_tells_the_unfinished_vms_of_two_tenants_apart() -> None:
    with open_lab("--lag-s", "0", "--task-ms", "default=20,qmclone=1500") as lab:
        left_clone(lab, tenant="globex")
        await_names(lab, "web1", {first_number("web1", "globex")})
        tenants = ("acme", "globex")
        made = list_of(
            lab, vms=[{"name": "web1", "tenant": one} for one in tenants], source="debian-13"
        )
        assert not made.get("failed"), made
        assert set(named(lab, "web1")) == {first_number("web1", one) for one in tenants}


def await_names(lab: Lab, name: str, vmids: set[int]) -> None:
    """Wait until the nodes say that these VMs have the name."""
    deadline = time.monotonic() + 60
    while set(named(lab, name)) < vmids:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_foreign_vm_is_not_shown_in_an_error() -> None:
    with open_lab() as lab:
        other = lab.vm(name="secret-name", tenant="globex", **BLANK)["vm"]
        for options in ({"state": "present"}, {"state": "absent"}, {"adopt": True}):
            refused = lab.refused(vmid=other["vmid"], tenant="acme", **options)
            assert refused["error"]["reason"] == "foreign tenant"
            assert "secret-name" not in str(refused)
            assert "on node" not in refused["msg"]
        number = other["vmid"]
        for module, more in (
            ("vms", {"vms": [{"name": "mine", "vmid": number}], "remove": True}),
            ("vms", {"vms": [{"name": "mine", "source": str(number)}]}),
            ("vm", {"name": "mine", "source": str(number)}),
            ("clone", {"name": "mine", "source": str(number)}),
            ("vm", {"name": "mine", "disks": [{"import_from": f"ceph:vm-{number}-disk-0"}]}),
            ("snapshot", {"vmid": number, "snapshot": "s1"}),
        ):
            failed = lab.run(module, tenant="acme", **more)
            assert failed["error"]["category"] == "Conflict", failed
            assert "secret-name" not in str(failed)
            assert "globex" not in str(failed)


@pytest.mark.parametrize(
    "options",
    [
        {"source": 9001},
        {"source": "debian-13", "name": "new1"},
        {"source": "alma-10", "name": "new1", "cores": 4},
    ],
    ids=str,
)
def test_a_vm_of_another_origin_is_refused_by_number(options: dict[str, Any]) -> None:
    with open_lab() as lab:
        made = lab.vm(name="mine", vmid=5001, source="debian-13")["vm"]
        refused = lab.refused(vmid=5001, **options)
        assert (refused["error"]["category"], refused["error"]["reason"]) == (
            "Conflict",
            "other origin",
        )
        assert lab.config(made)["name"] == "mine"
        # The same VM, its name and its source: unchanged, also where only one of them is given.
        for same in (
            {"source": "debian-13", "name": "mine"},
            {"source": 9000},
            {"source": "debian-13"},
            # By its name it is the VM, whatever it was made from.
            {"source": "alma-10", "name": "mine"},
        ):
            assert not lab.vm(vmid=5001, **same)["changed"]
        assert lab.vm(vmid=5001, name="renamed")["vm"]["name"] == "renamed"


@pytest.mark.parametrize(
    "options",
    [
        {"name": "new1"},
        {"cores": 4},
        {"source": "debian-13", "name": "new1"},
        {"tenant": "acme", "adopt": True},
    ],
)
def test_a_template_is_changed_as_a_template_only(options: dict[str, Any]) -> None:
    with open_lab() as lab:
        assert lab.refused(vmid=9001, **options)["error"]["category"] == "Conflict"
        if "source" not in options:
            assert lab.vm(vmid=9001, state="template", **options)["changed"]
