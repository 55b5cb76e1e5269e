# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of modules disk_storage and disk_storage_info."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.cluster.each_node import answered, read_each_node, result_of_nodes
from ...._foundation.core.errors import FleetError
from ...._foundation.core.parallel import side_by_side
from ...._foundation.core.result import Result
from ...._foundation.resource.plan import Plan
from ...._foundation.resource.planned import PlannedStep, run_planned
from ...._foundation.resource.run import plan_resource, read_resource
from ..ceph.run import require_unused
from ..table import STORAGE
from ..usage import read_usage
from .definition import desired_definition, require_new
from .disks import Row, disks_of, find_disk
from .model import DIRECTORY, LVM, THIN, TYPES, ZFS, of_row, storages_on, with_disks
from .plan_storage import (
    DesiredStorage,
    plan_creation,
    plan_existing,
    plan_removal,
    read_desired,
    require_empty,
    require_no_group,
    require_no_volumes,
    require_only_use,
)
from .read import query, read_disks, read_listing, read_pool

_TIMEOUT = 1800  # seconds: a file system on a large disk takes minutes


def run_disk_storage(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Create or remove a disk storage and return the outcome; check mode writes nothing."""
    desired = read_desired(params)
    read = partial(_read_plan, client, desired)
    return run_planned(client, desired.label, read, check_mode, _TIMEOUT)


def _read_plan(client: Api, desired: DesiredStorage) -> PlannedStep:
    rows = read_listing(client, desired.node, desired.type)
    known = [(of_row(desired.node, desired.type, row), row) for row in rows]
    place = (desired.name, desired.volume_group if desired.type == THIN else None)
    match = [(one, row) for one, row in known if (one["name"], one["volume_group"]) == place]
    if not match and not desired.present:
        return PlannedStep(Plan(), {"disk_storage": None})
    disks = read_disks(client, desired.node)
    chosen = [_find(desired, disks, path) for path in desired.disks]
    if not match:
        return _plan_new(client, desired, chosen)
    found, row = match[0]
    tree = _tree_of(client, desired, found, row)
    if desired.type != DIRECTORY:
        found = with_disks(found, tree, disks)
    if desired.present:
        planned = plan_existing(desired, found, chosen)
        return _with_definition(client, desired, planned) if desired.add_storage else planned
    require_only_use(desired, found, disks)
    require_empty(desired, int(tree.get("lvcount") or 0), int(row.get("used") or 0))
    return _plan_removal(client, desired, found)


def _find(desired: DesiredStorage, disks: Sequence[Row], path: str) -> Row:
    return find_disk(disks, path, desired.node, f"{desired.label} was not created")


def _plan_new(client: Api, desired: DesiredStorage, chosen: Sequence[Row]) -> PlannedStep:
    """Return the plan of a new disk storage.

    One request for a storage definition of its name with `add_storage`, and one for the volume
    groups if it is a thin pool.
    """
    planned = plan_creation(desired, chosen)
    if desired.add_storage:
        require_new(desired, read_resource(STORAGE, client, {"name": desired.name}).values)
    if desired.type == THIN:
        require_no_group(desired, read_listing(client, desired.node, LVM))
    return planned


def _with_definition(client: Api, desired: DesiredStorage, planned: PlannedStep) -> PlannedStep:
    """Return the plan that defines a storage on an existing disk storage.

    One request, and one for the nodes if the definition or a part of it is missing.
    """
    reading = read_resource(STORAGE, client, {"name": desired.name})
    definition = desired_definition(desired, reading.values)
    plan, _known = plan_resource(STORAGE, definition, client, reading)
    return replace(planned, plan=plan)


def _tree_of(client: Api, desired: DesiredStorage, found: Row, row: Row) -> Row:
    """Return the tree of devices of a storage; one request for a ZFS pool or a thin pool."""
    if desired.type == ZFS:
        return read_pool(client, desired.node, desired.name)
    if desired.type == THIN:
        return _group_of(found, read_listing(client, desired.node, LVM))
    return row


def _group_of(thin: Row, groups: Sequence[Row]) -> Row:
    return next((row for row in groups if row["name"] == thin["volume_group"]), {})


def _plan_removal(client: Api, desired: DesiredStorage, found: Row) -> PlannedStep:
    """Return the plan of a removal; reads the users of each storage on the disk storage."""
    storages = storages_on(_definitions(client), found)
    planned = plan_removal(desired, found, storages)
    for storage in storages:
        usage = read_usage(client, storage, desired.node)
        require_unused(storage, usage.users, f"{desired.label} was not removed")
        require_no_volumes(desired, usage.warnings)
    return planned


def _definitions(client: Api) -> list[Mapping[str, Any]]:
    return client.get("storage", attempted="Could not list the storages") or []


def run_disk_storage_info(
    params: Mapping[str, Any], client: Api, check_mode: bool = False
) -> Result:
    """Return the disk storages of a node or of all nodes. Nothing is written.

    Five requests a node, one for each ZFS pool, and one for the list of nodes.
    """
    parameters = query(smart=False)
    path = ("disks", "list")
    answers = read_each_node(client, params.get("node"), "disks", *path, params=parameters)
    places = [
        (node, disks_of(node, rows or [], smart=False)) for node, rows in answered(answers).items()
    ]
    read = side_by_side(partial(_read_node, client), places)
    answers.update({node: one for (node, _disks), one in zip(places, read, strict=True)})
    found = [row for rows in answered(answers).values() for row in rows]
    return result_of_nodes(answers, "disk_storages", found)


def _read_node(client: Api, place: tuple[str, list[dict[str, Any]]]) -> list[Row] | FleetError:
    """Return the disk storages of a node with these disks, or the error of the reading."""
    node, disks = place
    try:
        rows = {kind: read_listing(client, node, kind) for kind in TYPES}
        return [
            _described(client, of_row(node, kind, row), row, rows[LVM], disks)
            for kind in TYPES
            for row in rows[kind]
        ]
    except FleetError as error:
        return error


def _described(
    client: Api, storage: Row, row: Row, groups: Sequence[Row], disks: Sequence[Row]
) -> Row:
    """Return a disk storage with its disks; the disk of a directory is not known."""
    if storage["type"] == DIRECTORY:
        return storage
    tree = _group_of(storage, groups) if storage["type"] == THIN else row
    if storage["type"] == ZFS:
        tree = read_pool(client, storage["node"], storage["name"])
    return with_disks(storage, tree, disks)
