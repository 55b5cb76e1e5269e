# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module node_info: one listing for all nodes, and one request a node for details."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.rules import ratio, read_max_vms
from ..._foundation.core import validate
from ..._foundation.core.arguments.options import did_you_mean
from ..._foundation.core.errors import ConfigurationError
from ..._foundation.core.quantities import MIB, parse_size
from ..._foundation.core.result import Result
from ..._foundation.core.times import iso
from .nodes import CapacityRules, NodeFacts, report, with_details
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
    listed = [row for row in rows if row.get("type") == "node"] or read.rows("nodes", "nodes")
    node_rows = {row["node"]: row for row in listed}
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
    if details:  # no request goes to an offline node
        online = [one["node"] for one in nodes if one["status"] != "offline"]
        answers = read.each("status", online, "status")
        reasons = read.reasons("status")
        nodes = [
            with_details(one, answers.get(one["node"]), reasons.get(one["node"]), rules)
            for one in nodes
        ]
    values = {
        "nodes": nodes,
        "quorate": cluster["quorate"],
        "missing": read.missing,
        "checked": iso(client.clock.time()),
    }
    return Result(False, values, warnings=read.warnings)


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
            f"Could not read the facts of node '{node}': the cluster has "
            f"{existing}{did_you_mean(node, known)}",
            "Name one of its nodes",
            "unknown node",
        )
    return [node]
