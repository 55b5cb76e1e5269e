# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever interrupts the creation or removal of a tenant, another run completes it.

Rotations are in test_tenant_rotation.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cases import repeated, strides
from tests.modules.access_lab import do, refused
from tests.modules.estate_lab import Lab
from tests.modules.tenant_lab import login_of, run_until, state_of

# A tenant with one part of each kind, and a registered tag.
NEW: dict[str, Any] = {
    "name": "initech",
    "operations": ["operate"],
    "group": "initech",
    "members": ["ops@pve"],
    "nodes": ["pve1"],
}
GONE: dict[str, Any] = {
    "name": "initech",
    "state": "absent",
    "group": "initech",
    "confirm": "initech",
}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def works(lab: Lab, file: Path, password: str | None = None) -> bool:
    """Return whether the login in a file sees the pool of the tenant."""
    result = do(lab, "pool_info", **login_of(file, password))
    return [row["name"] for row in result["pools"]] == ["initech"]


PLAIN, VAULT = pytest.param(None, id="plain"), pytest.param("open sesame", id="vault")


@pytest.mark.parametrize("stride", strides(3))
@pytest.mark.parametrize("password", repeated([PLAIN, VAULT]))
@pytest.mark.usefixtures("fast")
def test_creation_is_completed_by_another_run(
    lab: Lab, tmp_path: Path, password: str | None, stride: int
) -> None:
    before = state_of(lab)
    point = 1 - stride
    lost: list[int] = []
    while True:
        point += stride
        file = tmp_path / f"{point}.yml"
        place: dict[str, Any] = {"credentials_file": str(file), "vault_password": password}
        if not run_until(lab, point, **NEW, **place):
            break
        foreseen = do(lab, "tenant", check=True, **NEW, **place)
        rest = do(lab, "tenant", **NEW, **place)
        assert rest["diff"] == foreseen["diff"]
        # Between the token and its file no one has the secret.
        if "Delete token 'tenant_initech@pve!fleet'" in rest["done"]:
            lost.append(point)
        assert works(lab, file, password), f"after point {point}"
        assert not do(lab, "tenant", **NEW, **place)["changed"]
        do(lab, "tenant", **GONE, **place)
        assert list(tmp_path.iterdir()) == [], f"after point {point}"
        assert state_of(lab) == before, f"after point {point}"
    # After the token, and before the file.
    assert lost == [number for number in (22, 23) if number in range(1, point, stride)]
    # Before and after: the reservation of the file, pool, group, two roles, two users, rights on
    # two paths, tag, token, file.
    assert point == 2 * 12 + 1


@pytest.mark.parametrize("password", repeated([VAULT, PLAIN]))
@pytest.mark.usefixtures("fast")
def test_rotation_without_the_file_is_completed_by_another_run(
    lab: Lab, tmp_path: Path, password: str | None
) -> None:
    """The file was lost: a rotation writes another one, whatever interrupts it."""
    point, ended = 0, True
    while ended:
        point += 1
        file = tmp_path / f"{point}.yml"
        place: dict[str, Any] = {"credentials_file": str(file), "vault_password": password}
        lab.simulator.reset()
        do(lab, "tenant", **NEW, **place)
        file.unlink()
        rotated: dict[str, Any] = {"name": "initech", "state": "rotated", **place}
        ended = run_until(lab, point, **rotated)
        do(lab, "tenant", **rotated)
        assert works(lab, file, password), f"after point {point}"
        assert not do(lab, "tenant", **NEW, **place)["changed"]
        (row,) = lab.client.get("access", "users", "tenant_initech@pve", "token")
        assert row["tokenid"] == login_of(file, password)["token_id"].partition("!")[2]
    # Before and after: the reservation, the new token, the file, the removal of the old token.
    assert point == 2 * 4 + 1


@pytest.mark.usefixtures("fast")
def test_token_in_use_is_never_taken_for_a_lost_one(lab: Lab, tmp_path: Path) -> None:
    """A reservation is left; then the token is created for another file, and used there."""
    file, other = tmp_path / "one.yml", tmp_path / "other.yml"
    assert run_until(lab, 2, **NEW, credentials_file=str(file))
    do(lab, "tenant", **NEW, credentials_file=str(other))
    result = refused(lab, "tenant", **NEW, credentials_file=str(file))
    assert result["error"]["reason"] == "unknown secret"
    assert "state=rotated" in result["msg"]
    assert works(lab, other)
    do(lab, "tenant", name="initech", state="rotated", credentials_file=str(file))
    assert works(lab, file)


@pytest.mark.usefixtures("fast")
def test_failure_before_the_token_leaves_no_reservation(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "login.yml"
    lab.simulator.fault(method="POST", path="/access/roles", status=400, times=9)
    assert lab.run("tenant", **NEW, credentials_file=str(file))["failed"]
    lab.simulator.clear_faults()
    assert not file.exists()


@pytest.mark.parametrize("stride", strides(7))
@pytest.mark.usefixtures("fast")
def test_removal_is_completed_by_another_run(lab: Lab, tmp_path: Path, stride: int) -> None:
    before = state_of(lab)
    point = 1 - stride
    ended = True
    while ended:
        point += stride
        file = tmp_path / f"{point}.yml"
        do(lab, "tenant", **NEW, credentials_file=str(file))
        do(lab, "vm", name="app1", tenant="initech", pool="initech", memory="1G", state="started")
        do(lab, "vm", name="app2", tenant="initech", pool="initech", memory="1G")
        ended = run_until(lab, point, **GONE, credentials_file=str(file))
        if ended:
            do(lab, "tenant", **GONE, credentials_file=str(file))
        assert state_of(lab) == before, f"after point {point}"
        assert not file.exists()
        assert not do(lab, "tenant", **GONE, credentials_file=str(file))["changed"]
    # Before and after: a stop and the removal of two VMs, rights on two paths, token, user, group,
    # two roles, pool, tag, file.
    assert 2 * 13 < point <= 2 * 13 + stride
