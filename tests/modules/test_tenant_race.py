# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two runs of module tenant at once: a whole run between any two steps of another one."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import FleetError
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.result import Result
from ansible_collections.pve.fleet.plugins.module_utils._tenants.tenant.run import run
from tests.cases import repeated, strides
from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab
from tests.modules.tenant_lab import login_of, options_of, run_around, state_of

# The tag of such a tenant is registered: the options of the cluster are written as a whole.
SMALL: dict[str, Any] = {"operations": ["operate"], "nodes": ["pve1"]}
NEW: dict[str, Any] = {"name": "initech", **SMALL}
ROTATED: dict[str, Any] = {"name": "initech", "state": "rotated"}
GONE: dict[str, Any] = {"name": "initech", "state": "absent", "confirm": "initech"}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def works(lab: Lab, file: Path) -> bool:
    """Return whether the login in a file sees the pool of the tenant."""
    result = lab.run("pool_info", **login_of(file))
    return [row["name"] for row in result.get("pools", [])] == ["initech"]


def tokens(lab: Lab, name: str = "initech") -> set[str]:
    rows = lab.client.get("access", "users", f"tenant_{name}@pve", "token")
    return {str(row["tokenid"]) for row in rows}


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("stride", strides(3))
@pytest.mark.parametrize("same_file", [True, False], ids=["one file", "two files"])
def test_same_tenant_created_by_another_run_at_any_point(
    lab: Lab, tmp_path: Path, same_file: bool, stride: int
) -> None:
    before = state_of(lab)
    point, more, lost = 1 - stride, True, 0
    while more:
        point += stride
        mine = tmp_path / f"{point}.yml"
        theirs = mine if same_file else tmp_path / f"{point}-other.yml"
        other: list[dict[str, Any]] = []
        another = partial(run_into, lab, other, **NEW, credentials_file=str(theirs))
        came, more = run_around(lab, point, another, **NEW, credentials_file=str(mine))
        (written,) = [file for file in dict.fromkeys([mine, theirs]) if file.exists()]
        assert works(lab, written), f"at point {point}"
        assert tokens(lab) == {"fleet"}
        for message in failures(came, other):
            lost += 1
            assert "returns a secret only once" in message
            assert "state=rotated" in message
        if more and not same_file:
            assert failures(came, other), "the run that got no login must say so"
        assert not do(lab, "tenant", **NEW, credentials_file=str(written))["changed"]
        do(lab, "tenant", **GONE)
        assert state_of(lab) == before, f"at point {point}"
    assert point > 10
    assert lost >= 2


def run_into(lab: Lab, seen: list[dict[str, Any]], **options: Any) -> None:
    """Run module tenant, and keep what came of it."""
    seen.append(lab.run("tenant", **options))


def failures(came: Result | FleetError, other: list[dict[str, Any]]) -> list[str]:
    """Return the messages of the runs that failed, one at most."""
    found = [came.message] if isinstance(came, FleetError) else []
    found += [row["msg"] for row in other if row.get("failed")]
    assert len(found) <= 1, found
    return found


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("stride", strides(7))
def test_another_tenant_created_by_another_run_at_any_point(
    lab: Lab, tmp_path: Path, stride: int
) -> None:
    """Without registered tags: they are one option, see test_many_runs_at_once."""
    before = state_of(lab)
    point, more = 1 - stride, True
    while more:
        point += stride
        files = [tmp_path / f"{point}-{name}.yml" for name in ("initech", "hooli")]
        other: list[dict[str, Any]] = []
        new = {**NEW, "registered_tag": False}
        hooli = {**new, "name": "hooli", "credentials_file": str(files[1])}
        another = partial(run_into, lab, other, **hooli)
        came, more = run_around(lab, point, another, **new, credentials_file=str(files[0]))
        if not more:
            run_into(lab, other, **hooli)
        assert failures(came, other) == []
        assert works(lab, files[0])
        assert login_of(files[1])
        gone: dict[str, Any] = {"name": "hooli", "state": "absent", "confirm": "hooli"}
        came, _more = run_around(lab, point, partial(run_into, lab, other, **gone), **GONE)
        do(lab, "tenant", **gone)
        assert failures(came, other) == []
        assert state_of(lab) == before, f"at point {point}"


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize(
    "same_file", repeated([pytest.param(False, id="two files"), pytest.param(True, id="one file")])
)
def test_rotation_during_another_one(lab: Lab, tmp_path: Path, same_file: bool) -> None:
    """A run that ends well leaves a login that works, and the next rotation always ends well.

    The other run began later: it may take over from this one, which fails then.
    """
    point, more = 0, True
    while more:
        point += 1
        mine = tmp_path / f"{point}.yml"
        theirs = mine if same_file else tmp_path / f"{point}-other.yml"
        lab.simulator.reset()
        do(lab, "tenant", **NEW, credentials_file=str(mine))
        other: list[dict[str, Any]] = []
        another = partial(run_into, lab, other, **ROTATED, credentials_file=str(theirs))
        came, more = run_around(lab, point, another, **ROTATED, credentials_file=str(mine))
        if isinstance(came, Result):
            assert works(lab, mine), f"at point {point}: {other}"
        else:
            assert came.category in ("Conflict", "AuthenticationError")
            assert point == 1 or came.details["done"]
        do(lab, "tenant", **ROTATED, credentials_file=str(theirs))
        assert works(lab, theirs), f"at point {point}"
        assert len(tokens(lab)) == 1
    assert point > 6


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("stride", strides(7))
def test_removal_during_a_creation(lab: Lab, stride: int) -> None:
    before = state_of(lab)
    point, more = 1 - stride, True
    while more:
        point += stride
        other: list[dict[str, Any]] = []
        came, more = run_around(lab, point, partial(run_into, lab, other, **GONE), **NEW)
        if isinstance(came, FleetError) and point > 1:
            assert came.details["done"], came.message
        do(lab, "tenant", **NEW)
        do(lab, "tenant", **GONE)
        assert state_of(lab) == before, f"at point {point}"


@pytest.mark.long
@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("state", ["absent", "rotated"])
def test_removal_during_a_removal_or_rotation(lab: Lab, tmp_path: Path, state: str) -> None:
    before = state_of(lab)
    point, more = 0, True
    while more:
        point += 1
        file = str(tmp_path / f"{point}.yml")
        do(lab, "tenant", **NEW, credentials_file=file)
        do(lab, "vm", name="app1", tenant="initech", pool="initech", memory="1G")
        options = GONE if state == "absent" else {**ROTATED, "credentials_file": file}
        other: list[dict[str, Any]] = []
        came, more = run_around(lab, point, partial(run_into, lab, other, **GONE), **options)
        assert failures(came, other)[1:] == []
        assert [row["msg"] for row in other if row.get("failed")] == []
        if isinstance(came, FleetError):
            assert came.category != "InternalError", came.message
        do(lab, "tenant", **GONE)
        assert state_of(lab) == before, f"at point {point}"


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("stride", strides(7))
def test_group_that_vanishes_at_any_point(lab: Lab, stride: int) -> None:
    """Proxmox VE refuses to put a user into a group that is gone, or to give it a right."""
    new = {**NEW, "group": "initech", "members": ["ops@pve"]}
    gone = {**GONE, "group": "initech"}
    before = state_of(lab)
    point, more = 1 - stride, True
    refused: list[int] = []
    while more:
        point += stride

        def vanish() -> None:
            with contextlib.suppress(FleetError):
                lab.client.write("DELETE", "access", "groups", "initech")

        came, more = run_around(lab, point, vanish, **new)
        if isinstance(came, FleetError):
            refused.append(point)
            assert came.details["done"]
        do(lab, "tenant", **new)
        assert "initech" in lab.client.get("access", "users", "ops@pve")["groups"]
        do(lab, "tenant", **gone)
        assert state_of(lab) == before, f"at point {point}"
    # From its creation until the last right of it was read back.
    assert refused == [number for number in range(1, 17, stride) if number >= 4]


def test_many_runs_at_once(lab: Lab) -> None:
    """Two runs for each of three tenants, whose tags all go into one option of the cluster."""
    before = state_of(lab)
    names = ["initech", "hooli", "umbrella"] * 2
    gate = threading.Barrier(len(names))

    def one(name: str) -> Result | FleetError:
        gate.wait(300)
        with Client(lab.client.connection) as client:
            try:
                return run(options_of(**{**NEW, "name": name}), client)
            except FleetError as error:
                return error

    with ThreadPoolExecutor(len(names)) as pool:
        outcomes = list(pool.map(one, names))
    for name in set(names):
        mine = [came for of, came in zip(names, outcomes, strict=True) if of == name]
        logins = [came for came in mine if isinstance(came, Result) and came.values["credentials"]]
        assert len(logins) == 1, mine
        assert tokens(lab, name) == {"fleet"}
    registered = lab.client.get("cluster", "options")["registered-tags"]
    assert set(registered) == {f"tenant_{name}" for name in names}
    for name in set(names):
        do(lab, "tenant", name=name, state="absent", confirm=name)
    assert state_of(lab) == before
