# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules pool and pool_info against the simulator, which answers as pve-manager's PVE/API2/Pool.pm
does.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import (
    Client,
    connect,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    FleetError,
    PermissionDenied,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.pool import POOL
from tests.modules.estate_lab import Lab, open_lab

VMS = (30001, 30002, 30003)


@pytest.fixture(scope="module")
def estate() -> Iterator[Lab]:
    """A cluster with three VMs."""
    with open_lab("--lag-s", "0", "--auth-delay-s", "0") as lab:
        for vmid in VMS:
            lab.client.task(
                "POST", "nodes", "pve1", "qemu", data={"vmid": vmid, "name": f"p{vmid}"}
            )
        yield lab


@pytest.fixture
def lab(estate: Lab) -> Iterator[Lab]:
    """The cluster without the pools of these tests."""
    yield estate
    estate.simulator.clear_faults()
    names = [row["poolid"] for row in estate.client.get("pools") if row["poolid"].startswith("t")]
    for name in sorted(names, reverse=True):
        done = estate.run("pool", name=name, state="absent", force=True)
        assert not done.get("failed"), done


def pool(lab: Lab, *, check: bool = False, **options: Any) -> dict[str, Any]:
    result = lab.run("pool", check=check, **options)
    assert not result.get("failed"), result
    return result


def refused(lab: Lab, **options: Any) -> dict[str, Any]:
    """Return the failure, which is the same in check mode and must come before any write."""
    lab.simulator.reset_log()
    foreseen = lab.run("pool", check=True, **options)
    result = lab.run("pool", **options)
    assert result.get("failed"), result
    assert foreseen["msg"] == result["msg"]
    assert lab.simulator.writes() == []
    assert "Traceback" not in str(result)
    return result


def as_foreseen(lab: Lab, **options: Any) -> dict[str, Any]:
    """Run in check mode, then twice: no write is foreseen, the diff is the run's, and nothing is
    left to do.
    """
    lab.simulator.reset_log()
    foreseen = pool(lab, check=True, **options)
    assert lab.simulator.writes() == []
    made = pool(lab, **options)
    assert made["changed"]
    assert made["changed"] == foreseen["changed"]
    assert made["diff"] == foreseen["diff"]
    assert made["pool"] == foreseen["pool"]
    assert made["done"] == made["plan"] == foreseen["plan"]
    assert foreseen["done"] == []
    lab.simulator.reset_log()
    again = pool(lab, **options)
    assert not again["changed"]
    assert again["diff"] == {"before": {}, "after": {}}
    assert again["pool"] == made["pool"]
    assert lab.simulator.writes() == []
    return made


def server_side(lab: Lab, name: str) -> dict[str, Any]:
    """Return the pool as the server has it."""
    (found,) = lab.client.get("pools", poolid=name)
    vms = sorted(row["vmid"] for row in found["members"] if "vmid" in row)
    storages = sorted(row["storage"] for row in found["members"] if row["type"] == "storage")
    return {"comment": found.get("comment", ""), "vms": vms, "storages": storages}


def exists(lab: Lab, name: str) -> bool:
    return name in {row["poolid"] for row in lab.client.get("pools")}


def test_created_changed_and_deleted_as_foreseen(lab: Lab) -> None:
    made = as_foreseen(
        lab, name="t1", comment="first", vms=[30002, 30001, 30001], storages=["ceph"]
    )
    assert made["pool"] == {
        "name": "t1",
        "parent": None,
        "comment": "first",
        "vms": [30001, 30002],
        "storages": ["ceph"],
    }
    assert made["plan"] == ["Create pool 't1'", "Add VM 30001, VM 30002, storage ceph to pool 't1'"]
    assert server_side(lab, "t1") == {
        "comment": "first",
        "vms": [30001, 30002],
        "storages": ["ceph"],
    }

    changed = as_foreseen(lab, name="t1", comment="second", vms=[30003])
    assert changed["plan"] == ["Set comment of pool 't1' and add VM 30003 to pool 't1'"]
    assert changed["diff"]["before"] == {"comment": "first", "vms": [30001, 30002]}
    assert changed["diff"]["after"] == {"comment": "second", "vms": [30001, 30002, 30003]}
    assert server_side(lab, "t1")["storages"] == ["ceph"]

    assert as_foreseen(lab, name="t1", comment="")["pool"]["comment"] == ""
    exact = as_foreseen(lab, name="t1", vms=[30003], exact=True)
    assert exact["pool"]["vms"] == [30003]
    assert exact["pool"]["storages"] == ["ceph"], "an option that is left out is not affected"
    assert as_foreseen(lab, name="t1", vms=[], storages=[], exact=True)["pool"]["vms"] == []

    gone = as_foreseen(lab, name="t1", state="absent")
    assert gone["pool"] is None
    assert not exists(lab, "t1")


def test_a_pool_with_members_is_deleted_with_force_only(lab: Lab) -> None:
    pool(lab, name="t2", vms=[30001], storages=["ceph"])
    result = refused(lab, name="t2", state="absent")
    assert (result["error"]["category"], result["error"]["reason"]) == ("Conflict", "not empty")
    assert result["error"]["members"] == {"vms": [30001], "storages": ["ceph"]}
    assert "VM 30001, storage ceph" in result["msg"]
    gone = as_foreseen(lab, name="t2", state="absent", force=True)
    assert gone["plan"] == ["Take VM 30001, storage ceph out of pool 't2'", "Delete pool 't2'"]
    assert lab.client.get("nodes", "pve1", "qemu", 30001, "config")["name"] == "p30001"


def test_nested_pools(lab: Lab) -> None:
    result = refused(lab, name="t3/sub", comment="x")
    assert result["error"]["reason"] == "unknown pool"
    assert "Create pool 't3' first" in result["msg"]
    pool(lab, name="t3")
    made = as_foreseen(lab, name="t3/sub", vms=[30001])
    assert made["pool"]["parent"] == "t3"
    as_foreseen(lab, name="t3/sub/leaf", comment="deepest")
    assert refused(lab, name="t3/sub/leaf/more")["error"]["category"] == "ValidationFailed"
    assert pool(lab, name="t3")["pool"]["vms"] == [], (
        "the pool above does not list the members of those in it"
    )
    for options in ({}, {"force": True}):
        result = refused(lab, name="t3", state="absent", **options)
        assert result["error"]["reason"] == "not empty"
        assert result["error"]["pools"] == ["t3/sub", "t3/sub/leaf"]


def test_a_vm_of_another_pool_is_moved_only_where_that_is_allowed(lab: Lab) -> None:
    pool(lab, name="t4", vms=[30001])
    pool(lab, name="t5", comment="stays", vms=[30002])
    result = refused(lab, name="t5", comment="new", vms=[30001])
    assert (result["error"]["category"], result["error"]["reason"]) == ("Conflict", "in a pool")
    assert "VM 30001 in pool 't4'" in result["msg"]
    assert server_side(lab, "t5")["comment"] == "stays"
    as_foreseen(lab, name="t5", vms=[30001], allow_move=True)
    assert server_side(lab, "t4")["vms"] == []
    assert server_side(lab, "t5")["vms"] == [30001, 30002]


REFUSED: list[tuple[dict[str, Any], str, str, str]] = [
    ({"name": "a b"}, "ValidationFailed", "name", "not a pool name"),
    ({"name": "t6/"}, "ValidationFailed", "name", "not a pool name"),
    ({"name": "6t"}, "ConfigurationError", "name", "start with a letter"),
    ({"name": "t6", "vms": [7]}, "ValidationFailed", "vms", "7"),
    ({"name": "t6", "storages": ["a b"]}, "ValidationFailed", "storages", "a b"),
    ({"name": "t6", "vms": [30001, 39999]}, "NotFound", "unknown VM", "39999"),
    ({"name": "t6", "storages": ["nosuch"]}, "ConfigurationError", "unknown storage", "nosuch"),
]


@pytest.mark.parametrize(
    ("options", "category", "reason", "word"), REFUSED, ids=lambda value: str(value)[:50]
)
def test_refused_before_any_write(
    lab: Lab, options: dict[str, Any], category: str, reason: str, word: str
) -> None:
    result = refused(lab, **options)
    assert (result["error"]["category"], result["error"]["reason"]) == (category, reason), result[
        "msg"
    ]
    assert word in result["msg"]
    assert not exists(lab, options["name"])


def test_a_storage_that_the_caller_cannot_see_is_a_missing_privilege(lab: Lab) -> None:
    """The listing has storages with Datastore.Audit only (PVE/API2/Cluster.pm, resources)."""
    token = limited_token(lab, "unseeing", {"/pool": "PVEPoolAdmin"})
    for storage in ("ceph", "nosuch"):
        result = lab.run("pool", name="t7s", storages=[storage], **token)
        assert result["error"]["category"] == "PermissionDenied", result
        assert f"Datastore.Audit on /storage/{storage}" in result["msg"]
        assert "there is no storage" not in result["msg"]
    lab.client.write(
        "PUT",
        "access",
        "acl",
        data={"path": "/storage", "roles": "PVEDatastoreAdmin", "users": "unseeing@pve"},
    )
    result = lab.run("pool", name="t7s", storages=["nosuch"], **token)
    assert "there is no storage nosuch" in result["msg"]


def test_a_number_that_only_hides_is_left_to_the_server(lab: Lab) -> None:
    """A VM without VM.Audit for the caller is not in the listing.

    PVE decides whether it may be added.
    """
    token = limited_token(lab, "hidden", {"/pool": "PVEPoolAdmin"})
    result = lab.run("pool", name="t7", vms=[30001], **token)
    assert result["error"]["category"] == "PermissionDenied", result
    assert "VM.Allocate" in result["msg"]
    assert result["error"]["done"] == ["Create pool 't7'"]
    assert result["changed"] is True


def test_without_the_right_to_make_pools(lab: Lab) -> None:
    result = lab.run("pool", name="t7", **limited_token(lab, "nothing", {}))
    assert result["error"]["category"] == "PermissionDenied"
    assert "Pool.Allocate on /pool/t7" in result["msg"]
    assert result["changed"] is False
    assert "done" not in result["error"]


def test_named_pool_is_shown_to_every_user(lab: Lab) -> None:
    """Source: pve-manager 9.2.11, PVE/API2/Pool.pm, index. With poolid it asks for Pool.Audit with
    noerr and ignores the answer; the list of all pools has those with Pool.Audit only, and
    read_pool (GET /pools/NAME, deprecated) refuses.
    """
    pool(lab, name="t7", comment="hidden", vms=[30001])
    outsider = limited_token(lab, "outsider", {})
    (shown,) = lab.run("pool_info", name="t7", **outsider)["pools"]
    assert (shown["comment"], shown["vms"]) == ("hidden", [30001])
    assert lab.run("pool_info", **outsider)["pools"] == []
    with connect({**lab.connection, **outsider}, {}) as client:
        with pytest.raises(PermissionDenied):
            client.get("pools", "t7")


def limited_token(lab: Lab, name: str, roles: dict[str, str]) -> dict[str, Any]:
    """Return the login of a user's token with these roles."""
    user = f"{name}@pve"
    lab.client.write("POST", "access", "users", data={"userid": user})
    for path, role in roles.items():
        lab.client.write("PUT", "access", "acl", data={"path": path, "roles": role, "users": user})
    made = lab.client.write("POST", "access", "users", user, "token", "tt", data={"privsep": 0})
    return {"token_id": f"{user}!tt", "token_secret": made["value"]}


WRITES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("POST", {}, {"comment": "made"}),
    ("PUT", {"name": "t8"}, {"vms": [30001], "comment": "set"}),
    ("PUT", {"name": "t8", "vms": [30001, 30002]}, {"vms": [30002], "exact": True}),
    ("DELETE", {"name": "t8"}, {"state": "absent"}),
]


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(
    ("method", "first", "then"), WRITES, ids=["create", "update", "remove", "delete"]
)
def test_a_lost_answer_is_looked_after(
    lab: Lab, method: str, first: dict[str, Any], then: dict[str, Any], moment: str
) -> None:
    if first:
        pool(lab, **first)
    lab.simulator.reset_log()
    lab.simulator.fault(method=method, path="/pools$", drop=moment)
    result = pool(lab, name="t8", **then)
    assert result["changed"]
    assert result["done"] == result["plan"]
    writes = [row for row in lab.simulator.writes() if row["method"] == method]
    assert len(writes) == (2 if moment == "before" else 1)
    assert not pool(lab, name="t8", **then)["changed"]


def test_a_failure_half_way_names_what_was_done(lab: Lab) -> None:
    lab.simulator.fault(
        method="PUT", path="/pools$", status=500, message="update pools failed: something broke"
    )
    result = lab.run("pool", name="t9", vms=[30001])
    assert result["error"]["category"] == "ApiError"
    assert result["error"]["done"] == ["Create pool 't9'"]
    assert result["changed"] is True
    assert result["msg"].startswith("Could not add VM 30001 to pool 't9'")
    lab.simulator.clear_faults()
    assert pool(lab, name="t9", vms=[30001])["plan"] == ["Add VM 30001 to pool 't9'"]


class Overtaken(Client):
    """A client that does another run's writes right before its own first one."""

    others: list[tuple[str, dict[str, Any]]]

    def write(self, method: str, *segments: str | int, **more: Any) -> Any:
        while self.others:
            verb, data = self.others.pop(0)
            super().write(verb, "pools", data=data)
        return super().write(method, *segments, **more)


RACES: list[tuple[list[tuple[str, dict[str, Any]]], dict[str, Any], list[str]]] = [
    ([("POST", {"poolid": "t10"})], {}, []),
    (
        [("POST", {"poolid": "t10"}), ("PUT", {"poolid": "t10", "vms": "30001"})],
        {"vms": [30001, 30002]},
        ["Add VM 30002 to pool 't10'"],
    ),
    ([("POST", {"poolid": "t10"})], {"comment": "mine"}, ["Set comment of pool 't10'"]),
]


@pytest.mark.parametrize(
    ("others", "options", "done"), RACES, ids=["all of it", "a part", "without the comment"]
)
def test_another_run_may_be_faster(
    lab: Lab, others: list[tuple[str, dict[str, Any]]], options: dict[str, Any], done: list[str]
) -> None:
    client = Overtaken(lab.client.connection)
    client.others = list(others)
    result = run(POOL, {"name": "t10", **options}, client)
    assert list(result.values["done"]) == done
    assert result.changed is bool(done)
    found = server_side(lab, "t10")
    assert found["vms"] == options.get("vms", [])
    assert found["comment"] == options.get("comment", "")


def test_a_pool_that_another_run_deletes_first(lab: Lab) -> None:
    pool(lab, name="t10")
    client = Overtaken(lab.client.connection)
    client.others = [("DELETE", {"poolid": "t10"})]
    assert not run(POOL, {"name": "t10", "state": "absent"}, client).changed


def test_a_pool_that_gets_a_member_while_it_is_deleted_stays(lab: Lab) -> None:
    pool(lab, name="t10")
    client = Overtaken(lab.client.connection)
    client.others = [("PUT", {"poolid": "t10", "vms": "30001"})]
    with pytest.raises(FleetError, match="it is not empty: it has VM 30001"):
        run(POOL, {"name": "t10", "state": "absent"}, client)
    assert server_side(lab, "t10")["vms"] == [30001]


def test_a_vm_that_gets_into_another_pool_first_stays_there(lab: Lab) -> None:
    pool(lab, name="t10")
    pool(lab, name="t11")
    client = Overtaken(lab.client.connection)
    client.others = [("PUT", {"poolid": "t11", "vms": "30001"})]
    with pytest.raises(FleetError, match="VM 30001 in pool 't11'"):
        run(POOL, {"name": "t10", "vms": [30001]}, client)
    assert server_side(lab, "t11")["vms"] == [30001]


def test_runs_at_the_same_time_reach_one_pool(lab: Lab) -> None:
    gate = threading.Barrier(6)

    def one(number: int) -> bool:
        with connect(lab.connection, {}) as client:
            gate.wait(30)
            return run(
                POOL, {"name": "t12", "vms": [VMS[number % 3]], "comment": "one"}, client
            ).changed

    with ThreadPoolExecutor(6) as workers:
        changed = list(workers.map(one, range(6)))
    assert any(changed)
    assert server_side(lab, "t12") == {"comment": "one", "vms": list(VMS), "storages": []}


def test_info_has_the_keys_of_the_module(lab: Lab) -> None:
    made = pool(lab, name="t13", comment="c", vms=[30001], storages=["ceph"])["pool"]
    below = pool(lab, name="t13/sub")["pool"]
    lab.simulator.reset_log()
    assert lab.run("pool_info", name="t13")["pools"] == [made]
    assert len(lab.simulator.log()) == 1
    everything = lab.run("pool_info")
    assert not everything["changed"]
    names = [one["name"] for one in everything["pools"]]
    assert names == sorted(names)
    assert made in everything["pools"]
    assert below in everything["pools"]
    assert lab.run("pool_info", name="t13/none")["pools"] == []
    assert lab.run("pool_info", name="t13//")["error"]["category"] == "ValidationFailed"


def test_a_run_without_a_change_makes_one_request(lab: Lab) -> None:
    pool(lab, name="t14", comment="c", vms=[30001])
    lab.simulator.reset_log()
    assert not pool(lab, name="t14", comment="c", vms=[30001])["changed"]
    assert len(lab.simulator.log()) == 1
