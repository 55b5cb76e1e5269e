# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Contradictions between HA rules (pure).

The HA manager refuses or ignores a rule that contradicts another rule (pve-ha-manager:
PVE/HA/Rules.pm, NodeAffinity.pm and ResourceAffinity.pm). Disabled rules do not count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from .rule import PLACE

GROUP = "resource-affinity"
NEGATIVE = "negative"


@dataclass(frozen=True)
class EnabledRule:
    """A rule that is enabled; `nodes` contains the priority of each node.

    With the affinity `negative`, a node-affinity rule keeps its resources away from `nodes`.
    """

    type: str
    resources: frozenset[str]
    nodes: Mapping[str, int] = field(default_factory=dict)
    affinity: str = ""

    def allowed(self, cluster: Collection[str]) -> frozenset[str]:
        """Return the nodes that a node-affinity rule chooses in a cluster with these nodes."""
        if self.affinity == NEGATIVE:
            return frozenset(cluster) - self.nodes.keys()
        return frozenset(self.nodes)


Found = tuple[frozenset[str], str]
"""The names of the rules that contradict each other, and a sentence about them."""


def rule_of(values: Mapping[str, Any]) -> EnabledRule | None:
    """Return a rule from the canonical values of its table, None if it is disabled."""
    if values["disable"]:
        return None
    nodes: dict[str, int] = {}
    for item in values["nodes"]:
        name, _colon, rank = item.partition(":")
        nodes[name] = int(rank or 0)
    return EnabledRule(values["type"], values["resources"], nodes, values["affinity"])


def find_contradictions(
    name: str, rules: Mapping[str, EnabledRule], nodes: Collection[str]
) -> list[str]:
    """Return the contradictions within a rule, and between it and other rules.

    `nodes` are all nodes of the cluster.
    """
    places = {key: rule for key, rule in rules.items() if rule.type == PLACE}
    groups = {key: rule for key, rule in rules.items() if rule.type == GROUP}
    found = [
        *_within(groups, len(nodes)),
        *_avoiding(places, nodes),
        *_between_places(places),
        *_between_groups(groups),
        *_ranked(places, groups),
        *_scattered(places, groups),
        *_crowded(places, groups, nodes),
    ]
    return [text for names, text in found if name in names]


def _within(groups: Mapping[str, EnabledRule], node_count: int) -> Iterator[Found]:
    for name, rule in groups.items():
        count = len(rule.resources)
        if count < 2:
            yield frozenset({name}), f"it has {count} resources, and an affinity needs two"
        elif rule.affinity == NEGATIVE and count > node_count:
            text = f"it keeps {count} resources on different nodes, and there are {node_count}"
            yield frozenset({name}), text


def _avoiding(places: Mapping[str, EnabledRule], nodes: Collection[str]) -> Iterator[Found]:
    for name, rule in places.items():
        if rule.affinity != NEGATIVE:
            continue
        if any(rule.nodes.values()):
            yield frozenset({name}), "it keeps resources away from nodes, so they have no priority"
        if not rule.allowed(nodes):
            yield frozenset({name}), "it keeps its resources away from all nodes of the cluster"


def _between_places(places: Mapping[str, EnabledRule]) -> Iterator[Found]:
    for one, other in combinations(sorted(places), 2):
        both = places[one].resources & places[other].resources
        if both:
            text = f"{_listed(both)} can be in one node-affinity rule only: {one} or {other}"
            yield frozenset({one, other}), text


def _between_groups(groups: Mapping[str, EnabledRule]) -> Iterator[Found]:
    for names, together in _connected(groups):
        for name, rule in groups.items():
            both = rule.resources & together
            if rule.affinity == NEGATIVE and len(both) > 1:
                text = (
                    f"{_listed(both)} run on one node by {_rules(names)}, and on different nodes"
                    f" by {_rules([name])}"
                )
                yield frozenset({name, *names}), text


def _ranked(
    places: Mapping[str, EnabledRule], groups: Mapping[str, EnabledRule]
) -> Iterator[Found]:
    for place, placed in places.items():
        if len(set(placed.nodes.values())) < 2:
            continue
        for name, rule in groups.items():
            both = placed.resources & rule.resources
            if both:
                text = (
                    f"{_listed(both)} cannot be in a resource-affinity rule ({name}) and in a"
                    f" node-affinity rule whose nodes have different priorities ({place})"
                )
                yield frozenset({place, name}), text


def _scattered(
    places: Mapping[str, EnabledRule], groups: Mapping[str, EnabledRule]
) -> Iterator[Found]:
    for names, together in _connected(groups):
        met = [place for place, rule in places.items() if rule.resources & together]
        if len(met) > 1:
            text = (
                f"{_listed(together)} run on one node by {_rules(names)}, but several"
                f" node-affinity rules choose their nodes: {', '.join(sorted(met))}"
            )
            yield frozenset({*names, *met}), text


def _crowded(
    places: Mapping[str, EnabledRule], groups: Mapping[str, EnabledRule], cluster: Collection[str]
) -> Iterator[Found]:
    for name, rule in groups.items():
        if rule.affinity != NEGATIVE:
            continue
        met = [place for place, placed in places.items() if placed.resources & rule.resources]
        listed = {node for place in met for node in places[place].nodes}
        nodes = {node for place in met for node in places[place].allowed(cluster)}
        placed_resources = {sid for place in met for sid in places[place].resources}
        both = placed_resources & rule.resources
        if len(nodes) < len(both):
            text = (
                f"{_listed(both)} run on different nodes by {_rules([name])}, but {_rules(met)}"
                f" leaves them {_listed(nodes)} only"
            )
            yield frozenset({name, *met}), text
        elif len(listed) < len(both):
            text = (
                f"{_listed(both)} run on different nodes by {_rules([name])}, but {_rules(met)}"
                f" lists {len(listed)} nodes, and Proxmox VE counts these, also the nodes to avoid"
            )
            yield frozenset({name, *met}), text


def _connected(groups: Mapping[str, EnabledRule]) -> list[tuple[list[str], frozenset[str]]]:
    """Return the names and resources of rules that keep resources together.

    Rules that share a resource are merged.
    """
    found: list[tuple[list[str], frozenset[str]]] = []
    for name, rule in sorted(groups.items()):
        if rule.affinity != "positive":
            continue
        names, together = [name], rule.resources
        apart: list[tuple[list[str], frozenset[str]]] = []
        for others, known in found:
            if known & together:
                names, together = [*others, *names], together | known
            else:
                apart.append((others, known))
        found = [*apart, (names, together)]
    return found


def _listed(items: frozenset[str] | set[str]) -> str:
    return ", ".join(sorted(items))


def _rules(names: list[str]) -> str:
    noun = "rule" if len(names) == 1 else "rules"
    return f"{noun} {', '.join(sorted(names))}"
