# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers that are put into a simulated cluster behind the API."""

from __future__ import annotations

from typing import Any

from tests.modules.estate_lab import Lab


def add_container(
    lab: Lab,
    vmid: int,
    *,
    node: str = "pve1",
    running: bool = False,
    pool: str | None = None,
    **config: Any,
) -> None:
    """Put a container with these options into the cluster; its root file system has 1 GiB."""
    root = {"rootfs": f"ceph:vm-{vmid}-disk-0,size=1G", "ostype": "debian", "unprivileged": 1}
    body = {"node": node, "running": running, "pool": pool, "config": {**root, **config}}
    lab.simulator.ask("POST", f"/containers/{vmid}", body)


def add_mount(lab: Lab, vmid: int, mount: str, node: str = "pve1") -> None:
    """Create a volume, and attach it as the first mount point."""
    lab.client.write("PUT", "nodes", node, "lxc", vmid, "config", data={"mp0": mount})
