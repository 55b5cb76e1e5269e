# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stages of a new guest between desired and planned: blueprint, placed, with a VMID (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ...._foundation.api.settings import ConnectionSettings
from ...._foundation.cluster.placement import (
    NodeChoice,
    PlacementNeeds,
    require_node,
    require_room,
    why_not,
)
from ...._foundation.cluster.quota import QuotaFigures
from ...._foundation.cluster.rules import PlacementRules
from ...._foundation.cluster.site import require_own_node
from ...._foundation.cluster.state import ClusterState
from ...._foundation.cluster.vmids import advice
from ...._foundation.resource.plan import Plan
from ...kinds.config.change import ConfigChange
from ...kinds.hardware import AnyDesired
from ...kinds.model import Actual
from ..create.placement_race import is_name_contested, shared_rules
from ..create.quota_race import QuotaGrowth, TenantUsage, require_quota
from ..plan.capacity import new_bytes
from ..plan.creation import Creation

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class GuestOrigin(Generic[AnyDesired]):
    """The source of a new guest: the part that kinds share."""

    desired: AnyDesired  # with the additions of the source
    template: Actual | None = None  # the guest to clone
    volume: str = ""  # the archive that is restored, or the file of a template
    archived: Mapping[str, str] | None = None  # the configuration in an archive
    full: bool = True
    nodes: frozenset[str] | None = None  # nodes on which the source can be used, None: any
    copies: tuple[Actual, ...] = ()  # templates of the same name, if there are several

    @property
    def config(self) -> Mapping[str, str]:
        """The configuration that is copied; empty without a template or an archive."""
        if self.template is not None:
            return self.template.target
        return self.archived or {}


AnyBlueprint = TypeVar("AnyBlueprint", bound="GuestBlueprint[Any]")
AnyOrigin = TypeVar("AnyOrigin", bound=GuestOrigin[Any])


@dataclass(frozen=True)
class GuestBlueprint(Generic[AnyOrigin]):
    """The configuration that a new guest will have on any node: the part that kinds share.

    `change` turns an empty guest, or the copy of the template, into the desired guest.
    """

    origin: AnyOrigin
    change: ConfigChange
    config: Mapping[str, str]

    @property
    def desired(self) -> Any:
        return self.origin.desired

    @property
    def nodes(self) -> frozenset[str] | None:
        return self.origin.nodes

    @property
    def template(self) -> Actual | None:
        return self.origin.template

    @property
    def copies(self) -> tuple[Actual, ...]:
        return self.origin.copies

    @property
    def label(self) -> str:
        """The name of the guest in messages."""
        return f"New {self.desired.guest.label}"

    @property
    def bridges(self) -> frozenset[str]:
        """The bridges that the node of the guest must have."""
        return frozenset(self.desired.guest.kind.bridges_in(self.config).values())

    def room(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Return the bytes that the creation of the guest allocates, by storage.

        A linked clone allocates its new disks only. `sizes` are the bytes of images, by slot.
        """
        kind, origin = self.desired.guest.kind, self.origin
        copied = origin.archived is not None or (origin.template is not None and origin.full)
        return new_bytes(kind, origin.config, self.config, sizes, copied=copied)

    def needs(self, sizes: Mapping[str, int]) -> PlacementNeeds:
        """Return the needs of the guest on its node."""
        raise NotImplementedError

    def needs_on(
        self, node: str, sizes: Mapping[str, int], shared: frozenset[str]
    ) -> PlacementNeeds:
        """Return the same for a node; a linked clone becomes a full copy on another node."""
        raise NotImplementedError


@dataclass(frozen=True)
class PlacedGuest(Generic[AnyBlueprint]):
    """A new guest whose node was chosen, after every check that needs no write."""

    blueprint: AnyBlueprint
    choice: NodeChoice
    needs: PlacementNeeds
    images: Mapping[str, int]  # bytes of the images that its disks import, by slot
    change: ConfigChange  # with the sizes of the images
    shared: frozenset[str]  # storages that all nodes share
    bases: frozenset[str]  # storages on which disks of a template become base volumes
    figures: QuotaFigures  # its figures for a quota
    known: frozenset[int]  # all guests that existed before
    siblings: frozenset[int] = frozenset()  # guests of its tenant, if there is a quota
    bridges: Mapping[str, frozenset[str] | None] = field(default_factory=dict)  # by node
    warnings: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()  # warnings about names that only the server can judge

    @property
    def desired(self) -> Any:
        return self.blueprint.desired

    @property
    def node(self) -> str:
        return self.choice.node

    @property
    def contested(self) -> bool:
        """Whether guests of other runs can break the rules for its quota, place or name."""
        guest = self.desired.guest
        if guest.limits is not None or is_name_contested(guest):
            return True
        return shared_rules(guest) is not None


@dataclass(frozen=True)
class NumberedGuest(Generic[AnyBlueprint]):
    """A new guest with its VMID and its plan; `plan_of` makes the plan for another VMID."""

    placed: PlacedGuest[AnyBlueprint]
    vmid: int
    plan: Plan
    run: str  # marks the guest as made by this run until it is complete
    identity: str  # the uuid it gets, unless it is a clone
    plan_of: Callable[[PlacedGuest[AnyBlueprint], Creation], Plan]

    @property
    def desired(self) -> Any:
        return self.placed.desired

    @property
    def node(self) -> str:
        return self.placed.node

    def on(self, placed: PlacedGuest[AnyBlueprint]) -> NumberedGuest[AnyBlueprint]:
        """Return the guest with the same VMID, placed again."""
        return self._with_vmid(placed, self.vmid)

    def with_vmid(self, vmid: int) -> NumberedGuest[AnyBlueprint]:
        """Return the guest with another VMID."""
        return self._with_vmid(self.placed, vmid)

    def _with_vmid(
        self, placed: PlacedGuest[AnyBlueprint], vmid: int
    ) -> NumberedGuest[AnyBlueprint]:
        return with_vmid(placed, vmid, self.plan_of, run=self.run, identity=self.identity)


def with_vmid(
    placed: PlacedGuest[AnyBlueprint],
    vmid: int,
    plan_of: Callable[[PlacedGuest[AnyBlueprint], Creation], Plan],
    *,
    run: str,
    identity: str,
) -> NumberedGuest[AnyBlueprint]:
    """Return the guest with that VMID and the plan for it."""
    desired = placed.desired.guest
    plan = plan_of(placed, Creation(vmid, placed.node, run, identity, placed.contested))
    warnings = [*plan.warnings]
    if desired.vmid is not None:
        warnings += filter(None, [advice(vmid, desired.vmid_ranges)])
    warnings += placed.warnings
    plan = replace(plan, warnings=tuple(warnings))
    return NumberedGuest(placed, vmid, plan, run, identity, plan_of)


def fixed_place(
    blueprint: GuestBlueprint[Any], cluster: ClusterState, connection: ConnectionSettings
) -> NodeChoice | None:
    """Return the node that the task or the connection names, None if one must be chosen."""
    if blueprint.desired.guest.node:
        return NodeChoice(blueprint.desired.guest.node, reasons=("node names it",))
    default = connection.node
    if not default or blueprint.nodes is not None:
        return None
    require_node(cluster, default)
    require_own_node(connection, default)
    if blueprint.desired.guest.rules.given:
        return None
    return NodeChoice(default, reasons=("it is the default node of the connection",))


def rules_of(blueprint: GuestBlueprint[Any], connection: ConnectionSettings) -> PlacementRules:
    """Return the rules for the choice of the node, with the nodes that the connection names."""
    rules: PlacementRules = blueprint.desired.guest.rules
    if rules.nodes:
        return rules
    if connection.node and blueprint.nodes is None:
        return replace(rules, nodes=(connection.node,))
    if connection.preferred_nodes:
        return replace(rules, nodes=connection.preferred_nodes)
    return rules


def require_room_for(
    blueprint: GuestBlueprint[Any], node: str, sizes: Mapping[str, int], cluster: ClusterState
) -> None:
    """Raise QuotaExceeded if a node has no room for the guest.

    A clone that moves to another node first needs room on the template's node.
    """
    template, shared = blueprint.template, cluster.shared_storages
    rules = blueprint.desired.guest.rules
    if template is not None and template.node != node:
        needs = blueprint.needs(sizes)
        local = {storage: size for storage, size in needs.room.items() if storage not in shared}
        first = replace(needs, running_memory=0, room=local)
        require_room(cluster, template.node, first, rules, blueprint.label)
    require_room(cluster, node, blueprint.needs_on(node, sizes, shared), rules, blueprint.label)


def require_node_exists(placed: PlacedGuest[Any], cluster: ClusterState) -> None:
    """Raise FleetError if the named or chosen node is gone or offline."""
    if placed.desired.guest.node or placed.node not in cluster.nodes:
        require_node(cluster, placed.node)


def still_fits(placed: PlacedGuest[Any], cluster: ClusterState) -> bool:
    """Return whether the guest still fits on its node in a newer cluster state."""
    desired = placed.desired.guest
    if desired.node:
        return True
    return why_not(cluster, placed.node, placed.needs, desired.rules) is None


def placed_again(
    placed: PlacedGuest[AnyBlueprint],
    choice: NodeChoice,
    usage: TenantUsage | None,
    cluster: ClusterState,
) -> PlacedGuest[AnyBlueprint]:
    """Return the guest on a node that was chosen or confirmed from a newer cluster state.

    Raises QuotaExceeded if its tenant has used up the quota in the meantime.
    """
    growth = QuotaGrowth(QuotaFigures(), placed.figures)
    siblings = require_quota(placed.desired.guest, placed.blueprint.label, growth, usage, cluster)
    return replace(placed, choice=choice, siblings=siblings)


def can_be_placed_again(placed: PlacedGuest[Any]) -> bool:
    """Return whether another node can be chosen: images and ISOs were checked on this node only."""
    return not any(disk.import_from or disk.volume for disk in placed.desired.hardware.disks)
