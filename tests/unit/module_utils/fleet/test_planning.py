# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fleet's plan for any cluster and any list: what it decides holds for the whole set, and for the
old VMs too.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import (
    VmRow,
    cluster_state_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.fleet.items import (
    PruneScope,
    read_items,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.fleet.plan import (
    FleetPlanner,
    PlannedGuest,
    out_of_list,
    vmids_of,
)
from ansible_collections.pve.fleet.plugins.modules.vms import ENTRY
from tests.cases import cases
from tests.fake_api import FakeApi
from tests.unit.module_utils.cluster.test_placement import NAMES, node, storage, vm
from tests.unit.module_utils.vm.vm_cases import Judge

NO_SERVER: Any = Judge()  # no name of these desired VMs is for the server to judge
GIB = 1 << 30
DEFAULTS = {name: rule.get("default") for name, rule in ENTRY.spec.items()}
BLANK = {
    "disks": [{"name": "scsi0", "size": "1G", "storage": "disks", "state": "present"}],
    "memory": "1G",
}


class Cluster(FakeApi):
    """A cluster that only has listings."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        super().__init__(self.of_path)
        self.cluster_rows = rows

    def of_path(self, request: Request) -> Any:
        assert request.method == "GET"
        segments = request.segments
        if segments == ("cluster", "resources"):
            return self.cluster_rows
        assert segments[0] == "nodes"
        if segments[2:] == ("qemu",):
            return [
                row
                for row in self.cluster_rows
                if row["type"] == "qemu" and row["node"] == segments[1]
            ]
        if segments[2:] == ("tasks",):
            return []
        if segments[2:] == ("config",):  # the notes of a node
            return {}
        assert segments[-1] == "pending", segments
        row = next(row for row in self.cluster_rows if row.get("vmid") == segments[3])
        shown = {
            "name": row["name"],
            "tags": row["tags"],
            "cores": "2",
            "memory": str(row["maxmem"] >> 20),
        }
        return [{"key": key, "value": value} for key, value in shown.items()]


nodes = st.lists(st.sampled_from(NAMES), min_size=1, unique=True)
tags = st.sampled_from([[], ["web"], ["db"], ["web", "db"]])


@st.composite
def clusters(draw: st.DrawFn) -> list[dict[str, Any]]:
    names = draw(nodes)
    rows = [entry for name in names for entry in (node(name), storage(name))]
    for number in range(draw(st.integers(0, 6))):
        more = {"name": f"old{number}", "tags": ";".join(["tenant_acme", *draw(tags)])}
        rows.append(vm(10000 + 2 * number, draw(st.sampled_from(names)), **more))
    return rows


@st.composite
def lists(draw: st.DrawFn) -> dict[str, Any]:
    rules: dict[str, Any] = {"affinity_policy": "required"}
    if draw(st.booleans()):
        rules["anti_affinity"] = ["web"]
    if draw(st.booleans()):
        rules["max_vms_per_node"] = draw(st.integers(1, 4))
    if draw(st.booleans()):
        rules["memory_overcommit"] = draw(st.sampled_from([0.1, 0.2, 0.5]))
    rules["strategy"] = draw(st.sampled_from(["least_used", "round_robin", "first", "random"]))
    vms = [
        {
            "name": f"new{number}",
            "tags": draw(tags),
            "memory": draw(st.sampled_from(["1G", "2G", "4G"])),
        }
        for number in range(draw(st.integers(1, 8)))
    ]
    quota = {"vms": draw(st.integers(0, 12))} if draw(st.booleans()) else None
    return {**DEFAULTS, **BLANK, "tenant": "acme", "placement": rules, "quota": quota, "vms": vms}


def made(plans: list[PlannedGuest]) -> list[VmRow]:
    return [one.row for one in plans if one.row is not None and one.vm_plan is not None]


@given(rows=clusters(), params=lists())
@settings(max_examples=cases(150, 60), deadline=None)
def test_what_is_decided_holds_for_the_whole_set(
    rows: list[dict[str, Any]], params: dict[str, Any]
) -> None:
    server = Cluster(rows)
    plans = FleetPlanner(server.client(), True).plan(read_items(params, NO_SERVER))
    new, old = made(plans), [row for row in rows if row["type"] == "qemu"]
    rules = params["placement"]
    numbers = [row.vmid for row in new]
    assert len(set(numbers)) == len(numbers)
    assert not set(numbers) & {row["vmid"] for row in old}
    # Anti-affinity keeps apart from those that have the tag, whichever was decided later.
    if "anti_affinity" in rules:
        for at, row in enumerate(new):
            before = [other for other in new[:at] if "web" in other.tags and other.node == row.node]
            there = [
                other
                for other in old
                if "web" in other["tags"].split(";") and other["node"] == row.node
            ]
            assert not before
            assert not there
    counts = Counter(row.node for row in new) + Counter(row["node"] for row in old)
    if "max_vms_per_node" in rules:
        assert all(counts[row.node] <= rules["max_vms_per_node"] for row in new)
    if "memory_overcommit" in rules:
        given_away = Counter[str]()
        for row in new:
            given_away[row.node] += row.memory
        for other in old:
            given_away[other["node"]] += other["maxmem"]
        assert all(given_away[row.node] <= rules["memory_overcommit"] * 32 * GIB for row in new)
    if params["quota"]:
        assert not new or len(new) + len(old) <= params["quota"]["vms"]
    for one in plans:
        assert (one.error is None) == (one.vm_plan is not None)
        assert one.error is None or one.error.reason in ("no node fits", "quota")
    # One listing, and each node at most once.
    assert max(Counter(server.paths).values()) == 1


@given(rows=clusters(), params=lists())
@settings(max_examples=40, deadline=None)
def test_the_same_list_gives_the_same_plan(
    rows: list[dict[str, Any]], params: dict[str, Any]
) -> None:
    first, second = (
        made(FleetPlanner(Cluster(rows).client(), True).plan(read_items(params, NO_SERVER)))
        for _turn in range(2)
    )
    assert first == second


class Movable(Cluster):
    """A cluster whose nodes answer about migrations; one node lacks a device of VM 101.

    An answer waits until `at_once` VMs are asked about at the same time.
    """

    def __init__(self, rows: list[dict[str, Any]], at_once: int = 1) -> None:
        super().__init__(rows)
        self._barrier = threading.Barrier(at_once, timeout=10)

    def of_path(self, request: Request) -> Any:
        if request.segments[-1] != "migrate":
            return super().of_path(request)
        self._barrier.wait()
        lacks = {"n2": {"unavailable-resources": ["gpu"]}}
        return {"not_allowed_nodes": lacks if request.segments[3] == 101 else {}}

    @property
    def asked_about(self) -> list[Any]:
        """The VMs about whose migration a node was asked."""
        return [path[3] for path in self.paths if path[-1] == "migrate"]


def leaving(*vmids: int, **more: Any) -> dict[str, Any]:
    """Return the options of VMs that must leave node n1."""
    away = {"rebalance": True, "placement": {"exclude": ["n1"], "strategy": "first"}}
    return {**DEFAULTS, **away, "vms": [{"vmid": vmid} for vmid in vmids], **more}


def test_pve_is_asked_once_about_each_migration_side_by_side() -> None:
    """The answer has every node, so that a plan with another target asks no more."""
    rows = [node(name) for name in ("n1", "n2", "n3")] + [vm(100, "n1"), vm(101, "n1")]
    server = Movable(rows, at_once=2)
    planner = FleetPlanner(server.client(), True)
    free, tied = planner.plan(read_items(leaving(100, 101), NO_SERVER))
    assert free.row is not None
    assert free.row.node == "n2"
    assert tied.error is not None
    assert tied.error.details["node"] == "n2"
    assert sorted(server.asked_about) == [100, 101]
    without = {"exclude": ["n1", "n2"]}
    (again,) = planner.plan_again(read_items(leaving(101, placement=without), NO_SERVER))
    assert again.row is not None
    assert again.row.node == "n3"
    assert sorted(server.asked_about) == [100, 101]


def test_pve_is_not_asked_about_guests_that_may_stay() -> None:
    options: dict[str, dict[str, Any]] = {
        "stays by a constraint": {"placement": {"exclude": ["n2"]}},
        "is on its node": {"rebalance": False, "placement": None, "node": "n1"},
        "may not migrate": {"migrate": False},
        "is removed": {"state": "absent"},
    }
    for what, more in options.items():
        server = Movable([node("n1"), node("n2"), vm(100, "n1")])
        FleetPlanner(server.client(), True).plan(read_items(leaving(100, **more), NO_SERVER))
        assert server.asked_about == [], what


@given(
    listed=st.sets(st.integers(0, 9)),
    owners=st.lists(
        st.sampled_from(
            [
                "tenant_acme",
                "tenant_acme2",
                "tenant_acme;tenant_globex",
                "",
                "tenant_globex",
                "web;tenant_acme",
            ]
        ),
        min_size=10,
        max_size=10,
    ),
    pools=st.lists(st.sampled_from(["acme", "acme2", None]), min_size=10, max_size=10),
    scope=st.sampled_from([("tenant_acme", None), ("tenant_acme", "acme"), (None, "acme")]),
)
def test_nothing_beyond_the_scope_is_pruned(
    listed: set[int], owners: list[str], pools: list[Any], scope: tuple[Any, Any]
) -> None:
    rows = [vm(number, "n1", tags=owners[number], pool=pools[number]) for number in range(10)]
    gone = {
        row.vmid
        for row in out_of_list(
            cluster_state_of(rows, {"qemu"}), PruneScope(scope[0], "tenant_", scope[1]), listed
        )
    }
    for number in range(10):
        owned = [tag for tag in owners[number].split(";") if tag.startswith("tenant_")] == [
            scope[0]
        ]
        inside = (scope[0] is None or owned) and (scope[1] is None or pools[number] == scope[1])
        assert (number in gone) is (inside and number not in listed)


class Renamed(Cluster):
    """A cluster whose listing still tells the names that its VMs had."""

    def of_path(self, request: Request) -> Any:
        answer = super().of_path(request)
        if request.segments != ("cluster", "resources"):
            return answer
        old = {"web": "next", "gone": "web"}
        return [
            {**row, "name": old.get(row["name"], row["name"])} if row["type"] == "qemu" else row
            for row in answer
        ]


def test_a_vm_that_took_over_a_name_of_the_list_is_not_pruned() -> None:
    rows = [
        {**vm(number, "a", tags="tenant_acme"), "name": name}
        for number, name in ((100, "gone"), (101, "web"))
    ]
    client = Renamed([node("a"), storage("a"), *rows]).client()
    params = {**DEFAULTS, "tenant": "acme", "vms": [{"name": "web"}]}
    planner = FleetPlanner(client, True)
    planned = planner.plan(read_items(params, NO_SERVER))
    assert planned[0].vm_plan is not None
    assert planned[0].vm_plan.actual is not None
    assert planned[0].vm_plan.actual.vmid == 101
    assert vmids_of(planned[0]) == {100, 101}
    assert planner.prune(params, PruneScope("tenant_acme", "tenant_", None), planned) == []
