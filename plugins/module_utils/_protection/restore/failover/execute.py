# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Executes a failover: one group after the other in start order, the guests of a group at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...._foundation.cluster.state import ClusterState, VmRow
from ...._foundation.cluster.view import ClusterView
from ...._foundation.core.errors import Conflict, FleetError
from ...._foundation.core.parallel import side_by_side
from ...._guests.guest.flow.apply import apply_plan, with_view
from ...backup.archive import Archive
from ..choose import ChosenArchive
from ..drill.create import CopyResult, DrillContext, prove, restore_copy, restore_into
from ..drill.desired import CopyOrder
from ..run import remove_orphans
from .choose import in_groups
from .desired import DesiredFailover
from .guest import RestoredGuest
from .plan import KEEP, START, FailoverPlan, PlannedRecovery

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


@dataclass(frozen=True)
class FailoverContext:
    """The values for all guests of a run. `find_running` checks again for reasons why guests must
    not be started here. `orphans` are the empty VMs of failed restores.
    """

    desired: DesiredFailover
    orphans: Sequence[VmRow]
    context: DrillContext
    find_running: Callable[[Sequence[ChosenArchive]], list[str]]

    @property
    def client(self) -> Client:
        """The client of this site."""
        return self.context.client


@dataclass
class FailoverResult:
    """The result of each guest in start order, and the finished steps."""

    guests: list[tuple[PlannedRecovery, CopyResult]] = field(default_factory=list)
    done: list[str] = field(default_factory=list)


def context_of(
    client: Client,
    desired: DesiredFailover,
    cluster: ClusterState,
    archives: tuple[Archive, ...],
    now: float,
) -> DrillContext:
    """Return the values that a drill and a failover need for each guest (pure)."""
    return DrillContext(
        client=client,
        cluster=cluster,
        archives=archives,
        options=desired.copies,
        prefix=desired.choice.owner.prefix,
        run=desired.run,
        now=now,
        wait=desired.wait,
        settle=desired.settle,
    )


def empty_result(one: PlannedRecovery) -> CopyResult:
    """Return the result of a guest before its first step (pure)."""
    chosen = one.incoming.chosen
    order = CopyOrder(one.incoming.vmid, chosen.archive.volume)
    return CopyResult(order, chosen, error=one.refusal)


def bring_up_guests(failover: FailoverContext, plan: FailoverPlan) -> FailoverResult:
    """Execute the plan, and return the results. A failed guest does not stop the others."""
    result = FailoverResult()
    timeout = failover.desired.copies.timeout
    result.done += remove_orphans(failover.client, failover.orphans, timeout)
    planned = {one.incoming.vmid: one for one in plan.guests}
    groups = in_groups({vmid: one.incoming.order for vmid, one in planned.items()})
    for index, vmids in enumerate(groups):
        group = [planned[vmid] for vmid in vmids]
        results = _bring_up(failover, group)
        result.guests += list(zip(group, results, strict=True))
        if index + 1 < len(groups):
            # the longest C(up) of the guests that were started (PVE/API2/Nodes.pm, startall)
            started = [one.incoming for one in group if one.incoming.starts and one.action != KEEP]
            failover.client.clock.sleep(max((one.wait for one in started), default=0))
    for _guest, one in result.guests:
        result.done += one.done
    return result


def _bring_up(failover: FailoverContext, group: Sequence[PlannedRecovery]) -> list[CopyResult]:
    """Read the other site again, bring a group up, and return the result of each guest."""
    running: list[str] = []
    acting = [one.incoming.chosen for one in group if one.action != KEEP]
    if acting and not failover.desired.rehearsal:
        running = failover.find_running(acting)

    def bring_up(one: PlannedRecovery) -> CopyResult:
        result = empty_result(one)
        try:
            if running:
                label = one.incoming.label
                raise Conflict(
                    f"{label} was not brought up, nor was any guest of its start order: "
                    f"{'; '.join(running)}",
                    "Stop it there, and run this again",
                    "runs elsewhere",
                )
            _act(failover, one, result)
        except FleetError as error:
            result.error = error
            result.done += error.details.get("done", ())
        return result

    return side_by_side(bring_up, group, failover.desired.parallel)


def _act(failover: FailoverContext, one: PlannedRecovery, result: CopyResult) -> None:
    """Restore or start a guest, and wait until it is up. Raises FleetError."""
    context, incoming = failover.context, one.incoming
    result.guest = {"vmid": one.vmid, "node": one.node, "name": one.name}
    if one.refusal is not None:
        raise one.refusal
    if one.action == KEEP:
        return
    if one.action == START and one.plan is not None:
        view = ClusterView(failover.client, {incoming.chosen.kind.type})
        result.done = list(apply_plan(with_view(one.plan, failover.client, view)).values["done"])
    elif failover.desired.rehearsal:
        restore_copy(context, result, incoming.chosen, False)
    elif isinstance(incoming, RestoredGuest):
        chosen = incoming.chosen
        restore_into(context, result, chosen, incoming.restore, check_mode=False)
    if incoming.starts:
        prove(context, result, incoming.chosen)
