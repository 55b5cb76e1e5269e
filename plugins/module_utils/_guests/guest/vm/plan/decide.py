# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decides about new and existing VMs from facts: refusals first, then the plan (pure)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ....._foundation.api.settings import ConnectionSettings
from ....._foundation.cluster.placement import (
    NodeChoice,
    PlacementNeeds,
    require_node,
    require_room,
)
from ....._foundation.cluster.quota import QuotaFigures
from ....._foundation.cluster.site import require_own_bridges, require_own_storages
from ....._foundation.cluster.state import ClusterState
from ....._foundation.cluster.storages.allocation import base_storages
from ....._foundation.core.errors import ValidationFailed
from ....._foundation.resource.plan import Plan
from ....._foundation.schema.formats import parse_option, render_option
from ....kinds.config.change import ConfigChange
from ....kinds.config.update import applied
from ....kinds.model import Actual
from ....kinds.vm.config.actual import (
    FIRMWARE,
    bridges_of,
    drives,
    is_cloud_init,
    is_disk,
    storage_of,
)
from ....kinds.vm.config.changes import changes, with_images
from ....kinds.vm.config.figures import cores_of, cpus_of, figures_of, memory_of
from ....kinds.vm.kind import VM
from ....kinds.vm.model import DesiredVm
from ...create.quota_race import QuotaGrowth, require_quota
from ...flow.intent import DecidedPlan, hidden_pool, with_relocation
from ...flow.placed import GuestBlueprint, PlacedGuest, require_room_for
from ...plan import creation as creations
from ...plan.allocation import require_allocation
from ...plan.capacity import added, moved_bytes
from ...plan.creation import LIVE, Creation, RestoreSource
from ...plan.refusals import (
    remark_on_similar,
    require_bridges,
    require_mtus,
    require_pool,
    require_template_wanted,
)
from .clone import archived_vm, clone_of, restored_of
from .facts import VmFacts
from .intent import VmIntent, snippets_of
from .origin import VmOrigin
from .refusals.disks import (
    image_sizes,
    require_images,
    require_no_snapshots,
    require_own_volumes,
    require_snippets,
    with_new_volumes,
)
from .refusals.move import require_movable
from .refusals.options import require_rights_of_root, require_version
from .refusals.place import require_cpus, require_snippet_storages, require_storages
from .snippets import with_snippet
from .update import VM_PLANNER, plan_change


def needs_of(
    desired: DesiredVm, config: Mapping[str, str], change: ConfigChange, *, vmid: int | None = None
) -> PlacementNeeds:
    """Return the needs of a VM with this configuration on its node."""
    storages: dict[str, str] = {}
    for slot, drive in drives(config).items():
        if slot in change.gone:
            continue
        is_allocated = is_disk(drive) or is_cloud_init(drive)
        storage = storage_of(drive) or "/"
        is_path = storage.startswith("/")
        if is_allocated and not is_path:
            storages[storage] = "images"
    storages.update(change.drives.storages)
    memory = memory_of(config)
    cpus = 0
    running_memory = 0
    if desired.guest.state == "started":
        cpus = cpus_of(config)
        running_memory = memory
    return PlacementNeeds(
        storages=storages,
        memory=memory,
        cores=cores_of(config),
        cpus=cpus,
        running_memory=running_memory,
        bridges=frozenset(bridges_of(config).values()),
        devices=dict.fromkeys(VM.devices_in(config)),
        arch=config.get("arch", ""),
        vmid=vmid,
        tenant_tag=desired.guest.tenant_tag,
        prefix=desired.guest.tenant_prefix,
        label=desired.guest.name or str(vmid or ""),
    )


@dataclass(frozen=True)
class VmBlueprint(GuestBlueprint[VmOrigin]):
    """The configuration that a new VM will have on any node."""

    @property
    def snippets(self) -> frozenset[str]:
        """The volumes of the snippets that its node must see."""
        if "cicustom" not in self.desired.hardware.property_strings:
            return frozenset()
        return snippets_of(self.config)

    @property
    def options(self) -> Mapping[str, str]:
        """The options that its server must know: PVE leaves others out when it restores a VM."""
        return {**(self.origin.archived or {}), **self.change.sets}

    def figures(self, sizes: Mapping[str, int]) -> QuotaFigures:
        """Return the figures of the VM for a quota."""
        return figures_of(self.config, sizes, template=self.desired.guest.state == "template")

    def needs(self, sizes: Mapping[str, int]) -> PlacementNeeds:
        needs = needs_of(self.desired, self.config, self.change)
        template = self.origin.template
        like = template.node if template is not None else ""
        return replace(needs, only=self.origin.nodes, room=self.room(sizes), like=like)

    def needs_on(
        self, node: str, sizes: Mapping[str, int], shared: frozenset[str]
    ) -> PlacementNeeds:
        needs, template = self.needs(sizes), self.origin.template
        if template is None or template.node == node or self.origin.full:
            return needs
        return replace(needs, room=added(needs.room, moved_bytes(VM, template.target, shared)))


def require_creatable(desired: DesiredVm, cluster: ClusterState) -> None:
    """Raise FleetError for a VM that cannot be created, as far as the task and the listing show."""
    if not desired.guest.name and desired.guest.source is None and not desired.hardware.disks:
        raise ValidationFailed(
            attempted=f"{desired.guest.label} was not created",
            answer="there is no such VM, and the task does not describe one",
            next_step="Check the vmid, or give name and source or disks",
            reason="unknown VM",
        )
    if desired.guest.node:
        require_node(cluster, desired.guest.node)
    _require_content(desired, cluster)
    require_own_volumes(desired, cluster)


def _require_content(desired: DesiredVm, cluster: ClusterState) -> None:
    """Raise ValidationFailed for a VM with neither a source nor a disk that the task does not call
    blank: usually the name of an existing VM is misspelt.
    """
    guest = desired.guest
    slots = {disk.slot for disk in desired.hardware.disks if disk.state == "present"}
    if guest.blank or guest.source is not None or slots - set(FIRMWARE):
        return
    raise ValidationFailed(
        attempted=f"{guest.label} was not created",
        answer="there is no such VM, and the task has neither source nor disks"
        f"{remark_on_similar(guest, cluster)}",
        next_step="Correct name and tenant, add source or disks, or set blank=true for an empty VM",
        reason="blank",
    )


def blueprint_of(origin: VmOrigin) -> VmBlueprint:
    """Return the configuration that a VM of this origin will have.

    Raises FleetError for options that no change can set.
    """
    start = _start_of(origin)
    change = changes(origin.desired, start, new=not start)
    return VmBlueprint(origin, change, applied(change, start, VM))


def _start_of(origin: VmOrigin) -> Mapping[str, str]:
    """Return the configuration that PVE creates from the source; empty without a source."""
    template = origin.template
    data = {"description": "", "name": origin.desired.guest.name}
    if origin.archived is not None:
        restored = {**data, "storage": origin.storage, "unique": 1}
        return restored_of(archived_vm(origin.config), vmid=0, node="", data=restored).target
    if template is None:
        return {}
    return clone_of(template, vmid=template.vmid, node=template.node, data=data).target


def require_allowed(blueprint: VmBlueprint, connection: ConnectionSettings) -> None:
    """Raise FleetError for storages and bridges that the site may not use."""
    needs = blueprint.needs({})
    require_own_storages(connection, needs.storages)
    require_own_bridges(connection, needs.bridges)


def require_usable(
    blueprint: VmBlueprint, node: str, cluster: ClusterState, connection: ConnectionSettings
) -> None:
    """Raise FleetError for storages that the node lacks, as far as the listing shows."""
    require_storages(blueprint.change, node, cluster, connection)
    require_snippet_storages(blueprint.snippets, node, cluster)


def placed(
    blueprint: VmBlueprint, choice: NodeChoice, facts: VmFacts, connection: ConnectionSettings
) -> PlacedGuest[VmBlueprint]:
    """Return the VM on its node. Raises FleetError for each refusal."""
    desired, node, cluster = blueprint.desired, choice.node, facts.cluster
    require_version(blueprint.label, blueprint.options, facts.release)
    require_rights_of_root(blueprint.label, blueprint.change, {}, connection)
    require_allocation(desired, blueprint.origin.config, cluster, facts.definitions)
    require_pool(desired.guest.pool, facts.pools)
    require_bridges(blueprint.bridges, facts.bridges, node, connection)
    require_mtus(VM, blueprint.label, VM.mtus_in(blueprint.config), facts.mtus)
    if desired.guest.state == "started":
        require_cpus(blueprint.label, blueprint.config, node, cluster)
    require_images(desired, node, facts.images)
    sizes = image_sizes(desired, facts.images)
    figures = blueprint.figures(sizes)
    require_room_for(blueprint, node, sizes, cluster)
    siblings = require_quota(
        desired.guest, blueprint.label, QuotaGrowth(QuotaFigures(), figures), facts.usage, cluster
    )
    unknown = require_snippets(facts.snippets, node)
    return PlacedGuest(
        blueprint,
        choice,
        blueprint.needs(sizes),
        images=sizes,
        change=with_images(blueprint.change, desired, blueprint.origin.config, sizes),
        shared=cluster.shared_storages,
        bases=base_storages(cluster),
        figures=figures,
        known=frozenset(cluster.taken),
        siblings=siblings,
        warnings=unknown,
    )


def require_possible(
    intent: VmIntent, cluster: ClusterState, connection: ConnectionSettings
) -> None:
    """Raise FleetError for changes that the listing alone shows to be impossible."""
    change = intent.change
    if intent.uses_node:
        require_storages(change, intent.node, cluster, connection)
    require_snippet_storages(intent.snippets, intent.node, cluster)


def decide(intent: VmIntent, facts: VmFacts, connection: ConnectionSettings) -> DecidedPlan:
    """Return the plan from the VM to the desired VM. Raises FleetError for each refusal."""
    intent = with_relocation(intent, facts.cluster)
    desired, actual, change = intent.desired, intent.actual, intent.change
    require_version(actual.label, change.sets, facts.release)
    require_rights_of_root(actual.label, change, actual.target, connection)
    require_allocation(desired, actual.target, facts.cluster, facts.definitions)
    require_pool(intent.new_pool, facts.pools)
    require_bridges(intent.bridges, facts.bridges, intent.node, connection)
    require_mtus(VM, actual.label, intent.mtus, facts.mtus)
    if intent.counts_cpus:
        require_cpus(actual.label, intent.after, intent.node, facts.cluster)
    kinds = {row.storage: row.kind for row in facts.cluster.storages}
    if change.relocation is not None and facts.keeps_connections:
        kept = replace(change.relocation, keeps_connections=True)
        intent = replace(intent, change=replace(change, relocation=kept))
    require_movable(actual, intent.node, kinds, facts.migration, intent.after, change.relocation)
    require_no_snapshots(desired, actual, change, facts.snapshots)
    new = with_new_volumes(desired, actual.target)
    require_images(new, actual.node, facts.images)
    sizes = image_sizes(new, facts.images)
    if intent.growth is not None:
        require_quota(
            desired.guest, actual.label, intent.growth, facts.usage, facts.cluster, actual.vmid
        )
    room = intent.room(sizes, facts.cluster)
    require_room(
        facts.cluster, intent.node, intent.needs_room(room), desired.guest.rules, actual.label
    )
    plan = _plan(intent, facts, sizes)
    require_template_wanted(desired.guest, actual, plan)
    return DecidedPlan(plan, intent.capacity_on_node(room), sizes)


def _plan(intent: VmIntent, facts: VmFacts, sizes: Mapping[str, int]) -> Plan:
    desired, actual = intent.desired, intent.actual
    change = with_images(intent.change, desired, actual.target, sizes)
    storages = facts.cluster.shared_storages
    plan = plan_change(desired, actual, change, shared=storages, bases=base_storages(facts.cluster))
    plan = with_snippet(plan, desired.hardware.snippet, intent.snippet_now, actual, intent.node)
    unknown = require_snippets(facts.snippets, intent.node)
    return replace(plan, warnings=(*plan.warnings, *unknown, *hidden_pool(intent, facts)))


def plan_create(desired: DesiredVm, change: ConfigChange, creation: Creation) -> Plan:
    """Return the plan that creates a VM that is not a clone, with a uuid that this run chose."""
    data = {"smbios1": _with_uuid(change.sets.get("smbios1", ""), creation.identity)}
    return creations.plan_create(VM_PLANNER, desired, change, creation, data)


def _with_uuid(smbios: str, identity: str) -> str:
    """Return smbios1 with that uuid; a desired uuid is written after the creation."""
    values = parse_option("smbios1", smbios)
    values["uuid"] = identity
    return render_option("smbios1", values)


def plan_clone(
    desired: DesiredVm, source: Actual, creation: Creation, *, full: bool, shared: Collection[str]
) -> Plan:
    """Return the plan that clones `source` and makes the clone the desired VM."""
    return creations.plan_clone(VM_PLANNER, desired, source, creation, full=full, shared=shared)


def _plan_restore(desired: DesiredVm, origin: VmOrigin, creation: Creation) -> Plan:
    """Return the plan that restores a VM from an archive, with a uuid and MACs of its own."""
    data: dict[str, Any] = {"archive": origin.volume, "unique": 1}
    if origin.storage:
        data["storage"] = origin.storage
    if desired.guest.source is not None and desired.guest.source.live:
        data[LIVE] = 1
    restore = RestoreSource(origin.volume, data)
    source = archived_vm(origin.config, creation.node)
    return creations.plan_restore(VM_PLANNER, desired, source, creation, restore)


def plan_creation(placed: PlacedGuest[VmBlueprint], creation: Creation) -> Plan:
    """Return the plan that creates a new VM with its node and its VMID."""
    desired, origin = placed.blueprint.desired, placed.blueprint.origin
    if origin.archived is not None:
        return _plan_restore(desired, origin, creation)
    if origin.template is None:
        return plan_create(desired, placed.change, creation)
    return plan_clone(desired, origin.template, creation, full=origin.full, shared=placed.shared)
