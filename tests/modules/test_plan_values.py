# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Approved plans of any change of options: the run makes it, and a second apply changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests.cases import cases
from tests.modules.estate_lab import Lab
from tests.modules.test_estate_containers import items
from tests.modules.test_estate_info import export, options_of, put
from tests.unit.module_utils.estate.configs import Actual, machines
from tests.unit.module_utils.estate.container_strategies import containers
from tests.unit.module_utils.estate.test_promise import many

# What no run changes, and the devices, whose volumes must exist.
KEPT_OF_CONTAINERS = ("hostname", "tags", "rootfs", "unprivileged", "arch", "ostype", "features")
KEPT_OF_VMS = ("tags", "bios", "machine", "ostype", "efidisk0", "tpmstate0", "arch")
DEVICES = ("mp", "dev", "unused", "scsi", "sata", "virtio", "ide", "hostpci", "usb")
VMID = 701


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plans") / "plan.json"


def mixed(first: Mapping[str, str], second: Mapping[str, str], kept: tuple[str, ...]) -> Any:
    """Return the second configuration with the fixed options and devices of the first one."""

    def is_kept(key: str) -> bool:
        return key in kept or key.startswith(DEVICES)

    return {
        **{key: text for key, text in second.items() if not is_kept(key)},
        **{key: text for key, text in first.items() if is_kept(key)},
    }


def apply_twice(lab: Lab, place: Path, goal: dict[str, Any]) -> None:
    """Plan, apply and apply again; the values of some goals are refused in check mode."""
    place.unlink(missing_ok=True)
    planned = lab.run("vms", check=True, plan_file=str(place), **goal)
    if planned.get("failed"):
        return
    applied = lab.run("vms", apply_plan=str(place), **goal)
    assert not applied.get("failed"), applied["msg"]
    assert applied["changed"] == planned["changed"]
    lab.simulator.reset_log()
    again = lab.run("vms", apply_plan=str(place), **goal)
    assert not again.get("failed"), again["msg"]
    assert not again["changed"]
    assert lab.simulator.writes() == []


@many(cases(60, 6))
@given(first=containers(1), second=containers(1))
def test_any_change_of_a_container(
    cluster: Lab, place: Path, first: dict[int, dict[str, str]], second: dict[int, dict[str, str]]
) -> None:
    (vmid, start), (_other, goal) = *first.items(), *second.items()
    for config in (start, goal):
        config.pop("template", None)
    cluster.simulator.reset()
    body = {"node": "pve1", "running": False, "config": mixed(start, goal, KEPT_OF_CONTAINERS)}
    cluster.simulator.ask("POST", f"/containers/{vmid}", body)
    (wanted,) = items(export(cluster)).values()
    cluster.simulator.reset()
    cluster.simulator.ask("POST", f"/containers/{vmid}", {**body, "config": start})
    wanted = {key: value for key, value in wanted.items() if key not in ("state", "tenant_prefix")}
    apply_twice(cluster, place, {"vms": [], "containers": [wanted]})


@many(cases(60, 6))
@given(first=machines(VMID), second=machines(VMID))
def test_any_change_of_a_vm(cluster: Lab, place: Path, first: Actual, second: Actual) -> None:
    start, goal = (
        {key: text for key, text in one.target.items() if key not in ("lock", "template", "name")}
        for one in (first, second)
    )
    cluster.simulator.reset()
    put(cluster, VMID, mixed(start, goal, KEPT_OF_VMS))
    options = options_of(export(cluster)["estate"])
    options["vms"] = [vm for vm in options["vms"] if vm["vmid"] == VMID]
    cluster.simulator.reset()
    put(cluster, VMID, start)
    apply_twice(cluster, place, {**options, "containers": []})
