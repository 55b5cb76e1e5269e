# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The source of a new VM: a template, an archive, an ISO, a disk image, or nothing; and the image that
replaces the system disk of an existing VM.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ....._foundation.cluster.find.lookup import find_template, require_template, templates_for
from ....._foundation.cluster.find.visible import VmidVisibility, probe_vmid, require_visible
from ....._foundation.cluster.placement import require_node
from ....._foundation.cluster.state import ClusterState, StorageRow, VmRow, with_names
from ....._foundation.cluster.tenant import parse_tags
from ....._foundation.core.errors import ConfigurationError, Conflict, FleetError
from ....._foundation.core.parallel import side_by_side
from ....._foundation.core.retry import TimeBudget
from ....kinds.hardware import Disk
from ....kinds.model import Actual, GuestSource
from ....kinds.vm.kind import VM
from ....kinds.vm.model import DesiredVm
from ...flow.intent import Source
from ...flow.reads import GuestReads, find_file, read_archive
from ...live.read import read_source
from ...plan.archive import is_archive, require_kind, require_listed, require_own_archive
from ...plan.copies import (
    choose_copy,
    cloneable,
    guest_of_source,
    image_of,
    require_alike,
    require_own,
)
from ...plan.creation import spread_storage
from ...plan.origin import find_newer_copy, storages_with
from ..plan.clone import restore_storage
from ..plan.cloning import (
    chained_in,
    decide_full,
    nodes_for,
    require_unlocked,
    storages_that_may_chain,
)
from ..plan.decide import VmIntent, require_creatable
from ..plan.replacement import replaced
from ..plan.update import VM_PLANNER

# The contents of a storage from which a VM can be created.
IMAGES = frozenset(("iso", "import"))
DISKS = frozenset(("images", "rootdir"))
_ISO_ENDINGS = (".iso", ".img.iso")
_READERS = 8  # copies of a template that are read at once


@dataclass(frozen=True)
class FoundSource:
    """The cluster's objects under the name or VMID of a source."""

    rows: tuple[VmRow, ...] = ()  # templates, or the one VM
    images: tuple[str, ...] = ()  # volumes of that name, if there is no template
    sight: VmidVisibility = VmidVisibility()  # PVE's answer about a VMID that the listing lacks


def from_source(reads: GuestReads, desired: DesiredVm, cluster: ClusterState) -> VmIntent:
    """Return a new VM with its source. Raises FleetError if the source is not clear."""
    require_creatable(desired, cluster)
    source = desired.guest.source
    if source is None:
        return VM_PLANNER.intent_from(desired, Source())
    if source.volume and is_archive(source.volume):
        return _of_archive(reads, desired, source.volume, cluster)
    if source.volume:
        return _of_volume(desired, source.volume, cluster)
    found = _search(reads, source, desired, cluster)
    volume = _require_source(source, found, desired, cluster)
    if volume:
        return _of_volume(desired, volume, cluster)
    templates = read_templates(reads, found.rows)
    _require_own_templates(desired, found.rows, templates)
    if len(templates) == 1 and not image_of(templates[0]).version:
        return from_copy(reads, desired, templates[0], cluster)
    require_alike(found.rows[0].name, templates)
    return _of_copies(reads, desired, templates, cluster)


def from_copy(
    reads: GuestReads, desired: DesiredVm, copy: Actual, cluster: ClusterState
) -> VmIntent:
    """Return a new VM as a clone of that template, or of one of its snapshots."""
    template = reads.cloned_state(copy, desired.guest.source)
    desired = spread_storage(desired, template)
    chained = chained_stores(reads, desired, cluster)
    source = Source(
        template,
        full=decide_full(desired, template, cluster, chained),
        nodes=nodes_for(desired, template, cluster),
    )
    return VM_PLANNER.intent_from(desired, source)


def _of_copies(
    reads: GuestReads, desired: DesiredVm, copies: Sequence[Actual], cluster: ClusterState
) -> VmIntent:
    """Return a new VM as a clone of one of these copies, with the nodes for a clone."""
    copy, nodes = choose_copy(
        copies,
        desired.guest,
        reads.client.default_node,
        cluster.shared_storages,
        lambda one: nodes_for(desired, one, cluster),
    )
    intent = from_copy(reads, desired, copy, cluster)
    source = replace(intent.source or Source(), nodes=nodes, copies=tuple(copies))
    return replace(intent, source=source)


def _of_archive(
    reads: GuestReads, desired: DesiredVm, volume: str, cluster: ClusterState
) -> VmIntent:
    """Return a restored VM: a request for each node, and one for the configuration.

    Raises Conflict for an archive that is not permitted.
    """
    file = find_file(reads, volume, desired.guest.node, cluster)
    require_listed(volume, file.having, desired.guest.node)
    config = read_archive(reads.client, volume, min(file.having))
    require_kind(VM, volume, config)
    require_own_archive(desired.guest, volume, config)
    storage = restore_storage(desired, config)
    source = Source(volume=volume, archived=config, nodes=file.nodes, storage=storage)
    return VM_PLANNER.intent_from(desired, source)


def _search(
    reads: GuestReads, source: GuestSource, desired: DesiredVm, cluster: ClusterState
) -> FoundSource:
    state = cluster
    if source.name:  # the listing may show the source under the name of a removed VM
        state = with_names(reads.client, cluster)
    rows = _rows_of(source, desired, state)
    if rows:
        return FoundSource(rows)
    if source.name:
        storages = storages_with(IMAGES, desired.guest.node, cluster)
        images = frozenset(_images_named(reads, source.name, storages))
        if images:
            return FoundSource(images=tuple(images))
        row = guest_of_source(desired.guest, source, state)
        return FoundSource(() if row is None else (row,))
    return FoundSource(sight=probe_vmid(reads.client, cluster, source.vmid))


def _images_named(reads: GuestReads, name: str, storages: Sequence[StorageRow]) -> Iterator[str]:
    """Yield the ISOs and importable images whose file has that name, with or without its ending.

    One request a storage.
    """
    for row in storages:
        for volume in reads.contents(row.node, row.storage):
            _folder, _slash, file = str(volume["volid"]).rpartition("/")
            stem, _dot, _ending = file.rpartition(".")
            if name not in (file, stem):
                continue
            if volume.get("content") in row.content & IMAGES:
                yield volume["volid"]


def read_templates(reads: GuestReads, rows: Sequence[VmRow]) -> list[Actual]:
    """Return the VMs to clone, each once it is not locked."""
    return side_by_side(lambda row: _read_unlocked(reads, row), rows, _READERS)


def _read_unlocked(reads: GuestReads, row: VmRow) -> Actual:
    """Return the VM to clone once it is not locked, or after the connection's lock_timeout."""
    client = reads.client
    budget = TimeBudget(client.clock, client.connection.lock_timeout)
    while True:
        source = read_source(client, VM, row, row.status)
        if not source.lock or not budget.again():
            return source


def chained_stores(reads: GuestReads, desired: DesiredVm, cluster: ClusterState) -> frozenset[str]:
    """Return the LVM storages that have disks in format qcow2; one request if that matters.

    If the user may not read the configuration of storages, all of them are returned: PVE decides.
    """
    lvm = storages_that_may_chain(desired, cluster)
    if not lvm:
        return lvm
    try:
        return lvm & chained_in(reads.definitions())
    except FleetError:
        return lvm


def with_newer_image(
    reads: GuestReads, desired: DesiredVm, actual: Actual, cluster: ClusterState
) -> DesiredVm:
    """Return the desired VM with the system disk of the present image of its source.

    Unchanged if the task does not request that, or if the VM already comes from that image.
    """
    source = desired.guest.source
    if not desired.guest.replace_image or source is None or not source.name:
        return desired
    copy = find_newer_copy(desired.guest, actual, cluster, partial(read_templates, reads))
    return desired if copy is None else replaced(desired, actual, copy)


def _rows_of(source: GuestSource, desired: DesiredVm, cluster: ClusterState) -> tuple[VmRow, ...]:
    """Return the templates of the source's name that can be cloned, or the one VM of the source.

    The tenant may clone each of several templates, and their nodes are online. Raises NotFound if
    no template has the version.
    """
    if source.name:
        same = cloneable(desired.guest, source, cluster)
        if same:
            return tuple(same)
    meant = find_template(cluster, vmid=source.vmid, name=source.name)
    return (meant,) if meant is not None else ()


def _require_source(
    source: GuestSource, found: FoundSource, desired: DesiredVm, cluster: ClusterState
) -> str | None:
    """Return the volume from which the VM is created, None for a clone.

    Raises NotFound or Conflict if the source is not clear, or if the tenant may not clone it.
    """
    for row in found.rows:
        # the listing may not show yet that it is a template
        require_own(desired.guest, replace(row, template=True), row.tags)
        require_node(cluster, row.node)
    if found.rows:
        return None
    if len(found.images) > 1:
        raise Conflict(
            attempted=f"Image '{source.name}' could not be chosen",
            answer=f"several volumes have that name: {', '.join(sorted(found.images))}",
            next_step="Name the one you mean as storage:path",
            reason="ambiguous image",
        )
    if found.images:
        return found.images[0]
    label = str(source.vmid) if source.vmid else f"'{source.name}'"
    _require_no_container(source, cluster)
    require_visible(found.sight, source.vmid, f"Template {label} could not be cloned")
    require_template(
        None, label, templates_for(cluster, desired.guest.tenant_tag, desired.guest.tenant_prefix)
    )
    return None


def _require_no_container(source: GuestSource, cluster: ClusterState) -> None:
    """Raise Conflict if the source of a VM is a container."""
    for row in cluster.others.values():
        if source.vmid == row.vmid or (source.name and source.name == row.name):
            raise Conflict(
                attempted=f"Source '{row.name}' ({row.vmid}) was not cloned",
                answer="it is a container, and a VM cannot be made from one",
                next_step="Clone it with pve.fleet.clone or pve.fleet.container",
                reason="source is a container",
            )


def _require_own_templates(
    desired: DesiredVm, rows: Sequence[VmRow], templates: Sequence[Actual]
) -> None:
    """Raise Locked or Conflict for a template that cannot be cloned in its present state."""
    for row, template in zip(rows, templates, strict=True):
        require_unlocked(template)
        row = replace(row, name=row.name or template.name, template=template.template)
        require_own(desired.guest, row, parse_tags(template.target.get("tags")))


def _of_volume(desired: DesiredVm, volume: str, cluster: ClusterState) -> VmIntent:
    """Return the origin of a VM that is created from an ISO or a disk image.

    Raises ConfigurationError for an unknown storage, Conflict if the first disk has another image.
    """
    storage, _colon, _name = volume.partition(":")
    nodes = {row.node for row in cluster.storages if row.storage == storage and row.available}
    if not nodes:
        raise ConfigurationError(
            attempted=f"{desired.guest.label} could not be created from {volume}",
            answer=f"no storage {storage} is visible",
            next_step="Check the volume ID; the token needs Datastore.Audit to see a storage",
            reason="unknown storage",
        )
    if volume.lower().endswith(_ISO_ENDINGS):
        desired = _with_iso(desired, volume)
    else:
        desired = _with_image(desired, volume)
    return VM_PLANNER.intent_from(desired, Source(nodes=frozenset(nodes)))


def _with_iso(desired: DesiredVm, volume: str) -> DesiredVm:
    """Return the desired VM with the ISO in a CD drive."""
    volumes = {disk.volume for disk in desired.hardware.disks}
    if volume in volumes:
        return desired
    slot = "ide2"
    if desired.hardware.cloud_init_drive in ("", slot):
        slot = "ide0"
    cd = Disk(slot, volume=volume, options={"media": "cdrom"})
    return desired.with_hardware(disks=(*desired.hardware.disks, cd))


def _with_image(desired: DesiredVm, volume: str) -> DesiredVm:
    """Return the desired VM whose first disk imports the image. Raises Conflict for two images."""
    disks = list(desired.hardware.disks)
    for index, disk in enumerate(disks):
        if disk.volume or disk.is_cdrom or disk.state != "present":
            continue
        if disk.import_from not in (None, volume):
            raise Conflict(
                attempted=f"{desired.guest.label} could not be created from {volume}",
                answer=f"its first disk imports {disk.import_from}",
                next_step="Name the image once",
                reason="two images",
            )
        disks[index] = replace(disk, import_from=volume)
        return desired.with_hardware(disks=tuple(disks))
    return desired.with_hardware(disks=(Disk("scsi0", import_from=volume), *disks))
