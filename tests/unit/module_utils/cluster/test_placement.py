# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The choice of a node for any cluster, any rules and any needs, judged by an oracle that knows no
code of the collection.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.placement import (
    NodeChoice,
    PlacementNeeds,
    choose_node,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.rules import (
    PlacementRules,
    read_rules,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import (
    ClusterState,
    cluster_state_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ConfigurationError,
    FleetError,
    NodeUnhealthy,
    ValidationFailed,
)
from tests.cases import cases

GIB = 1 << 30
NAMES = ["n1", "n2", "n3", "n4", "n5"]
TAGS = ["web", "db", "tenant_acme", "tenant_globex"]


def node(name: str, **more: Any) -> dict[str, Any]:
    row = {
        "type": "node",
        "node": name,
        "status": "online",
        "maxcpu": 8,
        "maxmem": 32 * GIB,
        "mem": 4 * GIB,
        "cpu": 0.1,
    }
    return {**row, **more}


def vm(vmid: int, on: str, **more: Any) -> dict[str, Any]:
    row = {
        "type": "qemu",
        "vmid": vmid,
        "node": on,
        "name": f"vm{vmid}",
        "status": "running",
        "tags": "",
        "template": 0,
    }
    return {**row, "maxmem": 2 * GIB, "maxcpu": 2, **more}


def storage(on: str, name: str = "disks", content: str = "images") -> dict[str, Any]:
    return {
        "type": "storage",
        "storage": name,
        "node": on,
        "content": content,
        "status": "available",
        "shared": 0,
    }


@st.composite
def clusters(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Return the rows of a listing: some nodes down, some too new to have figures, storages here
    and there.
    """
    nodes = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True))
    rows = [
        node(
            name,
            status=draw(st.sampled_from(["online", "online", "online", "offline"])),
            maxmem=draw(st.sampled_from([8, 16, 32])) * GIB,
            maxcpu=draw(st.sampled_from([4, 8])),
            mem=draw(st.integers(0, 8)) * GIB,
        )
        for name in nodes
    ]
    for name in nodes:
        rows += draw(
            st.sampled_from([[], [storage(name)], [storage(name)], [storage(name, content="iso")]])
        )
    rows.append(storage("elsewhere"))
    for index in range(draw(st.integers(0, 12))):
        made: dict[str, Any] = vm(
            10000 + index,
            draw(st.sampled_from(nodes)),
            name=draw(st.sampled_from(["web1", "web2", "db1", "db2", "x"])),
            tags=";".join(draw(st.lists(st.sampled_from(TAGS), unique=True, max_size=2))),
            template=int(draw(st.integers(0, 9)) == 0),
            maxmem=draw(st.sampled_from([1, 2, 4])) * GIB,
            maxcpu=draw(st.sampled_from([1, 2, 4])),
        )
        if draw(st.integers(0, 9)) == 0:  # the listing knows the newest by number alone
            made = {key: made[key] for key in ("type", "vmid", "node", "tags")} | {
                "status": "unknown"
            }
        rows.append(made)
    return rows


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), strategy)


MATCHES = st.lists(st.sampled_from(["web", "db", "name:web*", "name:db?"]), unique=True, max_size=2)
OPTIONS = st.fixed_dictionaries(
    {
        "strategy": st.sampled_from(["least_used", "round_robin", "first", "random"]),
        "affinity_policy": st.sampled_from(["required", "preferred"]),
    },
    optional={
        "nodes": st.lists(st.sampled_from(NAMES), unique=True),
        "exclude": st.lists(st.sampled_from(NAMES), unique=True, max_size=2),
        "seed": st.text(max_size=3),
        "max_vms_per_node": st.integers(1, 5),
        "min_free_memory": st.sampled_from(["1G", "4G", 512]),
        "cpu_overcommit": st.sampled_from([0.5, 1.0, 2.0]),
        "memory_overcommit": st.sampled_from([0.25, 0.5, 1.0]),
        "affinity": MATCHES,
        "anti_affinity": MATCHES,
    },
)
NEEDS = st.builds(
    PlacementNeeds,
    storages=st.sampled_from([{}, {"disks": "images"}]),
    only=maybe(st.frozensets(st.sampled_from(NAMES))),
    memory=st.integers(0, 8).map(lambda size: size * GIB),
    cores=st.integers(0, 4),
    cpus=st.sampled_from([0, 0, 4, 5, 9]),
    bridges=st.sampled_from([frozenset(), frozenset(["vmbr0"]), frozenset(["vmbr0", "vmbr9"])]),
    vmid=maybe(st.integers(10000, 10012)),
    tenant_tag=maybe(st.sampled_from(["tenant_acme", "tenant_globex"])),
    label=st.sampled_from(["web1", "web9"]),
)
BRIDGES = st.dictionaries(
    st.sampled_from(NAMES),
    st.sampled_from([None, frozenset(), frozenset(["vmbr0"]), frozenset(["vmbr0", "vmbr9"])]),
)


class Oracle:
    """Which nodes a VM may go to, worked out from the rows in the plainest way."""

    def __init__(
        self, rows: list[dict[str, Any]], needs: PlacementNeeds, options: Mapping[str, Any]
    ) -> None:
        self.rows, self.needs, self.options = rows, needs, options
        self.nodes = {row["node"]: row for row in rows if row["type"] == "node"}
        self.machines = [
            row
            for row in rows
            if row["type"] == "qemu" and not row.get("template") and row["vmid"] != needs.vmid
        ]

    def on(self, name: str) -> list[dict[str, Any]]:
        return [row for row in self.machines if row["node"] == name]

    def meant(self, row: dict[str, Any], key: str) -> bool:
        tags = row["tags"].split(";")
        owners = [tag for tag in tags if tag.startswith("tenant_")]
        if self.needs.tenant_tag and owners != [self.needs.tenant_tag]:
            return False
        for entry in self.options.get(key) or []:
            kind, colon, pattern = entry.partition(":")
            if (colon and fnmatchcase(row.get("name", ""), pattern)) or (
                not colon and kind in tags
            ):
                return True
        return False

    def allows(self, name: str) -> bool:
        row, needs, options = self.nodes[name], self.needs, self.options
        if row["status"] != "online" or name in (options.get("exclude") or []):
            return False
        if needs.only is not None and name not in needs.only:
            return False
        if needs.storages and storage(name) not in self.rows:
            return False
        if needs.cpus > row["maxcpu"] or not self.has_room(name):
            return False
        there = self.on(name)
        if options["affinity_policy"] != "required":
            return True
        if any(self.meant(one, "anti_affinity") for one in there):
            return False
        group = [one for one in self.machines if self.meant(one, "affinity")]
        group = [one for one in group if one["node"] in self.nodes]
        return not group or any(one["node"] == name for one in group)

    def has_room(self, name: str) -> bool:
        row, needs, options = self.nodes[name], self.needs, self.options
        there = self.on(name)
        cores = sum(one.get("maxcpu", 0) or needs.cores for one in there) + needs.cores
        memory = sum(one.get("maxmem", 0) or needs.memory for one in there) + needs.memory
        free = options.get("min_free_memory")
        least = {None: None, "1G": GIB, "4G": 4 * GIB, 512: GIB // 2}[free]
        if len(there) + 1 > options.get("max_vms_per_node", 99):
            return False
        if cores > options.get("cpu_overcommit", 99) * row["maxcpu"]:
            return False
        if memory > options.get("memory_overcommit", 99) * row["maxmem"]:
            return False
        return least is None or row["maxmem"] - row["mem"] - needs.memory >= least


def outcome(
    picture: ClusterState, needs: PlacementNeeds, rules: PlacementRules, bridges: Any
) -> NodeChoice | FleetError:
    try:
        return choose_node(picture, needs, rules, bridges)
    except FleetError as error:
        return error


def known_only(rows: list[dict[str, Any]], options: dict[str, Any]) -> dict[str, Any]:
    """Return the options without nodes that the cluster does not have: those are refused by name,
    see below.
    """
    there = {row["node"] for row in rows if row["type"] == "node"}
    return {
        key: [name for name in value if name in there] if key in ("nodes", "exclude") else value
        for key, value in options.items()
    }


@settings(max_examples=cases(600, 150), deadline=None)
@given(clusters(), OPTIONS, NEEDS, BRIDGES, st.randoms(use_true_random=False))
def test_no_constraint_is_ever_broken_and_every_refusal_explained(
    rows: list[dict[str, Any]],
    options: dict[str, Any],
    needs: PlacementNeeds,
    bridges: dict[str, frozenset[str] | None],
    shuffle: random.Random,
) -> None:
    options = known_only(rows, options)
    oracle = Oracle(rows, needs, options)
    rules = read_rules(options)
    result = outcome(cluster_state_of(rows, {"qemu"}), needs, rules, bridges)

    lacking = {
        name
        for name, there in bridges.items()
        if needs.bridges and not needs.bridges <= (there or frozenset())
    }
    allowed = {name for name in oracle.nodes if oracle.allows(name)}
    if isinstance(result, NodeChoice):
        assert result.node in allowed - lacking
        assert result.refused.keys() == oracle.nodes.keys() - {result.node}
        assert all(result.refused.values())
        assert len(result.reasons) == 2
        preferred = set(options.get("nodes") or []) & (allowed - lacking)
        assert not preferred or result.node in preferred
        for name in oracle.nodes.keys() - allowed:
            assert not result.refused[name].startswith("it fits")
    else:
        assert not allowed - lacking
        assert isinstance(result, ConfigurationError if allowed & lacking else NodeUnhealthy)
        assert result.details["nodes"].keys() == oracle.nodes.keys()
        reasons: dict[str, str] = result.details["nodes"]
        by_reason: dict[str, list[str]] = {}
        for name in sorted(reasons):
            by_reason.setdefault(reasons[name], []).append(name)
        for reason, names in by_reason.items():
            assert f"{', '.join(names)}: {reason}".rstrip(". ") in result.message
        assert result.next_step

    mixed = list(rows)
    shuffle.shuffle(mixed)
    again = outcome(cluster_state_of(mixed, {"qemu"}), needs, rules, bridges)
    if isinstance(result, NodeChoice):
        assert again == result
    else:
        assert str(again) == str(result)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 5),
    st.integers(0, 2),
    st.integers(0, 23),
    st.sampled_from(["least_used", "round_robin"]),
    st.booleans(),
    st.booleans(),
)
def test_equal_nodes_are_filled_within_one_vm_of_even(
    nodes: int, before: int, more: int, strategy: str, stale: bool, preferred: bool
) -> None:
    rows = [node(name) for name in NAMES[:nodes]]
    rows += [vm(100 + index, NAMES[index % nodes]) for index in range(before * nodes)]
    options = {"strategy": strategy, "nodes": list(reversed(NAMES[:nodes])) if preferred else []}
    needs = PlacementNeeds(memory=2 * GIB, cores=2)
    for index in range(more):
        chosen = choose_node(cluster_state_of(rows, {"qemu"}), needs, read_rules(options)).node
        made: dict[str, Any] = vm(10000 + index, chosen)
        if stale:  # what the listing says of a VM in its first seconds
            made = {"type": "qemu", "vmid": 10000 + index, "node": chosen, "status": "unknown"}
        rows.append(made)
        counts = [
            sum(row["type"] == "qemu" and row["node"] == name for row in rows)
            for name in NAMES[:nodes]
        ]
        assert max(counts) - min(counts) <= 1


@settings(max_examples=50, deadline=None)
@given(clusters(), OPTIONS, st.integers(0, 11))
def test_the_vm_itself_does_not_count(
    rows: list[dict[str, Any]], options: dict[str, Any], index: int
) -> None:
    rules = read_rules(known_only(rows, options))
    without = [row for row in rows if row.get("vmid") != 10000 + index]
    turns = rules.strategy == "round_robin"  # whose turn it is depends on the newest VM
    first = outcome(cluster_state_of(rows, {"qemu"}), PlacementNeeds(vmid=10000 + index), rules, {})
    second = outcome(cluster_state_of(without, {"qemu"}), PlacementNeeds(), rules, {})
    assert isinstance(first, NodeChoice) is isinstance(second, NodeChoice)
    if not turns:
        assert str(first) == str(second)


def choose(rows: list[dict[str, Any]], label: str = "", **options: Any) -> NodeChoice:
    return choose_node(
        cluster_state_of(rows, {"qemu"}),
        PlacementNeeds(memory=GIB, label=label),
        read_rules(options),
    )


def test_each_strategy_says_what_it_looked_at() -> None:
    rows = [node("n1"), node("n2"), node("n3"), vm(100, "n1"), vm(101, "n2")]
    assert choose(rows).reasons == (
        "3 of 3 nodes fit",
        "least_used: 3% of its memory would be given to 1 guest",
    )
    assert choose(rows).refused["n1"] == "9% of its memory would be given to 2 guests"
    turn = choose([node("n1"), node("n2"), node("n3"), vm(100, "n2")], strategy="round_robin")
    assert (turn.node, turn.refused["n2"]) == ("n3", "it would have 2 guests")
    first = choose(rows, strategy="first", nodes=["n2", "n1"])
    assert first.node == "n2"
    assert first.refused == {
        "n1": "it fits, but n2 comes first",
        "n3": "it fits, but is not preferred",
    }
    assert choose(rows, strategy="first").node == "n1"


def test_a_seed_draws_the_same_node_for_the_same_vm_and_others_for_others() -> None:
    rows = [node(name) for name in NAMES]
    drawn = [choose(rows, f"vm{index}", strategy="random", seed="a").node for index in range(50)]
    assert drawn == [
        choose(rows, f"vm{index}", strategy="random", seed="a").node for index in range(50)
    ]
    assert drawn != [
        choose(rows, f"vm{index}", strategy="random", seed="b").node for index in range(50)
    ]
    assert set(drawn) == set(NAMES)
    # A node that drops out moves only the VMs that were drawn for it.
    left = [row for row in rows if row["node"] != "n3"]
    moved = [choose(left, f"vm{index}", strategy="random", seed="a").node for index in range(50)]
    assert all(new == old for new, old in zip(moved, drawn, strict=True) if old != "n3")


def test_affinity_names_who_is_meant() -> None:
    rows = [node("n1"), node("n2"), vm(100, "n1", name="web1", tags="web;tenant_acme")]
    assert choose(rows, affinity=["web"]).node == "n1"
    assert "web1 (100)" in choose(rows, affinity=["web"]).refused["n2"]
    assert choose(rows, anti_affinity=["name:web*"]).node == "n2"
    assert "anti-affinity with web1 (100)" in choose(rows, anti_affinity=["web"]).refused["n1"]
    assert choose(rows, affinity=["we"]).node == "n2"  # a tag is matched whole
    full = choose(rows, affinity=["web"], affinity_policy="preferred", exclude=["n1"])
    assert full.node == "n2"
    foreign = replace(PlacementNeeds(), tenant_tag="tenant_globex")
    assert (
        choose_node(
            cluster_state_of(rows, {"qemu"}), foreign, read_rules({"affinity": ["web"]})
        ).node
        == "n2"
    )


def test_what_is_not_visible_is_not_counted_as_room() -> None:
    rows = [{"type": "node", "node": "n1", "status": "online"}]
    for options in ({"min_free_memory": 1}, {"memory_overcommit": 1.0}, {"cpu_overcommit": 1.0}):
        with pytest.raises(NodeUnhealthy, match="Sys.Audit"):
            choose_node(
                cluster_state_of(rows, {"qemu"}), PlacementNeeds(cores=1), read_rules(options)
            )


def test_a_node_that_the_cluster_does_not_have() -> None:
    for rules in (read_rules({"nodes": ["n9"]}), read_rules({"exclude": ["n9"]})):
        with pytest.raises(ConfigurationError, match="n9.*n1"):
            choose_node(cluster_state_of([node("n1")], {"qemu"}), PlacementNeeds(), rules)


@pytest.mark.parametrize(
    "options",
    [
        {"nodes": ["bad node"]},
        {"max_vms_per_node": 0},
        {"min_free_memory": "lots"},
        {"cpu_overcommit": 0},
        {"memory_overcommit": -1.0},
        {"affinity": ["name:"]},
        {"anti_affinity": ["no tag!"]},
    ],
    ids=str,
)
def test_rules_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationFailed, match="placement"):
        read_rules(options)
