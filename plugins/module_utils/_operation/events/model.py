# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options, the reading of a site, and the position up to which its events are known (data)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..._foundation.cluster.quota import Limits
from ..._foundation.cluster.state import ClusterState
from ..._foundation.core.errors import FleetError
from ..tasks.row import TaskRow

# Parts of a reading whose failure is an event of its own.
TASKS, BACKUPS, DISKS, DRIFT = "tasks", "backups", "disks", "drift"

NodeAnswers = Mapping[str, list[TaskRow] | FleetError]
"""The tasks of each node that was asked, or the error of the node."""


@dataclass(frozen=True)
class EventOptions:
    """The options, parsed. Times are in seconds, limits in percent.

    `max_age` is the maximum age of a guest's newest backup; if it is None, no backup is reported as
    missing. `drift` are the options of module drift_info, or None.
    """

    interval: float
    slow_interval: float
    longest_pause: float
    prefix: str
    storage_limit: float
    quota_limit: float
    quotas: Mapping[str, Limits]
    max_age: float | None
    drift: Mapping[str, Any] | None

    @property
    def counts_disks(self) -> bool:
        """Whether a quota limits the size of disks, which the listing does not contain."""
        return any("disk" in limits for limits in self.quotas.values())

    @property
    def has_slow_part(self) -> bool:
        """Whether any part is read at the slow interval."""
        return self.max_age is not None or self.drift is not None or self.counts_disks


@dataclass(frozen=True)
class ReadFailure:
    """Why a part could not be read: the category of the error, and its text."""

    category: str
    reason: str

    @classmethod
    def of(cls, error: FleetError) -> ReadFailure:
        return cls(error.category, error.message)


@dataclass(frozen=True)
class SlowChecks:
    """The parts that are read at the slow interval; None for a part that is not wanted or failed.

    `newest` is the time of the newest backup of each guest by VMID, 0 without any; guests whose
    backups are not known are missing. `disks` are the bytes of all disks by VMID. `drift` is the
    report of module drift_info. `failed` contains the failures by part.
    """

    newest: Mapping[int, int] | None = None
    disks: Mapping[int, int] | None = None
    drift: Mapping[str, Any] | None = None
    failed: Mapping[str, ReadFailure] = field(default_factory=dict)


@dataclass(frozen=True)
class EventReading:
    """One site, read. `taken` is in seconds since the epoch, before the first request.

    `online` tells for each node of the cluster whether it is online. `failed_guests` are the VMIDs
    in the log of a failed backup, by UPID. If `error` is set, nothing else was read.
    """

    site: str
    taken: float
    online: Mapping[str, bool] = field(default_factory=dict)
    quorate: bool = True
    tasks: NodeAnswers = field(default_factory=dict)
    cluster: ClusterState | None = None
    failed_guests: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    checks: SlowChecks | None = None
    error: FleetError | None = None


@dataclass(frozen=True)
class NodeTasks:
    """The known tasks of a node. Times are in seconds since the epoch, by the clock of the node.

    Tasks that started at `since` or later are requested again. `running` contains the start of each
    running task by UPID, and `ended` the end of each ended task.
    """

    since: int
    running: Mapping[str, int]
    ended: Mapping[str, int]


@dataclass(frozen=True)
class KnownGuest:
    """A guest in the state of its last event.

    Until `settles`, its power state is ignored: a backup of it runs or has just ended.
    """

    kind: str
    name: str
    node: str
    tenant: str | None
    tenant_problem: str
    status: str
    template: bool
    settles: float = 0.0


@dataclass(frozen=True)
class SitePosition:
    """The known state of a site; the events are the differences of the next reading.

    `alarms` are the lasting conditions by key, each with its `type` and `values`. `checked` is the
    time of the last slow reading, 0 for never. `removed` are guests that disappeared before their
    removal task was seen: the time of the reading by VMID.
    """

    taken: float = 0.0
    checked: float = 0.0
    nodes: tuple[str, ...] = ()
    tasks: Mapping[str, NodeTasks] = field(default_factory=dict)
    guests: Mapping[int, KnownGuest] = field(default_factory=dict)
    alarms: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    removed: Mapping[int, float] = field(default_factory=dict)

    @property
    def is_new(self) -> bool:
        """Whether the site has never been read."""
        return not self.taken
