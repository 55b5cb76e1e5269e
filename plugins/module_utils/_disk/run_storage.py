# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of modules disk_storage and disk_storage_info."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from .._core.errors import FleetError
from .._core.parallel import side_by_side
from .._core.result import Result
from .._facts.each_node import answered, read_each_node, result_of_nodes
from .._resource.plan import Plan
from .._resource.planned import PlannedStep, run_planned
from .._resource.protocols import Api
from .._resource.run import plan_resource, read_resource
from .._storage.ceph.run import require_unused
from .._storage.table import STORAGE
from .._storage.usage import read_usage
from .definition import desired_definition, require_new
from .disks import Row, disks_of, find_disk
from .model import DIRECTORY, LVM, THIN, TYPES, ZFS, of_row, storages_on, with_disks
from .plan_storage import (
    DesiredStorage,
    plan_creation,
    plan_existing,
    plan_removal,
    read_wanted,
    require_empty,
    require_no_group,
    require_no_volumes,
    require_only_use,
)
from .read import query, read_disks, read_listing, read_pool

_NODES = 8  # nodes that are read at once
_TIMEOUT = 1800  # seconds: a file system on a large disk takes minutes


def run_disk_storage(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Create or remove a disk storage and return the outcome; check mode writes nothing."""
    wanted = read_wanted(params)
    read = partial(_read_plan, client, wanted)
    return run_planned(client, wanted.label, read, check_mode, _TIMEOUT)


def _read_plan(client: Api, wanted: DesiredStorage) -> PlannedStep:
    rows = read_listing(client, wanted.node, wanted.type)
    known = [(of_row(wanted.node, wanted.type, row), row) for row in rows]
    place = (wanted.name, wanted.volume_group if wanted.type == THIN else None)
    match = [(one, row) for one, row in known if (one["name"], one["volume_group"]) == place]
    if not match and not wanted.present:
        return PlannedStep(Plan(), {"disk_storage": None})
    disks = read_disks(client, wanted.node)
    chosen = [_find(wanted, disks, path) for path in wanted.disks]
    if not match:
        return _plan_new(client, wanted, chosen)
    found, row = match[0]
    tree = _tree_of(client, wanted, found, row)
    if wanted.type != DIRECTORY:
        found = with_disks(found, tree, disks)
    if wanted.present:
        planned = plan_existing(wanted, found, chosen)
        return _with_definition(client, wanted, planned) if wanted.add_storage else planned
    require_only_use(wanted, found, disks)
    require_empty(wanted, int(tree.get("lvcount") or 0), int(row.get("used") or 0))
    return _plan_removal(client, wanted, found)


def _find(wanted: DesiredStorage, disks: Sequence[Row], path: str) -> Row:
    return find_disk(disks, path, wanted.node, f"{wanted.label} was not created")


def _plan_new(client: Api, wanted: DesiredStorage, chosen: Sequence[Row]) -> PlannedStep:
    """Return the plan of a new disk storage.

    One request for a storage definition of its name with `add_storage`, and one for the volume
    groups if it is a thin pool.
    """
    planned = plan_creation(wanted, chosen)
    if wanted.add_storage:
        require_new(wanted, read_resource(STORAGE, client, {"name": wanted.name}).values)
    if wanted.type == THIN:
        require_no_group(wanted, read_listing(client, wanted.node, LVM))
    return planned


def _with_definition(client: Api, wanted: DesiredStorage, planned: PlannedStep) -> PlannedStep:
    """Return the plan that defines a storage on an existing disk storage.

    One request, and one for the nodes if the definition or a part of it is missing.
    """
    reading = read_resource(STORAGE, client, {"name": wanted.name})
    desired = desired_definition(wanted, reading.values)
    plan, _known = plan_resource(STORAGE, desired, client, reading)
    return replace(planned, plan=plan)


def _tree_of(client: Api, wanted: DesiredStorage, found: Row, row: Row) -> Row:
    """Return the tree of devices of a storage; one request for a ZFS pool or a thin pool."""
    if wanted.type == ZFS:
        return read_pool(client, wanted.node, wanted.name)
    if wanted.type == THIN:
        return _group_of(found, read_listing(client, wanted.node, LVM))
    return row


def _group_of(thin: Row, groups: Sequence[Row]) -> Row:
    return next((row for row in groups if row["name"] == thin["volume_group"]), {})


def _plan_removal(client: Api, wanted: DesiredStorage, found: Row) -> PlannedStep:
    """Return the plan of a removal; reads the users of each storage on the disk storage."""
    storages = storages_on(_definitions(client), found)
    planned = plan_removal(wanted, found, storages)
    for storage in storages:
        usage = read_usage(client, storage, wanted.node)
        require_unused(storage, usage.users, f"{wanted.label} was not removed")
        require_no_volumes(wanted, usage.warnings)
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
    read = side_by_side(partial(_read_node, client), places, _NODES)
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
