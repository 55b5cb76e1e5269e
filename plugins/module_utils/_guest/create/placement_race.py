# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A new VM's place as a rule that VMs of other runs can break
(docs/decisions/0010-places-of-several-runs.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..._cluster.placement import Needs, why_not
from ..._cluster.rules import Rules
from ..._cluster.state import ClusterState, with_names
from ..._cluster.view import ClusterView
from ..._core.errors import FleetError, PlaceTaken
from ..._resource.race import RaceReading
from ..kind import Kind
from ..live.creation import is_finished
from ..model import Guest


def shared_rules(desired: Guest) -> Rules | None:
    """Return those rules of a VM that VMs made by others at the same time can break, or None
    (pure).
    """
    if desired.node:
        return None
    rules = replace(desired.rules, nodes=(), exclude=frozenset(), min_free_memory=None)
    if rules.counts_vms:
        return rules
    limits = {rules.cpu_overcommit, rules.memory_overcommit}
    if limits != {None}:
        return rules
    names_others = rules.affinity or rules.anti_affinity
    if names_others and rules.required:
        return rules
    return None


def why_crowded(cluster: ClusterState, node: str, needs: Needs, rules: Rules) -> str | None:
    """Return why a VM should not be on the node it is on, as far as other VMs are the reason, or
    None (pure).
    """
    if node not in cluster.nodes or not cluster.nodes[node].online:
        return None
    needs = replace(needs, storages={}, only=None, cpus=0)
    return why_not(cluster, node, needs, rules)


@dataclass(frozen=True)
class PlacementRule:
    """A new VM runs on a node that its rules allow. `needs` has its number."""

    cluster_view: ClusterView
    kind: Kind
    rules: Rules
    needs: Needs
    node: str
    label: str
    known: frozenset[int]

    @property
    def vmid(self) -> int:
        return self.needs.vmid or 0

    def read(self) -> RaceReading:
        client = self.cluster_view.client
        cluster = self.cluster_view.now()
        if self.rules.needs_names:
            cluster = with_names(client, cluster)

        def find_breach(guests: Mapping[int, Any]) -> str | None:
            beside = replace(cluster, vms=guests, others={})
            return why_crowded(beside, self.node, self.needs, self.rules)

        everyone = {row.vmid: row for row in cluster.guests}
        return RaceReading(
            everyone, find_breach, lambda vmid: is_finished(client, self.kind, everyone[vmid])
        )

    def removed(self, breach: str) -> FleetError:
        return PlaceTaken(
            attempted=f"{self.label} was removed again",
            answer=f"another run took its place: {breach}",
            next_step="Run this again: the node is chosen again",
            reason="place taken",
            details={"removed": self.vmid},
        )

    def not_removed(self, breach: str, failure: FleetError) -> FleetError:
        return failure.on(
            attempted=(
                f"{self.label} could not be removed again, and is where it should not be ({breach})"
            ),
            next_step="Remove it by hand, or move it: another run took its place",
        )
