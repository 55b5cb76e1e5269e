# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The data that is read of a site for its metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...._foundation.cluster.quota import Limits
from ...._foundation.cluster.state import ClusterState
from ...._foundation.core.errors import FleetError
from ...._infrastructure.facts.nodes import CapacityRules
from ...._protection.restore.drill.record import GuestKey, RestoreProof
from ..backups import CopySummary
from ..model import ReportTenant

# Parts of a site that can be missing.
SITE, NODE, PRIVILEGES, VMS = "site", "node", "privileges", "vms"
DISK, SNAPSHOTS, BACKUPS = "disk", "snapshots", "backups"


@dataclass(frozen=True)
class MetricsOptions:
    """The options, parsed. `quotas` are by tenant, at each site; `tenants` have a quota at their
    sites, and `totals` are quotas over sites; `drift` is a report of drift_info; `proofs` are
    the last proven restores by guest.
    """

    prefix: str
    rules: CapacityRules
    quotas: Mapping[str, Limits | None] = field(default_factory=dict)
    tenants: Sequence[ReportTenant] = ()
    totals: Mapping[str, Limits] = field(default_factory=dict)
    snapshots: bool = False
    backups: bool = False
    disks: bool = False
    versions: bool = False
    drift: Mapping[str, Any] | None = None
    proofs: Mapping[GuestKey, RestoreProof] | None = None


@dataclass(frozen=True)
class UnreadPart:
    """A part that could not be read. `subject` is a node, a tenant or a guest, or empty."""

    part: str
    subject: str
    category: str
    reason: str


@dataclass
class SiteFacts:
    """The facts of a site; `cluster` is None if it could not be read. Times are in seconds.

    `disks` are bytes by VMID. If a guest is missing in `snapshots` or `backups`, its copies are not
    known.
    """

    name: str
    checked: float
    version: str | None = None
    cluster_name: str | None = None
    quorate: bool | None = None
    cluster: ClusterState | None = None
    nodes: list[dict[str, Any]] = field(default_factory=list)
    disks: dict[int, int] = field(default_factory=dict)
    snapshots: dict[int, CopySummary] = field(default_factory=dict)
    backups: dict[int, CopySummary] = field(default_factory=dict)
    missing: list[UnreadPart] = field(default_factory=list)
    duration: float = 0.0
    requests: list[dict[str, Any]] = field(default_factory=list)

    def lacks(self, part: str, error: FleetError, subject: object = "") -> None:
        """Note a part that could not be read, and the reason."""
        self.missing.append(UnreadPart(part, str(subject), error.category, error.message))

    def is_missing(self, part: str, subject: object = "") -> bool:
        """Return whether a part of a subject is missing."""
        return any((one.part, one.subject) == (part, str(subject)) for one in self.missing)
