# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module vm: find the VM, plan, then apply the plan or preview it; and the requests for
the source and the facts of a VM, each sent only if the plan needs its answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ...._foundation.api.access.privileges import Privileges
from ...._foundation.cluster.find.lookup import find_template, require_template, templates_for
from ...._foundation.cluster.find.names import STORAGE, find_unknown, unknown
from ...._foundation.cluster.find.visible import VmidVisibility, probe_vmid, require_visible
from ...._foundation.cluster.placement import require_node
from ...._foundation.cluster.snippets.visible import list_snippets
from ...._foundation.cluster.state import ClusterState, StorageRow, VmRow, with_names
from ...._foundation.cluster.tenant import parse_tags
from ...._foundation.core.errors import ConfigurationError, Conflict, FleetError
from ...._foundation.core.parallel import side_by_side
from ...._foundation.core.result import Result
from ...._foundation.core.retry import TimeBudget
from ...kinds.hardware import DesiredVm, Disk
from ...kinds.model import Actual, GuestSource
from ...kinds.vm.config.actual import drives
from ...kinds.vm.kind import VM
from ..flow.apply import run_task
from ..flow.flow import GuestFlow
from ..flow.place import from_one_of
from ..flow.reads import GuestReads, archive_source
from ..live.read import read_source
from ..live.snippets import files_beside
from ..plan.archive import is_archive
from ..plan.copies import cloneable, guest_of_source, require_own
from ..plan.creation import spread_storage
from ..plan.intent import DiskImage, Facts, SeenSnippet, Source
from ..plan.origin import find_newer_copy, storages_with
from .desired.parse import read_options
from .live import report_of_guest
from .plan.cloning import (
    chained_in,
    decide_full,
    foreign_in,
    nodes_for,
    require_unlocked,
    storages_that_may_chain,
)
from .plan.decide import (
    VmIntent,
    adopted,
    new_volumes,
    options_of,
    require_creatable,
    snippets_to_check,
)
from .plan.refusals.disks import converts, image_sizes, lost_volumes, volumes_used
from .plan.refusals.options import require_names, uncertain_options, unknown_names
from .plan.replacement import replaced
from .plan.update import VM_PLANNER

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


# The contents of a storage from which a VM can be created.
IMAGES = frozenset(("iso", "import"))


DISKS = frozenset(("images", "rootdir"))


_ISO_ENDINGS = (".iso", ".img.iso")


def from_source(reads: GuestReads, desired: DesiredVm, cluster: ClusterState) -> VmIntent:
    """Return a new VM with its source. Raises FleetError if the source is not clear."""
    require_creatable(desired, cluster)
    source = desired.guest.source
    if source is None:
        return VM_PLANNER.intent_from(desired, Source())
    if source.volume and is_archive(source.volume):
        archive = archive_source(reads, desired.guest, source.volume, cluster)
        return VM_PLANNER.intent_from(_without_foreign(desired, archive.config), archive)
    if source.volume:
        return _of_volume(desired, source.volume, cluster)
    rows, volume = _search(reads, source, desired, cluster)
    if volume:
        return _of_volume(desired, volume, cluster)
    templates = read_templates(reads, rows)
    for row, template in zip(rows, templates, strict=True):
        require_unlocked(template)
        row = replace(row, name=row.name or template.name, template=template.template)
        require_own(desired.guest, row, parse_tags(template.target.get("tags")))
    return from_one_of(
        reads,
        templates,
        desired.guest,
        cluster,
        lambda copy: nodes_for(desired, copy, cluster),
        lambda copy: from_copy(reads, desired, copy, cluster),
    )


def _without_foreign(desired: DesiredVm, archived: Mapping[str, str]) -> DesiredVm:
    """Return the desired VM without the disks that would name volumes of the original (pure)."""
    known = {disk.slot for disk in desired.hardware.disks}
    removed = [Disk(slot, state="absent") for slot in foreign_in(archived) if slot not in known]
    return desired.with_hardware(disks=(*desired.hardware.disks, *removed))


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


def _search(
    reads: GuestReads, source: GuestSource, desired: DesiredVm, cluster: ClusterState
) -> tuple[Sequence[VmRow], str]:
    """Return the templates, or the one VM, that can be cloned; or the volume from which the VM is
    created.

    Raises NotFound or Conflict if the source is not clear, or if the tenant may not clone it.
    """
    state = cluster
    if source.name:  # the listing may show the source under the name of a removed VM
        state = with_names(reads.client, cluster)
    rows = _rows_of(source, desired, state)
    if not rows and source.name:
        storages = storages_with(IMAGES, desired.guest.node, cluster)
        images = sorted(set(_images_named(reads, source.name, storages)))
        _require_one_image(source.name, images)
        if images:
            return (), images[0]
        row = guest_of_source(desired.guest, source, state)
        rows = () if row is None else (row,)
    for row in rows:
        # the listing may not show yet that it is a template
        require_own(desired.guest, replace(row, template=True), row.tags)
        require_node(cluster, row.node)
    if not rows:
        sight = probe_vmid(reads.client, cluster, source.vmid)
        _require_source(source, sight, desired, cluster)
    return rows, ""


def _require_one_image(name: str, images: Sequence[str]) -> None:
    """Raise Conflict for several volumes of a name (pure)."""
    if len(images) > 1:
        raise Conflict(
            f"Image '{name}' could not be chosen: several volumes have that name: "
            f"{', '.join(images)}",
            "Name the one you mean as storage:path",
            "ambiguous image",
        )


def _require_source(
    source: GuestSource, sight: VmidVisibility, desired: DesiredVm, cluster: ClusterState
) -> None:
    """Raise NotFound for a source that does not exist, Conflict if it is a container; `sight` is
    PVE's answer about a VMID that the listing lacks (pure).
    """
    for row in cluster.others.values():
        if source.vmid == row.vmid or (source.name and source.name == row.name):
            raise Conflict(
                f"Source '{row.name}' ({row.vmid}) was not cloned: it is a container, and a VM "
                "cannot be made from one",
                "Clone it with pve.fleet.clone or pve.fleet.container",
                "source is a container",
            )
    guest = desired.guest
    label = str(source.vmid) if source.vmid else f"'{source.name}'"
    require_visible(sight, source.vmid, f"Template {label} could not be cloned")
    require_template(None, label, templates_for(cluster, guest.tenant_tag, guest.tenant_prefix))


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
    return side_by_side(lambda row: _read_unlocked(reads, row), rows)


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


def _of_volume(desired: DesiredVm, volume: str, cluster: ClusterState) -> VmIntent:
    """Return a new VM that is created from an ISO or a disk image.

    Raises ConfigurationError for an unknown storage, Conflict if the first disk has another image.
    """
    storage, _colon, _name = volume.partition(":")
    nodes = {row.node for row in cluster.storages if row.storage == storage and row.available}
    if not nodes:
        raise ConfigurationError(
            f"{desired.guest.label} could not be created from {volume}: no storage {storage} is "
            "visible",
            "Check the volume ID; the token needs Datastore.Audit to see a storage",
            "unknown storage",
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
                f"{desired.guest.label} could not be created from {volume}: its first disk "
                f"imports {disk.import_from}",
                "Name the image once",
                "two images",
            )
        disks[index] = replace(disk, import_from=volume)
        return desired.with_hardware(disks=tuple(disks))
    return desired.with_hardware(disks=(Disk("scsi0", import_from=volume), *disks))


def read_vm_facts(reads: GuestReads, intent: VmIntent, facts: Facts) -> Facts:
    """Return the facts with those that only VMs need; each is read only if the change needs it."""
    if intent.is_settled:
        return replace(facts, snippets=tuple(_snippets(reads, intent, facts)))
    start = intent.start
    _require_named(_find_unnamed(reads, intent, facts))
    if uncertain_options(options_of(intent)):
        facts = replace(facts, release=reads.client.release())
    new = new_volumes(intent)
    images = _disk_images(reads, new, intent.first_node)
    facts = replace(facts, images=images, sizes=image_sizes(new, images))
    if intent.source is None:
        lost = lost_volumes(start, intent.change)
        if converts(intent.desired, start) or lost:
            snapshots = _snapshots(reads, start, with_volumes=bool(lost))
            facts = replace(facts, snapshots=snapshots)
    return replace(facts, snippets=tuple(_snippets(reads, intent, facts)))


def _require_named(error: FleetError | None) -> None:
    """Raise the error for a name that names nothing, if there is one (pure)."""
    if error is not None:
        raise error


def _find_unnamed(reads: GuestReads, intent: VmIntent, facts: Facts) -> FleetError | None:
    """Return the error for a new mapping or storage of the memory that names nothing: PVE looks for
    it only at a start or a snapshot (qemu-server: QemuServer/PCI.pm, QemuConfig.pm).

    PVE itself refuses a mapping that the login may not use, and does not list it.
    """
    client, kind = reads.client, intent.kind
    for device in sorted(kind.devices_in(intent.after) - kind.devices_in(intent.before)):
        word, _slash, name = device.partition("/")
        known = reads.bridges.mappings(word)
        if name in known:
            continue
        if "Mapping.Use" in Privileges(client.privileges()).on(f"/mapping/{device}"):
            return unknown("options", f"{word} mapping", name, known)
    storage = intent.after.get("vmstatestorage")
    if not storage or storage == intent.before.get("vmstatestorage"):
        return None
    return find_unknown(client, facts.cluster, "options", STORAGE, storage, "")


def _disk_images(reads: GuestReads, desired: DesiredVm, node: str) -> dict[str, DiskImage]:
    """Return the ISOs and images that disks use, as a node has them, by volume.

    One request a storage, and one for each image that is imported.
    """
    found: dict[str, DiskImage] = {}
    for disk, volume in volumes_used(desired):
        if disk.image_size:  # the disk of a template, which a storage may not list
            found[volume] = DiskImage(volume, exists=True, size=disk.image_size)
            continue
        image = found.get(volume) or _image(reads, volume, node)
        if image.exists and disk.import_from and not image.size:
            storage, _colon, _name = image.volume.partition(":")
            answer = reads.client.get("nodes", node, "storage", storage, "content", image.volume)
            image = DiskImage(image.volume, exists=True, size=int(answer.get("size") or 0))
        found[volume] = image
    return found


def _image(reads: GuestReads, volume: str, node: str) -> DiskImage:
    rows = reads.contents(node, volume.partition(":")[0])
    others: list[str] = []
    for row in rows:
        if row["volid"] == volume:
            size = row.get("size") if row.get("content") in DISKS else None
            return DiskImage(volume, exists=True, size=int(size or 0))
        if row.get("content") in IMAGES:
            others.append(row["volid"])
    return DiskImage(volume, exists=False, others=tuple(sorted(others)))


def _snapshots(
    reads: GuestReads, actual: Actual, *, with_volumes: bool
) -> dict[str, frozenset[str]]:
    """Return the snapshots of a VM, with their volumes for one more request each."""
    found: dict[str, frozenset[str]] = {}
    for name in sorted(reads.snapshot_names(actual)):
        found[name] = frozenset()
        if with_volumes:
            found[name] = frozenset(_volumes_of(reads, actual, name))
    return found


def _volumes_of(reads: GuestReads, actual: Actual, snapshot: str) -> Iterator[str]:
    """Yield the volumes of the drives in a snapshot; one request."""
    config = reads.client.get(*actual.path, "config", snapshot=snapshot)
    texts = {key: str(text) for key, text in config.items()}
    for drive in drives(texts).values():
        if "file" in drive:
            yield drive["file"]


def _snippets(reads: GuestReads, intent: VmIntent, facts: Facts) -> Iterator[SeenSnippet]:
    """Yield the snippets as the node sees them; one request for each on a listed storage."""
    for volume in sorted(snippets_to_check(intent)):
        storage, _colon, _path = volume.partition(":")
        is_known = any(row.storage == storage for row in facts.cluster.storages)
        snippet = intent.desired.hardware.snippet
        written = snippet if snippet is not None and snippet.volume == volume else None
        before = files_beside(written)
        listed = list_snippets(reads.client, intent.node, storage) if is_known else None
        yield SeenSnippet(volume, written, before, listed, files_beside(written))


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Bring a VM to the desired state and return the result; in check mode write nothing."""
    return run_task(VM_FLOW, read_options(params), client, check_mode)


class VmFlow(GuestFlow[DesiredVm]):
    """How a run brings VMs to their desired state."""

    key = "vm"
    planner = VM_PLANNER
    from_source = staticmethod(from_source)
    from_copy = staticmethod(from_copy)
    read_more = staticmethod(read_vm_facts)
    guest_report = staticmethod(report_of_guest)

    def desired_for(
        self, reads: GuestReads, desired: DesiredVm, actual: Actual, cluster: ClusterState
    ) -> DesiredVm:
        if desired.guest.source is not None:
            desired = with_newer_image(reads, desired, actual, cluster)
        return adopted(desired, actual, cluster)

    def require_names(self, client: Client, desired: DesiredVm) -> tuple[str, ...]:
        release = client.release() if any(unknown_names(desired)) else None
        return require_names(desired, release)


VM_FLOW = VmFlow()
