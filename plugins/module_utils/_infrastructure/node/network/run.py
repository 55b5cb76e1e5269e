# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of modules node_network and node_network_info."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...._foundation.core import validate
from ...._foundation.core.result import Result
from ...._foundation.resource.engine import apply_plan
from ...._foundation.resource.plan import Plan
from .checks import (
    changed_names,
    is_bridge,
    require_consistent,
    require_declarable,
    require_kept_methods,
    require_no_foreign_change,
    require_own_path_kept,
    require_unused,
)
from .desired import read_task
from .model import Interfaces, NetworkOptions, NodeInterfaces
from .own_path import own_path
from .plan import apply_step, discard_step, merged, plan_steps
from .read import read_addresses, read_bridge_users, read_network
from .resource import NodeNetwork
from .settings import as_options

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Apply the declared network of a node; check mode writes nothing."""
    task = read_task(params)
    network = read_network(client, task.node)

    def plan(found: NodeInterfaces) -> tuple[Plan, Interfaces]:
        return _plan(client, task, found)

    return apply_plan(NodeNetwork(client, task, network, plan), check_mode)


def _plan(client: Client, task: NetworkOptions, network: NodeInterfaces) -> tuple[Plan, Interfaces]:
    """Return the plan of a task and its target. Raises FleetError for a refused network."""
    require_declarable(task, network)
    before = network.interfaces
    after = merged(before, task.declared, task.exact)
    warning = require_no_foreign_change(task, network, after)
    warnings = (warning,) if warning else ()
    if after != before:
        _require_safe(client, task, network, after)
    steps = plan_steps(task.node, before, after)
    is_discarded = bool(network.pending) and task.pending == "discard"
    is_applied = bool(network.pending) and task.pending == "apply"
    if steps or is_applied:
        steps.append(apply_step(task.node))
    plan = Plan(tuple(steps), *_difference(before, after), warnings=warnings)
    if not is_discarded:
        return plan, after
    steps.insert(0, discard_step(task.node))
    all_warnings = (*warnings, _AFTER_DISCARD.format(node=task.node))
    return replace(plan, steps=tuple(steps), warnings=all_warnings), after


_AFTER_DISCARD = (
    "The pending changes of node {node} are discarded first, and the rest is planned again after"
    " that: Proxmox VE does not show the configuration in force while there is a pending one"
)


def _require_safe(
    client: Client, task: NetworkOptions, network: NodeInterfaces, after: Interfaces
) -> None:
    """Raise FleetError if the target cannot work, or would interrupt a connection."""
    before = network.interfaces
    require_consistent(task, before, after)
    require_kept_methods(task, network, after)
    own, owners = read_addresses(client, task.node)
    require_own_path_kept(task, network, after, own_path(before, own), owners)
    removed = [name for name in before if name not in after and is_bridge(before[name])]
    if removed:
        require_unused(task, removed, read_bridge_users(client, task.node))


def _difference(before: Interfaces, after: Interfaces) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the interfaces that change, before and after, by name."""
    names = changed_names(before, after)
    return (
        {name: as_options(name, before[name]) for name in names if name in before},
        {name: as_options(name, after[name]) for name in names if name in after},
    )


def run_info(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the network of a node. Nothing is written; one request."""
    node = validate.node(params["node"])
    network = read_network(client, node)
    found = [as_options(name, network.interfaces[name]) for name in sorted(network.interfaces)]
    states = {}
    for name, row in network.rows.items():
        states[name] = {
            "active": bool(row.get("active")),
            "exists": bool(row.get("exists")),
            "method": row.get("method"),
            "method6": row.get("method6"),
        }
    values = {
        "node": node,
        "interfaces": found,
        "states": states,
        "pending": network.pending or None,
    }
    return Result(False, values)
