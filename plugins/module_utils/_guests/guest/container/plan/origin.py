# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The source of a new container: a template, an OCI image, a container, or an archive (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

from ....._foundation.cluster.find.lookup import templates_for
from ....._foundation.cluster.state import ClusterState, VmRow
from ....._foundation.cluster.storages.template_file import TemplateFile
from ....._foundation.cluster.tenant import parse_tags
from ....._foundation.core.errors import Conflict, NotFound, NotSupported, ValidationFailed
from ....kinds.container.config.actual import volumes_in
from ....kinds.container.config.volumes import paths_of_node
from ....kinds.container.model import DesiredContainer
from ....kinds.model import Actual, GuestSource
from ...flow.placed import GuestOrigin
from ...plan.copies import cloneable, guest_of_source, is_shared, require_own
from ...plan.creation import spread_storage
from ...plan.refusals import remark_on_similar

# Storages that can make linked clones of the volumes of containers (pve-storage: volume_has_feature
# of the plugins).
_CLONING = frozenset(("lvmthin", "rbd", "zfspool", "btrfs"))
_LINKS_SNAPSHOT = frozenset(("lvmthin", "rbd"))
TEMPLATES = "vztmpl"


ContainerOrigin: TypeAlias = GuestOrigin[DesiredContainer]


def is_oci(volume: str) -> bool:
    """Return whether a volume is an OCI image, which PVE recognizes by its file extension."""
    return volume.endswith(".tar")


def require_source(desired: DesiredContainer, cluster: ClusterState) -> GuestSource:
    """Return the source. Raises ValidationFailed for a new container without one: usually the name
    of an existing container is misspelt.
    """
    source = desired.guest.source
    if source is not None:
        return source
    raise ValidationFailed(
        attempted=f"{desired.guest.label} was not created",
        answer="there is no such container, and the task names no source for it"
        f"{remark_on_similar(desired.guest, cluster)}",
        next_step="Check name and vmid, or give source: a template such as debian-13-standard",
        reason="unknown container",
    )


def rows_of(source: GuestSource, desired: DesiredContainer, cluster: ClusterState) -> list[VmRow]:
    """Return the containers that a source names: one, or templates of one name.

    Raises Conflict for a VM and for several containers of the name, and NotFound if no template has
    the version.
    """
    guest = desired.guest
    if source.vmid is not None:
        row = cluster.vms.get(source.vmid)
        if row is None and cluster.is_of_other_kind(source.vmid):
            raise _is_a_vm(str(source.vmid))
        return [row] if row is not None else []
    same = cloneable(guest, source, cluster)
    row = None if same else guest_of_source(guest, source, cluster)
    return same if row is None else [row]


def _is_a_vm(label: str) -> Conflict:
    return Conflict(
        attempted=f"Source {label} was not cloned",
        answer="it is a VM, and a container cannot be made from one",
        next_step="Name a container, or the file of a container template",
        reason="source is a VM",
    )


def newest(
    name: str, files: Iterable[TemplateFile], desired: DesiredContainer, cluster: ClusterState
) -> tuple[str, frozenset[str] | None]:
    """Return the volume of the newest template of that name, and the nodes that have it.

    Raises NotFound with the existing names, and Conflict if it is the name of a VM.
    """
    listed = list(files)
    fitting = [file for file in listed if file.has_name(name)]
    if not fitting:
        if any(row.name == name for row in cluster.others.values()):
            raise _is_a_vm(f"'{name}'")
        guest = desired.guest
        names = {file.name for file in listed}
        names.update(templates_for(cluster, guest.tenant_tag, guest.tenant_prefix))
        raise NotFound(
            attempted=f"Template '{name}' could not be used",
            answer=f"no template or container of that name is visible; there are"
            f" {', '.join(sorted(names)) or 'none'}",
            next_step=(
                "Check the spelling, or download it with pve.fleet.storage_download; the token"
                " needs Datastore.Audit on the storage"
            ),
            reason="template missing",
        )
    best = max(fitting, key=lambda file: file.version)
    same = [file for file in fitting if file.volume == best.volume]
    nodes = {file.node for file in same}
    if None in nodes:
        return best.volume, None
    return best.volume, frozenset(node for node in nodes if node)


def require_visible_file(volume: str, nodes: Iterable[str], others: Iterable[str]) -> None:
    """Raise NotFound for a file that no node has; `others` are the existing files."""
    if any(True for _node in nodes):
        return
    raise NotFound(
        attempted=f"{volume} could not be used",
        answer=f"there is no such volume; there are {', '.join(sorted(others)) or 'none'}",
        next_step="Check the name, and that the token has Datastore.Audit on the storage",
        reason="template missing",
    )


def of_container(
    desired: DesiredContainer, source: Actual, cluster: ClusterState
) -> ContainerOrigin:
    """Return the origin of a clone; `source` is the container in the state that is cloned.

    Raises FleetError for a container that cannot be cloned as desired (pve-container:
    API2/LXC.pm, clone_vm).
    """
    guest = desired.guest
    given = guest.source or GuestSource()
    if source.running and not given.snapshot:
        raise Conflict(
            attempted=f"{source.label} was not cloned",
            answer="it runs, and PVE clones a running container from a snapshot only",
            next_step="Name one of its snapshots with snapshot, or stop it first",
            reason="source runs",
        )
    _require_volumes(source)
    obstacle = _why_not_linked(desired, source, cluster)
    full = given.full
    if full is None:  # as PVE chooses, except if a link is not possible
        full = not source.template or obstacle is not None
    if not full and obstacle is not None:
        raise ValidationFailed(
            attempted=f"{source.label} could not be cloned as a linked clone",
            answer=obstacle,
            next_step="Leave full out, or set full=true",
            reason="linked clone",
        )
    nodes = None
    if not full and not is_shared(source, cluster.shared_storages):
        nodes = frozenset((source.node,))
    return ContainerOrigin(spread_storage(desired, source), source, full=full, nodes=nodes)


def _require_volumes(source: Actual) -> None:
    """Raise NotSupported for a mount point that is a path of the node."""
    paths = paths_of_node(source.target)
    if not paths:
        return
    listed = ", ".join(f"{slot} ({path})" for slot, path in sorted(paths.items()))
    raise NotSupported(
        attempted=f"{source.label} was not cloned",
        answer=f"PVE clones no mount point that is a path of the node: {listed}",
        next_step="Name a container without such mount points",
        reason="path of the node",
    )


def _why_not_linked(desired: DesiredContainer, source: Actual, cluster: ClusterState) -> str | None:
    """Return why a clone cannot be linked to the volumes of a container, or None."""
    snapshot = desired.guest.source is not None and bool(desired.guest.source.snapshot)
    if not source.template and not snapshot:
        return "it is not a template, and no snapshot of it is named"
    if desired.guest.source is not None and desired.guest.source.storage:
        return "storage is for full clones, the volumes of a linked clone stay beside their base"
    kinds = {row.storage: row.kind for row in cluster.storages}
    for slot, volume in sorted(volumes_in(source.target).items()):
        storage = volume.partition(":")[0]
        kind = kinds.get(storage, "")
        if slot.startswith("unused"):
            continue
        if not _can_link(kind, volume, snapshot=snapshot):
            of = "a snapshot" if snapshot else "a template"
            return f"{slot} is on storage {storage} ({kind}), which has no linked clones of {of}"
        if storage not in cluster.shared_storages and _is_bound(desired, source, kind):
            return f"{slot} is on storage {storage}, whose linked clones stay on {source.node}"
    return None


def _can_link(kind: str, volume: str, *, snapshot: bool) -> bool:
    """Return whether a storage can link to a base volume, or to a snapshot of a volume."""
    if not snapshot:
        return kind in _CLONING
    if kind == "btrfs":
        return volume.endswith(".raw")
    return kind in _LINKS_SNAPSHOT


def _is_bound(desired: DesiredContainer, source: Actual, kind: str) -> bool:
    """Return whether the task places the clone on another node than its base, and its storage does
    not allow that: only thin logical volumes can move (pve-container: LXC/Migrate.pm, phase1).
    """
    return kind != "lvmthin" and desired.guest.node not in (None, "", source.node)


def require_own_container(desired: DesiredContainer, row: VmRow, source: Actual) -> None:
    """Raise Conflict for a container that the tenant may not clone."""
    guest = desired.guest
    row = replace(row, name=source.name, template=source.template)
    require_own(guest, row, parse_tags(source.target.get("tags")))
