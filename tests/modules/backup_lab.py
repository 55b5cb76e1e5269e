# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Storages with archives, for the tests of backups."""

from __future__ import annotations

import itertools
import time
from typing import Any

from tests.modules.estate_lab import Lab
from tests.simulator.process import Simulator

_NUMBERS = itertools.count(30000)
_GIB = 1 << 30


def add_nas(lab: Lab, **options: Any) -> None:
    """Add a shared storage for backups."""
    data = {"storage": "nas", "type": "dir", "path": "/mnt/nas", "shared": 1}
    lab.client.write("POST", "storage", data={**data, "content": "backup", **options})


def add_pbs(lab: Lab) -> None:
    """Add a storage on a backup server."""
    data = {"storage": "pbs", "type": "pbs", "server": "10.99.0.6", "datastore": "main"}
    login = {"username": "backup@pbs", "password": "pbs-password"}
    lab.client.write("POST", "storage", data={**data, **login, "content": "backup"})


def container(lab: Lab, *, node: str = "pve1", **config: Any) -> dict[str, Any]:
    """Make a container by the API itself and return vmid, name and node."""
    vmid = next(_NUMBERS)
    template = "local:vztmpl/debian-13.tar.zst"
    lab.simulator.steer(f"/volumes/{node}", {"volid": template, "new": True, "size": 1 << 20})
    data = {"vmid": vmid, "ostemplate": template, "rootfs": "local-lvm:1", "memory": 128, **config}
    lab.client.task("POST", "nodes", node, "lxc", data=data)
    return {"vmid": vmid, "name": config.get("hostname", f"CT{vmid}"), "node": node}


def add_archive(
    lab: Lab,
    guest: dict[str, Any],
    age: float,
    *,
    storage: str = "nas",
    kind: str = "qemu",
    **attributes: Any,
) -> str:
    """Put an archive of a guest on a storage, `age` seconds old, and return its volume."""
    moment = int(lab.client.clock.time() - age)
    if storage == "pbs":
        word = "vm" if kind == "qemu" else "ct"
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
        name = f"backup/{word}/{guest['vmid']}/{stamp}"
    else:
        form = "vma" if kind == "qemu" else "tar"
        stamp = time.strftime("%Y_%m_%d-%H_%M_%S", time.localtime(moment))
        name = f"backup/vzdump-{kind}-{guest['vmid']}-{stamp}.{form}.zst"
    volume = f"{storage}:{name}"
    data = {"volid": volume, "new": True, "size": _GIB, "ctime": moment, **attributes}
    lab.simulator.steer(f"/volumes/{guest['node']}", data)
    return volume


def archives_of(lab: Lab, guest: dict[str, Any], storage: str = "nas") -> list[str]:
    """Return the archives of a guest as the server has them, the oldest first."""
    path = ("nodes", guest["node"], "storage", storage, "content")
    rows = lab.client.get(*path, content="backup", vmid=guest["vmid"])
    return [row["volid"] for row in sorted(rows, key=lambda row: row["ctime"])]


def share_archives(source: Simulator, target: Simulator, storage: str = "nas") -> None:
    """Show the archives on a storage to another cluster, as if both used it."""
    known = {row["volid"] for row in target.ask("GET", "/volumes")}
    for row in source.ask("GET", "/volumes"):
        if row["volid"].startswith(f"{storage}:") and row["volid"] not in known:
            target.steer("/volumes/pve1", {**row, "new": True})
