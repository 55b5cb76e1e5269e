# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The input of the report: the options, and the reading of each site (data)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ..._foundation.api.access.privileges import Privileges
from ..._foundation.cluster.quota import Limits
from ..._foundation.cluster.state import ClusterState, VmRow
from ..._foundation.core.errors import FleetError
from ..._guests.kinds.model import Actual
from ..._protection.restore.drill.record import GuestKey, RestoreProof
from ..._protection.snapshot.model import Snapshot
from ..drift.model import DriftReading
from .backups import CopySummary

Row = Mapping[str, Any]
DAY = 86400


@dataclass(frozen=True)
class Prices:
    """The prices of one core, one GiB of memory and one GiB of storage for a month."""

    core: Decimal
    memory: Decimal
    storage: Decimal
    currency: str = ""


@dataclass(frozen=True)
class ReportTenant:
    """A tenant as the task describes it. `site` is empty if the tenant may be at any site."""

    name: str
    site: str
    limits: Limits


@dataclass(frozen=True)
class ReportOptions:
    """The options of a task. `facts` are the options of the modules that read nodes and cluster,
    `nodes` the nodes that the rules of placement name, by option.

    `totals` are the quotas of tenants over sites. `proofs` are the last proven restores by guest,
    None without a record of drills.
    """

    prefix: str
    snapshot_days: int
    backup_days: int
    tenants: Sequence[ReportTenant]
    prices: Prices | None
    facts: Mapping[str, Any]
    proofs: Mapping[GuestKey, RestoreProof] | None = None
    nodes: Mapping[str, Collection[str]] = field(default_factory=dict)
    addresses: bool = False
    totals: Mapping[str, Limits] = field(default_factory=dict)


@dataclass(frozen=True)
class VmReading:
    """One guest. `actual` and `snapshots` are None if it could not be read for the `reason`."""

    row: VmRow
    actual: Actual | None = None
    snapshots: tuple[Snapshot, ...] | None = None
    reason: str = ""
    address: str | None = None


@dataclass(frozen=True)
class SiteReading:
    """The reading of one site; `reason` is the error if the site could not be read.

    `known_nodes` are all nodes of the cluster, `state` is the part of it that the site uses.
    `cluster` and `nodes` have the form of the results of modules cluster_info and node_info.
    `volumes` are the bytes of all disks by VMID, None if they could not be listed. `privileges` are
    the privileges of the login. `jobs` are the enabled backup jobs of each guest by VMID, None if
    unknown.
    """

    site: str
    time: float
    reason: str = ""
    state: ClusterState | None = None
    known_nodes: Collection[str] | None = None
    cluster: Row = field(default_factory=dict)
    nodes: Sequence[Row] = ()
    missing: Sequence[Row] = ()
    guests: Sequence[VmReading] = ()
    backups: Mapping[int, CopySummary | FleetError] = field(default_factory=dict)
    volumes: Mapping[int, int] | None = None
    privileges: Privileges | None = None
    drift: DriftReading | None = None
    jobs: Mapping[int, Sequence[str]] | None = None
    zones: Sequence[Row] | None = None  # None if networks could not be read
    vnets: Sequence[Row] | None = None
    reach: Sequence[Row] | None = None
