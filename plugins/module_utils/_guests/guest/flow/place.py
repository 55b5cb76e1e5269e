# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Chooses the node of a guest: of a new one, again from a newer reading, and of an existing one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ...._foundation.api.settings import ConnectionSettings
from ...._foundation.cluster.bridges import choose_with_bridges
from ...._foundation.cluster.placement import (
    NodeChoice,
    PlacementNeeds,
    require_hardware,
    require_node,
    why_not,
)
from ...._foundation.cluster.rules import PlacementRules, find_unmatched
from ...._foundation.cluster.site import require_own_node
from ...._foundation.cluster.state import ClusterState, with_names
from ...._foundation.cluster.storages.allocation import with_allocations
from ...._foundation.cluster.tenant import owns
from ...kinds.model import Actual, Guest
from ..plan.copies import Nodes, choose_copy, image_of, nearest, require_alike, why_copy
from ..plan.intent import AnyIntent, Intent
from .reads import GuestReads


def choose_place(
    reads: GuestReads, intent: Intent[Any], needs: PlacementNeeds, cluster: ClusterState
) -> NodeChoice:
    """Return the node of a new guest: the node that the task names, or a chosen node."""
    connection, guest = reads.client.connection, intent.guest
    choice = _fixed_place(intent, cluster, connection)
    if choice is not None:
        if guest.state != "started":
            needs = replace(needs, devices={})
        needs = reads.bridges.with_devices(needs)
        needs = reads.bridges.with_cards(needs, choice.node, cluster)
        require_hardware(cluster, choice.node, needs)
        return choice
    rules = _rules_of(intent, connection)
    if rules.needs_names:
        cluster = with_names(reads.client, cluster)
    cluster = with_allocations(reads.client, cluster, needs.room, guest.kind.content)
    choice = choose_with_bridges(cluster, needs, rules, reads.bridges)
    prefix = guest.tenant_prefix
    others = [row for row in cluster.guests if owns(guest.tenant_tag, row.tags, prefix)]
    unmatched = find_unmatched(rules, others, guest.name or "", guest.own_tags)
    return replace(choice, warnings=unmatched)


def _fixed_place(
    intent: Intent[Any], cluster: ClusterState, connection: ConnectionSettings
) -> NodeChoice | None:
    """Return the node that the task or the connection names, None if one must be chosen."""
    if intent.guest.node:
        return NodeChoice(intent.guest.node, reasons=("node names it",))
    default = connection.node
    if not default or _is_tied(intent):
        return None
    require_node(cluster, default)
    require_own_node(connection, default)
    if intent.guest.rules.given:
        return None
    return NodeChoice(default, reasons=("it is the default node of the connection",))


def _rules_of(intent: Intent[Any], connection: ConnectionSettings) -> PlacementRules:
    """Return the rules for the choice of the node, with the nodes that the connection names."""
    rules = intent.guest.rules
    if rules.nodes:
        return rules
    if connection.node and not _is_tied(intent):
        return replace(rules, nodes=(connection.node,))
    if connection.preferred_nodes:
        return replace(rules, nodes=connection.preferred_nodes)
    return rules


def _is_tied(intent: Intent[Any]) -> bool:
    """Return whether the source can be used on some nodes only."""
    return intent.source is not None and intent.source.nodes is not None


def place(
    reads: GuestReads,
    intent: AnyIntent,
    cluster: ClusterState,
    needs_of: Callable[[AnyIntent], PlacementNeeds],
    from_copy: Callable[[Actual], AnyIntent],
) -> AnyIntent:
    """Return a new guest on its node, as a clone of the copy of its template that this node uses.

    `needs_of` returns the needs of the guest, `from_copy` makes it a clone of another copy. The
    reasons of the choice name the copy.
    """
    choice = choose_place(reads, intent, needs_of(intent), cluster)
    copies, first = intent.source.copies if intent.source else (), choice
    if not copies:
        return replace(intent, choice=choice)
    copy = nearest(copies, choice.node, cluster.shared_storages)
    if intent.template is None or intent.template.vmid != copy.vmid:
        intent = from_copy(copy)
        choice = choose_place(reads, intent, needs_of(intent), cluster)
    reasons = first.reasons if first.node == choice.node else choice.reasons
    reasons = (*reasons, why_copy(copy, copies))
    choice = NodeChoice(choice.node, first.refused, reasons, first.warnings)
    return replace(intent, choice=choice)


def from_one_of(
    reads: GuestReads,
    copies: Sequence[Actual],
    desired: Guest,
    cluster: ClusterState,
    nodes_of: Callable[[Actual], Nodes],
    clone: Callable[[Actual], AnyIntent],
) -> AnyIntent:
    """Return a clone of the only guest, or of one of several copies of a template. `nodes_of`
    returns the nodes on which a clone of a copy can be made. Raises Conflict for unlike copies.
    """
    if len(copies) == 1 and not image_of(copies[0]).version:
        return clone(copies[0])
    name = desired.source.name if desired.source is not None else None
    require_alike(name or "", copies)
    default, shared = reads.client.default_node, cluster.shared_storages
    copy, nodes = choose_copy(copies, desired, default, shared, nodes_of)
    return clone(copy).with_source(nodes=nodes, copies=tuple(copies))


def place_again(
    reads: GuestReads, intent: AnyIntent, needs: PlacementNeeds, cluster: ClusterState
) -> AnyIntent:
    """Return a new guest on its node in a newer cluster state: the same node if it still fits."""
    guest = intent.guest
    if guest.node or intent.node not in cluster.nodes:
        require_node(cluster, intent.node)
    cluster = with_allocations(reads.client, cluster, needs.room, guest.kind.content)
    if guest.node or why_not(cluster, intent.node, needs, guest.rules) is None:
        return intent
    return replace(intent, choice=choose_place(reads, intent, needs, cluster))


def keep_or_choose_node(
    reads: GuestReads, intent: AnyIntent, needs: PlacementNeeds, cluster: ClusterState
) -> AnyIntent:
    """Return the intent with the node of an existing guest; unchanged if no choice is needed.

    It stays on its node as long as that meets every constraint; a preference alone moves nothing.
    """
    desired, actual = intent.guest, intent.start
    needs = replace(needs, like=actual.node)
    if intent.boots or intent.moves or desired.rebalance:
        node = desired.node or actual.node
        needs = reads.bridges.with_cards(reads.bridges.with_devices(needs), node, cluster)
        if desired.node or not desired.rebalance:
            require_hardware(cluster, node, needs)
    if desired.node:
        return intent.at(NodeChoice(desired.node, reasons=("node names it",)))
    if not desired.rebalance:
        return intent
    if desired.rules.needs_names:
        cluster = with_names(reads.client, cluster)
    others = _without(cluster, actual)
    here = why_not(others, actual.node, needs, desired.rules)
    if here is None:
        reason = "it is there, and every constraint holds"
        return intent.at(NodeChoice(actual.node, reasons=(reason,)))
    choice = choose_with_bridges(others, needs, desired.rules, reads.bridges)
    reason = f"{actual.node} is no longer fit: {here}"
    return intent.at(replace(choice, reasons=(reason, *choice.reasons)))


def _without(cluster: ClusterState, actual: Actual) -> ClusterState:
    """Return the cluster state without the memory of the guest on its node: it moves with it."""
    node = cluster.nodes.get(actual.node)
    if node is None or not actual.running:
        return cluster
    memory = actual.kind.figures_of(actual.live).memory
    remaining = replace(node, memory_used=max(0, node.memory_used - memory))
    return replace(cluster, nodes={**cluster.nodes, node.node: remaining})
