# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module clone: find the existing clone, complete an unfinished one, or create it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.rules import require_not_kept
from ...._foundation.cluster.state import ClusterState, fetch_cluster_state, with_names
from ...._foundation.cluster.view import ClusterView
from ...._foundation.core.errors import Conflict
from ...._foundation.core.result import Result
from ...kinds.hardware import DesiredGuest
from ...kinds.marker import split_notes
from ...kinds.model import Actual, Guest, GuestSource
from ...kinds.words import VM, kind_name
from ..context import RunContext
from ..flow.apply import apply_plan
from ..flow.flow import GuestPlan
from ..live.find import find
from ..registry import list_of
from .options import read_clone
from .source import depends_on_node, is_copy, kind_of_source, source_number

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
    return _reported(result, one.flow.key, kind_name(kind))


def _reported(result: Result, key: str, word: str) -> Result:
    """Return the result with the clone as C(vm) for both kinds (pure)."""
    values = dict(result.values)
    return replace(result, values={**values, "vm": values.pop(key), "kind": word})


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
    raise Conflict(
        attempted=f"{actual.label} was not changed",
        answer=answer,
        next_step=step,
        reason="other origin",
    )


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
