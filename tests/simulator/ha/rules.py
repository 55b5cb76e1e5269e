"""Rules of the HA manager: the nodes of machines, and machines that must stay together or apart.

Follows `API2/HA/Rules.pm`, `HA/Rules.pm` and the plugins beside it. A rule is held in its written
form: machines and nodes in order, nodes with their priority only if it is not 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.api import Ctx, api
from ..core.state import Cluster
from ..errors import ParamError, PveError
from ..schema.formats import split_list
from ..schema.validate import UNKNOWN
from .records import check_digest, digest_of
from .status import known_services, node_states

Rule = dict[str, Any]
_OPTIONS = {
    "node-affinity": {
        "resources": False,
        "nodes": False,
        "affinity": True,
        "strict": True,
        "disable": True,
        "comment": True,
    },
    "resource-affinity": {"resources": False, "affinity": False, "disable": True, "comment": True},
}
"""The options of a rule of each type, and whether each is optional."""


def _options(ctx: Ctx, kind: str) -> dict[str, bool]:
    """The options of a type: rules can avoid nodes since pve-manager 9.2.6, which needs
    pve-ha-manager 5.2.5.
    """
    options = _OPTIONS[kind]
    release = tuple(map(int, str(ctx.cluster.version["version"]).split(".")))
    if kind == "node-affinity" and release < (9, 2, 6):
        return {key: optional for key, optional in options.items() if key != "affinity"}
    return options


def _nodes(rule: Rule) -> dict[str, int]:
    """The nodes of a rule and their priorities."""
    found = (item.partition(":") for item in split_list(rule.get("nodes", "")))
    return {name: int(priority or 0) for name, _colon, priority in found}


def _avoids(rule: Rule) -> bool:
    """Whether the machines of a rule stay away from its nodes (NodeAffinity.pm since 9.2.6)."""
    return rule["type"] == "node-affinity" and rule.get("affinity") == "negative"


def _members(rule: Rule) -> set[str]:
    return set(split_list(rule.get("resources", "")))


def _written(given: dict[str, Any]) -> Rule:
    """The rule as it stands in the file."""
    rule = dict(given)
    if "resources" in rule:
        rule["resources"] = ",".join(sorted(_members(rule)))
    if "nodes" in rule:
        rule["nodes"] = ",".join(
            f"{name}:{rank}" if rank else name for name, rank in sorted(_nodes(rule).items())
        )
    return rule


def _disjoint(rules: dict[str, Rule]) -> list[tuple[list[str], set[str]]]:
    """Rules that share machines put together: their names, and all their machines."""
    found: list[tuple[list[str], set[str]]] = []
    for name in sorted(sorted(rules), key=lambda name: min(_members(rules[name]), default="")):
        members = _members(rules[name])
        for names, together in found:
            if together & members:
                names.append(name)
                together |= members
                break
        else:
            found.append(([name], set(members)))
    return found


class _Faults:
    """The faults of each rule."""

    def __init__(self) -> None:
        self.of: dict[str, list[str]] = {}

    def add(self, names: Iterable[str], text: str) -> None:
        for name in sorted(names):
            self.of.setdefault(name, []).append(text)


def faults(cluster: Cluster, rules: dict[str, Rule]) -> dict[str, list[str]]:
    """The reasons why each rule cannot be satisfied; disabled rules do not count."""
    active = {name: rule for name, rule in rules.items() if "disable" not in rule}
    places = {name: rule for name, rule in active.items() if rule["type"] == "node-affinity"}
    groups = {name: rule for name, rule in active.items() if rule["type"] == "resource-affinity"}
    positive = {name: rule for name, rule in groups.items() if rule["affinity"] == "positive"}
    negative = {name: rule for name, rule in groups.items() if rule["affinity"] == "negative"}
    found = _Faults()
    nodes = len(node_states(cluster))
    avoiding = {name: rule for name, rule in places.items() if _avoids(rule)}
    found.add(
        (name for name, rule in avoiding.items() if len(_nodes(rule)) >= nodes),
        "negative node affinity rule must not specify all cluster nodes",
    )
    found.add(
        (name for name, rule in avoiding.items() if any(_nodes(rule).values())),
        "negative node affinity rule must not specify node priorities",
    )
    for name in sorted(places):
        others = [_members(rule) for other, rule in places.items() if other != name]
        for sid in sorted(_members(places[name])):
            if any(sid in members for members in others):
                found.add([name], f"resource '{sid}' is already used in another node affinity rule")
    found.add(
        (name for name, rule in groups.items() if len(_members(rule)) < 2),
        "rule is ineffective as there are less than two resources",
    )
    found.add(
        (name for name, rule in negative.items() if len(_members(rule)) > nodes),
        "rule defines more resources than available nodes",
    )
    for names, together in _disjoint(positive):
        for name in sorted(negative):
            if len(together & _members(negative[name])) >= 2:
                found.add(
                    [name],
                    "rule shares two or more resources with a positive resource affinity rule",
                )
                found.add(
                    names,
                    "rule shares two or more resources with a negative resource affinity rule",
                )
    _between(found, places, groups, positive, negative)
    return found.of


def _between(
    found: _Faults,
    places: dict[str, Rule],
    groups: dict[str, Rule],
    positive: dict[str, Rule],
    negative: dict[str, Rule],
) -> None:
    """Contradictions between rules of both types."""

    def met(members: set[str]) -> list[str]:
        return [name for name, rule in places.items() if members & _members(rule)]

    for name in sorted(groups):
        paired = met(_members(groups[name]))
        if any(len(set(_nodes(places[other]).values())) > 1 for other in paired):
            found.add([name], "resources are in node affinity rules with multiple priorities")
            found.add(
                paired,
                "resources are in a resource affinity rule and cannot be in a node affinity rule"
                " with multiple priorities",
            )
    for names, together in _disjoint(positive):
        paired = met(together)
        if len(paired) > 1:
            found.add(names, "resources are in multiple node affinity rules")
            found.add(
                paired,
                "at least one resource is in a positive resource affinity rule and there are other"
                " resources in at least one other node affinity rule already",
            )
    for name in sorted(negative):
        members = _members(negative[name])
        paired = met(members)
        located = {sid for other in paired for sid in _members(places[other]) & members}
        if len({node for other in paired for node in _nodes(places[other])}) < len(located):
            found.add(
                [name],
                "two or more resources are restricted to less nodes than available to the"
                " resources",
            )
            found.add(
                paired,
                "at least one resource is in a negative resource affinity rule and this rule would"
                " restrict these to less nodes than available to the resources",
            )


def preferred_nodes(cluster: Cluster, sid: str, online: Iterable[str]) -> list[str]:
    """The online nodes that the manager prefers for a machine, none if its rule excludes all.

    A group of version 8 counts as its rule (Manager.pm of version 4, get_node_priority_groups).
    Follows NodeAffinity.pm: a negative rule becomes a positive one with the other nodes, and the
    nodes outside a rule that is not strict have the lowest priority.
    """
    broken = faults(cluster, cluster.ha_rules)
    candidates = list(online)
    group = cluster.ha_groups.get(cluster.ha_resources.get(sid, {}).get("group", ""))
    if group is not None:
        candidates = _best(cluster, candidates, _nodes(group), bool(group.get("restricted")))
    for name, rule in cluster.ha_rules.items():
        is_active = "disable" not in rule and name not in broken
        if rule["type"] != "node-affinity" or sid not in _members(rule) or not is_active:
            continue
        ranks = _nodes(rule)
        if _avoids(rule):
            ranks = dict.fromkeys(set(cluster.nodes) - ranks.keys(), 0)
        candidates = _best(cluster, candidates, ranks, bool(rule.get("strict")))
    return candidates


def _best(
    cluster: Cluster, candidates: list[str], ranks: dict[str, int], strict: bool
) -> list[str]:
    """The candidates of the highest priority."""
    if not strict:
        ranks = {**dict.fromkeys(cluster.nodes, -1), **ranks}
    candidates = [node for node in candidates if node in ranks]
    best = max((ranks[node] for node in candidates), default=0)
    return [node for node in candidates if ranks[node] == best]


def motion(cluster: Cluster, sid: str) -> tuple[list[str], dict[str, list[dict[str, str]]]]:
    """The machines that move along with a machine, and, by node, the obstacles to its move
    (Config.pm).
    """
    services = known_services(cluster)
    broken = faults(cluster, cluster.ha_rules)
    rules = {
        name: rule
        for name, rule in cluster.ha_rules.items()
        if rule["type"] == "resource-affinity" and "disable" not in rule and name not in broken
    }
    positive = {name: rule for name, rule in rules.items() if rule["affinity"] == "positive"}
    together = next((members for _names, members in _disjoint(positive) if sid in members), {sid})
    apart: set[str] = set()
    for rule in rules.values():
        if rule["affinity"] == "negative" and _members(rule) & together:
            apart |= _members(rule) - together
    blocking: dict[str, list[dict[str, str]]] = {}
    for other in sorted(apart & services.keys()):
        blocking.setdefault(services[other]["node"], []).append(
            {"sid": other, "cause": "resource-affinity"}
        )
    online = {node for node, state in node_states(cluster).items() if state == "online"}
    return sorted((together - {sid}) & services.keys()), {
        node: blocking[node] for node in blocking if node in online
    }


# -- the API -------------------------------------------------------------------------------------


def _shown(cluster: Cluster, name: str, order: int, broken: dict[str, list[str]]) -> dict[str, Any]:
    row = {
        **cluster.ha_rules[name],
        "rule": name,
        "order": order,
        "digest": digest_of(cluster.ha_rules),
    }
    return {**row, "errors": {"resources": broken[name]}} if name in broken else row


@api("GET /cluster/ha/rules")
def rules(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The rules in their order, with their faults."""
    cluster = ctx.cluster
    broken = faults(cluster, cluster.ha_rules)
    return [
        _shown(cluster, name, order, broken)
        for order, (name, rule) in enumerate(cluster.ha_rules.items(), 1)
        if p.get("type") in (None, rule["type"])
        and ("resource" not in p or p["resource"] in _members(rule))
    ]


@api("GET /cluster/ha/rules/{rule}")
def get_rule(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One rule."""
    names = list(ctx.cluster.ha_rules)
    if p["rule"] not in names:
        raise PveError(f"no such ha rule '{p['rule']}'")
    return _shown(
        ctx.cluster,
        p["rule"],
        names.index(p["rule"]) + 1,
        faults(ctx.cluster, ctx.cluster.ha_rules),
    )


def _check_given(cluster: Cluster, given: dict[str, Any], prefix: str) -> None:
    """Named machines and nodes must exist."""
    if "resources" in given:
        unknown = sorted(_members(given) - cluster.ha_resources.keys())
        if unknown:
            raise PveError(f"{prefix}: cannot use unmanaged resource(s) {', '.join(unknown)}.")
    missing = sorted(name for name in _nodes(given) if name not in cluster.nodes)
    if missing:
        raise PveError(f"{prefix}: cannot use non-existent node(s) {', '.join(missing)}.")


def _store(cluster: Cluster, name: str, rule: Rule, prefix: str) -> None:
    """Keep the rule, unless it cannot be kept beside the others."""
    wanted = {**cluster.ha_rules, name: _written(rule)}
    broken = faults(cluster, wanted).get(name)
    if broken:
        raise PveError(f"{prefix}: 400 Rule '{name}' is invalid.\nresources: {', '.join(broken)}")
    cluster.ha_rules = wanted
    cluster.revision += 1


@api("POST /cluster/ha/rules")
def create_rule(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a rule. The schema of a new rule has the options of its type only (pve-ha-manager:
    API2/HA/Rules.pm, createSchema).
    """
    cluster = ctx.cluster
    foreign = p.keys() - {"type", "rule"} - _options(ctx, p["type"]).keys()
    if foreign:
        raise ParamError(dict.fromkeys(sorted(foreign), UNKNOWN))
    cluster.check_quorum()
    name = p.pop("rule")
    if not p.get("disable"):
        p.pop("disable", None)
    if name in cluster.ha_rules:
        raise PveError(f"create ha rule failed: HA rule '{name}' already defined")
    _check_given(cluster, p, "create ha rule failed")
    _store(cluster, name, p, "create ha rule failed")


@api("PUT /cluster/ha/rules/{rule}")
def update_rule(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change a rule; `disable` is taken away by `delete` only, 0 changes nothing."""
    cluster, prefix, name = ctx.cluster, "update HA rules failed", p.pop("rule")
    digest, delete = p.pop("digest", None), split_list(p.pop("delete", None) or "")
    if not p.get("disable"):
        p.pop("disable", None)
    check_digest(cluster.ha_rules, digest, prefix)
    rule = cluster.ha_rules.get(name)
    if rule is None:
        raise PveError(f"{prefix}: HA rule '{name}' does not exist")
    options = _options(ctx, rule["type"])
    odd = sorted(key for key in p if key != "type" and key not in options)
    if odd or p.get("type", rule["type"]) != rule["type"]:
        raise PveError(f"{prefix}: unexpected property '{odd[0] if odd else 'type'}'")
    _check_given(cluster, p, prefix)
    changed = dict(rule)
    for key in delete:
        if key not in options:
            raise PveError(f"{prefix}: no such option '{key}'")
        if not options[key]:
            raise PveError(f"{prefix}: unable to delete required option '{key}'")
        if key in p:
            raise PveError(f"{prefix}: cannot set and delete property '{key}' at the same time!")
        changed.pop(key, None)
    _store(cluster, name, {**changed, **p}, prefix)


@api("DELETE /cluster/ha/rules/{rule}")
def delete_rule(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a rule; a missing rule is not an error."""
    ctx.cluster.ha_rules.pop(p["rule"], None)
