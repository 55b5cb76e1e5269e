# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module storage_info: definitions of storages, and their state on each node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..._foundation.api.interface import Api
from ..._foundation.core.result import Result
from ..._foundation.resource.run import run_info
from .table import STORAGE


def run_storage_info(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Return the storages, all or the named one, each with its state per node.

    Two requests. Nothing is written.
    """
    found = run_info(STORAGE, params, client, check_mode)
    rows = client.get(
        "cluster",
        "resources",
        params={"type": "storage"},
        attempted="Could not read the state of the storages",
    )
    states = states_of(rows or [])
    listed = [{**one, "states": states.get(one["name"], [])} for one in found.values["storages"]]
    return Result(False, {"storages": listed})


def states_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the state of each storage on each node, sorted by node (pure)."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda one: str(one.get("node"))):
        if "storage" not in row or "vmid" in row:
            continue
        active = row.get("status") == "available"
        total = int(row.get("maxdisk") or 0) if active else None
        used = int(row.get("disk") or 0) if active else None
        free = None if total is None or used is None else max(0, total - used)
        found.setdefault(str(row["storage"]), []).append(
            {
                "node": str(row["node"]),
                "active": active,
                "shared": bool(int(row.get("shared") or 0)),
                "total": total,
                "used": used,
                "free": free,
            }
        )
    return found
