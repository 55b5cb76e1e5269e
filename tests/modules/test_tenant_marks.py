# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tenant changes and removes only what has its mark, or what a task adopts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.modules.access_lab import do, refused
from tests.modules.estate_lab import Lab
from tests.modules.tenant_lab import RIGHTS, login_of, made, state_of

NEW: dict[str, Any] = {"name": "initech", **RIGHTS}
GONE: dict[str, Any] = {"name": "initech", "state": "absent", "confirm": "initech"}
MARK = "[pve.fleet: tenant=tenant_initech]"
USER = "tenant_initech@pve"


@pytest.fixture
def lab(unused: Lab) -> Lab:
    """The demo cluster as it is at the start; ops@pve has the token auto."""
    return unused


def give(lab: Lab, path: str, role: str, **who: str) -> None:
    lab.client.write("PUT", "access", "acl", data={"path": path, "roles": role, **who})


def tokens(lab: Lab, user: str) -> set[str]:
    rows = lab.client.get("access", "users", user, "token")
    return {str(row["tokenid"]) for row in rows}


def rights_on(lab: Lab, path: str) -> set[tuple[str, str]]:
    rows = lab.client.get("access", "acl")
    return {(row["ugid"], row["roleid"]) for row in rows if row["path"] == path}


# -- an owner that exists ----------------------------------------------------------------------


@pytest.mark.parametrize("owner", ["ops@pve", "root@pam"])
def test_tokens_of_an_existing_owner_stay(lab: Lab, owner: str, tmp_path: Path) -> None:
    """Among them the login of the task itself, `root@pam!fleet`."""
    before = state_of(lab)
    mine: dict[str, Any] = {"owner": owner, "token": "initech"}
    file = str(tmp_path / "initech.yml")
    kept = tokens(lab, owner)
    do(lab, "tenant", **NEW, **mine, credentials_file=file)
    do(lab, "tenant", name="initech", state="rotated", **mine, credentials_file=file)
    assert tokens(lab, owner) == {*kept, "initech-2"}
    result = do(lab, "tenant", **GONE, **mine)
    assert f"User '{owner}' was not created for tenant 'initech' and is kept" in result["warnings"]
    assert tokens(lab, owner) == kept
    assert state_of(lab) == before


def test_token_of_the_owner_with_the_name_of_the_tenants_is_not_taken(lab: Lab) -> None:
    """`root@pam!fleet` is the login of the task, and `fleet` the usual name."""
    for state in ({}, {"state": "rotated", "old_token": "keep"}):
        result = refused(lab, "tenant", **{**NEW, **state}, owner="root@pam")
        assert result["error"]["reason"] == "not marked"
        assert result["error"]["unmarked"] == ["token 'root@pam!fleet'"]
        assert "set token to another name" in result["msg"]
    removal = do(lab, "tenant", **GONE, owner="root@pam")
    assert not removal["changed"]
    assert "fleet" in tokens(lab, "root@pam")


def test_successor_with_the_name_of_another_token_is_refused(lab: Lab, tmp_path: Path) -> None:
    file = str(tmp_path / "initech.yml")
    do(lab, "tenant", **NEW, owner="ops@pve", credentials_file=file)
    other = {"comment": "of someone", "privsep": 1}
    lab.client.write("POST", "access", "users", "ops@pve", "token", "fleet-2", data=other)
    rotated: dict[str, Any] = {"name": "initech", "state": "rotated", "owner": "ops@pve"}
    result = refused(lab, "tenant", **rotated, credentials_file=file)
    assert result["error"]["unmarked"] == ["token 'ops@pve!fleet-2'"]
    do(lab, "tenant", **GONE, owner="ops@pve")
    assert tokens(lab, "ops@pve") == {"auto", "fleet-2"}


def test_two_tenants_share_an_owner(lab: Lab, tmp_path: Path) -> None:
    before = state_of(lab)
    files = {name: tmp_path / f"{name}.yml" for name in ("initech", "hooli")}
    for name, file in files.items():
        new = {**NEW, "name": name, "owner": "ops@pve", "credentials_file": str(file)}
        do(lab, "tenant", **new)
        assert not do(lab, "tenant", **new)["changed"]
    names = {name: login_of(file)["token_id"] for name, file in files.items()}
    assert names == {"initech": "ops@pve!fleet", "hooli": "ops@pve!fleet.hooli"}
    for name in (*files, *files):
        rotated: dict[str, Any] = {"name": name, "state": "rotated", "owner": "ops@pve"}
        do(lab, "tenant", **rotated, credentials_file=str(files[name]))
        for other, file in files.items():
            rows = do(lab, "pool_info", **login_of(file))["pools"]
            assert other in {row["name"] for row in rows}, f"{other} after {name} was rotated"
    do(lab, "tenant", **GONE, owner="ops@pve")
    assert tokens(lab, "ops@pve") == {"auto", "fleet.hooli"}
    do(lab, "vm", **login_of(files["hooli"]), name="app", tenant="hooli", pool="hooli", memory="1G")
    do(lab, "tenant", name="hooli", state="absent", confirm="hooli", owner="ops@pve")
    assert state_of(lab) == before


def test_user_of_one_tenant_that_is_the_owner_of_another_stays(lab: Lab) -> None:
    made(lab, "initech")
    made(lab, "hooli", owner=USER)
    result = do(lab, "tenant", **GONE)
    (kept,) = [line for line in result["warnings"] if line.startswith("User")]
    assert kept.startswith(f"User '{USER}' is kept: it is used by tenant_hooli")
    assert tokens(lab, USER) == {"fleet.hooli"}
    assert (USER, "tenant_hooli") in rights_on(lab, "/pool/hooli")


def test_group_of_two_tenants_stays(lab: Lab) -> None:
    made(lab, "initech", group="both")
    made(lab, "hooli", group="both")
    do(lab, "tenant", **GONE, group="both")
    assert rights_on(lab, "/pool/hooli") == {("both", "tenant_hooli")}


# -- what someone else made -------------------------------------------------------------------


def test_pool_that_existed_stays_with_its_members_and_rights(lab: Lab) -> None:
    lab.client.write("POST", "pools", data={"poolid": "initech", "comment": "Tenant initech"})
    give(lab, "/pool/initech", "PVEAuditor", users="ops@pve")
    do(lab, "vm", name="theirs", pool="initech", memory="1G")
    before = state_of(lab)
    result = do(lab, "tenant", **NEW, comment="mine")
    assert "Create pool 'initech'" not in result["plan"]
    do(lab, "vm", name="app1", tenant="initech", pool="initech", memory="1G")
    removal = do(lab, "tenant", **GONE, strays="remove")
    assert [vm["name"] for vm in removal["vms"]] == ["app1"]
    warning = "Pool 'initech' was not created for tenant 'initech' and is kept"
    assert warning in removal["warnings"]
    assert state_of(lab) == before
    assert not do(lab, "tenant", **GONE)["changed"]


def test_token_that_someone_gave_the_user_of_a_tenant(lab: Lab) -> None:
    made(lab, "initech")
    lab.client.write("POST", "access", "users", USER, "token", "ci", data={"comment": "by hand"})
    result = refused(lab, "tenant", **GONE)
    assert result["error"]["strays"] == [f"token '{USER}!ci' has no mark"]
    before = state_of(lab)
    kept = do(lab, "tenant", check=True, **GONE, strays="keep")
    assert f"User '{USER}' is kept: it is used by token '{USER}!ci'" in kept["warnings"]
    assert not [line for line in kept["plan"] if line.startswith("Delete user")]
    removed = do(lab, "tenant", check=True, **GONE, strays="remove")
    assert f"Delete token '{USER}!ci'" in removed["plan"]
    assert state_of(lab) == before


def test_role_and_tag_of_someone_else_are_not_changed(lab: Lab) -> None:
    lab.client.write("POST", "access", "roles", data={"roleid": "tenant_initech", "privs": ""})
    lab.client.write("PUT", "cluster", "options", data={"registered-tags": "tenant_initech"})
    give(lab, "/pool/acme", "tenant_initech", users="ops@pve")
    present = refused(lab, "tenant", **NEW)
    assert present["error"]["unmarked"] == [
        "role 'tenant_initech'",
        "the rights on '/pool/acme'",
        "the cluster options",
    ]
    absent = refused(lab, "tenant", **GONE)
    assert absent["error"]["unmarked"] == ["role 'tenant_initech'"]
    do(lab, "tenant", **NEW, adopt=True)
    assert not do(lab, "tenant", **NEW)["changed"]


# -- tenants of earlier versions ---------------------------------------------------------------


def as_before(lab: Lab, *, group: str | None = None) -> None:
    """Give a tenant the comments of the versions that set no mark."""
    plain = {"comment": "Tenant initech"}
    lab.client.write("PUT", "pools", data={"poolid": "initech", **plain})
    lab.client.write("PUT", "access", "users", USER, data=plain)
    today = {"comment": "Tenant initech, created 2026-01-31"}
    lab.client.write("PUT", "access", "users", USER, "token", "fleet", data=today)
    if group:
        lab.client.write("PUT", "access", "groups", group, data=plain)


@pytest.mark.parametrize("lab_of", ["unused", "old"])
def test_tenant_without_marks_is_refused_until_it_is_adopted(
    lab_of: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    lab: Lab = request.getfixturevalue(lab_of)
    before = state_of(lab)
    file = str(tmp_path / "initech.yml")
    new = {**NEW, "group": "people", "credentials_file": file}
    do(lab, "tenant", **new)
    as_before(lab, group="people")
    rotated: dict[str, Any] = {"name": "initech", "state": "rotated", "credentials_file": file}
    for options in (new, rotated, {**GONE, "group": "people"}):
        result = refused(lab, "tenant", **options)
        assert result["error"]["reason"] == "not marked", options
        assert "Set adopt=true if " in result["msg"]
    foreseen = do(lab, "tenant", check=True, **new, adopt=True)
    result = do(lab, "tenant", **new, adopt=True)
    assert result["done"] == result["plan"] == foreseen["plan"]
    assert result["plan"] == [
        "Set comment of pool 'initech'",
        "Set comment of group 'people'",
        f"Set comment of user '{USER}'",
        f"Set comment of token '{USER}!fleet'",
    ]
    (token,) = lab.client.get("access", "users", USER, "token")
    assert token["comment"] == f"Tenant initech, created 2026-01-31 {MARK}"
    assert not do(lab, "tenant", **new)["changed"]
    do(lab, "tenant", **rotated)
    do(lab, "tenant", **GONE, group="people")
    assert state_of(lab) == before


def test_tenant_without_marks_is_removed_when_adopted(lab: Lab) -> None:
    before = state_of(lab)
    made(lab, "initech")
    as_before(lab)
    do(lab, "tenant", **GONE, adopt=True)
    assert state_of(lab) == before


def test_mark_of_another_tenant_is_never_adopted(lab: Lab) -> None:
    made(lab, "initech")
    made(lab, "hooli", owner=USER, pool="initech", token="mine")
    result = refused(lab, "tenant", name="hooli", owner=USER, token="fleet", adopt=True)
    assert "is of the tenant with the tag tenant_initech" in result["msg"]
    gone = {**GONE, "name": "hooli", "confirm": "hooli", "owner": USER, "pool": "initech"}
    do(lab, "tenant", **gone, adopt=True)
    assert tokens(lab, USER) == {"fleet"}
    assert not do(lab, "tenant", **NEW)["changed"]


# -- the mark itself ---------------------------------------------------------------------------


def test_mark_stays_when_a_module_changes_the_comment(lab: Lab) -> None:
    do(lab, "tenant", **NEW, comment="Initech Inc.", group="people")
    read = lab.client.get
    assert read("pools", params={"poolid": "initech"})[0]["comment"] == f"Initech Inc. {MARK}"
    do(lab, "pool", name="initech", comment="another")
    do(lab, "group", name="people", comment="another")
    do(lab, "user", name=USER, comment="another")
    do(lab, "token", owner=USER, name="fleet", comment="another")
    comments = [
        read("pools", params={"poolid": "initech"})[0]["comment"],
        read("access", "groups", "people")["comment"],
        read("access", "users", USER)["comment"],
        read("access", "users", USER, "token", "fleet")["comment"],
    ]
    assert comments == [f"another {MARK}"] * 4
    assert not do(lab, "pool", name="initech", comment="another")["changed"]


def test_prefix_is_part_of_the_mark(lab: Lab) -> None:
    do(lab, "tenant", **NEW, owner="ops@pve")
    other: dict[str, Any] = {"name": "initech", "tenant_prefix": "team_", "owner": "ops@pve"}
    do(lab, "tenant", **{**RIGHTS, **other}, pool="team")
    assert tokens(lab, "ops@pve") == {"auto", "fleet", "fleet.initech"}
    do(lab, "tenant", **other, pool="team", state="absent", confirm="initech")
    assert tokens(lab, "ops@pve") == {"auto", "fleet"}


def test_info_says_for_whom_a_token_was_created(lab: Lab) -> None:
    do(lab, "tenant", **NEW, owner="ops@pve")
    (one,) = do(lab, "tenant_info", name="initech")["tenants"]
    whose = {row["token_id"]: row["tenant"] for row in one["tokens"]}
    assert whose == {"ops@pve!auto": None, "ops@pve!fleet": "initech"}
