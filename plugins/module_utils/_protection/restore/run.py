# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module restore: choose the archive, then restore a new guest or overwrite one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ..._foundation.cluster.state import (
    ClusterState,
    VmRow,
    fetch_cluster_state,
    with_names,
    without_vm,
)
from ..._foundation.cluster.tenant import have_same_tenants, parse_tags
from ..._foundation.cluster.view import ClusterView
from ..._foundation.core.errors import Conflict, FleetError, ValidationFailed
from ..._foundation.core.result import Result
from ..._foundation.resource.engine import after_writes
from ..._guests.guest.context import RunContext
from ..._guests.guest.create.orphan import removal_summary, remove_orphan
from ..._guests.guest.flow.apply import apply_plan
from ..._guests.guest.flow.flow import GuestFlow, GuestPlan
from ..._guests.guest.live.creation import has_creation_marker
from ..._guests.guest.live.find import find
from ..._guests.guest.plan.archive import require_own_archive
from ..._guests.guest.registry import list_of
from ..._guests.kinds.model import Actual
from ..._guests.kinds.words import CONTAINER, VM
from ..._operation.tasks.read import TaskQuery, read_removals, read_tasks
from ..._operation.tasks.row import TaskRow, newest_first
from ..backup.archive import Archive, describe_archive
from .choose import ChosenArchive
from .desired import DesiredRestore, read_desired
from .guest import read_guest
from .interrupted import find_locked, find_orphans, find_ran_before_failure, has_failed
from .overwrite.run import overwrite
from .read import find_chosen, read_all

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_TASK = "vzrestore"
AnyFlow: TypeAlias = GuestFlow[Any]
AnyPlan: TypeAlias = GuestPlan[Any]


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Restore a guest from an archive and return the result; in check mode write nothing."""
    desired = read_desired(params)
    cluster = with_names(client, fetch_cluster_state(client), missing=True)
    archives = read_all(client, cluster, desired).archives
    chosen = find_chosen(client, cluster, desired, archives)
    completion = None
    if desired.confirm:
        completion = find_completion(client, cluster, desired, chosen)
    desired = _in_pool(desired, chosen)
    if completion is not None:
        completion = _starting_again(client, completion, chosen, archives)
        return restore_new(client, completion, chosen, archives, check_mode)
    if desired.confirm:
        flow, context = context_of(
            client, desired, chosen, chosen.name or desired.confirm, check_mode
        )
        require_own_archive(context.desired.guest, chosen.archive.volume, chosen.config)
        result = overwrite(flow, context, desired, chosen, cluster, archives)
        return reported(_with_guest(flow, result), _described(client, desired, chosen), (), ())
    return restore_new(client, desired, chosen, archives, check_mode)


def _in_pool(desired: DesiredRestore, chosen: ChosenArchive) -> DesiredRestore:
    """Return the restore of a new guest in the pool of the original, unless the task has a pool:
    the rights of a tenant depend on it (pure). A guest of another tenant with the VMID of the
    archive is not the original.
    """
    row, prefix = chosen.row, desired.owner.prefix
    if not desired.new_name or row is None or not row.pool or "pool" in desired.options:
        return desired
    archived = parse_tags(chosen.config.get("tags"))
    if not have_same_tenants(archived, row.tags, prefix):
        return desired
    return replace(desired, options={**desired.options, "pool": row.pool})


def _starting_again(
    client: Client, completion: DesiredRestore, chosen: ChosenArchive, archives: Sequence[Archive]
) -> DesiredRestore:
    """Return the completion of a failed restore, which starts the guest if it ran before."""
    options, vmid = completion.options, chosen.archive.vmid or 0
    if options.get("state", "present") != "present":
        return completion
    ran = find_ran_before_failure(client, chosen.kind, vmid, str(options["node"]), archives)
    if ran is None:
        return completion
    return replace(completion, options={**options, "state": "started"})


def restore_new(
    client: Client,
    desired: DesiredRestore,
    chosen: ChosenArchive,
    archives: Sequence[Archive],
    check_mode: bool,
) -> Result:
    """Remove the empty VMs of earlier restores, then restore a new guest."""
    cluster = with_names(client, fetch_cluster_state(client, {VM.type}), missing=True)
    orphans = find_orphans(client, cluster, desired.owner, archives)
    locked = find_locked(client, cluster, desired.owner, archives)
    flow, context = context_of(client, desired, chosen, desired.new_name, check_mode)
    require_own_archive(context.desired.guest, chosen.archive.volume, chosen.config)
    planner = planner_of(flow, chosen)
    before = without_orphans(context.cluster_view.now(), orphans)
    guest_plan = replace(planner(context, before), plan_again=planner)
    planned = [removal_summary(VM, row.vmid, row.node) for row in orphans]
    done: list[str] = []
    if not check_mode:
        done = remove_orphans(client, orphans, desired.timeout)
    with after_writes(done):
        result = apply_plan(guest_plan)
    result = replace(result, warnings=(*result.warnings, *locked))
    return reported(_with_guest(flow, result), _described(client, desired, chosen), planned, done)


def _with_guest(flow: AnyFlow, result: Result) -> Result:
    """Return the result with its guest under the same key for VMs and containers (pure)."""
    return replace(result, values={**result.values, "guest": result.values[flow.key]})


def _described(client: Client, desired: DesiredRestore, chosen: ChosenArchive) -> dict[str, Any]:
    """Return the archive as the module reports it."""
    now, prefix = client.clock.time(), desired.owner.prefix
    described = describe_archive(chosen.archive, chosen.row, now, prefix, notes=False)
    return {**described, "left_out": chosen.unsaved}


def context_of(
    client: Client, desired: DesiredRestore, chosen: ChosenArchive, name: str, check_mode: bool
) -> tuple[AnyFlow, Any]:
    """Return the flow of the guest's kind, and the context of the guest with this name."""
    of = list_of(chosen.kind.type)
    options = read_guest(desired, chosen, name)
    view = ClusterView(client, {chosen.kind.type})
    context: RunContext[Any] = RunContext(
        client, options.desired, options.settings, check_mode, view
    )
    return of.flow, of.flow.ready(context)


def planner_of(flow: AnyFlow, chosen: ChosenArchive) -> Callable[[Any, ClusterState], AnyPlan]:
    """Return the function that plans the new guest from the state of the cluster."""

    def plan(context: Any, cluster: ClusterState) -> AnyPlan:
        actual, searched = find(context, cluster)
        if actual is None:
            return flow.plan_missing(context, cluster, searched)
        require_restored_from(actual, chosen)
        return flow.plan_found(context, actual, searched)

    return plan


def require_restored_from(actual: Actual, chosen: ChosenArchive) -> None:
    """Raise Conflict for an existing guest that was not restored from such an archive (pure)."""
    is_same = chosen.row is not None and actual.vmid == chosen.archive.vmid
    if not is_same and actual.marker.origin == chosen.archive.vmid:
        return
    answer = f"nothing in its notes says that it was restored from guest {chosen.archive.vmid}"
    if is_same:
        answer = "it is the guest of the archive itself"
    if has_creation_marker(actual) and not is_same:
        answer = "another task has not finished creating it"
    raise Conflict(
        f"{actual.label} was not restored: {answer}",
        "Choose another new_name, or overwrite it with confirm",
        "name in use",
    )


def without_orphans(cluster: ClusterState, orphans: Sequence[VmRow]) -> ClusterState:
    """Return the cluster state without the empty VMs that are removed first (pure)."""
    for row in orphans:
        cluster = without_vm(cluster, row.vmid)
    return replace(cluster, freed=frozenset(row.vmid for row in orphans))


def remove_orphans(client: Client, orphans: Sequence[VmRow], timeout: int) -> list[str]:
    """Remove the empty VMs, and return the finished steps."""
    done: list[str] = []
    for row in orphans:
        with after_writes(done):
            if remove_orphan(client, VM, row.vmid, row.node, timeout):
                done.append(removal_summary(VM, row.vmid, row.node))
    return done


def reported(
    result: Result, archive: Mapping[str, Any], planned: Sequence[str], done: Sequence[str]
) -> Result:
    """Return the result of the module (pure); `planned` and `done` are removals of empty VMs."""
    before = result.values
    values = {
        "guest": {**(before["guest"] or {}), "type": archive["type"]},
        "archive": dict(archive),
        "plan": [*planned, *before["plan"]],
        "done": [*done, *before["done"]],
        "placement": before["placement"],
        "conditions": before["conditions"],
        "kept": before.get("kept"),
    }
    return replace(result, changed=result.changed or bool(planned), values=values)


def find_completion(
    client: Client, cluster: ClusterState, desired: DesiredRestore, chosen: ChosenArchive
) -> DesiredRestore | None:
    """Return the restore that completes a failed one: a new guest with the name, VMID and node of
    the container. Return None if the VMID is in use, or if no failed restore removed the container.
    Three requests for each node.

    Raises ValidationFailed if `confirm` differs from the name in the archive.
    """
    vmid = chosen.archive.vmid
    if chosen.kind is not CONTAINER or vmid is None or vmid in cluster.vms:
        return None
    nodes = [name for name, node in cluster.nodes.items() if node.online]
    query = TaskQuery(limit=1, vmid=vmid, types=frozenset((_TASK,)))
    restores: list[TaskRow] = []
    for answer in read_tasks(client, nodes, query).values():
        if not isinstance(answer, FleetError):
            restores += answer
    removals = read_removals(client, nodes, vmid=vmid)
    failed = failed_restore(restores, removals)
    if failed is None or not is_of_removed(desired, chosen, removals):
        return None
    _require_confirmed(desired, chosen)
    return completion_of(desired, chosen, failed.node)


def failed_restore(restores: Sequence[TaskRow], removals: Mapping[int, int]) -> TaskRow | None:
    """Return the newest restore if it failed and no guest was removed after it (pure)."""
    newest = newest_first(restores)[:1]
    if not has_failed(newest):
        return None
    removed = removals.get(newest[0].vmid or 0, -1)
    return None if removed >= newest[0].started else newest[0]


def is_of_removed(
    desired: DesiredRestore, chosen: ChosenArchive, removals: Mapping[int, int]
) -> bool:
    """Return whether the archive is of the container and not of an earlier guest with its VMID; an
    archive that the task names is always accepted (pure).
    """
    removed = removals.get(chosen.archive.vmid or 0, -1)
    return desired.volume is not None or chosen.archive.time > removed


def completion_of(desired: DesiredRestore, chosen: ChosenArchive, node: str) -> DesiredRestore:
    """Return the restore of the container as a new guest with its VMID (pure)."""
    place = {"vmid": chosen.archive.vmid, "node": node}
    options = {**desired.options, **place}
    return replace(desired, new_name=chosen.name, confirm="", options=options, completes=True)


def _require_confirmed(desired: DesiredRestore, chosen: ChosenArchive) -> None:
    if desired.confirm == chosen.name:
        return
    raise ValidationFailed(
        f"Container {chosen.archive.vmid} was not restored: confirm is '{desired.confirm}', and "
        f"its name in the archive is '{chosen.name}'",
        "Correct confirm if this container is meant",
        "confirm",
    )
