# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A VM that is moved between two requests, as when the HA manager takes it away, is followed by all
modules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.modules.estate_lab import Lab
from tests.modules.test_tenants import after_request, is_listing

BLANK: dict[str, Any] = {
    "disks": [{"size": 1, "storage": "ceph"}],
    "node": "pve1",
    "tenant": "acme",
}


def is_look(method: str, segments: tuple[Any, ...]) -> bool:
    """Return whether a request reads the VM itself."""
    return method == "GET" and segments[-1] in ("pending", "snapshot")


def to_pve3(lab: Lab, vmid: int) -> Callable[[], None]:
    return lambda: lab.simulator.steer(f"vms/{vmid}", {"node": "pve3"})


SNAPSHOTS: list[dict[str, Any]] = [{}, {"state": "rolled_back"}, {"state": "absent"}]


@pytest.mark.parametrize("moment", [is_listing, is_look])
@pytest.mark.parametrize("wanted", SNAPSHOTS, ids=str)
def test_by_snapshot(quiet: Lab, name: str, wanted: dict[str, Any], moment: Any) -> None:
    vm = quiet.vm(name=name, **BLANK)["vm"]
    if wanted:
        quiet.client.task(
            "POST", "nodes", "pve1", "qemu", vm["vmid"], "snapshot", data={"snapname": "s1"}
        )
    with after_request(quiet, moment, to_pve3(quiet, vm["vmid"])):
        result = quiet.run("snapshot", name=name, tenant="acme", snapshot="s1", **wanted)
    assert not result.get("failed"), result
    assert (result["changed"], result["vms"][0]["node"]) == (True, "pve3")
    there = {
        row["name"] for row in quiet.client.get("nodes", "pve3", "qemu", vm["vmid"], "snapshot")
    }
    assert ("s1" in there) is (wanted.get("state") != "absent")


@pytest.mark.parametrize(("module", "more"), [("vm_info", {"config": True}), ("snapshot_info", {})])
def test_by_what_reads(quiet: Lab, name: str, module: str, more: dict[str, Any]) -> None:
    vm = quiet.vm(name=name, **BLANK)["vm"]
    with after_request(quiet, is_listing, to_pve3(quiet, vm["vmid"])):
        result = quiet.run(module, name=name, **more)
    assert [(one["name"], one["node"]) for one in result["vms"]] == [(name, "pve3")]


@pytest.mark.parametrize("module", ["clone", "vm"])
def test_as_a_source(quiet: Lab, name: str, module: str) -> None:
    source = quiet.vm(
        name=f"{name[:20]}-t", state="template" if module == "vm" else "present", **BLANK
    )["vm"]
    with after_request(quiet, is_listing, to_pve3(quiet, source["vmid"])):
        result = quiet.run(module, name=name, tenant="acme", source=str(source["vmid"]))
    assert not result.get("failed"), result
    assert result["vm"]["cloned_from"] == source["vmid"]


def test_a_vm_that_is_gone_is_not_looked_for_for_ever(quiet: Lab, name: str) -> None:
    vm = quiet.vm(name=name, **BLANK)["vm"]
    with after_request(quiet, is_look, lambda: quiet.simulator.ask("DELETE", f"vms/{vm['vmid']}")):
        result = quiet.run("snapshot", name=name, tenant="acme", snapshot="s1")
    assert result["error"]["category"] == "NotFound", result
    assert name in result["msg"]
