# Copyright (c) The pve.fleet contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a plan of snapshots is carried out: warnings of tasks, races with others, what was done before a failure."""

from __future__ import annotations

from typing import Any, cast

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._api.client import Client
from ansible_collections.pve.fleet.plugins.module_utils._api.tasks import TaskResult
from ansible_collections.pve.fleet.plugins.module_utils._cluster.picture import picture_of
from ansible_collections.pve.fleet.plugins.module_utils._core.classify import classify_task
from ansible_collections.pve.fleet.plugins.module_utils._core.errors import FleetError, NotFound, TaskFailed
from ansible_collections.pve.fleet.plugins.module_utils._snapshot.apply import carry_out
from ansible_collections.pve.fleet.plugins.module_utils._snapshot.model import Machine, Snapshot, Tree
from ansible_collections.pve.fleet.plugins.module_utils._snapshot.plan import make_plan
from ansible_collections.pve.fleet.plugins.module_utils._snapshot.read import read_machine
from ansible_collections.pve.fleet.plugins.module_utils._snapshot.wish import read_wish
from tests.fake_clock import FakeClock

VM = Machine(100, "pve1", "web1", Tree({"s1": Snapshot("s1", 1), "s2": Snapshot("s2", 2, parent="s1")}, "s2"))


class Ended:
    """A client whose tasks end as they are told to."""

    def __init__(self, *exits: str) -> None:
        self.exits = list(exits)
        self.sent: list[str] = []

    def task(self, method: str, *path: Any, **_rest: Any) -> TaskResult:
        self.sent.append(f"{method} {path[-1]}")
        status = self.exits.pop(0)
        if status == "OK" or status.startswith("WARNINGS"):
            return TaskResult("UPID:x", "pve1", "x", status, ("the disk is slow",) if status != "OK" else ())
        raise classify_task(status, ["last line"], upid="UPID:x")


def carry(client: Ended, **params: Any) -> tuple[list[str], list[str]]:
    plan = make_plan(read_wish(params, 100), VM)
    return carry_out(cast(Client, client), plan, VM, guard=lambda: None, timeout=10)


def test_a_task_with_warnings_is_a_success() -> None:
    done, warnings = carry(Ended("WARNINGS: 1"), snapshot="s3")
    assert len(done) == 1
    assert warnings == [f"{done[0]}: the disk is slow"]


def test_what_somebody_else_did_meanwhile_is_no_failure() -> None:
    assert "made meanwhile" in carry(Ended("snapshot name 's3' already used"), snapshot="s3")[1][0]
    gone = carry(Ended("snapshot 's1' does not exist"), snapshot="s1", state="absent")
    assert "deleted meanwhile" in gone[1][0]


def test_a_failure_tells_what_was_done_before() -> None:
    client = Ended("OK", "storage is on fire")
    with pytest.raises(TaskFailed) as caught:
        carry(client, state="absent", pattern="s*")
    assert caught.value.details["done"] == ["Delete snapshot 's1' of VM 'web1' (100) on node pve1"]
    assert caught.value.log == ("last line",)
    assert client.sent == ["DELETE s1", "DELETE s2"]


def test_the_guard_stands_before_each_request() -> None:
    client = Ended("OK", "OK")
    looks: list[int] = []

    def guard() -> None:
        looks.append(len(client.sent))
        if len(looks) == 2:
            raise FleetError(answer="not yours any more")

    plan = make_plan(read_wish({"state": "absent", "pattern": "s*"}, 100), VM)
    with pytest.raises(FleetError):
        carry_out(cast(Client, client), plan, VM, guard=guard, timeout=10)
    assert looks == [0, 1]
    assert client.sent == ["DELETE s1"]


class Moved:
    """A client whose VM is on another node than the first listing says."""

    clock = FakeClock()

    def get(self, *path: Any, **_rest: Any) -> Any:
        if path == ("cluster", "resources"):
            return [{"type": "qemu", "vmid": 100, "node": "pve2", "name": "web1"}]
        if path[1] == "pve1":
            raise NotFound(reason="unknown VM")
        return [] if path[-1] == "snapshot" else {"name": "web1"}


@pytest.mark.parametrize(("vmid", "found"), [(100, True), (101, False)])
def test_a_vm_that_moved_is_followed(vmid: int, found: bool) -> None:
    row = {"type": "qemu", "vmid": vmid, "node": "pve1", "name": "web1"}
    picture = picture_of([row])
    client = cast(Client, Moved())
    if found:
        assert read_machine(client, picture.vms[vmid], picture).node == "pve2"
    else:
        with pytest.raises(NotFound):
            read_machine(client, picture.vms[vmid], picture)
