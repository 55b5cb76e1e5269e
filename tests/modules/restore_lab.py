# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Backups in the demo cluster, and restores that run for as long as a test needs them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from tests.modules.estate_lab import Lab

# Milliseconds of a restore that does not end by itself.
_ENDLESS = 600_000


def back_up(lab: Lab, vm: dict[str, Any]) -> str:
    """Back a VM up and return the volume of the archive."""
    lab.client.task("POST", "nodes", vm["node"], "vzdump", data={"vmid": vm["vmid"]})
    rows = lab.client.get("nodes", vm["node"], "storage", "local", "content", content="backup")
    own = [row for row in rows if row["vmid"] == vm["vmid"]]
    return str(max(own, key=lambda row: row["ctime"])["volid"])


def start_restore(lab: Lab, vm: dict[str, Any], archive: str, **options: Any) -> str:
    """Start a restore over a VM and return its UPID, once the disks are being written."""
    lab.simulator.steer("/settings", {"task_ms": "qmrestore=1000"})
    data = {"vmid": vm["vmid"], "archive": archive, "force": 1, **options}
    upid: str = lab.client.write("POST", "nodes", vm["node"], "qemu", data=data)
    path = ("nodes", vm["node"], "qemu", vm["vmid"], "config")
    until = time.monotonic() + 30
    while lab.client.get(*path).keys() != {"digest", "memory"}:
        assert time.monotonic() < until, "the restore does not write its disks"
        time.sleep(0.01)
    return upid


def end_restore(lab: Lab, vm: dict[str, Any], upid: str) -> None:
    """Let a restore end, and wait for that."""
    lab.simulator.steer("/settings", {"task_ms": "qmrestore=0"})
    until = time.monotonic() + 30
    path = ("nodes", vm["node"], "tasks", upid, "status")
    while lab.client.get(*path)["status"] == "running":
        assert time.monotonic() < until, "the restore does not end"
        time.sleep(0.02)


@contextlib.contextmanager
def restored(lab: Lab, vm: dict[str, Any]) -> Iterator[str]:
    """A restore of a VM runs within the block; its UPID."""
    archive = back_up(lab, vm)
    upid = start_restore(lab, vm, archive)
    lab.simulator.steer("/settings", {"task_ms": f"qmrestore={_ENDLESS}"})
    try:
        yield upid
    finally:
        end_restore(lab, vm, upid)


def fail_restore(lab: Lab, vm: dict[str, Any]) -> None:
    """Restore a VM and interrupt that: it keeps neither name nor disks."""
    archive = back_up(lab, vm)
    upid = start_restore(lab, vm, archive)
    lab.client.write("DELETE", "nodes", vm["node"], "tasks", upid)
    end_restore(lab, vm, upid)
