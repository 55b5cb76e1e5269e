# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module task_info: the tasks of nodes and VMs, the newest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..._foundation.api.tasks import read_task_log
from ..._foundation.api.upid import Upid
from ..._foundation.cluster.each_node import missing_nodes
from ..._foundation.cluster.find.lookup import locate, locate_by_name, require_own_guest
from ..._foundation.cluster.state import ClusterState, VmRow, fetch_cluster_state, with_names
from ..._foundation.cluster.tenant import owns, tenant_of, tenant_tag
from ..._foundation.core.arguments.options import did_you_mean
from ..._foundation.core.errors import ConfigurationError, FleetError, NotFound, UnknownVm
from ..._foundation.core.parallel import side_by_side
from ..._foundation.core.result import Result
from ..._foundation.core.times import iso
from ..._guests.kinds.words import VM, label_of
from .read import TaskQuery, found_in, read_query, read_removals, read_task, read_tasks, read_upid
from .row import TaskRow, describe_task, is_of_earlier_guest

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


@dataclass(frozen=True)
class TaskGuests:
    """The VMs of tasks. Without a tag the tasks of all tenants are included.

    `removals` are the times at which the last guest of a VMID was removed: earlier tasks concern
    that guest.
    """

    cluster: ClusterState
    tag: str | None
    prefix: str
    removals: Mapping[int, int] = field(default_factory=dict)

    def vm_of(self, task: TaskRow) -> VmRow | None:
        """Return the VM of a task, or None if the task does not concern an existing VM."""
        if task.vmid is None or is_of_earlier_guest(task, self.removals):
            return None
        return self.cluster.vms.get(task.vmid)

    def includes(self, task: TaskRow) -> bool:
        """Return whether a task may be shown to the tenant."""
        if self.tag is None:
            return True
        row = self.vm_of(task)
        return row is not None and owns(self.tag, row.tags, self.prefix)


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the tasks that match all filters. Nothing is written.

    One request for the listing, and for each node two for removed guests and one for its tasks.
    With logs, one more for each task. A node that cannot be read is listed in C(missing); the task
    fails if no node can be read.
    """
    query = read_query(params, client.clock.time())
    upid = read_upid(params["upid"]) if params.get("upid") is not None else None
    prefix = params["tenant_prefix"]
    tag = None
    if params.get("tenant"):
        tag = tenant_tag(params["tenant"], prefix)
    cluster = with_names(client, fetch_cluster_state(client, {VM.type}), missing=True)
    query, cluster = _about_vm(params, client, query, TaskGuests(cluster, tag, prefix))
    nodes = _nodes(params, cluster, upid)
    online = [name for name, node in cluster.nodes.items() if node.online]
    removals = read_removals(client, online, query.since, query.vmid)
    guests = TaskGuests(cluster, tag, prefix, removals)
    answers: dict[str, list[TaskRow] | FleetError]
    if upid is not None:
        answers = {upid.node: _read_one(client, query, upid, guests)}
    else:
        answers = read_tasks(client, nodes, query, guests.includes)
    missing = missing_nodes(answers)
    tasks = found_in(answers, query.limit)
    logs: list[list[str] | None] = [None for _task in tasks]
    warnings = [row["reason"] for row in missing]
    if params.get("log"):
        logs = side_by_side(lambda task: _log(client, task, warnings), tasks)
    rows: list[dict[str, Any]] = []
    for task, log in zip(tasks, logs, strict=True):
        rows.append({**describe_task(task), **_vm_of(task, guests), "log": log})
    values = {"tasks": rows, "missing": missing, "checked": iso(client.clock.time())}
    return Result(False, values, warnings=tuple(warnings))


def _about_vm(
    params: Mapping[str, Any], client: Client, query: TaskQuery, guests: TaskGuests
) -> tuple[TaskQuery, ClusterState]:
    """Return the query with the VMID of the named VM, and the cluster state that has its name.

    Raises FleetError for a VM of another tenant, and for a name that no VM has. If no tenant is
    given, a VMID may belong to a removed VM.
    """
    tag, prefix = guests.tag, guests.prefix
    if query.vmid is not None:
        label = f"VM {query.vmid}"
        row, cluster = locate(client, guests.cluster, vmid=query.vmid)
    elif params.get("name") is not None:
        label = f"VM '{params['name']}'"
        row, cluster = locate_by_name(client, guests.cluster, params["name"], tag, prefix)
    else:
        return query, guests.cluster
    if row is not None:
        require_own_guest(label, row.tags, tag, prefix, unnamed=label_of(row))
        return replace(query, vmid=row.vmid), cluster
    names = {other.own_name for other in cluster.guests if owns(tag, other.tags, prefix)}
    _require_removed(query, tag, label, did_you_mean(str(params.get("name") or ""), names - {""}))
    return query, cluster


def _require_removed(query: TaskQuery, tag: str | None, label: str, hint: str) -> None:
    """Raise UnknownVm for a VM that does not exist, unless it may be a removed one (pure)."""
    if query.vmid is not None and tag is None:
        return
    raise UnknownVm(
        f"The tasks of {label} were not read: no VM of that name or number is visible{hint}",
        "Check the spelling; name a VM that was removed by its vmid, without tenant",
        "unknown VM",
    )


def _nodes(params: Mapping[str, Any], cluster: ClusterState, upid: Upid | None) -> list[str]:
    """Return the nodes whose tasks are wanted. Raises ConfigurationError for an unknown node."""
    node = params.get("node")
    if upid is not None:
        node = upid.node
    if node is None:
        return sorted(cluster.nodes)
    if cluster.nodes and node not in cluster.nodes:
        names = ", ".join(sorted(cluster.nodes))
        raise ConfigurationError(
            f"Could not read the tasks of node '{node}': the cluster has "
            f"{names}{did_you_mean(node, cluster.nodes)}",
            "Name one of its nodes",
            "unknown node",
        )
    return [node]


def _read_one(
    client: Client, query: TaskQuery, upid: Upid, guests: TaskGuests
) -> list[TaskRow] | FleetError:
    """Return the task with an ID. Raises NotFound if the node does not know it, or if it is about
    a guest of another tenant.

    The node's list has the end time of a task. A task that is too old for the list is read by its
    ID.
    """
    about = replace(
        query, since=upid.starttime, until=upid.starttime, types=frozenset((upid.type,))
    )
    answers = read_tasks(client, [upid.node], about, lambda task: task.upid == upid.text)
    answer = answers[upid.node]
    if isinstance(answer, FleetError):
        return answer
    if not answer:
        answer = [read_task(client, upid)]
    _require_included(answer[0], guests)
    return answer


def _require_included(task: TaskRow, guests: TaskGuests) -> None:
    """Raise NotFound for a task about a guest of another tenant (pure)."""
    if not guests.includes(task):
        raise NotFound(
            f"The task {task.upid} was not read: it is not about a VM of {guests.tag}",
            "Check upid and tenant",
            "task of another tenant",
        )


def _log(client: Client, task: TaskRow, warnings: list[str]) -> list[str] | None:
    """Return the lines of a task's log, or None with a warning if it cannot be read."""
    try:
        return read_task_log(client, task.upid)
    except FleetError as error:
        warnings.append(error.on(attempted=f"Could not read the log of {task.upid}").message)
        return None


def _vm_of(task: TaskRow, guests: TaskGuests) -> dict[str, Any]:
    """Return the name and the tenant of a task's VM, both None if the task concerns no VM."""
    row = guests.vm_of(task)
    if row is None:
        return {"name": None, "tenant": None}
    tenant, _why = tenant_of(row.tags, guests.prefix)
    return {"name": row.own_name, "tenant": tenant}
