# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Module vms with prune: what is not in the list goes, and nothing beyond the scope ever does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import repeated
from tests.modules.estate_lab import Lab, open_lab
from tests.modules.test_tenants import after_request

BLANK: dict[str, Any] = {"disks": [{"size": 1, "storage": "ceph"}], "memory": "1G"}


@pytest.fixture
def estate(quiet: Lab) -> Lab:
    """VMs of acme in and out of a pool, and everything that merely looks like one of acme's."""
    vms: dict[str, dict[str, Any]] = {
        "keep": {"tenant": "acme", "pool": "acme"},
        "web": {"tenant": "acme", "pool": "acme", "state": "started"},
        "no-pool": {"tenant": "acme"},
        "tag-of-2": {"tenant": "acme2"},
        "globex": {"tenant": "globex"},
        "in-pool": {"pool": "acme"},
        "nobodys": {},
        "two-owners": {"tags": ["tenant_acme"]},
        "own-template": {"tenant": "acme", "pool": "acme", "state": "template"},
    }
    for name, options in vms.items():
        vm = quiet.vm(name=name, **BLANK, **options)["vm"]
        if name == "two-owners":
            data = {"tags": "tenant_acme;tenant_globex"}
            quiet.client.write("PUT", "nodes", vm["node"], "qemu", vm["vmid"], "config", data=data)
    quiet.simulator.reset_log()
    return quiet


def names(lab: Lab) -> set[str]:
    return {row["name"] for row in lab.client.get("cluster", "resources", type="vm")}


SCOPES = [
    ({"tenant": "acme"}, {"web", "no-pool"}),
    ({"pool": "acme"}, {"web", "in-pool"}),
    ({"tenant": "acme", "pool": "acme"}, {"web"}),
    ({"tenant": "ACME"}, {"web", "no-pool"}),
]


@pytest.mark.parametrize(("scope", "gone"), SCOPES, ids=["tenant", "pool", "both", "other case"])
def test_only_what_is_in_the_scope_goes(estate: Lab, scope: dict[str, Any], gone: set[str]) -> None:
    before = names(estate)
    foreseen = estate.run("vms", check=True, prune=True, vms=[{"name": "keep"}], **scope)
    assert {vm["name"] for vm in foreseen["vms"] if vm["action"] == "removed"} == gone
    assert [diff["before_header"] for diff in foreseen["diff"]]
    assert estate.simulator.writes() == []
    assert names(estate) == before
    pruned = estate.run("vms", prune=True, vms=[{"name": "keep"}], **scope)
    assert not pruned.get("failed"), pruned
    assert pruned["diff"] == foreseen["diff"]
    assert {vm["name"] for vm in pruned["vms"] if vm["pruned"]} == gone
    assert names(estate) == before - gone
    again = estate.run("vms", prune=True, vms=[{"name": "keep"}], **scope)
    assert not again["changed"]


def acme_is(lab: Lab, *names: str) -> dict[str, Any]:
    """Return what prune says of a list of tenant acme's VMs, after a preview that says the same."""
    wanted: dict[str, Any] = {"tenant": "acme", "prune": True}
    wanted["vms"] = [{"name": name} for name in names]
    foreseen = lab.run("vms", check=True, **wanted)
    done = lab.run("vms", **wanted)
    assert not done.get("failed"), done
    assert done["changed"] == foreseen["changed"]
    return done


def test_a_template_that_the_listing_does_not_know_yet_stays() -> None:
    """The listing has the flag from statistics (pve-manager: API2Tools.pm, extract_vm_stats)."""
    with open_lab("--lag-s", "300") as lab:
        lab.vm(name="keep", tenant="acme", **BLANK)
        lab.vm(name="gold", tenant="acme", state="template", **BLANK)
        assert not acme_is(lab, "keep")["changed"]
        assert lab.run("vm_info", name="gold")["vms"]


@pytest.mark.usefixtures("fast")
def test_a_template_on_a_node_that_does_not_list_it_stays() -> None:
    with open_lab("--lag-s", "300") as lab:
        lab.vm(name="keep", tenant="acme", **BLANK, node="pve1")
        lab.vm(name="gold", tenant="acme", state="template", **BLANK, node="pve2")
        lab.simulator.fault(method="GET", path="^/nodes/pve2/qemu$", status=596, times=None)
        assert not acme_is(lab, "keep")["changed"]


def test_a_vm_that_is_listed_as_the_template_before_it_goes() -> None:
    with open_lab("--lag-s", "0") as lab:
        lab.vm(name="keep", tenant="acme", **BLANK)
        gold: dict[str, Any] = {"name": "gold", "tenant": "acme", "vmid": 5001}
        lab.vm(**gold, state="template", **BLANK)
        assert "gold" in names(lab)
        lab.simulator.steer("settings", {"lag_s": 300})
        lab.vm(**gold, state="absent")
        lab.vm(name="web", tenant="acme", vmid=5001, **BLANK)
        assert {vm["name"] for vm in acme_is(lab, "keep")["vms"] if vm["pruned"]} == {"web"}


def test_without_prune_nothing_goes(estate: Lab) -> None:
    result = estate.run("vms", tenant="acme", vms=[{"name": "keep"}])
    assert not result["changed"]
    assert estate.simulator.writes() == []


@pytest.mark.parametrize("when", ["planning", "working", "wrong"])
def test_nothing_goes_when_a_vm_of_the_list_fails(estate: Lab, when: str) -> None:
    before = names(estate)
    listed: dict[str, Any] = {"name": "new", **BLANK}
    if when == "planning":
        listed["source"] = "nosuch"
    elif when == "wrong":
        listed["memory"] = "1X"
    else:
        estate.simulator.fault(method="POST", path="/qemu$", status=500, message="no", times=1)
    result = estate.run("vms", prune=True, tenant="acme", vms=[{"name": "keep"}, listed])
    assert result["failed"]
    assert names(estate) == before
    if when != "wrong":
        assert {vm["name"] for vm in result["vms"] if vm["action"] == "kept"} == {"web", "no-pool"}
        assert result["summary"]["kept"] == 2
        assert not any(vm["changed"] for vm in result["vms"])
        assert any(
            "Not removed, because others failed: 2 VMs that" in line for line in result["warnings"]
        )


def test_a_vm_of_the_list_is_kept_whichever_way_it_is_named(estate: Lab) -> None:
    vmid = next(
        row["vmid"]
        for row in estate.client.get("cluster", "resources", type="vm")
        if row["name"] == "web"
    )
    result = estate.run(
        "vms",
        prune=True,
        tenant="acme",
        vms=[{"name": "keep"}, {"vmid": vmid}, {"name": "no-pool"}],
    )
    assert not result["changed"], result
    gone = estate.run(
        "vms", prune=True, tenant="acme", vms=[{"name": "keep"}, {"vmid": vmid, "name": "renamed"}]
    )
    assert {vm["name"] for vm in gone["vms"] if vm["action"] == "removed"} == {"no-pool"}
    assert "renamed" in names(estate)


def test_a_protected_vm_is_an_error_and_stays(estate: Lab) -> None:
    estate.vm(name="web", tenant="acme", protection=True)
    result = estate.run("vms", prune=True, tenant="acme", vms=[{"name": "keep"}])
    assert result["failed"]
    assert "protect" in result["msg"]
    assert {"web"} <= names(estate)


@pytest.mark.parametrize("tags", repeated(["tenant_globex", "tenant_acme;tenant_globex", ""]))
@pytest.mark.parametrize("at", ["listing", "reading", "stop"])
def test_a_vm_that_was_given_away_since_then_stays(estate: Lab, tags: str, at: str) -> None:
    rows = estate.client.get("cluster", "resources", type="vm")
    vmid = next(row["vmid"] for row in rows if row["name"] == "web")

    def matches(method: str, segments: tuple[Any, ...]) -> bool:
        if at == "listing":
            return segments[:2] == ("cluster", "resources")
        if at == "reading":
            return segments[-2:] == (vmid, "pending")
        return method == "POST" and segments[-1] == "stop"

    def give_away() -> None:
        estate.simulator.steer(f"vms/{vmid}", {"config": {"tags": tags}})

    with after_request(estate, matches, give_away):
        result = estate.run(
            "vms", prune=True, tenant="acme", vms=[{"name": "keep"}, {"name": "no-pool"}]
        )
    assert result["failed"], result
    assert "web" in names(estate)


def test_a_vm_that_left_the_pool_since_then_stays(estate: Lab) -> None:
    rows = estate.client.get("cluster", "resources", type="vm")
    vmid = next(row["vmid"] for row in rows if row["name"] == "in-pool")

    def matches(method: str, segments: tuple[Any, ...]) -> bool:
        return segments[-2:] == (vmid, "pending")

    def leave() -> None:
        estate.client.write("PUT", "pools", data={"poolid": "acme", "vms": str(vmid), "delete": 1})

    with after_request(estate, matches, leave):
        result = estate.run("vms", prune=True, pool="acme", vms=[{"name": "keep"}, {"name": "web"}])
    assert result["failed"], result
    assert result["error"]["reason"] == "outside the scope"
    assert "in-pool" in names(estate)


@pytest.mark.usefixtures("fast")
def test_vms_of_a_dead_node_are_reported_and_stay(estate: Lab) -> None:
    rows = {row["name"]: row for row in estate.client.get("cluster", "resources", type="vm")}
    node = rows["web"]["node"]
    there = {name for name, row in rows.items() if row["node"] == node}
    estate.simulator.steer(f"nodes/{node}", {"online": False})
    kept = next(name for name in ("no-pool", "keep", "web") if name not in there)
    result = estate.run("vms", prune=True, tenant="acme", vms=[{"name": kept}])
    assert result["failed"], result
    assert result["error"]["category"] == "NodeUnhealthy"
    assert [vm["vmid"] for vm in result["vms"] if vm["failed"]] == [rows["web"]["vmid"]]


def test_a_vm_without_a_name_goes_by_its_number(estate: Lab) -> None:
    rows = {
        row["name"]: row["vmid"] for row in estate.client.get("cluster", "resources", type="vm")
    }
    estate.simulator.steer(f"vms/{rows['in-pool']}", {"config": {"name": None}})
    result = estate.run("vms", prune=True, pool="acme", vms=[{"name": "keep"}])
    assert not result.get("failed"), result
    assert {vm["vmid"] for vm in result["vms"] if vm["action"] == "removed"} == {
        rows["in-pool"],
        rows["web"],
    }
    left = {row["vmid"] for row in estate.client.get("cluster", "resources", type="vm")}
    assert left == set(rows.values()) - {rows["in-pool"], rows["web"]}


def test_a_name_in_other_letters_is_not_a_reason_to_remove_a_vm(estate: Lab) -> None:
    wanted = {
        "tenant": "acme",
        "prune": True,
        **BLANK,
        "vms": [{"name": "keep"}, {"name": "WEB"}, {"name": "no-pool"}],
    }
    for check in (True, False):
        result = estate.run("vms", check=check, **wanted)
        assert {vm["name"]: vm["action"] for vm in result["vms"]} == {
            "keep": "unchanged",
            "WEB": "failed",
            "no-pool": "unchanged",
            "web": "kept",
        }
        assert "'web'" in result["msg"]
    assert estate.simulator.writes() == []


# -- quotas
# -----------------------------------------------------------------------------------------


def replaced(lab: Lab, limit: int, *names: str, check: bool = False, **more: Any) -> dict[str, Any]:
    """Prune acme's VMs down to these, new ones among them, within a quota."""
    listed = [{"name": name, **BLANK} for name in names]
    return lab.run(
        "vms", check=check, prune=True, tenant="acme", quota={"vms": limit}, vms=listed, **more
    )


def test_vms_are_replaced_within_the_quota(quiet: Lab) -> None:
    for name in ("old-1", "old-2"):
        quiet.vm(name=name, tenant="acme", **BLANK)
    foreseen = replaced(quiet, 2, "new-1", "new-2", check=True)
    assert not foreseen.get("failed"), foreseen
    result = replaced(quiet, 2, "new-1", "new-2")
    assert not result.get("failed"), result
    assert result["summary"] == foreseen["summary"]
    assert names(quiet) >= {"new-1", "new-2"}
    assert not names(quiet) & {"old-1", "old-2"}


def test_nothing_is_removed_before_all_new_vms_are_made(quiet: Lab) -> None:
    for name in ("old-1", "old-2"):
        quiet.vm(name=name, tenant="acme", **BLANK)
    quiet.simulator.reset_log()
    assert not replaced(quiet, 2, "new-1", "new-2").get("failed")
    methods = [row["method"] for row in quiet.simulator.writes() if row["path"].count("/") <= 4]
    assert methods.index("DELETE") > max(
        at for at, method in enumerate(methods) if method == "POST"
    )


def test_what_is_pruned_makes_no_room_for_more_than_the_quota(quiet: Lab) -> None:
    quiet.vm(name="old", tenant="acme", **BLANK)
    result = replaced(quiet, 2, "new-1", "new-2", "new-3")
    assert [vm["action"] for vm in result["vms"]] == ["created", "created", "failed", "kept"]
    assert result["vms"][2]["error"]["category"] == "QuotaExceeded"
    assert "old" in names(quiet)


def test_a_protected_vm_makes_no_room(quiet: Lab) -> None:
    quiet.vm(name="old", tenant="acme", protection=True, **BLANK)
    result = replaced(quiet, 1, "new")
    assert result["vms"][0]["error"]["category"] == "QuotaExceeded"
    assert "new" not in names(quiet)


def test_runs_that_fail_do_not_add_up_beyond_twice_the_quota(quiet: Lab) -> None:
    quiet.vm(name="old", tenant="acme", **BLANK)
    bad = {"name": "bad", "tenant": "acme", "source": "nosuch"}
    for turn in (1, 2):
        listed = [{"name": f"new-{turn}", **BLANK}, bad]
        result = quiet.run("vms", prune=True, tenant="acme", quota={"vms": 1}, vms=listed)
    assert result["vms"][0]["error"]["category"] == "QuotaExceeded"
    assert "twice the quota" in result["vms"][0]["msg"]
    assert names(quiet) >= {"old", "new-1"}
    assert "new-2" not in names(quiet)


def test_a_vm_that_the_list_removes_makes_room_too(quiet: Lab) -> None:
    quiet.vm(name="old", tenant="acme", **BLANK)
    listed = [{"name": "new", **BLANK}, {"name": "old", "state": "absent"}]
    result = quiet.run("vms", tenant="acme", quota={"vms": 1}, vms=listed)
    assert not result.get("failed"), result
    assert [vm["action"] for vm in result["vms"]] == ["created", "removed"]
