# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The needs of a VM on its node, and the refusals that only VMs have (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from ....._foundation.api.settings import ConnectionSettings
from ....._foundation.cluster.placement import PlacementNeeds, require_node
from ....._foundation.cluster.state import ClusterState
from ....._foundation.core.errors import ValidationFailed
from ....._foundation.core.propstring import parse
from ....._foundation.schema.formats import sub_keys_of
from ....kinds.model import Actual
from ....kinds.vm.config.actual import FIRMWARE, drives, is_cloud_init, is_disk, storage_of
from ....kinds.vm.config.figures import cpus_of
from ....kinds.vm.model import DesiredVm
from ...flow.facts import Facts
from ...flow.intent import Intent
from ...plan.origin import require_origin
from ...plan.refusals import remark_on_similar
from .refusals.disks import (
    require_images,
    require_no_snapshots,
    require_own_volumes,
    require_snippets,
    with_new_volumes,
)
from .refusals.move import require_movable
from .refusals.options import require_rights_of_root, require_version
from .refusals.place import require_cpus, require_snippet_storages, require_storages

VmIntent: TypeAlias = Intent[DesiredVm]
_CPU_KEYS = frozenset(("cores", "sockets", "vcpus"))


def needs_of(intent: VmIntent) -> PlacementNeeds:
    """Return the needs of a VM on its node, except the room for its disks."""
    config, template = intent.after, intent.template
    storages: dict[str, str] = {}
    for slot, drive in drives(config).items():
        if slot in intent.change.gone:
            continue
        is_allocated = is_disk(drive) or is_cloud_init(drive)
        storage = storage_of(drive) or "/"
        is_path = storage.startswith("/")
        if is_allocated and not is_path:
            storages[storage] = "images"
    storages.update(intent.change.drives.storages)
    return replace(
        intent.needs,
        storages=storages,
        cpus=cpus_of(config) if intent.guest.state == "started" else 0,
        arch=config.get("arch", ""),
        like="" if template is None else template.node,
    )


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


def adopted(desired: DesiredVm, actual: Actual, cluster: ClusterState) -> DesiredVm:
    """Return the desired VM for an existing VM. Raises Conflict for a VM of another origin."""
    require_origin(desired.guest, actual, cluster)
    if actual.marker.building:
        # The VM still has the password of its source.
        return desired.with_hardware(update_password="always")
    return desired


def refuse_listed(intent: VmIntent, cluster: ClusterState, connection: ConnectionSettings) -> None:
    """Raise FleetError for storages that the node lacks, as far as the listing shows."""
    if intent.uses_node:
        require_storages(intent.change, intent.node, cluster, connection)
    require_snippet_storages(snippets_to_check(intent), intent.node, cluster)


def refuse(intent: VmIntent, facts: Facts, connection: ConnectionSettings) -> tuple[str, ...]:
    """Raise FleetError for a VM that its server, its node or the login does not allow.

    Returns warnings about snippets that could not be checked.
    """
    desired, start, change, node = intent.desired, intent.start, intent.change, intent.node
    present = {} if intent.source is not None else start.target
    require_version(intent.label, options_of(intent), facts.release)
    require_rights_of_root(intent.label, change, present, connection)
    if _counts_cpus(intent):
        require_cpus(intent.label, intent.after, node, facts.cluster)
    if intent.source is None:
        kinds = {row.storage: row.kind for row in facts.cluster.storages}
        require_movable(start, node, kinds, facts.migration, intent.after, change.relocation)
        require_no_snapshots(desired, start, change, facts.snapshots)
    require_images(new_volumes(intent), start.node or node, facts.images)
    return require_snippets(facts.snippets, node)


def _counts_cpus(intent: VmIntent) -> bool:
    """Return whether the node must have the CPUs of the VM."""
    if intent.starts:
        return True
    is_concerned = intent.moves or bool(intent.change.keys & _CPU_KEYS)
    return intent.start.running and is_concerned


def options_of(intent: VmIntent) -> Mapping[str, str]:
    """Return the options that the server must know: PVE leaves others out when it restores a VM."""
    archived = intent.source.archived if intent.source is not None else None
    return {**(archived or {}), **intent.change.sets}


def new_volumes(intent: VmIntent) -> DesiredVm:
    """Return the desired VM with only the disks whose image or ISO is new to the VM."""
    present = {} if intent.source is not None else intent.start.target
    return with_new_volumes(intent.desired, present)


def snippets_to_check(intent: VmIntent) -> frozenset[str]:
    """Return the volumes of the snippets that the node must see: of a new VM if the task names
    snippets, of an existing VM if they change or their file is written.
    """
    snippet = intent.desired.hardware.snippet
    is_concerned = "cicustom" in intent.desired.hardware.property_strings
    if intent.source is None:
        is_written = snippet is not None and snippet.is_written
        is_concerned = "cicustom" in intent.change.keys or is_written
    if not is_concerned:
        return frozenset()
    snippets = parse(intent.after.get("cicustom", ""), sub_keys_of("cicustom"))
    return frozenset(filter(None, snippets.values()))
