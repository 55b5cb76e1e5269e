# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The data of the report on drift. C(docs/drift.schema.json) describes the keys."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._foundation.cluster.quota import QuotaFigures
from ..._guests.kinds.model import Guest
from ..._guests.kinds.words import VIRTUAL_MACHINE
from ..._tenants.tenant.model import Tenant
from .ignore import IgnorePatterns, Names

IN_SYNC = "in_sync"
DRIFTED = "drifted"
PENDING = "pending"
MISSING = "missing"
UNWANTED = "unwanted"
OUTDATED = "outdated"
UNKNOWN = "unknown"
STATUSES = (DRIFTED, PENDING, MISSING, UNWANTED, OUTDATED, UNKNOWN, IN_SYNC)
# The difference between the template that a VM was cloned from and the template that its source
# names now, by VMID. No run changes it.
SOURCE = "source"


@dataclass(frozen=True)
class OptionDifference:
    """One option of a VM that is not in sync, with values as modules show them, or C(source).

    `pending` is None, or a dictionary with the C(value) that applies after the next stop.
    """

    option: str
    wanted: Any
    actual: Any
    pending: dict[str, Any] | None

    @property
    def only_waits(self) -> bool:
        """Whether the option has the wanted value after the next stop."""
        return self.pending == {"value": self.wanted}


@dataclass
class ComparedGuest:
    """One guest of the estate, compared with the real one. Site and tenant are empty if not set."""

    name: str
    tenant: str
    site: str
    kind: str = VIRTUAL_MACHINE
    vmid: int | None = None
    node: str | None = None
    status: str = UNKNOWN
    reason: str | None = None
    options: list[OptionDifference] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    last_task: dict[str, Any] | None = None


@dataclass
class UnlistedGuest:
    """One guest that the estate does not describe."""

    name: str
    tenant: str
    site: str
    vmid: int
    node: str
    power: str
    kind: str = VIRTUAL_MACHINE
    last_task: dict[str, Any] | None = None


@dataclass
class ClusterResource:
    """One resource of the cluster file, or the networks of a tenant, compared with the real ones.
    `name` joins the keys with slashes.
    """

    site: str
    section: str
    name: str
    status: str
    reason: str | None = None
    options: list[OptionDifference] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    last_task: dict[str, Any] | None = None


@dataclass(frozen=True)
class LastLogin:
    """The last login of a user in the log of a cluster, in ISO 8601 format."""

    site: str
    user: str
    last: str | None


@dataclass(frozen=True)
class OfflineNode:
    """A node whose VMs cannot be read, and why."""

    site: str
    node: str
    reason: str


@dataclass(frozen=True)
class QuotaUse:
    """How much of a quota is used; memory and disk in bytes. `sites` are those of a quota over sites."""

    tenant: str
    site: str
    kind: str
    used: int
    limit: int
    exceeded: bool
    sites: Sequence[str] = ()


@dataclass(frozen=True)
class SiteShare:
    """The use of a tenant over sites at one site, which has several names if sites share it."""

    tenant: str
    sites: Collection[str]
    used: QuotaFigures


@dataclass
class DriftReading:
    """The comparison of one site with the estate. `reason` is set if the whole site is unknown."""

    site: str
    reason: str | None = None
    vms: list[ComparedGuest] = field(default_factory=list)
    unlisted: list[UnlistedGuest] = field(default_factory=list)
    nodes: list[OfflineNode] = field(default_factory=list)
    quotas: list[QuotaUse] = field(default_factory=list)
    shares: list[SiteShare] = field(default_factory=list)
    cluster: list[ClusterResource] = field(default_factory=list)
    logins: list[LastLogin] = field(default_factory=list)
    ignored: int = 0
    warnings: list[str] = field(default_factory=list)

    def drop_ignored(
        self, found: ComparedGuest | ClusterResource, names: Names, patterns: IgnorePatterns
    ) -> bool | None:
        """Drop and count the ignored differences of an object, which has these names.

        Return whether there were any, None if the whole object is ignored.
        """
        if found.status != IN_SYNC and patterns.vm(names):
            self.ignored += 1
            return None
        kept = [one for one in found.options if not patterns.option(names, one.option)]
        dropped = len(found.options) - len(kept)
        self.ignored += dropped
        found.options = kept
        return dropped > 0


@dataclass(frozen=True)
class DriftScope:
    """The scope of the comparison: the VMs of these tenants, or of all tenants if None.

    `unlisted` is whether to search for VMs that are not in the estate. `cluster` is a cluster file
    as options of module cluster, or None. `networked` are tenants with networks, by site. `counted`
    has a guest of each tenant with a quota over sites.
    """

    tenants: Collection[str] | None
    unlisted: bool
    ignored: IgnorePatterns
    cluster: Mapping[str, Any] | None = None
    networked: Mapping[str, Sequence[Tenant]] = field(default_factory=dict)
    counted: Sequence[Guest] = ()
