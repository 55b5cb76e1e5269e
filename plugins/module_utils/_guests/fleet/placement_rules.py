# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keeps the affinity of a list with HA rules: O(placement.keep).

The rules are planned before the first guest is written, and again after the last one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.state import ClusterState, VmRow
from ..._foundation.core.errors import FleetError
from ..._foundation.core.result import Result
from ..._infrastructure.datacenter.ha.keep import (
    HaPlan,
    KeptPlacement,
    apply_plans,
    plan_kept,
    read_state,
    require_allowed,
)
from ..._infrastructure.datacenter.ha.placement import GuestPlacement, derive_rules, scope_of
from ..._infrastructure.datacenter.ha.sids import sid_of
from .execute import VmOutcome
from .plan import PlannedGuest, vmids_of

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_RULES_UNCHANGED = "HA rules were not changed, because guests failed"


@dataclass(frozen=True)
class RulesOutcome:
    """The results of the HA rules and resources of a run, warnings, and the error that ended it."""

    results: Sequence[Result] = ()
    warnings: tuple[str, ...] = ()
    error: FleetError | None = None


class PlacementKeeper:
    """Plans and writes the HA rules of the guests whose placement is kept."""

    def __init__(
        self, plans: Sequence[PlannedGuest], cluster: ClusterState, client: Client
    ) -> None:
        self._plans = plans
        self._cluster = cluster
        self._client = client
        self._leaving: set[int] = set()

    def require_possible(self, unwanted: Iterable[PlannedGuest]) -> None:
        """Raise any refusal before the first write. `unwanted` are guests that are removed."""
        for one in unwanted:
            self._leaving |= vmids_of(one)
        require_allowed(self.plan(), self._client)

    def plan(self) -> HaPlan:
        """Return the plan of the HA rules for the guests as planned; empty if none sets C(keep).

        Two requests. Raises FleetError.
        """
        if not keeps_any(self._plans):
            return HaPlan()
        return self._plan(kept_of(self._plans, self._others(), {}))

    def run(self, outcomes: Sequence[VmOutcome], check_mode: bool) -> RulesOutcome:
        """Return the results; nothing is written in check mode or if a guest failed."""
        if not keeps_any(self._plans):
            return RulesOutcome()
        if any(outcome.error is not None for outcome in outcomes):
            return RulesOutcome(warnings=(_RULES_UNCHANGED,))
        try:
            plan = self._plan(kept_of(self._plans, self._others(), _rows_of(outcomes)))
            warnings = (*plan.warnings, *self._local(plan))
            return RulesOutcome(apply_plans(plan, check_mode), warnings)
        except FleetError as error:  # the outcomes of the guests must not be lost
            return RulesOutcome(error=error)

    def _plan(self, placement: KeptPlacement) -> HaPlan:
        placement = replace(placement, nodes=frozenset(self._cluster.nodes))
        state = read_state(self._client, is_required=bool(placement.rules))
        return plan_kept(placement, state, self._client)

    def _others(self) -> list[VmRow]:
        """Return the guests that are not in the list and are not removed."""
        listed = {vmid for one in self._plans for vmid in vmids_of(one)}
        omitted = listed | self._leaving
        return [row for row in self._cluster.guests if row.vmid not in omitted]

    def _local(self, plan: HaPlan) -> list[str]:
        """Return a warning for each new HA resource that cannot start on another node."""
        found: list[str] = []
        for one in self._plans:
            if one.row is None or sid_of(one.row) not in plan.new_resources:
                continue
            storages = local_storages(one, self._cluster)
            if storages:
                found.append(
                    f"{one.item.label} has volumes on {', '.join(storages)}: unless they are"
                    " replicated, the HA manager cannot start it on another node"
                )
        return found


def keeps_any(plans: Iterable[PlannedGuest]) -> bool:
    """Return whether any guest of the list sets C(keep) (pure)."""
    return any(_keep_of(one) is not None for one in plans)


def _keep_of(planned: PlannedGuest) -> bool | None:
    """Return C(keep) of a guest, None if it is not set or the guest is removed."""
    if planned.is_removal:
        return None
    keep: bool | None = planned.item.desired.guest.rules.keep
    return keep


def kept_of(
    plans: Sequence[PlannedGuest], others: Sequence[VmRow], results: Mapping[tuple[str, int], Any]
) -> KeptPlacement:
    """Return the placement to keep (pure).

    `others` are the guests that are not in the list, `results` the results of guests by list and
    index.
    """
    guests: list[GuestPlacement] = []
    rows: list[VmRow] = []
    tags: set[str | None] = set()
    for one in plans:
        if one.row is None:
            continue
        guest = one.item.desired.guest
        result = results.get((one.item.kind.option, one.item.index)) or {}
        vmid = result.get("vmid") or one.row.vmid
        row = replace(one.row, vmid=vmid, status=str(result.get("status") or one.row.status))
        rows.append(row)
        if _keep_of(one) is not None:
            tags.add(guest.tenant_tag)
        if _keep_of(one):
            guests.append(GuestPlacement(row, guest.rules, guest.tenant_tag, guest.tenant_prefix))
    everyone = [*rows, *others]
    return KeptPlacement(
        rules=derive_rules(guests, everyone),
        scope=scope_of(tags),
        listed=frozenset(map(sid_of, rows)),
        known=frozenset(map(sid_of, everyone)),
        running=frozenset(sid_of(row) for row in everyone if row.status == "running"),
        nodes=frozenset(),
    )


def _rows_of(outcomes: Iterable[VmOutcome]) -> dict[tuple[str, int], Any]:
    """Return the guests as their results show them, by list and index."""
    found: dict[tuple[str, int], Any] = {}
    for outcome in outcomes:
        item = outcome.planned.item
        if outcome.result is not None and not item.pruned:
            found[item.kind.option, item.index] = outcome.result.values[item.kind.flow.key]
    return found


def local_storages(planned: PlannedGuest, cluster: ClusterState) -> list[str]:
    """Return the storages of a guest that are not shared (pure)."""
    if planned.vm_plan is None or planned.vm_plan.config is None:
        return []
    local = {row.storage for row in cluster.storages if not row.shared}
    return sorted(local.intersection(planned.item.kind.kind.storages_in(planned.vm_plan.config)))
