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

from tests.modules.access_lab import do
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


def works(lab: Lab, file: Path) -> bool:
    """Return whether the login in a file sees the pool of the tenant."""
    result = do(lab, "pool_info", **login_of(file))
    return [row["name"] for row in result["pools"]] == ["initech"]


@pytest.mark.usefixtures("fast")
def test_creation_is_completed_by_another_run(lab: Lab, tmp_path: Path) -> None:
    before = state_of(lab)
    point, lost = 0, 0
    while True:
        point += 1
        file = tmp_path / f"{point}.yml"
        if not run_until(lab, point, **NEW, credentials_file=str(file)):
            break
        rest = lab.run("tenant", **NEW, credentials_file=str(file))
        if rest.get("failed"):
            # Between the token and its file the secret is lost: the message has the way out.
            lost += 1
            assert rest["error"]["reason"] == "unknown secret"
            assert "state=rotated" in rest["msg"]
            do(lab, "tenant", name="initech", state="rotated", credentials_file=str(file))
            do(lab, "tenant", **NEW, credentials_file=str(file))
        assert works(lab, file), f"after point {point}"
        assert not do(lab, "tenant", **NEW, credentials_file=str(file))["changed"]
        do(lab, "tenant", **GONE)
        assert state_of(lab) == before, f"after point {point}"
    assert lost == 2, "after the token, and before the file"
    # Before and after: pool, group, two roles, two users, rights on two paths, tag, token, file.
    assert point == 2 * 11 + 1


@pytest.mark.usefixtures("fast")
def test_removal_is_completed_by_another_run(lab: Lab) -> None:
    before = state_of(lab)
    point = 0
    ended = True
    while ended:
        point += 1
        do(lab, "tenant", **NEW)
        do(lab, "vm", name="app1", tenant="initech", pool="initech", memory="1G", state="started")
        do(lab, "vm", name="app2", tenant="initech", pool="initech", memory="1G")
        ended = run_until(lab, point, **GONE)
        if ended:
            do(lab, "tenant", **GONE)
        assert state_of(lab) == before, f"after point {point}"
        assert not do(lab, "tenant", **GONE)["changed"]
    # Before and after: a stop and the removal of two VMs, rights on two paths, token, user, group,
    # two roles, pool, tag.
    assert point == 2 * 12 + 1
