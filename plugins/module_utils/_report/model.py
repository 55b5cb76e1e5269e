# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the report is made from: what was asked for, and what was read of each site (data)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from .._cluster.quota import Limits
from .._cluster.state import ClusterState, VmRow
from .._core.errors import FleetError
from .._drift.model import Look
from .._protection.model import Copies
from .._protection.privileges import Privileges
from .._snapshot.model import Snapshot
from .._vm.model import Actual

Row = Mapping[str, Any]
DAY = 86400


@dataclass(frozen=True)
class Prices:
    """What one core, one GiB of memory and one GiB of storage cost in a month."""

    core: Decimal
    memory: Decimal
    storage: Decimal
    currency: str = ""


@dataclass(frozen=True)
class Tenant:
    """A tenant as the task describes it. `site` is empty where the tenant may be at any site."""

    name: str
    site: str
    limits: Limits


@dataclass(frozen=True)
class Wanted:
    """What a task asks for. `facts` are the options of the modules that read nodes and cluster."""

    prefix: str
    snapshot_days: int
    backup_days: int
    tenants: Sequence[Tenant]
    prices: Prices | None
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Guest:
    """One VM. `actual` and `snapshots` are None where it could not be read for the `reason`."""

    row: VmRow
    actual: Actual | None = None
    snapshots: tuple[Snapshot, ...] | None = None
    reason: str = ""


@dataclass(frozen=True)
class SiteLook:
    """What was read of one site; `reason` is why nothing could be.

    `cluster` and `nodes` are as modules cluster_info and node_info return them, `volumes` the bytes
    of all disks by VMID, None where they could not be listed. `privileges` are those of the login.
    """

    site: str
    time: float
    reason: str = ""
    state: ClusterState | None = None
    cluster: Row = field(default_factory=dict)
    nodes: Sequence[Row] = ()
    missing: Sequence[Row] = ()
    guests: Sequence[Guest] = ()
    backups: Mapping[int, Copies | FleetError] = field(default_factory=dict)
    volumes: Mapping[int, int] | None = None
    privileges: Privileges | None = None
    drift: Look | None = None
