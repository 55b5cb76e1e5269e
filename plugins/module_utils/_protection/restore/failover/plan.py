# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a failover of all guests. It is refused as a whole if one guest cannot come up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...._foundation.api.layers.caching import CachingReader
from ...._foundation.cluster.tenant import tenant_tag
from ...._foundation.core.errors import Conflict, FleetError, NotFound
from ...._foundation.core.failures.problems import RefusalWords, require_none
from ...._foundation.core.formatting import first_of
from ...._foundation.spec.fleet import with_defaults
from ...._guests.fleet.plan import reserve
from ...._guests.fleet.reservations import PlanningView
from ...._guests.guest.context import RunContext
from ...._guests.guest.create.orphan import removal_summary
from ...._guests.guest.flow.flow import GuestPlan
from ...._guests.guest.live.creation import has_creation_marker
from ...._guests.guest.registry import list_of
from ...._guests.kinds.model import Actual
from ...._guests.kinds.words import VM
from ..drill.isolate import restore_of
from ..drill.plan import DrillRestore, plan_copy
from ..run import context_of, planner_of, without_orphans
from .choose import EXCLUDED, ChosenGuests, choose, label_of, short_names
from .desired import DesiredFailover
from .guest import (
    RecoveredGuest,
    RestoredGuest,
    find_missing,
    find_unused,
    in_start_order,
    incoming_of,
)
from .read import OtherSite, RecoverySite, find_start_blockers, read_present

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

RESTORE, START, KEEP = "restore", "start", "keep"
WORDS = RefusalWords(
    "No guest was restored or started",
    "Solve these, or leave guests out with exclude",
    "refused failover",
    "not brought up",
)


@dataclass(frozen=True)
class PlannedRecovery:
    """A guest with its action, its place at this site, and the summaries of its steps. `plan` is
    the plan that restores it, or starts a guest that an earlier run restored. `refusal` is why a
    guest of an approved plan does not come up with the others.
    """

    incoming: RecoveredGuest
    action: str
    vmid: int
    node: str
    name: str
    steps: tuple[str, ...] = ()
    plan: GuestPlan[Any] | None = None
    refusal: FleetError | None = None


@dataclass(frozen=True)
class FailoverPlan:
    """The guests in start order, the choice of guests, and the summaries of all steps."""

    guests: tuple[PlannedRecovery, ...]
    chosen: ChosenGuests
    steps: tuple[str, ...]


def plan_failover(
    client: Client,
    desired: DesiredFailover,
    site: RecoverySite,
    other: OtherSite | None,
    *,
    check_mode: bool,
) -> FailoverPlan:
    """Return the plan. Raises Conflict with every problem.

    A rehearsal is planned twice: as a failover, whose problems also refuse the rehearsal, and as
    copies. It may take place while the guests run at the other site.
    """
    chosen = choose(site.found, desired.choice, site.vmids)
    problems = [*site.problems, *site.locked, *chosen.problems]
    if desired.choice.excluded.isdisjoint(site.vmids):  # otherwise some archives are not read
        problems += find_unused(desired, site.found)
    prefix = desired.choice.owner.prefix
    if not desired.rehearsal:
        lost = desired.lost
        problems += find_start_blockers(other, chosen.guests, prefix, lost=lost)
    reader = CachingReader.around(client)
    view = _view(reader, site)
    guests: list[PlannedRecovery] = []
    known, odd = _incoming(desired, site, chosen)
    problems += odd
    for incoming, own in known:
        one, found = _plan_guest(reader, view, desired, incoming, own, check_mode=check_mode)
        if found and client.plan_book.digest:
            tag = tenant_tag(incoming.tenant, prefix) if incoming.tenant else ""
            key = (incoming.chosen.kind.type, tag, incoming.chosen.name)
            answer = client.plan_book.compared("; ".join(found), 0, key)
            one, found = _refused(incoming, answer), []
        problems += found
        guests += [one] if one is not None else []
    if desired.rehearsal and not problems:
        guests, problems = _plan_copies(reader, site, desired, guests)
    if not known and not problems:
        _require_exclusion(desired, site, chosen)
    require_none(problems, WORDS, short_names(chosen.guests, prefix))
    steps = [removal_summary(VM, row.vmid, row.node) for row in site.orphans]
    steps += [step for one in guests for step in one.steps]
    return FailoverPlan(tuple(guests), chosen, tuple(steps))


def _refused(incoming: RestoredGuest, answer: str) -> PlannedRecovery:
    """Return a guest of an approved plan that does not come up; the others do (pure)."""
    refusal = Conflict(
        attempted=f"{incoming.label} was not brought up",
        answer=answer,
        next_step="Plan again, and have the new plan approved",
        reason="not the approved plan",
    )
    name = incoming.chosen.name
    return PlannedRecovery(incoming, KEEP, incoming.vmid, "", name, refusal=refusal)


def _require_exclusion(desired: DesiredFailover, site: RecoverySite, chosen: ChosenGuests) -> None:
    """Raise NotFound for a plan without guests, unless the task excludes all of them (pure)."""
    left = [f"{label_of(one)}: {reason}" for one, reason in chosen.skipped if reason != EXCLUDED]
    if not left and (chosen.skipped or not desired.choice.excluded.isdisjoint(site.vmids)):
        return
    storages = ", ".join(desired.storages)
    cause = first_of(left, 20) or f"no archive of a guest is visible on {storages}"
    raise NotFound(
        f"No guest was restored or started: {cause}",
        "Check storages and max_age, and that the login may read the archives",
        "no archive",
    )


def _view(client: Client, site: RecoverySite) -> PlanningView:
    return PlanningView(client, without_orphans(site.cluster, site.orphans))


def _incoming(
    desired: DesiredFailover, site: RecoverySite, chosen: ChosenGuests
) -> tuple[list[tuple[RestoredGuest, list[str]]], list[str]]:
    """Return the guests in start order, each with the problems of its configuration, and problems
    of guests that modules vm and container cannot describe, such as guests without a name (pure).
    """
    problems: dict[int, list[str]] = {}
    guests: list[RestoredGuest] = []
    odd: list[str] = []
    for one in chosen.guests:
        try:
            incoming, own = incoming_of(desired, one, site.pools)
        except FleetError as error:
            odd.append(f"{label_of(one)}: {error.cause}")
            continue
        guests.append(incoming)
        problems[incoming.vmid] = own + find_missing(desired, one, site.place)
    return [(one, problems[one.vmid]) for one in in_start_order(guests)], odd


def _plan_guest(
    client: Client,
    view: PlanningView,
    desired: DesiredFailover,
    incoming: RestoredGuest,
    own: Sequence[str],
    *,
    check_mode: bool,
) -> tuple[PlannedRecovery | None, list[str]]:
    """Return the plan of a guest, whose capacity is reserved in the view, or its problems."""
    cluster = view.of(incoming.chosen.kind.type).now()
    present, problems = read_present(client, cluster, incoming, renumbers=desired.renumbers)
    problems = [*own, *problems]
    if problems:
        return None, problems
    chosen, restore = incoming.chosen, incoming.restore
    try:
        if present is not None and not has_creation_marker(present):
            return plan_present(view, desired, incoming, present, check_mode=check_mode), []
        flow, context = context_of(client, restore, chosen, restore.new_name, check_mode)
        context = replace(context, cluster_view=view.of(chosen.kind.type))
        plan = planner_of(flow, chosen)(context, context.cluster_view.now())
        reserve(view, plan)
        steps = tuple(plan.plan.summaries)
        return PlannedRecovery(incoming, RESTORE, *plan.place, chosen.name, steps, plan), []
    except FleetError as error:
        return None, [f"{incoming.label}: {error.cause}"]


def plan_present(
    view: PlanningView,
    desired: DesiredFailover,
    incoming: RecoveredGuest,
    present: Actual,
    changes: Mapping[str, Any] | None = None,
    *,
    check_mode: bool,
) -> PlannedRecovery:
    """Return the plan of a guest that an earlier run restored or moved. Its options are changed,
    and it is started if it must run. A running guest is not changed. Raises FleetError.
    """
    place = (present.vmid, present.node, present.name)
    if present.running or not (incoming.starts or changes):
        return PlannedRecovery(incoming, KEEP, *place)
    of = list_of(present.kind.type)
    wanted = {
        "vmid": present.vmid,
        "state": "started" if incoming.starts else "present",
        "tenant": incoming.tenant,
        "tenant_prefix": desired.choice.owner.prefix,
        "task_timeout": desired.copies.timeout,
        **(changes or {}),
    }
    options = of.read(with_defaults(of.specs.whole, wanted))
    kind_view = view.of(present.kind.type)
    client, desired_guest, settings = kind_view.client, options.desired, options.settings
    context: RunContext[Any] = RunContext(client, desired_guest, settings, check_mode, kind_view)
    plan = of.flow.plan(of.flow.ready(context), kind_view.now())
    reserve(view, plan)
    return PlannedRecovery(incoming, START, *place, tuple(plan.plan.summaries), plan)


def _plan_copies(
    client: Client, site: RecoverySite, desired: DesiredFailover, guests: Iterable[PlannedRecovery]
) -> tuple[list[PlannedRecovery], list[str]]:
    """Return the isolated copies of the guests, and the problems; all copies exist at once."""
    view = _view(client, site)
    copies: list[PlannedRecovery] = []
    problems: list[str] = []
    now, prefix = client.clock.time(), desired.choice.owner.prefix
    for one in guests:
        incoming = one.incoming
        restore = restore_of(desired.copies, incoming.chosen, prefix, desired.run, now)
        incoming = RestoredGuest(
            incoming.chosen, incoming.tenant, incoming.order, incoming.wait, True, restore
        )
        try:
            copy = plan_copy(client, view, DrillRestore(incoming.chosen, restore))
        except FleetError as error:
            problems.append(f"copy of {incoming.label}: {error.cause}")
            continue
        place = (copy.vmid, copy.node, restore.new_name)
        copies.append(PlannedRecovery(incoming, RESTORE, *place, copy.steps, copy.plan))
    return copies, problems
