# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans the rounds of a drill: the place of each copy, and the copies that exist at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.drill.copies import is_marked
from ...._foundation.cluster.state import ClusterState, VmRow
from ...._foundation.core.errors import Conflict, FleetError, NodeUnhealthy, QuotaExceeded
from ...._guests.fleet.plan import reserve
from ...._guests.fleet.reservations import PlanningView
from ...._guests.guest.flow.flow import GuestPlan
from ..choose import ChosenArchive
from ..desired import DesiredRestore
from ..run import context_of
from .record import GuestKey, RestoreProof

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

_NO_ROOM = (QuotaExceeded, NodeUnhealthy)


@dataclass(frozen=True)
class DrillRestore:
    """A guest to restore: its archive, and the restore that makes the copy."""

    chosen: ChosenArchive
    restore: DesiredRestore


@dataclass(frozen=True)
class PlannedCopy:
    """A copy with the node, VMID and storages that it would get now."""

    copying: DrillRestore
    node: str
    vmid: int
    storages: tuple[str, ...]
    plan: GuestPlan[Any] | None = None

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps in words."""
        return tuple(self.plan.plan.summaries) if self.plan is not None else ()


def plan_rounds(
    client: Client, cluster: ClusterState, tasks: Sequence[DrillRestore], copies: int
) -> tuple[list[list[PlannedCopy]], list[tuple[DrillRestore, FleetError]]]:
    """Return the rounds in which the guests are restored, each with at most `copies` copies, and
    the guests that cannot be copied, each with the error.

    Each round begins with the present capacity, because the copies of the previous round are
    removed. A guest that does not fit next to others waits for a later round; a guest that does not
    fit alone is refused. `client` must cache the answers of repeated requests.
    """
    rounds: list[list[PlannedCopy]] = []
    refused: list[tuple[DrillRestore, FleetError]] = []
    queue = list(tasks)
    while queue:
        view = PlanningView(client, cluster)
        planned: list[PlannedCopy] = []
        later: list[DrillRestore] = []
        for task in queue:
            if len(planned) == copies:
                later.append(task)
                continue
            try:
                planned.append(plan_copy(client, view, task))
            except FleetError as error:
                if isinstance(error, _NO_ROOM) and planned:
                    later.append(task)
                else:
                    refused.append((task, error))
        queue = later
        if planned:
            rounds.append(planned)
    return rounds, refused


def plan_copy(client: Client, view: PlanningView, task: DrillRestore) -> PlannedCopy:
    """Return the planned copy, and reserve its capacity in the view. Raises FleetError."""
    kind = task.chosen.kind
    flow, context = context_of(client, task.restore, task.chosen, task.restore.new_name, True)
    context = replace(context, cluster_view=view.of(kind.type))
    cluster = context.cluster_view.now()
    plan: GuestPlan[Any] = flow.plan_missing(context, cluster, cluster)
    if plan.new is None:
        raise Conflict(f"{task.restore.label} was not planned: it exists")
    reserve(view, plan)
    storages = sorted(kind.storages_in(plan.new.after))
    vmid, node = plan.place
    return PlannedCopy(task, node, vmid, tuple(filter(None, storages)), plan)


def choose_due(
    rows: Iterable[VmRow],
    proofs: Mapping[GuestKey, RestoreProof],
    now: float,
    unproven_for: int | None,
    sample: int | None,
) -> list[VmRow]:
    """Return the guests to restore, sorted by VMID, without templates and copies of drills: only
    guests without a proof in the last `unproven_for` seconds, and at most `sample` of them, the
    longest unproven first.
    """
    ages: dict[int, float] = {}
    known: dict[int, VmRow] = {}
    for row in rows:
        if row.template or is_marked(row.tags):
            continue
        proof = proofs.get((row.type, row.vmid, row.own_name))
        age = float("inf") if proof is None else now - proof.time
        if unproven_for is None or age > unproven_for:
            ages[row.vmid], known[row.vmid] = age, row
    oldest_first = sorted(ages, key=lambda vmid: (-ages[vmid], vmid))
    return [known[vmid] for vmid in sorted(oldest_first[:sample])]
