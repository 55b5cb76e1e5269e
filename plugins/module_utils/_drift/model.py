# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the report on drift consists of (data). C(docs/drift.schema.json) describes the keys."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from .ignore import Ignored

IN_SYNC = "in_sync"
DRIFTED = "drifted"
PENDING = "pending"
MISSING = "missing"
UNWANTED = "unwanted"
UNKNOWN = "unknown"
STATUSES = (DRIFTED, PENDING, MISSING, UNWANTED, UNKNOWN, IN_SYNC)


@dataclass(frozen=True)
class Difference:
    """One option of a VM that is not as wanted, with values as modules show them.

    `pending` is None, or has as C(value) what applies after the next stop.
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
class Compared:
    """One VM of the estate beside what is there. Site and tenant are empty where there is none."""

    name: str
    tenant: str
    site: str
    vmid: int | None = None
    node: str | None = None
    status: str = UNKNOWN
    reason: str | None = None
    options: list[Difference] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    last_task: dict[str, Any] | None = None


@dataclass
class Unlisted:
    """One VM that the estate does not describe."""

    name: str
    tenant: str
    site: str
    vmid: int
    node: str
    power: str
    last_task: dict[str, Any] | None = None


@dataclass(frozen=True)
class Silent:
    """A node whose VMs cannot be read, and why."""

    site: str
    node: str
    reason: str


@dataclass(frozen=True)
class QuotaUse:
    """How much of a quota is used; memory and disk in bytes."""

    tenant: str
    site: str
    kind: str
    used: int
    limit: int
    exceeded: bool


@dataclass
class Look:
    """One site beside the estate. `reason` is why it is unknown as a whole."""

    site: str
    reason: str | None = None
    vms: list[Compared] = field(default_factory=list)
    unlisted: list[Unlisted] = field(default_factory=list)
    nodes: list[Silent] = field(default_factory=list)
    quotas: list[QuotaUse] = field(default_factory=list)
    ignored: int = 0
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Scope:
    """What is compared: the VMs of these tenants, None for those of all.

    Where `unlisted` is not set, VMs that are not in the estate are not searched.
    """

    tenants: Collection[str] | None
    unlisted: bool
    ignored: Ignored
