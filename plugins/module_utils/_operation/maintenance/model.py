# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module evacuation, and the decision about each guest (data)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..._foundation.cluster.state import VmRow
from ..._guests.fleet.plan import PlannedGuest

NEXT, RECORDED, COMPLETE, RETURNED = "next", "recorded", "complete", "returned"
FAIL, LEAVE, SHUTDOWN = "fail", "leave", "shutdown"
# The actions on a guest.
MIGRATE, RESTART, STOP, HA, STAY, START = "migrate", "restart", "shutdown", "ha", "stay", "start"


@dataclass(frozen=True)
class MaintenanceOptions:
    """The options of a task. `rate` is in bytes per second; `windows` are texts."""

    node: str
    state: str
    check_mode: bool = False
    unmovable: str = FAIL
    move_stopped: bool = False
    restart_containers: bool = False
    ha_maintenance: bool = False
    placement: Mapping[str, Any] = field(default_factory=dict)
    tenant_prefix: str = "tenant_"
    parallel: int = 4
    rate: float = 100e6
    extra_votes: int = 0
    windows: tuple[str, ...] = ()
    tenant_windows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    next_node: str = ""
    version: str = ""
    ceph_noout: bool = True
    rebooted: bool = False
    wait_timeout: int = 900
    task_timeout: int = 3600
    shutdown_timeout: int = 180


@dataclass(frozen=True)
class GuestDecision:
    """The action for one guest, and the reason.

    `planned` is the plan of the guest, None if nothing is sent for it. `seconds` is an estimate.
    """

    row: VmRow
    action: str
    why: str
    target: str = ""
    seconds: float = 0.0
    planned: PlannedGuest | None = None

    @property
    def label(self) -> str:
        """The guest in messages."""
        return f"{self.row.own_name or self.row.type} ({self.row.vmid})"

    @property
    def summaries(self) -> list[str]:
        """The steps of its plan in words."""
        vm_plan = None if self.planned is None else self.planned.vm_plan
        return [] if vm_plan is None else vm_plan.plan.summaries

    @property
    def is_stuck(self) -> bool:
        """Whether the guest cannot leave, so that the policy decides about it."""
        return self.action in (STAY, STOP)


@dataclass(frozen=True)
class HaManagerState:
    """The HA manager: states of nodes and resources, and the rules about nodes.

    `no_failback` lists the resources that do not return to a better node. The keys of `together`
    and `places` are IDs of resources. `balances`: the manager moves resources to balance the nodes.
    """

    nodes: Mapping[str, str] = field(default_factory=dict)
    services: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, NodeRule] = field(default_factory=dict)
    together: Mapping[str, frozenset[str]] = field(default_factory=dict)
    no_failback: frozenset[str] = frozenset()
    balances: bool = False

    @property
    def managed(self) -> frozenset[str]:
        """The IDs of the resources that the manager moves."""
        return frozenset(sid for sid, state in self.services.items() if state != "ignored")


@dataclass(frozen=True)
class NodeRule:
    """The nodes of an HA resource with their priorities; `strict` excludes all others."""

    name: str
    nodes: Mapping[str, int]
    strict: bool
