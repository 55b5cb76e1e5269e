# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keeps the placement of guests with the HA manager: O(placement.keep) of module vms.

All steps are planned before the first write. Rules and resources of others are not changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.core.errors import Conflict, NotSupported
from ...._foundation.core.result import Result
from ...._foundation.resource.decide import after, build_plan, compare, read_desired
from ...._foundation.resource.engine import after_writes, apply_plan, require_permitted
from ...._foundation.resource.run import TableResource, plan_resource
from ...._foundation.resource.table import Table, Values
from .checks import read_rules
from .contradictions import GROUP, find_contradictions, rule_of
from .placement import AFFINITIES, DerivedRule, mark_of, marked_tenant, obsolete_rules
from .resource import HA_RESOURCE
from .rule import HA_RULE

_ATTEMPTED = "The placement of the guests was not kept"


@dataclass(frozen=True)
class HaConfiguration:
    """The rules and the resources of the HA manager, by their names."""

    rules: Mapping[str, Values] = field(default_factory=dict)
    resources: Mapping[str, Values] = field(default_factory=dict)


@dataclass(frozen=True)
class KeptPlacement:
    """The placement to keep: its rules, and the tags of its tenants.

    `listed` are the guests of the list, `known` all guests, and `running` the running guests, by
    their IDs as HA resources.
    """

    rules: Sequence[DerivedRule]
    scope: frozenset[str]
    listed: frozenset[str]
    known: frozenset[str]
    running: frozenset[str]
    nodes: frozenset[str]


@dataclass(frozen=True)
class HaPlan:
    """The resources that differ, in the order of the writes, and warnings."""

    resources: Sequence[TableResource] = ()
    warnings: tuple[str, ...] = ()

    @property
    def new_resources(self) -> frozenset[str]:
        """The guests that become HA resources."""
        return frozenset(
            one.desired.keys["sid"]
            for one in self.resources
            if one.table is HA_RESOURCE and one.actual is None
        )


def read_state(client: Api, is_required: bool) -> HaConfiguration:
    """Return the state of the HA manager; two requests.

    Raises NotSupported for a version without rules if the placement has any (`is_required`).
    """
    try:
        rules = read_rules(client)
    except NotSupported:
        if is_required:
            raise
        return HaConfiguration()
    rows = client.get("cluster", "ha", "resources", attempted="Could not list the HA resources")
    resources = {str(row["sid"]): HA_RESOURCE.values(row) for row in rows or []}
    return HaConfiguration(rules, resources)


def plan_kept(placement: KeptPlacement, state: HaConfiguration, client: Api) -> HaPlan:
    """Return the plan. Raises Conflict for contradicting rules."""
    foreign: list[str] = []  # rules with existing guests that are not in the list
    removed: list[str] = []
    for name in obsolete_rules(state.rules, placement.rules, placement.scope):
        guests = state.rules[name]["resources"] & placement.known
        (removed if guests <= placement.listed else foreign).append(name)
    values = {name: one for name, one in state.rules.items() if name not in removed}
    wanted: list[tuple[Table, dict[str, Any]]] = []
    for rule in placement.rules:
        options = {
            "name": rule.name,
            "type": GROUP,
            "affinity": AFFINITIES[rule.direction],
            "comment": rule.comment,
            "resources": sorted(rule.resources),
            "exact": True,
            "disable": False,
        }
        desired = read_desired(HA_RULE, options)
        values[rule.name] = after(HA_RULE, desired, state.rules.get(rule.name))
        wanted.append((HA_RULE, options))
    _require_feasible([rule.name for rule in placement.rules], values, placement.nodes)
    writes: list[tuple[Table, dict[str, Any]]] = [
        (HA_RULE, {"name": name, "state": "absent"}) for name in removed
    ]
    writes += [*_new_resources(placement, state), *wanted]
    writes += _unused_resources(placement, state, values)
    found = [_resource(table, options, state, client) for table, options in writes]
    warnings = tuple(
        f"HA rule '{name}' stays: it has guests that the list does not have" for name in foreign
    )
    return HaPlan([one for one in found if one.plan.changed], warnings)


def _new_resources(
    placement: KeptPlacement, state: HaConfiguration
) -> list[tuple[Table, dict[str, Any]]]:
    """Return the guests that become HA resources. Each keeps its power state."""
    tenants = {sid: rule.tenant for rule in placement.rules for sid in rule.resources}
    found: list[tuple[Table, dict[str, Any]]] = []
    for sid in sorted(tenants.keys() - state.resources.keys()):
        power = "started" if sid in placement.running else "stopped"
        comment = mark_of(tenants[sid])
        found.append((HA_RESOURCE, {"sid": sid, "request_state": power, "comment": comment}))
    return found


def _unused_resources(
    placement: KeptPlacement, state: HaConfiguration, rules: Mapping[str, Values]
) -> list[tuple[Table, dict[str, Any]]]:
    """Return the removals of HA resources that the placement created and no rule needs any more.

    `rules` are all rules after the run.
    """
    needed = {sid for values in rules.values() for sid in values["resources"]}
    found: list[tuple[Table, dict[str, Any]]] = []
    for sid, values in sorted(state.resources.items()):
        is_own = marked_tenant(values["comment"]) in placement.scope
        if is_own and sid in placement.listed and sid not in needed:
            found.append((HA_RESOURCE, {"sid": sid, "state": "absent"}))
    return found


def _resource(
    table: Table, options: Mapping[str, Any], state: HaConfiguration, client: Api
) -> TableResource:
    known = state.rules if table is HA_RULE else state.resources
    desired = read_desired(table, options)
    actual = known.get(next(iter(desired.keys.values())))
    plan = build_plan(table, desired, actual, compare(table, desired, actual))
    return TableResource(table, desired, client, plan, actual)


def _require_feasible(
    names: Iterable[str], values: Mapping[str, Values], nodes: Collection[str]
) -> None:
    """Raise Conflict if a rule of the placement contradicts another rule (pure)."""
    enabled = {name: rule_of(one) for name, one in values.items()}
    rules = {name: rule for name, rule in enabled.items() if rule is not None}
    found: list[str] = []
    for name in names:
        comment = str(values[name]["comment"]).partition(" [")[0]
        for text in find_contradictions(name, rules, nodes):
            found.append(f"{name} ({comment}): {text}")
    if found:
        raise Conflict(
            f"{_ATTEMPTED}: {'; '.join(found)}",
            "Change placement of the guests, or the other rules: pve.fleet.ha_rule_info",
            "contradiction",
            details={"contradictions": found},
        )


def require_allowed(plan: HaPlan, client: Api) -> None:
    """Raise PermissionDenied if the login may not write the plan; one request if it has steps."""
    plans = [(one.plan, one.config) for one in plan.resources]
    require_permitted(
        client, plans, "Use the login of an administrator, or leave out placement.keep"
    )


def apply_plans(plan: HaPlan, check_mode: bool) -> list[Result]:
    """Write the plan, and return the result of each rule and resource; check mode writes nothing.

    Each one is read again before its write, for its digest.
    """
    if check_mode:
        for one in plan.resources:
            one.client.plan_book.keep(one.plan)
        return [one.preview() for one in plan.resources]
    done: list[str] = []
    results: list[Result] = []
    for one in plan.resources:
        with after_writes(done):
            steps, actual = plan_resource(one.table, one.desired, one.client)
            latest = TableResource(one.table, one.desired, one.client, steps, actual)
            results.append(apply_plan(latest, False))
        done += results[-1].values["done"]
    return results
