# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of modules node_service and node_service_info (pve-manager: PVE/API2/Services.pm)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..._foundation.api.interface import Api
from ..._foundation.core import validate
from ..._foundation.core.arguments.options import did_you_mean
from ..._foundation.core.errors import Conflict, NotFound
from ..._foundation.core.result import Result
from ..._foundation.resource.manage import PlannedStep, WorkerTask, run_planned
from ..._foundation.resource.plan import Plan, Step

STARTED, STOPPED, RESTARTED = "started", "stopped", "restarted"
_CALLS = {STARTED: "start", STOPPED: "stop", RESTARTED: "restart", "reloaded": "reload"}
_REACHED = {STARTED: ("active", "reloading", "refreshing"), STOPPED: ("inactive", "failed")}
# The task of Proxmox VE refuses to stop these on any node (Services.pm, essential_services).
_ESSENTIAL = ("pveproxy", "pvedaemon", "pve-cluster")
_OF_THE_CLUSTER = "corosync"
Row = Mapping[str, Any]


def run(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Start, stop, restart or reload a service of a node; check mode writes nothing."""
    node, name, state = validate.node(params["node"]), params["name"], params["state"]
    label = f"service {name} of node {node}"
    is_local = False
    if state == STOPPED and name == _OF_THE_CLUSTER:
        rows = client.get("cluster", "status", attempted="Could not read the nodes") or []
        is_local = any(row.get("local") and str(row["name"]) == node for row in rows)
    if state == STOPPED:
        require_stoppable(name, label, is_local=is_local)

    def read() -> PlannedStep:
        return plan_service(node, find_service(_read(client, node), node, name), state)

    return run_planned(client, label, read, check_mode)


def run_info(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Return the services of a node; one request. Nothing is written."""
    node = validate.node(params["node"])
    found = [describe_service(node, row) for row in _read(client, node)]
    return Result(False, {"services": sorted(found, key=lambda one: str(one["name"]))})


def _read(client: Api, node: str) -> list[Row]:
    attempted = f"Could not read the services of node {node}"
    return client.get("nodes", node, "services", attempted=attempted) or []


def describe_service(node: str, row: Row) -> dict[str, Any]:
    """Return a service as results show it (pure)."""
    return {
        "node": node,
        "name": row["service"],
        "description": row.get("desc"),
        "state": row.get("state"),
        "active_state": row.get("active-state"),
        "unit_state": row.get("unit-state"),
    }


def require_stoppable(name: str, label: str, *, is_local: bool) -> None:
    """Raise Conflict for a service that the API needs (pure)."""
    if name in _ESSENTIAL or (name == _OF_THE_CLUSTER and is_local):
        raise Conflict(
            f"Refused to stop {label}: the API needs it, and the answer to this task would be lost",
            "Use state=restarted, or stop it in a shell of the node",
            "essential service",
        )


def find_service(rows: Iterable[Row], node: str, name: str) -> Row:
    """Return a service that is installed (pure). Raises NotFound."""
    installed = {str(row["service"]): row for row in rows if row.get("unit-state") != "not-found"}
    if name not in installed:
        names = ", ".join(sorted(installed)) or "no services"
        raise NotFound(
            f"Could not read service {name} of node {node}: the node has "
            f"{names}{did_you_mean(name, installed)}",
            "Name one of them; Proxmox VE manages no others",
            "unknown service",
        )
    return installed[name]


def plan_service(node: str, row: Row, state: str) -> PlannedStep:
    """Return the plan for a service (pure). Raises Conflict for a masked service."""
    before = describe_service(node, row)
    repeats = state not in _REACHED
    if not repeats and before["active_state"] in _REACHED[state]:
        return PlannedStep(Plan(), {"service": before})
    name, call = str(before["name"]), _CALLS[state]
    summary = f"{call.capitalize()} service {name} of node {node}"
    if state != STOPPED and before["unit_state"] in ("masked", "masked-runtime"):
        raise Conflict(
            f"Refused to {call} service {name} of node {node}: it is masked",
            "Unmask it in a shell of the node: systemctl unmask",
            "masked service",
        )
    active, sub_state = ("inactive", "dead") if state == STOPPED else ("active", "running")
    after = {**before, "active_state": active, "state": sub_state}
    step = Step(call, summary, "POST", ("nodes", node, "services", name, call))
    plan = Plan((step,), _compared(before), _compared(after))
    return PlannedStep(plan, {"service": after}, WorkerTask(node, f"srv{call}", name), repeats)


def _compared(service: Row) -> dict[str, Any]:
    return {"active_state": service["active_state"]}
