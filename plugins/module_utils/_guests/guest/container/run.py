# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module container: find the container, plan, then apply the plan or preview it; and the
requests for the source and the facts of a container.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ...._foundation.cluster.find.lookup import templates_for
from ...._foundation.cluster.find.visible import probe_vmid, require_visible
from ...._foundation.cluster.placement import require_node
from ...._foundation.cluster.state import ClusterState, VmRow, with_names
from ...._foundation.cluster.storages.template_file import TemplateFile
from ...._foundation.cluster.tenant import parse_tags
from ...._foundation.core.errors import Conflict, NotFound, NotSupported, ValidationFailed
from ...._foundation.core.result import Result
from ...kinds.container.config.actual import volumes_in
from ...kinds.container.config.changes import paths_of_node
from ...kinds.container.kind import CONTAINER
from ...kinds.hardware import DesiredContainer
from ...kinds.model import Actual, GuestSource
from ..context import RunContext
from ..flow.apply import run_task
from ..flow.flow import GuestFlow
from ..flow.place import from_one_of
from ..flow.reads import FoundVolume, GuestReads, archive_source, find_file
from ..flow.volumes import missing_volumes
from ..live.read import read_source
from ..plan.archive import is_archive
from ..plan.copies import cloneable, guest_of_source, is_shared, place_of, require_own
from ..plan.creation import spread_storage
from ..plan.intent import Facts, Source
from ..plan.origin import storages_with
from ..plan.refusals import remark_on_similar
from .desired.parse import read_options
from .live import report_of_guest
from .plan.decide import ContainerIntent, adopted, needs_release
from .plan.planner import CONTAINER_PLANNER

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


# Storages that can make linked clones of the volumes of containers (pve-storage: volume_has_feature
# of the plugins).
_CLONING = frozenset(("lvmthin", "rbd", "zfspool", "btrfs"))


_LINKS_SNAPSHOT = frozenset(("lvmthin", "rbd"))


TEMPLATES = "vztmpl"


def from_source(
    reads: GuestReads, desired: DesiredContainer, cluster: ClusterState
) -> ContainerIntent:
    """Return a new container with its source. Raises FleetError if the source is not clear."""
    source = _require_source(desired, cluster)
    if desired.guest.node:
        require_node(cluster, desired.guest.node)
    if source.volume:
        return _of_volume(reads, desired, source.volume, cluster)
    named = with_names(reads.client, cluster) if source.name else cluster
    rows = _rows_of(source, desired, named)
    if rows:
        return _of_rows(reads, desired, rows, cluster)
    if source.vmid is not None:
        attempted = f"Container {source.vmid} could not be cloned"
        require_visible(probe_vmid(reads.client, cluster, source.vmid), source.vmid, attempted)
    name = source.name or str(source.vmid)
    files = _template_files(reads, desired, cluster)
    volume, nodes = _newest(name, files, desired, cluster)
    return CONTAINER_PLANNER.intent_from(desired, Source(volume=volume, nodes=nodes))


def _of_rows(
    reads: GuestReads, desired: DesiredContainer, rows: Sequence[VmRow], cluster: ClusterState
) -> ContainerIntent:
    """Return a clone of the only container, or of one of several copies."""
    found: list[Actual] = []
    for row in rows:
        actual = read_source(reads.client, CONTAINER, row)
        row = replace(row, name=actual.name, template=actual.template)
        require_own(desired.guest, row, parse_tags(actual.target.get("tags")))
        found.append(actual)
    shared = cluster.shared_storages
    return from_one_of(
        reads,
        found,
        desired.guest,
        cluster,
        lambda copy: place_of(copy, shared),
        lambda copy: _clone(reads, desired, copy, cluster),
    )


def from_copy(
    reads: GuestReads, desired: DesiredContainer, copy: Actual, cluster: ClusterState
) -> ContainerIntent:
    """Return a new container as a clone of this copy of its template."""
    intent = _clone(reads, desired, copy, cluster)
    return intent.with_source(nodes=place_of(copy, cluster.shared_storages))


def _clone(
    reads: GuestReads, desired: DesiredContainer, actual: Actual, cluster: ClusterState
) -> ContainerIntent:
    """Return a clone of that container, or of one of its snapshots.

    Raises FleetError for a container that cannot be cloned as desired (pve-container:
    API2/LXC.pm, clone_vm).
    """
    source = reads.cloned_state(actual, desired.guest.source)
    full = _decide_full(desired, source, cluster)
    nodes = None
    if not full and not is_shared(source, cluster.shared_storages):
        nodes = frozenset((source.node,))
    _require_file_wanted(desired)
    desired = spread_storage(desired, source)
    return CONTAINER_PLANNER.intent_from(desired, Source(source, full=full, nodes=nodes))


def _decide_full(desired: DesiredContainer, source: Actual, cluster: ClusterState) -> bool:
    """Return whether the volumes are copied: as requested, else as PVE chooses, except if a link
    is not possible. Raises FleetError.
    """
    given = desired.guest.source or GuestSource()
    if source.running and not given.snapshot:
        raise Conflict(
            f"{source.label} was not cloned: it runs, and PVE clones a running container from a "
            "snapshot only",
            "Name one of its snapshots with snapshot, or stop it first",
            "source runs",
        )
    _require_volumes(source)
    obstacle = _why_not_linked(desired, source, cluster)
    full = given.full
    if full is None:
        full = not source.template or obstacle is not None
    if not full and obstacle is not None:
        raise ValidationFailed(
            f"{source.label} could not be cloned as a linked clone: {obstacle}",
            "Leave full out, or set full=true",
            "linked clone",
        )
    return full


def _of_volume(
    reads: GuestReads, desired: DesiredContainer, volume: str, cluster: ClusterState
) -> ContainerIntent:
    """Return a container from a file of a storage; one request for each node that may have it."""
    if is_archive(volume):
        source = archive_source(reads, desired.guest, volume, cluster)
        _require_file_wanted(desired)
        return CONTAINER_PLANNER.intent_from(desired, source)
    file = find_file(reads, volume, desired.guest.node, cluster)
    _require_found(file)
    return CONTAINER_PLANNER.intent_from(desired, Source(volume=volume, nodes=file.nodes))


def _template_files(
    reads: GuestReads, desired: DesiredContainer, cluster: ClusterState
) -> Iterator[TemplateFile]:
    """Yield the templates of containers on the storages; one request for each storage."""
    for row in storages_with({TEMPLATES}, desired.guest.node, cluster):
        for volume in reads.contents(row.node, row.storage):
            if volume.get("content") == TEMPLATES:
                yield TemplateFile(str(volume["volid"]), None if row.shared else row.node)


def _require_source(desired: DesiredContainer, cluster: ClusterState) -> GuestSource:
    """Return the source. Raises ValidationFailed for a new container without one: usually the name
    of an existing container is misspelt.
    """
    source = desired.guest.source
    if source is not None:
        return source
    raise ValidationFailed(
        f"{desired.guest.label} was not created: there is no such container, and the task names "
        f"no source for it{remark_on_similar(desired.guest, cluster)}",
        "Check name and vmid, or give source: a template such as debian-13-standard",
        "unknown container",
    )


def _rows_of(source: GuestSource, desired: DesiredContainer, cluster: ClusterState) -> list[VmRow]:
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
        f"Source {label} was not cloned: it is a VM, and a container cannot be made from one",
        "Name a container, or the file of a container template",
        "source is a VM",
    )


def _newest(
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
            f"Template '{name}' could not be used: no template or container of that name is "
            f"visible; there are {', '.join(sorted(names)) or 'none'}",
            "Check the spelling, or download it with pve.fleet.storage_download; the token"
            " needs Datastore.Audit on the storage",
            "template missing",
        )
    best = max(fitting, key=lambda file: file.version)
    same = [file for file in fitting if file.volume == best.volume]
    nodes = {file.node for file in same}
    if None in nodes:
        return best.volume, None
    return best.volume, frozenset(node for node in nodes if node)


def _require_found(file: FoundVolume) -> None:
    """Raise NotFound for a file that no node has, with the existing files (pure)."""
    if file.having:
        return
    others = ", ".join(sorted(file.others))
    raise NotFound(
        f"{file.volume} could not be used: there is no such volume; there are {others or 'none'}",
        "Check the name, and that the token has Datastore.Audit on the storage",
        "template missing",
    )


def _require_volumes(source: Actual) -> None:
    """Raise NotSupported for a mount point that is a path of the node."""
    paths = paths_of_node(source.target)
    if not paths:
        return
    listed = ", ".join(f"{slot} ({path})" for slot, path in sorted(paths.items()))
    raise NotSupported(
        f"{source.label} was not cloned: PVE clones no mount point that is a path of the node: "
        f"{listed}",
        "Name a container without such mount points",
        "path of the node",
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


def _require_file_wanted(desired: DesiredContainer) -> None:
    """Raise ValidationFailed for options of a new file system, as the source already has one."""
    given = {
        "root_password": desired.hardware.password is not None,
        "ssh_keys": bool(desired.hardware.ssh_keys),
    }
    names = [name for name, is_given in given.items() if is_given]
    if not names:
        return
    raise ValidationFailed(
        f"{desired.guest.label} was not created: {', '.join(names)} can be set from a template "
        "only, not in a copy",
        "Leave them out, or name a template as source",
        ", ".join(names),
    )


ContainerContext: TypeAlias = RunContext[DesiredContainer]


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Bring a container to the desired state and return the result; in check mode write nothing."""
    return run_task(CONTAINER_FLOW, read_options(params), client, check_mode)


class ContainerFlow(GuestFlow[DesiredContainer]):
    """How a run brings containers to their desired state."""

    key = "container"
    planner = CONTAINER_PLANNER
    from_source = staticmethod(from_source)
    from_copy = staticmethod(from_copy)
    guest_report = staticmethod(report_of_guest)

    def desired_for(
        self, reads: GuestReads, desired: DesiredContainer, actual: Actual, cluster: ClusterState
    ) -> DesiredContainer:
        return adopted(desired, actual, cluster)

    def read_more(self, reads: GuestReads, intent: ContainerIntent, facts: Facts) -> Facts:
        missing = missing_volumes(reads, intent.change.drives.volumes, intent.first_node)
        release = reads.client.release() if needs_release(intent) else None
        return replace(facts, missing=tuple(missing), release=release)


CONTAINER_FLOW = ContainerFlow()
