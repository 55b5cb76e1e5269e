# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module clone: find the source and the existing clone, complete an unfinished one, or
create it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.find.lookup import find_template, templates_for, templates_named
from ...._foundation.cluster.find.restoring import remark_on_restored
from ...._foundation.cluster.find.unread import remark_on_unread
from ...._foundation.cluster.rules import require_not_kept
from ...._foundation.cluster.state import (
    ClusterState,
    VmRow,
    fetch_cluster_state,
    with_names,
    with_other_names,
)
from ...._foundation.cluster.storages.images import image_of, with_version
from ...._foundation.cluster.view import ClusterView
from ...._foundation.core.errors import Conflict, NotFound
from ...._foundation.core.result import Result
from ...kinds.hardware import DesiredGuest
from ...kinds.marker import Marker, split_notes
from ...kinds.model import Actual, Guest, GuestSource
from ...kinds.words import VM, kind_name, label_of
from ..context import RunContext
from ..flow.apply import apply_plan
from ..flow.flow import GuestPlan
from ..live.find import find
from ..plan.copies import guest_of_source, may_clone
from ..registry import LISTS, VMS, ListKind, list_of
from .options import read_clone

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Create the clone if it does not exist and return the outcome; check mode writes nothing.

    Only the power state of a finished clone changes. Raises Conflict if the guest of that name or
    VMID was not cloned from the source.
    """
    readings = read_clone(params)
    require_not_kept(readings.either.desired.guest.rules, "a single guest")
    cluster = fetch_cluster_state(client, {VM.type})
    one, cluster = kind_of_source(client, readings.either.desired.guest, cluster)
    options, kind = readings.of(one), one.kind.type
    context = one.flow.ready(
        RunContext(
            client=client,
            desired=options.desired,
            settings=options.settings,
            check_mode=check_mode,
            cluster_view=ClusterView(client, {kind}),
        )
    )
    result = apply_plan(plan_clone_of(context, cluster.of_type(kind)))
    # the result has the clone as C(vm) for both kinds
    values = dict(result.values)
    values = {**values, "vm": values.pop(one.flow.key), "kind": kind_name(kind)}
    return replace(result, values=values)


def plan_clone_of(context: RunContext[Any], cluster: ClusterState) -> GuestPlan[Any]:
    """Return the plan for the clone: create it, complete it, or change only its power state."""
    desired, client = context.desired, context.client
    guest = desired.guest
    flow = list_of(guest.kind.type).flow
    origin, cluster = source_number(client, guest, cluster)
    actual, cluster = find(context, cluster)
    if actual is None:
        if guest.source is not None and guest.source.name:
            # The listing can have a removed guest's name for a guest; the node has the right name.
            cluster = with_names(client, cluster)
            origin, cluster = source_number(client, guest, cluster)
        source = replace(guest.source or GuestSource(), vmid=origin, name=None)
        if guest.source is not None and depends_on_node(guest, cluster):
            source = guest.source  # the copy depends on the node
        guest_plan = flow.new(context.with_desired(desired.with_guest(source=source)), cluster)
        return replace(guest_plan, requested=context, plan_again=plan_clone_of)
    marker = split_notes(actual.target.get("description"))[1]
    wanted = marker.origin if is_copy(marker, guest, cluster) else origin
    _require_same(guest, actual, marker.origin, wanted or origin)
    if not marker.building:
        context = context.with_desired(_power_only(desired, actual))
    return replace(flow.plan_found(context, actual, cluster), plan_again=plan_clone_of)


def _require_same(desired: Guest, actual: Actual, origin: int | None, wanted: int) -> None:
    """Raise Conflict unless the existing guest is the requested clone."""
    if origin == wanted and desired.name in (None, actual.name):
        return
    if actual.vmid == wanted:
        answer, step = "it is the source itself", "Give the clone another name"
    elif origin == wanted:
        answer, step = (
            f"the clone of {wanted} with that number has another name",
            "Give its name, or choose another vmid",
        )
    elif origin is None:
        answer = f"nothing in its notes says that it was cloned from {wanted}"
        module = f"pve.fleet.{kind_name(actual.kind.type)}"
        step = f"Choose another name or vmid, or manage that {actual.kind.noun} with {module}"
    else:
        answer = f"it was cloned from {origin}, not from {wanted}"
        step = "Choose another name or vmid, or give the source it was cloned from"
    raise Conflict(f"{actual.label} was not changed: {answer}", step, "other origin")


def _power_only(desired: DesiredGuest, actual: Actual) -> DesiredGuest:
    """Return the desired state of a finished clone: only its power state."""
    guest = Guest(
        kind=actual.kind,
        name=actual.target.get(actual.kind.name_option),
        vmid=actual.vmid,
        node=None,
        state=desired.guest.state,
        tenant=desired.guest.tenant,
        tenant_prefix=desired.guest.tenant_prefix,
        force=desired.guest.force,
        shutdown_timeout=desired.guest.shutdown_timeout,
    )
    return type(desired)(guest)


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
        nodes = {row.node for row in cluster.others.values()}
        cluster = with_other_names(client, with_names(client, cluster), nodes)
        rows = _rows_of_name(desired, cluster)
    return _kind_of_rows(desired, rows), cluster


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
    own = [row for row in rows if may_clone(desired, row)] or rows
    meant = [row for row in own if row.template] or own
    if len(meant) < 2:
        return list_of(meant[0].type) if meant else VMS
    raise Conflict(
        f"Source '{meant[0].name}' could not be chosen: "
        f"{' and '.join(label_of(row) for row in meant)} have that name",
        "Name the one you mean by its VMID",
        "ambiguous name",
    )


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
        f"Source '{source.name}' could not be cloned: no template, VM or container of that name "
        "is visible; templates are "
        f"{', '.join(sorted(names)) or 'none'}{remark_on_unread(cluster)}{remark_on_restored(cluster)}",
        "Check the spelling, and that the token has VM.Audit and VM.Clone on it",
        "template missing",
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
