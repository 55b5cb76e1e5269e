# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans the tiers: the guests that start or stop together, by their start order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.find.names import ESTATE_TENANT, TENANT, check_names
from ...._foundation.cluster.find.restoring import find_restored, suspects, with_bare_queried
from ...._foundation.cluster.state import ClusterState, VmRow
from ...._foundation.core.errors import FleetError
from ...._guests.fleet.plan import FleetPlanner, PlannedGuest
from ...._guests.guest.registry import LISTS
from ...._guests.guest.start_order import LAST, start_order
from ...._guests.kinds.model import Actual
from ...._protection.snapshot.select import targets
from ..guests import fingerprint, guest_item
from ..model import STAY, GuestDecision
from .options import ALL, FORCE, STARTED, STOPPED, PowerOptions

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

_BULK_STEPS = frozenset(("start", "shutdown"))


@dataclass(frozen=True)
class OrderedGuest:
    """One guest with its plan. `order` is its place in the start order."""

    row: VmRow
    planned: PlannedGuest
    actual: Actual
    order: int

    @property
    def label(self) -> str:
        """The guest in messages."""
        return f"{self.row.own_name or self.row.type} ({self.row.vmid})"

    @property
    def summaries(self) -> list[str]:
        """The steps of its plan in words."""
        vm_plan = self.planned.vm_plan
        return vm_plan.plan.summaries if vm_plan is not None else []

    @property
    def is_simple(self) -> bool:
        """Whether its plan is the one request that a bulk action sends."""
        vm_plan = self.planned.vm_plan
        steps = vm_plan.plan.steps if vm_plan is not None else ()
        return len(steps) == 1 and steps[0].action in _BULK_STEPS


@dataclass(frozen=True)
class PowerEstate:
    """The guests by tier, in the order of the run, and the guests that cannot be planned.

    `managed` are the VMIDs of HA resources. `warnings` has a sentence about each guest that is
    being restored and may belong to one of the tenants, and about each tenant that does not exist.
    """

    tiers: tuple[tuple[OrderedGuest, ...], ...]
    refused: tuple[GuestDecision, ...]
    managed: frozenset[int]
    warnings: tuple[str, ...] = ()

    @property
    def turns(self) -> list[OrderedGuest]:
        """All guests that change, in the order of the run."""
        return [turn for tier in self.tiers for turn in tier]


def plan_estate(
    client: Client, options: PowerOptions, recorded: Mapping[int, str] | None
) -> PowerEstate:
    """Return the tiers of the guests that are not in the desired state. Nothing is written.

    `recorded` are the guests that an earlier run has stopped, None without a record.
    """
    planner = FleetPlanner(client, False, LISTS)
    missing = _find_missing_tenants(client, options, planner.cluster)
    excluded = _find_excluded(client, options, planner.cluster)
    selected = filter(options.selects, planner.cluster.guests)
    rows = sorted((row for row in selected if row.vmid not in excluded), key=lambda row: row.vmid)
    items = [
        guest_item(row, index, options.limits, _state(options)) for index, row in enumerate(rows)
    ]
    plans = {one.item.desired.guest.vmid: one for one in planner.plan(items)}
    turns: list[OrderedGuest] = []
    refused: list[GuestDecision] = []
    for row in rows:
        planned = plans[row.vmid]
        if planned.error is not None:
            refused.append(GuestDecision(row, STAY, planned.error.message, planned=planned))
        elif planned.changes and planned.actual is not None:
            actual = planned.actual
            turns.append(OrderedGuest(row, planned, actual, start_order(actual.target).place))
    if options.starts:
        turns = [turn for turn in turns if _is_to_start(turn, options, recorded)]
    tiers = tiers_of(turns, backwards=not options.starts)
    restored = find_restored(client, _suspects(client, options, planner.cluster))
    warnings = (*missing, *restored.values())
    return PowerEstate(tiers, tuple(refused), _managed(client), warnings)


def _find_missing_tenants(
    client: Client, options: PowerOptions, cluster: ClusterState
) -> list[str]:
    """Return a sentence about each tenant that does not exist.

    Raises NotFound for the first of them, unless the task skips them and at least one exists.
    """
    given = sorted(options.tenants)
    prefix = options.limits.tenant_prefix
    if options.skips_unknown:
        missing = check_names(client, cluster, {"tenants": (ESTATE_TENANT, given)}, prefix)
        if len(missing) < len(given):
            return missing
    return check_names(client, cluster, {"tenants": (TENANT, given)}, prefix)


def _find_excluded(client: Client, options: PowerOptions, cluster: ClusterState) -> set[int]:
    """Return the VMIDs of the excluded guests. Raises the error of a guest that is not found: a
    misspelt name would exclude nothing. A name that several guests have excludes all of them.
    """
    excluded = list(filter(options.excludes, cluster.guests))
    vmids = {row.vmid for row in excluded}
    known = {str(vmid) for vmid in vmids} | {row.own_name.lower() for row in excluded}
    params = {"vms": sorted(options.exclude - known)}
    for target in targets(client, cluster, params) if params["vms"] else ():
        try:
            vmids.add(target.require_row().vmid)
        except FleetError as error:
            raise error.on(attempted=f"exclude was refused: {error.attempted}") from error
    return vmids


def _suspects(client: Client, options: PowerOptions, cluster: ClusterState) -> list[VmRow]:
    """Return the guests that a restore seems to be writing; they have no tags until it ends."""
    prefix = options.limits.tenant_prefix
    found: dict[int, VmRow] = {}
    for tag in options.tags:
        refreshed = with_bare_queried(client, cluster, tag, prefix)
        found |= {row.vmid: row for row in suspects(refreshed, tag, prefix)}
    return [found[vmid] for vmid in sorted(found)]


def _state(options: PowerOptions) -> dict[str, Any]:
    """Return the options of module vm or container that lead to the state."""
    if options.starts:
        return {"state": STARTED}
    return {"state": STOPPED, "force": options.unresponsive == FORCE}


def _is_to_start(
    turn: OrderedGuest, options: PowerOptions, recorded: Mapping[int, str] | None
) -> bool:
    """Return whether a guest must be started: with a record, if an earlier run stopped the guest;
    without one, if all guests start or the guest starts with its node.
    """
    if recorded is not None:
        mark = recorded.get(turn.row.vmid)
        return mark is not None and mark in ("", fingerprint(turn.actual))
    return options.selection == ALL or turn.actual.target.get("onboot") == "1"


def tiers_of(
    turns: Iterable[OrderedGuest], *, backwards: bool
) -> tuple[tuple[OrderedGuest, ...], ...]:
    """Return the guests with the same place in the start order together (pure)."""
    ordered = sorted(turns, key=lambda turn: (turn.order, turn.row.vmid))
    tiers = [tuple(tier) for _order, tier in groupby(ordered, key=lambda turn: turn.order)]
    return tuple(reversed(tiers)) if backwards else tuple(tiers)


def _managed(client: Client) -> frozenset[int]:
    """Return the VMIDs of HA resources, which the HA manager itself starts and stops."""
    rows = client.direct().get("cluster", "resources", type="vm")
    return frozenset(int(row["vmid"]) for row in rows if row.get("hastate"))


def name_of(tier: Sequence[OrderedGuest]) -> str:
    """Return the name of a tier in messages (pure)."""
    order = tier[0].order
    return "guests without a start order" if order == LAST else f"guests of start order {order}"
