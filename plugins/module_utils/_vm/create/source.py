# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a new VM comes from: a template, an ISO, a disk image, or nothing.

Reads what that needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..._cluster.lookup import (
    find_template,
    guard_source,
    require_template,
    templates_for,
    templates_named,
)
from ..._cluster.state import ClusterState, StorageRow, VmRow, with_names
from ..._cluster.tenant import parse_tags
from ..._cluster.visible import require_visible
from ..._core.errors import ConfigurationError, Conflict
from ..._core.parallel import side_by_side
from ..model import Actual, Desired, Disk
from .cloning import (
    chained_stores,
    decide_full,
    in_snapshot,
    nodes_for,
    read_source,
    spread_storage,
)
from .copies import nearest, require_alike
from .images import IMAGES

if TYPE_CHECKING:
    from ..._api.client import Client

_ISO_ENDINGS = (".iso", ".img.iso")
_READERS = 8  # copies of a template that are read at once


@dataclass(frozen=True)
class Origin:
    """What a new VM starts from. In `desired`, an image or ISO has become one of the disks."""

    desired: Desired
    template: Actual | None = None
    full: bool = True
    nodes: frozenset[str] | None = None  # where the source can be used, None: anywhere
    copies: tuple[Actual, ...] = ()  # templates of the same name, where there are several

    @property
    def config(self) -> Mapping[str, str]:
        """The configuration of the template, empty without one."""
        if self.template is None:
            return {}
        return self.template.target


def read_origin(client: Client, desired: Desired, cluster: ClusterState) -> Origin:
    """Return the origin of a new VM.

    Raises NotFound, Conflict or ConfigurationError where the source is not clear.
    """
    source = desired.source
    if source is None:
        return Origin(desired)
    if source.volume:
        return _from_volume(desired, source.volume, cluster)
    rows, seen = _templates(client, desired, cluster)
    if len(rows) > 1:
        return _from_copies(client, desired, rows, cluster)
    row = find_template(seen, vmid=source.vmid, name=source.name)
    if rows:
        row = rows[0]
    if row is None and source.name:
        volume = _find_image(client, desired, source.name, cluster)
        if volume:
            return _from_volume(desired, volume, cluster)
    label = f"'{source.name}'"
    if source.vmid:
        label = str(source.vmid)
    if row is None:
        require_visible(client, cluster, source.vmid, f"Template {label} could not be cloned")
    names = templates_for(cluster, desired.tenant_tag, desired.tenant_prefix)
    row = require_template(row, label, names)
    template = _read_template(client, desired, row, cluster)
    return _from_template(client, desired, template, cluster)


def _templates(
    client: Client, desired: Desired, cluster: ClusterState
) -> tuple[list[VmRow], ClusterState]:
    """Return the templates of the source's name that can be cloned, and the cluster state with
    verified names.

    The tenant may clone them, and their nodes are online.
    """
    if desired.source is None or not desired.source.name:
        return [], cluster
    cluster = with_names(client, cluster)  # the listing may have it under a removed VM's name
    rows: list[VmRow] = []
    for row in templates_named(cluster, desired.source.name):
        if not _is_online(cluster, row.node):
            continue
        if _may_clone(desired, row):
            rows.append(row)
    return rows, cluster


def _read_template(client: Client, desired: Desired, row: VmRow, cluster: ClusterState) -> Actual:
    """Return the source VM as it is now. Raises Conflict where the tenant may not clone it."""
    # a new template is none in the listing yet
    _guard(desired, replace(row, template=True), row.tags)
    template = read_source(client, row, cluster)
    row = replace(row, name=row.name or template.name, template=template.template)
    _guard(desired, row, parse_tags(template.target.get("tags")))
    return template


def _from_template(
    client: Client, desired: Desired, template: Actual, cluster: ClusterState
) -> Origin:
    source = desired.source
    if source is not None and source.snapshot:
        template = in_snapshot(client, template, source.snapshot)
    desired = spread_storage(desired, template)
    chained = chained_stores(client, desired, cluster)
    return Origin(
        desired,
        template,
        full=decide_full(desired, template, cluster, chained),
        nodes=nodes_for(desired, template, cluster),
    )


def _is_online(cluster: ClusterState, node: str) -> bool:
    row = cluster.nodes.get(node)
    if row is None:
        return False
    return row.online


def _may_clone(desired: Desired, row: VmRow) -> bool:
    try:
        _guard(desired, row, row.tags)
    except Conflict:
        return False
    return True


def _from_copies(
    client: Client, desired: Desired, rows: list[VmRow], cluster: ClusterState
) -> Origin:
    """Return the origin for copies of one template: with the nearest to a node that is given, else
    with all nodes.
    """
    copies = side_by_side(lambda row: _read_template(client, desired, row, cluster), rows, _READERS)
    require_alike(rows[0].name, copies)
    node = desired.node
    if not node and not desired.rules.given:
        node = client.default_node
    copy = nearest(copies, node, cluster.shared_storages)
    origin = _from_template(client, desired, copy, cluster)
    if node is None and origin.nodes is not None:
        origin = replace(origin, nodes=_nodes_of(desired, copies, cluster))
    return replace(origin, copies=tuple(copies))


def _nodes_of(
    desired: Desired, copies: list[Actual], cluster: ClusterState
) -> frozenset[str] | None:
    """Return where any of the copies can be cloned to, None: anywhere."""
    found: set[str] = set()
    for copy in copies:
        nodes = nodes_for(desired, copy, cluster)
        if nodes is None:
            return None
        found |= nodes
    return frozenset(found)


def _guard(desired: Desired, row: VmRow, tags: Iterable[str]) -> None:
    guard_source(row, tags, desired.tenant_tag, desired.tenant_prefix, desired.shared_sources)


def _from_volume(desired: Desired, volume: str, cluster: ClusterState) -> Origin:
    storage, _colon, _name = volume.partition(":")
    nodes: set[str] = set()
    for row in cluster.storages:
        if row.storage == storage and row.available:
            nodes.add(row.node)
    if not nodes:
        raise ConfigurationError(
            attempted=f"{desired.label} could not be created from {volume}",
            answer=f"no storage {storage} is visible",
            next_step="Check the volume ID; the token needs Datastore.Audit to see a storage",
            reason="unknown storage",
        )
    if volume.lower().endswith(_ISO_ENDINGS):
        desired = _with_iso(desired, volume)
    else:
        desired = _with_image(desired, volume)
    return Origin(desired, nodes=frozenset(nodes))


def _with_iso(desired: Desired, volume: str) -> Desired:
    """Return the desired VM with the ISO in a CD drive."""
    volumes = {disk.volume for disk in desired.disks}
    if volume in volumes:
        return desired
    slot = "ide2"
    if desired.cloud_init_drive == slot:
        slot = "ide0"
    cd = Disk(slot, volume=volume, options={"media": "cdrom"})
    return replace(desired, disks=(*desired.disks, cd))


def _with_image(desired: Desired, volume: str) -> Desired:
    """Return the desired VM whose first disk imports the image. Raises Conflict for two images."""
    disks = list(desired.disks)
    for index, disk in enumerate(disks):
        if disk.is_cdrom or disk.state != "present":
            continue
        if disk.import_from not in (None, volume):
            raise Conflict(
                attempted=f"{desired.label} could not be created from {volume}",
                answer=f"its first disk imports {disk.import_from}",
                next_step="Name the image once",
                reason="two images",
            )
        disks[index] = replace(disk, import_from=volume)
        return replace(desired, disks=tuple(disks))
    return replace(desired, disks=(Disk("scsi0", import_from=volume), *disks))


def _find_image(client: Client, desired: Desired, name: str, cluster: ClusterState) -> str | None:
    """Return the one ISO or importable image whose file has that name, with or without its
    ending.
    """
    found: set[str] = set()
    for row in _image_storages(desired, cluster):
        for volume in _contents(client, row):
            _folder, _slash, file = str(volume["volid"]).rpartition("/")
            stem, _dot, _ending = file.rpartition(".")
            if name not in (file, stem):
                continue
            if volume.get("content") in row.content & IMAGES:
                found.add(volume["volid"])
    if len(found) > 1:
        raise Conflict(
            attempted=f"Image '{name}' could not be chosen",
            answer=f"several volumes have that name: {', '.join(sorted(found))}",
            next_step="Name the one you mean as storage:path",
            reason="ambiguous image",
        )
    return next(iter(found), None)


def _image_storages(desired: Desired, cluster: ClusterState) -> list[StorageRow]:
    """Return the storages that can hold the image, a shared one once."""
    found: dict[tuple[str, str], StorageRow] = {}
    for row in cluster.storages:
        if not row.available or IMAGES.isdisjoint(row.content):
            continue
        if desired.node and row.node != desired.node:
            continue
        place = row.node
        if row.shared:
            place = ""
        found.setdefault((row.storage, place), row)
    return list(found.values())


def _contents(client: Client, row: StorageRow) -> list[dict[str, Any]]:
    return client.get("nodes", row.node, "storage", row.storage, "content")
