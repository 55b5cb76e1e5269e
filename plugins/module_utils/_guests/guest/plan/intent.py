# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A guest on its way from its present to its desired configuration, the facts that its plan needs,
and the moves of its volumes around a migration (pure).

A new guest is a guest whose present configuration is the copy of its source. Its node and its VMID
are filled in on the way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeAlias, TypeVar

from ...._foundation.cluster.placement import Bridges, NodeChoice, PlacementNeeds, require_storage
from ...._foundation.cluster.quota import QuotaFigures
from ...._foundation.cluster.state import ClusterState
from ...._foundation.core.errors import NotSupported
from ...kinds.config.change import ConfigChange, DriveChange, Relocation
from ...kinds.hardware import AnyDesired, Snippet
from ...kinds.kind import Kind, NicMtu
from ...kinds.model import Actual, Guest
from ..create.placement_race import is_name_contested, shared_rules
from ..create.quota_race import QuotaGrowth, TenantUsage, growth_of
from ..plan import power
from .capacity import Capacity, Definitions, added, moved_bytes, new_bytes
from .copies import is_shared
from .refusals import PoolOwner
from .steps import changes_pool, moves_node

# The numbers of a version of PVE, such as (9, 2, 11).
Release: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class DiskImage:
    """An ISO or image of a disk, as its node lists it."""

    volume: str
    exists: bool
    others: tuple[str, ...] = ()  # the images that the node has, if this one is missing
    size: int = 0  # in bytes, of an image that is imported


@dataclass(frozen=True)
class SeenSnippet:
    """A snippet that a VM uses: the files of its directory, and the list of its node."""

    volume: str
    written: Snippet | None  # user data that the task writes to this volume
    before: frozenset[str]  # files of its directory before the node was asked
    listed: frozenset[str] | None  # files that the node lists; None if that cannot be seen
    after: frozenset[str]  # files of its directory after that

    @property
    def name(self) -> str:
        """The name of the file."""
        _storage, _colon, path = self.volume.partition(":")
        return path.rpartition("/")[2]


@dataclass(frozen=True)
class Facts:
    """The answers of the cluster before the plan of a guest is decided."""

    cluster: ClusterState
    release: Release | None = None
    bridges: frozenset[str] | None = None  # bridges of the guest's node
    mtus: Mapping[str, int] = field(default_factory=dict)  # of its bridges, if a NIC has one
    # comments of the pools that the caller may see, by name
    pools: Mapping[str, str] | None = None
    pool_owner: PoolOwner | None = None  # if the guest's pool is another tenant's
    usage: TenantUsage | None = None  # the figures of the tenant's guests
    may_hide_pool: bool = False  # whether the guest may be in a pool that the caller cannot see
    # definitions of storages, if a storage class asks for thin or thick disks
    definitions: Definitions = field(default_factory=dict)
    missing: tuple[str, ...] = ()  # volumes that the node does not list
    images: Mapping[str, DiskImage] = field(default_factory=dict)  # by volume
    sizes: Mapping[str, int] = field(default_factory=dict)  # bytes that new disks import, by slot
    snippets: tuple[SeenSnippet, ...] = ()
    # volumes by snapshot; without volumes of unchanged disks
    snapshots: Mapping[str, frozenset[str]] | None = None
    migration: Mapping[str, Any] | None = None  # PVE's answer about a move (GET .../migrate)
    keeps_connections: bool = False  # whether both nodes can migrate tracked connections
    known_bridges: Bridges = field(default_factory=dict)  # by node

    @property
    def siblings(self) -> frozenset[int]:
        """The guests of the tenant, if there is a quota."""
        return frozenset(self.usage.owned) if self.usage is not None else frozenset()


@dataclass(frozen=True)
class Source:
    """The source of a new guest: a guest, an archive, the file of a template, or nothing."""

    template: Actual | None = None  # the guest to clone
    volume: str = ""  # the archive that is restored, or the file of a template
    archived: Mapping[str, str] | None = None  # the configuration in an archive
    full: bool = True
    nodes: frozenset[str] | None = None  # nodes on which the source can be used, None: any
    home: str = ""  # the node of the guest from which the archive was made
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
    def first_node(self) -> str:
        """The node that must have its volumes: the present one, or the node of a new guest."""
        return self.start.node or self.node

    @property
    def present(self) -> Mapping[str, str]:
        """The present configuration of an existing guest; empty for a new guest."""
        return self.start.target if self.source is None else {}

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
    def is_settled(self) -> bool:
        """Whether an existing guest keeps its configuration, node, pool and power state, so that no
        node, quota or server can refuse it.
        """
        guest, start = self.guest, self.start
        if self.source is not None or self.uses_node or self.new_pool is not None:
            return False
        return guest.state != "template" and power.status_after(guest, start) == start.status

    @property
    def starts(self) -> bool:
        """Whether the guest is off and will run."""
        return power.will_start(self.guest) and not self.start.running

    @property
    def restarts(self) -> bool:
        """Whether the guest runs, and may restart with another configuration."""
        differs = self.start.running and self.after != self.start.live
        return differs and power.reboots(self.guest, waiting=True)

    @property
    def boots(self) -> bool:
        """Whether PVE looks for the devices of the guest: it starts, moves while it runs, or
        restarts with other devices.
        """
        if self.starts or self.moves or not self.start.running:
            return self.starts or (self.moves and self.start.running)
        kind, live = self.kind, self.start.live
        is_same = kind.cards_in(self.after) == kind.cards_in(live)
        is_same = is_same and kind.devices_in(self.after) <= kind.devices_in(live)
        return self.restarts and not is_same

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
    def contested(self) -> bool:
        """Whether guests of other runs can break the rules for its quota, place or name."""
        if self.guest.limits is not None or is_name_contested(self.guest):
            return True
        return shared_rules(self.guest) is not None

    @property
    def can_be_placed_again(self) -> bool:
        """Whether another node can be chosen: images and ISOs were checked on this node only."""
        return not any(disk.import_from or disk.volume for disk in self.desired.hardware.disks)

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
            networks={} if guest.isolation is None else guest.isolation.networks,
            devices=dict.fromkeys(self.kind.devices_in(self.after)),
            cards=self.kind.cards_in(self.after) if self.boots else (),
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

    def with_source(self: AnyIntent, **changes: Any) -> AnyIntent:
        """Return a new guest with other values of its source."""
        return replace(self, source=replace(self.source or Source(), **changes))

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
        _require_clonable(intent, cluster)
        return intent
    created = drives.storages.keys() - set(drives.moved.values())
    for storage in sorted(created):
        require_storage(cluster, storage, actual.node, drives.storages[storage])
    relocation = relocate(actual, drives, intent.node, cluster)
    require_relocatable(actual, relocation, intent.node, cluster)
    relocation = replace(relocation, keeps_connections=facts.keeps_connections)
    return replace(intent, change=replace(intent.change, relocation=relocation))


def _require_clonable(intent: Intent[Any], cluster: ClusterState) -> None:
    """Raise NotSupported for a clone on another node than its source, if a node lacks a storage
    while the plan needs it.

    A clone with local volumes is created and changed beside its source, and then migrates. Any
    other clone is created on its own node, and a volume moves there from the storage of its source.
    """
    source, drives = intent.template, intent.change.drives
    if source is None or source.node == intent.node:
        return
    shared = cluster.shared_storages
    node, storages = source.node, set(drives.storages)
    step = "The clone is created there and migrates: name storages of both nodes, or leave node out"
    if is_shared(source, shared):
        node = intent.node
        volumes = {
            slot: volume.partition(":")[0]
            for slot, volume in source.kind.volumes_in(source.target).items()
            if slot not in drives.gone and not slot.startswith("unused")
        }
        targets = {drives.moved.get(slot, storage) for slot, storage in volumes.items()}
        is_copied_at_once = len(targets) == 1 and targets <= shared
        storages = targets if is_copied_at_once else set(volumes.values())
        step = "Name a node that has it, or one shared storage of that node for all volumes"
    missing = sorted(storages - _storages_on(cluster, node))
    if missing:
        raise NotSupported(
            f"{intent.label} could not be planned as a clone of {source.label}: node {node} lacks "
            f"storage {', '.join(missing)}",
            step,
            "cannot clone",
            details={"node": node, "storages": missing},
        )


def relocate(actual: Actual, change: DriveChange, node: str, cluster: ClusterState) -> Relocation:
    """Return the moves of a guest that migrates to a node.

    A volume moves before the migration if the migration needs that, or if it then needs no copy.
    """
    volumes = dict(actual.kind.volumes_in(actual.target))
    if not actual.running:
        volumes = {slot: name for slot, name in volumes.items() if slot not in change.removed}
    present = {slot: volume.partition(":")[0] for slot, volume in volumes.items()}
    old, new = _storages_on(cluster, actual.node), _storages_on(cluster, node)
    shared = cluster.shared_storages
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    mapped: dict[str, str] = {}
    mapped_slots: set[str] = set()
    stuck: dict[str, str] = {}
    for slot, storage in sorted(present.items()):
        wanted = change.moved.get(slot)
        if wanted in old and (wanted in shared or storage not in new):
            before[slot] = str(wanted)
        elif storage in new:
            if wanted:
                after[slot] = wanted
        elif wanted and storage not in shared:
            mapped_slots.add(slot)
            if mapped.setdefault(storage, wanted) != wanted:
                after[slot] = wanted
        else:
            stuck[slot] = storage
    for slot, storage in list(stuck.items()):
        if slot.startswith("unused") and storage in mapped:
            del stuck[slot]
    left = frozenset(present[slot] for slot in before) | mapped.keys()
    left -= set(stuck.values())
    return Relocation(before, after, mapped, frozenset(mapped_slots), left, stuck)


def _storages_on(cluster: ClusterState, node: str) -> frozenset[str]:
    """Return the storages that a node has."""
    return frozenset(row.storage for row in cluster.storages if row.node == node)


def require_relocatable(
    actual: Actual, relocation: Relocation, node: str, cluster: ClusterState
) -> None:
    """Raise NotSupported for volumes that would have no storage on the new node, and for a map that
    the HA manager would ignore.
    """
    attempted = f"{actual.label} could not be planned to move to node {node}"
    if relocation.stuck:
        missing = [f"{storage} ({slot})" for slot, storage in relocation.stuck.items()]
        raise NotSupported(
            f"{attempted}: node {node} lacks storage {', '.join(missing)}",
            "Set a storage of the new node for these volumes; a volume on a shared"
            " storage needs a storage of both nodes",
            "cannot migrate",
            details={"volumes": dict(relocation.stuck), "node": node},
        )
    rows = [row for row in cluster.guests if row.vmid == actual.vmid]
    if relocation.mapped and any(row.managed for row in rows):
        raise NotSupported(
            f"{attempted}: the HA manager migrates it, and ignores other storages of the new "
            f"node: {relocation.storage_map}",
            "Move the volumes to a storage that both nodes have, or remove its HA"
            " resource: pve.fleet.ha_resource",
            "cannot migrate",
        )
