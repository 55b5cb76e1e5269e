# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes of HA resources: by groups before Proxmox VE 9, by rules since then.

Source: pve-ha-manager, PVE/HA/Manager.pm (get_service_group, get_node_priority_groups and
select_service_node of version 4; PVE/HA/Rules/NodeAffinity.pm of version 5).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.labs.maintenance import NODE, evacuate, places, put_vm
from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab

pytestmark = pytest.mark.usefixtures("fast")

VERSIONS = ["8", "9"]
BALANCE: dict[str, Any] = {"threshold": 0}


@pytest.fixture(params=VERSIONS)
def lab(request: pytest.FixtureRequest) -> Lab:
    """A cluster of each version, with two large VMs on a node that others do not use."""
    found: Lab = request.getfixturevalue("old" if request.param == "8" else "unused")
    for vmid in (301, 302):
        disk = {"scsi0": f"ceph:vm-{vmid}-disk-0,size=4G"}
        put_vm(found, vmid, {"memory": "8192", **disk})
    return found


def bind(lab: Lab, nodes: str, *, strict: bool = False, failback: bool = True) -> None:
    """Bind both VMs to nodes: by a group, or by a rule."""
    write, base = lab.client.write, ("cluster", "ha")
    resource: dict[str, Any] = {}
    if lab.client.version() < (9, 0):
        data = {"group": "home", "nodes": nodes, "restricted": int(strict)}
        write("POST", *base, "groups", data={**data, "nofailback": int(not failback)})
        resource = {"group": "home"}
    elif not failback:
        resource = {"failback": 0}
    for vmid in (301, 302):
        write("POST", *base, "resources", data={"sid": f"vm:{vmid}", **resource})
    if lab.client.version() >= (9, 0):
        rule = {"rule": "home", "type": "node-affinity", "nodes": nodes, "strict": int(strict)}
        write("POST", *base, "rules", data={**rule, "resources": "vm:301,vm:302"})


def targets(lab: Lab, module: str, **options: Any) -> set[str]:
    """Return the targets of both VMs in the preview of a move."""
    result = lab.run(module, check=True, **options)
    assert not result.get("failed"), result["msg"]
    rows = result[module]["guests" if module == "evacuation" else "moves"]
    return {row["target"] for row in rows if row["vmid"] in (301, 302)}


def test_the_only_other_node_of_a_strict_place(lab: Lab) -> None:
    bind(lab, f"{NODE},pve3", strict=True)
    assert targets(lab, "rebalance", **BALANCE) == {"pve3"}
    bound: dict[str, Any] = {"node": NODE, "unmovable": "leave"}
    result = evacuate(lab, check=True, **bound)
    assert {row["target"] for row in result["evacuation"]["guests"]} == {"pve3"}
    evacuate(lab, **bound)
    assert {places(lab)[vmid][0] for vmid in (301, 302)} == {"pve3"}


def test_a_place_that_the_guests_cannot_leave(lab: Lab) -> None:
    bind(lab, NODE, strict=True)
    assert targets(lab, "rebalance", **BALANCE) == set()
    result = evacuate(lab, check=True)
    assert "the HA manager would return it at once: home prefers node pve2" in result["msg"]


@pytest.mark.parametrize("failback", [True, False])
def test_a_preferred_node(lab: Lab, failback: bool) -> None:
    """With failback, the manager returns a resource to the nodes of the highest priority."""
    bind(lab, f"{NODE}:2,pve3:1", failback=failback)
    result = evacuate(lab, check=True)
    assert bool(result.get("failed")) is failback
    assert bool(targets(lab, "rebalance", **BALANCE)) is not failback
    if failback:
        assert "home prefers node pve2" in result["msg"]


def test_the_manager_moves_the_guests_to_a_node_of_their_place(lab: Lab) -> None:
    bind(lab, f"{NODE},pve3", strict=True)
    do(lab, "evacuation", node=NODE, state="recorded", ha_maintenance=True)
    lab.simulator.steer(f"/nodes/{NODE}", {"maintenance": True})
    do(lab, "evacuation", node=NODE, ha_maintenance=True, wait_timeout=5)
    assert {places(lab)[vmid][0] for vmid in (301, 302)} == {"pve3"}


def test_the_export_has_the_place(lab: Lab) -> None:
    bind(lab, f"{NODE}:2,pve3", strict=True)
    sections = ["ha_groups", "ha_rules", "ha_resources"]
    exported = lab.run("cluster_export_info", sections=sections)["cluster"]
    key = "cluster_ha_groups" if lab.client.version() < (9, 0) else "cluster_ha_rules"
    (place,) = exported[key]
    assert sorted(place["nodes"]) == [f"{NODE}:2", "pve3"]
    options = {name.removeprefix("cluster_"): value for name, value in exported.items()}
    assert not do(lab, "cluster", **{name: options[name] for name in options if name in sections})[
        "changed"
    ]
