# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module node_info: one listing for all nodes, and one request a node for details."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.rules import ratio, read_max_vms
from ..._foundation.core import validate
from ..._foundation.core.errors import ConfigurationError
from ..._foundation.core.quantities import MIB, parse_size
from ..._foundation.core.result import Result
from ..._foundation.core.times import iso
from .nodes import CapacityRules, NodeFacts, Row, report, with_details
from .partial_read import PartialRead, node_states, standing

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the nodes, sorted by name. Nothing is written.

    Four requests, and one more if the caller may not see the nodes in the listing. Details need one
    request for each node. Raises ConfigurationError for a node that the cluster does not have.
    """
    rules = read_rules(params)
    name = params.get("node")
    if name:
        validate.node(name)
    read = PartialRead(client)
    cluster_version = read.version()
    rows = read.rows("listing of the cluster", "cluster", "resources")
    cluster = standing(read.read("cluster status", "cluster", "status"))
    manager = read.read("HA manager's status", "cluster", "ha", "status", "manager_status")
    states = node_states(manager, rows)
    node_rows = _node_rows(read, rows)
    members = cluster["members"]
    known = sorted(node_rows.keys() | members.keys())
    nodes: list[dict[str, Any]] = []
    for node in _chosen(name, known):
        member = members.get(node, {})
        is_local = member.get("local") or len(known) == 1
        version = cluster_version if is_local else None
        facts = NodeFacts(member, states.get(node), version, cluster["quorate"])
        nodes.append(report(node, node_rows.get(node, {}), rows, facts, rules))
    details = params.get("details")
    if details is None:
        details = bool(name)
    if details:
        nodes = _detailed(read, nodes, rules)
    values = {
        "nodes": nodes,
        "quorate": cluster["quorate"],
        "missing": read.missing,
        "checked": iso(client.clock.time()),
    }
    return Result(False, values, warnings=read.warnings)


def _node_rows(read: PartialRead, rows: list[Row]) -> dict[str, Row]:
    """Return the rows of the nodes by name, from C(/nodes) if the listing contains none."""
    listed = [row for row in rows if row.get("type") == "node"]
    if not listed:
        listed = read.rows("nodes", "nodes")
    return {row["node"]: row for row in listed}


def read_rules(params: Mapping[str, Any]) -> CapacityRules:
    """Return the placement rules from the options. Raises ValidationFailed."""
    defaults = CapacityRules()
    cpu_overcommit = ratio(params.get("cpu_overcommit"), "cpu_overcommit")
    memory_overcommit = ratio(params.get("memory_overcommit"), "memory_overcommit")
    min_free_memory = params.get("min_free_memory")
    if min_free_memory is not None:
        min_free_memory = parse_size(min_free_memory, bare=MIB, what="min_free_memory")
    max_vms, max_vms_by_node = read_max_vms(params.get("max_vms_per_node"), "max_vms_per_node")
    return CapacityRules(
        cpu_overcommit=cpu_overcommit or defaults.cpu_overcommit,
        memory_overcommit=memory_overcommit or defaults.memory_overcommit,
        min_free_memory=min_free_memory,
        max_vms=max_vms,
        max_vms_by_node=max_vms_by_node,
        memory_warn=_percent(params, "memory_warn", defaults.memory_warn),
        storage_warn=_percent(params, "storage_warn", defaults.storage_warn),
    )


def _percent(params: Mapping[str, Any], option: str, default: int) -> int:
    value = params.get(option)
    if value is None:
        return default
    return validate.number(value, 1, 100, option)


def _chosen(node: str | None, known: list[str]) -> list[str]:
    if node is None:
        return known
    if node not in known:
        existing = ", ".join(known) or "no node that the caller may see"
        raise ConfigurationError(
            attempted=f"Could not read the facts of node '{node}'",
            answer=f"the cluster has {existing}",
            next_step="Name one of its nodes",
            reason="unknown node",
        )
    return [node]


def _detailed(
    read: PartialRead, nodes: list[dict[str, Any]], rules: CapacityRules
) -> list[dict[str, Any]]:
    """Return the nodes with their details; no request goes to an offline node."""
    online = [node["node"] for node in nodes if node["status"] != "offline"]
    answers = read.each("status", online, "status")
    reasons = read.reasons("status")
    detailed = []
    for node in nodes:
        name = node["node"]
        detailed.append(with_details(node, answers.get(name), reasons.get(name), rules))
    return detailed
