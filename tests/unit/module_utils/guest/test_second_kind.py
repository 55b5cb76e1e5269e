# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The shared code works for containers: their kind answers for every difference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.upid import TaskResult
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import (
    cluster_state_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import Conflict
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.plan import Step
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.describe import describe
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.live.creation import (
    is_desired,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.live.ha import await_manager
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.live.read import (
    read_wherever,
    require_same,
    require_untouched,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.plan import power
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.container.kind import (
    CONTAINER,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.model import Guest
from ansible_collections.pve.fleet.plugins.module_utils._protection.snapshot.desired import (
    read_desired,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.snapshot.plan import (
    plan_snapshots,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.snapshot.read import read_vm
from tests.unit.module_utils.vm.answering import GONE, Server

CONFIG = {"hostname": "web", "rootfs": "ceph:vm-200-disk-0,size=8G", "cores": "2"}


def server_with(config: Mapping[str, Any], node: str = "pve1") -> Server:
    """Return a server with one container on that node."""

    def answer(path: tuple[Any, ...], _now: float) -> Any:
        if path[0] == "cluster":
            return [{"type": "lxc", "vmid": 200, "node": node}]
        if path[:4] != ("nodes", node, "lxc", 200):
            return GONE
        if path[-1] == "config":
            return config
        if path[-1] == "snapshot":
            return [{"name": "s1", "snaptime": 5}, {"name": "current", "parent": "s1"}]
        if path[-1] == "pending":
            return [{"key": key, "value": value} for key, value in config.items()]
        return {"status": "running"}

    return Server(answer)


def wanted(**options: Any) -> Guest:
    return Guest(CONTAINER, "web", None, None, **options)


def test_it_is_read_by_its_own_path_on_whatever_node_it_is() -> None:
    server = server_with(CONFIG, "pve2")
    actual = read_wherever(server.client(), CONTAINER, 200, "pve1")
    assert actual.path == ("nodes", "pve2", "lxc", 200)
    assert actual.label == "container 'web' (200) on node pve2"
    assert not any("qemu" in path for path in server.paths)


def test_it_is_described_in_its_own_words() -> None:
    actual = read_wherever(server_with(CONFIG).client(), CONTAINER, 200, "pve1")
    shown = describe(actual, url="https://pve1:8006")
    assert (shown["name"], shown["phase"]) == ("web", "Running")
    assert "console=lxc" in shown["console_url"]


def test_it_is_desired_by_its_own_option_for_the_name() -> None:
    assert wanted().label == "container 'web'"
    assert is_desired(CONFIG, wanted())
    assert not is_desired({"name": "web"}, wanted())


def test_another_one_with_its_vmid_is_found_by_name_and_volumes() -> None:
    known = read_wherever(server_with(CONFIG).client(), CONTAINER, 200, "pve1")
    renamed = server_with({**CONFIG, "hostname": "db"})
    with pytest.raises(Conflict, match="'db'"):
        require_same(wanted(), known, read_wherever(renamed.client(), CONTAINER, 200, "pve1"))
    other = server_with({**CONFIG, "rootfs": "ceph:vm-200-disk-7,size=8G"})
    seen = read_wherever(other.client(), CONTAINER, 200, "pve1")
    require_same(wanted(), known, seen)
    with pytest.raises(Conflict, match="rootfs"):
        require_untouched(wanted(), known, seen)


def test_its_power_steps_and_the_ha_manager_use_its_path() -> None:
    actual = read_wherever(server_with(CONFIG).client(), CONTAINER, 200, "pve1")
    step = power.stop(actual, wanted(state="stopped"))
    assert step.path == ("nodes", "pve1", "lxc", 200, "status", "shutdown")
    assert step.summary == "Shut down container 'web' (200) on node pve1"
    server = server_with(CONFIG)
    start = Step("start", "Start it", "POST", (*actual.path, "status", "start"))
    upid = "UPID:pve1:00000001:00000002:6B00C70B:hastart:200:root@pam:"
    await_manager(server.client(), CONTAINER, start, TaskResult(upid, "pve1", "hastart", "OK"), 60)
    assert ("nodes", "pve1", "lxc", 200, "status", "current") in server.paths


def test_its_snapshots_are_read_and_planned_by_its_path() -> None:
    rows: list[dict[str, Any]] = [
        {"type": "lxc", "vmid": 200, "node": "pve1", "name": "web"},
        {"type": "storage", "storage": "ceph", "node": "pve1", "plugintype": "rbd"},
    ]
    cluster = cluster_state_of(rows, {CONTAINER.type})
    server = server_with(CONFIG)
    found = read_vm(server.client(), cluster.vms[200], cluster)
    assert [(disk.slot, disk.kind) for disk in found.disks] == [("rootfs", "rbd")]
    assert found.label == "container 'web' (200) on node pve1"
    plan = plan_snapshots(read_desired({"name": "s2"}, 10), found)
    assert [step.path for step in plan.steps] == [("nodes", "pve1", "lxc", 200, "snapshot")]
    assert not any("qemu" in path for path in server.paths)
