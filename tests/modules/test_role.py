# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules role and role_info against the simulator, which answers as pve-access-control's
API2/Role.pm does, in two versions.
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.role import (
    ROLE,
    without_words,
)
from tests.modules.access_lab import as_foreseen, do, limited, overtaken, refused, requests
from tests.modules.estate_lab import Lab

AGENT = [
    f"VM.GuestAgent.{part}"
    for part in ("Audit", "FileRead", "FileSystemMgmt", "FileWrite", "Unrestricted")
]


@pytest.fixture
def lab(unused: Lab) -> Lab:
    """The demo cluster as it is at the start, without roles of its own."""
    return unused


def test_created_changed_and_deleted_as_foreseen(lab: Lab) -> None:
    made = as_foreseen(lab, "role", name="r1", privileges=["VM.PowerMgmt", "VM.Audit"])
    assert made["role"] == {
        "name": "r1",
        "built_in": False,
        "privileges": ["VM.Audit", "VM.PowerMgmt"],
    }
    assert made["plan"] == ["Create role 'r1'"]

    more = as_foreseen(lab, "role", name="r1", privileges=["VM.Console"], append=True)
    assert more["plan"] == ["Set privileges of role 'r1'"]
    assert more["diff"]["after"] == {"privileges": ["VM.Audit", "VM.Console", "VM.PowerMgmt"]}

    less = as_foreseen(lab, "role", name="r1", privileges=["VM.Audit", "VM.Clone"])
    assert less["role"]["privileges"] == ["VM.Audit", "VM.Clone"]
    assert not do(lab, "role", name="r1")["changed"], "what is left out is not changed"
    assert as_foreseen(lab, "role", name="r1", privileges=[])["role"]["privileges"] == []

    assert as_foreseen(lab, "role", name="r1", state="absent")["role"] is None
    assert as_foreseen(lab, "role", name="r2")["role"]["privileges"] == []


def test_one_word_for_what_versions_call_differently(lab: Lab, old: Lab) -> None:
    new = as_foreseen(lab, "role", name="r1", privileges=["agent", "VM.Audit"])
    assert new["role"]["privileges"] == ["VM.Audit", *AGENT]
    read = as_foreseen(lab, "role", name="r2", privileges=["agent_read"])
    assert read["role"]["privileges"] == ["VM.GuestAgent.Audit"]
    for word in ("agent", "agent_read"):
        before = as_foreseen(old, "role", name=word, privileges=[word])
        assert before["role"]["privileges"] == ["VM.Monitor"]
    assert without_words(["agent_read", "agent"], (8, 4)) == {"VM.Monitor"}


def test_a_privilege_that_this_version_does_not_have(lab: Lab, old: Lab) -> None:
    result = refused(lab, "role", name="r1", privileges=["VM.Monitor", "VM.Audit"])
    assert (result["error"]["category"], result["error"]["reason"]) == (
        "ValidationFailed",
        "unknown privilege",
    )
    assert "Proxmox VE 9.2 has no privilege VM.Monitor. Use agent" in result["msg"]
    result = refused(old, "role", name="r1", privileges=["VM.GuestAgent.Audit"])
    assert "Proxmox VE 8.4 has no privilege VM.GuestAgent.Audit. Use agent" in result["msg"]
    result = refused(lab, "role", name="r1", privileges=["VM.Powermgmt"])
    assert "Did you mean VM.PowerMgmt" in result["msg"]
    assert result["error"]["privileges"] == ["VM.Powermgmt"]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"name": " "}, "name"),
    ({"name": "a b"}, "name"),
    ({"name": "r1", "privileges": [""]}, "privileges"),
    ({"name": "r1", "privileges": ["VM.Audit,VM.Clone"]}, "privileges"),
    ({"name": "r1", "privileges": ["Agent"]}, "privileges"),
    ({"name": "PVEMine", "privileges": []}, "reserved name"),
    ({"name": "pvemine"}, "reserved name"),
    ({"name": "PVEAdmin", "privileges": ["VM.Audit"]}, "reserved name"),
    ({"name": "Administrator", "state": "absent", "force": True}, "reserved name"),
    ({"name": "NoAccess", "privileges": ["VM.Audit"], "append": True}, "reserved name"),
]


@pytest.mark.parametrize(("options", "reason"), REFUSED, ids=lambda value: repr(value)[:50])
def test_refused_before_any_write(lab: Lab, options: dict[str, Any], reason: str) -> None:
    error = refused(lab, "role", **options)["error"]
    assert (error["category"], error["reason"]) == ("ValidationFailed", reason)


def test_a_built_in_role_as_it_is(lab: Lab) -> None:
    privileges = ["VM.Audit", "VM.Clone"]
    assert not do(lab, "role", name="PVETemplateUser", privileges=privileges)["changed"]


def test_a_role_in_use_is_deleted_with_force_only(lab: Lab) -> None:
    do(lab, "role", name="r1", privileges=["VM.Audit"])
    right = {"path": "/pool/globex", "roles": "r1", "users": "ops@pve"}
    lab.client.write("PUT", "access", "acl", data=right)
    result = refused(lab, "role", name="r1", state="absent")
    assert (result["error"]["category"], result["error"]["reason"]) == ("Conflict", "in use")
    assert result["error"]["used_by"] == ["r1 for user ops@pve on /pool/globex"]
    as_foreseen(lab, "role", name="r1", state="absent", force=True)
    assert "r1" not in {entry["roleid"] for entry in lab.client.get("access", "acl")}


def test_without_the_right(lab: Lab) -> None:
    login = limited(lab, "stranger", {})
    result = lab.run("role", name="r1", **login)
    assert result["error"]["category"] == "PermissionDenied"
    assert "Sys.Modify on /access" in result["msg"]
    assert "PVEAdmin" in {role["name"] for role in do(lab, "role_info", **login)["roles"]}


WRITES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("POST", {}, {"privileges": ["VM.Audit"]}),
    ("PUT", {"privileges": ["VM.Audit"]}, {"privileges": ["VM.Clone"], "append": True}),
    ("PUT", {"privileges": ["VM.Audit"]}, {"privileges": ["VM.Clone"]}),
    ("DELETE", {"privileges": ["VM.Audit"]}, {"state": "absent"}),
]


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(
    ("method", "first", "then"), WRITES, ids=["create", "append", "exact", "delete"]
)
def test_a_lost_answer_is_looked_after(
    lab: Lab, method: str, first: dict[str, Any], then: dict[str, Any], moment: str
) -> None:
    if first:
        do(lab, "role", name="r1", **first)
    lab.simulator.reset_log()
    lab.simulator.fault(method=method, path="/access/roles", drop=moment)
    result = do(lab, "role", name="r1", **then)
    assert result["changed"]
    assert result["done"] == result["plan"]
    writes = [row for row in lab.simulator.writes() if row["method"] == method]
    assert len(writes) == (2 if moment == "before" else 1)
    assert not do(lab, "role", name="r1", **then)["changed"]


def test_another_run_may_be_faster(lab: Lab) -> None:
    made = ("POST", ("access", "roles"), {"roleid": "r1", "privs": "VM.Audit"})
    assert not run(ROLE, {"name": "r1", "privileges": ["VM.Audit"]}, overtaken(lab, made)).changed
    do(lab, "role", name="r1", state="absent")
    options = {"name": "r1", "privileges": ["VM.Clone"], "append": False}
    result = run(ROLE, options, overtaken(lab, made))
    assert list(result.values["done"]) == ["Set privileges of role 'r1'"]
    assert result.values["role"]["privileges"] == ["VM.Clone"]


def test_what_another_run_adds_stays_with_append(lab: Lab) -> None:
    do(lab, "role", name="r1", privileges=["VM.Audit"])
    other = ("PUT", ("access", "roles", "r1"), {"privs": "VM.Console", "append": 1})
    options = {"name": "r1", "privileges": ["VM.Clone"], "append": True}
    role = run(ROLE, options, overtaken(lab, other)).values["role"]
    assert role["privileges"] == ["VM.Audit", "VM.Clone", "VM.Console"]


def test_info_has_the_keys_of_the_module(lab: Lab) -> None:
    made = do(lab, "role", name="r1", privileges=["VM.Audit"])["role"]
    lab.simulator.reset_log()
    roles = do(lab, "role_info")["roles"]
    assert made in roles
    assert [role["name"] for role in roles] == sorted(role["name"] for role in roles)
    assert {role["built_in"] for role in roles if role["name"].startswith("PVE")} == {True}
    assert do(lab, "role_info", name="r1")["roles"] == [made]
    assert do(lab, "role_info", name="none")["roles"] == []
    assert len(lab.simulator.log()) == 3


def test_the_requests_of_each_run(lab: Lab) -> None:
    """A word for several privileges costs one more: the version is asked for. So does check mode
    with a change: the privileges of the login.
    """
    path = "/access/roles/r1"
    lab.simulator.reset_log()
    do(lab, "role", name="r1", privileges=["VM.Audit"])
    create = ["GET /access/roles", "POST /access/roles"]
    assert requests(lab) == [f"GET {path}", *create, f"GET {path}"]
    lab.simulator.reset_log()
    do(lab, "role", name="r1", privileges=["VM.Audit"])
    assert requests(lab) == [f"GET {path}"]
    lab.simulator.reset_log()
    do(lab, "role", check=True, name="r2", privileges=["agent"])
    reads = ["GET /version", "GET /access/roles/r2", "GET /access/roles"]
    assert requests(lab) == [*reads, "GET /access/permissions"]
