# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tenant is given another token while the one in use stays valid, whatever interrupts the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.modules.access_lab import do, refused
from tests.modules.estate_lab import Lab
from tests.modules.tenant_lab import RIGHTS, login_of, run_until

NEW: dict[str, Any] = {"name": "initech", **RIGHTS}
ROTATED: dict[str, Any] = {"name": "initech", "state": "rotated"}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


@pytest.fixture
def file(lab: Lab, tmp_path: Path) -> Path:
    """The login of a new tenant."""
    path = tmp_path / "initech.yml"
    do(lab, "tenant", **NEW, credentials_file=str(path))
    return path


def works(lab: Lab, login: dict[str, Any]) -> bool:
    """Return whether a login sees the pool of the tenant."""
    result = lab.run("pool_info", **login)
    assert not result.get("failed") or result["error"]["category"] == "AuthenticationError"
    return [row["name"] for row in result.get("pools", [])] == ["initech"]


def tokens(lab: Lab) -> set[str]:
    rows = lab.client.get("access", "users", "tenant_initech@pve", "token")
    return {str(row["tokenid"]) for row in rows}


def test_rotated_as_foreseen_and_again(lab: Lab, file: Path) -> None:
    options = {**ROTATED, "credentials_file": str(file)}
    logins = [login_of(file)]
    for successor in ("fleet-2", "fleet", "fleet-2"):
        lab.simulator.reset_log()
        foreseen = do(lab, "tenant", check=True, **options)
        assert lab.simulator.writes() == []
        result = do(lab, "tenant", **options)
        assert result["diff"] == foreseen["diff"]
        done = [line for line in result["done"] if not line.startswith("Write the login")]
        assert done == result["plan"] == foreseen["plan"]
        assert len(done) == 2
        assert tokens(lab) == {successor}
        assert not works(lab, logins[-1])
        logins.append(login_of(file))
        assert works(lab, logins[-1])
    kept = do(lab, "tenant", **NEW, credentials_file=str(file))
    assert not kept["changed"]


@pytest.mark.parametrize("earlier", [0, 1], ids=["first rotation", "second rotation"])
def test_interrupted_at_every_point_a_rerun_ends_well(lab: Lab, file: Path, earlier: int) -> None:
    options = {**ROTATED, "credentials_file": str(file)}
    for _number in range(earlier):
        do(lab, "tenant", **options)
    points = 0
    while True:
        points += 1
        before = login_of(file)
        ended = run_until(lab, points, **options)
        assert works(lab, login_of(file)), f"an outage after point {points}"
        assert [line for line in file.parent.iterdir() if line != file] == []
        if not ended:
            break
        do(lab, "tenant", **options)
        after = login_of(file)
        assert works(lab, after)
        assert after != before, f"no other token after point {points}"
        assert not works(lab, before), f"the old token is still valid after point {points}"
        assert tokens(lab) == {after["token_id"].partition("!")[2]}
    assert points == 7  # before and after: the new token, the hand-over, the removal


def test_lost_answer_to_the_new_token_is_completed_by_a_rerun(lab: Lab, file: Path) -> None:
    options = {**ROTATED, "credentials_file": str(file)}
    before = login_of(file)
    lab.simulator.fault(method="POST", path="/token/fleet-2$", drop="after")
    result = lab.run("tenant", **options)
    assert result["error"]["reason"] == "lost secret"
    assert works(lab, before)
    assert login_of(file) == before
    done = do(lab, "tenant", **options)
    assert done["done"][0] == "Delete token 'tenant_initech@pve!fleet-2'"
    assert works(lab, login_of(file))
    assert tokens(lab) == {"fleet-2"}


def test_old_token_stays_where_the_new_one_does_not_work(lab: Lab, file: Path) -> None:
    before = login_of(file)
    lab.client.write(
        "PUT",
        "access",
        "acl",
        data={
            "path": "/pool/initech",
            "users": "tenant_initech@pve",
            "roles": "tenant_initech",
            "delete": 1,
        },
    )
    result = lab.run("tenant", **ROTATED, credentials_file=str(file))
    assert "was not verified, so the old token stays" in result["msg"]
    assert "has no right on /pool/initech" in result["msg"]
    assert "Create token 'tenant_initech@pve!fleet-2'" in result["error"]["done"]
    assert tokens(lab) == {"fleet", "fleet-2"}
    do(lab, "tenant", **NEW, credentials_file=str(file))
    assert works(lab, before)
    do(lab, "tenant", **ROTATED, credentials_file=str(file))
    assert tokens(lab) == {"fleet-2"}


def test_without_a_file_in_two_steps(lab: Lab) -> None:
    first = do(lab, "tenant", **NEW)["credentials"]["sites"][0]
    refusal = refused(lab, "tenant", **ROTATED)
    assert "old_token=keep" in refusal["msg"]
    started = do(lab, "tenant", **ROTATED, old_token="keep")
    second = started["credentials"]["sites"][0]
    assert tokens(lab) == {"fleet", "fleet-2"}
    for site in (first, second):
        assert works(lab, {key: site[key] for key in ("token_id", "token_secret")})
    unknown = refused(lab, "tenant", **ROTATED, finish=True)
    assert unknown["error"]["tokens"] == ["fleet", "fleet-2"]
    ending = {**ROTATED, "finish": True, "current_token": "fleet-2"}
    wrong = lab.run("tenant", **ending, current_secret="00000000-0000-4000-8000-00000000dead")
    assert wrong["error"]["category"] == "AuthenticationError"
    assert tokens(lab) == {"fleet", "fleet-2"}
    done = do(lab, "tenant", **ending, current_secret=second["token_secret"])
    assert done["done"] == ["Delete token 'tenant_initech@pve!fleet'"]
    again = do(lab, "tenant", **ending, current_secret=second["token_secret"])
    assert not again["changed"]
    assert tokens(lab) == {"fleet-2"}


def test_new_token_expires_as_the_one_in_use(lab: Lab, tmp_path: Path) -> None:
    file = str(tmp_path / "initech.yml")
    do(lab, "tenant", **NEW, expire="2099-01-01", credentials_file=file)
    expires = {"expire": "2099-01-01T00:00:00Z"}
    for _number in range(2):
        result = do(lab, "tenant", **ROTATED, credentials_file=file)
        (made,) = result["diff"]["after"].values()
        (token,) = do(lab, "tenant_info", name="initech")["tenants"][0]["tokens"]
        assert {"expire": made["expire"]} == {"expire": token["expire"]} == expires
    do(lab, "tenant", **ROTATED, credentials_file=file, expire="2100-01-01")
    (token,) = do(lab, "tenant_info", name="initech")["tenants"][0]["tokens"]
    assert token["expire"] == "2100-01-01T00:00:00Z"


def test_tenant_without_a_token_cannot_be_rotated(lab: Lab) -> None:
    result = refused(lab, "tenant", **ROTATED, old_token="keep")
    assert result["error"]["category"] == "NotFound"
