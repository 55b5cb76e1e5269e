# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What stands in the way of a migration, as PVE tells it, and waiting for one that the HA manager carries out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._core.errors import (
    FleetError,
    NetworkError,
    NotFound,
    NotSupported,
    TaskFailed,
    TaskTimeout,
)
from ansible_collections.pve.fleet.plugins.module_utils._vm.model import Actual, Step
from ansible_collections.pve.fleet.plugins.module_utils._vm.moving import (
    await_arrival,
    check_move,
    read_wherever,
    why_not_move,
)
from tests.fake_clock import FakeClock

UPID = "UPID:pve1:00000001:00000002:6B00C70B:hamigrate:100:root@pam:"
MIGRATION = "UPID:pve1:00000003:00000004:6B00C70C:qmigrate:100:root@pam:"
GONE = NotFound(reason="unknown VM", answer="Configuration file 'nodes/pve2/qemu-server/100.conf' does not exist")

PRECONDITIONS: list[tuple[dict[str, Any], str | None]] = [
    ({"allowed_nodes": ["pve2"], "not_allowed_nodes": {"pve2": {}}, "local_disks": [], "local_resources": []}, None),
    ({}, None),
    ({"local_resources": ["hostpci0", "usb1"]}, "hostpci0, usb1"),
    ({"not_allowed_nodes": {"pve2": {"unavailable_storages": ["fast", "only1"]}}}, "lacks storage fast, only1"),
    ({"not_allowed_nodes": {"pve3": {"unavailable_storages": ["only1"]}}}, None),
    ({"not_allowed_nodes": {"pve2": {"unavailable-resources": ["gpu"]}}}, "mapped devices gpu"),
    (
        {"not_allowed_nodes": {"pve2": {"blocking-ha-resources": [{"sid": "vm:101", "cause": "resource-affinity"}]}}},
        "vm:101 on node pve2",
    ),
    ({"local_disks": [{"volid": "local:iso/x.iso", "cdrom": 1}]}, "local:iso/x.iso"),
    ({"local_disks": [{"volid": "local-lvm:vm-100-cloudinit", "cdrom": 1}]}, None),
    ({"local_disks": [{"volid": "local-lvm:vm-100-disk-0", "cdrom": 0}]}, None),
]


@pytest.mark.parametrize(("answer", "word"), PRECONDITIONS, ids=str)
def test_what_pve_says_stands_in_the_way(answer: dict[str, Any], word: str | None) -> None:
    said = why_not_move(answer, "pve2")
    assert said is None if word is None else word in (said or "")


class Server:
    """Answers GETs by a function of the path and the time."""

    def __init__(self, answer: Callable[[tuple[Any, ...], float], Any], ends: FleetError | None = None) -> None:
        self.answer, self.ends, self.clock = answer, ends, FakeClock()
        self.clock.now = 0.0
        self.asked: list[tuple[Any, ...]] = []
        self.waited: list[str] = []

    def get(self, *path: Any, **_query: Any) -> Any:
        self.asked.append(path)
        found = self.answer(path, self.clock.now)
        if isinstance(found, FleetError):
            raise found
        return found

    def wait(self, upid: str, **_more: Any) -> None:
        self.waited.append(upid)
        self.clock.now += 5
        if self.ends is not None:
            raise self.ends


STEP = Step("migrate", "Migrate VM 100", "POST", ("nodes", "pve1", "qemu", 100, "migrate"), {"target": "pve2"})


def arriving(
    at: float, tasks: list[dict[str, Any]], lock_until: float = 0.0
) -> Callable[[tuple[Any, ...], float], Any]:
    def answer(path: tuple[Any, ...], now: float) -> Any:
        if path[2] == "tasks":
            return tasks
        return GONE if now < at else {"lock": "migrate"} if now < lock_until else {}

    return answer


def test_a_vm_is_waited_for_until_it_is_there_and_unlocked() -> None:
    server = Server(arriving(7.0, [], lock_until=9.0))
    await_arrival(server, STEP, UPID, 60)  # type: ignore[arg-type]
    assert 9.0 <= server.clock.now < 20
    assert server.waited == []


def test_the_migration_that_the_ha_manager_begins_is_followed() -> None:
    task = {"upid": MIGRATION, "type": "qmigrate", "starttime": 0x6B00C70C}
    older = {**task, "upid": "older", "starttime": 0x6B00C700}
    server = Server(arriving(5.0, [older, task]))
    await_arrival(server, STEP, UPID, 60)  # type: ignore[arg-type]
    assert server.waited == [MIGRATION]
    failing = Server(arriving(99.0, [task]), ends=TaskFailed(reason="migration aborted"))
    with pytest.raises(TaskFailed):
        await_arrival(failing, STEP, UPID, 60)  # type: ignore[arg-type]


def test_a_vm_that_never_arrives_is_told() -> None:
    server = Server(arriving(1e9, []))
    with pytest.raises(TaskTimeout, match="after 30 s") as failure:
        await_arrival(server, STEP, UPID, 30)  # type: ignore[arg-type]
    assert failure.value.upid == UPID
    assert 30 <= server.clock.now < 40


def elsewhere(failure: FleetError, now: str | None) -> Server:
    def answer(path: tuple[Any, ...], _now: float) -> Any:
        if path[0] == "cluster":
            return [] if now is None else [{"vmid": 100, "node": now}, {"vmid": 101, "node": "pve1"}]
        return [{"key": "name", "value": "x"}] if path[1] == now else failure

    return Server(answer)


DOWN = NetworkError(reason="node unreachable")


@pytest.mark.parametrize("failure", [GONE, DOWN], ids=["gone", "down"])
def test_a_vm_is_read_where_it_is_now(failure: FleetError) -> None:
    assert read_wherever(elsewhere(failure, "pve3"), 100, "pve1", status="running").node == "pve3"  # type: ignore[arg-type]
    for server in (elsewhere(failure, None), elsewhere(failure, "pve1")):
        if server.answer(("nodes", "pve1"), 0.0) is failure:
            with pytest.raises(type(failure)):
                read_wherever(server, 100, "pve1", status="running")  # type: ignore[arg-type]


def test_another_failure_is_no_reason_to_look_elsewhere() -> None:
    server = elsewhere(NetworkError(reason="bad gateway"), "pve3")
    with pytest.raises(NetworkError):
        read_wherever(server, 100, "pve1", status="running")  # type: ignore[arg-type]
    assert ("cluster", "resources") not in server.asked


def test_a_move_that_pve_would_refuse() -> None:
    server = Server(lambda _path, _now: {"local_resources": ["hostpci0"], "allowed_nodes": []})
    with pytest.raises(NotSupported, match="hostpci0") as failure:
        check_move(server, Actual(100, "pve1", "running", {}, {"name": "x"}), "pve2")  # type: ignore[arg-type]
    assert failure.value.details["preconditions"] == {"local_resources": ["hostpci0"]}
    assert len(server.asked) == 1
