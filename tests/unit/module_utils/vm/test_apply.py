# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carrying a plan out while the VM moves, disappears or gets another tenant between its steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    AlreadyRunning,
    Conflict,
    FleetError,
    ForeignTenant,
    HotplugRefused,
    NodeUnreachable,
    NotFound,
    UnknownVm,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.engine import execute
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.plan import Plan, Step
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.live.steps import GuestSteps
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.vm.kind import VM
from tests.fake_api import FakeApi

GONE = UnknownVm(reason="unknown VM")
DOWN = NodeUnreachable(reason="node unreachable", dispatched=False)


def step(name: str, node: str = "pve1", action: str = "config") -> Step:
    return Step(action, name, "PUT", ("nodes", node, "qemu", 100, "config"), is_task=False)


class Server(FakeApi):
    """Takes writes, and fails those that its list says."""

    def __init__(self, **failures: FleetError) -> None:
        super().__init__(self._write)
        self.failures = failures
        self.written: list[tuple[str, str]] = []

    def _write(self, request: Request) -> FleetError | None:
        name, node = request.attempted.removeprefix("Could not "), request.path[1]
        failure = self.failures.get(f"{name}_{node}")
        if failure is None:
            self.written.append((name, node))
        return failure


class OneVm(GuestSteps):
    """A VM whose looks and guard are given."""

    kind = VM
    timeout = 1

    def __init__(self, server: Server, plan: Plan, replan: Any, before: Any) -> None:
        self.client = server.client()
        self.plan = plan
        self.look, self.before = replan, before

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        return self.look(done, uncertain)

    def guard(self, step: Step) -> None:
        if self.before is not None:
            self.before(step)


def run(server: Server, replan: Any, before: Any = None) -> list[str]:
    plan = Plan((step("first"), step("second"), step("destroy", action="destroy")))
    return list(execute(OneVm(server, plan, replan, before), plan).done)


@pytest.mark.parametrize("failure", [GONE, DOWN], ids=["gone", "down"])
def test_what_is_left_continues_where_the_vm_is_now(failure: FleetError) -> None:
    server = Server(second_pve1=failure)
    looks: list[tuple[list[str], bool]] = []

    def replan(done: list[Step], uncertain: bool) -> Plan:
        looks.append(([one.summary for one in done], uncertain))
        return Plan((step("second", "pve2"), step("destroy", "pve2")))

    assert run(server, replan) == ["first", "second", "destroy"]
    assert server.written == [("first", "pve1"), ("second", "pve2"), ("destroy", "pve2")]
    assert looks == [(["first"], True)]


@pytest.mark.parametrize("failure", [GONE, DOWN], ids=["gone", "down"])
def test_a_look_that_finds_nothing_tells_what_had_been_done(failure: FleetError) -> None:
    def replan(_done: list[Step], _uncertain: bool) -> Plan:
        raise failure

    with pytest.raises(type(failure)) as caught:
        run(Server(second_pve1=failure), replan)
    assert caught.value.details["done"] == ["first"]


def test_looks_have_an_end() -> None:
    looks: list[bool] = []

    def replan(_done: list[Step], uncertain: bool) -> Plan:
        looks.append(uncertain)
        return Plan((step("second"),))

    with pytest.raises(NotFound):
        run(Server(second_pve1=GONE), replan)
    assert len(looks) == 4  # the first of these plans is shorter than the one before


def test_a_guard_stops_before_the_step_and_says_what_had_been_done() -> None:
    server = Server()

    def before(one: Step) -> None:
        if one.action == "destroy":
            raise ForeignTenant(reason="foreign tenant")

    with pytest.raises(Conflict) as caught:
        run(server, lambda _done, _uncertain: Plan(), before)
    assert caught.value.details["done"] == ["first", "second"]
    assert ("destroy", "pve1") not in server.written


def test_a_vm_that_another_run_has_started_is_looked_at() -> None:
    looks: list[bool] = []

    def replan(_done: list[Step], uncertain: bool) -> Plan:
        looks.append(uncertain)
        return Plan()

    assert run(Server(second_pve1=AlreadyRunning(reason="already running")), replan) == ["first"]
    assert looks == [True]


def test_a_change_that_the_guest_refuses_is_done_with_a_warning() -> None:
    refused = HotplugRefused(reason="hotplug", answer="hotplug problem")
    server = Server(second_pve1=refused)
    plan = Plan((step("first"), step("second")))
    vm = OneVm(server, plan, lambda _done, _uncertain: Plan(), None)
    outcome = execute(vm, plan)
    assert outcome.done == ("first", "second")
    assert [line for line in outcome.warnings if "hotplug problem" in line] == list(
        outcome.warnings
    )
    assert len(outcome.warnings) == 1
