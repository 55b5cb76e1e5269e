# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The full clone that keeps the state of a guest before an archive overwrites it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.state import ClusterState
from ...._foundation.cluster.view import ClusterView
from ...._foundation.core.errors import Conflict, FleetError, PermissionDenied
from ...._foundation.spec.clone import clone_spec
from ...._foundation.spec.fleet import with_defaults
from ...._guests.guest.clone.options import read_clone_as
from ...._guests.guest.clone.run import plan_clone_of
from ...._guests.guest.context import RunContext
from ...._guests.guest.flow.apply import require_permitted
from ...._guests.guest.flow.flow import GuestPlan
from ...._guests.guest.registry import list_of
from ...._guests.kinds.model import Actual, Guest
from ...._operation.tasks.query import TaskQuery
from ...._operation.tasks.read import read_tasks
from ...._operation.tasks.row import newest_first
from ..desired import DesiredRestore

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

# PVE's types of tasks that clone a guest (the ID is the VMID of the source), and that restore one.
_CLONES, _RESTORES = (["qmclone"], ["vzclone"]), ("qmrestore", "vzrestore")
_TASKS = 10  # tasks of a guest to read
_LIMITS = ("quota", "quotas")


def plan_copy(
    client: Client, restore: DesiredRestore, guest: Guest, actual: Actual, cluster: ClusterState
) -> GuestPlan[Any]:
    """Return the plan of the copy. The copy is placed and counted like any clone, is stopped, and
    does not start with its node. Raises FleetError if it cannot be made.
    """
    one = list_of(actual.kind.type)
    wanted = {
        "name": restore.keep_name,
        "source": str(actual.vmid),
        "full": True,
        "onboot": False,
        "tenant": guest.tenant,
        "tenant_prefix": guest.tenant_prefix,
        "pool": actual.pool,
        "storage": restore.keep_storage,
        "task_timeout": restore.timeout,
        **{name: restore.options.get(name) for name in _LIMITS},
    }
    options = read_clone_as(one, with_defaults(clone_spec(), wanted))
    view = ClusterView(client, {actual.kind.type})
    context: RunContext[Any] = RunContext(client, options.desired, options.settings, False, view)
    return plan_clone_of(one.flow.ready(context), cluster.of_type(actual.kind.type))


def require_present(plan: GuestPlan[Any], is_present: bool, actual: Actual) -> None:
    """Raise Conflict for an existing copy of another state (pure)."""
    if plan.actual is not None and not is_present:
        raise Conflict(
            attempted=f"{actual.label} was not overwritten",
            answer=f"{plan.actual.label} exists, and is a copy of an earlier state",
            next_step="Give another keep_name, or remove the earlier copy",
            reason="copy exists",
        )


def require_clonable(client: Client, plan: GuestPlan[Any], actual: Actual) -> None:
    """Raise PermissionDenied if the login cannot make the copy. PVE would refuse the clone only
    after the guest was stopped (qemu-server: API2/Qemu.pm, clone_vm).
    """
    try:
        require_permitted(client, [plan])
    except PermissionDenied as error:
        next_step = f"{error.next_step}, or keep the state with keep=archive"
        attempted = f"{actual.label} was not overwritten"
        raise error.on(attempted=attempted, next_step=next_step) from error


def is_present(client: Client, actual: Actual, copy: Actual | None) -> bool:
    """Return whether a copy has the state of a guest before its last restore; one request.

    This is true if both are stopped, and the guest's last task other than restores is a clone.
    """
    if copy is None or actual.running or copy.running:
        return False
    query = TaskQuery(limit=_TASKS, vmid=actual.vmid)
    tasks = read_tasks(client, [actual.node], query)[actual.node]
    if isinstance(tasks, FleetError):
        return False
    others = [task.type for task in newest_first(tasks) if task.type not in _RESTORES]
    return others[:1] in _CLONES


def summary_of(plan: GuestPlan[Any], actual: Actual) -> str:
    """Return the summary of the step that makes the copy (pure)."""
    name = plan.context.desired.guest.name
    vmid, node = plan.place
    copy = f"{actual.kind.noun} '{name}' ({vmid}) on node {node}"
    return f"Keep the state of {actual.label} as its copy {copy}"
