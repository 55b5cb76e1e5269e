# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Chooses the node of a new guest, and chooses it again from a newer reading."""

from __future__ import annotations

from collections.abc import Callable
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
from ...kinds.model import Actual
from ..plan.copies import nearest, why_copy
from .intent import AnyIntent, Intent
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
        require_hardware(cluster, choice.node, reads.bridges.with_devices(needs))
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
