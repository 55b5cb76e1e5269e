# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the source of a new VM, and the image that replaces the system disk of an existing one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from ....._foundation.cluster.find.visible import probe_vmid
from ....._foundation.cluster.state import ClusterState, StorageRow, VmRow, with_names
from ....._foundation.core.errors import FleetError
from ....._foundation.core.parallel import side_by_side
from ....._foundation.core.retry import TimeBudget
from ....kinds.model import Actual, GuestSource
from ....kinds.vm.kind import VM
from ....kinds.vm.model import DesiredVm
from ...flow.reads import find_file, read_archive
from ...live.read import read_source
from ...plan.archive import is_archive, require_listed
from ...plan.copies import choose_copy, guest_of_source, image_of, require_alike
from ...plan.origin import find_newer_copy, storages_with
from ..plan.cloning import chained_in, nodes_for, storages_that_may_chain
from ..plan.origin import (
    IMAGES,
    FoundSource,
    VmOrigin,
    of_archive,
    of_template,
    of_volume,
    require_own_templates,
    require_source,
    rows_of,
)
from ..plan.replacement import replaced
from .reads import VmReads

_READERS = 8  # copies of a template that are read at once


def origin_of(reads: VmReads, desired: DesiredVm, cluster: ClusterState) -> VmOrigin:
    """Return the origin of a new VM. Raises FleetError if the source is not clear."""
    source = desired.guest.source
    if source is None:
        return VmOrigin(desired)
    if source.volume and is_archive(source.volume):
        return _of_archive(reads, desired, source.volume, cluster)
    if source.volume:
        return of_volume(desired, source.volume, cluster)
    found = _search(reads, source, desired, cluster)
    volume = require_source(source, found, desired, cluster)
    if volume:
        return of_volume(desired, volume, cluster)
    templates = read_templates(reads, found.rows)
    require_own_templates(desired, found.rows, templates)
    if len(templates) == 1 and not image_of(templates[0]).version:
        return clone_origin(reads, desired, templates[0], cluster)
    require_alike(found.rows[0].name, templates)
    return _of_copies(reads, desired, templates, cluster)


def _of_archive(reads: VmReads, desired: DesiredVm, volume: str, cluster: ClusterState) -> VmOrigin:
    """Return the origin of a restore: a request for each node, and one for the configuration."""
    file = find_file(reads, volume, desired.guest.node, cluster)
    require_listed(volume, file.having, desired.guest.node)
    config = read_archive(reads.client, volume, min(file.having))
    return of_archive(desired, volume, config, file.nodes)


def _search(
    reads: VmReads, source: GuestSource, desired: DesiredVm, cluster: ClusterState
) -> FoundSource:
    state = cluster
    if source.name:  # the listing may show the source under the name of a removed VM
        state = with_names(reads.client, cluster)
    rows = rows_of(source, desired, state)
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


def _images_named(reads: VmReads, name: str, storages: Sequence[StorageRow]) -> Iterator[str]:
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


def read_templates(reads: VmReads, rows: Sequence[VmRow]) -> list[Actual]:
    """Return the VMs to clone, each once it is not locked."""
    return side_by_side(lambda row: _read_unlocked(reads, row), rows, _READERS)


def _read_unlocked(reads: VmReads, row: VmRow) -> Actual:
    """Return the VM to clone once it is not locked, or after the connection's lock_timeout."""
    client = reads.client
    budget = TimeBudget(client.clock, client.connection.lock_timeout)
    while True:
        source = read_source(client, VM, row, row.status)
        if not source.lock or not budget.again():
            return source


def clone_origin(
    reads: VmReads, desired: DesiredVm, template: Actual, cluster: ClusterState
) -> VmOrigin:
    """Return the origin of a clone of that template, or of one of its snapshots."""
    template = reads.cloned_state(template, desired.guest.source)
    return of_template(desired, template, cluster, chained_stores(reads, desired, cluster))


def chained_stores(reads: VmReads, desired: DesiredVm, cluster: ClusterState) -> frozenset[str]:
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


def _of_copies(
    reads: VmReads, desired: DesiredVm, copies: Sequence[Actual], cluster: ClusterState
) -> VmOrigin:
    """Return the origin of a clone of one of these copies, with the nodes for a clone."""
    copy, nodes = choose_copy(
        copies,
        desired.guest,
        reads.client.default_node,
        cluster.shared_storages,
        lambda one: nodes_for(desired, one, cluster),
    )
    origin = clone_origin(reads, desired, copy, cluster)
    return replace(origin, nodes=nodes, copies=tuple(copies))


def with_newer_image(
    reads: VmReads, desired: DesiredVm, actual: Actual, cluster: ClusterState
) -> DesiredVm:
    """Return the desired VM with the system disk of the present image of its source.

    Unchanged if the task does not request that, or if the VM already comes from that image.
    """
    source = desired.guest.source
    if not desired.guest.replace_image or source is None or not source.name:
        return desired
    copy = find_newer_copy(desired.guest, actual, cluster, partial(read_templates, reads))
    return desired if copy is None else replaced(desired, actual, copy)
