# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decides about new and existing containers from facts: refusals first, then the plan (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ....._foundation.api.root import require_root
from ....._foundation.api.settings import ConnectionSettings
from ....._foundation.cluster.placement import (
    NodeChoice,
    PlacementNeeds,
    require_node,
    require_room,
    require_storage,
)
from ....._foundation.cluster.quota import QuotaFigures
from ....._foundation.cluster.site import require_own_bridges, require_own_storages
from ....._foundation.cluster.state import ClusterState
from ....._foundation.cluster.tenant import owns, parse_tags
from ....._foundation.core.errors import NotSupported, PermissionDenied, ValidationFailed
from ....._foundation.resource.plan import Plan
from ....._foundation.schema.check import disputed, find_refusals, taken_by
from ....._foundation.schema.lxc import LXC
from ....._foundation.schema.versions import is_newer
from ....kinds.config.change import ConfigChange
from ....kinds.container.config.actual import is_privileged, mounts, volumes_in
from ....kinds.container.config.figures import cores_of, figures_of, memory_of
from ....kinds.container.config.root_only import root_only
from ....kinds.container.kind import CONTAINER
from ....kinds.container.model import DesiredContainer
from ....kinds.model import Actual, Guest
from ...create.quota_race import QuotaGrowth, growth_of, require_quota
from ...flow.intent import (
    DecidedPlan,
    GuestFacts,
    GuestIntent,
    Release,
    hidden_pool,
    with_relocation,
)
from ...flow.placed import GuestBlueprint, PlacedGuest, require_room_for
from ...plan.allocation import require_allocation
from ...plan.capacity import added, moved_bytes
from ...plan.creation import Creation, RestoreSource, plan_clone, plan_create, plan_restore
from ...plan.origin import require_origin
from ...plan.refusals import (
    raise_for_version,
    require_bridges,
    require_mtus,
    require_pool,
    require_template_wanted,
)
from .origin import ContainerOrigin, is_oci
from .planner import CONTAINER_PLANNER, restore_storage

_OCI_SINCE = (9, 1)
# The architecture of a node for each architecture of a container (pve-container: LXC/Config.pm).
_ARCHITECTURES = {"amd64": "x86_64", "i386": "x86_64", "arm64": "aarch64", "armhf": "aarch64"}
_ARCH_OF_TEMPLATE = re.compile(rf"_({'|'.join(_ARCHITECTURES)})\.")


# -- new containers


@dataclass(frozen=True)
class ContainerBlueprint(GuestBlueprint[ContainerOrigin]):
    """The configuration that a new container will have on any node."""

    @property
    def figures(self) -> QuotaFigures:
        """The figures of the container for a quota."""
        return figures_of(self.config, template=self.desired.guest.state == "template")

    def needs(self, sizes: Mapping[str, int]) -> PlacementNeeds:
        needs = needs_of(self.desired, self.config)
        arch = needs.arch or arch_of_template(self.origin.volume)
        return replace(needs, only=self.nodes, room=self.room(sizes), arch=arch)

    def needs_on(
        self, node: str, sizes: Mapping[str, int], shared: frozenset[str]
    ) -> PlacementNeeds:
        needs, source = self.needs(sizes), self.template
        if source is None or source.node == node:
            return needs
        moved = moved_bytes(CONTAINER, source.target, shared)
        return replace(needs, room=added(needs.room, moved))


def arch_of_template(volume: str) -> str:
    """Return the architecture in the name of a template's file, as nodes have it, or no text."""
    found = _ARCH_OF_TEMPLATE.search(volume)
    return _ARCHITECTURES[found[1]] if found else ""


def needs_of(
    desired: DesiredContainer, config: Mapping[str, str], vmid: int | None = None
) -> PlacementNeeds:
    """Return the needs of a container with this configuration on its node."""
    guest = desired.guest
    storages = {name: "rootdir" for name in CONTAINER.storages_in(config) if name}
    memory = memory_of(config)
    return PlacementNeeds(
        storages=storages,
        memory=memory,
        cores=cores_of(config),
        running_memory=memory if guest.state == "started" else 0,
        bridges=frozenset(CONTAINER.bridges_in(config).values()),
        arch=_ARCHITECTURES.get(config.get("arch", ""), ""),
        vmid=vmid,
        tenant_tag=guest.tenant_tag,
        prefix=guest.tenant_prefix,
        label=guest.name or str(vmid or ""),
    )


def blueprint_of(origin: ContainerOrigin) -> ContainerBlueprint:
    """Return the configuration that a container of this origin will have.

    Raises FleetError for options that no change can set.
    """
    desired = origin.desired
    if not origin.config:
        change = CONTAINER_PLANNER.changes(desired, {}, new=True)
        return ContainerBlueprint(origin, change, CONTAINER_PLANNER.applied(change, {}))
    copy = _copy(origin, vmid=0, node="", description="")
    change = CONTAINER_PLANNER.changes(desired, copy.target)
    return ContainerBlueprint(origin, change, CONTAINER_PLANNER.applied(change, copy.target))


def _copy(origin: ContainerOrigin, *, vmid: int, node: str, description: str) -> Actual:
    """Return the expected copy of the source before it is configured."""
    guest = origin.desired.guest
    source = Actual(CONTAINER, vmid, node, "stopped", live=origin.config, target=origin.config)
    data: dict[str, Any] = {"description": description, "hostname": guest.name}
    if origin.archived is not None:
        data |= {"hostname": guest.name or source.name, "storage": restore_storage(origin.desired)}
    return CONTAINER_PLANNER.clone_of(source, vmid=vmid, node=node, data=data)


def require_allowed(blueprint: ContainerBlueprint, connection: ConnectionSettings) -> None:
    """Raise FleetError for storages and bridges of other sites, and for changes that need root."""
    needs = blueprint.needs({})
    require_own_storages(connection, needs.storages)
    require_own_bridges(connection, needs.bridges)
    require_unprivileged(f"{blueprint.label} was not created", blueprint.desired, blueprint.config)
    if blueprint.origin.archived is not None:
        config = blueprint.origin.archived
        require_restorable(f"{blueprint.label} was not restored", config, connection.login)
    _require_rights_of_root(
        blueprint.label, blueprint.change, blueprint.origin.config, blueprint.config, connection
    )


def placed(
    blueprint: ContainerBlueprint,
    choice: NodeChoice,
    facts: GuestFacts,
    connection: ConnectionSettings,
) -> PlacedGuest[ContainerBlueprint]:
    """Return the container on its node. Raises FleetError for each refusal."""
    guest, node, cluster = blueprint.desired.guest, choice.node, facts.cluster
    require_node(cluster, node)
    for storage, content in sorted(blueprint.needs({}).storages.items()):
        require_storage(cluster, storage, node, content)
    _require_version(blueprint.label, blueprint.change, facts.release)
    _require_oci(blueprint.origin, facts.release)
    require_allocation(blueprint.desired, blueprint.origin.config, cluster, facts.definitions)
    require_pool(guest.pool, facts.pools)
    require_bridges(blueprint.bridges, facts.bridges, node, connection)
    require_mtus(CONTAINER, blueprint.label, CONTAINER.mtus_in(blueprint.config), facts.mtus)
    _require_limited_cores(blueprint.label, guest, {}, blueprint.config)
    figures = blueprint.figures
    require_room_for(blueprint, node, {}, cluster)
    growth = QuotaGrowth(QuotaFigures(), figures)
    siblings = require_quota(guest, blueprint.label, growth, facts.usage, cluster)
    return PlacedGuest(
        blueprint,
        choice,
        blueprint.needs({}),
        images={},
        change=blueprint.change,
        shared=cluster.shared_storages,
        bases=frozenset(),
        figures=figures,
        known=frozenset(cluster.taken),
        siblings=siblings,
        unverified=_unverified_options(blueprint.label, blueprint.change, facts.release),
    )


def plan_creation(placed: PlacedGuest[ContainerBlueprint], creation: Creation) -> Plan:
    """Return the plan that creates a new container with its node and its VMID."""
    desired, origin = placed.blueprint.desired, placed.blueprint.origin
    planner = CONTAINER_PLANNER
    if origin.template is not None:
        full, shared = origin.full, placed.shared
        return plan_clone(planner, desired, origin.template, creation, full=full, shared=shared)
    data: dict[str, Any] = {"ostemplate": origin.volume}
    if origin.archived is None:
        if desired.hardware.password:
            data["password"] = desired.hardware.password
        if desired.hardware.ssh_keys:
            data["ssh-public-keys"] = "\n".join(desired.hardware.ssh_keys)
        return plan_create(planner, desired, placed.change, creation, data)
    data |= {"restore": 1, "storage": restore_storage(desired)}
    if desired.guest.source is None or not desired.guest.source.in_place:
        data["unique"] = 1
    source = Actual(
        CONTAINER, 0, creation.node, "stopped", live=origin.config, target=origin.config
    )
    return plan_restore(planner, desired, source, creation, RestoreSource(origin.volume, data))


def _require_oci(origin: ContainerOrigin, release: Release | None) -> None:
    """Raise NotSupported for an OCI image on a server that cannot use one."""
    if release is None or not is_oci(origin.volume) or release[:2] >= _OCI_SINCE:
        return
    raise NotSupported(
        attempted=f"{origin.volume} could not be used",
        answer=f"it is an OCI image, and the server is PVE {release[0]}.{release[1]}",
        next_step="Use a container template, or a server with PVE 9.1 or newer",
        reason="OCI image",
    )


# -- existing containers


ContainerIntent: TypeAlias = GuestIntent[DesiredContainer]


def intent_of(desired: DesiredContainer, actual: Actual, cluster: ClusterState) -> ContainerIntent:
    """Return the changes from the container to the desired container.

    Raises FleetError for options that no change can set, and for a container of other origin.
    """
    guest, tags = desired.guest, parse_tags(actual.target.get("tags"))
    if not owns(guest.tenant_tag, tags, guest.tenant_prefix):
        require_unprivileged(f"{actual.label} was not adopted", desired, actual.target)
    source = guest.source
    may_be_a_file = source is not None and source.vmid is None  # PVE does not store the file
    if actual.marker.origin is not None or not may_be_a_file:
        require_origin(guest, actual, cluster)
    change = CONTAINER_PLANNER.changes(desired, actual.target)
    after = CONTAINER_PLANNER.applied(change, actual.target)
    growth = None if guest.limits is None else growth_of(guest, actual, after)
    return ContainerIntent(desired, actual, change, after, growth)


def require_possible(
    intent: ContainerIntent, cluster: ClusterState, connection: ConnectionSettings
) -> None:
    """Raise FleetError for changes that the listing alone shows to be impossible."""
    actual, change = intent.actual, intent.change
    _require_rights_of_root(actual.label, change, actual.target, intent.after, connection)
    if not intent.uses_node:
        return
    require_node(cluster, intent.node)
    storages = {**change.drives.storages}
    for volume, content in change.drives.volumes.items():
        storages[volume.partition(":")[0]] = content
    require_own_storages(connection, storages)
    for storage, content in sorted(storages.items()):
        require_storage(cluster, storage, intent.node, content)


def decide(
    intent: ContainerIntent, facts: GuestFacts, connection: ConnectionSettings
) -> DecidedPlan:
    """Return the plan from the container to the desired one. Raises FleetError for each refusal."""
    intent = with_relocation(intent, facts.cluster)
    desired, actual = intent.desired, intent.actual
    _require_version(actual.label, intent.change, facts.release)
    require_allocation(desired, actual.target, facts.cluster, facts.definitions)
    require_bridges(intent.bridges, facts.bridges, intent.node, connection)
    require_mtus(CONTAINER, actual.label, intent.mtus, facts.mtus)
    require_pool(intent.new_pool, facts.pools)
    if intent.growth is not None:
        _require_limited_cores(actual.label, desired.guest, actual.target, intent.after)
        require_quota(
            desired.guest, actual.label, intent.growth, facts.usage, facts.cluster, actual.vmid
        )
    room = intent.room({}, facts.cluster)
    needs = intent.needs_room(room)
    require_room(facts.cluster, intent.node, needs, desired.guest.rules, actual.label)
    plan = CONTAINER_PLANNER.plan_change(
        desired, actual, intent.change, shared=facts.cluster.shared_storages
    )
    warnings = (*plan.warnings, *hidden_pool(intent, facts), *privileged_notes(intent))
    plan = replace(plan, warnings=warnings)
    require_template_wanted(desired.guest, actual, plan)
    unverified = _unverified_options(actual.label, intent.change, facts.release)
    return DecidedPlan(plan, intent.capacity_on_node(room), unverified=unverified)


def privileged_notes(intent: ContainerIntent) -> tuple[str, ...]:
    """Return a warning about a privileged container that its tenant must not have."""
    if intent.desired.hardware.allow_privileged or not is_privileged(intent.actual.target):
        return ()
    return (f"{intent.actual.label} is privileged, and allow_privileged is false",)


# -- both


def require_unprivileged(
    attempted: str, desired: DesiredContainer, config: Mapping[str, str]
) -> None:
    """Raise PermissionDenied for a container that would be privileged without being allowed to."""
    if desired.hardware.allow_privileged or not is_privileged(config):
        return
    cause = "allow_privileged is false"
    if desired.guest.tenant:
        cause = f"tenant {desired.guest.tenant} must not have one (allow_privileged is false)"
    step = "Leave unprivileged out, or choose a source that is not privileged"
    raise PermissionDenied(
        attempted=attempted,
        answer=f"it would be a privileged container, and {cause}",
        next_step=f"{step}. PVE fixes this at creation",
        reason="privileged",
    )


def _require_limited_cores(
    label: str, guest: Guest, before: Mapping[str, str], after: Mapping[str, str]
) -> None:
    """Raise ValidationFailed for a container whose cores a quota cannot count: without option
    `cores` it can use all cores of its node, and PVE lists it with all of them (pve-container:
    LXC.pm, vmstatus).
    """
    is_counted = "cores" in (guest.limits or {}) and guest.state != "template"
    is_unlimited = cores_of(after) == 0 and (not before or cores_of(before) > 0)
    if not is_counted or not is_unlimited:
        return
    raise ValidationFailed(
        attempted=f"{label} was refused",
        answer=f"the quota of tenant {guest.tenant} limits cores, and it has no limit of cores",
        next_step="Set cores",
        reason="unlimited cores",
    )


def is_disputed(change: ConfigChange) -> bool:
    """Return whether versions of PVE differ about the options."""
    return bool(disputed(change.sets, LXC))


def _require_version(label: str, change: ConfigChange, release: Release | None) -> None:
    """Raise NotSupported for options that the server's version of PVE does not take."""
    if release is None:
        return
    sets = {key: change.sets[key] for key in disputed(change.sets, LXC)}
    refused = find_refusals(sets, release, LXC)
    if not refused:
        return
    causes = [f"{key} ({why})" for key, why in sorted(refused.items())]
    raise_for_version(label, refused, causes, f"{release[0]}.{release[1]}")


def _unverified_options(
    label: str, change: ConfigChange, release: Release | None
) -> tuple[str, ...]:
    """Return warnings about options that only a server newer than the schema can judge."""
    if release is None or not is_newer(release):
        return ()
    unknown: list[str] = []
    for key in sorted(disputed(change.sets, LXC)):
        if not taken_by(key, change.sets[key], LXC):
            unknown.append(key)
    if not unknown:
        return ()
    number = ".".join(map(str, release))
    names = ", ".join(unknown)
    return (f"{label}: whether PVE {number} takes {names} is known to the server only",)


def require_restorable(attempted: str, config: Mapping[str, str], login: str) -> None:
    """Raise PermissionDenied for the archive of a container with a path of its node, unless the
    login is root@pam: PVE refuses it in the task (pve-container: API2/LXC.pm, create_vm).
    """
    paths = mounts(config).keys() - volumes_in(config).keys()
    causes = {slot: f"{slot} in the archive is a path of the node" for slot in sorted(paths)}
    if causes:
        require_root(login, attempted, "or detach these before the next backup", causes)


def _require_rights_of_root(
    label: str,
    change: ConfigChange,
    before: Mapping[str, str],
    after: Mapping[str, str],
    connection: ConnectionSettings,
) -> None:
    """Raise PermissionDenied for options that only root@pam with a password can change."""
    refused = root_only(change, before, unprivileged=after.get("unprivileged") == "1")
    causes = {key: f"{key}: {why}" for key, why in refused.items()}
    if causes:
        remedy = "leave these options out, or let root set them"
        require_root(connection.login, f"{label} could not be planned", remedy, causes)


def require_file_wanted(desired: DesiredContainer, origin: ContainerOrigin) -> None:
    """Raise ValidationFailed for options of a new file system if the source already has one."""
    given = {
        "root_password": desired.hardware.password is not None,
        "ssh_keys": bool(desired.hardware.ssh_keys),
    }
    names = [name for name, is_given in given.items() if is_given]
    if not origin.config or not names:
        return
    raise ValidationFailed(
        attempted=f"{desired.guest.label} was not created",
        answer=f"{', '.join(names)} can be set from a template only, not in a copy",
        next_step="Leave them out, or name a template as source",
        reason=", ".join(names),
    )
