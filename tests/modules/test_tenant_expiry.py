# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokens of tenants expire, rotations are in time, and the audit passes when all is well."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.modules.access_lab import do, refused
from tests.modules.estate_lab import Lab

NEW: dict[str, Any] = {"name": "initech", "operations": ["operate"]}
DESCRIBED: dict[str, Any] = {"initech": {"access": {"operations": ["operate"]}}}
ADMINS = ["root@pam!fleet", "ops@pve!auto"]
DAY = 86400


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


@pytest.fixture
def rotated(tmp_path: Path) -> dict[str, Any]:
    return {"name": "initech", "state": "rotated", "credentials_file": str(tmp_path / "login.yml")}


def findings(lab: Lab, **access: Any) -> list[tuple[str, str]]:
    described = {"initech": {"access": {**DESCRIBED["initech"]["access"], **access}}}
    audit = do(lab, "audit_info", tenants=described, lasting_tokens=ADMINS)
    return [(one["kind"], one["subject"]) for one in audit["findings"]]


def token(lab: Lab) -> dict[str, Any]:
    (tenant,) = do(lab, "tenant_info", name="initech")["tenants"]
    (found,) = tenant["tokens"]
    return dict(found)


def set_expiry(lab: Lab, seconds: float, name: str = "fleet") -> None:
    path = ("access", "users", "tenant_initech@pve", "token", name)
    lab.client.write("PUT", *path, data={"expire": int(seconds)})


def test_new_and_rotated_tenants_pass_the_audit(lab: Lab, rotated: dict[str, Any]) -> None:
    place = {"credentials_file": rotated["credentials_file"]}
    made = do(lab, "tenant", **NEW, **place)
    assert not made.get("warnings")
    assert token(lab)["days_left"] == 90
    assert findings(lab) == []
    do(lab, "tenant", **rotated)
    assert token(lab)["days_left"] == 90
    assert findings(lab) == []
    assert not do(lab, "tenant", **NEW, **place)["changed"]


def test_preview_has_the_expiry_of_the_run(lab: Lab) -> None:
    foreseen = do(lab, "tenant", check=True, **NEW, token_life=10)
    assert do(lab, "tenant", **NEW, token_life=10)["diff"] == foreseen["diff"]
    assert token(lab)["days_left"] == 10
    again = do(lab, "tenant", **NEW, token_life=30)
    assert not again["changed"]
    assert token(lab)["days_left"] == 10


@pytest.mark.parametrize(("days", "kind"), [(13, "expires_soon"), (-1, "expired_token")])
def test_audit_and_task_report_a_token_near_its_end(lab: Lab, days: int, kind: str) -> None:
    do(lab, "tenant", **NEW)
    set_expiry(lab, time.time() + days * DAY + 60)
    assert findings(lab) == [(kind, "tenant_initech@pve!fleet")]
    result = do(lab, "tenant", **NEW)
    assert not result["changed"]
    (warning,) = result["warnings"]
    assert "state=rotated" in warning


def test_token_without_expiry_of_an_older_tenant(lab: Lab, rotated: dict[str, Any]) -> None:
    """A run leaves it and warns, the audit reports it, and a rotation ends it."""
    place = {"credentials_file": rotated["credentials_file"]}
    do(lab, "tenant", **NEW, **place)
    set_expiry(lab, 0)
    assert findings(lab) == [("no_expiry", "tenant_initech@pve!fleet")]
    result = do(lab, "tenant", **NEW, **place)
    assert not result["changed"]
    assert "never expires" in result["warnings"][0]
    assert token(lab)["expire"] is None
    assert do(lab, "tenant", **rotated, expires_within=30)["changed"]
    assert token(lab)["days_left"] == 90
    assert findings(lab) == []


def test_tenant_that_is_described_without_expiry_passes(lab: Lab) -> None:
    result = do(lab, "tenant", **NEW, expire="never")
    assert not result.get("warnings")
    assert findings(lab, expire="never") == []
    assert findings(lab) == [("no_expiry", "tenant_initech@pve!fleet")]


def test_rotation_is_done_when_it_is_due(lab: Lab, rotated: dict[str, Any]) -> None:
    place = {"credentials_file": rotated["credentials_file"]}
    do(lab, "tenant", **NEW, **place)
    lab.simulator.reset_log()
    assert not do(lab, "tenant", **rotated, expires_within=30)["changed"]
    assert lab.simulator.writes() == []
    set_expiry(lab, time.time() + 29 * DAY)
    foreseen = do(lab, "tenant", check=True, **rotated, expires_within=30)
    assert foreseen["changed"]
    assert do(lab, "tenant", **rotated, expires_within=30)["diff"] == foreseen["diff"]
    assert token(lab)["token_id"].endswith("!fleet-2")
    assert not do(lab, "tenant", **rotated, expires_within=30)["changed"]


def test_lasting_token_that_does_not_exist_is_a_finding(lab: Lab) -> None:
    audit = do(lab, "audit_info", lasting_tokens=[*ADMINS, "ops@pve!atuo"])
    assert [(one["kind"], one["subject"]) for one in audit["findings"]] == [
        ("unknown", "ops@pve!atuo")
    ]


@pytest.mark.parametrize("days", [0, -1, 4000])
def test_life_outside_of_its_range_is_refused(lab: Lab, days: int) -> None:
    assert "token_life" in refused(lab, "tenant", **NEW, token_life=days)["msg"]
