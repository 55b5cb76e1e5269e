# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The writes between two lists of rules, judged by an evaluator of its own."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.rules import (
    transition as transition_file,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.rules.model import (
    PROPERTIES,
    Rule,
    rule_of_row,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.rules.safety import (
    find_conflict,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.rules.transition import (
    POLICY,
    DefaultPolicies,
    RuleWrite,
    transition,
)
from tests.cases import cases

EXAMPLES = cases(2000, 150)
OPEN = (("in", "ACCEPT"), ("out", "ACCEPT"))
CLOSED = (("in", "DROP"), ("out", "ACCEPT"))

# Packets of a small world: direction, protocol, port, source. The evaluator below knows nothing of
# the code under test.
PACKETS = list(
    itertools.product(
        ("in", "out"), ("tcp", "udp"), (22, 80, 443), ("10.0.0.1", "10.0.1.1", "192.168.0.9")
    )
)
SOURCES = {
    "": {"10.0.0.1", "10.0.1.1", "192.168.0.9"},
    "10.0.0.0/24": {"10.0.0.1"},
    "10.0.0.0/16": {"10.0.0.1", "10.0.1.1"},
    "10.0.0.0/8": {"10.0.0.1", "10.0.1.1"},
    "10.0.1.1,192.168.0.9": {"10.0.1.1", "192.168.0.9"},
    "dc/office": {"10.0.1.1"},
}
GROUPS = {
    "web": [Rule("in", "ACCEPT", proto="tcp", dport="80"), Rule("in", "DROP", proto="udp")],
    "deny": [Rule("in", "DROP", source="10.0.0.0/16")],
}
PORTS = {
    "": {22, 80, 443},
    "22": {22},
    "80": {80},
    "443": {443},
    "80,443": {80, 443},
    "22:80": {22, 80},
}


def is_match(rule: Rule, packet: tuple[str, str, int, str]) -> bool:
    direction, proto, port, source = packet
    return (
        rule.type == direction
        and rule.proto in ("", proto)
        and port in PORTS[rule.dport]
        and source in SOURCES[rule.source]
    )


def verdict(rules: Sequence[Rule], policies: dict[str, str], packet: Any) -> bool:
    for rule in rules:
        if not rule.enable:
            continue
        inner = GROUPS[rule.action] if rule.type == "group" else [rule]
        for one in inner:
            if is_match(one, packet):
                return one.action == "ACCEPT"
    return policies[packet[0]] == "ACCEPT"


def verdicts(rules: Sequence[Rule], policies: dict[str, str]) -> list[bool]:
    return [verdict(rules, policies, packet) for packet in PACKETS]


def execute_resources(rules: list[Rule], write: RuleWrite) -> list[Rule]:
    """Return the list after a write, by the rules of PVE (API2/Firewall/Rules.pm)."""
    rows = [one.as_data() for one in rules]
    if write.kind == "create":
        rows.insert(0, dict(write.data))
    elif write.kind == "delete":
        del rows[write.pos]
    elif write.kind == "move":
        goal, moved, fresh = write.data["moveto"], rows[write.pos], []
        for index, row in enumerate(rows):
            if index == write.pos:
                continue
            if index == goal:
                fresh.append(moved)
            fresh.append(row)
        if goal >= len(rows):
            fresh.append(moved)
        rows = fresh
    elif write.kind == "update":
        changes = dict(write.data)
        gone = str(changes.pop("delete", "")).split(",")
        row = {**rows[write.pos], **changes}
        rows[write.pos] = {key: value for key, value in row.items() if key not in gone}
    return [rule_of_row(row) for row in rows]


def follow(
    old: list[Rule], new: list[Rule], before: Any = CLOSED, after: Any = CLOSED
) -> list[RuleWrite]:
    """Check every list on the way, and return the writes."""
    policies = dict(before)
    allowed, goal = verdicts(old, policies), verdicts(new, dict(after))
    writes = transition(old, new, (DefaultPolicies(before), DefaultPolicies(after)))
    rules = list(old)
    for write in writes:
        rules = execute_resources(rules, write)
        if write.kind == POLICY:
            policies = dict(after)
        assert tuple(rules) == write.result
        for then, now, later in zip(allowed, verdicts(rules, policies), goal, strict=True):
            assert now in (then, later), (old, new, [str(one) for one in rules])
    assert rules == list(new)
    assert policies == dict(after)
    return writes


RULES = st.builds(
    Rule,
    type=st.sampled_from(["in", "in", "out"]),
    action=st.sampled_from(["ACCEPT", "DROP", "REJECT"]),
    enable=st.sampled_from([True, True, True, False]),
    source=st.sampled_from(sorted(SOURCES)),
    proto=st.just("tcp"),
    dport=st.sampled_from(sorted(PORTS)),
    comment=st.sampled_from(["", "a"]),
) | st.builds(Rule, type=st.just("group"), action=st.sampled_from(sorted(GROUPS)))
LISTS = st.lists(RULES, max_size=7)


@settings(max_examples=EXAMPLES)
@given(LISTS, LISTS, st.sampled_from([CLOSED, OPEN]), st.sampled_from([CLOSED, OPEN]))
def test_no_list_on_the_way_decides_otherwise(
    old: list[Rule], new: list[Rule], before: Any, after: Any
) -> None:
    follow(old, new, before, after)


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_a_reordered_list_is_safe_on_the_way(data: st.DataObject) -> None:
    old = data.draw(LISTS)
    follow(old, data.draw(st.permutations(old)))


@settings(max_examples=EXAMPLES)
@given(LISTS, LISTS)
def test_policies_of_another_scope_may_follow(old: list[Rule], new: list[Rule]) -> None:
    writes = transition(old, new)
    for policies in (dict(OPEN), dict(CLOSED)):
        allowed, goal = verdicts(old, policies), verdicts(new, policies)
        for write in writes:
            now = verdicts(write.result, policies)
            assert all(one in two for one, *two in zip(now, allowed, goal, strict=True))


def accept(port: int, **more: Any) -> Rule:
    return Rule("in", "ACCEPT", proto="tcp", dport=str(port), **more)


BASE = [accept(1000 + number) for number in range(300)]
DROP = Rule("in", "DROP")


def kinds(old: list[Rule], new: list[Rule], **more: Any) -> list[str]:
    writes = transition(old, new, (DefaultPolicies(CLOSED), DefaultPolicies(CLOSED)), **more)
    rules = list(old)
    for write in writes:
        rules = execute_resources(rules, write)
    assert rules == new
    return [write.kind for write in writes]


def test_three_changed_rules_of_300_are_three_writes() -> None:
    new = list(BASE)
    for place in (0, 150, 299):
        new[place] = replace(new[place], source="10.0.0.0/8")
    assert kinds(BASE, new) == ["update"] * 3


def test_replaced_rules_are_planned_with_few_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a plan is that of its comparisons of lists, each of which is linear."""
    compared: list[int] = []

    def count(*lists: Any) -> int:
        compared.append(1)
        return find_conflict(*lists)

    monkeypatch.setattr(transition_file, "find_conflict", count)
    assert kinds(BASE, [replace(rule, source="10.0.0.0/8") for rule in BASE]) == ["update"] * 300
    assert kinds(BASE, BASE[::-1]) == ["move"] * 299
    assert len(compared) <= 2 * 599
    compared.clear()
    unknown = [Rule("in", "DROP" if n % 2 else "ACCEPT", source=f"a{n}") for n in range(40)]
    written = kinds(
        unknown, [replace(rule, source=f"b{n}") for n, rule in enumerate(unknown)][::-1]
    )
    assert len(written) <= 4 * 40
    assert len(compared) <= 50 * 40


def test_twins_of_a_rule_keep_the_fewest_writes() -> None:
    old = [Rule("in", "ACCEPT", proto="tcp", dport=str(n % 3), source=f"a{n}") for n in range(6)]
    new = [replace(rule, source=f"b{n}") for n, rule in enumerate(old)]
    assert len(kinds(old, new)) <= 3 * 1 + 3 * 4


def test_nothing_is_written_for_equal_lists() -> None:
    assert kinds(BASE, list(BASE)) == []


def test_an_inserted_rule_is_created_and_moved_to_its_place() -> None:
    assert kinds(BASE, [accept(22), *BASE]) == ["create"]
    assert kinds(BASE, [*BASE[:40], accept(22), *BASE[40:]]) == ["create", "move"]
    assert kinds(BASE, [*BASE, DROP]) == ["create", "move", "update"]  # disabled until it is last


def test_a_block_on_top_needs_no_moves() -> None:
    block = [accept(22), accept(80), Rule("in", "ACCEPT", macro="Ping")]
    assert kinds(BASE, [*block, *BASE]) == ["create"] * 3


def test_a_moved_rule_is_one_move() -> None:
    new = [BASE[250], *BASE[:250], *BASE[251:]]
    assert kinds(BASE, new) == ["move"]
    new = [*BASE[1:], BASE[0]]
    assert kinds(BASE, new) == ["move"]


def test_a_reordering_has_the_fewest_moves() -> None:
    old = BASE[:6]
    new = [old[place] for place in (3, 4, 5, 0, 1, 2)]
    assert kinds(old, new) == ["move"] * 3
    new = [old[place] for place in (5, 4, 3, 2, 1, 0)]
    assert kinds(old, new) == ["move"] * 5


def test_a_removed_rule_is_one_deletion() -> None:
    assert kinds(BASE, [*BASE[:7], *BASE[8:]]) == ["delete"]
    assert kinds(BASE, []) == ["delete"] * 300


def test_an_accepting_rule_and_the_closing_one_change_places_safely() -> None:
    ssh, office = accept(22), Rule("in", "DROP", source="10.0.0.0/8")
    for old, new in itertools.permutations(itertools.permutations([ssh, office, DROP]), 2):
        follow(list(old), list(new))


def test_rules_that_are_not_enforced_take_the_shortest_way() -> None:
    assert kinds(BASE, [*BASE, DROP], is_enforced=False) == ["create", "move"]


def test_a_closed_policy_comes_after_the_rules_that_open() -> None:
    writes = follow([], [accept(22), accept(443)], OPEN, CLOSED)
    assert [write.kind for write in writes] == ["create", "create", "policy"]
    writes = follow([accept(22)], [], CLOSED, OPEN)
    assert [write.kind for write in writes] == ["policy", "delete"]


def test_a_change_names_what_it_removes() -> None:
    old = Rule("in", "ACCEPT", proto="tcp", dport="22", comment="a", log="info")
    new = Rule("in", "DROP", enable=False, proto="tcp", dport="22")
    assert old.changes_to(new) == {"action": "DROP", "enable": 0, "delete": "log,comment"}


@pytest.mark.parametrize("rule", [*BASE[:1], Rule("out", "DROP", icmp_type="any", proto="icmp")])
def test_a_rule_is_read_as_it_is_written(rule: Rule) -> None:
    assert rule_of_row(rule.as_data()) == rule
    assert set(rule.as_data()) <= set(PROPERTIES.values())
