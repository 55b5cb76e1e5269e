# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A guest on its way from its present to its desired configuration (pure).

A new guest is a guest whose present configuration is the copy of its source. Its node and its VMID
are filled in on the way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from ...._foundation.cluster.placement import NodeChoice, PlacementNeeds, require_storage
from ...._foundation.cluster.quota import QuotaFigures
from ...._foundation.cluster.state import ClusterState
from ...kinds.config.change import ConfigChange
from ...kinds.hardware import AnyDesired
from ...kinds.kind import Kind
from ...kinds.model import Actual, Guest
from ...kinds.nics import NicMtu
from ..create.placement_race import is_name_contested, shared_rules
from ..create.quota_race import QuotaGrowth, growth_of
from ..plan import power
from ..plan.capacity import Capacity, added, moved_bytes, new_bytes
from ..plan.relocation import relocate, require_relocatable
from ..plan.steps import changes_pool, moves_node
from .facts import Facts


@dataclass(frozen=True)
class Creation:
    """The VMID and the node of a new guest, and the signs by which its run recognizes it.

    `identity` is the uuid of the guest, by which it is recognized if the answer is lost; PVE
    chooses the uuid of a clone, and a container has none. `run` marks the guest as created by this
    run until it is complete; if it is `contested`, until its quota and place were checked against
    guests of other runs.
    """

    vmid: int
    node: str
    run: str
    identity: str = ""
    contested: bool = False


@dataclass(frozen=True)
class Source:
    """The source of a new guest: a guest, an archive, the file of a template, or nothing."""

    template: Actual | None = None  # the guest to clone
    volume: str = ""  # the archive that is restored, or the file of a template
    archived: Mapping[str, str] | None = None  # the configuration in an archive
    storage: str | None = None  # of all disks of a restore, None: each disk keeps its storage
    full: bool = True
    nodes: frozenset[str] | None = None  # nodes on which the source can be used, None: any
    copies: tuple[Actual, ...] = ()  # templates of the same name, if there are several

    @property
    def config(self) -> Mapping[str, str]:
        """The configuration that is copied; empty without a template or an archive."""
        if self.template is not None:
            return self.template.target
        return self.archived or {}

    @property
    def is_copied(self) -> bool:
        """Whether PVE copies the disks of the source."""
        return self.archived is not None or (self.template is not None and self.full)

    def is_link_for(self, node: str) -> bool:
        """Return whether a clone on a node is linked to a template on another node."""
        return self.template is not None and not self.full and self.template.node != node

    def archived_guest(self, kind: Kind, node: str) -> Actual:
        """Return the guest in the archive."""
        return Actual(kind, 0, node, "stopped", live=self.config, target=self.config)


@dataclass(frozen=True)
class Intent(Generic[AnyDesired]):
    """The change of a guest, and the configuration after it.

    `start` is the guest as read, or the guest that PVE creates from the `source` of a new guest
    before anything is changed. `run` marks a new guest as created by this run, `identity` is its
    uuid unless it is a clone.
    """

    desired: AnyDesired
    start: Actual
    change: ConfigChange
    after: Mapping[str, str]
    source: Source | None = None  # of a new guest
    choice: NodeChoice | None = None  # its future node, and the reasons
    vmid: int = 0  # of a new guest, once it was chosen
    hidden: frozenset[int] = frozenset()  # hidden guests with the VMIDs that it would have
    run: str = ""
    identity: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def guest(self) -> Guest:
        return self.desired.guest

    @property
    def kind(self) -> Kind:
        return self.start.kind

    @property
    def label(self) -> str:
        """The name of the guest in messages."""
        return self.start.label if self.source is None else f"New {self.guest.label}"

    @property
    def node(self) -> str:
        """The node of the guest after the change."""
        if self.choice is not None:
            return self.choice.node
        return self.guest.node or self.start.node

    @property
    def template(self) -> Actual | None:
        """The guest that is cloned."""
        return None if self.source is None else self.source.template

    @property
    def before(self) -> Mapping[str, str]:
        """The present configuration of the guest or of its source."""
        return self.start.target if self.source is None else self.source.config

    @property
    def moves(self) -> bool:
        """Whether an existing guest moves to another node."""
        return self.source is None and moves_node(self.guest, self.start)

    @property
    def checks_migration(self) -> bool:
        """Whether PVE is asked if it can migrate the guest."""
        return self.moves and checks_migration(self.guest, self.start)

    @property
    def arrives(self) -> bool:
        """Whether the guest is new on its node."""
        return self.source is not None or self.moves

    @property
    def uses_node(self) -> bool:
        """Whether the change needs anything of the node."""
        return self.arrives or bool(self.change.keys)

    @property
    def starts(self) -> bool:
        """Whether the guest is off and will run."""
        return power.will_start(self.guest) and not self.start.running

    @property
    def needs_power(self) -> bool:
        """Whether the plan needs the current power state, and only the listing's is known."""
        if not self.start.listed:
            return False
        is_stale = self.start.marker.stale
        return self.uses_node or self.guest.reboot != "never" or is_stale

    @property
    def bridges(self) -> frozenset[str]:
        """The bridges that the node must have."""
        if not self.uses_node:
            return frozenset()
        config = self.change.sets if self.source is None else self.after
        return frozenset(self.kind.bridges_in(config).values())

    @property
    def mtus(self) -> Sequence[NicMtu]:
        """The MTUs that the bridges of the node must have: of changed NICs, and of all NICs of a
        guest that is new there.
        """
        return self.kind.mtus_in(self.after if self.arrives else self.change.sets)

    @property
    def new_pool(self) -> str | None:
        """The pool that the guest is put into."""
        if not changes_pool(self.guest, self.start):
            return None
        return self.guest.pool

    @property
    def may_leave_pool(self) -> bool:
        """Whether the guest must be in no pool, and the listing shows none."""
        return self.source is None and self.guest.pool == "" and not self.start.pool

    @property
    def contested(self) -> bool:
        """Whether guests of other runs can break the rules for its quota, place or name."""
        if self.guest.limits is not None or is_name_contested(self.guest, self.hidden):
            return True
        return shared_rules(self.guest) is not None

    @property
    def can_be_placed_again(self) -> bool:
        """Whether another node can be chosen: images and ISOs were checked on this node only."""
        return not any(disk.import_from or disk.volume for disk in self.desired.hardware.disks)

    @property
    def creation(self) -> Creation:
        """The VMID and the node of a new guest, and the signs by which its run recognizes it."""
        return Creation(self.vmid, self.node, self.run, self.identity, self.contested)

    @property
    def needs(self) -> PlacementNeeds:
        """The needs of the guest on its node that do not depend on its kind."""
        guest, figures, vmid = self.guest, self.kind.figures_of(self.after), self.start.vmid
        return PlacementNeeds(
            only=None if self.source is None else self.source.nodes,
            memory=figures.memory,
            cores=figures.cores,
            running_memory=figures.memory if guest.state == "started" else 0,
            bridges=frozenset(self.kind.bridges_in(self.after).values()),
            devices=dict.fromkeys(self.kind.devices_in(self.after)),
            vmid=vmid or None,
            tenant_tag=guest.tenant_tag,
            prefix=guest.tenant_prefix,
            label=guest.name or str(vmid or ""),
        )

    @property
    def needs_memory(self) -> bool:
        """Whether the guest needs memory on its node that it does not use there yet."""
        return self.starts or (self.moves and self.start.running)

    def figures(self, sizes: Mapping[str, int]) -> QuotaFigures:
        """Return the figures of a new guest for a quota; `sizes` are bytes of images by slot."""
        is_template = self.guest.state == "template"
        return self.kind.figures_of(self.after, sizes, template=is_template)

    def growth(self, sizes: Mapping[str, int]) -> QuotaGrowth | None:
        """Return by how much the guest grows, None without a quota."""
        if self.guest.limits is None:
            return None
        if self.source is not None:
            return QuotaGrowth(QuotaFigures(), self.figures(sizes))
        return growth_of(self.guest, self.start, self.after)

    def allocated(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Return the bytes of new and of grown volumes by storage; `sizes` are the bytes of images
        by slot. A linked clone allocates its new disks only.
        """
        copied = self.source is not None and self.source.is_copied
        return new_bytes(self.kind, self.before, self.after, sizes, copied=copied)

    def room(self, sizes: Mapping[str, int], cluster: ClusterState) -> dict[str, int]:
        """Return the bytes by storage that the guest needs on its node."""
        room, shared = self.allocated(sizes), cluster.shared_storages
        if self.moves:
            kept = {name: room[name] for name in room.keys() & shared}
            room = added(kept, moved_bytes(self.kind, self.after, shared))
        elif self.source is not None and self.source.is_link_for(self.node):
            # a linked clone becomes a full copy on another node
            room = added(room, moved_bytes(self.kind, self.source.config, shared))
        if self.guest.state == "hibernated" and self.start.running:
            storage, size = self.kind.memory_volume(self.after, cluster, self.node)
            room = added(room, {storage: size})
        return room

    def capacity_on_node(self, room: Mapping[str, int]) -> Capacity:
        """Return the room that the guest needs on its node beyond its room in the listing."""
        return Capacity(self.node, self._memory if self.needs_memory else 0, room)

    def needs_room(self, room: Mapping[str, int]) -> PlacementNeeds:
        """Return the room that the node must have."""
        before = self.kind.figures_of(self.start.target).memory
        grows = self.start.running and self._memory > before
        running = self._memory if self.needs_memory or grows else 0
        return PlacementNeeds(running_memory=running, room=room, label=self.label)

    @property
    def _memory(self) -> int:
        return self.kind.figures_of(self.after).memory

    def at(self: AnyIntent, choice: NodeChoice) -> AnyIntent:
        """Return the intent with the node that was chosen for an existing guest."""
        return replace(self, desired=self.desired.with_guest(node=choice.node), choice=choice)


def checks_migration(guest: Guest, actual: Actual) -> bool:
    """Return whether PVE is asked if a guest can move; the plan refuses a hibernated VM."""
    return guest.kind.checks_migration and guest.migrate and actual.status != "hibernated"


def must_leave(desired: Guest, actual: Actual) -> bool:
    """Return whether the guest cannot stay on its node, before its new node is chosen (pure)."""
    if desired.state == "absent":
        return False
    is_excluded = desired.rebalance and actual.node in desired.rules.exclude
    return is_excluded or moves_node(desired, actual)


AnyIntent = TypeVar("AnyIntent", bound=Intent[Any])


def with_relocation(intent: AnyIntent, facts: Facts) -> AnyIntent:
    """Return the intent with the moves of volumes around the migration, if the guest moves.

    Raises FleetError for volumes that would have no storage on a node while the plan needs it.
    """
    actual, drives, cluster = intent.start, intent.change.drives, facts.cluster
    if not intent.moves:
        return intent
    created = drives.storages.keys() - set(drives.moved.values())
    for storage in sorted(created):
        require_storage(cluster, storage, actual.node, drives.storages[storage])
    relocation = relocate(actual, drives, intent.node, cluster)
    require_relocatable(actual, relocation, intent.node, cluster)
    relocation = replace(relocation, keeps_connections=facts.keeps_connections)
    return replace(intent, change=replace(intent.change, relocation=relocation))
