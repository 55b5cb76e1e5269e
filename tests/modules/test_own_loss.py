# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A task does not take rights away from its own login unless allow_self says so.

The simulator judges rights by the rules of pve-access-control (tests/simulator/core/acl.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.modules.access_lab import ROOT, do, limited, refused, requests, with_directory
from tests.modules.estate_lab import Lab
from tests.modules.tenant_lab import RIGHTS, login_of

ADMIN = "admin@pve"
TOKEN = f"{ADMIN}!tt"
PASSWORD = "longenough-1"
BY_GROUP = [{"group": "admins", "role": "Administrator"}]


@pytest.fixture(params=["unused", "old"], ids=["9.2", "8.4"])
def lab(request: pytest.FixtureRequest) -> Lab:
    """The demo cluster as it is at the start, in both versions."""
    found: Lab = request.getfixturevalue(request.param)
    return found


def give(lab: Lab, path: str, role: str, **who: str) -> None:
    lab.client.write("PUT", "access", "acl", data={"path": path, "roles": role, **who})


def through_group(lab: Lab, *, privsep: int = 0) -> dict[str, Any]:
    """Return the login of an administrator's token; the rights are those of a group."""
    lab.client.write("POST", "access", "groups", data={"groupid": "admins"})
    give(lab, "/", "Administrator", groups="admins")
    login = limited(lab, "admin", {}, privsep=privsep)
    lab.client.write("PUT", "access", "users", ADMIN, data={"groups": "admins"})
    if privsep:
        give(lab, "/", "Administrator", tokens=TOKEN)
    return login


def with_password(lab: Lab) -> dict[str, Any]:
    """Return the login of the same administrator with a password."""
    do(lab, "user", name=ADMIN, user_password=PASSWORD, update_password="always", **ROOT)
    return {"user": ADMIN, "password": PASSWORD, "token_id": None, "token_secret": None}


Case = tuple[str, dict[str, Any], str]
LOSSES: list[Case] = [
    ("token", {"owner": ADMIN, "name": "tt", "state": "absent"}, "is no longer accepted"),
    ("token", {"owner": ADMIN, "name": "tt", "expire": "2099-01-01"}, "accepted after 2099-01-01"),
    (
        "token",
        {"owner": ADMIN, "name": "tt", "privilege_separation": True},
        "loses all privileges on /",
    ),
    ("user", {"name": ADMIN, "state": "absent"}, "is no longer accepted"),
    ("user", {"name": ADMIN, "enabled": False}, "is no longer accepted"),
    ("user", {"name": ADMIN, "expire": "2099-01-01"}, "accepted after 2099-01-01"),
    ("user", {"name": ADMIN, "groups": [], "append": False}, "loses all privileges on /"),
    ("group", {"name": "admins", "state": "absent", "force": True}, "loses all privileges on /"),
    ("acl", {"path": "/", "state": "absent", "grants": BY_GROUP}, "loses all privileges on /"),
    (
        "acl",
        {"path": "/vms", "grants": [{"user": ADMIN, "role": "NoAccess"}]},
        "loses all privileges on /vms",
    ),
    (
        "acl",
        {"path": "/pool/acme", "grants": [{"group": "admins", "role": "PVEPoolUser"}]},
        "Sys.Modify",
    ),
    ("tenant", {"name": "acme", "owner": ADMIN, "token": "new", **RIGHTS}, "Permissions.Modify"),
]


@pytest.mark.parametrize(("module", "options", "words"), LOSSES, ids=lambda value: str(value)[:60])
def test_refused_with_what_would_be_lost(
    unused: Lab, module: str, options: dict[str, Any], words: str
) -> None:
    login = through_group(unused)
    result = refused(unused, module, **{**options, **login})
    assert result["error"]["reason"] in ("own login", "own rights")
    assert words in result["msg"]
    assert TOKEN in result["msg"]
    assert "allow_self=true" in result["msg"]
    foreseen = do(unused, module, check=True, **{**options, **login}, allow_self=True)
    assert any(words in line for line in foreseen["warnings"])
    done = do(unused, module, **{**options, **login}, allow_self=True)
    assert done["changed"]
    assert done["done"] == done["plan"] == foreseen["plan"]
    assert any(words in line for line in done["warnings"])


def test_same_losses_are_refused_in_both_versions(lab: Lab) -> None:
    login = through_group(lab)
    for module, options, words in LOSSES:
        result = lab.run(module, check=True, **{**options, **login})
        assert words in result.get("msg", ""), (module, options, result)


def test_login_with_a_password(lab: Lab) -> None:
    """The token of the user may go; the user, its groups and its password may not."""
    through_group(lab)
    login = with_password(lab)
    for module, options, words in LOSSES:
        result = lab.run(module, check=True, **{**options, **login})
        if module == "token":
            assert not result.get("failed"), result
        else:
            assert words in result["msg"], (module, options)
    another: dict[str, Any] = {
        "name": ADMIN,
        "user_password": "longenough-2",
        "update_password": "always",
    }
    result = lab.run("user", check=True, **{**another, **login})
    assert "with the password of this task" in result["msg"]


def test_token_with_privilege_separation_has_what_both_have(lab: Lab) -> None:
    login = through_group(lab, privsep=1)
    own: dict[str, Any] = {"path": "/", "state": "absent"}
    for subject in ({"group": "admins"}, {"token": TOKEN}):
        grants = [{**subject, "role": "Administrator"}]
        result = refused(lab, "acl", **own, grants=grants, **login)
        assert "loses all privileges on /" in result["msg"]
        assert "Sys.Modify" in result["error"]["lost"]["/"]
    for role in ("PVEAuditor", "Administrator"):
        give(lab, "/access", role, users=ADMIN)
    less: dict[str, Any] = {
        "path": "/access",
        "state": "absent",
        "grants": [{"user": ADMIN, "role": "PVEAuditor"}],
    }
    assert not lab.run("acl", check=True, **less, **login).get("failed")


def test_role_of_the_login_cannot_lose_privileges(lab: Lab) -> None:
    privileges = ["Sys.Audit", "Sys.Modify", "Permissions.Modify", "User.Modify", "VM.Audit"]
    do(lab, "role", name="boss", privileges=privileges)
    login = limited(lab, "admin", {"/": "boss"})
    less: dict[str, Any] = {"name": "boss", "privileges": privileges[:-1], "append": False}
    result = refused(lab, "role", **less, **login)
    assert "loses VM.Audit on /." in result["msg"]
    assert result["error"]["lost"] == {"/": ["VM.Audit"]}
    result = refused(lab, "role", name="boss", state="absent", force=True, **login)
    assert "loses all privileges on /" in result["msg"]
    do(lab, "role", **less, **login, allow_self=True)


def test_rights_through_a_pool(lab: Lab) -> None:
    vm = do(lab, "vm", name="app", pool="acme", memory="1G")["vm"]
    login = limited(lab, "keeper", {"/pool/acme": "PVEAdmin"})
    result = refused(lab, "pool", name="acme", state="absent", force=True, **login)
    assert f"all privileges on /vms/{vm['vmid']}" in result["msg"]
    assert "all privileges on /pool/acme" in result["msg"]
    result = refused(lab, "pool", name="acme", vms=[], exact=True, **login)
    assert f"all privileges on /vms/{vm['vmid']}" in result["msg"]


@pytest.mark.parametrize("exists", [True, False])
def test_rights_on_a_vm_that_moves_to_another_pool(lab: Lab, exists: bool) -> None:
    vm = do(lab, "vm", name="app", pool="acme", memory="1G")["vm"]
    if exists:
        do(lab, "pool", name="spare")
    login = limited(lab, "keeper", {"/pool/acme": "PVEAdmin", "/pool/spare": "PVEPoolAdmin"})
    moved: dict[str, Any] = {"name": "spare", "vms": [vm["vmid"]], "allow_move": True}
    result = refused(lab, "pool", **moved, **login)
    assert result["error"]["reason"] == "own rights"
    assert "VM.PowerMgmt" in result["msg"]
    assert f" on /vms/{vm['vmid']}. Use another login" in result["msg"]
    done = do(lab, "pool", **moved, **login, allow_self=True)
    assert done["changed"]
    assert any(f"/vms/{vm['vmid']}" in line for line in done["warnings"])
    rows = lab.client.get("cluster", "resources", type="vm")
    assert [row["pool"] for row in rows if row["vmid"] == vm["vmid"]] == ["spare"]


def test_a_move_between_pools_with_the_same_rights_loses_nothing(lab: Lab) -> None:
    vm = do(lab, "vm", name="app", pool="acme", memory="1G")["vm"]
    held = {"/pool/acme": "PVEAdmin", "/pool/spare": "PVEAdmin", "/access": "PVEAuditor"}
    login = limited(lab, "keeper", held)
    moved: dict[str, Any] = {"name": "spare", "vms": [vm["vmid"]], "allow_move": True}
    assert do(lab, "pool", **moved, **login)["warnings"] == []


def test_pool_on_which_the_login_has_no_access_takes_no_vm(lab: Lab) -> None:
    """NoAccess on a pool would take every right on its members (pve-access-control:
    RPCEnvironment.pm, compile_acl_path), but the same entry takes Pool.Allocate on the pool, which
    each change of its members needs (pve-manager: PVE/API2/Pool.pm, update_pool).
    """
    vm = do(lab, "vm", name="app", memory="1G")["vm"]
    do(lab, "pool", name="spare")
    do(lab, "pool", name="spare/inner")
    held = {"/vms": "PVEAdmin", "/pool": "PVEAdmin"}
    login = limited(lab, "keeper", held)
    give(lab, "/pool/spare", "NoAccess", users="keeper@pve")
    for name in ("spare", "spare/inner"):
        result = lab.run("pool", name=name, vms=[vm["vmid"]], **login)
        assert result["error"]["reason"] == f"lacks Pool.Allocate on /pool/{name}", result
        assert not result["changed"]
    (seen,) = do(lab, "vm_info", vmid=vm["vmid"], **login)["vms"]
    assert seen["pool"] is None


def test_rights_that_stay_are_not_a_loss(lab: Lab) -> None:
    """Rights that the login keeps in another way, an end that comes later, and other targets."""
    login = through_group(lab)
    give(lab, "/", "Administrator", users=ADMIN)
    do(lab, "acl", path="/", state="absent", grants=BY_GROUP, **login)
    do(lab, "group", name="admins", state="absent", force=True, **login)
    token: dict[str, Any] = {"owner": ADMIN, "name": "tt"}
    do(lab, "token", **token, expire="2099-01-01", **login, allow_self=True)
    do(lab, "token", **token, expire="2100-01-01", **login)
    do(lab, "token", **token, expire="never", comment="mine", **login)
    do(lab, "token", owner="ops@pve", name="auto", state="absent", **login)
    do(lab, "user", name="ops@pve", state="absent", **login)


def test_root_with_a_password_loses_nothing_by_rights(lab: Lab) -> None:
    do(lab, "role", name="boss", privileges=["VM.Audit", "VM.Console"])
    give(lab, "/", "boss", users="root@pam")
    lab.simulator.reset_log()
    do(lab, "role", name="boss", privileges=["VM.Audit"], append=False, **ROOT)
    taken: dict[str, Any] = {
        "path": "/",
        "state": "absent",
        "grants": [{"user": "root@pam", "role": "boss"}],
    }
    do(lab, "acl", **taken, **ROOT)
    assert not [line for line in requests(lab) if line.startswith("GET /access/users")]


@pytest.mark.parametrize(
    "options", [{"state": "absent"}, {"enabled": False}, {"expire": "2099-01-01"}], ids=str
)
def test_root_is_kept_in_any_case(lab: Lab, options: dict[str, Any]) -> None:
    for login in ({}, ROOT):
        for allow_self in (False, True):
            given = {"name": "root@pam", **options, **login, "allow_self": allow_self}
            result = lab.run("user", **given)
            assert "every cluster needs it" in result["msg"]
    assert lab.client.get("access", "users", "root@pam")["enable"] == 1


def test_other_targets_cost_no_request(unused: Lab) -> None:
    """The same requests as before there was a guard: nothing is asked about the login."""
    login = limited(unused, "admin", {"/": "Administrator"})
    give(unused, "/vms", "PVEAuditor", users="ops@pve")
    tasks: list[tuple[str, dict[str, Any], int]] = [
        ("token", {"owner": "ops@pve", "name": "auto", "expire": "2099-01-01"}, 3),
        ("token", {"owner": "ops@pve", "name": "auto", "state": "absent"}, 3),
        ("user", {"name": "ops@pve", "enabled": False}, 3),
        (
            "acl",
            {
                "path": "/vms",
                "state": "absent",
                "grants": [{"user": "ops@pve", "role": "PVEAuditor"}],
            },
            5,
        ),
    ]
    for module, options, number in tasks:
        unused.simulator.reset_log()
        do(unused, module, **options, **login)
        assert len(requests(unused)) == number, (module, requests(unused))


def test_tenant_keeps_the_login_of_the_task(unused: Lab, tmp_path: Path) -> None:
    """The tenant's own token, given an administrator's rights, cannot rotate itself away."""
    file = tmp_path / "acme.yml"
    give(unused, "/", "Administrator", users="ops@pve")
    new = {"name": "initech", "owner": "ops@pve", **RIGHTS, "credentials_file": str(file)}
    do(unused, "tenant", **{**new, "pool": "initech"})
    own = login_of(file)
    rotated: dict[str, Any] = {"name": "initech", "state": "rotated", "owner": "ops@pve"}
    result = refused(unused, "tenant", **rotated, credentials_file=str(file), **own)
    assert result["error"]["reason"] == "own login"
    assert "ops@pve!fleet, then is no longer accepted" in result["msg"]
    done = do(unused, "tenant", **rotated, credentials_file=str(file), **own, allow_self=True)
    assert done["done"][-1] == "Delete token 'ops@pve!fleet'"
    assert any("cannot verify" in line for line in done["warnings"])


def test_sync_that_removes_the_login(unused: Lab) -> None:
    with_directory(unused.client, unused.simulator)
    unused.client.write("POST", "access", "users", data={"userid": "carol@ldap"})
    give(unused, "/", "Administrator", users="carol@ldap")
    made = unused.client.write(
        "POST", "access", "users", "carol@ldap", "token", "tt", data={"privsep": 0}
    )
    options: dict[str, Any] = {"name": "ldap", "scope": "both", "enable_new": True}
    options |= {"token_id": "carol@ldap!tt", "token_secret": made["value"]}
    kept = do(unused, "realm_sync", **options, remove_vanished=["properties"])
    assert kept["realm_sync"]["users"]["removed"] == []
    options["remove_vanished"] = ["entry", "acl"]
    result = unused.run("realm_sync", **options)
    assert "carol@ldap!tt, then is no longer accepted" in result["msg"]
    assert unused.run("realm_sync", check=True, **options)["msg"] == result["msg"]
    assert unused.client.get("access", "users", "carol@ldap")["enable"] == 1
    result = unused.run("realm_sync", **options, allow_self=True)
    assert not result.get("failed"), result
    assert result["changed"]
    assert result["done"] == ["Synchronize realm 'ldap'"]
    assert "carol@ldap" in result["realm_sync"]["users"]["removed"]
    assert any("was removed by task UPID:" in line for line in result["warnings"])
    assert any("cannot verify realm 'ldap'" in line for line in result["warnings"])
    rows = unused.client.get("access", "users")
    assert "carol@ldap" not in {row["userid"] for row in rows}
