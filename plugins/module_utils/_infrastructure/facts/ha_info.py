# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module ha_state_info (pve-ha-manager: PVE/API2/HA/Status.pm)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..._foundation.api.interface import Api
from ..._foundation.core.result import Result
from .cluster_info import ha_of
from .nodes import Row, dictionary

_STATUS = ("cluster", "ha", "status")
_FENCED, _ERROR = "fence", "error"


def run(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Return the state of the HA manager; two requests. Nothing is written."""
    attempted = "Could not read the state of the HA manager"
    current = client.get(*_STATUS, "current", attempted=attempted) or []
    manager = client.get(*_STATUS, "manager_status", attempted=attempted) or {}
    return Result(False, {"ha_state": describe_ha(current, manager, client.clock.time())})


def describe_ha(current: Iterable[Row], manager: Row, now: float) -> dict[str, Any]:
    """Return the state of the HA manager with its nodes and services (pure).

    `now` is in seconds since the epoch. Up to Proxmox VE 9.1 the manager cannot be disarmed, and
    its armed state is None.
    """
    rows = list(current)
    known = ha_of(rows, {}) or {}
    texts = {str(row["node"]): row.get("status") for row in rows if row.get("type") == "lrm"}
    status = dictionary(manager, "manager_status")
    daemons = dictionary(manager, "lrm_status")
    nodes: list[dict[str, Any]] = []
    for node, state in sorted(dictionary(status, "node_status").items()):
        daemon = dictionary(daemons, node)
        nodes.append(
            {
                "node": node,
                "state": state,
                "mode": daemon.get("mode"),
                "lrm_state": daemon.get("state"),
                "age": _age(daemon, now),
                "status": texts.get(node),
            }
        )
    services = known["services"]
    return {
        "armed_state": known["fencing"],
        "resource_mode": known["resource_mode"],
        "quorate": known["quorate"],
        "master": known["master"],
        "master_age": _age(status, now),
        "nodes": nodes,
        "services": services,
        "fenced": [one["node"] for one in nodes if one["state"] == _FENCED],
        "errors": [one["sid"] for one in services if one["state"] == _ERROR],
    }


def _age(record: Row, now: float) -> int | None:
    """Return the seconds since a record was written, None if its time is unknown."""
    written = record.get("timestamp")
    return max(0, int(now - written)) if written else None
