# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The changes of a task on an existing guest, and the facts that its plan needs (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeAlias, TypeVar

from ...._foundation.cluster.placement import NodeChoice, PlacementNeeds, require_storage
from ...._foundation.cluster.state import ClusterState
from ...._foundation.resource.plan import Plan
from ...kinds.config.change import ConfigChange
from ...kinds.hardware import AnyDesired
from ...kinds.model import Actual, Guest
from ...kinds.nics import NicMtu
from ..create.quota_race import QuotaGrowth, TenantUsage
from ..plan import power
from ..plan.allocation import Definitions
from ..plan.capacity import Capacity, added, moved_bytes, new_bytes
from ..plan.relocation import relocate, require_relocatable
from ..plan.steps import changes_pool, moves_node

AnyIntent = TypeVar("AnyIntent", bound="GuestIntent[Any]")
# The numbers of a version of PVE, such as (9, 2, 11).
Release: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class GuestFacts:
    """The answers of the cluster before the plan of any guest is decided.

    A fact that the desired guest does not need is not read, and is None or empty.
    """

    cluster: ClusterState
    release: Release | None = None
    bridges: frozenset[str] | None = None  # bridges of the guest's node
    mtus: Mapping[str, int] = field(default_factory=dict)  # of its bridges, if a NIC has one
    pools: frozenset[str] | None = None  # pools that the caller may see
    usage: TenantUsage | None = None  # the figures of the tenant's guests
    may_hide_pool: bool = False  # whether the guest may be in a pool that the caller cannot see
    # definitions of storages, if a storage class asks for thin or thick disks
    definitions: Definitions = field(default_factory=dict)


@dataclass(frozen=True)
class GuestIntent(Generic[AnyDesired]):
    """The change of an existing guest, and the configuration after it."""

    desired: AnyDesired
    actual: Actual
    change: ConfigChange
    after: Mapping[str, str]
    growth: QuotaGrowth | None = None  # by how much it grows, if its tenant has a quota
    choice: NodeChoice | None = field(
        default=None, kw_only=True
    )  # its future node, and the reasons

    @property
    def node(self) -> str:
        """The node of the guest after the change."""
        return self.desired.guest.node or self.actual.node

    @property
    def moves(self) -> bool:
        """Whether the guest moves to another node."""
        return moves_node(self.desired.guest, self.actual)

    @property
    def uses_node(self) -> bool:
        """Whether the change needs anything of the node."""
        return self.moves or bool(self.change.keys)

    @property
    def starts(self) -> bool:
        """Whether the guest is off and will run."""
        return power.will_start(self.desired.guest) and not self.actual.running

    @property
    def needs_power(self) -> bool:
        """Whether the plan needs the current power state, and only the listing's is known."""
        if not self.actual.listed:
            return False
        is_stale = self.actual.marker.stale
        return self.uses_node or self.desired.guest.reboot != "never" or is_stale

    @property
    def bridges(self) -> frozenset[str]:
        """The bridges that the node must have."""
        if not self.uses_node:
            return frozenset()
        return frozenset(self.actual.kind.bridges_in(self.change.sets).values())

    @property
    def mtus(self) -> Sequence[NicMtu]:
        """The MTUs that the bridges of the node must have: of changed NICs, and of all NICs of a
        guest that moves.
        """
        return self.actual.kind.mtus_in(self.after if self.moves else self.change.sets)

    @property
    def new_pool(self) -> str | None:
        """The pool that the guest is put into."""
        if not changes_pool(self.desired.guest, self.actual):
            return None
        return self.desired.guest.pool

    @property
    def may_leave_pool(self) -> bool:
        """Whether the guest must be in no pool, and the listing shows none."""
        return self.desired.guest.pool == "" and not self.actual.pool

    @property
    def needs_memory(self) -> bool:
        """Whether the guest needs memory on its node that it does not use there yet."""
        return self.starts or (self.moves and self.actual.running)

    def room(self, sizes: Mapping[str, int], cluster: ClusterState) -> dict[str, int]:
        """Return the needed bytes by storage; `sizes` are the bytes of images by slot."""
        kind = self.actual.kind
        room = new_bytes(kind, self.actual.target, self.after, sizes)
        if not self.moves:
            return room
        shared = {name: room[name] for name in room.keys() & cluster.shared_storages}
        return added(shared, moved_bytes(kind, self.after, cluster.shared_storages))

    def capacity_on_node(self, room: Mapping[str, int]) -> Capacity:
        """Return the room that the guest needs on its node beyond its room in the listing."""
        return Capacity(self.node, self._memory if self.needs_memory else 0, room)

    def needs_room(self, room: Mapping[str, int]) -> PlacementNeeds:
        """Return the room that the node must have."""
        before = self.actual.kind.figures_of(self.actual.target).memory
        grows = self.actual.running and self._memory > before
        running = self._memory if self.needs_memory or grows else 0
        return PlacementNeeds(running_memory=running, room=room, label=self.actual.label)

    @property
    def _memory(self) -> int:
        return self.actual.kind.figures_of(self.after).memory

    def at(self: AnyIntent, choice: NodeChoice) -> AnyIntent:
        """Return the intent with the node that was chosen."""
        return replace(self, desired=self.desired.with_guest(node=choice.node), choice=choice)


@dataclass(frozen=True)
class DecidedPlan:
    """The plan of an existing guest, and the room that the guest needs."""

    plan: Plan
    taken: Capacity
    images: Mapping[str, int] = field(default_factory=dict)  # bytes that new disks import, by slot
    unverified: tuple[str, ...] = ()  # warnings about names that only the server can judge


def hidden_pool(intent: GuestIntent[Any], facts: GuestFacts) -> tuple[str, ...]:
    """Return a warning if the guest must be in no pool and its pool may be hidden."""
    if not facts.may_hide_pool:
        return ()
    cause = "the token has no Pool.Audit on /pool"
    return (f"{intent.actual.label}: {cause}, so a pool that it is in may be hidden",)


def must_leave(desired: Guest, actual: Actual) -> bool:
    """Return whether the guest cannot stay on its node, before its new node is chosen (pure)."""
    if desired.state == "absent":
        return False
    is_excluded = desired.rebalance and actual.node in desired.rules.exclude
    return is_excluded or moves_node(desired, actual)


def with_relocation(intent: AnyIntent, cluster: ClusterState) -> AnyIntent:
    """Return the intent with the moves of volumes around the migration, if the guest moves.

    Raises FleetError for volumes that would have no storage on a node while the plan needs it.
    """
    actual, drives = intent.actual, intent.change.drives
    if not intent.moves:
        return intent
    created = drives.storages.keys() - set(drives.moved.values())
    for storage in sorted(created):
        require_storage(cluster, storage, actual.node, drives.storages[storage])
    relocation = relocate(actual, drives, intent.node, cluster)
    require_relocatable(actual, relocation, intent.node, cluster)
    return replace(intent, change=replace(intent.change, relocation=relocation))
