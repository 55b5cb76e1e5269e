# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compares a cluster file with the cluster, from the plan of module cluster, and finds who changed
the cluster. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..._foundation.core.errors import FleetError
from ..._foundation.core.times import iso
from ..cluster_file.desired import DeclaredItem, read_exact, read_items
from ..cluster_file.planned import PlannedReader
from ..cluster_file.read import SectionReading
from ..cluster_file.run import PlannedItem, items_in_order, plan_item
from ..tasks.read import MAX_TASKS, TaskQuery, found_in, read_tasks
from .changed_by import ALL_TYPES, TYPES, described, last_task_of, logins_in
from .compare import BLIND
from .ignore import IgnorePatterns
from .model import (
    DRIFTED,
    IN_SYNC,
    MISSING,
    UNKNOWN,
    UNWANTED,
    ClusterResource,
    DriftReading,
    LastLogin,
    OptionDifference,
)

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_DIFFERING = frozenset((DRIFTED, MISSING, UNWANTED))
_LINES = 5000


def require_valid(params: Mapping[str, Any]) -> None:
    """Raise ValidationFailed for a mistake in a cluster file, without a request."""
    read_items(params)
    read_exact(params)


def add_cluster(
    reading: DriftReading, client: Client, params: Mapping[str, Any], ignored: IgnorePatterns
) -> None:
    """Add the resources of a cluster file to the reading of a site.

    As many requests as module cluster without a change. If a resource differs, one more for the
    list of nodes, one for each node about tasks, and one for the log of the cluster.
    """
    planner = PlannedReader(client)
    for item, known in items_in_order(params, planner):
        add_resource(reading, _compared(item, known, planner, reading.site), ignored)
    differing = [one for one in reading.cluster if one.status in _DIFFERING]
    if not differing:
        return
    try:
        _add_tasks(differing, client)
        if any(one.last_task is None for one in differing):
            # Any of the users that logged in may have changed it without a task.
            rows = client.get(
                "cluster", "log", params={"max": _LINES}, attempted="Could not read the cluster log"
            )
            for user, time in sorted(logins_in(rows or []).items()):
                reading.logins.append(LastLogin(reading.site, user, iso(time)))
    except FleetError as error:
        reading.warnings.append(f"It is unknown who changed the cluster: {error.message}")


def _compared(
    item: DeclaredItem, known: SectionReading | FleetError, planner: PlannedReader, site: str
) -> ClusterResource:
    found = ClusterResource(site, item.section.name, item.name, UNKNOWN)
    if isinstance(known, FleetError):
        found.reason = known.message
        return found
    try:
        planned = plan_item(item, known, planner)
    except FleetError as error:
        found.reason = error.message
        found.status = UNKNOWN if isinstance(error, BLIND) else DRIFTED
        return found
    found.steps = planned.steps
    found.status = _status_of(planned)
    if found.status in _DIFFERING:
        found.options = differences(planned.preview.diff)
    return found


def _status_of(planned: PlannedItem) -> str:
    if not planned.preview.changed:
        return IN_SYNC
    if planned.item.is_removed:
        return UNWANTED
    return DRIFTED if planned.exists else MISSING


def differences(diff: Any) -> list[OptionDifference]:
    """Return the options of a resource that a run would change, sorted by option (pure).

    Lists of named objects, such as VNets and IP sets, are compared object by object.
    """
    before, after = _by_object(diff["before"]), _by_object(diff["after"])
    return [
        OptionDifference(option, after.get(option), before.get(option), None)
        for option in sorted({*before, *after})
        if after.get(option) != before.get(option)
    ]


def _by_object(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return each object of a list under the option and its name, such as `vnets.web`."""
    found: dict[str, Any] = {}
    for option, value in values.items():
        names = [_name_in(row) for row in value] if isinstance(value, list) else [None]
        if None in names:
            found[option] = value
            continue
        for name, row in zip(names, value, strict=True):
            found[f"{option}.{name}"] = row
    return found


def _name_in(row: Any) -> str | None:
    """Return the name of an object, its subnet, or its fabric and node; None for another value."""
    if not isinstance(row, Mapping):
        return None
    if row.get("fabric") and row.get("node"):
        return f"{row['fabric']}_{row['node']}"
    name = row.get("name") or row.get("cidr")
    return None if name is None else str(name)


def add_resource(reading: DriftReading, resource: ClusterResource, ignored: IgnorePatterns) -> None:
    """Add a resource without its ignored differences."""
    names = (f"{resource.section}/{resource.name}".lower(),)
    has_ignored = reading.drop_ignored(resource, names, ignored)
    if has_ignored is not None:
        reading.cluster.append(resource)
    if has_ignored and not resource.options and resource.status == DRIFTED:
        resource.status = IN_SYNC


def _add_tasks(differing: list[ClusterResource], client: Client) -> None:
    """Add the last task of each resource if Proxmox VE runs tasks for changes of its section."""
    if not any(one.section in TYPES for one in differing):
        return
    rows = client.get("nodes", attempted="Could not list the nodes") or []
    nodes = [str(row["node"]) for row in rows if row.get("status") == "online"]
    answers = read_tasks(client, nodes, TaskQuery(limit=MAX_TASKS, types=ALL_TYPES))
    tasks = found_in(answers, MAX_TASKS)
    for one in differing:
        one.last_task = described(last_task_of(one.section, one.name, tasks))
