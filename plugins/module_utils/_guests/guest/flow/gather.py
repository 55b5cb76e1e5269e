# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the facts that the plan of any existing guest needs, and chooses its node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from ...._foundation.cluster.bridges import choose_with_bridges
from ...._foundation.cluster.placement import NodeChoice, PlacementNeeds, require_hardware, why_not
from ...._foundation.cluster.state import ClusterState, with_names
from ...kinds.model import Actual
from ..actual import with_power
from ..create.quota_race import gather_usage
from .intent import AnyIntent, GuestFacts, GuestIntent
from .reads import GuestReads

AnyFacts = TypeVar("AnyFacts", bound=GuestFacts)


def keep_or_choose_node(
    reads: GuestReads, intent: AnyIntent, needs: PlacementNeeds, cluster: ClusterState
) -> AnyIntent:
    """Return the intent with the node of an existing guest; unchanged if no choice is needed.

    It stays on its node as long as that meets every constraint; a preference alone moves nothing.
    """
    desired, actual = intent.desired.guest, intent.actual
    needs = replace(needs, like=actual.node)
    if not (intent.starts or intent.moves or desired.rebalance):
        needs = replace(needs, devices={})
    needs = reads.bridges.with_devices(needs)
    if desired.node or not desired.rebalance:
        require_hardware(cluster, desired.node or actual.node, needs)
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


def with_current_power(reads: GuestReads, intent: AnyIntent) -> AnyIntent:
    """Return the intent with the current power state, if the plan may depend on it."""
    actual = intent.actual
    if not intent.needs_power:
        return intent
    current: dict[str, Any] = reads.client.get(*actual.path, "status", "current")
    return replace(intent, actual=with_power(actual, current))


def gather_shared(reads: GuestReads, intent: GuestIntent[Any], facts: AnyFacts) -> AnyFacts:
    """Add the facts about pools and the quota to `facts`, each only if the change needs it."""
    if intent.new_pool and intent.new_pool not in facts.cluster.pools:
        facts = replace(facts, pools=reads.pools())
    if intent.may_leave_pool:
        facts = replace(facts, may_hide_pool=reads.may_hide_pools())
    desired = intent.desired.guest
    if intent.growth is not None and intent.growth.is_limited(desired):
        facts = replace(facts, usage=gather_usage(reads.client, desired, facts.cluster))
    return facts


def _without(cluster: ClusterState, actual: Actual) -> ClusterState:
    """Return the cluster state without the memory of the guest on its node: it moves with it."""
    node = cluster.nodes.get(actual.node)
    if node is None or not actual.running:
        return cluster
    memory = actual.kind.figures_of(actual.live).memory
    remaining = replace(node, memory_used=max(0, node.memory_used - memory))
    return replace(cluster, nodes={**cluster.nodes, node.node: remaining})
