# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One VM of a name: also where a run was interrupted while PVE cloned, and where several runs make it at once."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.pve.fleet.plugins.module_utils._api.client import connect
from ansible_collections.pve.fleet.plugins.module_utils._core.errors import FleetError
from ansible_collections.pve.fleet.plugins.module_utils._core.result import Result
from ansible_collections.pve.fleet.plugins.module_utils._fleet.converge import run
from ansible_collections.pve.fleet.plugins.module_utils._spec.fleet import fleet_spec
from tests.modules.estate_lab import Lab, open_lab, run_at_once

BLANK: dict[str, Any] = {"disks": [{"size": 1, "storage": "ceph"}], "cores": 1, "memory": "256M"}


def named(lab: Lab, name: str) -> dict[int, str]:
    """Return the VMs of that name with their tags, as the nodes themselves say."""
    rows = [row for node in ("pve1", "pve2", "pve3") for row in lab.client.get("nodes", node, "qemu")]
    return {row["vmid"]: row.get("tags", "") for row in rows if row.get("name") == name}


@pytest.mark.parametrize("state", ["present", "started"])
@pytest.mark.parametrize("full", [False, True], ids=["linked", "full"])
@pytest.mark.parametrize("module", ["vm", "clone"])
def test_a_clone_that_is_still_made_is_gone_on_with(module: str, full: bool, state: str) -> None:
    with open_lab("--lag-s", "8", "--task-ms", "default=20,qmclone=3000") as lab:
        wish: dict[str, Any] = {
            "name": "web1",
            "tenant": "acme",
            "source": "debian-13",
            "full": full,
            "cores": 3,
            "state": state,
        }
        first = lab.run(module, task_timeout=1, **wish)
        assert first["error"]["category"] == "TaskTimeout"
        made = lab.run(module, **wish)
        assert not made.get("failed"), made
        assert made["vm"]["vmid"] == 10000
        assert set(named(lab, "web1")) == {10000}
        assert lab.status(made["vm"]) == ("running" if state == "started" else "stopped")
        assert made["vm"]["config"]["cores"] == 3
        assert not lab.run(module, **wish)["changed"]
        volumes = lab.client.get("nodes", "pve1", "storage", "ceph", "content")
        assert {row["vmid"] for row in volumes} <= {9000, 9001, 10000}


def test_a_clone_of_another_name_or_tenant_is_none_of_ours() -> None:
    with open_lab("--lag-s", "8", "--task-ms", "default=20,qmclone=5000") as lab:
        others: list[dict[str, Any]] = [
            {"name": "web2", "tenant": "acme"},
            {"name": "web1", "tenant": "globex"},
            {"name": "web1"},
        ]
        for other in others:
            assert lab.run("vm", task_timeout=1, source="debian-13", **other)["failed"]
        made = lab.vm(name="web1", tenant="acme", source="debian-13")["vm"]
        assert made["vmid"] == 10003
        assert set(named(lab, "web1")) == {10001, 10002, 10003}


@pytest.mark.parametrize("what", [BLANK, {"source": "debian-13"}], ids=["created", "cloned"])
def test_runs_that_make_one_vm_at_the_same_moment_make_one(what: dict[str, Any]) -> None:
    with open_lab("--lag-s", "8", "--latency-ms", "5") as lab:
        results = run_at_once(lab, [{"name": "web1", "tenant": "acme", "description": "one", **what}] * 3)
        assert not [result for result in results if isinstance(result, FleetError)], results
        assert set(named(lab, "web1")) == {10000}
        assert {result["vm"]["vmid"] for result in results if isinstance(result, dict)} == {10000}
        config = lab.client.get("nodes", *next(iter(where(lab, 10000))), "config")
        assert config["description"].startswith("one")


@pytest.mark.parametrize("what", [BLANK, {"source": "debian-13"}], ids=["created", "cloned"])
def test_lists_that_overlap_make_each_vm_once(what: dict[str, Any]) -> None:
    """The runs plan other numbers for a VM, so that they do not meet at one as runs for a single VM do."""
    with open_lab("--lag-s", "8", "--task-ms", "default=10,qmclone=200,qmcreate=100") as lab:
        lists = [[{"name": f"web{number}"} for number in range(first, first + 6)] for first in (0, 3, 4)]
        wish = {"tenant": "acme", "state": "started", **what}

        def one(vms: list[dict[str, str]]) -> Result:
            params = ArgumentSpecValidator(fleet_spec()).validate({**wish, "vms": vms}).validated_parameters
            with connect(lab.connection, {}) as client:
                return run(params, client)

        with ThreadPoolExecutor(len(lists)) as pool:
            results = list(pool.map(one, lists))
        assert [result.failure for result in results] == [None] * len(lists)
        for number in range(10):
            assert len(named(lab, f"web{number}")) == 1, number
        numbers = [{vm["name"]: vm["vmid"] for vm in result.values["vms"]} for result in results]
        for mine, other in itertools.combinations(numbers, 2):
            assert all(mine[name] == other[name] for name in mine.keys() & other.keys())


def where(lab: Lab, vmid: int) -> list[tuple[str, str, int]]:
    rows = lab.client.get("cluster", "resources", type="vm")
    return [(row["node"], "qemu", vmid) for row in rows if row["vmid"] == vmid]
