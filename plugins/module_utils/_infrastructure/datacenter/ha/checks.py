# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refusals about HA rules and resources, found before the first write."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ...._foundation.api.interface import Api
from ...._foundation.cluster.find.visible import is_in_use
from ...._foundation.cluster.state import ClusterState, cluster_state_of
from ...._foundation.cluster.tenant import owns, tenant_of, tenant_tag
from ...._foundation.core import validate
from ...._foundation.core.arguments.options import did_you_mean
from ...._foundation.core.errors import (
    ConfigurationError,
    Conflict,
    ForeignTenant,
    NotFound,
    UnknownVm,
)
from ...._foundation.resource.decide import after
from ...._foundation.resource.table import DesiredResource, ResourceChange, Values
from .able import read_unable, require_able
from .contradictions import GROUP, NEGATIVE, EnabledRule, find_contradictions, rule_of
from .rule import AVOIDING_SINCE, HA_RULE, PLACE
from .sids import KINDS, sid_of, vmid_of

RULES_SINCE = (9, 0)
# Options of a rule whose change can move its guests.
_MOVING = frozenset(("affinity", "disable", "nodes", "strict"))
_OTHER_KIND = {"vm": "ct", "ct": "vm"}


@dataclass(frozen=True)
class HaFacts:
    """The cluster, its nodes, and the tags of each guest that the caller may see, by resource ID."""

    nodes: frozenset[str]
    tags: Mapping[str, tuple[str, ...]]
    cluster: ClusterState


def read_facts(client: Api) -> HaFacts:
    """Return the facts; one request."""
    rows = client.get("cluster", "resources", attempted="Could not list the guests") or []
    cluster = cluster_state_of(rows, KINDS)
    tags = {sid_of(row): row.tags for row in cluster.guests}
    return HaFacts(frozenset(cluster.nodes), tags, cluster)


def precheck_rule(
    tenant: str | None, client: Api, desired: DesiredResource, change: ResourceChange
) -> tuple[str, ...]:
    """Raise any refusal of a rule before the first write; return warnings.

    Three requests: the rules, the guests and nodes, the HA resources if some are added; and one for
    each guest whose nodes change.
    """
    name = desired.keys["name"]
    attempted = f"{HA_RULE.label(desired.keys)} was not {change.verb}"
    rules = read_rules(client)
    present = rules.get(name, HA_RULE.values({}))
    if change.deletes:
        if tenant is not None:
            require_owned(present["resources"], tenant, read_facts(client), attempted)
        return ()
    values = after(HA_RULE, desired, rules.get(name))
    facts = read_facts(client)
    require_nodes(values["nodes"], facts, attempted)
    if values["type"] == PLACE and values["affinity"] == NEGATIVE:
        what = "affinity=negative of a rule of type node-affinity"
        step = "List the other nodes of the cluster instead, with affinity=positive"
        validate.require_since(AVOIDING_SINCE, client.release(), attempted, what, step)
    if change.adds:
        rows = client.get("cluster", "ha", "resources", attempted="Could not list the HA resources")
        require_managed(
            change.adds["resources"], {str(row["sid"]) for row in rows or []}, attempted
        )
    require_owned(present["resources"] | values["resources"], tenant, facts, attempted)
    enabled = {key: rule_of(one) for key, one in {**rules, name: values}.items()}
    active = {key: rule for key, rule in enabled.items() if rule is not None}
    require_feasible(name, active, facts.nodes, attempted)
    placed = values["resources"] if change.sets.keys() & _MOVING else frozenset()
    placed |= change.adds.get("resources", frozenset())
    unable = read_unable(client, active.get(name), placed, facts.cluster)
    warnings = require_able(active.get(name), unable, facts.nodes, attempted)
    return (*mixed_tenants(values, facts), *warnings)


def read_rules(client: Api) -> dict[str, Values]:
    """Return the HA rules by name; one request. Proxmox VE 8 has none."""
    rows = client.get("cluster", "ha", "rules", attempted="Could not list the HA rules") or []
    return {str(row["rule"]): HA_RULE.values(row) for row in rows}


def require_nodes(nodes: Iterable[str], facts: HaFacts, attempted: str) -> None:
    """Raise ConfigurationError for nodes that the cluster does not have (pure)."""
    unknown = sorted({node.partition(":")[0] for node in nodes} - facts.nodes)
    if unknown:
        raise ConfigurationError(
            f"{attempted}: there is no node {', '.join(unknown)}; the cluster has "
            f"{', '.join(sorted(facts.nodes))}{did_you_mean(unknown[0], facts.nodes)}",
            "Check nodes",
            "unknown node",
            details={"nodes": unknown},
        )


def require_managed(sids: Iterable[str], managed: Collection[str], attempted: str) -> None:
    """Raise NotFound for guests that are not HA resources (pure)."""
    unmanaged = sorted(set(sids).difference(managed))
    if unmanaged:
        raise NotFound(
            f"{attempted}: {', '.join(unmanaged)}: not managed by the HA manager",
            "Create the HA resources first: pve.fleet.ha_resource",
            "unknown HA resource",
            details={"resources": unmanaged},
        )


def require_owned(sids: Iterable[str], tenant: str | None, facts: HaFacts, attempted: str) -> None:
    """Raise ForeignTenant for guests outside the tenant of the task, if it has one (pure)."""
    if tenant is None:
        return
    own = tenant_tag(tenant)
    foreign = [sid for sid in sorted(sids) if not owns(own, facts.tags.get(sid, ()))]
    if foreign:
        raise ForeignTenant(
            f"{attempted}: {', '.join(foreign)}: not a guest of tenant {tenant}",
            f"Leave them out, or check their tag, which must be {own}",
            "another tenant",
            details={"resources": foreign},
        )


def require_feasible(
    name: str, rules: Mapping[str, EnabledRule], nodes: Collection[str], attempted: str
) -> None:
    """Raise Conflict if a rule contradicts itself or another rule (pure)."""
    if name not in rules:
        return
    found = find_contradictions(name, rules, nodes)
    if found:
        raise Conflict(
            f"{attempted}: {'; '.join(found)}",
            "Change the resources or nodes of one of the rules, or disable one of them",
            "contradiction",
            details={"contradictions": found},
        )


def mixed_tenants(values: Values, facts: HaFacts) -> tuple[str, ...]:
    """Return a warning if a resource-affinity rule has guests of several tenants (pure)."""
    if values["type"] != GROUP:
        return ()
    found = {tenant_of(facts.tags.get(sid, ()))[0] for sid in values["resources"]}
    tenants = sorted(name for name in found if name)
    if len(tenants) < 2:
        return ()
    return (f"The rule has guests of several tenants: {', '.join(tenants)}",)


def precheck_resource(
    tenant: str | None, client: Api, desired: DesiredResource, change: ResourceChange
) -> tuple[str, ...]:
    """Raise any refusal of an HA resource before the first write; return a warning about the rules
    that a deletion changes.

    One request for a new resource and for a task with a tenant, one for the rules of a resource
    that is deleted.
    """
    name = desired.keys["sid"]
    attempted = f"HA resource '{name}' was not {change.verb}"
    if change.creates or tenant is not None:
        facts = read_facts(client)
        if change.creates:
            is_hidden = name not in facts.tags and is_in_use(client, vmid_of(name))
            require_guest(name, facts, attempted, is_hidden=is_hidden)
        require_owned([name], tenant, facts, attempted)
    if change.sets.get("group"):
        rows = client.get("cluster", "ha", "groups", attempted="Could not list the HA groups") or []
        require_group(change.sets["group"], {str(row["group"]) for row in rows}, attempted)
    if change.deletes and client.version() >= RULES_SINCE:
        return _leaves_rules(name, read_rules(client))
    return ()


def require_guest(sid: str, facts: HaFacts, attempted: str, *, is_hidden: bool) -> None:
    """Raise UnknownVm if there is no such guest (pure). PVE decides about a hidden guest."""
    other = _OTHER_KIND[sid[:2]] + sid[2:]
    if sid in facts.tags or (is_hidden and other not in facts.tags):
        return
    step = f"Write it as {other}" if other in facts.tags else "Create the guest first"
    raise UnknownVm(
        f"{attempted}: there is no guest {sid}", step, "unknown VM", details={"sid": sid}
    )


def require_group(name: str, groups: Collection[str], attempted: str) -> None:
    """Raise NotFound for a missing group, which PVE accepts for a new resource (pure)."""
    if name not in groups:
        raise NotFound(
            f"{attempted}: there is no HA group '{name}'{did_you_mean(name, groups)}",
            "Create it first, or check group",
            "unknown HA group",
        )


def _leaves_rules(sid: str, rules: Mapping[str, Values]) -> tuple[str, ...]:
    found: list[str] = []
    for name, values in sorted(rules.items()):
        if sid in values["resources"]:
            is_last = len(values["resources"]) == 1
            found.append(f"{name} (deleted with it)" if is_last else name)
    if not found:
        return ()
    return (f"{sid} also leaves its HA rules: {', '.join(found)}",)
