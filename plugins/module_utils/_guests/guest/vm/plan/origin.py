# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The source of a new VM: a template, an ISO, a disk image, or nothing (pure)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ....._foundation.cluster.find.lookup import find_template, require_template, templates_for
from ....._foundation.cluster.find.visible import VmidVisibility, require_visible
from ....._foundation.cluster.placement import require_node
from ....._foundation.cluster.state import ClusterState, VmRow
from ....._foundation.cluster.tenant import parse_tags
from ....._foundation.core.errors import ConfigurationError, Conflict
from ....kinds.hardware import Disk
from ....kinds.model import Actual, GuestSource
from ....kinds.vm.kind import VM
from ....kinds.vm.model import DesiredVm
from ...flow.placed import GuestOrigin
from ...plan.archive import require_kind, require_own_archive
from ...plan.copies import cloneable, require_own
from ...plan.creation import spread_storage
from .clone import restore_storage
from .cloning import decide_full, nodes_for, require_unlocked

# The contents of a storage from which a VM can be created.
IMAGES = frozenset(("iso", "import"))
DISKS = frozenset(("images", "rootdir"))
_ISO_ENDINGS = (".iso", ".img.iso")


@dataclass(frozen=True)
class VmOrigin(GuestOrigin[DesiredVm]):
    """The source of a new VM. In `desired`, an image or ISO has become one of the disks."""

    storage: str | None = None  # the storage of a restore, None: each disk keeps its storage


@dataclass(frozen=True)
class FoundSource:
    """The cluster's objects under the name or VMID of a source."""

    rows: tuple[VmRow, ...] = ()  # templates, or the one VM
    images: tuple[str, ...] = ()  # volumes of that name, if there is no template
    sight: VmidVisibility = VmidVisibility()  # PVE's answer about a VMID that the listing lacks


def rows_of(source: GuestSource, desired: DesiredVm, cluster: ClusterState) -> tuple[VmRow, ...]:
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


def require_source(
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
    require_no_container(source, cluster)
    require_visible(found.sight, source.vmid, f"Template {label} could not be cloned")
    require_template(
        None, label, templates_for(cluster, desired.guest.tenant_tag, desired.guest.tenant_prefix)
    )
    return None


def require_no_container(source: GuestSource, cluster: ClusterState) -> None:
    """Raise Conflict if the source of a VM is a container."""
    for row in cluster.others.values():
        if source.vmid == row.vmid or (source.name and source.name == row.name):
            raise Conflict(
                attempted=f"Source '{row.name}' ({row.vmid}) was not cloned",
                answer="it is a container, and a VM cannot be made from one",
                next_step="Clone it with pve.fleet.clone or pve.fleet.container",
                reason="source is a container",
            )


def require_own_templates(
    desired: DesiredVm, rows: Sequence[VmRow], templates: Sequence[Actual]
) -> None:
    """Raise Locked or Conflict for a template that cannot be cloned in its present state."""
    for row, template in zip(rows, templates, strict=True):
        require_unlocked(template)
        row = replace(row, name=row.name or template.name, template=template.template)
        require_own(desired.guest, row, parse_tags(template.target.get("tags")))


def of_template(
    desired: DesiredVm, template: Actual, cluster: ClusterState, chained: Collection[str]
) -> VmOrigin:
    """Return the origin of a clone; `chained` are LVM storages that accept format qcow2."""
    desired = spread_storage(desired, template)
    return VmOrigin(
        desired,
        template,
        full=decide_full(desired, template, cluster, frozenset(chained)),
        nodes=nodes_for(desired, template, cluster),
    )


def of_archive(
    desired: DesiredVm, volume: str, config: Mapping[str, str], nodes: frozenset[str] | None
) -> VmOrigin:
    """Return the origin of a restore. Raises Conflict for an archive that is not permitted."""
    require_kind(VM, volume, config)
    require_own_archive(desired.guest, volume, config)
    storage = restore_storage(desired, config)
    return VmOrigin(desired=desired, volume=volume, archived=config, nodes=nodes, storage=storage)


def of_volume(desired: DesiredVm, volume: str, cluster: ClusterState) -> VmOrigin:
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
    return VmOrigin(desired, nodes=frozenset(nodes))


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
