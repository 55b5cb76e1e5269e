# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module node_info: a listing for all nodes, and one request more for each only when asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._cluster.rules import ratio
from .._core import validate
from .._core.errors import ConfigurationError
from .._core.quantities import MIB, parse_size
from .._core.result import Result
from .._core.times import iso
from .nodes import Facts, Rules, report, with_details
from .parts import Parts, node_states, standing

if TYPE_CHECKING:
    from .._api.client import Client


def gather(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the nodes, sorted by name. Nothing is written, in check mode or out of it.

    Four requests, one more where the caller may not see the nodes in the listing, and with details, or for a node that
    is named, one a node. Raises ConfigurationError for a node that the cluster does not have.
    """
    rules = read_rules(params)
    if params.get("node"):
        validate.node(params["node"])
    parts = Parts(client)
    version = (parts.read("version", "version", vital=True) or {}).get("version")
    rows = parts.read("listing of the cluster", "cluster", "resources") or []
    cluster = standing(parts.read("cluster status", "cluster", "status"))
    states = node_states(parts.read("HA manager's status", "cluster", "ha", "status", "manager_status"), rows)
    own = {row["node"]: row for row in rows if row.get("type") == "node"}
    if not own:
        own = {row["node"]: row for row in parts.read("nodes", "nodes") or []}
    known = sorted(own.keys() | cluster["members"].keys())
    nodes: list[dict[str, Any]] = []
    for node in _wanted(params.get("node"), known):
        member = cluster["members"].get(node, {})
        local = member.get("local") or (len(known) == 1)
        facts = Facts(member, states.get(node), version if local else None, cluster["quorate"])
        nodes.append(report(node, own.get(node, {}), rows, facts, rules))
    details = params.get("details")
    if details or (details is None and params.get("node")):
        nodes = _detailed(parts, nodes, rules)
    values = {"nodes": nodes, "quorate": cluster["quorate"], "missing": parts.missing, "checked": _now(client)}
    return Result(False, values, warnings=parts.warnings)


def read_rules(params: Mapping[str, Any]) -> Rules:
    """Return the placement rules that the options say. Raises ValidationFailed."""
    free, most = params.get("min_free_memory"), params.get("max_vms_per_node")
    usual = Rules()
    return Rules(
        cpu_overcommit=ratio(params.get("cpu_overcommit"), "cpu_overcommit") or usual.cpu_overcommit,
        memory_overcommit=ratio(params.get("memory_overcommit"), "memory_overcommit") or usual.memory_overcommit,
        min_free_memory=None if free is None else parse_size(free, bare=MIB, what="min_free_memory"),
        max_vms=None if most is None else validate.number(most, 1, 100000, "max_vms_per_node"),
        memory_warn=_percent(params, "memory_warn", usual.memory_warn),
        storage_warn=_percent(params, "storage_warn", usual.storage_warn),
    )


def _percent(params: Mapping[str, Any], option: str, usual: int) -> int:
    value = params.get(option)
    return usual if value is None else validate.number(value, 1, 100, option)


def _wanted(node: str | None, known: list[str]) -> list[str]:
    if node is None:
        return known
    if node not in known:
        raise ConfigurationError(
            attempted=f"Could not tell about node '{node}'",
            answer=f"the cluster has {', '.join(known) or 'no node that the caller may see'}",
            next_step="Name one of its nodes",
            reason="unknown node",
        )
    return [node]


def _detailed(parts: Parts, nodes: list[dict[str, Any]], rules: Rules) -> list[dict[str, Any]]:
    answers = parts.each("status", [one["node"] for one in nodes if one["status"] != "offline"], "status")
    why = {
        row["part"].rpartition(" ")[2]: row["reason"] for row in parts.missing if row["part"].startswith("status of")
    }
    return [with_details(one, answers.get(one["node"]), why.get(one["node"]), rules) for one in nodes]


def _now(client: Client) -> str | None:
    return iso(client.clock.time())
