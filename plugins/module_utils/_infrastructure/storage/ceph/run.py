# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of modules ceph_pool and ceph_pool_info, and refusals before the first write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.core import validate
from ...._foundation.core.arguments.options import did_you_mean
from ...._foundation.core.errors import Conflict, NotFound, NotSupported, ValidationFailed
from ...._foundation.core.result import Result
from ...._foundation.resource import run as simple
from ...._foundation.resource.decide import read_desired
from ...._foundation.resource.engine import apply_plan
from ...._foundation.resource.table import DesiredResource, ResourceChange
from ..usage import read_usage
from .pool import POOL, coded, on_node, with_storages


def run_pool(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Bring a Ceph pool to the desired state and return the outcome."""
    coding = params.get("erasure_coding")
    if coding:
        require_present(params)
    node = choose_node(params, client)
    table = with_storages(on_node(POOL, node), params)
    if coding:
        table = coded(table, coding)
    table = replace(table, precheck=partial(precheck, node, bool(params.get("remove_storages"))))
    desired = read_desired(table, params)
    plan, actual = simple.plan_resource(table, desired, client)
    if "size" in desired.values and desired.present:
        # A new size resets the minimum size (PVE/Ceph/Tools.pm, set_pool).
        plan = replace(plan, steps=tuple(replace(step, reread=True) for step in plan.steps))
    return apply_plan(simple.TableResource(table, desired, client, plan, actual), check_mode)


def require_present(params: Mapping[str, Any]) -> None:
    """Raise ValidationFailed if a task deletes an erasure-coded pool by a single name (pure)."""
    if params.get("state") == "absent":
        raise ValidationFailed(
            "erasure_coding was refused: the two pools of an erasure-coded pool are deleted by "
            "their own names",
            "Delete NAME-data and NAME-metadata",
            "erasure_coding",
        )


def run_pool_info(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Return the Ceph pools, all or the named one. Nothing is written."""
    return simple.run_info(on_node(POOL, choose_node(params, client)), params, client)


def choose_node(params: Mapping[str, Any], client: Api) -> str:
    """Return the node of the task, by default the first node that is online and has Ceph.

    Two requests, and one for each node without Ceph. Raises NotSupported if no node has it.
    """
    if params.get("node"):
        return validate.node(params["node"])
    rows = client.get("nodes", attempted="Could not list the nodes") or []
    online = sorted(str(row["node"]) for row in rows if row.get("status") == "online")
    return require_ceph(node_with_ceph(online, client))


def node_with_ceph(nodes: Iterable[str], client: Api) -> str | None:
    """Return the first of the nodes that has Ceph, or None; one request for each node."""
    for node in nodes:
        try:
            client.get("nodes", node, "ceph", "pool", attempted=f"Could not ask node {node}")
        except NotSupported:
            continue
        return node
    return None


def require_ceph(node: str | None) -> str:
    """Return the node. Raises NotSupported if no node has Ceph (pure)."""
    if node is None:
        raise NotSupported(
            "The Ceph pools were not read: no node that is online has Ceph",
            "Set it up first: pveceph install, pveceph init",
            "no Ceph",
        )
    return node


def precheck(
    node: str, removes: bool, client: Api, desired: DesiredResource, change: ResourceChange
) -> tuple[str, ...]:
    """Raise any refusal before the first write, and return warnings.

    Sends one request for a CRUSH rule. Reads the storages and their users if the pool is deleted.
    """
    label = POOL.label(desired.keys)
    if change.deletes:
        return _require_removable(removes, client, desired.keys["name"], f"{label} was not deleted")
    attempted = f"{label} was not {'created' if change.creates else 'changed'}"
    require_order(desired.values, attempted)
    if "crush_rule" in change.sets:
        listed = client.get("nodes", node, "ceph", "rules", attempted="Could not list CRUSH rules")
        names = [str(row["name"]) for row in listed or []]
        require_rule(change.sets["crush_rule"], names, attempted)
    return ()


def require_order(values: Mapping[str, Any], attempted: str) -> None:
    """Raise ValidationFailed for a minimum above the size, which Ceph refuses too late (pure)."""
    if {"size", "min_size"} <= values.keys() and values["min_size"] > values["size"]:
        raise ValidationFailed(
            f"{attempted}: min_size {values['min_size']} is above size {values['size']}",
            "Set min_size to size at most",
            "min_size",
        )


def require_rule(name: str, known: Iterable[str], attempted: str) -> None:
    """Raise NotFound for a CRUSH rule that Ceph does not have (pure)."""
    names = sorted(known)
    if name not in names:
        raise NotFound(
            f"{attempted}: there is no CRUSH rule {name}; Ceph has "
            f"{', '.join(names)}{did_you_mean(name, names)}",
            "Check crush_rule",
            "unknown CRUSH rule",
        )


def _require_removable(removes: bool, client: Api, pool: str, attempted: str) -> tuple[str, ...]:
    """Refuse the removal of a pool in use; return warnings about unknown users."""
    rows = client.get("storage", attempted="Could not list the storages") or []
    # The default pool of a storage is rbd (Pool.pm, get_storages).
    storages = sorted(
        str(row["storage"])
        for row in rows
        if row.get("type") == "rbd" and pool in (row.get("pool") or "rbd", row.get("data-pool"))
    )
    if not removes:
        require_no_storages(storages, attempted)
    warnings: list[str] = []
    for storage in storages:
        usage = read_usage(client, storage)
        require_unused(storage, usage.users, attempted)
        warnings += usage.warnings
    return tuple(warnings)


def require_no_storages(storages: Sequence[str], attempted: str) -> None:
    """Raise Conflict if storages are on a pool (pure)."""
    if storages:
        raise Conflict(
            f"{attempted}: storages are on it: {', '.join(storages)}",
            "Delete them first: pve.fleet.storage; or set remove_storages=true",
            "in use",
            details={"storages": list(storages)},
        )


def require_unused(storage: str, users: Sequence[str], attempted: str) -> None:
    """Raise Conflict if guests or jobs use a storage on the pool (pure)."""
    if users:
        raise Conflict(
            f"{attempted}: storage {storage} is used by {', '.join(users)}",
            "Move or remove these first",
            "in use",
            details={"users": list(users)},
        )
