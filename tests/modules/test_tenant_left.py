# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removal of a tenant that has VMs which its plan does not have: it says so, and touches none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import FleetError
from tests.cases import repeated, strides
from tests.modules.access_lab import do, limited
from tests.modules.estate_lab import Lab, open_lab
from tests.modules.tenant_lab import RIGHTS, made, run_around, run_with, state_of

GONE: dict[str, Any] = {"name": "initech", "state": "absent", "confirm": "initech"}
OWN: dict[str, Any] = {"tenant": "initech", "pool": "initech"}
CLONED: dict[str, Any] = {**OWN, "name": "app1", "source": "debian-13"}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    """The demo cluster as it is at the start."""
    return unused


@pytest.fixture
def slow() -> Iterator[Lab]:
    """The demo cluster, in which a clone takes seconds."""
    with open_lab(
        "--lag-s", "0", "--auth-delay-s", "0", "--task-ms", "default=20,qmclone=4000"
    ) as lab:
        yield lab


def machines(lab: Lab) -> dict[str, str | None]:
    """Return the pool of each VM by its name, without templates."""
    rows = lab.client.get("cluster", "resources", type="vm")
    return {row["name"]: row.get("pool") for row in rows if not row.get("template")}


@pytest.mark.parametrize("pool", ["initech", None], ids=["in its pool", "in no pool"])
def test_vm_created_during_a_removal_is_reported_and_not_orphaned(
    lab: Lab, pool: str | None
) -> None:
    made(lab, "initech")
    do(lab, "vm", name="app1", memory="1G", **OWN)

    late: dict[str, Any] = {}

    def another() -> None:
        result = do(lab, "vm", name="late", memory="1G", tenant="initech", pool=pool)
        late.update(result["vm"])

    came, _more = run_around(lab, 2, another, **GONE)
    assert isinstance(came, FleetError)
    assert came.category == "Conflict"
    assert "was not removed completely" in came.message
    assert str(late["vmid"]) in came.message
    assert came.details["done"][0].startswith("Remove VM 'app1'")
    assert machines(lab) == {"late": pool}
    if pool:
        do(lab, "tenant", **GONE)
    else:
        do(lab, "tenant", **GONE, strays="remove")
    assert machines(lab) == {}


def test_vm_that_the_login_may_not_see_stops_the_removal_before_any_write(lab: Lab) -> None:
    made(lab, "initech")
    vm = do(lab, "vm", name="app1", memory="1G", **OWN)["vm"]
    login = limited(lab, "admin", {"/": "Administrator", f"/vms/{vm['vmid']}": "NoAccess"})
    before = state_of(lab)
    for check in (True, False):
        lab.simulator.reset_log()
        result = lab.run("tenant", check=check, **{**GONE, **login})
        assert result["failed"]
        assert f"VM or container {vm['vmid']} is in pool 'initech'" in result["msg"]
        assert "was not removed: these guests" in result["msg"]
        assert lab.simulator.writes() == []
    assert state_of(lab) == before


@pytest.mark.parametrize("stride", strides(7))
def test_vm_removed_by_another_run_after_any_request_is_not_a_stray(lab: Lab, stride: int) -> None:
    """Proxmox VE takes a VM out of its pool when it removes it (qemu-server: PVE/API2/Qemu.pm,
    destroy_vm), so an answer from before names a VM that a later one lacks.
    """
    number, more = 1 - stride, True
    while more:
        number += stride
        do(lab, "tenant", name="initech")
        vm = do(lab, "vm", name="app1", memory="1G", **OWN)["vm"]
        absent: dict[str, Any] = {"name": "app1", "state": "absent", "tenant": "initech"}
        more = run_with(lab, number, partial(do, lab, "vm", **absent), **GONE)
        assert machines(lab) == {}, (number, vm["vmid"])
        assert not do(lab, "tenant", **GONE)["changed"]
    assert number > 10


@pytest.mark.parametrize("strays", repeated(["stop", "keep", "remove"]))
def test_clone_that_still_runs_is_a_stray(slow: Lab, strays: str) -> None:
    """Proxmox VE gives a clone its pool at the end of its task, and the run its tags behind that
    (qemu-server: PVE/API2/Qemu.pm, clone_vm).
    """
    login = made(slow, "initech")
    assert slow.run("vm", **login, **CLONED, task_timeout=1)["failed"]
    result = slow.run("tenant", **GONE, strays=strays)
    if strays == "stop":
        assert "is unfinished, and will be its VM" in result["msg"]
        time.sleep(4)
        assert machines(slow) == {"app1": "initech"}
        return
    assert not result.get("failed"), result
    time.sleep(4)
    if strays == "keep":
        assert "is unfinished" in " ".join(result["warnings"])
        assert set(machines(slow)) == {"app1"}
    else:
        assert machines(slow) == {}


def test_pool_of_two_tenants_stays_with_the_rights_of_the_other(lab: Lab) -> None:
    do(lab, "tenant", name="hooli", **RIGHTS, pool="shared")
    before = state_of(lab)
    do(lab, "tenant", name="initech", **RIGHTS, pool="shared")
    do(lab, "vm", name="app1", memory="1G", tenant="initech", pool="shared")
    foreseen = do(lab, "tenant", check=True, **GONE, pool="shared")
    result = do(lab, "tenant", **GONE, pool="shared")
    assert result["done"] == result["plan"] == foreseen["plan"]
    assert result["warnings"] == ["Pool 'shared' was not created for tenant 'initech' and is kept"]
    assert state_of(lab) == before
    do(lab, "tenant", name="hooli", state="absent", confirm="hooli", pool="shared")
    assert "shared" not in {row["poolid"] for row in lab.client.get("pools")}
