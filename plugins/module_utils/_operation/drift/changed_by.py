# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The traces that changes of a cluster leave in Proxmox VE: tasks and logins (pure).

Proxmox VE changes configuration files, such as storage.cfg, without a task. A login with a password
is a line of the cluster log (pve-access-control, API2/AccessControl.pm, create_ticket); tokens do
not log in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..tasks.row import TaskRow, describe_task

# Types of the tasks that change resources, by section. Sources: pve-manager, API2/Network.pm, for
# networks; pve-network, API2/Network/SDN.pm, for SDN; pve-storage, API2/Disks/*.pm, for storages;
# pve-access-control, API2/Domains.pm, for realms; qemu-server, API2/Qemu.pm, and pve-container,
# API2/LXC/Status.pm, for HA resources.
_OF_DISKS = ("dir", "lvm", "lvmthin", "zfs")
_HA_TASKS = ("hastart", "hastop", "hashutdown", "hamigrate")
TYPES: Mapping[str, frozenset[str]] = {
    "networks": frozenset(("srvreload",)),
    "sdn": frozenset(("reloadnetworkall",)),
    "storages": frozenset(f"{kind}{verb}" for kind in _OF_DISKS for verb in ("create", "remove")),
    "users": frozenset(("auth-realm-sync",)),
    "groups": frozenset(("auth-realm-sync",)),
    "ha_resources": frozenset(_HA_TASKS),
}
ALL_TYPES = frozenset().union(*TYPES.values())
_LOGIN = re.compile(r"successful auth for user '(?P<user>[^']+)'")
_RELOAD = "networking"
_OF_TASK = ("type", "user", "token", "status", "started", "upid")


def last_task_of(section: str, name: str, tasks: Iterable[TaskRow]) -> TaskRow | None:
    """Return the newest task that may have changed a resource; `tasks` are the newest first."""
    types = TYPES.get(section, frozenset())
    for task in tasks:
        if task.type in types and _concerns(task, section, name):
            return task
    return None


def described(task: TaskRow | None) -> dict[str, Any] | None:
    """Return the fields of a report about the last task of a guest or a resource."""
    if task is None:
        return None
    row = describe_task(task)
    return {key: row[key] for key in _OF_TASK}


def _concerns(task: TaskRow, section: str, name: str) -> bool:
    """Return whether a task is about a resource, by its node or its object."""
    if section == "networks":
        return task.node == name and task.id == _RELOAD
    if section == "sdn":
        return True
    if section in ("users", "groups"):
        return name.endswith((f"@{task.id}", f"-{task.id}"))
    return task.id == name.rpartition(":")[2]


def logins_in(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the time of the last login of each user, in seconds since the epoch."""
    found: dict[str, int] = {}
    for row in rows:
        match = _LOGIN.search(str(row.get("msg", "")))
        if match is not None:
            user = match["user"]
            found[user] = max(found.get(user, 0), int(row.get("time") or 0))
    return found
