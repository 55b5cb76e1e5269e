# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a plan of snapshots is carried out: warnings of tasks, races with others, what was done
before a failure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import (
    cluster_state_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    FleetError,
    NotFound,
    TaskFailed,
    UnknownVm,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.engine import execute
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.vm.kind import VM as VM_KIND
from ansible_collections.pve.fleet.plugins.module_utils._protection.snapshot.desired import (
    read_desired,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.snapshot.model import (
    Snapshot,
    SnapshotTree,
    SnapshotVm,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.snapshot.plan import (
    plan_snapshots,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.snapshot.read import read_vm
from ansible_collections.pve.fleet.plugins.module_utils._protection.snapshot.resource import (
    SnapshotsOfVm,
)
from tests.fake_api import FakeApi

VM = SnapshotVm(
    VM_KIND,
    100,
    "pve1",
    "web1",
    SnapshotTree({"s1": Snapshot("s1", 1), "s2": Snapshot("s2", 2, parent="s1")}, "s2"),
)


UPID = "UPID:pve1:0000C3A1:0001F2E3:65A1B2C3:qmsnapshot:100:root@pam:"


class Ended(FakeApi):
    """Its tasks end with these statuses, one after the other."""

    def __init__(self, *exits: str) -> None:
        super().__init__(self._ended)
        self.exits = list(exits)
        self.sent: list[str] = []
        self.line = ""

    def _ended(self, request: Request) -> Any:
        if request.method != "GET":
            self.sent.append(f"{request.method} {request.path[-1]}")
            return UPID
        if request.path[-1] == "log":
            return [{"t": self.line}]
        status = self.exits.pop(0)
        self.line = "WARN: the disk is slow" if status.startswith("WARNINGS") else "last line"
        return {"status": "stopped", "exitstatus": status}


def snapshots(api: Ended, look: Callable[[bool], None], **params: Any) -> SnapshotsOfVm:
    plan = plan_snapshots(read_desired(params, 100), VM)
    return SnapshotsOfVm(api.client(), VM, plan, timeout=10, check=look, read_again=lambda: VM)


def carry(api: Ended, **params: Any) -> tuple[list[str], list[str]]:
    managed = snapshots(api, lambda _destroys: None, **params)
    execution = execute(managed, managed.plan)
    return list(execution.done), list(execution.warnings)


def test_a_task_with_warnings_is_a_success() -> None:
    done, warnings = carry(Ended("WARNINGS: 1"), snapshot="s3")
    assert len(done) == 1
    assert warnings == [f"{done[0]}: the disk is slow"]


def test_what_another_run_did_since_then_is_not_a_failure() -> None:
    assert "created since" in carry(Ended("snapshot name 's3' already used"), snapshot="s3")[1][0]
    gone = carry(Ended("snapshot 's1' does not exist"), snapshot="s1", state="absent")
    assert "deleted since" in gone[1][0]


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

    def look(_destroys: bool) -> None:
        looks.append(len(client.sent))
        if len(looks) == 2:
            raise FleetError(answer="not yours any more")

    managed = snapshots(client, look, state="absent", pattern="s*")
    with pytest.raises(FleetError):
        execute(managed, managed.plan)
    assert looks == [0, 1]
    assert client.sent == ["DELETE s1"]


def moved(request: Request) -> Any:
    """Answer as a cluster whose VM is on another node than the first listing says."""
    path = request.segments
    if path == ("cluster", "resources"):
        return [{"type": "qemu", "vmid": 100, "node": "pve2", "name": "web1"}]
    if path[1] == "pve1":
        return UnknownVm(reason="unknown VM")
    return [] if path[-1] == "snapshot" else {"name": "web1"}


@pytest.mark.parametrize(("vmid", "found"), [(100, True), (101, False)])
def test_a_vm_that_moved_is_followed(vmid: int, found: bool) -> None:
    row = {"type": "qemu", "vmid": vmid, "node": "pve1", "name": "web1"}
    picture = cluster_state_of([row], {"qemu"})
    client = FakeApi(moved).client()
    if found:
        assert read_vm(client, picture.vms[vmid], picture).node == "pve2"
    else:
        with pytest.raises(NotFound):
            read_vm(client, picture.vms[vmid], picture)
