# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The source of a clone: a VM or a container, given by name or VMID."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...._foundation.cluster.find.lookup import (
    find_template,
    require_own_source,
    templates_for,
    templates_named,
)
from ...._foundation.cluster.find.restoring import remark_on_restored
from ...._foundation.cluster.find.unread import remark_on_unread
from ...._foundation.cluster.state import ClusterState, VmRow, with_names, with_other_names
from ...._foundation.cluster.storages.images import image_of, with_version
from ...._foundation.core.errors import Conflict, NotFound
from ...kinds.marker import Marker
from ...kinds.model import Guest, GuestSource
from ...kinds.words import label_of
from ..plan.copies import guest_of_source
from ..registry import LISTS, VMS, ListKind, list_of

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


def kind_of_source(
    client: Client, desired: Guest, cluster: ClusterState
) -> tuple[ListKind, ClusterState]:
    """Return the kind of the source, and the cluster state that was searched.

    The nodes are asked for names if the listing lacks the name. A template of either kind has
    priority over other guests. A source that does not exist counts as a VM. Raises Conflict if a
    guest of each kind has the name.
    """
    source = desired.source or GuestSource()
    if source.vmid is not None:
        row = cluster.guest(source.vmid)
        return (list_of(row.type) if row is not None else VMS), cluster
    rows = _rows_of_name(desired, cluster)
    if not rows:
        cluster = with_other_names(client, with_names(client, cluster), _nodes_of_others(cluster))
        rows = _rows_of_name(desired, cluster)
    return _kind_of_rows(desired, rows), cluster


def _nodes_of_others(cluster: ClusterState) -> Iterable[str]:
    return {row.node for row in cluster.others.values()}


def _rows_of_name(desired: Guest, cluster: ClusterState) -> list[VmRow]:
    """Return the guest of each kind that the name refers to (pure)."""
    found: list[VmRow] = []
    for one in LISTS:
        row = named(desired, cluster.of_type(one.kind.type))
        if row is not None:
            found.append(row)
    return found


def _kind_of_rows(desired: Guest, rows: Sequence[VmRow]) -> ListKind:
    """Return the kind of the guest that a name refers to (pure). Raises Conflict."""
    own = [row for row in rows if _may_clone(desired, row)] or rows
    meant = [row for row in own if row.template] or own
    if len(meant) < 2:
        return list_of(meant[0].type) if meant else VMS
    raise Conflict(
        attempted=f"Source '{meant[0].name}' could not be chosen",
        answer=f"{' and '.join(label_of(row) for row in meant)} have that name",
        next_step="Name the one you mean by its VMID",
        reason="ambiguous name",
    )


def _may_clone(desired: Guest, row: VmRow) -> bool:
    try:
        require_own_source(
            row, row.tags, desired.tenant_tag, desired.tenant_prefix, desired.shared_sources
        )
    except Conflict:
        return False
    return True


def source_number(
    client: Client, desired: Guest, cluster: ClusterState
) -> tuple[int, ClusterState]:
    """Return the VMID of the source, and the cluster state that was searched.

    A name refers to the only template of that name, or else to the only guest. Raises NotFound if
    there is none, and Conflict if the name is ambiguous.
    """
    source = desired.source or GuestSource()
    if source.vmid is not None:
        return source.vmid, cluster
    row = named(desired, cluster)
    if row is None:
        cluster = with_names(client, cluster)
        row = named(desired, cluster)
    return _require_found(row, desired, cluster).vmid, cluster


def _require_found(row: VmRow | None, desired: Guest, cluster: ClusterState) -> VmRow:
    """Return the row of the source. Raises NotFound with the names of the templates (pure)."""
    if row is not None:
        return row
    source = desired.source or GuestSource()
    names: list[str] = []
    for one in LISTS:
        of_kind = cluster.of_type(one.kind.type)
        names += templates_for(of_kind, desired.tenant_tag, desired.tenant_prefix)
    raise NotFound(
        attempted=f"Source '{source.name}' could not be cloned",
        answer=(
            "no template, VM or container of that name is visible; templates are"
            f" {', '.join(sorted(names)) or 'none'}{remark_on_unread(cluster)}"
            f"{remark_on_restored(cluster)}"
        ),
        next_step="Check the spelling, and that the token has VM.Audit and VM.Clone on it",
        reason="template missing",
    )


def copies(desired: Guest, cluster: ClusterState) -> list[VmRow]:
    """Return the templates of the source's name and version; any of them is suitable (pure).

    Raises NotFound for a version that no template has.
    """
    source = desired.source
    if source is None or not source.name:
        return []
    return with_version(templates_named(cluster, source.name), source.version, source.name)


def depends_on_node(desired: Guest, cluster: ClusterState) -> bool:
    """Return whether the template depends on the node: there are copies or an image (pure)."""
    found = copies(desired, cluster)
    return len(found) > 1 or any(image_of(row).version for row in found)


def is_copy(marker: Marker, desired: Guest, cluster: ClusterState) -> bool:
    """Return whether a guest was cloned from a current or earlier template of the source (pure)."""
    source = desired.source
    if marker.image is not None and source is not None and source.name == marker.image.name:
        return source.version in (None, marker.image.version)
    return marker.origin in {row.vmid for row in copies(desired, cluster)}


def named(desired: Guest, cluster: ClusterState) -> VmRow | None:
    """Return the guest that the source's name refers to, or None (pure). Raises Conflict."""
    name = desired.source.name if desired.source else None
    found = find_template(cluster, name=name)
    return found or guest_of_source(desired, desired.source, cluster)
