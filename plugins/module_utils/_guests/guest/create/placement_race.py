# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The name and the place of a new guest as rules that guests of other runs can break
(docs/decisions/0010-places-of-several-runs.md and 0014-one-number-for-one-name.md).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.find.visible import is_in_use
from ...._foundation.cluster.placement import PlacementNeeds, why_not
from ...._foundation.cluster.rules import PlacementRules
from ...._foundation.cluster.state import VmRow, fetch_cluster_state, query_nodes, with_names
from ...._foundation.cluster.tenant import owns
from ...._foundation.cluster.view import ClusterView
from ...._foundation.core.clock import poll
from ...._foundation.core.errors import Conflict, FleetError, NotFound, PlaceTaken
from ...._foundation.resource.race import RaceReading
from ...kinds.kind import Kind
from ...kinds.marker import owner_tags
from ...kinds.model import Guest
from ..live.creation import is_finished

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


def shared_rules(desired: Guest) -> PlacementRules | None:
    """Return the rules of a VM that VMs of other runs can break, or None (pure)."""
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


@dataclass(frozen=True)
class PlacementRule:
    """A new VM runs on a node that its rules allow. `needs` contains its VMID."""

    cluster_view: ClusterView
    kind: Kind
    rules: PlacementRules
    needs: PlacementNeeds
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
            node = beside.nodes.get(self.node)
            if node is None or not node.online:
                return None
            needs = replace(self.needs, storages={}, only=None, cpus=0)
            return why_not(beside, self.node, needs, self.rules)

        everyone = {row.vmid: row for row in cluster.guests}
        return RaceReading(
            everyone, find_breach, lambda vmid: is_finished(client, self.kind, everyone[vmid])
        )

    def removed(self, breach: str) -> FleetError:
        return PlaceTaken(
            f"{self.label} was removed again: another run took its place: {breach}",
            "Run this again: the node is chosen again",
            "place taken",
            details={"removed": self.vmid},
        )

    def not_removed(self, breach: str, failure: FleetError) -> FleetError:
        return failure.on(
            attempted=(
                f"{self.label} could not be removed again, and is where it should not be ({breach})"
            ),
            next_step="Remove it by hand, or move it: another run took its place",
        )


def is_name_contested(desired: Guest) -> bool:
    """Return whether another run can create a guest of this name with another VMID at the same
    time (pure). If VMIDs follow from names, both runs try the same VMID.
    """
    if not desired.name or desired.tenant_tag is None:
        return False
    return desired.vmid is not None or desired.vmid_choice != "by_name"


def await_visible(client: Client, vmids: Collection[int], seconds: float) -> None:
    """Wait until no guest with one of these VMIDs is hidden: a tenant sees a guest that another
    login creates once it is complete.
    """
    if not vmids:
        return
    for _remaining in poll(client.clock, seconds, longest=1.0):
        rows = client.direct().get("cluster", "resources", type="vm")
        hidden = set(vmids) - {int(row["vmid"]) for row in rows}
        if not any(is_in_use(client, vmid) for vmid in hidden):
            return


@dataclass(frozen=True)
class NameRule:
    """No two guests of a tenant have the same name. `known` are the guests that existed before."""

    client: Client
    desired: Guest
    label: str
    vmid: int
    known: frozenset[int]

    def read(self) -> RaceReading:
        cluster = fetch_cluster_state(self.client, {self.desired.kind.type})
        types = frozenset(row.type for row in cluster.guests)
        both = {**cluster.vms, **cluster.others}
        cluster = replace(cluster, vms=both, others={}, types=types)
        nodes: set[str] = set()
        for row in both.values():
            is_new = row.vmid not in self.known or not row.own_name
            if is_new and row.vmid != self.vmid:
                nodes.add(row.node)
        cluster = query_nodes(self.client, cluster, nodes)
        namesakes = {row.vmid: row for row in cluster.vms.values() if self._is_namesake(row)}

        def find_breach(guests: Mapping[int, VmRow]) -> VmRow | None:
            return next(iter(guests.values()), None)

        return RaceReading(
            namesakes,
            find_breach,
            lambda vmid: is_finished(self.client, self.desired.kind, namesakes[vmid]),
        )

    def _is_namesake(self, row: VmRow) -> bool:
        """Return whether a guest of the tenant has the name, and this run does not remove it."""
        if row.vmid == self.vmid or row.vmid in self.desired.leaving:
            return False
        if row.name != self.desired.name:
            return False
        return owns(self.desired.tenant_tag, self._owners_of(row), self.desired.tenant_prefix)

    def _owners_of(self, row: VmRow) -> tuple[str, ...]:
        """Return the tags of a guest; until a run has finished it, its notes name the tenant."""
        try:
            config = self.client.get(*row.path, "config")
        except NotFound:
            return row.tags
        return owner_tags(config, self.desired.tenant_prefix)

    def removed(self, breach: VmRow) -> FleetError:
        step = "Run this again: it continues with that guest"
        if breach.type != self.desired.kind.type:
            step = "Both kinds share the names of a tenant: choose another name"
        return Conflict(
            f"{self.label} was removed again: another run created a {self._noun(breach)} of that "
            f"name: {breach.vmid} on node {breach.node}",
            step,
            "name taken",
            details={"removed": self.vmid},
        )

    def not_removed(self, breach: VmRow, failure: FleetError) -> FleetError:
        return failure.on(
            attempted=f"{self.label} could not be removed again, and {self._noun(breach)}"
            f" {breach.vmid} has the same name",
            next_step="Remove one of them by hand",
        )

    def _noun(self, row: VmRow) -> str:
        kind = self.desired.kind
        return kind.noun if row.type == kind.type else kind.other.noun
