# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules acl and acl_info against the simulator, which answers as pve-access-control's
API2/ACL.pm does.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import connect
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    PermissionDenied,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.acl import ACL
from tests.modules.access_lab import as_foreseen, do, limited, overtaken, refused, requests
from tests.modules.estate_lab import Lab

PATH = "/pool/globex"
OPS: dict[str, Any] = {"user": "ops@pve", "role": "PVEVMUser"}
TEAM: dict[str, Any] = {"group": "g1", "role": "PVEVMUser"}
AUTO: dict[str, Any] = {"token": "ops@pve!auto", "role": "PVEAuditor", "propagate": False}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    """The demo cluster as it is at the start, with a group."""
    unused.client.write("POST", "access", "groups", data={"groupid": "g1"})
    return unused


def entries(lab: Lab, path: str = PATH) -> set[tuple[str, str, str, int]]:
    """Return the entries of a path as the server has them."""
    return {
        (row["type"], row["ugid"], row["roleid"], int(row["propagate"]))
        for row in lab.client.get("access", "acl")
        if row["path"] == path
    }


def put(lab: Lab, **data: Any) -> None:
    lab.client.write("PUT", "access", "acl", data={"path": PATH, **data})


def test_given_changed_and_taken_as_foreseen(lab: Lab) -> None:
    made = as_foreseen(lab, "acl", path=PATH, grants=[OPS, TEAM, AUTO])
    assert made["plan"] == [
        "Add PVEAuditor for token ops@pve!auto (not below) to the rights on '/pool/globex'",
        "Add PVEVMUser for group g1, PVEVMUser for user ops@pve to the rights on '/pool/globex'",
    ]
    assert made["acl"]["path"] == PATH
    assert made["acl"]["grants"][0] == {
        "user": None,
        "group": "g1",
        "token": None,
        "role": "PVEVMUser",
        "propagate": True,
    }
    assert entries(lab) == {
        ("user", "ops@pve", "PVEVMUser", 1),
        ("group", "g1", "PVEVMUser", 1),
        ("token", "ops@pve!auto", "PVEAuditor", 0),
    }

    changed = as_foreseen(lab, "acl", path=PATH, grants=[{**AUTO, "propagate": True}])
    assert changed["plan"] == [
        "Add PVEAuditor for token ops@pve!auto to the rights on '/pool/globex'"
    ]
    assert ("token", "ops@pve!auto", "PVEAuditor", 1) in entries(lab)
    assert len(entries(lab)) == 3

    as_foreseen(lab, "acl", path=PATH, grants=[AUTO], state="absent")
    assert len(entries(lab)) == 2, "the role is taken away whatever the value of propagate"
    exact = as_foreseen(lab, "acl", path=PATH, grants=[OPS, AUTO], exact=True)
    assert exact["plan"][-1].startswith("Take PVEVMUser for group g1 out of")
    assert entries(lab) == {
        ("user", "ops@pve", "PVEVMUser", 1),
        ("token", "ops@pve!auto", "PVEAuditor", 0),
    }
    as_foreseen(lab, "acl", path=PATH, grants=[{**OPS, "propagate": False}, AUTO], exact=True)
    assert ("user", "ops@pve", "PVEVMUser", 0) in entries(lab)
    gone = as_foreseen(lab, "acl", path=PATH, grants=[], exact=True)
    assert gone["acl"] == {"path": PATH, "grants": []}
    assert entries(lab) == set()
    assert entries(lab, "/pool/acme") != set(), "other paths are not affected"


def test_one_path_in_many_words(lab: Lab) -> None:
    as_foreseen(lab, "acl", path="/pool//globex/", grants=[OPS])
    assert not do(lab, "acl", path=PATH, grants=[OPS])["changed"]
    as_foreseen(lab, "acl", path="/", grants=[OPS])
    assert entries(lab, "/") == {("user", "ops@pve", "PVEVMUser", 1)}


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"path": "/bogus", "grants": [OPS]}, "ValidationFailed", "path"),
    ({"path": "", "grants": [OPS]}, "ValidationFailed", "path"),
    ({"path": " ", "grants": [OPS]}, "ValidationFailed", "path"),
    ({"path": "/vms/web1", "grants": [OPS]}, "ValidationFailed", "path"),
    ({"path": "/pool/a/b/c/d", "grants": [OPS]}, "ValidationFailed", "path"),
    ({"path": PATH, "grants": [{"role": "PVEVMUser"}]}, "ValidationFailed", "grants"),
    ({"path": PATH, "grants": [{**OPS, "group": "g1"}]}, "ValidationFailed", "grants"),
    ({"path": PATH, "grants": [{**OPS, "user": ""}]}, "ValidationFailed", "grants"),
    ({"path": PATH, "grants": [{**OPS, "role": " "}]}, "ValidationFailed", "grants"),
    ({"path": PATH, "grants": [{**AUTO, "token": "auto"}]}, "ValidationFailed", "grants"),
    ({"path": PATH, "grants": [OPS, {**OPS, "propagate": False}]}, "ValidationFailed", "grants"),
    ({"path": PATH, "grants": [{**OPS, "role": "Nosuch"}]}, "NotFound", "unknown role"),
    (
        {"path": PATH, "grants": [OPS, {**OPS, "user": "no@pve"}]},
        "NotFound",
        "unknown user, group or token",
    ),
    (
        {"path": PATH, "grants": [OPS, {**TEAM, "group": "g2"}]},
        "NotFound",
        "unknown user, group or token",
    ),
    (
        {"path": PATH, "grants": [OPS, {**AUTO, "token": "ops@pve!none"}]},
        "NotFound",
        "unknown user, group or token",
    ),
    (
        {"path": PATH, "grants": [OPS], "exact": True, "state": "absent"},
        "ValidationFailed",
        "exact",
    ),
]


@pytest.mark.parametrize(
    ("options", "category", "reason"),
    REFUSED,
    ids=[f"{number}-{row[2]}" for number, row in enumerate(REFUSED)],
)
def test_refused_before_any_write(
    lab: Lab, options: dict[str, Any], category: str, reason: str
) -> None:
    error = refused(lab, "acl", **options)["error"]
    assert (error["category"], error["reason"]) == (category, reason)


NOTHING = [
    "/pool/nosuch",
    "/vms/39999",
    "/storage/nosuch",
    "/nodes/pve9",
    "/access/realm/x-y",
    "/access/groups/none",
    *(f"/mapping/{kind}/nosuch" for kind in ("cpu", "dir", "pci", "usb")),
    *(f"/sdn/{kind}/nosuch" for kind in ("controllers", "dns", "ipams", "zones")),
]
SOMETHING = [
    "/",
    "/sdn/zones/localnetwork/vmbr0",
    "/sdn/ipams/pve",
    "/mapping/cpu",
    "/vms",
    "/vms/9000",
    "/storage/ceph",
    "/nodes/pve1",
    "/access/realm/pve",
]


@pytest.mark.parametrize("path", NOTHING + SOMETHING)
def test_a_path_of_nothing_is_reported(lab: Lab, path: str) -> None:
    """Proxmox VE accepts it: rights can be given before the VM exists."""
    foreseen = do(lab, "acl", check=True, path=path, grants=[OPS])
    result = do(lab, "acl", path=path, grants=[OPS])
    wanted = [f"There is nothing at '{path}' that this user or token may see"]
    assert result["warnings"] == foreseen["warnings"] == (wanted if path in NOTHING else [])
    assert do(lab, "acl", path=path, grants=[OPS], state="absent")["warnings"] == []


def test_a_path_of_a_mapping_that_exists_is_not_reported(lab: Lab) -> None:
    data = {"id": "gpu", "map": "node=pve1,path=0000:01:00.0,id=10de:2204"}
    lab.client.write("POST", "cluster", "mapping", "pci", data=data)
    assert do(lab, "acl", path="/mapping/pci/gpu", grants=[OPS])["warnings"] == []
    do(lab, "cpu_model", name="fast", reported_model="host")
    assert do(lab, "acl", path="/mapping/cpu/fast", grants=[OPS])["warnings"] == []


def test_no_caller_gives_more_than_it_has(lab: Lab) -> None:
    """Without Permissions.Modify only a subset of the own privileges (API2/ACL.pm, update_acl)."""
    lab.client.write("POST", "access", "roles", data={"roleid": "Few", "privs": "Pool.Audit"})
    login = limited(lab, "lead", {PATH: "PVEPoolAdmin"})
    given: dict[str, Any] = {"path": PATH, "grants": [{**OPS, "role": "Few"}]}
    assert do(lab, "acl", **given, **login)["changed"]
    for role in ("PVEVMUser", "NoAccess"):
        result = refused(lab, "acl", path=PATH, grants=[{**OPS, "role": role}], **login)
        error = result["error"]
        assert (error["category"], error["reason"]) == ("PermissionDenied", "more than own rights")
    put(lab, users="ops@pve", roles="PVEVMUser")
    result = refused(lab, "acl", path=PATH, grants=[OPS], state="absent", **login)
    assert result["error"]["reason"] == "more than own rights"
    put(lab, users="lead@pve", roles="PVEPoolAdmin", propagate=0)
    spread = {**TEAM, "role": "Few"}
    result = refused(lab, "acl", path=PATH, grants=[spread], **login)
    assert result["error"]["privileges"] == ["Pool.Audit"]
    assert do(lab, "acl", path=PATH, grants=[{**spread, "propagate": False}], **login)["changed"]


def test_pve_itself_refuses_what_is_more_than_ones_own(lab: Lab) -> None:
    """The same refusal where the rights of the caller shrink between the check and the write."""
    login = limited(lab, "lead", {PATH: "PVEPoolAdmin"})
    data = {"path": PATH, "users": "ops@pve", "roles": "PVEVMUser"}
    with connect({**lab.connection, **login}, {}) as client:
        with pytest.raises(PermissionDenied, match="Cannot add role 'PVEVMUser'") as failure:
            client.write("PUT", "access", "acl", data=data)
    assert failure.value.reason == "more than own rights"


def test_a_token_gives_no_more_than_its_user_has(lab: Lab) -> None:
    """A token with privilege separation has the intersection of both."""
    login = limited(lab, "lead", {"/": "Administrator"}, privsep=1)
    assert lab.run("acl", path=PATH, grants=[OPS], **login)["error"]["category"] == (
        "PermissionDenied"
    )
    put(lab, tokens="lead@pve!tt", roles="PVEPoolAdmin")
    result = lab.run("acl", path=PATH, grants=[OPS], **login)
    assert result["error"]["reason"] == "more than own rights"
    put(lab, tokens="lead@pve!tt", roles="Administrator")
    assert do(lab, "acl", path=PATH, grants=[OPS], **login)["changed"]


def test_a_caller_who_sees_no_users_may_still_give(lab: Lab) -> None:
    login = limited(lab, "lead", {PATH: "Administrator"})
    assert do(lab, "acl", path=PATH, grants=[OPS, AUTO, TEAM], **login)["changed"]
    unknown = {**OPS, "user": "no@pve"}
    result = refused(lab, "acl", path=PATH, grants=[OPS, unknown], **login)
    assert result["error"]["subjects"] == ["user no@pve"]


def test_without_the_right(lab: Lab) -> None:
    login = limited(lab, "stranger", {})
    result = lab.run("acl", path=PATH, grants=[OPS], **login)
    assert result["error"]["category"] == "PermissionDenied"
    assert do(lab, "acl_info", **login)["acls"] == []


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("state", ["present", "absent"])
def test_a_lost_answer_is_looked_after(lab: Lab, state: str, moment: str) -> None:
    if state == "absent":
        do(lab, "acl", path=PATH, grants=[OPS, AUTO])
    lab.simulator.reset_log()
    lab.simulator.fault(method="PUT", path="/access/acl$", drop=moment)
    result = do(lab, "acl", path=PATH, grants=[OPS, AUTO], state=state)
    assert result["done"] == result["plan"]
    assert not do(lab, "acl", path=PATH, grants=[OPS, AUTO], state=state)["changed"]
    assert bool(entries(lab)) is (state == "present")


def test_a_failure_half_way_names_what_was_done(lab: Lab) -> None:
    text = "ACL update failed: something broke"
    lab.simulator.fault(method="PUT", path="/access/acl$", status=500, message=text, nth=2)
    result = lab.run("acl", path=PATH, grants=[OPS, AUTO])
    assert result["error"]["category"] == "ApiError", result
    assert len(result["error"]["done"]) == 1
    assert result["changed"] is True
    lab.simulator.clear_faults()
    assert len(do(lab, "acl", path=PATH, grants=[OPS, AUTO])["done"]) == 1


def test_another_run_may_be_faster(lab: Lab) -> None:
    """What it gives stays, what is left of the own plan is done."""
    write = ("PUT", ("access", "acl"), {"path": PATH, "users": "ops@pve", "roles": "PVEAuditor"})
    result = run(ACL, {"path": PATH, "grants": [OPS]}, overtaken(lab, write))
    assert result.changed
    assert len(entries(lab)) == 2


def test_a_group_that_vanishes_in_between(lab: Lab) -> None:
    client = overtaken(lab, ("DELETE", ("access", "groups", "g1"), {}))
    with pytest.raises(Exception, match="there is no group g1"):
        run(ACL, {"path": PATH, "grants": [TEAM]}, client)
    assert entries(lab) == set()


def test_runs_at_the_same_time_keep_the_rights_of_each_other(lab: Lab) -> None:
    gate = threading.Barrier(3)

    def one(grant: dict[str, Any]) -> bool:
        with connect(lab.connection, {}) as client:
            gate.wait(60)
            return run(ACL, {"path": PATH, "grants": [grant]}, client).changed

    with ThreadPoolExecutor(3) as workers:
        assert all(workers.map(one, [OPS, TEAM, AUTO]))
    assert len(entries(lab)) == 3


def test_info_has_the_keys_of_the_module(lab: Lab) -> None:
    made = do(lab, "acl", path=PATH, grants=[OPS, TEAM])["acl"]
    lab.simulator.reset_log()
    acls = do(lab, "acl_info")["acls"]
    assert made in acls
    assert [acl["path"] for acl in acls] == ["/pool/acme", PATH]
    assert do(lab, "acl_info", path=PATH)["acls"] == [made]
    assert do(lab, "acl_info", path="/vms/100")["acls"] == [{"path": "/vms/100", "grants": []}]
    assert len(lab.simulator.log()) == 3


def test_the_requests_of_each_run(lab: Lab) -> None:
    """All entries with one role and one value of propagate take one request."""
    lab.simulator.reset_log()
    do(lab, "acl", path=PATH, grants=[OPS, TEAM])
    assert requests(lab) == [
        "GET /access/acl",
        "GET /access/roles",
        "GET /access/groups",
        "GET /access/users",
        "GET /access/permissions",
        "GET /cluster/resources",
        "PUT /access/acl",
        "GET /access/acl",
    ]
    lab.simulator.reset_log()
    do(lab, "acl", path=PATH, grants=[OPS, TEAM])
    assert requests(lab) == ["GET /access/acl"]
