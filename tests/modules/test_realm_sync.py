# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules realm_sync and realm_info against the simulator, which answers as pve-access-control's
API2/Domains.pm does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.realms.sync import (
    RealmAccounts,
    foreseen,
)
from tests.modules.access_lab import do, limited, refused, requests, with_directory
from tests.modules.estate_lab import Lab, open_lab

SYNC = "/access/domains/ldap/sync"
BOTH: dict[str, Any] = {"name": "ldap", "scope": "both"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Lab]:
    with open_lab("--lag-s", "0", "--auth-delay-s", "0") as lab:
        yield lab


@pytest.fixture
def lab(cluster: Lab, fast: None) -> Lab:
    """The demo cluster with an LDAP realm, whose directory has alice and bob."""
    cluster.simulator.clear_faults()
    cluster.simulator.reset()
    with_directory(cluster.client, cluster.simulator)
    return cluster


def steer(lab: Lab, users: dict[str, Any], groups: dict[str, Any] | None = None) -> None:
    lab.simulator.steer("/directories/ldap", {"users": users, "groups": groups or {}})


def users(lab: Lab) -> list[str]:
    rows = lab.client.get("access", "users")
    return sorted(row["userid"] for row in rows if row["userid"].endswith("@ldap"))


def test_check_mode_foretells_who_comes_and_goes(lab: Lab) -> None:
    before = lab.client.get("access", "users", full=1)
    lab.simulator.reset_log()
    preview = do(lab, "realm_sync", check=True, **BOTH)
    (write,) = lab.simulator.writes()
    assert write["params"]["dry-run"] == "1"
    assert lab.client.get("access", "users", full=1) == before
    made = do(lab, "realm_sync", **BOTH)
    assert preview["changed"]
    assert made["changed"]
    assert preview["diff"] == made["diff"]
    assert made["diff"]["after"] == {
        "users": ["alice@ldap", "bob@ldap"],
        "groups": ["staff-ldap"],
        "grants": [],
    }
    assert preview["realm_sync"]["users"] == {
        "added": ["alice@ldap", "bob@ldap"],
        "removed": [],
        "updated": None,
    }
    assert made["realm_sync"]["groups"] == {"added": ["staff-ldap"], "removed": [], "updated": []}
    assert made["done"] == made["plan"] == preview["plan"] == ["Synchronize realm 'ldap'"]
    assert preview["done"] == []
    assert lab.client.get("access", "groups", "staff-ldap")["members"] == ["alice@ldap"]


def test_a_second_run_changes_nothing(lab: Lab) -> None:
    do(lab, "realm_sync", **BOTH)
    for check in (True, False):
        again = do(lab, "realm_sync", check=check, **BOTH)
        assert not again["changed"]
        assert again["diff"] == {"before": {}, "after": {}}
    assert again["realm_sync"]["users"] == {"added": [], "removed": [], "updated": []}


def test_properties_that_differ_are_reported(lab: Lab) -> None:
    do(lab, "realm_sync", **BOTH)
    steer(lab, {"alice": {"email": "a@new.test"}, "bob": {}}, {"staff": ["alice", "bob"]})
    made = do(lab, "realm_sync", **BOTH)
    assert made["changed"]
    assert made["realm_sync"]["users"]["updated"] == ["alice@ldap"]
    assert made["realm_sync"]["groups"]["updated"] == ["staff-ldap"]


@pytest.mark.parametrize(
    ("removes", "stays", "granted"),
    [([], True, True), (["acl"], True, False), (["entry"], False, False)],
    ids=str,
)
def test_who_has_left_the_directory(
    lab: Lab, removes: list[str], stays: bool, granted: bool
) -> None:
    do(lab, "realm_sync", **BOTH)
    lab.client.write("POST", "access", "users", "bob@ldap", "token", "tt", data={"privsep": 1})
    for who in ({"users": "bob@ldap"}, {"tokens": "bob@ldap!tt"}):
        right = {"path": "/pool/acme", "roles": "PVEAuditor", **who}
        lab.client.write("PUT", "access", "acl", data=right)
    steer(lab, {"alice": {}}, {"staff": ["alice"]})
    task = {**BOTH, "remove_vanished": removes}
    preview = do(lab, "realm_sync", check=True, **task)
    made = do(lab, "realm_sync", **task)
    assert preview["changed"] == made["changed"] == bool(removes)
    assert preview["diff"] == made["diff"]
    assert ("bob@ldap" in users(lab)) == stays
    held = {row["ugid"] for row in lab.client.get("access", "acl")}
    assert ("bob@ldap" in held) == granted
    assert ("bob@ldap!tt" in held) == stays
    removed = [] if stays else ["bob@ldap"]
    assert made["realm_sync"]["users"]["removed"] == removed
    assert preview["realm_sync"]["grants_removed"] == made["realm_sync"]["grants_removed"]
    assert not do(lab, "realm_sync", **task)["changed"]


def test_what_is_left_out_is_as_the_realm_has_it(lab: Lab) -> None:
    text = "scope=users,enable-new=0"
    data = {"sync-defaults-options": text}
    lab.client.write("PUT", "access", "domains", "ldap", data=data)
    do(lab, "realm_sync", name="ldap")
    assert users(lab) == ["alice@ldap", "bob@ldap"]
    assert lab.client.get("access", "users", "alice@ldap")["enable"] == 0
    assert lab.client.get("access", "groups") == []
    steer(lab, {"carol": {}})
    do(lab, "realm_sync", name="ldap", enable_new=True)
    assert lab.client.get("access", "users", "carol@ldap")["enable"] == 1


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"name": "nope"}, "ConfigurationError", "unknown realm"),
    ({"name": "pve"}, "ConfigurationError", "realm without directory"),
    ({"name": "a b"}, "ValidationFailed", "name"),
    ({"name": "l" * 33}, "ValidationFailed", "name"),
    ({"name": "ldap", "task_timeout": 0}, "ValidationFailed", "task_timeout"),
]


@pytest.mark.parametrize(("options", "category", "reason"), REFUSED, ids=str)
def test_refused_before_any_write(
    lab: Lab, options: dict[str, Any], category: str, reason: str
) -> None:
    error = refused(lab, "realm_sync", **{"scope": "both", **options})["error"]
    assert (error["category"], error["reason"]) == (category, reason)


@pytest.mark.parametrize("check", [True, False], ids=["check", "run"])
def test_a_missing_scope_is_named(lab: Lab, check: bool) -> None:
    result = lab.run("realm_sync", check=check, name="ldap")
    assert result["error"]["category"] == "ValidationFailed"
    assert "scope: Not passed as parameter and not defined in realm" in result["msg"]


@pytest.mark.parametrize("check", [True, False], ids=["check", "run"])
def test_a_directory_that_cannot_be_reached(lab: Lab, check: bool) -> None:
    lab.simulator.steer("/directories/ldap", None)
    result = lab.run("realm_sync", check=check, **BOTH)
    assert result["error"]["category"] == "TaskFailed"
    assert "Connection refused" in result["msg"]
    assert result["error"]["upid"].split(":")[5].startswith("auth-realm-sync")
    assert result["changed"] is False


def test_without_the_right(lab: Lab) -> None:
    login = limited(lab, "stranger", {})
    result = lab.run("realm_sync", **BOTH, **login)
    assert result["error"]["category"] == "PermissionDenied"
    assert users(lab) == []
    assert do(lab, "realm_info", **login)["realms"][0]["name"] == "ldap"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_lost_answer(lab: Lab, moment: str) -> None:
    lab.simulator.fault(method="POST", path=SYNC, drop=moment)
    assert do(lab, "realm_sync", **BOTH)["changed"]
    assert users(lab) == ["alice@ldap", "bob@ldap"]


def test_a_dry_run_without_its_log_is_an_error(lab: Lab) -> None:
    lab.simulator.fault(method="GET", path="/log$", status=403, message="no", times=None)
    result = lab.run("realm_sync", check=True, **BOTH)
    assert (result["error"]["category"], result["error"]["reason"]) == ("TaskFailed", "no log")


def test_the_log_of_a_dry_run() -> None:
    """Lines as API2/Domains.pm prints them; a name may have quotes."""
    before = RealmAccounts(
        users={"a@r": {"userid": "a@r"}, "o'x@r": {"userid": "o'x@r"}},
        groups={"g-r": {}},
        grants={"one": ("user", "o'x@r"), "two": ("token", "o'x@r!t"), "three": ("group", "g-r")},
    )
    log = [
        "(dry test run) starting sync for realm r",
        "got data from server, updating users and groups",
        "syncing users (remove-vanished opts: entry)",
        "deleting outdated existing users first",
        "remove user 'o'x@r'",
        "updating user 'a@r'",
        "adding user 'b@r'",
        "syncing groups (remove-vanished opts: entry)",
        "purge groups 'g-r' ACL entries",
        "overwriting group 'g-r'",
    ]
    after = foreseen(before, log)
    assert after.as_dict() == {"users": ["a@r", "b@r"], "groups": ["g-r"], "grants": []}


def test_realms(lab: Lab) -> None:
    lab.simulator.reset_log()
    realms = do(lab, "realm_info")["realms"]
    assert [realm["name"] for realm in realms] == ["ldap", "pam", "pve"]
    assert realms[0] == {
        "name": "ldap",
        "type": "ldap",
        "comment": "Staff",
        "default": True,
        "second_factor": None,
    }
    assert do(lab, "realm_info", name="ldap")["realms"] == realms[:1]
    assert do(lab, "realm_info", name="nope")["realms"] == []
    assert requests(lab) == ["GET /access/domains"] * 3
    assert lab.run("realm_info", name="a b")["error"]["category"] == "ValidationFailed"
