# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which of several new VMs gives way, when, and with which message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.placement import (
    PlacementNeeds,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.view import ClusterView
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    Conflict,
    TaskFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.race import (
    PATIENCE,
    resolve_race,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.create.placement_race import (
    PlacementRule,
    shared_rules,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.vm.kind import VM
from tests.unit.module_utils.vm.answering import Server
from tests.unit.module_utils.vm.vm_cases import desired_vm

NODES = [
    {"type": "node", "node": name, "status": "online", "maxcpu": 8, "maxmem": 1 << 34}
    for name in ("n1", "n2")
]


def web(vmid: int, node: str = "n1") -> dict[str, Any]:
    return {
        "type": "qemu",
        "vmid": vmid,
        "node": node,
        "status": "stopped",
        "name": f"web{vmid}",
        "tags": "web",
    }


def server(others: Callable[[float], list[dict[str, Any]]]) -> Server:
    """Return a cluster with VM 105 on n1, and with these beside it, which are being made."""

    def answer(path: tuple[Any, ...], now: float) -> Any:
        if path[-1] == "pending":
            return [{"key": "description", "value": "<!-- pve.fleet: run=0123456789ab -->"}]
        return [*NODES, web(105), *others(now)]

    return Server(answer)


def look(
    there: Server, *, known: frozenset[int] = frozenset(), remove: Callable[[], None] | None = None
) -> list[int]:
    """Let VM 105 keep its place apart from web, and return whether it was removed."""
    gone: list[int] = []
    rules = shared_rules(desired_vm(tags=["web"], placement={"anti_affinity": ["web"]}).guest)
    assert rules is not None
    view = ClusterView(there.client(), {"qemu"})
    rule = PlacementRule(view, VM, rules, PlacementNeeds(vmid=105), "n1", "New VM", known)
    conflict: Conflict | None = None
    try:
        resolve_race(view.client.clock, rule, remove or (lambda: gone.append(105)))
    except Conflict as error:
        conflict = error
    assert bool(conflict) == bool(gone)
    if conflict is not None:
        assert (conflict.reason, conflict.details) == ("place taken", {"removed": 105})
        assert "anti-affinity with web" in conflict.message
    return gone


def test_alone_it_stays_after_one_look() -> None:
    there = server(lambda _now: [web(100, "n2"), web(110, "n2")])
    assert look(there) == []
    assert len(there.asked) == 1


def test_the_higher_number_gives_way_at_once() -> None:
    there = server(lambda _now: [web(101)])
    assert look(there) == [105]
    assert there.clock.now == 0


def test_the_lower_number_waits_until_the_other_is_gone() -> None:
    there = server(lambda now: [web(110)] if now < 3 else [])
    assert look(there) == []
    assert 3 <= there.clock.now < 6


def test_the_lower_number_gives_way_when_the_other_stays() -> None:
    there = server(lambda _now: [web(110)])
    assert look(there) == [105]
    assert PATIENCE <= there.clock.now < PATIENCE + 3


def test_what_was_there_before_never_gives_way() -> None:
    there = server(lambda _now: [web(110)])
    assert look(there, known=frozenset({110})) == [105]
    assert there.clock.now == 0


def test_a_vm_that_cannot_be_removed_is_reported() -> None:
    def fail() -> None:
        raise TaskFailed(attempted="Could not remove", answer="no", reason="x")

    with pytest.raises(TaskFailed, match="where it should not be .*anti-affinity") as failure:
        look(server(lambda _now: [web(101)]), remove=fail)
    assert "by hand" in failure.value.next_step


@pytest.mark.parametrize(
    ("options", "looks"),
    [
        ({}, False),
        ({"placement": {"nodes": ["n1"], "exclude": ["n2"], "min_free_memory": "1G"}}, False),
        ({"placement": {"anti_affinity": ["web"]}}, True),
        ({"placement": {"anti_affinity": ["web"], "affinity_policy": "preferred"}}, False),
        ({"placement": {"anti_affinity": ["web"]}, "node": "n1"}, False),
        ({"placement": {"affinity": ["name:x*"]}}, True),
        ({"placement": {"max_vms_per_node": 3}}, True),
        ({"placement": {"cpu_overcommit": 2}}, True),
        ({"placement": {"memory_overcommit": 1.0}}, True),
    ],
    ids=str,
)
def test_only_rules_that_others_can_break_cost_a_look(options: dict[str, Any], looks: bool) -> None:
    assert (shared_rules(desired_vm(**options).guest) is not None) is looks
