# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module clone: find the existing clone, complete an unfinished one, or create it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .._cluster.lookup import find_template, find_vm, templates_for, templates_named
from .._cluster.restoring import remark_on_restored
from .._cluster.state import ClusterState, VmRow, fetch_cluster_state, with_names
from .._cluster.unread import remark_on_unread
from .._core import validate
from .._core.errors import Conflict, NotFound
from .._core.result import Result
from .._guest.flow.apply import apply_plan
from .._guest.flow.flow import require_choice
from .._guest.live.find import find
from .._guest.marker import split_notes
from .._guest.model import Actual, Guest, Source
from .context import VmContext
from .desired.parse import VmOptions, read_options
from .kind import VM
from .model import DesiredVm
from .plan.origin import require_no_container
from .run import VM_FLOW, VmPlan, context_of

if TYPE_CHECKING:
    from .._api.client import Client


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Make sure that the clone exists and return the outcome.

    In check mode plan it and write nothing.

    Of a finished clone, only the power state changes. Raises Conflict if the VM of that name or
    number was not cloned from the source.
    """
    context = context_of(read_clone_options(params), client, check_mode)
    return apply_plan(plan_clone_vm(context, fetch_cluster_state(client, {VM.type})))


def plan_clone_vm(context: VmContext, cluster: ClusterState) -> VmPlan:
    """Return the plan for the clone: make it, complete it, or change its power state alone."""
    desired = context.desired
    origin, cluster = _source_number(context.client, desired, cluster)
    actual, cluster = find(context.of_guest, cluster)
    if actual is None:
        if desired.guest.source is not None and desired.guest.source.name:
            # The listing can have a VM under the name of a removed one: its node knows better.
            cluster = with_names(context.client, cluster)
            origin, cluster = _source_number(context.client, desired, cluster)
        source = Source(vmid=origin, **_of_clone(desired.guest.source))
        if desired.guest.source is not None and len(_copies(desired, cluster)) > 1:
            source = desired.guest.source  # which copy depends on the node
        vm_plan = VM_FLOW.new(replace(context, desired=desired.with_guest(source=source)), cluster)
        return replace(vm_plan, requested=context, plan_again=plan_clone_vm)
    marker = split_notes(actual.target.get("description"))[1]
    wanted = marker.origin if marker.origin in _copies(desired, cluster) else origin
    _require_same(desired, actual, marker.origin, wanted or origin)
    if not marker.building:
        context = replace(context, desired=_power_only(desired, actual))
    return replace(VM_FLOW.plan_found(context, actual, cluster), plan_again=plan_clone_vm)


def read_clone_options(params: Mapping[str, Any]) -> VmOptions:
    """Return the parsed options; every refusal is a ValidationFailed."""
    options = read_options(params)
    desired = options.desired
    require_choice(desired.guest, "No clone was chosen")
    source = desired.guest.source
    if source is None or source.volume:
        raise validate.refused(
            "source",
            params.get("source"),
            "is not a VM",
            "Give the VMID or name of a template or VM",
        )
    if source.vmid is not None and source.vmid == desired.guest.vmid:
        raise validate.refused(
            "vmid",
            desired.guest.vmid,
            "is the source itself",
            "Choose another vmid, or leave it out",
        )
    storage = validate.storage(params["storage"]) if params.get("storage") else None
    source = replace(
        source,
        snapshot=params.get("snapshot") or None,
        storage=storage,
        format=params.get("format") or None,
    )
    # a copy keeps the agent as its source has it
    desired = desired.with_guest(source=source).with_hardware(default_agent=False)
    return replace(options, desired=desired)


def _of_clone(source: Source | None) -> dict[str, Any]:
    given = source or Source()
    return {name: getattr(given, name) for name in ("full", "snapshot", "storage", "format")}


def _source_number(
    client: Client, desired: DesiredVm, cluster: ClusterState
) -> tuple[int, ClusterState]:
    """Return the number of the source, and the cluster state that was searched.

    A name means the one template of that name, or else the one VM. Raises NotFound and Conflict if
    it is not clear.
    """
    given = desired.guest.source or Source()
    if given.vmid is not None:
        return given.vmid, cluster
    row = _named(desired, cluster)
    if row is None:
        cluster = with_names(client, cluster)
        row = _named(desired, cluster)
    return _require_found(row, desired, cluster).vmid, cluster


def _require_found(row: VmRow | None, desired: DesiredVm, cluster: ClusterState) -> VmRow:
    """Return the row of the source. Raises NotFound with the names of the templates."""
    if row is not None:
        return row
    source = desired.guest.source or Source()
    require_no_container(source, cluster)
    names = templates_for(cluster, desired.guest.tenant_tag, desired.guest.tenant_prefix)
    raise NotFound(
        attempted=f"Source '{source.name}' could not be cloned",
        answer=(
            "no template or VM of that name is visible; templates are"
            f" {', '.join(names) or 'none'}{remark_on_unread(cluster)}"
            f"{remark_on_restored(cluster)}"
        ),
        next_step="Check the spelling, and that the token has VM.Audit and VM.Clone on it",
        reason="template missing",
    )


def _copies(desired: DesiredVm, cluster: ClusterState) -> frozenset[int]:
    """Return the numbers of the templates of the source's name; any of them will do."""
    name = desired.guest.source.name if desired.guest.source else None
    return frozenset(row.vmid for row in templates_named(cluster, name)) if name else frozenset()


def _named(desired: DesiredVm, cluster: ClusterState) -> VmRow | None:
    name = desired.guest.source.name if desired.guest.source else None
    tag = None if name in desired.guest.shared_sources else desired.guest.tenant_tag
    found = find_template(cluster, name=name)
    return found or find_vm(
        cluster, vmid=None, name=name, tenant_tag=tag, prefix=desired.guest.tenant_prefix
    )


def _require_same(desired: DesiredVm, actual: Actual, origin: int | None, wanted: int) -> None:
    """Raise Conflict unless the VM that is there is the clone that is asked for."""
    if origin == wanted and desired.guest.name in (None, actual.name):
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
        step = "Choose another name or vmid, or manage that VM with pve.fleet.vm"
    else:
        answer = f"it was cloned from {origin}, not from {wanted}"
        step = "Choose another name or vmid, or give the source it was cloned from"
    raise Conflict(
        attempted=f"{actual.label} was not changed",
        answer=answer,
        next_step=step,
        reason="other origin",
    )


def _power_only(desired: DesiredVm, actual: Actual) -> DesiredVm:
    """Return the desired state of a finished clone: its power state, and nothing else."""
    guest = Guest(
        kind=VM,
        name=actual.target.get("name"),
        vmid=actual.vmid,
        node=None,
        state=desired.guest.state,
        tenant=desired.guest.tenant,
        tenant_prefix=desired.guest.tenant_prefix,
        force=desired.guest.force,
        shutdown_timeout=desired.guest.shutdown_timeout,
    )
    return DesiredVm(guest)
