# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""VMs of a node that is down or does not answer, when the listing has lost their statistics.

pmxcfs keeps those for five minutes (pve-cluster: status.c, cfs_rrd_dump). Then the listing has a VM
with node, tags, pool and lock, and without name, figures and template flag (pve-manager:
API2Tools.pm, extract_vm_stats).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.modules.estate_lab import Lab, first_number, open_lab
from tests.modules.test_same_vm import BLANK, listed_names, named

NODE = "pve2"
WEB: dict[str, Any] = {"name": "web1", "tenant": "acme", **BLANK}
NUMBER = first_number("web1", "acme")
DOWN = ["offline", "silent"]


@pytest.fixture(params=DOWN)
def silent(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A lab with acme's VM web1 on a node that has stopped to answer, and no name in the listing.

    On the node are a VM of globex and one without a tenant too.
    """
    with open_lab("--lag-s", "3000", "--proxy-delay-s", "0.05") as lab:
        assert lab.vm(**WEB, node=NODE)["vm"]["vmid"] == NUMBER
        lab.vm(**{**WEB, "name": "other", "tenant": "globex"}, node=NODE)
        lab.vm(name="nobodys", node=NODE, **BLANK)
        assert listed_names(lab)[NUMBER] == ""
        if request.param == "offline":
            lab.simulator.steer(f"/nodes/{NODE}", {"online": False})
        else:
            lab.simulator.fault(method="GET", path=f"^/nodes/{NODE}/", status=596, times=None)
        lab.simulator.reset_log()
        yield lab


def play(lab: Lab, module: str, **options: Any) -> dict[str, Any]:
    """Return what a module says; module vms gets the options as a list of one VM."""
    if module == "vms":
        return lab.run("vms", vms=[options], retries=1)
    return lab.run(module, **options, retries=1)


@pytest.mark.parametrize("state", ["present", "absent"])
@pytest.mark.parametrize("module", ["vm", "vms"])
def test_a_vm_that_may_be_there_is_not_missing(silent: Lab, module: str, state: str) -> None:
    result = play(silent, module, **WEB, state=state)
    assert result["failed"], result
    error = (result["vms"][0] if module == "vms" else result)["error"]
    assert (error["category"], error["vmids"]) == ("NodeUnhealthy", [NUMBER])
    assert f"it may be VM {NUMBER} on {NODE}" in result["msg"]
    assert silent.simulator.writes() == []


def test_a_clone_that_may_be_there_is_not_made_again(silent: Lab) -> None:
    result = play(silent, "clone", name="web1", tenant="acme", source="debian-13")
    assert result["error"]["category"] == "NodeUnhealthy"
    assert silent.simulator.writes() == []


def test_an_excluded_guest_that_may_be_there_is_not_just_unknown(silent: Lab) -> None:
    options = {"state": "stopped", "tenants": ["acme"], "exclude": ["web1"]}
    result = play(silent, "power", **options)
    assert result["error"]["category"] == "NodeUnhealthy", result["msg"]
    assert f"one of VMs {NUMBER}" in result["msg"]
    assert silent.simulator.writes() == []


def test_a_source_that_may_be_there_is_not_just_unknown(silent: Lab) -> None:
    result = play(silent, "clone", name="web2", tenant="initech", source="golden")
    assert result["error"]["reason"] == "template missing"
    assert f"VMs on {NODE} cannot be read while the node does not answer" in result["msg"]
    assert silent.simulator.writes() == []


@pytest.mark.parametrize(
    ("module", "options"),
    [("vm_info", {}), ("snapshot", {"snapshot": "s1"}), ("snapshot_info", {})],
    ids=["vm_info", "snapshot", "snapshot_info"],
)
def test_a_vm_that_may_be_there_is_not_unknown(
    silent: Lab, module: str, options: dict[str, Any]
) -> None:
    result = play(silent, module, name="web1", tenant="acme", **options)
    assert result["failed"], result
    assert f"it may be VM {NUMBER} on {NODE}" in result["msg"]
    assert play(silent, "vm_info", name="web1", tenant="initech")["vms"] == []


def test_nothing_is_pruned_beside_a_vm_that_may_be_there(silent: Lab) -> None:
    result = silent.run("vms", tenant="acme", prune=True, vms=[WEB], retries=1)
    assert result["failed"]
    assert silent.simulator.writes() == []


def test_vms_that_it_cannot_be_do_not_stop_a_new_one(silent: Lab) -> None:
    made = play(silent, "vm", **{**WEB, "tenant": "initech"})
    assert not made.get("failed"), made
    by_number = play(silent, "vm", name="new", vmid=5001, **BLANK)
    assert not by_number.get("failed"), by_number
    adopting = play(silent, "vm", **{**WEB, "name": "new2", "tenant": "initech", "adopt": True})
    assert adopting["error"]["category"] == "NodeUnhealthy"


@pytest.mark.parametrize("kind", ["memory", "cores", "disk"])
def test_a_quota_is_not_exceeded_beside_a_vm_that_cannot_be_read(silent: Lab, kind: str) -> None:
    new = {**BLANK, "name": "new", "vmid": 5001, "tenant": "acme"}
    result = play(silent, "vm", **new, quota={kind: 1 << 24})
    assert result["failed"], result
    assert (result["error"]["category"], result["error"]["vmids"]) == ("NodeUnhealthy", [NUMBER])
    assert "The quota of tenant acme could not be checked" in result["msg"]
    assert f"VMs on {NODE} cannot be read while the node does not answer: {NUMBER}" in result["msg"]
    assert silent.simulator.writes() == []


def test_a_quota_of_vms_counts_those_that_cannot_be_read(silent: Lab) -> None:
    new = {**BLANK, "name": "new", "vmid": 5001, "tenant": "acme"}
    refused = play(silent, "vm", **new, quota={"vms": 1})
    assert refused["error"]["category"] == "QuotaExceeded"
    made = play(silent, "vm", **new, quota={"vms": 2})
    assert not made.get("failed"), made


def test_the_vm_is_found_when_its_node_is_back(silent: Lab) -> None:
    silent.simulator.steer(f"/nodes/{NODE}", {"online": True})
    silent.simulator.clear_faults()
    assert not silent.vm(**WEB)["changed"]
    assert set(named(silent, "web1")) == {NUMBER}
