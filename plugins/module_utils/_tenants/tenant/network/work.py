# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans and writes the networks of a tenant: VNets, then aliases and IP sets, then the group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from ...._foundation.cluster.tenant import group_name
from ...._foundation.core.errors import NotSupported
from ...._foundation.core.marks import marked_tag
from ...._foundation.core.result import Result
from ...._foundation.resource.engine import apply_plan
from ...._foundation.resource.plan import Plan
from ...._infrastructure.sdn.model import VNETS, Sections
from ...._infrastructure.sdn.read import read_sdn
from ...._infrastructure.sdn.run import SdnWork, apply_work, plan_transaction
from ...firewall.model import DesiredFirewall, Firewall
from ...firewall.plan import after_plan, plan_firewall
from ...firewall.read import groups_of, options_of, read_firewall, rules_of
from ...firewall.resource import FirewallOfScope
from ...firewall.scope import CLUSTER, GROUP, ROOT, FirewallScope, plain_scope
from ...firewall.users import require_group_unused, require_names_unused
from ..model import Tenant
from ..network import firewall, sdn
from ..work import TenantProgress
from .model import NONE, TenantNetworking
from .sdn import require_distinct

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

_WAIT = 120
"""Seconds to wait for a change of SDN by another run."""
GoalOf: TypeAlias = "Callable[[Firewall], DesiredFirewall]"


@dataclass(frozen=True)
class NetworkPart:
    """A part of a tenant's networks with its plan; `write` replans the part and writes it."""

    label: str
    plan: Plan
    write: Callable[[Client], Result]


@dataclass(frozen=True)
class PlannedNetworks:
    """The parts that differ, in the order of execution, and the resulting networks."""

    parts: tuple[NetworkPart, ...] = ()
    networks: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def summaries(self) -> list[str]:
        return [line for part in self.parts for line in part.plan.summaries]

    @property
    def plans(self) -> list[Plan]:
        return [part.plan for part in self.parts]

    def written(self, client: Client, report: TenantProgress) -> PlannedNetworks:
        """Write the parts, and return the networks with their final tags. Raises FleetError.

        Another run may have taken a planned tag first.
        """
        tags: dict[str, int | None] = {}
        for part in self.parts:
            result = report.run(partial(part.write, client))
            for row in result.values.get("sdn", {}).get(VNETS, ()):
                tags[row["name"]] = row.get("tag")
        networks = [{**one, "tag": tags.get(one["vnet"], one["tag"])} for one in self.networks]
        return replace(self, networks=tuple(networks))

    def with_diff(self, diff: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Return the diff together with the changes of the networks."""
        before, after = dict(diff["before"]), dict(diff["after"])
        for part in self.parts:
            before[part.label] = dict(part.plan.before)
            after[part.label] = dict(part.plan.after)
        return {"before": before, "after": after}


# -- created or changed --------------------------------------------------------------------------


def plan_networks(tenant: Tenant, reader: Client) -> PlannedNetworks:
    """Return the plan for the networks of a task. Raises FleetError for each refusal."""
    networking = tenant.networking
    if networking is None:
        return PlannedNetworks()
    firewall.require_on(
        options_of(reader.get(*ROOT, "options")), networking, f"{tenant.label}: networks"
    )
    groups = groups_of(reader.get(*ROOT, "groups"))
    firewall.require_own_group(tenant.tag, groups)
    work = SdnWork(reader, partial(_params_of, networking, tenant.tag), needs_all_subnets=True)
    transaction = plan_transaction(work)
    goal_of = partial(firewall.names_goal, networking, tenant.tag)
    sets = firewall.sets_of(networking, tenant.tag)
    names = _firewall_part(reader, tenant.tag, sets, goal_of)
    cluster = _read_names(reader, sets)
    warnings = [
        f"Peer {peer} has no networks yet: nothing is opened to it"
        for peer in networking.peers
        if group_name(peer) not in cluster.ip_sets
    ]
    parts = (
        NetworkPart("SDN", transaction.plan, partial(_write_sdn, work)),
        names,
        _group_part(reader, tenant.tag, firewall.group_goal(networking, tenant.tag)),
    )
    described: list[dict[str, Any]] = []
    for one in networking.wanted:
        number = transaction.after[VNETS].get(one.vnet, {}).get("tag")
        described.append(
            {
                "name": one.name,
                "vnet": one.vnet,
                "zone": one.zone,
                "tag": int(number) if number else None,
                "subnet": one.subnet or None,
            }
        )
    return PlannedNetworks(_changed(parts), tuple(described), tuple(warnings))


def described_networks(tenant: Tenant, planned: PlannedNetworks) -> dict[str, Any]:
    """Return the networks of a tenant as the module reports them (pure)."""
    networking = tenant.networking
    if networking is None:
        return {"networks": [], "isolation": None, "security_group": None}
    group = None if networking.isolation == NONE else group_name(tenant.tag)
    return {
        "networks": list(planned.networks),
        "isolation": networking.isolation,
        "security_group": group,
    }


def _params_of(networking: TenantNetworking, tag: str, running: Sections) -> dict[str, Any]:
    """Return the options of module sdn. Raises FleetError for each refusal (pure)."""
    require_distinct(networking, tag, running)
    return sdn.params_of(networking.networks, tag, running)


def _changed(parts: Iterable[NetworkPart]) -> tuple[NetworkPart, ...]:
    return tuple(part for part in parts if part.plan.changed)


def _write_sdn(work: SdnWork, client: Client) -> Result:
    return apply_work(replace(work, client=client, wait=_WAIT), False)


def _read_names(client: Client, sets: frozenset[str]) -> Firewall:
    """Return the parts of the cluster's firewall that are read before the goal is known."""
    parts = DesiredFirewall({}, None, {}, {}, only_sets=sets)
    return read_firewall(client, plain_scope(CLUSTER, None), parts)


def _firewall_part(
    reader: Client, tag: str, sets: frozenset[str], goal_of: GoalOf, leaving: Iterable[int] = ()
) -> NetworkPart:
    """Return the part about aliases and IP sets of the cluster. Its names may be used by the
    tenant's group, which is removed too, and by guests that are `leaving`.
    """
    scope, gone = plain_scope(CLUSTER, None), frozenset(leaving)

    def check(client: Client, before: Firewall, after: Firewall) -> None:
        require_names_unused(client, scope, before, after, gone, group_name(tag))

    goal = goal_of(_read_names(reader, sets))
    actual = read_firewall(reader, scope, goal)
    check(reader, actual, after_plan(actual, goal))

    def write(client: Client) -> Result:
        fresh = goal_of(_read_names(client, sets))
        return _write_firewall(client, scope, fresh, check)

    return NetworkPart("Firewall of the cluster", plan_firewall(scope, actual, goal), write)


def _group_part(
    reader: Client, tag: str, goal: DesiredFirewall, leaving: Iterable[int] = ()
) -> NetworkPart:
    """Return the part about the security group. Guests that are `leaving` may use it."""
    scope, gone = plain_scope(GROUP, group_name(tag)), frozenset(leaving)

    def check(client: Client, before: Firewall, after: Firewall) -> None:
        if before.exists and not after.exists:
            require_group_unused(client, group_name(tag), gone)

    actual = read_firewall(reader, scope, goal)
    check(reader, actual, after_plan(actual, goal))
    plan = plan_firewall(scope, actual, goal)
    write = partial(_write_firewall, scope=scope, goal=goal, check=check)
    return NetworkPart(f"Security group '{scope.name}'", plan, write)


def _write_firewall(
    client: Client,
    scope: FirewallScope,
    goal: DesiredFirewall,
    check: Callable[[Client, Firewall, Firewall], None],
) -> Result:
    def checked(before: Firewall, after: Firewall) -> tuple[str, ...]:
        check(client, before, after)
        return ()

    actual = read_firewall(client, scope, goal)
    return apply_plan(FirewallOfScope(client, scope, goal, actual, checked), False)


# -- removed -------------------------------------------------------------------------------------


def plan_removal(tenant: Tenant, leaving: Iterable[int], reader: Client) -> PlannedNetworks:
    """Return the plan that removes a tenant's networks: the group, aliases and IP sets, the VNets.

    `leaving` are the guests that are removed before. Four requests if the tenant has no networks. A
    cluster without SDN has none: the package is optional before Proxmox VE 8.1.
    """
    tag = tenant.tag
    try:
        groups = groups_of(reader.get(*ROOT, "groups"))
        vnets = sdn.vnets_of(tag, read_sdn(reader).running)
    except NotSupported:
        return PlannedNetworks()
    has_group = marked_tag(groups.get(group_name(tag))) == tag
    if not vnets and not has_group:
        return PlannedNetworks()
    kept = _used_by(reader, tag, groups)
    gone = frozenset(leaving)

    def goal_of(actual: Firewall) -> DesiredFirewall:
        known = actual.aliases.items()
        own = [name for name, (_cidr, comment) in known if marked_tag(comment) == tag]
        goal = firewall.without_sets({}, own, tag, actual)
        if not kept:
            return goal
        # the IP set of the tenant is kept, but empty
        group = group_name(tag)
        members = frozenset(actual.ip_sets[group].members if group in actual.ip_sets else ())
        gone_members = {**goal.gone_members, group: members}
        return replace(goal, gone=goal.gone - {group}, gone_members=gone_members)

    work = SdnWork(
        reader,
        lambda running: sdn.removal_of(sdn.vnets_of(tag, running), running),
        leaving=gone,
        needs_all_subnets=True,
    )
    sets = frozenset((firewall.EVERY_TENANT, group_name(tag)))
    parts = [
        _group_part(reader, tag, DesiredFirewall({}, is_wanted=False), gone),
        _firewall_part(reader, tag, sets, goal_of, gone),
        NetworkPart("SDN", plan_transaction(work).plan, partial(_write_sdn, work)),
    ]
    if not has_group:
        del parts[0]
    warnings = (
        [f"Kept: IP set '{group_name(tag)}', empty: {', '.join(kept)} use it"] if kept else []
    )
    return PlannedNetworks(_changed(parts), (), tuple(warnings))


def _used_by(reader: Client, tag: str, groups: Iterable[str]) -> Sequence[str]:
    """Return the security groups whose rules use a tenant's IP set; one request for each group."""
    own = group_name(tag)
    found: list[str] = []
    for name in sorted(set(groups) - {own}):
        rules = rules_of(reader.get(*ROOT, "groups", name))
        if any(rule.source in (f"+dc/{own}", f"+{own}") for rule in rules):
            found.append(f"group '{name}'")
    return found
