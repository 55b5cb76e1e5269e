# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""HA rules onto nodes that cannot run a guest of the rule.

PVE accepts them. Source: pve-ha-manager, PVE/HA/Manager.pm: after max_relocate failed starts,
next_state_started puts the resource into state error.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import do
from tests.modules.container_lab import add_container
from tests.modules.estate_lab import Lab
from tests.modules.table_lab import refused
from tests.modules.test_hardware_of_nodes import DEVICE, map_device, vm

PLACE: dict[str, Any] = {"name": "place", "type": "node-affinity"}
AVOID: dict[str, Any] = {**PLACE, "affinity": "negative"}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def managed(lab: Lab, options: dict[str, str], name: str = "gpu1", **more: Any) -> str:
    """Return the ID of a stopped VM under the HA manager."""
    sid = f"vm:{vm(lab, options, name=name, **more)['vmid']}"
    do(lab, "ha_resource", sid=sid, request_state="stopped")
    return sid


@DEVICE
@pytest.mark.parametrize("strict", [True, False])
def test_a_rule_onto_nodes_without_the_device_is_refused(lab: Lab, kind: str, strict: bool) -> None:
    sid = managed(lab, map_device(lab, kind, "pve2"))
    rule = {**PLACE, "resources": [sid], "strict": strict}
    for nodes in (["pve1"], ["pve1:2", "pve3"]):
        found = refused(lab, "ha_rule", **rule, nodes=nodes)
        assert f"no node of the rule can run {sid}" in found["msg"]
        assert "is not there" in found["msg"]
        assert found["error"]["reason"] == "unable nodes"
    made = do(lab, "ha_rule", **rule, nodes=["pve1", "pve2"])
    (warning,) = made["warnings"]
    assert f"cannot run {sid} on every node of the rule (pve1: mapped device" in warning
    assert not do(lab, "ha_rule", **rule, nodes=["pve1", "pve2"])["changed"]
    found = refused(lab, "ha_rule", name="place", nodes=["pve3"])
    assert f"no node of the rule can run {sid}" in found["msg"]
    assert not do(lab, "ha_rule", name="place", nodes=["pve2"])["warnings"]
    assert do(lab, "ha_rule", name="place", comment="gpu")["changed"]


def test_a_rule_away_from_the_only_node_is_refused(lab: Lab) -> None:
    sid = managed(lab, map_device(lab, "pci", "pve2"))
    found = refused(lab, "ha_rule", **AVOID, nodes=["pve2"], resources=[sid])
    assert f"no node of the rule can run {sid}" in found["msg"]
    assert do(lab, "ha_rule", **AVOID, nodes=["pve1"], resources=[sid])["warnings"]


def test_each_guest_of_a_rule_is_looked_at(lab: Lab) -> None:
    sid, plain = managed(lab, map_device(lab, "usb", "pve2")), managed(lab, {}, "plain")
    assert not do(lab, "ha_rule", **PLACE, nodes=["pve1"], resources=[plain])["warnings"]
    found = refused(lab, "ha_rule", name="place", resources=[sid])
    assert f"no node of the rule can run {sid}" in found["msg"]


def test_a_disabled_rule_is_looked_at_once_it_is_enabled(lab: Lab) -> None:
    sid = managed(lab, map_device(lab, "dir", "pve2"))
    do(lab, "ha_rule", **PLACE, nodes=["pve1"], resources=[sid], disable=True)
    found = refused(lab, "ha_rule", name="place", disable=False)
    assert f"no node of the rule can run {sid}" in found["msg"]


def test_a_storage_that_a_node_lacks_counts(lab: Lab) -> None:
    data = {"storage": "fast", "type": "dir", "path": "/fast", "content": "images", "nodes": "pve2"}
    lab.client.write("POST", "storage", data=data)
    made = lab.vm(name="data", memory="128M", disks=[{"size": 1, "storage": "fast"}])["vm"]
    sid = f"vm:{made['vmid']}"
    do(lab, "ha_resource", sid=sid, request_state="stopped")
    found = refused(lab, "ha_rule", **PLACE, nodes=["pve1", "pve3"], resources=[sid])
    assert "pve1: storage fast is not there; pve3: storage fast is not there" in found["msg"]


def test_the_architecture_of_a_container_counts(lab: Lab) -> None:
    add_container(lab, 301, node="pve3", hostname="box", arch="amd64")
    do(lab, "ha_resource", sid="ct:301", request_state="stopped")
    for node in ("pve1", "pve2"):
        lab.simulator.steer(f"/nodes/{node}", {"arch": "aarch64"})
    found = refused(lab, "ha_rule", **PLACE, nodes=["pve1"], resources=["ct:301"])
    assert "its architecture is aarch64, and the guest needs x86_64" in found["msg"]
    assert do(lab, "ha_rule", **PLACE, nodes=["pve1", "pve3"], resources=["ct:301"])["warnings"]


def test_a_group_of_guests_costs_no_request_for_each_guest(lab: Lab) -> None:
    sids = [managed(lab, {}, f"web{number}") for number in range(3)]
    lab.simulator.reset_log()
    group: dict[str, Any] = {"name": "apart", "type": "resource-affinity"}
    do(lab, "ha_rule", **group, affinity="negative", resources=sids)
    assert not [row for row in lab.simulator.log() if row["path"].endswith("/config")]
