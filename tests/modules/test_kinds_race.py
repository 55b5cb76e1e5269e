# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs that create VMs and containers of one tenant at the same time: one name, one quota."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import connect
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import FleetError
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.container import (
    container_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.vm import vm_spec
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.container.run import (
    run as of_container,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.run import run as of_vm
from tests.modules.estate_lab import Lab, open_lab

WORK = {"vm": (of_vm, vm_spec()), "container": (of_container, container_spec())}
SHARED = {"tenant": "acme", "cores": 1, "memory": "1G"}
OPTIONS: dict[str, dict[str, Any]] = {
    "vm": {**SHARED, "disks": [{"size": 3, "storage": "ceph"}]},
    "container": {
        **SHARED,
        "source": "debian-13-standard",
        "rootfs": {"size": "3G", "storage": "ceph"},
    },
}
Task = tuple[str, dict[str, Any]]


@pytest.fixture(scope="module")
def slow() -> Iterator[Lab]:
    """A cluster whose listing shows neither the name nor the figures of a new guest."""
    with open_lab("--lag-s", "8", "--latency-ms", "5", "--auth-delay-s", "0") as lab:
        yield lab


@pytest.fixture
def busy(slow: Lab) -> Lab:
    slow.simulator.reset()
    return slow


def run_at_once(lab: Lab, tasks: list[Task]) -> list[dict[str, Any] | FleetError]:
    """Run all tasks at the same time, and return their results and failures."""
    gate = threading.Barrier(len(tasks))

    def one(task: Task) -> dict[str, Any] | FleetError:
        kind, options = task
        run, spec = WORK[kind]
        defaults = {name: option.get("default") for name, option in spec.items()}
        with connect(lab.connection, {}) as client:
            gate.wait(300)
            try:
                return dict(run({**defaults, **OPTIONS[kind], **options}, client).values)
            except FleetError as error:
                return error

    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(one, tasks))


def guests(lab: Lab, tenant: str = "acme") -> dict[int, tuple[str, str]]:
    """Return kind and name of each guest of a tenant by VMID, from the nodes themselves."""
    found: dict[int, tuple[str, str]] = {}
    for node in ("pve1", "pve2", "pve3"):
        for kind in ("qemu", "lxc"):
            for row in lab.client.get("nodes", node, kind):
                if f"tenant_{tenant}" in str(row.get("tags", "")).split(";"):
                    found[int(row["vmid"])] = (kind, row["name"])
    return found


@pytest.mark.parametrize("numbers", [(801, 802), (802, 801)], ids=str)
@pytest.mark.parametrize("more", [{}, {"state": "started"}], ids=str)
def test_two_kinds_of_one_name_at_once(
    busy: Lab, numbers: tuple[int, int], more: dict[str, Any]
) -> None:
    tasks: list[Task] = [
        (kind, {"name": "both", "vmid": number, **more})
        for kind, number in zip(("vm", "container"), numbers, strict=True)
    ]
    results = run_at_once(busy, tasks)
    failed = [result for result in results if isinstance(result, FleetError)]
    assert [error.reason for error in failed] == ["name taken"], results
    assert "of that name" in failed[0].message or "has that name" in failed[0].message
    assert [name for _kind, name in guests(busy).values()] == ["both"]


@pytest.mark.parametrize("own", ["vm", "container"])
@pytest.mark.parametrize("number", [790, 810])
def test_guest_of_another_run_that_is_finished_stays(busy: Lab, own: str, number: int) -> None:
    """Another run creates one between the look and the request, and is done with it first."""
    other = {"vm": ("containers", "hostname"), "container": ("vms", "name")}[own]
    body = {"node": "pve2", "config": {other[1]: "both", "tags": "tenant_acme"}}
    path = {"vm": "/qemu$", "container": "/lxc$"}[own]
    steer = [["POST", f"/{other[0]}/{number}", body]]
    busy.simulator.fault(method="POST", path=path, steer=steer)
    (result,) = run_at_once(busy, [(own, {"name": "both", "vmid": 800})])
    assert isinstance(result, FleetError), result
    assert result.reason == "name taken"
    assert result.details["removed"] == 800
    assert f"{number} on node pve2" in result.message
    assert list(guests(busy)) == [number]
    volumes = busy.client.get("nodes", "pve1", "storage", "ceph", "content")
    assert 800 not in {row.get("vmid") for row in volumes}


def test_name_of_another_tenant_is_free(busy: Lab) -> None:
    body = {"node": "pve2", "config": {"hostname": "both", "tags": "tenant_globex"}}
    steer = [["POST", "/containers/810", body]]
    busy.simulator.fault(method="POST", path="/qemu$", steer=steer)
    (result,) = run_at_once(busy, [("vm", {"name": "both", "vmid": 800})])
    assert isinstance(result, dict), result
    assert list(guests(busy)) == [800]
    assert list(guests(busy, "globex")) == [810]


@pytest.mark.parametrize(
    ("kind", "room"), [("vms", 2), ("cores", 2), ("memory", "2G"), ("disk", "7G")]
)
def test_kinds_that_together_exceed_a_quota_end_within_it(busy: Lab, kind: str, room: Any) -> None:
    """Three runs of each kind, and room for two guests."""
    tasks: list[Task] = [
        (("vm", "container")[index % 2], {"name": f"guest-{index}", "quota": {kind: room}})
        for index in range(6)
    ]
    results = run_at_once(busy, tasks)
    failed = [result for result in results if isinstance(result, FleetError)]
    there = guests(busy)
    assert 1 <= len(there) <= 2
    assert len(there) == len(tasks) - len(failed)
    assert {error.category for error in failed} == {"QuotaExceeded"}
    assert all(error.details["quota"].keys() == {kind} for error in failed)
    volumes = busy.client.get("nodes", "pve1", "storage", "ceph", "content")
    owners = {row["vmid"] for row in volumes if row.get("vmid")}
    assert owners <= {9000, 9001, *there}
