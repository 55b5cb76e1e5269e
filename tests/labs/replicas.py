# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guests of one node with replicas on another one, for the tests of failovers."""

from __future__ import annotations

import time
from typing import Any

from tests.simulator.process import Simulator

LOST, LEFT = "pve2", "pve3"
TANK = {"storage": "tank", "type": "zfspool", "pool": "rpool/data", "content": "images,rootdir"}
AGE = 600  # of the replicas, in seconds


def put_guest(simulator: Simulator, vmid: int, name: str, **config: str) -> None:
    """Put a running VM of tenant acme with two disks on the node that will be lost."""
    disks = {f"scsi{n}": f"tank:vm-{vmid}-disk-{n},size=1G" for n in (0, 1)}
    entry = {"node": LOST, "name": name, "running": True, "tags": ["tenant_acme"]}
    body = {**entry, "config": {"memory": "256", **disks, **config}}
    simulator.ask("POST", f"/vms/{vmid}", body)


def put_container(simulator: Simulator, vmid: int, name: str, **config: str) -> None:
    """Put a running container of tenant acme with a disk on the node that will be lost."""
    disk = {"rootfs": f"tank:subvol-{vmid}-disk-0,size=1G", "memory": "256"}
    options = {"hostname": name, "tags": "tenant_acme", **disk, **config}
    body = {"node": LOST, "running": True, "config": options}
    simulator.ask("POST", f"/containers/{vmid}", body)


def replicate(simulator: Simulator, vmid: int, age: int = AGE, **options: Any) -> int:
    """Run the job of a guest as of a time, and return that time."""
    synced = int(time.time()) - age
    simulator.ask("PUT", f"/replication/{vmid}-0", {"synced": synced, **options})
    return synced


def configurations(simulator: Simulator) -> list[str]:
    """Return the configurations as `grep` prints them on a node that is left."""
    found: list[str] = []
    for kind, folder in (("vms", "qemu-server"), ("containers", "lxc")):
        for one in simulator.ask("GET", f"/{kind}"):
            file = f"/etc/pve/nodes/{one['node']}/{folder}/{one['vmid']}.conf"
            found += [f"{file}:{key}: {value}" for key, value in one["config"].items()]
            found += [f"{file}:", f"{file}:[before]", f"{file}:memory: 1"]
    return found


def given(simulator: Simulator, **more: Any) -> dict[str, Any]:
    """Return the options of a failover to the replicas."""
    replicas = {LEFT: simulator.ask("GET", "/replicas").get(LEFT, [])}
    facts = {"configurations": configurations(simulator), "replicas": replicas}
    return {"lost_nodes": [LOST], "settle": 0, **facts, **more}


def move(simulator: Simulator, moves: list[dict[str, Any]]) -> None:
    """Move configurations as `mv` does on a node that is left."""
    for one in moves:
        kind = "containers" if "/lxc/" in one["source"] else "vms"
        body = {"running": False, "node": one["node"]}
        simulator.ask("PUT", f"/{kind}/{one['vmid']}", body)
