# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One site as the report shows it: its nodes with free capacity, storages, privileges (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..._foundation.api.access.privileges import Privileges
from ..._foundation.cluster.state import VmRow
from ..._guests.kinds.words import VIRTUAL_MACHINE, kind_name
from .model import Row, SiteReading

_OF_CLUSTER = ("name", "version", "quorate", "storages", "containers", "failed_tasks", "health")
_OF_NODE = (
    "node",
    "status",
    "maintenance",
    "version",
    "uptime",
    "cpu",
    "memory",
    "disk",
    "vms",
    "containers",
    "capacity",
    "health",
    "error",
)
_LEFT = ("cores_left", "memory_left", "vms_left")
# Without these privileges, parts of the report are missing although no request fails.
_SILENT = (
    ("/vms", "VM.Audit", "guests that the login may not see are missing"),
    ("/nodes", "Sys.Audit", "the load and the room of nodes are unknown"),
    ("/storage", "Datastore.Audit", "storages that the login may not see are missing"),
)


def site_of(reading: SiteReading, guests: Sequence[Row]) -> dict[str, Any]:
    """Return a site. If it could not be read, `reason` is set and the rest is null or empty."""
    site: dict[str, Any] = {
        "site": reading.site,
        "reason": reading.reason or None,
        **dict.fromkeys(_OF_CLUSTER),
        "storages": [],
        "failed_tasks": [],
        "nodes": [],
        "vms": None,
        "unread": None,
        "templates": None,
        "room": None,
        "missing": [],
        "privileges": [],
    }
    if reading.state is None:
        return site
    unread = [guest for guest in guests if guest["reason"]]
    vms = [guest for guest in guests if guest["kind"] == VIRTUAL_MACHINE]
    templates = [row for row in reading.state.vms.values() if _is_vm_template(row)]
    parts = [{"part": entry["part"], "reason": entry["reason"]} for entry in reading.missing]
    site |= {key: reading.cluster[key] for key in _OF_CLUSTER}
    site["nodes"] = [{key: node[key] for key in _OF_NODE} for node in reading.nodes]
    site["vms"] = len(vms)
    site["unread"] = len(unread)
    site["templates"] = len(templates)
    site["room"] = _room(reading.nodes)
    site["missing"] = parts
    site["privileges"] = _lacking(reading.privileges)
    return site


def _is_vm_template(row: VmRow) -> bool:
    """Return whether a guest is a VM template; container templates count as containers."""
    return row.template and kind_name(row.type) == VIRTUAL_MACHINE


def _room(nodes: Iterable[Row]) -> dict[str, int | None] | None:
    """Return the capacity that placement rules leave on nodes that accept new VMs.

    Memory is in bytes. None if the capacity is unknown for every node. A node above a limit counts
    as 0, so it does not reduce the capacity of other nodes.
    """
    open_nodes = [row for row in nodes if row["capacity"] and not row["maintenance"]]
    if not open_nodes:
        return None
    room = {key: _sum_of(row["capacity"][key] for row in open_nodes) for key in _LEFT}
    if room["cores_left"] is None:
        return None
    return room


def _sum_of(amounts: Iterable[int | None]) -> int | None:
    """Return the sum of the known amounts, None if there are none: no limit, or unknown."""
    known = [max(0, amount) for amount in amounts if amount is not None]
    if not known:
        return None
    return sum(known)


def _lacking(held: Privileges | None) -> list[dict[str, str]]:
    """Return the privileges that the login lacks, and the effect of each on the report."""
    found: list[dict[str, str]] = []
    if held is None:
        return found
    for path, privilege, effect in _SILENT:
        if privilege not in held.below(path):
            lack = {"path": path, "privilege": privilege, "effect": effect}
            found.append(lack)
    return found
