# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the facts that the plan of a guest needs, and chooses the node of an existing guest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...._foundation.cluster.bridges import choose_with_bridges
from ...._foundation.cluster.placement import NodeChoice, PlacementNeeds, require_hardware, why_not
from ...._foundation.cluster.state import ClusterState, with_names
from ...._foundation.cluster.storages.allocation import with_allocations
from ...kinds.hardware import AnyDesired
from ...kinds.model import Actual
from ..actual import with_power
from ..create.quota_race import gather_usage
from ..plan.allocation import needs_definitions
from .facts import Facts
from .intent import AnyIntent, Intent
from .reads import GuestReads


def keep_or_choose_node(
    reads: GuestReads, intent: AnyIntent, needs: PlacementNeeds, cluster: ClusterState
) -> AnyIntent:
    """Return the intent with the node of an existing guest; unchanged if no choice is needed.

    It stays on its node as long as that meets every constraint; a preference alone moves nothing.
    """
    desired, actual = intent.guest, intent.start
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
    actual = intent.start
    if not intent.needs_power:
        return intent
    current: dict[str, Any] = reads.client.get(*actual.path, "status", "current")
    return replace(intent, start=with_power(actual, current))


def gather(
    reads: GuestReads,
    intent: Intent[AnyDesired],
    cluster: ClusterState,
    read_more: Callable[[GuestReads, Intent[AnyDesired], Facts], Facts],
) -> Facts:
    """Return the facts for the plan; each is read only if the guest needs it.

    `read_more` adds the facts that only the kind of the guest needs.
    """
    node, desired = intent.node, intent.desired
    facts = Facts(
        cluster,
        bridges=reads.bridges_on(node, intent.bridges),
        mtus=reads.mtus_on(node, intent.mtus),
    )
    facts = read_more(reads, intent, facts)
    if intent.checks_migration:
        start = intent.start
        answer = reads.migration(start, node)
        keeps = start.running and reads.keeps_connections(start, answer, node)
        facts = replace(facts, migration=answer, keeps_connections=keeps)
    if needs_definitions(desired, intent.before, cluster):
        facts = replace(facts, definitions=reads.definitions())
    if intent.new_pool and intent.new_pool not in cluster.pools:
        facts = replace(facts, pools=reads.pools())
    if intent.may_leave_pool:
        facts = replace(facts, may_hide_pool=reads.may_hide_pools())
    growth = intent.growth(facts.sizes)
    if growth is not None and growth.is_limited(intent.guest):
        facts = replace(facts, usage=gather_usage(reads.client, intent.guest, cluster))
    room = intent.room(facts.sizes, cluster)
    allocated = with_allocations(reads.client, cluster, room, intent.kind.content)
    return replace(facts, cluster=allocated, known_bridges=reads.bridges.by_node)


def _without(cluster: ClusterState, actual: Actual) -> ClusterState:
    """Return the cluster state without the memory of the guest on its node: it moves with it."""
    node = cluster.nodes.get(actual.node)
    if node is None or not actual.running:
        return cluster
    memory = actual.kind.figures_of(actual.live).memory
    remaining = replace(node, memory_used=max(0, node.memory_used - memory))
    return replace(cluster, nodes={**cluster.nodes, node.node: remaining})
