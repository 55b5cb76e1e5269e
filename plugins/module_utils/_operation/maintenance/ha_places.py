# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The nodes to which the HA manager lets a resource move, and on which it keeps it (pure).

Source: pve-ha-manager, PVE/HA/Manager.pm (select_service_node) and PVE/HA/Rules/NodeAffinity.pm:
the manager takes the nodes of the highest priority, and returns a resource with failback to them
as soon as one of them is online. Up to Proxmox VE 8 a group has these settings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..._infrastructure.datacenter.table import CRS
from .model import HaManagerState, NodeRule

_BALANCING = frozenset(("static", "dynamic"))
_DEAD = frozenset(("fence", "recovery", "error"))


def nodes_of(text: str) -> dict[str, int]:
    """Return the priorities of the nodes of a rule, such as C(pve1:2,pve2)."""
    found: dict[str, int] = {}
    for item in filter(None, text.split(",")):
        name, _colon, rank = item.partition(":")
        found[name.strip()] = int(rank) if rank.isdigit() else 0
    return found


def ha_state_of(
    manager: Mapping[str, Any],
    current: Iterable[Mapping[str, Any]],
    resources: Iterable[Mapping[str, Any]],
    rules: Iterable[Mapping[str, Any]],
    groups: Iterable[Mapping[str, Any]],
    cluster: Collection[str],
) -> HaManagerState:
    """Return the state of the HA manager from PVE's answers; `cluster` are all nodes."""
    status = manager.get("manager_status") or {}
    services = {
        str(row["sid"]): str(row.get("state") or "")
        for row in current
        if row.get("type") == "service"
    }
    listed = list(resources)
    places = {**_places_of_groups(listed, groups), **_places_of_rules(rules, cluster)}
    no_failback = {str(row["sid"]) for row in listed if row.get("failback") in (0, False)}
    no_failback |= _without_failback(listed, groups)
    return HaManagerState(
        nodes=status.get("node_status") or {},
        services=services,
        places=places,
        together=_together(rules),
        no_failback=frozenset(no_failback),
    )


def is_balancing(crs: str | None) -> bool:
    """Return whether the manager moves resources to balance the nodes, from PVE's option crs.

    Source: pve-ha-manager 5.2.0, PVE/HA/Manager.pm (load_balance): it returns at once without
    ha-auto-rebalance, and with any scheduler but static and dynamic. Without ha-auto-rebalance, a
    dynamic scheduler only chooses the node of a resource that starts or must leave its node.
    """
    options = CRS.read(crs)
    return options.get("ha-auto-rebalance") == "1" and options.get("ha") in _BALANCING


def _places_of_rules(
    rules: Iterable[Mapping[str, Any]], cluster: Collection[str]
) -> dict[str, NodeRule]:
    """Return the nodes of each resource. The HA manager converts a rule with negative affinity into
    a rule with all other nodes of the cluster (PVE/HA/Rules/NodeAffinity.pm since PVE 9.2.6).
    """
    found: dict[str, NodeRule] = {}
    for rule in rules:
        if rule.get("type") != "node-affinity" or rule.get("disable"):
            continue
        nodes = nodes_of(str(rule.get("nodes") or ""))
        if rule.get("affinity") == "negative":
            nodes = dict.fromkeys(set(cluster) - nodes.keys(), 0)
        if not nodes:
            continue  # the HA manager drops a rule without nodes
        place = NodeRule(str(rule["rule"]), nodes, bool(rule.get("strict")))
        found.update(dict.fromkeys(_resources(rule), place))
    return found


def _resources(rule: Mapping[str, Any]) -> list[str]:
    names = str(rule.get("resources") or "").split(",")
    return [name.strip() for name in names if name.strip()]


def _places_of_groups(
    resources: Iterable[Mapping[str, Any]], groups: Iterable[Mapping[str, Any]]
) -> dict[str, NodeRule]:
    by_name = {str(group["group"]): group for group in groups}
    found: dict[str, NodeRule] = {}
    for row in resources:
        group = by_name.get(str(row.get("group") or ""))
        if group is not None:
            nodes = nodes_of(str(group.get("nodes") or ""))
            restricted = bool(group.get("restricted"))
            found[str(row["sid"])] = NodeRule(str(group["group"]), nodes, restricted)
    return found


def _without_failback(
    resources: Iterable[Mapping[str, Any]], groups: Iterable[Mapping[str, Any]]
) -> set[str]:
    names = {str(group["group"]) for group in groups if group.get("nofailback")}
    return {str(row["sid"]) for row in resources if row.get("group") in names}


def _together(rules: Iterable[Mapping[str, Any]]) -> dict[str, frozenset[str]]:
    """Return the resources that must run on the same node as a resource, by its ID."""
    found: dict[str, frozenset[str]] = {}
    for rule in rules:
        is_positive = rule.get("affinity") == "positive" and not rule.get("disable")
        if rule.get("type") == "resource-affinity" and is_positive:
            names = frozenset(_resources(rule))
            for name in names:
                found[name] = found.get(name, frozenset()) | names
    return found


def faulty(state: HaManagerState) -> list[str]:
    """Return a sentence about each node and resource in a failed state of the HA manager."""
    named = {f"node {name}": word for name, word in state.nodes.items()} | dict(state.services)
    return [f"{name} is in state {word}" for name, word in named.items() if word in _DEAD]


def why_kept(state: HaManagerState, sid: str, node: str) -> str | None:
    """Return why the manager would return a resource to its node at once, or None."""
    place = state.places.get(sid)
    if place is None or sid in state.no_failback or node not in place.nodes:
        return None
    best = max(place.nodes.values())
    others = [one for one, rank in place.nodes.items() if rank == best and one != node]
    if place.nodes[node] < best or others:
        return None
    return f"the HA manager would return it at once: {place.name} prefers node {node}"


def excluded(state: HaManagerState, sid: str, node: str, nodes: Collection[str]) -> set[str]:
    """Return the nodes to which a resource cannot move, or from which it would be returned."""
    place = state.places.get(sid)
    if place is None:
        return set()
    allowed = set(nodes)
    if place.strict:
        allowed = {one for one in nodes if one in place.nodes}
    if sid not in state.no_failback and node in place.nodes:
        best = max(place.nodes.values())
        allowed &= {one for one, rank in place.nodes.items() if rank == best}
    return set(nodes) - allowed
