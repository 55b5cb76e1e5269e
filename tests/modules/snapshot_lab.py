# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs and storages for the tests of snapshots, nodes and clusters: a simulated cluster of their
own.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from tests.modules.estate_lab import Lab
from tests.modules.module_runner import run_module

_NUMBERS = itertools.count(20000)

# Storages beside those of the demo cluster: files, and ZFS, which goes back to its newest snapshot
# only.
STORAGES: dict[str, dict[str, Any]] = {
    "files": {"type": "dir", "path": "/srv/files", "content": "images"},
    "tank": {"type": "zfspool", "pool": "tank", "content": "images"},
}


def prepare(lab: Lab) -> Lab:
    """Add the storages."""
    for name, options in STORAGES.items():
        lab.client.write("POST", "storage", data={"storage": name, **options})
    return lab


def machine(
    lab: Lab,
    *,
    name: str = "",
    disk: str = "ceph:1",
    node: str = "pve1",
    running: bool = False,
    **config: Any,
) -> dict[str, Any]:
    """Make a VM by the API itself and return vmid, name and node."""
    vmid = next(_NUMBERS)
    data = {"vmid": vmid, "name": name or f"snap-{vmid}", "scsi0": disk, "memory": 256, **config}
    lab.client.task("POST", "nodes", node, "qemu", data=data)
    if running:
        lab.client.task("POST", "nodes", node, "qemu", vmid, "status", "start")
    return {"vmid": vmid, "name": data["name"], "node": node}


def take(lab: Lab, vm: dict[str, Any], *names: str, **options: Any) -> None:
    """Take snapshots by the API itself."""
    for name in names:
        data = {"snapname": name, **options}
        lab.client.task("POST", "nodes", vm["node"], "qemu", vm["vmid"], "snapshot", data=data)


def names(lab: Lab, vm: dict[str, Any]) -> list[str]:
    """Return the names of the VM's snapshots as the server has them, sorted."""
    rows = lab.client.get("nodes", vm["node"], "qemu", vm["vmid"], "snapshot")
    return sorted(row["name"] for row in rows if row["name"] != "current")


def settle(lab: Lab) -> None:
    """Let the simulator forget the requests so far."""
    lab.simulator.reset_log()


@contextmanager
def unending(lab: Lab, kind: str) -> Iterator[None]:
    """Let the tasks of a kind that begin within run for longer than any test waits."""
    lab.simulator.steer("/settings", {"task_ms": {kind: 3_600_000}})
    try:
        yield
    finally:
        lab.simulator.steer("/settings", {"task_ms": {kind: 20}})


@contextmanager
def ending_when_followed(lab: Lab, kind: str) -> Iterator[None]:
    """Let the tasks of a kind that run end once what is done within asks for the state of one."""
    settle(lab)
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            if any(is_about_a_task(row["path"]) for row in lab.simulator.log()):
                break
        lab.simulator.steer("/settings", {"task_ms": {kind: 20}})

    with ThreadPoolExecutor(1) as threads:
        watched = threads.submit(watch)
        try:
            yield
        finally:
            over.set()
            watched.result()


def is_about_a_task(path: str) -> bool:
    """Return whether a request asks for the state of one task."""
    return "/tasks/UPID:" in path and path.endswith("/status")


def check(lab: Lab, module: str = "snapshot", **options: Any) -> dict[str, Any]:
    """Return what a module foresees, which must cost no write."""
    settle(lab)
    result = run_module(module, {**lab.connection, **options}, check=True)
    assert not result.get("failed"), result
    assert lab.simulator.writes() == []
    return result


def do(lab: Lab, module: str = "snapshot", **options: Any) -> dict[str, Any]:
    """Return what a module does, which must be what it foresaw."""
    foreseen = check(lab, module, **options)
    result = run_module(module, {**lab.connection, **options})
    assert not result.get("failed"), result
    assert result["changed"] == foreseen["changed"]
    if options.get("snapshot"):  # an automatic name holds the time
        assert result.get("diff") == foreseen.get("diff")
    return result


def refused(lab: Lab, module: str = "snapshot", **options: Any) -> dict[str, Any]:
    """Return the failure of a module, which must have written nothing."""
    settle(lab)
    result = run_module(module, {**lab.connection, **options})
    assert result.get("failed"), result
    assert lab.simulator.writes() == []
    assert "Traceback" not in str(result)
    assert result["msg"].count(".") >= 1
    return result
