# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module backup: choose the guests, plan each, and back them up side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...._foundation.api.access.privileges import Privileges
from ...._foundation.api.access.required import RequiredRequest, find_missing
from ...._foundation.cluster.state import (
    ClusterState,
    StorageRow,
    VmRow,
    fetch_cluster_state,
    with_names,
)
from ...._foundation.cluster.tenant import tenant_of
from ...._foundation.core.errors import (
    ConfigurationError,
    FleetError,
    NodeUnhealthy,
    PermissionDenied,
)
from ...._foundation.core.failures.several import FailedGuest, failure_of
from ...._foundation.core.parallel import Resource, within_limits
from ...._foundation.core.result import Result
from ...._foundation.core.texts.plan_lines import guest_lines
from ...._foundation.schema.requests import require_accepted
from ...._guests.kinds.words import CONTAINER
from ...._infrastructure.storage.values import PRUNE_BACKUPS
from ...._operation.tasks.read import read_removals
from ..archive import Archive
from ..job.precheck import require_root_for
from ..job.table import BACKUP_JOB
from ..read import backup_storages, read_archives, read_left_out
from ..select import label_of, select
from .desired import DesiredBackup, read_desired
from .guest import BackupContext, BackupOutcome, execute, find_full, plan_guest
from .prune import needs_local_time

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

_WITHOUT_RULE = "Datastore.Allocate"  # permits a backup that ignores the storage's retention


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Back up the guests; check mode plans and writes nothing.

    A failed guest does not stop the others: the result reports all guests, including the failure.
    Guests on the same node are backed up one after the other, because PVE runs one backup at a time
    on a node. A backup starts when the limits of its node and storage permit it.
    """
    desired = read_desired(params, client.clock.time())
    require_root_for(desired.data, client.login, "No guest was backed up")
    path = ("nodes", "", "vzdump")
    require_accepted(path, desired.data, BACKUP_JOB.option_names, client.release)
    cluster = with_names(client, fetch_cluster_state(client), missing=True)
    storages = backup_storages(cluster, [desired.storage])
    held = Privileges(client.privileges(), client.login)
    if _WITHOUT_RULE in held.on(f"/storage/{desired.storage}"):
        desired = replace(desired, data={**desired.data, "prune-backups": "keep-all=1"})
    outcomes: list[BackupOutcome] = []
    rows: list[VmRow] = []
    for target in select(client, cluster, params, desired.owner):
        if target.row is None:
            outcomes.append(BackupOutcome(f"guest '{target.label}'", error=target.error))
            continue
        error = _find_obstacle(target.row, cluster, desired, held)
        if error is None:
            rows.append(target.row)
        else:
            outcomes.append(BackupOutcome(label_of(target.row), target.row, error=error))
    if rows:
        outcomes += _work(client, cluster, desired, storages, rows, check_mode)
    outcomes.sort(key=lambda one: one.row.vmid if one.row is not None else 0)
    return _report(desired, outcomes, check_mode)


def _work(
    client: Client,
    cluster: ClusterState,
    desired: DesiredBackup,
    storages: Sequence[StorageRow],
    rows: Sequence[VmRow],
    check_mode: bool,
) -> list[BackupOutcome]:
    """Return the outcomes of guests that can be backed up."""
    nodes = {row.node for row in rows}
    used = [row for row in storages if row.node in nodes]
    reading = read_archives(client, cluster, used)
    reading.require_complete("No guest was backed up", "Repair the storage, or name another one")
    context = BackupContext(
        client=client,
        desired=desired,
        cluster=cluster,
        removals=_removals(client, cluster, desired, reading.archives),
        offsets=_offsets(client, desired, used, nodes),
        maximum=_read_maximum(client, desired, rows[0].node),
    )

    def work(row: VmRow) -> BackupOutcome:
        on_node = [one for one in reading.archives if one.place in ("", row.node)]
        plan = plan_guest(context, row, on_node)
        if plan.is_backed_up:
            plan = replace(plan, left_out=read_left_out(client, row))
        full = find_full(context, plan, on_node)
        if check_mode or full is not None:
            return BackupOutcome(label_of(row), row, plan, error=full)
        return execute(context, plan)

    places = {row.node: row.place for row in used}  # a local storage is a resource of its node
    items: list[tuple[VmRow, frozenset[Resource]]] = []
    for row in rows:
        resources = (("all", ""), ("node", row.node), ("storage", places[row.node]))
        items.append((row, frozenset(resources)))
    return within_limits(work, items, desired.limits, client.clock.monotonic)


def _read_maximum(client: Client, desired: DesiredBackup, node: str) -> int:
    """Return the number of archives of a guest that the storage accepts, 0 for no limit.

    A backup that removes nothing fails if the guest already has as many archives as the storage's
    retention keeps, unless the task may set another (pve-manager: VZDump.pm, exec_backup_task).
    """
    if "prune-backups" in desired.data or desired.data.get("protected"):
        return 0
    attempted = f"Could not read how many archives of a guest storage {desired.storage} keeps"
    path = ("nodes", node, "vzdump", "defaults")
    answer = client.get(*path, storage=desired.storage, attempted=attempted)
    rule = PRUNE_BACKUPS.read(answer.get("prune-backups"))
    if rule.get("keep-all") == "1":
        return 0
    return sum(int(count) for count in rule.values() if count.isdecimal())


def _removals(
    client: Client, cluster: ClusterState, desired: DesiredBackup, archives: Sequence[Archive]
) -> Mapping[int, int]:
    """Return the time of the last removal of a guest by VMID, if `keep` or `max_age` needs it."""
    if not archives or (desired.keep is None and desired.max_age is None):
        return {}
    online = [name for name, node in cluster.nodes.items() if node.online]
    return read_removals(client, online)


def _offsets(
    client: Client, desired: DesiredBackup, storages: Sequence[StorageRow], nodes: set[str]
) -> dict[str, float]:
    """Return the difference of each node to UTC in seconds, if the retention needs it.

    File names contain the local time; snapshots on a backup server do not. One request per node.
    """
    is_server = any(row.kind == "pbs" for row in storages)
    if desired.keep is None or not needs_local_time(desired.keep) or not is_server:
        return {}
    found: dict[str, float] = {}
    for node in sorted(nodes):
        attempted = f"Could not read the time zone of node {node}, which keep depends on"
        answer = client.get("nodes", node, "time", attempted=attempted)
        found[node] = float(answer["localtime"]) - float(answer["time"])
    return found


def _find_obstacle(
    row: VmRow, cluster: ClusterState, desired: DesiredBackup, held: Privileges
) -> FleetError | None:
    """Return an error if a guest cannot be backed up, or None (pure)."""
    attempted = f"Could not back up {label_of(row)}"
    node = cluster.nodes.get(row.node)
    if node is not None and not node.online:
        return NodeUnhealthy(
            f"{attempted}: node {row.node} is offline", "Repair it", "node offline"
        )
    storage = cluster.storage_on(desired.storage, row.node)
    if storage is None or not storage.available:
        return ConfigurationError(
            f"{attempted}: storage {desired.storage} is not available on node {row.node}",
            "Name a storage that is available there",
            "storage not on node",
        )
    data = {"vmid": row.vmid, **desired.data}
    missing = find_missing(RequiredRequest("POST", ("nodes", row.node, "vzdump"), data), held)
    if missing is None:
        return None
    path, _comma, privilege = missing.partition(", ")
    return PermissionDenied(
        f"{attempted}: the caller lacks {privilege} on {path}",
        f"Grant {privilege} there; a tenant gets it with operation backup",
        f"{privilege} on {path}",
    )


def _report(desired: DesiredBackup, outcomes: Sequence[BackupOutcome], check_mode: bool) -> Result:
    """Return the result of the module (pure)."""
    rows = [_describe(desired, one, check_mode) for one in outcomes]
    warnings: list[str] = []
    for one in outcomes:
        warnings += [f"{one.label}: {text}" for text in one.warnings]
        warnings += _warn_of_mounts(one)
    if not outcomes:
        warnings.append("No guest has this tenant, these tags and this pool: nothing was backed up")
    before: dict[str, list[str]] = {}
    after: dict[str, list[str]] = {}
    for row in rows:
        if row["changed"] and row["plan"]:
            key = f"{row['name']} ({row['vmid']})"
            before[key] = [mark["volume"] for mark in row["archives"] if mark["mark"] == "remove"]
            after[key] = ["new archive"] if row["backed_up"] else []
    failures = [FailedGuest(one.label, one.error) for one in outcomes if one.error is not None]
    is_parallel = check_mode and sum(row["backed_up"] for row in rows) > 1
    more = [f"  {desired.describe_limits()}"] if is_parallel else []
    report = guest_lines(rows, check_mode=check_mode, more=more)
    return Result(
        changed=any(row["changed"] for row in rows),
        values={"guests": rows, "report": report},
        diff={"before": before, "after": after},
        warnings=tuple(warnings),
        failure=failure_of(failures, [one.label for one in outcomes]),
    )


def _warn_of_mounts(one: BackupOutcome) -> list[str]:
    """Return a warning about volumes of a container that its backup leaves out, as PVE does unless
    they have C(backup=1). A disk of a VM is left out only on request.
    """
    plan = one.plan
    if plan is None or not plan.left_out or plan.row.type != CONTAINER.type:
        return []
    slots = ", ".join(plan.left_out)
    effect = f"the backup leaves {slots} out, and a restore creates them empty"
    return [f"{one.label}: {effect}: set backup: true on these mounts to include them"]


def _describe(desired: DesiredBackup, one: BackupOutcome, check_mode: bool) -> dict[str, Any]:
    row, plan, archive = one.row, one.plan, one.archive
    steps = plan.summaries(desired.storage) if plan is not None else []
    described: dict[str, Any] = {
        "vmid": None,
        "type": None,
        "name": one.label,
        "node": None,
        "tenant": None,
        "failed": one.error is not None,
        "changed": bool(one.done) or (check_mode and bool(steps)),
        "backed_up": plan.is_backed_up if check_mode and plan is not None else archive is not None,
        "volume": archive.volume if archive is not None else None,
        "size": archive.size if archive is not None else None,
        "duration": one.duration,
        "left_out": None if plan is None else plan.left_out,
        "warnings": one.warnings,
        "removed": one.removed,
        "archives": [mark.as_dict() for mark in plan.marks] if plan is not None else [],
        "plan": steps,
        "done": one.done,
        "error": None,
        "msg": None,
    }
    if row is not None:
        tenant, _why = tenant_of(row.tags, desired.owner.prefix)
        described["vmid"], described["type"] = row.vmid, row.type
        described["name"], described["node"] = row.own_name, row.node
        described["tenant"] = tenant
    if one.error is not None:
        described.update(one.error.as_result())
    return described
