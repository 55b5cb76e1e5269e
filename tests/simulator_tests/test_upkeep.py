"""Nodes that reboot, their services, and the flags of Ceph."""

from __future__ import annotations

import time

from tests.simulator.process import Simulator
from tests.simulator_tests.client import Client


def test_a_reboot(pve: Client, sim: Simulator) -> None:
    """Source: pve-manager, PVE/API2/Nodes.pm (node_cmd, startall)."""
    sim.steer("/settings", {"task_ms": "reboot=200"})
    for vmid, onboot in ((101, "1"), (102, "0")):
        config = {"onboot": onboot, "memory": "512"}
        sim.ask("POST", f"/vms/{vmid}", {"node": "pve2", "running": True, "config": config})
    sim.steer("/nodes/pve2", {"after_reboot": {"version": "9.3.1", "services": {"sshd": "dead"}}})
    assert pve.call("POST", "/nodes/pve2/status", {"command": "reboot"}).data is None
    assert pve.call("GET", "/nodes/pve2/version").status == 595
    while pve.call("GET", "/nodes/pve2/version").status != 200:
        time.sleep(0.05)
    assert pve.get("/nodes/pve2/version")["version"] == "9.3.1"
    assert pve.get("/nodes/pve1/version")["version"] == "9.2.11"
    assert [row["state"] for row in pve.get("/nodes/pve2/services")] == ["dead"]
    assert pve.get("/nodes/pve2/status")["uptime"] < 100
    running = {row["vmid"] for row in pve.get("/nodes/pve2/qemu") if row["status"] == "running"}
    assert running & {101, 102} == {101}


def test_a_node_that_does_not_come_back(pve: Client, sim: Simulator) -> None:
    sim.steer("/nodes/pve3", {"after_reboot": {"stays_down": True}})
    sim.steer("/nodes/pve3", {"reboot": True})
    states = {row["node"]: row["status"] for row in pve.get("/nodes")}
    assert states == {"pve1": "online", "pve2": "online", "pve3": "offline"}


def test_a_lost_storage(pve: Client, sim: Simulator) -> None:
    sim.steer("/nodes/pve2", {"lost_storages": ["local-lvm"]})
    rows = pve.get("/cluster/resources?type=storage")
    lost = {(row["storage"], row["node"]) for row in rows if row["status"] != "available"}
    assert lost == {("local-lvm", "pve2")}


def test_ceph(pve: Client, sim: Simulator) -> None:
    """Source: pve-manager, PVE/API2/Cluster/Ceph.pm, and PVE/Ceph/Tools.pm (check_ceph_inited)."""
    missing = pve.call("GET", "/cluster/ceph/status")
    assert (missing.status, missing.reason) == (500, "binary not installed: /usr/bin/ceph-mon")
    sim.steer("/cluster", {"ceph": {"flags": ["noscrub"]}})
    assert pve.get("/cluster/ceph/status")["health"]["status"] == "HEALTH_OK"
    pve.call("PUT", "/cluster/ceph/flags/noout", {"value": 1})
    pve.call("PUT", "/cluster/ceph/flags/noscrub", {"value": 0})
    assert [row["name"] for row in pve.get("/cluster/ceph/flags") if row["value"]] == ["noout"]
