# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Waiting for what the HA manager does on our behalf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.upid import TaskResult
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    TaskFailed,
    TaskTimeout,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.plan import Step
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.live.ha import await_manager
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.vm.kind import VM
from tests.unit.module_utils.vm.answering import GONE, Server

MIGRATION = "UPID:pve1:00000003:00000004:6B00C70C:qmigrate:100:root@pam:"
MIGRATE = Step(
    "migrate",
    "Migrate VM 100",
    "POST",
    ("nodes", "pve1", "qemu", 100, "migrate"),
    {"target": "pve2"},
)
START = Step("start", "Start VM 100", "POST", ("nodes", "pve1", "qemu", 100, "status", "start"))
STOP = Step("stop", "Stop VM 100", "POST", ("nodes", "pve1", "qemu", 100, "status", "stop"))


def asked(kind: str) -> TaskResult:
    """Return the end of the task that asks the manager."""
    return TaskResult(
        f"UPID:pve1:00000001:00000002:6B00C70B:{kind}:100:root@pam:", "pve1", kind, "OK"
    )


def arriving(
    at: float, tasks: list[dict[str, Any]], lock_until: float = 0.0
) -> Callable[[tuple[Any, ...], float], Any]:
    def answer(path: tuple[Any, ...], now: float) -> Any:
        if path[2] == "tasks":
            return tasks
        if now < at:
            return GONE
        return {"lock": "migrate"} if now < lock_until else {}

    return answer


def test_a_vm_is_waited_for_until_it_is_there_and_unlocked() -> None:
    server = Server(arriving(7.0, [], lock_until=9.0))
    await_manager(server.client(), VM, MIGRATE, asked("hamigrate"), 60)
    assert 9.0 <= server.clock.now < 20
    assert server.waited == []


def test_the_migration_that_the_ha_manager_begins_is_followed() -> None:
    task = {"upid": MIGRATION, "type": "qmigrate", "starttime": 0x6B00C70C}
    older = {**task, "upid": "older", "starttime": 0x6B00C700}
    server = Server(arriving(5.0, [older, task]))
    await_manager(server.client(), VM, MIGRATE, asked("hamigrate"), 60)
    assert server.waited == [MIGRATION]
    failing = Server(arriving(99.0, [task]), ends=TaskFailed(reason="migration aborted"))
    with pytest.raises(TaskFailed):
        await_manager(failing.client(), VM, MIGRATE, asked("hamigrate"), 60)


def test_a_vm_that_never_arrives_is_reported() -> None:
    server = Server(arriving(1e9, []))
    with pytest.raises(TaskTimeout, match="after 30 s") as failure:
        await_manager(server.client(), VM, MIGRATE, asked("hamigrate"), 30)
    assert failure.value.upid == asked("hamigrate").upid
    assert 30 <= server.clock.now < 40


def powered(
    at: float,
    now_: str,
    then: str,
    *,
    node: str = "pve1",
    state: str = "",
    tasks: tuple[Any, ...] = (),
) -> Callable[[tuple[Any, ...], float], Any]:
    """Return a server on which the VM becomes `then` at that time, on `node`."""

    def answer(path: tuple[Any, ...], now: float) -> Any:
        if path[0] == "cluster":
            return [{"type": "qemu", "vmid": 100, "node": node if now >= at else "pve1"}]
        if path[2] == "tasks":
            return list(tasks)
        if path[1] != (node if now >= at else "pve1"):
            return GONE
        return {"status": then if now >= at else now_, "ha": {"managed": 1, "state": state}}

    return answer


def test_a_task_of_pve_itself_is_over_when_it_is_over() -> None:
    server = Server(powered(1e9, "stopped", "running"))
    await_manager(server.client(), VM, START, asked("qmstart"), 60)
    assert server.asked == []


@pytest.mark.parametrize("node", ["pve1", "pve3"])
def test_a_start_is_waited_for_wherever_it_happens(node: str) -> None:
    server = Server(powered(12.0, "stopped", "running", node=node))
    await_manager(server.client(), VM, START, asked("hastart"), 60)
    assert 12.0 <= server.clock.now < 18
    assert len(server.asked) < 15


def test_a_stop_is_waited_for() -> None:
    server = Server(powered(9.0, "running", "stopped"))
    await_manager(server.client(), VM, STOP, asked("hastop"), 60)
    assert 9.0 <= server.clock.now < 15


def test_a_manager_that_does_nothing_is_reported() -> None:
    server = Server(powered(1e9, "stopped", "running"))
    with pytest.raises(TaskTimeout, match="not running after 30 s") as failure:
        await_manager(server.client(), VM, START, asked("hastart"), 30)
    assert "Could not start VM 100" in failure.value.message
    assert "run this again" in failure.value.next_step
    assert 30 <= server.clock.now < 36


def test_a_look_that_outlasts_the_deadline_is_a_timeout() -> None:
    server = Server(powered(1e9, "stopped", "running"))
    quick = server.at

    def slow(path: tuple[Any, ...], now: float) -> Any:
        server.clock.now += 40
        return quick(path, now)

    server.at = slow
    with pytest.raises(TaskTimeout, match="not running after 30 s"):
        await_manager(server.client(), VM, START, asked("hastart"), 30)


def test_a_manager_that_has_given_up_is_not_waited_for() -> None:
    server = Server(powered(1e9, "stopped", "running", state="error"))
    with pytest.raises(TaskFailed, match="state error") as failure:
        await_manager(server.client(), VM, START, asked("hastart"), 300)
    assert "disabled" in failure.value.next_step
    assert server.clock.now < 1


def test_what_the_managers_own_task_failed_with_is_the_error() -> None:
    task = {"upid": MIGRATION, "type": "qmstart", "starttime": 0x6B00C70C}
    for state in ("error", "started"):
        server = Server(
            powered(1e9, "stopped", "running", state=state, tasks=(task,)),
            ends=TaskFailed(reason="no bridge"),
        )
        with pytest.raises(TaskFailed, match="no bridge"):
            await_manager(server.client(), VM, START, asked("hastart"), 20)
        assert server.waited == [MIGRATION]


def test_a_frozen_vm_is_waited_for_only_as_long_as_its_node_restarts_ha_services() -> None:
    """A disarmed manager has it in this state too (pve-ha-manager: PVE/HA/Manager.pm)."""
    server = Server(powered(40.0, "stopped", "running", state="freeze"))
    await_manager(server.client(), VM, START, asked("hastart"), 600)
    assert server.clock.now < 50
    for step, kind in ((START, "hastart"), (STOP, "hastop")):
        server = Server(powered(1e9, "paused", "paused", state="freeze"))
        with pytest.raises(TaskTimeout, match="disarmed with resource mode freeze") as failure:
            await_manager(server.client(), VM, step, asked(kind), 600)
        assert "pve.fleet.ha_state" in failure.value.next_step
        assert 60 <= server.clock.now < 75


def test_a_frozen_vm_that_never_arrives_is_reported_as_frozen() -> None:
    frozen = powered(1e9, "running", "running", state="freeze")

    def answer(path: tuple[Any, ...], now: float) -> Any:
        return GONE if path[-1] == "config" else frozen(path, now)

    for timeout, ends in ((30, 30), (600, 60)):
        server = Server(answer)
        with pytest.raises(TaskTimeout, match="disarmed with resource mode freeze"):
            await_manager(server.client(), VM, MIGRATE, asked("hamigrate"), timeout)
        assert ends <= server.clock.now < ends + 15


def test_a_frozen_vm_can_still_arrive() -> None:
    frozen, freed = (powered(1e9, "running", "running", state=one) for one in ("freeze", "started"))

    def answer(path: tuple[Any, ...], now: float) -> Any:
        if path[-1] == "config":
            return {} if now >= 140 else GONE
        return frozen(path, now) if now % 70 < 50 else freed(path, now)

    server = Server(answer)
    await_manager(server.client(), VM, MIGRATE, asked("hamigrate"), 600)
    assert 140 <= server.clock.now < 150


def test_a_vm_that_the_manager_has_given_up_is_not_waited_for_to_arrive() -> None:
    in_error = powered(1e9, "running", "running", state="error")

    def answer(path: tuple[Any, ...], now: float) -> Any:
        return GONE if path[-1] == "config" else in_error(path, now)

    server = Server(answer)
    with pytest.raises(TaskFailed, match="state error"):
        await_manager(server.client(), VM, MIGRATE, asked("hamigrate"), 300)
    assert server.clock.now < 1
