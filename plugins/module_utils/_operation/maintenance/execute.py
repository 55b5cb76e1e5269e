# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sends the moves of a maintenance, waits for the HA manager, switches the flag of Ceph."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..._foundation.cluster.state import fetch_cluster_state
from ..._foundation.core.clock import poll
from ..._foundation.core.errors import FleetError
from ..._foundation.core.parallel import ConcurrencyLimits
from ..._foundation.resource.engine import attempted
from ..._foundation.resource.plan import Plan, Step
from ..._guests.fleet.execute import Executor, VmOutcome
from ..._guests.fleet.reservations import Reservations
from .model import GuestDecision, MaintenanceOptions

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


@dataclass(kw_only=True)
class MaintenanceOutcomes:
    """The finished steps of a run, its warnings, the VMIDs of guests whose plans were carried out,
    and the errors of guests by VMID.
    """

    failed: dict[int, FleetError] = field(default_factory=dict)
    reached: set[int] = field(default_factory=set)
    done: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def note(self, outcome: VmOutcome) -> None:
        """Note the outcome of one guest."""
        vmid = outcome.planned.item.desired.guest.vmid
        if outcome.error is not None:
            self.failed[vmid] = outcome.error
            self.done += outcome.error.details.get("done", ())
        if outcome.result is not None:
            self.reached.add(vmid)
            self.done += outcome.result.values["done"]
            self.warnings += outcome.result.warnings


def execute(
    client: Client, options: MaintenanceOptions, decisions: Collection[GuestDecision]
) -> list[VmOutcome]:
    """Carry out the plans of these decisions side by side, within the limit of the task."""
    plans = [one.planned for one in decisions if one.planned is not None]
    if not plans:
        return []
    reservations = Reservations(client, fetch_cluster_state(client.direct()))
    number = options.parallel
    limits = ConcurrencyLimits(all=number, node=0, storage=0, template=0, read_ahead=number)
    executor = Executor(client, reservations, limits, client.clock.monotonic())
    return executor.execute(plans)


def await_ha(client: Client, options: MaintenanceOptions, vmids: set[int]) -> set[int]:
    """Return the guests that the HA manager has not moved from the node in time."""
    waiting = set(vmids)
    if not waiting:
        return waiting
    for _remaining in poll(client.clock, options.task_timeout, longest=5.0):
        try:
            cluster = fetch_cluster_state(client.direct())
        except FleetError as error:
            if not error.retryable:
                raise
            continue
        waiting &= {
            row.vmid for row in cluster.guests if row.node == options.node or row.lock == "migrate"
        }
        if not waiting:
            break
    return waiting


def noout_plan(is_set: bool) -> Plan:
    """Return the plan that sets or clears the flag noout, with which Ceph does not mark OSDs of an
    offline node out (pure).
    """
    summary = f"{'Set' if is_set else 'Clear'} the flag noout of Ceph"
    data = {"value": 1 if is_set else 0}
    return Plan((Step("noout", summary, "PUT", ("cluster", "ceph", "flags", "noout"), data),))


def set_noout(client: Client, is_set: bool) -> None:
    """Set or clear the flag noout."""
    (step,) = noout_plan(is_set).steps
    client.write(
        step.method,
        *step.path,
        data=step.data,
        attempted=attempted(step.summary),
        confirm=lambda: True if _has_noout(client) is is_set else None,
    )


def _has_noout(client: Client) -> bool:
    rows = client.direct().get("cluster", "ceph", "flags")
    return any(row["name"] == "noout" and bool(row.get("value")) for row in rows or ())
