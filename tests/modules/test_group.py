# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules group and group_info against the simulator, which answers as pve-access-control's
API2/Group.pm does.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import connect
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.group import GROUP
from tests.modules.access_lab import as_foreseen, do, limited, overtaken, refused, requests
from tests.modules.estate_lab import Lab

NEW: dict[str, Any] = {"groupid": "g1"}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    """The demo cluster as it is at the start, without groups."""
    return unused


def test_created_changed_and_deleted_as_foreseen(lab: Lab) -> None:
    made = as_foreseen(lab, "group", name="g1", comment="  Globex Ltd. ")
    assert made["group"] == {"name": "g1", "comment": "Globex Ltd.", "users": []}
    assert made["plan"] == ["Create group 'g1'"]
    lab.client.write("PUT", "access", "users", "ops@pve", data={"groups": "g1"})
    changed = as_foreseen(lab, "group", name="g1", comment="")
    assert changed["plan"] == ["Set comment of group 'g1'"]
    assert changed["diff"]["before"] == {"comment": "Globex Ltd."}
    assert changed["group"] == {"name": "g1", "comment": "", "users": ["ops@pve"]}
    lab.client.write("PUT", "access", "users", "ops@pve", data={"groups": ""})
    gone = as_foreseen(lab, "group", name="g1", state="absent")
    assert gone["group"] is None
    assert lab.client.get("access", "groups") == []


def test_a_group_in_use_is_deleted_with_force_only(lab: Lab) -> None:
    do(lab, "group", name="g1")
    lab.client.write("PUT", "access", "users", "ops@pve", data={"groups": "g1"})
    right = {"path": "/pool/globex", "roles": "PVEVMUser", "groups": "g1"}
    lab.client.write("PUT", "access", "acl", data=right)
    result = refused(lab, "group", name="g1", state="absent")
    assert (result["error"]["category"], result["error"]["reason"]) == ("Conflict", "in use")
    assert result["error"]["used_by"] == ["user ops@pve", "PVEVMUser for group g1 on /pool/globex"]
    as_foreseen(lab, "group", name="g1", state="absent", force=True)
    assert lab.client.get("access", "users", "ops@pve")["groups"] == []
    assert "g1" not in {entry["ugid"] for entry in lab.client.get("access", "acl")}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "name"),
    ({"name": " "}, "name"),
    ({"name": "a b"}, "name"),
    ({"name": "a/b"}, "name"),
    ({"name": "ä"}, "name"),
    ({"name": "g1\n"}, "name"),
    ({"name": "g1", "comment": " 0"}, "comment"),
]


@pytest.mark.parametrize(("options", "reason"), REFUSED, ids=lambda value: repr(value)[:40])
def test_refused_before_any_write(lab: Lab, options: dict[str, Any], reason: str) -> None:
    error = refused(lab, "group", **options)["error"]
    assert (error["category"], error["reason"]) == ("ValidationFailed", reason)


def test_comments_come_back_as_they_were_given(lab: Lab) -> None:
    for comment in ("a: b % c # d", "Zürich \u2603", "line one\nline two", "x" * 5000):
        assert do(lab, "group", name="g1", comment=comment)["group"]["comment"] == comment
        assert not do(lab, "group", name="g1", comment=comment)["changed"]


def test_without_the_right(lab: Lab) -> None:
    login = limited(lab, "stranger", {})
    result = lab.run("group", name="g1", **login)
    assert result["error"]["category"] == "PermissionDenied"
    assert "/access/groups" in result["msg"]
    assert result["changed"] is False
    assert do(lab, "group_info", **login)["groups"] == []


WRITES: list[tuple[str, bool, dict[str, Any]]] = [
    ("POST", False, {"comment": "made"}),
    ("PUT", True, {"comment": "set"}),
    ("DELETE", True, {"state": "absent"}),
]


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(("method", "exists", "then"), WRITES, ids=["create", "update", "delete"])
def test_a_lost_answer_is_looked_after(
    lab: Lab, method: str, exists: bool, then: dict[str, Any], moment: str
) -> None:
    if exists:
        do(lab, "group", name="g1")
    lab.simulator.reset_log()
    lab.simulator.fault(method=method, path="/access/groups", drop=moment)
    result = do(lab, "group", name="g1", **then)
    assert result["changed"]
    assert result["done"] == result["plan"]
    writes = [row for row in lab.simulator.writes() if row["method"] == method]
    assert len(writes) == (2 if moment == "before" else 1)
    assert not do(lab, "group", name="g1", **then)["changed"]


def test_a_lock_is_waited_for(lab: Lab) -> None:
    text = "create group failed: cfs-lock 'file-user_cfg' error: got lock request timeout"
    lab.simulator.fault(method="POST", path="/access/groups$", status=500, message=text)
    assert do(lab, "group", name="g1")["changed"]


def test_another_run_may_be_faster(lab: Lab) -> None:
    client = overtaken(lab, ("POST", ("access", "groups"), NEW))
    assert not run(GROUP, {"name": "g1"}, client).changed
    gone = overtaken(lab, ("DELETE", ("access", "groups", "g1"), {}))
    assert not run(GROUP, {"name": "g1", "state": "absent"}, gone).changed
    client = overtaken(lab, ("POST", ("access", "groups"), NEW))
    result = run(GROUP, {"name": "g1", "comment": "mine"}, client)
    assert list(result.values["done"]) == ["Set comment of group 'g1'"]


def test_a_group_that_vanishes_before_it_is_changed_is_created_again(lab: Lab) -> None:
    do(lab, "group", name="g1")
    client = overtaken(lab, ("DELETE", ("access", "groups", "g1"), {}))
    result = run(GROUP, {"name": "g1", "comment": "mine"}, client)
    assert list(result.values["done"]) == ["Create group 'g1'"]


def test_runs_at_the_same_time_reach_one_group(lab: Lab) -> None:
    gate = threading.Barrier(4)

    def one(_number: int) -> bool:
        with connect(lab.connection, {}) as client:
            gate.wait(30)
            return run(GROUP, {"name": "g1", "comment": "one"}, client).changed

    with ThreadPoolExecutor(4) as workers:
        assert any(workers.map(one, range(4)))
    assert do(lab, "group_info")["groups"] == [{"name": "g1", "comment": "one", "users": []}]


def test_info_has_the_keys_of_the_module(lab: Lab) -> None:
    made = [do(lab, "group", name=name, comment=name)["group"] for name in ("g2", "g1")]
    lab.client.write("PUT", "access", "users", "ops@pve", data={"groups": "g1"})
    made[1]["users"] = ["ops@pve"]
    lab.simulator.reset_log()
    assert do(lab, "group_info")["groups"] == [made[1], made[0]]
    assert do(lab, "group_info", name="g1")["groups"] == [made[1]]
    assert do(lab, "group_info", name="none")["groups"] == []
    assert len(lab.simulator.log()) == 3
    assert lab.run("group_info", name="a b")["error"]["category"] == "ValidationFailed"


def test_the_requests_of_each_run(lab: Lab) -> None:
    lab.simulator.reset_log()
    do(lab, "group", name="g1", comment="c")
    path = "/access/groups/g1"
    assert requests(lab) == [f"GET {path}", "POST /access/groups", f"GET {path}"]
    lab.simulator.reset_log()
    do(lab, "group", name="g1", comment="c")
    assert requests(lab) == [f"GET {path}"]
