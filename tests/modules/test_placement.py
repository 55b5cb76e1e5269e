# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where module vm puts a VM, and what moves it: through main(), against the simulated cluster."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster import state as picture
from tests.modules.estate_lab import Lab, open_lab

BLANK: dict[str, Any] = {"disks": [{"size": 1, "storage": "ceph"}], "memory": "1G", "cores": 1}


@pytest.fixture(scope="module")
def place() -> Iterator[Lab]:
    """A cluster in which only pve2 has the bridge vmbr5."""
    with open_lab("--lag-s", "0", "--proxy-delay-s", "0.1") as opened:
        opened.client.write(
            "POST", "nodes", "pve2", "network", data={"iface": "vmbr5", "type": "bridge"}
        )
        opened.client.task("PUT", "nodes", "pve2", "network")
        yield opened


def placed(lab: Lab, name: str, **options: Any) -> dict[str, Any]:
    """Return where a VM was put, which check mode must have foreseen with the same words."""
    foreseen = lab.vm(check=True, name=name, **BLANK, **options)
    made = lab.vm(name=name, **BLANK, **options)
    assert made["placement"] == foreseen["placement"]
    assert made["diff"] == foreseen["diff"]
    assert made["vm"]["node"] == made["placement"]["node"]
    return made


def asked_for_bridges(lab: Lab) -> list[str]:
    return [
        row["path"].split("/")[2] for row in lab.simulator.log() if row["path"].endswith("/network")
    ]


def test_the_result_says_why(place: Lab, name: str) -> None:
    made = placed(place, name, placement={"nodes": ["pve3"], "exclude": ["pve1"]})
    assert made["placement"] == {
        "node": "pve3",
        "reasons": ["2 of 3 nodes fit", made["placement"]["reasons"][1]],
        "refused": {"pve1": "placement.exclude names it", "pve2": "it fits, but is not preferred"},
    }
    assert made["placement"]["reasons"][1].startswith("least_used: ")
    again = place.vm(name=name, **BLANK, placement={"nodes": ["pve1"], "exclude": ["pve3"]})
    assert not again["changed"]  # an existing VM stays where it is
    assert again["placement"] is None
    pinned = place.vm(name=f"{name}-pinned", **BLANK, node="pve1", placement={"exclude": ["pve1"]})
    assert pinned["placement"]["reasons"] == ["node names it"]


def test_a_list_of_preferred_nodes_in_the_environment(
    place: Lab, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another system has a list in this variable, so it must not be taken for the name of one
    node.
    """
    monkeypatch.setenv("PVE_NODE_SELECTOR", "pve2,pve3")
    assert place.vm(check=True, name=name)["vm"]["node"] in ("pve2", "pve3")
    assert place.vm(check=True, name=name, placement={"nodes": ["pve1"]})["vm"]["node"] == "pve1"
    assert place.vm(check=True, name=name, node="pve1")["vm"]["node"] == "pve1"
    assert (
        place.vm(check=True, name=name, placement={"exclude": ["pve2", "pve3"]})["vm"]["node"]
        == "pve1"
    )
    monkeypatch.setenv("PVE_NODE_SELECTOR", "pve2,pve9")
    assert place.refused(name=name)["error"]["reason"] == "unknown node"
    monkeypatch.setenv("PROXMOX_NODE", "pve3")
    assert place.vm(check=True, name=name)["vm"]["node"] == "pve3"


def test_a_node_in_maintenance_gets_no_new_vm_but_where_it_is_named(place: Lab, name: str) -> None:
    place.simulator.steer("nodes/pve3", {"maintenance": True})
    try:
        made = placed(place, name, placement={"nodes": ["pve3"]})
        assert made["placement"]["refused"]["pve3"] == "in maintenance"
        assert made["vm"]["node"] != "pve3"
        pinned = placed(place, f"{name}-pinned", node="pve3")
        assert not place.vm(name=f"{name}-pinned", **BLANK, placement={"max_vms_per_node": 100})[
            "changed"
        ]
    finally:
        place.simulator.steer("nodes/pve3", {"maintenance": False})
    assert pinned["vm"]["node"] == "pve3"


@pytest.mark.parametrize("strategy", ["least_used", "round_robin"])
def test_new_vms_are_spread(quiet: Lab, name: str, strategy: str) -> None:
    on = [
        placed(quiet, f"{name}-{index}", placement={"strategy": strategy})["vm"]["node"]
        for index in range(7)
    ]
    assert sorted(on.count(node) for node in ("pve1", "pve2", "pve3")) == [2, 2, 3]


def test_the_same_seed_gives_the_same_nodes(place: Lab, name: str) -> None:
    rules = {"strategy": "random", "seed": "7"}
    drawn = [
        place.vm(check=True, name=f"{name}-{index}", **BLANK, placement=rules)["placement"]["node"]
        for index in range(9)
    ]
    again = [
        place.vm(check=True, name=f"{name}-{index}", **BLANK, placement=rules)["placement"]["node"]
        for index in range(9)
    ]
    assert drawn == again
    assert len(set(drawn)) > 1


def test_a_node_without_the_bridge_is_refused_and_each_candidate_asked_once(
    place: Lab, name: str
) -> None:
    place.simulator.reset_log()
    made = place.vm(
        name=name, **BLANK, nics=[{"bridge": "vmbr5"}], placement={"nodes": ["pve1", "pve3"]}
    )
    assert made["vm"]["node"] == "pve2"
    assert made["placement"]["refused"]["pve1"].startswith(
        "bridge vmbr5 is not there, it has vmbr0"
    )
    assert sorted(asked_for_bridges(place)) == ["pve1", "pve2", "pve3"]
    place.simulator.reset_log()
    assert place.vm(name=f"{name}-2", **BLANK, nics=[{}])["changed"]
    assert len(asked_for_bridges(place)) == 1
    result = place.refused(
        name=f"{name}-3", **BLANK, nics=[{"bridge": "vmbr5"}], placement={"exclude": ["pve2"]}
    )
    assert result["error"]["category"] == "ConfigurationError"
    assert result["error"]["nodes"]["pve2"] == "placement.exclude names it"
    assert "pve3: bridge vmbr5 is not there" in result["msg"]


def test_affinity_by_tag_and_by_name(place: Lab, name: str) -> None:
    tag = f"a-{abs(hash(name)) % 9999}"
    apart = {"anti_affinity": [tag]}
    nodes = [
        placed(place, f"{name[:30]}-{index}", tags=[tag], tenant="acme", placement=apart)["vm"][
            "node"
        ]
        for index in range(3)
    ]
    assert sorted(nodes) == ["pve1", "pve2", "pve3"]
    full = place.refused(name=f"{name}-4", **BLANK, tags=[tag], tenant="acme", placement=apart)
    assert full["error"]["category"] == "NodeUnhealthy"
    assert full["error"]["nodes"].keys() == {"pve1", "pve2", "pve3"}
    assert f"{name[:30]}-0" in full["msg"]
    assert placed(
        place, f"{name}-5", tenant="acme", placement={**apart, "affinity_policy": "preferred"}
    )
    # Another tenant's VMs do not count as neighbours.
    assert placed(place, f"{name}-6", tags=[tag], tenant="globex", placement=apart)
    near = placed(
        place, f"{name}-7", tenant="acme", placement={"affinity": [f"name:{name[:30]}-1"]}
    )
    assert near["vm"]["node"] == nodes[1]


UNFIT: list[tuple[dict[str, Any], str, str, str]] = [
    (
        {"placement": {"max_vms_per_node": 1, "exclude": ["pve1"]}},
        "NodeUnhealthy",
        "no node fits",
        "at most 1",
    ),
    (
        {"placement": {"min_free_memory": "900G"}},
        "NodeUnhealthy",
        "no node fits",
        "at least 900 GiB must be",
    ),
    (
        {"placement": {"cpu_overcommit": 0.01}},
        "NodeUnhealthy",
        "no node fits",
        "16 cores x 0.01 (cpu_overcommit) = 0.16",
    ),
    (
        {"memory": "100G", "placement": {"memory_overcommit": 1.0}},
        "NodeUnhealthy",
        "no node fits",
        "64 GiB x 1",
    ),
    (
        {"placement": {"exclude": ["pve1", "pve2", "pve3"]}},
        "NodeUnhealthy",
        "no node fits",
        "pve3: placement.exclude",
    ),
    ({"placement": {"nodes": ["pve9"]}}, "ConfigurationError", "unknown node", "pve1, pve2, pve3"),
    ({"node": "pve9"}, "ConfigurationError", "unknown node", "pve1, pve2, pve3"),
    ({"placement": {"nodes": ["no node"]}}, "ValidationFailed", "placement.nodes", "no node"),
    ({"placement": {"affinity": ["no tag"]}}, "ValidationFailed", "placement.affinity", "no tag"),
    (
        {"vmid_range": [9000, 9001]},
        "QuotaExceeded",
        "no free VMID",
        "all 2 numbers from 9000 to 9001 are taken",
    ),
    ({"vmid_range": [9001, 9000]}, "ValidationFailed", "vmid_range", "Give the first and the last"),
    ({"vmid_bands": {"template": [5, 6]}}, "ValidationFailed", "vmid_bands.template", "100"),
    ({"tenant": "a b"}, "ValidationFailed", "tenant", "a b"),
    ({"tenant": "ümlaut"}, "ValidationFailed", "tenant", "ümlaut"),
]


@pytest.mark.parametrize(
    ("options", "category", "reason", "word"), UNFIT, ids=lambda value: str(value)[:60]
)
def test_refused_with_figures_and_without_a_write(
    place: Lab, name: str, options: dict[str, Any], category: str, reason: str, word: str
) -> None:
    for node in ("pve2", "pve3"):  # so that each node has a VM
        place.vm(name=f"filler-{node}", **BLANK, node=node)
    result = place.refused(name=name, **{**BLANK, **options})
    assert (result["error"]["category"], result["error"]["reason"]) == (category, reason), result[
        "msg"
    ]
    assert word in result["msg"]


def test_a_number_by_hand_is_advised_on(place: Lab, name: str) -> None:
    assert place.vm(name=f"{name}-a", vmid=1500, **BLANK)["warnings"] == []
    warned = place.vm(name=f"{name}-b", vmid=150001, **BLANK)
    assert ["reserved" in text for text in warned["warnings"]] == [True]
    assert place.vm(check=True, name=f"{name}-c", vmid=55555, **BLANK)["warnings"]
    assert not place.vm(vmid=150001, **BLANK)["warnings"]
    own = place.vm(name=f"{name}-d", vmid=150002, **BLANK, vmid_bands={"manual": [150000, 160000]})
    assert own["warnings"] == []
    template = place.vm(
        name=f"{name}-t", **BLANK, state="template", vmid_bands={"template": [700, 710]}
    )
    assert 700 <= template["vm"]["vmid"] <= 710
    bands = {"template": [720, 730]}
    low = place.vm(
        name=f"{name}-l", **BLANK, state="template", vmid_bands=bands, vmid_choice="lowest"
    )
    assert low["vm"]["vmid"] == 720


def test_a_picture_that_grew_old_is_read_again(
    quiet: Lab, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the checks of a new VM took long, another run created it, and a node went down."""
    monkeypatch.setattr(picture, "FRESH", 0.5)
    rules = {"strategy": "first"}
    for what in ("vm", "node"):
        quiet.simulator.fault(method="GET", path="/network$", delay_ms=1500, times=1)
        if what == "vm":
            data = {"vmid": 10000, "name": name, "tags": "tenant_acme"}
            timer = threading.Timer(
                0.7, quiet.client.task, ("POST", "nodes", "pve3", "qemu"), {"data": data}
            )
        else:
            timer = threading.Timer(0.7, quiet.simulator.steer, ("nodes/pve1", {"online": False}))
        timer.start()
        try:
            made = quiet.vm(name=name, tenant="acme", **BLANK, nics=[{}], placement=rules)
        finally:
            timer.join()
            quiet.simulator.clear_faults()
        if what == "vm":
            assert (made["vm"]["vmid"], made["vm"]["node"]) == (10000, "pve3")
            assert not any("Create" in text for text in made["done"])
            assert quiet.vm(name=name, tenant="acme", state="absent")["changed"]
        else:
            assert made["placement"]["node"] == "pve2"
            assert made["placement"]["refused"]["pve1"] in ("offline", "it does not answer")


# -- moving ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["started", "stopped"])
def test_a_vm_moves_when_its_constraints_no_longer_hold_and_only_then(
    place: Lab, name: str, state: str
) -> None:
    place.vm(name=name, **BLANK, node="pve1", state=state)
    options: dict[str, Any] = {"name": name, "rebalance": True, "placement": {"exclude": ["pve3"]}}
    kept = place.vm(**options)
    assert not kept["changed"]
    assert kept["placement"]["reasons"] == ["it is there, and every constraint holds"]
    options["placement"] = {"exclude": ["pve1"], "nodes": ["pve2"]}
    assert not place.vm(**{**options, "rebalance": False})["changed"]
    place.simulator.reset_log()
    foreseen = place.vm(check=True, **options)
    assert place.simulator.writes() == []
    moved = place.vm(**options)
    assert moved["diff"] == foreseen["diff"]
    assert (moved["diff"]["before"], moved["diff"]["after"]) == ({"node": "pve1"}, {"node": "pve2"})
    assert moved["placement"]["reasons"][0] == "pve1 is no longer fit: placement.exclude names it"
    assert moved["vm"]["node"] == "pve2"
    assert place.status(moved["vm"]) == ("running" if state == "started" else "stopped")
    assert not place.vm(**options)["changed"]


def test_nowhere_to_go_is_reported_node_by_node(place: Lab, name: str) -> None:
    place.vm(name=name, **BLANK, node="pve1")
    place.vm(name=f"{name}-other", **BLANK, node="pve3")
    result = place.refused(
        name=name, rebalance=True, placement={"exclude": ["pve1", "pve2"], "max_vms_per_node": 1}
    )
    assert result["error"]["nodes"].keys() == {"pve1", "pve2", "pve3"}
    stays = place.refused(name=name, rebalance=True, migrate=False, placement={"exclude": ["pve1"]})
    assert stays["error"]["reason"] == "node differs"


def test_local_disks_go_along(place: Lab, name: str) -> None:
    place.vm(name=name, disks=[{"size": 1, "storage": "local-lvm"}], node="pve1", state="started")
    moved = place.vm(name=name, node="pve3")
    assert moved["vm"]["node"] == "pve3"
    assert place.status(moved["vm"]) == "running"


def test_a_move_asks_for_what_stands_in_its_way_and_nothing_else_does(
    place: Lab, name: str
) -> None:
    place.vm(name=name, **BLANK, node="pve1")

    def asked() -> int:
        return sum(
            row["method"] == "GET" and row["path"].endswith("/migrate")
            for row in place.simulator.log()
        )

    place.simulator.reset_log()
    place.vm(name=name, cores=2)
    assert asked() == 0
    place.vm(check=True, name=name, node="pve2")
    assert asked() == 1
    place.client.write(
        "POST",
        "storage",
        data={
            "storage": "only1",
            "type": "dir",
            "path": "/a",
            "nodes": "pve1",
            "content": "images",
        },
    )
    vm = place.vm(name=name, disks=[{"name": "scsi1", "size": 1, "storage": "only1"}])["vm"]
    result = place.refused(name=name, node="pve2")
    assert result["error"]["category"] == "NotSupported"
    assert "only1" in result["msg"]
    assert vm["node"] == "pve1"
    elsewhere = place.refused(name=name, rebalance=True, placement={"exclude": ["pve1"]})
    assert elsewhere["error"]["nodes"]["pve2"] == "storage only1 is not there"


def test_an_ha_managed_vm_is_waited_for_until_it_is_there(place: Lab, name: str) -> None:
    vm = place.vm(name=name, **BLANK, node="pve1", state="started")["vm"]
    place.client.write("POST", "cluster", "ha", "resources", data={"sid": f"vm:{vm['vmid']}"})
    place.simulator.steer("settings", {"task_ms": {"qmigrate": 1500}})
    try:
        moved = place.vm(name=name, node="pve2", cores=2)
    finally:
        place.simulator.steer("settings", {"task_ms": {"qmigrate": 20}})
    assert moved["vm"]["node"] == "pve2"
    assert len([text for text in moved["done"] if "Migrate" in text]) == 1
    assert place.status(moved["vm"]) == "running"


def test_a_migration_of_the_ha_manager_that_fails_is_reported(place: Lab, name: str) -> None:
    vm = place.vm(name=name, **BLANK, node="pve1", state="started")["vm"]
    place.client.write("POST", "cluster", "ha", "resources", data={"sid": f"vm:{vm['vmid']}"})
    place.simulator.fault(task="qmigrate", id=vm["vmid"], fail="the network is on fire")
    try:
        result = place.run("vm", name=name, node="pve2", task_timeout=30)
    finally:
        place.simulator.clear_faults()
    assert result["error"]["category"] == "TaskFailed"
    assert "on fire" in str(result["error"]["log"])
    assert ":qmigrate:" in result["error"]["upid"]
    assert place.vm(name=name)["vm"]["node"] == "pve1"


def test_the_ha_manager_takes_local_disks_along(place: Lab, name: str) -> None:
    vm = place.vm(
        name=name, disks=[{"size": 1, "storage": "local-lvm"}], node="pve1", state="started"
    )["vm"]
    place.client.write("POST", "cluster", "ha", "resources", data={"sid": f"vm:{vm['vmid']}"})
    moved = place.vm(name=name, node="pve2")
    assert moved["vm"]["node"] == "pve2"
    assert place.status(moved["vm"]) == "running"


def test_a_vm_that_is_moved_during_the_task_is_followed(place: Lab, name: str) -> None:
    """It is gone from its node between the plan and the first write, as when the HA manager moves
    it.
    """
    vm = place.vm(name=name, **BLANK, node="pve1", state="started")["vm"]
    place.simulator.fault(
        method="PUT", path=rf"/nodes/pve1/qemu/{vm['vmid']}/config$", delay_ms=800
    )
    timer = threading.Timer(0.4, place.simulator.steer, (f"vms/{vm['vmid']}", {"node": "pve3"}))
    timer.start()
    try:
        made = place.vm(name=name, description="followed", tags=["x"])
    finally:
        timer.join()
        place.simulator.clear_faults()
    assert made["vm"]["node"] == "pve3"
    assert made["vm"]["description"] == "followed"
    removed = place.vm(name=name, state="absent")
    assert removed["vm"] is None


def test_a_node_that_dies_gives_its_vm_to_another_and_the_task_continues(name: str) -> None:
    with open_lab("--lag-s", "0", "--proxy-delay-s", "0.1") as lab:
        vm = lab.vm(name=name, **BLANK, node="pve3", state="started")["vm"]
        lab.simulator.steer("nodes/pve3", {"online": False})
        lab.simulator.steer(f"vms/{vm['vmid']}", {"node": "pve2"})
        assert lab.vm(name=name, cores=3)["vm"]["node"] == "pve2"
        other = lab.vm(name=f"{name}-new", **BLANK)
        assert other["placement"]["refused"]["pve3"] == "offline"
