# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of modules disk_storage and disk_storage_info.

The definition of a storage is as PVE writes it (pve-storage: PVE/API2/Disks/{ZFS,LVM,LVMThin,
Directory}.pm, storage_params and verify_params; PVE/API2/Storage/Config.pm, create_or_update).
"""

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
from ...._foundation.resource.decide import read_desired as read_definition
from ...._foundation.resource.manage import PlannedStep, run_planned
from ...._foundation.resource.plan import Plan
from ...._foundation.resource.run import plan_resource, read_resource
from ...._foundation.resource.table import DesiredResource, Values
from ..ceph.run import require_unused
from ..table import STORAGE
from ..usage import read_usage
from .disks import Row, disks_of, find_disk
from .model import DIRECTORY, LVM, MOUNTS, THIN, TYPES, ZFS, of_row, storages_on, with_disks
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
_GUESTS = ("images", "rootdir")
_FILES = ("backup", "images", "iso", "rootdir", "snippets", "vztmpl")
# The other options of a new definition.
_NEW: dict[str, dict[str, Any]] = {
    ZFS: {"content": _GUESTS},
    LVM: {"content": _GUESTS, "shared": False},
    THIN: {"content": _GUESTS},
    DIRECTORY: {"content": _FILES, "is_mountpoint": "yes"},
}


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
    refused = f"{desired.label} was not created"
    chosen = [find_disk(disks, path, desired.node, refused) for path in desired.disks]
    if not match:
        return _plan_new(client, desired, chosen)
    found, row = match[0]
    groups = read_listing(client, desired.node, LVM) if desired.type == THIN else []
    tree = _tree_of(client, found, row, groups)
    if desired.type != DIRECTORY:
        found = with_disks(found, tree, disks)
    if desired.present:
        planned = plan_existing(desired, found, chosen)
        if not desired.add_storage:
            return planned
        # One request, and one for the nodes if the definition or a part of it is missing.
        reading = read_resource(STORAGE, client, {"name": desired.name})
        definition = desired_definition(desired, reading.values)
        plan, _known = plan_resource(STORAGE, definition, client, reading)
        return replace(planned, plan=plan)
    require_only_use(desired, found, disks)
    require_empty(desired, int(tree.get("lvcount") or 0), int(row.get("used") or 0))
    return _plan_removal(client, desired, found)


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


def _tree_of(client: Api, storage: Row, row: Row, groups: Sequence[Row]) -> Row:
    """Return the tree of devices of a storage; one request for a ZFS pool."""
    if storage["type"] == ZFS:
        return read_pool(client, storage["node"], storage["name"])
    if storage["type"] == THIN:
        return next((one for one in groups if one["name"] == storage["volume_group"]), {})
    return row


def _plan_removal(client: Api, desired: DesiredStorage, found: Row) -> PlannedStep:
    """Return the plan of a removal; reads the users of each storage on the disk storage."""
    definitions = client.get("storage", attempted="Could not list the storages") or []
    storages = storages_on(definitions, found)
    planned = plan_removal(desired, found, storages)
    for storage in storages:
        usage = read_usage(client, storage, desired.node)
        require_unused(storage, usage.users, f"{desired.label} was not removed")
        require_no_volumes(desired, usage.warnings)
    return planned


def run_disk_storage_info(
    params: Mapping[str, Any], client: Api, check_mode: bool = False
) -> Result:
    """Return the disk storages of a node or of all nodes. Nothing is written.

    Five requests a node, one for each ZFS pool, and one for the list of nodes.
    """
    path, parameters = ("disks", "list"), query(smart=False)
    answers = read_each_node(client, params.get("node"), "disks", *path, params=parameters)
    listings = answered(answers)

    def read_node(node: str) -> list[Row] | FleetError:
        disks = disks_of(node, listings[node] or [], smart=False)
        try:
            rows = {kind: read_listing(client, node, kind) for kind in TYPES}
            found: list[Row] = []
            for kind in TYPES:
                for row in rows[kind]:
                    storage = of_row(node, kind, row)
                    if kind != DIRECTORY:  # its disk is not known
                        tree = _tree_of(client, storage, row, rows[LVM])
                        storage = with_disks(storage, tree, disks)
                    found.append(storage)
            return found
        except FleetError as error:
            return error

    answers.update(zip(listings, side_by_side(read_node, list(listings)), strict=True))
    found = [row for rows in answered(answers).values() for row in rows]
    return result_of_nodes(answers, "disk_storages", found)


def place_of(desired: DesiredStorage) -> dict[str, str]:
    """Return the options of a storage that identify its pool, volume group or directory (pure)."""
    places = {
        ZFS: {"type": "zfspool", "pool": desired.name},
        LVM: {"type": "lvm", "vgname": desired.name},
        THIN: {"type": "lvmthin", "vgname": desired.volume_group, "thinpool": desired.name},
        DIRECTORY: {"type": "dir", "path": f"{MOUNTS}{desired.name}"},
    }
    return places[desired.type]


def desired_definition(desired: DesiredStorage, known: Values | None) -> DesiredResource:
    """Return the desired definition of the storage; `known` is its present definition, or None
    (pure).

    Only adds the node to an existing definition. Raises Conflict if that has another place.
    """
    options: dict[str, Any] = {"name": desired.name, **place_of(desired)}
    if known is None:
        return read_definition(STORAGE, {**options, **_NEW[desired.type], "nodes": [desired.node]})
    require_place(desired, known)
    if known["nodes"]:
        options["nodes"] = sorted({*known["nodes"], desired.node})
    return read_definition(STORAGE, options)


def require_place(desired: DesiredStorage, known: Values) -> None:
    """Raise Conflict for a definition with another pool, volume group or directory (pure)."""
    for option, value in place_of(desired).items():
        if known[option] != value:
            raise _exists(desired, f"with {option} {known[option]}")


def require_new(desired: DesiredStorage, known: Values | None) -> None:
    """Raise Conflict if a storage of this name exists and the node cannot be added to it (pure)."""
    if known is None:
        return
    require_place(desired, known)
    if not known["nodes"] or desired.node in known["nodes"]:
        raise _exists(desired, f"on node {desired.node}")


def _exists(desired: DesiredStorage, how: str) -> FleetError:
    return desired.refused(
        f"storage {desired.name} exists {how}",
        "Set add_storage=false, or use another name",
        "storage exists",
    )
