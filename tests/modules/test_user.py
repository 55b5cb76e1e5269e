# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules user and user_info against the simulator, which answers as pve-access-control's
API2/User.pm does.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import requests as http

from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.user import USER
from tests.modules.access_lab import as_foreseen, do, limited, overtaken, refused, requests
from tests.modules.estate_lab import Lab
from tests.modules.module_runner import run_module

ONE: dict[str, Any] = {"name": "alice@pve"}
PASSWORD, OTHER = "correct-horse-1", "correct-horse-2"


@pytest.fixture
def lab(unused: Lab) -> Lab:
    """The demo cluster as it is at the start, with two groups."""
    for name in ("g1", "g2"):
        unused.client.write("POST", "access", "groups", data={"groupid": name})
    return unused


def can_log_in(lab: Lab, password: str, user: str = "alice@pve") -> bool:
    answer = http.post(
        f"{lab.simulator.url}/api2/json/access/ticket",
        data={"username": user, "password": password},
        verify=str(lab.simulator.ca),
        timeout=60,
    )
    return answer.status_code == 200


def as_user(
    lab: Lab, login: dict[str, Any], *, check: bool = False, **options: Any
) -> dict[str, Any]:
    """Run the module with user and password instead of the token."""
    place = {key: lab.connection[key] for key in ("host", "ca_path")}
    return run_module("user", {**place, **login, **options}, check=check)


def test_created_changed_and_deleted_as_foreseen(lab: Lab) -> None:
    made = as_foreseen(
        lab,
        "user",
        **ONE,
        firstname="Alice",
        lastname="Ott",
        email="alice@example.com",
        comment=" first ",
        expire="2100-01-31",
        groups=["g1", "g1"],
    )
    assert made["user"] == {
        "name": "alice@pve",
        "realm": "pve",
        "enabled": True,
        "expire": "2100-01-31T00:00:00Z",
        "firstname": "Alice",
        "lastname": "Ott",
        "email": "alice@example.com",
        "comment": "first",
        "groups": ["g1"],
        "tokens": [],
    }
    assert made["plan"] == ["Create user 'alice@pve'"]

    changed = as_foreseen(lab, "user", **ONE, comment="", email="", expire="never", enabled=False)
    assert changed["plan"] == ["Set enabled, expire, email, comment of user 'alice@pve'"]
    assert changed["diff"]["before"]["expire"] == "2100-01-31T00:00:00Z"
    assert changed["diff"]["after"]["expire"] is None
    assert not do(lab, "user", **ONE)["changed"], "what is left out is not changed"

    more = as_foreseen(lab, "user", **ONE, groups=["g2"], append=True)
    assert more["user"]["groups"] == ["g1", "g2"]
    assert as_foreseen(lab, "user", **ONE, groups=["g2"])["user"]["groups"] == ["g2"]
    assert as_foreseen(lab, "user", **ONE, groups=[], comment="x")["user"]["groups"] == []
    assert as_foreseen(lab, "user", **ONE, state="absent")["user"] is None


@pytest.mark.parametrize(
    "expire",
    ["2100-01-31T01:00:00+01:00", "2100-01-31 00:00:00", "2100-01-31T00:00:00Z", "4105036800"],
)
def test_one_moment_in_many_words(lab: Lab, expire: str) -> None:
    user = do(lab, "user", **ONE, expire=expire)["user"]
    assert user["expire"] == "2100-01-31T00:00:00Z"
    assert not do(lab, "user", **ONE, expire="2100-01-31")["changed"]


def test_a_date_that_has_passed_since_makes_no_change(lab: Lab) -> None:
    """A play that is run again after the date must not fail where the user has that date."""
    lab.client.write("POST", "access", "users", data={"userid": "alice@pve", "expire": 1000000000})
    assert not do(lab, "user", **ONE, expire="2001-09-09T01:46:40Z")["changed"]
    assert refused(lab, "user", **ONE, expire="2001-09-09")["error"]["reason"] == "expire"


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"name": ""}, "ValidationFailed", "name"),
    ({"name": " @pve"}, "ValidationFailed", "name"),
    ({"name": "alice"}, "ValidationFailed", "name"),
    ({"name": "a:b@pve"}, "ValidationFailed", "name"),
    ({"name": "a" * 61 + "@pve"}, "ValidationFailed", "name"),
    ({"name": "alice@nosuch"}, "ConfigurationError", "unknown realm"),
    ({**ONE, "expire": "2001-01-01"}, "ValidationFailed", "expire"),
    ({**ONE, "expire": "tomorrow"}, "ValidationFailed", "expire"),
    ({**ONE, "expire": "-1"}, "ValidationFailed", "expire"),
    ({**ONE, "email": "no address"}, "ValidationFailed", "email"),
    ({**ONE, "comment": "x" * 2049}, "ValidationFailed", "comment"),
    ({**ONE, "comment": "0"}, "ValidationFailed", "comment"),
    ({**ONE, "groups": ["g1", "nosuch"]}, "NotFound", "unknown group"),
    ({**ONE, "groups": [""]}, "ValidationFailed", "groups"),
    ({**ONE, "user_password": "short"}, "ValidationFailed", "user_password"),
    ({**ONE, "user_password": " " * 10}, "ValidationFailed", "user_password"),
    ({**ONE, "user_password": ""}, "ValidationFailed", "user_password"),
    ({"name": "root@pam", "state": "absent"}, "Conflict", "own login"),
    ({"name": "root@pam", "enabled": False}, "Conflict", "own login"),
]


@pytest.mark.parametrize(
    ("options", "category", "reason"), REFUSED, ids=[str(row[0])[:50] for row in REFUSED]
)
def test_refused_before_any_write(
    lab: Lab, options: dict[str, Any], category: str, reason: str
) -> None:
    error = refused(lab, "user", **options)["error"]
    assert (error["category"], error["reason"]) == (category, reason)


def test_a_refusal_says_what_was_not_done(lab: Lab) -> None:
    refusal = refused(lab, "user", name="new@pve", groups=["nosuch"])
    assert refusal["msg"].startswith("User 'new@pve' was not created: ")
    do(lab, "user", name="new@pve")
    refusal = refused(lab, "user", name="new@pve", groups=["nosuch"])
    assert refusal["msg"].startswith("User 'new@pve' was not changed: ")


def test_a_password_is_set_once_and_shown_nowhere(lab: Lab) -> None:
    made = as_foreseen(lab, "user", **ONE, user_password=PASSWORD)
    assert PASSWORD not in json.dumps({**made, "invocation": None})
    assert can_log_in(lab, PASSWORD)
    assert not do(lab, "user", **ONE, user_password=OTHER)["changed"]
    assert can_log_in(lab, PASSWORD)


def test_a_token_cannot_change_a_password(lab: Lab) -> None:
    do(lab, "user", **ONE, user_password=PASSWORD)
    result = refused(lab, "user", **ONE, user_password=OTHER, update_password="always")
    assert result["error"]["category"] == "PermissionDenied"
    assert "Log in with user and password" in result["msg"]
    assert OTHER not in result["msg"]


@pytest.mark.parametrize("caller", ["root@pam", "boss@pve"])
def test_a_password_is_changed_when_that_is_asked_for(lab: Lab, caller: str) -> None:
    """A caller other than root@pam confirms it with the own password."""
    do(lab, "user", **ONE, user_password=PASSWORD)
    login: dict[str, Any] = {"user": "root@pam", "password": "fleetpw123"}
    if caller != "root@pam":
        own = "{braces}-{0}-%s"
        lab.client.write("POST", "access", "users", data={"userid": caller, "password": own})
        entry = {"path": "/access", "roles": "Administrator", "users": caller}
        lab.client.write("PUT", "access", "acl", data=entry)
        login = {"user": caller, "password": own}
    options = {**ONE, "user_password": OTHER, "update_password": "always"}
    result = as_user(lab, login, **options)
    assert not result.get("failed"), result
    assert result["changed"]
    assert result["done"] == ["Set user_password of user 'alice@pve'"]
    assert can_log_in(lab, OTHER)
    assert not can_log_in(lab, PASSWORD)
    assert OTHER not in json.dumps({**result, "invocation": None})
    foreseen = as_user(lab, login, check=True, **options)
    assert foreseen["plan"] == result["plan"]


def test_a_realm_without_passwords(lab: Lab) -> None:
    realm = {"realm": "ld", "type": "ldap", "server1": "x", "base_dn": "dc=x", "user_attr": "uid"}
    lab.client.write("POST", "access", "domains", data=realm)
    result = refused(lab, "user", name="alice@ld", user_password=PASSWORD)
    assert result["error"]["reason"] == "realm without passwords"
    as_foreseen(lab, "user", name="alice@ld")


def test_no_caller_locks_itself_out(lab: Lab) -> None:
    login = limited(lab, "boss", {"/": "Administrator"})
    for options in ({"state": "absent"}, {"enabled": False}):
        result = lab.run("user", name="boss@pve", **options, **login)
        assert result["error"]["reason"] == "own login", result
    assert do(lab, "user", name="boss@pve", comment="mine", **login)["changed"]


def test_without_the_right(lab: Lab) -> None:
    login = limited(lab, "stranger", {})
    result = lab.run("user", **ONE, **login)
    assert result["error"]["category"] == "PermissionDenied"
    assert "Realm.AllocateUser on /access/realm/pve" in result["msg"]
    assert result["changed"] is False


WRITES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("POST", {}, {"groups": ["g1"], "user_password": PASSWORD}),
    ("PUT", {"groups": ["g1"]}, {"groups": ["g2"], "comment": "c"}),
    ("DELETE", {"comment": "c"}, {"state": "absent"}),
]


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(("method", "first", "then"), WRITES, ids=["create", "update", "delete"])
def test_a_lost_answer_is_looked_after(
    lab: Lab, method: str, first: dict[str, Any], then: dict[str, Any], moment: str
) -> None:
    if first:
        do(lab, "user", **ONE, **first)
    lab.simulator.reset_log()
    lab.simulator.fault(method=method, path="/access/users", drop=moment)
    result = do(lab, "user", **ONE, **then)
    assert result["changed"]
    assert result["done"] == result["plan"]
    writes = [row for row in lab.simulator.writes() if row["method"] == method]
    assert len(writes) == (2 if moment == "before" else 1)
    assert not do(lab, "user", **ONE, **then)["changed"]


def test_another_run_may_be_faster(lab: Lab) -> None:
    made = ("POST", ("access", "users"), {"userid": "alice@pve"})
    assert not run(USER, {**ONE}, overtaken(lab, made)).changed
    do(lab, "user", **ONE, state="absent")
    result = run(USER, {**ONE, "groups": ["g1"], "append": True}, overtaken(lab, made))
    assert list(result.values["done"]) == ["Set groups of user 'alice@pve'"]
    joined = ("PUT", ("access", "users", "alice@pve"), {"groups": "g2", "append": 1})
    result = run(USER, {**ONE, "comment": "c"}, overtaken(lab, joined))
    assert result.values["user"]["groups"] == ["g1", "g2"]


def test_a_group_that_vanishes_in_between(lab: Lab) -> None:
    client = overtaken(lab, ("DELETE", ("access", "groups", "g1"), {}))
    with pytest.raises(Exception, match="no such group 'g1'"):
        run(USER, {**ONE, "groups": ["g1"]}, client)
    assert "alice@pve" not in {row["userid"] for row in lab.client.get("access", "users")}


def test_info_has_the_keys_of_the_module(lab: Lab) -> None:
    made = do(lab, "user", **ONE, groups=["g1"], expire="2100-01-01")["user"]
    lab.client.write("POST", "access", "users", "alice@pve", "token", "t1")
    made["tokens"] = ["t1"]
    lab.simulator.reset_log()
    assert do(lab, "user_info", **ONE)["users"] == [made]
    users = do(lab, "user_info")["users"]
    assert made in users
    assert [user["name"] for user in users] == sorted(user["name"] for user in users)
    assert do(lab, "user_info", name="none@pve")["users"] == []
    assert len(lab.simulator.log()) == 3


def test_the_requests_of_each_run(lab: Lab) -> None:
    path = "/access/users/alice@pve"
    lab.simulator.reset_log()
    do(lab, "user", **ONE, comment="c")
    assert requests(lab) == [
        f"GET {path}",
        "GET /access/domains",
        "POST /access/users",
        f"GET {path}",
    ]
    lab.simulator.reset_log()
    do(lab, "user", **ONE, comment="c")
    assert requests(lab) == [f"GET {path}"]


def test_second_factors(lab: Lab) -> None:
    """The rows are those of pve-access-control: API2/TFA.pm, list_tfa."""
    do(lab, "user", name="off@pve", enabled=False)
    found = do(lab, "tfa_info")
    users = {one["name"]: one for one in found["users"]}
    phone = {
        "id": "totp:5f0b",
        "type": "totp",
        "description": "Phone",
        "enabled": True,
        "created": "2026-01-01T00:00:00Z",
    }
    assert users["root@pam"]["factors"][0] == phone
    assert (users["root@pam"]["has_factor"], users["root@pam"]["realm_factor"]) == (True, None)
    assert (users["off@pve"]["enabled"], users["off@pve"]["has_factor"]) == (False, False)
    assert found["without_factor"] == ["ops@pve"]
    own = do(lab, "tfa_info", **limited(lab, "reader", {}))
    assert "root@pam" not in {one["name"] for one in own["users"]}
