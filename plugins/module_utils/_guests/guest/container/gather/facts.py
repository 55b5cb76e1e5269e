# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the source of a new container, and the facts that plans of containers need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....._foundation.cluster.find.visible import probe_vmid, require_visible
from ....._foundation.cluster.state import ClusterState, VmRow, with_names
from ....._foundation.cluster.storages.allocation import with_allocations
from ....._foundation.cluster.storages.template_file import TemplateFile
from ....kinds.container.kind import CONTAINER
from ....kinds.container.model import DesiredContainer
from ....kinds.model import Actual, GuestSource
from ...flow.gather import gather_shared
from ...flow.intent import GuestFacts
from ...flow.place import usage_for
from ...flow.reads import GuestReads, find_file, read_archive
from ...live.read import read_source
from ...plan.allocation import Definitions, needs_definitions
from ...plan.archive import is_archive, require_kind, require_listed, require_own_archive
from ...plan.copies import choose_copy, image_of, place_of, require_alike
from ...plan.origin import storages_with
from ..plan.decide import ContainerBlueprint, ContainerIntent, is_disputed
from ..plan.origin import (
    TEMPLATES,
    ContainerOrigin,
    is_oci,
    newest,
    of_container,
    require_own_container,
    require_source,
    require_visible_file,
    rows_of,
)


def origin_of(
    reads: GuestReads, desired: DesiredContainer, cluster: ClusterState
) -> ContainerOrigin:
    """Return the origin of a new container. Raises FleetError if the source is not clear."""
    source = require_source(desired, cluster)
    if source.volume:
        return _of_volume(reads, desired, source.volume, cluster)
    named = with_names(reads.client, cluster) if source.name else cluster
    rows = rows_of(source, desired, named)
    if rows:
        return _of_rows(reads, desired, rows, source, cluster)
    if source.vmid is not None:
        attempted = f"Container {source.vmid} could not be cloned"
        require_visible(probe_vmid(reads.client, cluster, source.vmid), source.vmid, attempted)
    name = source.name or str(source.vmid)
    files = _template_files(reads, desired, cluster)
    volume, nodes = newest(name, files, desired, cluster)
    return ContainerOrigin(desired, volume=volume, nodes=nodes)


def _of_rows(
    reads: GuestReads,
    desired: DesiredContainer,
    rows: Sequence[VmRow],
    source: GuestSource,
    cluster: ClusterState,
) -> ContainerOrigin:
    """Return the origin of a clone, from the only container or from one of several copies."""
    found: list[Actual] = []
    for row in rows:
        actual = read_source(reads.client, CONTAINER, row)
        require_own_container(desired, row, actual)
        found.append(actual)
    if len(found) == 1 and not image_of(found[0]).version:
        return clone_origin(reads, desired, found[0], cluster)
    require_alike(source.name or "", found)
    shared = cluster.shared_storages
    copy, nodes = choose_copy(
        found, desired.guest, reads.client.default_node, shared, lambda one: place_of(one, shared)
    )
    origin = clone_origin(reads, desired, copy, cluster)
    return replace(origin, nodes=nodes, copies=tuple(found))


def clone_origin(
    reads: GuestReads, desired: DesiredContainer, actual: Actual, cluster: ClusterState
) -> ContainerOrigin:
    """Return the origin of a clone of that container, or of one of its snapshots."""
    return of_container(desired, reads.cloned_state(actual, desired.guest.source), cluster)


def _of_volume(
    reads: GuestReads, desired: DesiredContainer, volume: str, cluster: ClusterState
) -> ContainerOrigin:
    """Return the origin from a file of a storage; one request for each node that may have it."""
    file = find_file(reads, volume, desired.guest.node, cluster)
    if not is_archive(volume):
        require_visible_file(volume, file.having, file.others)
        return ContainerOrigin(desired, volume=volume, nodes=file.nodes)
    require_listed(volume, file.having, desired.guest.node)
    config = read_archive(reads.client, volume, min(file.having))
    require_kind(CONTAINER, volume, config)
    require_own_archive(desired.guest, volume, config)
    return ContainerOrigin(desired, volume=volume, archived=config, nodes=file.nodes)


def _template_files(
    reads: GuestReads, desired: DesiredContainer, cluster: ClusterState
) -> Iterator[TemplateFile]:
    """Yield the templates of containers on the storages; one request for each storage."""
    for row in storages_with({TEMPLATES}, desired.guest.node, cluster):
        for volume in reads.contents(row.node, row.storage):
            if volume.get("content") == TEMPLATES:
                yield TemplateFile(str(volume["volid"]), None if row.shared else row.node)


def gather_new(
    reads: GuestReads, blueprint: ContainerBlueprint, node: str, cluster: ClusterState
) -> GuestFacts:
    """Return the facts for the plan of a new container; each is read only if it is needed."""
    guest = blueprint.desired.guest
    pools = None
    if guest.pool and guest.pool not in cluster.pools:
        pools = reads.pools()
    return GuestFacts(
        with_allocations(reads.client, cluster, blueprint.needs({}).room, CONTAINER.content),
        definitions=_definitions(reads, blueprint.desired, blueprint.origin.config, cluster),
        release=_release(reads, is_disputed(blueprint.change) or is_oci(blueprint.origin.volume)),
        bridges=reads.bridges_on(node, blueprint.bridges),
        mtus=reads.mtus_on(node, CONTAINER.mtus_in(blueprint.config)),
        pools=pools,
        usage=usage_for(reads, guest, blueprint.figures, cluster, in_creation=True),
    )


def gather_existing(
    reads: GuestReads, intent: ContainerIntent, cluster: ClusterState
) -> GuestFacts:
    """Return the facts for the plan of a change; each is read only if the change needs it."""
    facts = GuestFacts(
        with_allocations(reads.client, cluster, intent.room({}, cluster), CONTAINER.content),
        definitions=_definitions(reads, intent.desired, intent.actual.target, cluster),
        release=_release(reads, is_disputed(intent.change)),
        bridges=reads.bridges_on(intent.node, intent.bridges),
        mtus=reads.mtus_on(intent.node, intent.mtus),
    )
    return gather_shared(reads, intent, facts)


def _definitions(
    reads: GuestReads, desired: DesiredContainer, config: Mapping[str, str], cluster: ClusterState
) -> Definitions:
    """Return the definitions of storages, if a storage class asks for thin or thick volumes."""
    if needs_definitions(desired, config, cluster):
        return reads.definitions()
    return {}


def _release(reads: GuestReads, matters: bool) -> Any:
    return reads.client.release() if matters else None
