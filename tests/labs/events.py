# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster of data that tests of events change, with the answers that PVE gives about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import (
    ClusterState,
    cluster_state_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    FleetError,
    NetworkError,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.words import TYPES
from ansible_collections.pve.fleet.plugins.module_utils._operation.events.model import (
    EventOptions,
    EventReading,
    NodeAnswers,
    SitePosition,
    SlowChecks,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.tasks.row import TaskRow, task_of

NOW = 1_795_208_400
NODES = ("pve1", "pve2")
SITE = "munich"
DOWN = NetworkError(attempted="Could not read the tasks", answer="no route to host")

OPTIONS = EventOptions(
    interval=30,
    slow_interval=3600,
    longest_pause=600,
    prefix="tenant_",
    storage_limit=90,
    quota_limit=90,
    quotas={},
    max_age=None,
    drift=None,
)


@dataclass
class World:
    """Guests, nodes and tasks. `skew` is how far the clock of a node is ahead, in seconds."""

    now: float = NOW
    guests: dict[int, dict[str, Any]] = field(default_factory=dict)
    rows: dict[str, dict[str, dict[str, Any]]] = field(
        default_factory=lambda: {node: {} for node in NODES}
    )
    skew: Mapping[str, int] = field(default_factory=dict)
    offline: set[str] = field(default_factory=set)
    storages: list[dict[str, Any]] = field(default_factory=list)
    count: int = 0

    def begin(self, node: str, type: str, id: object = "") -> str:
        """Start a task and return its UPID."""
        self.count += 1
        start = int(self.now) + self.skew.get(node, 0)
        upid = f"UPID:{node}:{self.count:08X}:{self.count:08X}:{start:08X}:{type}:{id}:root@pam:"
        self.rows[node][upid] = {
            "upid": upid,
            "node": node,
            "type": type,
            "id": str(id),
            "user": "root@pam",
            "starttime": start,
            "status": "RUNNING",
        }
        return upid

    def end(self, upid: str, status: str = "OK") -> None:
        """End a task."""
        node = upid.split(":")[1]
        row = self.rows[node].pop(upid)
        ended = int(self.now) + self.skew.get(node, 0)
        self.rows[node][upid] = {**row, "status": status, "endtime": ended}

    def run(self, node: str, type: str, id: object = "", status: str = "OK") -> str:
        """Start and end a task."""
        upid = self.begin(node, type, id)
        self.end(upid, status)
        return upid

    def create(self, vmid: int, node: str = "pve1", **values: Any) -> None:
        self.guests[vmid] = {
            "type": "qemu",
            "vmid": vmid,
            "node": node,
            "name": f"vm{vmid}",
            "status": "stopped",
            "template": 0,
            **values,
        }

    def destroy(self, vmid: int) -> None:
        """Remove a guest, by a task as PVE does."""
        guest = self.guests.pop(vmid)
        self.run(guest["node"], "qmdestroy", vmid)

    def tasks(self, node: str, since: int | None) -> list[TaskRow]:
        """Return the tasks of a node as it lists them: by their start."""
        rows = self.rows[node].values()
        return [task_of(row, node) for row in rows if row["starttime"] >= (since or 0)]

    def answers(self, position: SitePosition, silent: Iterable[str] = ()) -> NodeAnswers:
        """Return the tasks of all nodes since a position; silent nodes have an error."""
        found: dict[str, list[TaskRow] | FleetError] = {}
        for node in NODES:
            if node in self.offline:
                continue
            known = position.tasks.get(node)
            found[node] = DOWN
            if node not in silent:
                found[node] = self.tasks(node, known.since if known else None)
        return found

    def cluster(self) -> ClusterState:
        nodes = [{"type": "node", "node": node, "status": "online"} for node in NODES]
        return cluster_state_of([*nodes, *self.guests.values(), *self.storages], TYPES)

    def read(
        self, position: SitePosition, silent: Iterable[str] = (), checks: SlowChecks | None = None
    ) -> EventReading:
        """Return a reading of now."""
        return self.reading(self.answers(position, silent), checks=checks)

    def reading(
        self, tasks: NodeAnswers, checks: SlowChecks | None = None, **more: Any
    ) -> EventReading:
        """Return a reading with these tasks and the guests of now."""
        return EventReading(
            site=SITE,
            taken=self.now,
            online={node: node not in self.offline for node in NODES},
            tasks=tasks,
            cluster=self.cluster(),
            checks=checks,
            **more,
        )

    def failed(self) -> EventReading:
        """Return a reading of a site that does not answer."""
        return EventReading(SITE, self.now, error=DOWN)
