# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts of a maintenance are read side by side: they delay its first move."""

from __future__ import annotations

import threading
from typing import Any

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import (
    cluster_state_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.maintenance.read import (
    read_facts,
    read_node,
)
from tests.fake_api import FakeApi
from tests.unit.module_utils.cluster.test_placement import node

ANSWERS: dict[str, Any] = {
    "cluster/status": [
        {"type": "cluster", "quorate": 1},
        {"type": "node", "name": "n1", "online": 1, "local": 1},
        {"type": "node", "name": "n2", "online": 1},
    ],
    "cluster/ceph/status": {"health": {"status": "HEALTH_OK"}},
    "cluster/ceph/flags": [{"name": "noout", "value": 1}],
    "cluster/options": {},
    "cluster/ha/groups": [],
    "cluster/ha/rules": [],
    "cluster/ha/status/manager_status": {},
    "cluster/ha/status/current": [{"type": "service", "sid": "vm:100", "state": "started"}],
    "cluster/ha/resources": [{"sid": "vm:100", "failback": 0}],
    "nodes/n1/config": {},
    "nodes/n2/config": {},
    "nodes/n1/services": [{"service": "pveproxy", "state": "running"}],
    "nodes/n1/status": {"uptime": 60},
    "nodes/n1/tasks": [{"upid": "a"}, {"upid": "b", "status": "OK"}],
}
FIRST = ("nodes/n1/config", "nodes/n2/config", "nodes/n1/tasks", "cluster/options", "version")
HA = ("status/manager_status", "status/current", "resources", "rules")
STATE = ("nodes/n1/services", "nodes/n1/version", "nodes/n1/status")


class AtOnce(FakeApi):
    """A Proxmox VE that answers each of these groups of requests only if all are on their way."""

    def __init__(self, version: str, *groups: tuple[str, ...]) -> None:
        super().__init__(self.of_path)
        self._version = version
        self._waits = {
            path: barrier for group in groups for barrier in [_barrier(group)] for path in group
        }

    def of_path(self, request: Request) -> Any:
        path = "/".join(map(str, request.segments))
        if path in self._waits:
            self._waits[path].wait()
        if path.endswith("version"):
            return {"version": self._version}
        return ANSWERS[path]


def _barrier(group: tuple[str, ...]) -> threading.Barrier:
    return threading.Barrier(len(group), timeout=20)


def test_facts_are_read_side_by_side() -> None:
    ha = tuple(f"cluster/ha/{path}" for path in HA)
    api = AtOnce("9.2.1", (*FIRST, "cluster/ceph/status"), ha)
    found = read_facts(api.client(), "n1")
    assert found.members == {"n1": True, "n2": True}
    assert found.tasks == ({"upid": "a"},)
    assert found.ceph is not None
    assert found.ceph.health == "HEALTH_OK"
    assert found.ceph.flags == {"noout"}
    assert found.ha.services == {"vm:100": "started"}
    assert found.ha.no_failback == {"vm:100"}
    assert len(api.asked) == 1 + len(FIRST) + 1 + len(HA) + 1


def test_an_older_cluster_is_asked_for_groups() -> None:
    api = AtOnce("8.4.1")
    read_facts(api.client(), "n1")
    paths = ["/".join(map(str, path)) for path in api.paths]
    assert "cluster/ha/groups" in paths
    assert "cluster/ha/rules" not in paths


def test_the_state_of_a_node_is_read_side_by_side() -> None:
    api = AtOnce("9.2.1", STATE)
    cluster = cluster_state_of([node("n1")], {"qemu"})
    found = read_node(api.client(), "n1", cluster)
    assert (found.services, found.version) == (("pveproxy",), "9.2.1")
    assert found.booted == int(api.clock.time()) - 60
