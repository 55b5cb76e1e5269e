# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module relocate: guests move to another cluster, one plan for all of them."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.site import require_new_guests
from ..._foundation.core.errors import ConfigurationError, Conflict, FleetError
from ..._foundation.core.failures.problems import RefusalWords, require_none
from ..._foundation.core.parallel import ConcurrencyLimiter, side_by_side
from ..._foundation.core.result import Result
from ..._foundation.resource.engine import apply_plan, require_permitted
from ..._foundation.resource.plan import Plan
from ..._guests.guest.start_order import start_order
from ..._guests.kinds.model import Actual
from ..restore.failover.choose import in_groups
from .decide import RESTORE, SOURCE, TARGET, decide, is_by_archive, is_on_its_way
from .desired import DesiredMoves, read_desired
from .places import (
    FoundSite,
    MovingGuest,
    Places,
    find_guests,
    guest_key,
    read_cluster,
    tenant_name,
)
from .read import read_both, read_identity
from .report import result_of
from .resource import MoveContext, MoveOutcome, Relocation, with_error
from .steps import Destination, SiteStep, arrival_request, plan_step, tunnel_request

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_SOLVE = "Solve these, set archive_storage, or leave guests out with exclude"
_REFUSED = "refused move"
_WORDS = RefusalWords("No guest was moved", _SOLVE, _REFUSED, "not moved")


def sites_of(params: Mapping[str, Any]) -> list[str]:
    """Return the sites of a task: its own, and the site to which guests move."""
    return ["", str(params["to_site"])]


def run(params: Mapping[str, Any], _client: Client, check_mode: bool = False) -> Result:
    """Refuse a task whose two sites are one."""
    raise ConfigurationError(
        f"No guest was {'planned' if check_mode else 'moved'}: site {params['to_site']} is the "
        "site of the guests",
        "Set site to the source, and to_site to another site",
        "same site",
    )


def run_at_sites(
    params: Mapping[str, Any],
    clients: Sequence[tuple[Collection[str], Client]],
    check_mode: bool = False,
) -> Result:
    """Move the guests of the first site to the second one. Raises FleetError with every problem
    before the first write.
    """
    if len(clients) < 2:
        return run(params, clients[0][1], check_mode)
    source, target = clients[0][1], clients[1][1]
    desired = read_desired(params)
    now = int(source.clock.time())
    names = {SOURCE: source.site, TARGET: desired.site}
    sides = {SOURCE: source, TARGET: target}
    listings = {at: read_cluster(client) for at, client in sides.items()}
    identities = {at: read_identity(client, listings[at]) for at, client in sides.items()}
    new_id = os.urandom(6).hex()
    context = MoveContext(sides, names, desired, check_mode, now, new_id, listings, identities)
    context, moves, complete = _plan(context)
    _require_permitted(context, moves)
    if check_mode:
        outcomes = [(one.guest.actual, _preview(one)) for one in moves]
    else:
        outcomes = _execute(context, moves)
    return result_of(context, outcomes, complete, check_mode=check_mode)


def _plan(context: MoveContext) -> tuple[MoveContext, list[Relocation], int]:
    """Return the context with the objects of both sites, the move of each guest in start order, and
    the number of guests whose move was complete before. Raises Conflict with every problem.
    """
    source, target, desired = context.clients[SOURCE], context.clients[TARGET], context.desired
    here, there = context.listings[SOURCE], context.listings[TARGET]
    found = find_guests(
        FoundSite(source, here, context.clusters[SOURCE]),
        FoundSite(target, there, context.clusters[TARGET]),
        desired,
    )
    prefix = desired.filter.owner.prefix
    for vmid in found.sources:
        source.plan_book.note_found(vmid)
    names = {one.actual.label: tenant_name(one.actual, prefix) for one in found.guests}
    require_none(found.problems, _WORDS, names)
    places = Places.read(source, here, target, there, desired)
    objects = {SOURCE: places.facts.objects, TARGET: places.objects}
    storages = (places.facts.rows, places.rows)
    context = replace(context, join=places.join, objects=objects, storages=storages)
    problems = places.find_unknown(here, found.guests)
    guests = sorted(found.guests, key=_order)
    needing = side_by_side(lambda one: _needs_place(context, one), guests)
    if any(needing):
        require_new_guests(target.connection)
    read = [one for one, needs in zip(guests, needing, strict=True) if needs]
    details = dict(zip(map(id, read), side_by_side(places.read_details, read), strict=True))
    chosen: list[tuple[MovingGuest, Destination | None, list[str]]] = []
    for guest in guests:
        destination, found_problems = None, list[str]()
        if id(guest) in details:
            destination, found_problems = places.place(guest, details[id(guest)])
        found_problems += _unconfirmed(desired, guest)
        chosen.append((guest, destination, found_problems))
        if not target.plan_book.digest:  # otherwise, the others of the approved plan are moved
            problems += found_problems
    require_none(problems, _WORDS, names)

    def relocation(choice: tuple[MovingGuest, Destination | None, list[str]]) -> Relocation:
        guest, destination, found_problems = choice
        move = Relocation(context, guest, places.pool_of(guest.actual), destination)
        if found_problems:
            refusal = refusal_of(f"{guest.actual.label} was not moved", found_problems)
            key = guest_key(guest.actual, prefix)
            move.refusal = target.plan_book.explain(refusal, 0, key)
        return move

    return context, side_by_side(relocation, chosen), len(found.complete)


def _order(guest: MovingGuest) -> tuple[int, int]:
    return start_order(guest.actual.target).place, guest.actual.vmid


def _needs_place(context: MoveContext, guest: MovingGuest) -> bool:
    """Return whether a guest is still to be moved: its source is the right side, or an archive is."""
    if context.desired.returns or not guest.at_source:
        return False
    if guest.record is None:
        return not guest.actual.lock
    places = [
        context.lookup(at, vmid) for at, vmid in zip((SOURCE, TARGET), guest.vmids, strict=True)
    ]
    sides = read_both(guest.actual.kind, *places, wait=0)
    here, there = sides.states
    if context.desired.archive_storage and is_by_archive(here):
        return is_on_its_way(there)
    verdict = decide(here, there, handed_over=sides.handed_over)
    return verdict.side == SOURCE and not guest.actual.lock and not sides.busy


def _unconfirmed(desired: DesiredMoves, guest: MovingGuest) -> list[str]:
    """Return why the way back of a guest is refused: it loses the data written since the move."""
    actual = guest.actual
    if not desired.returns or desired.confirmed & {actual.name, *map(str, guest.vmids)}:
        return []
    return [f"{actual.label}: the data that it wrote at the target is lost: name it in confirm"]


def _require_permitted(context: MoveContext, moves: Sequence[Relocation]) -> None:
    """Raise PermissionDenied for the first step that a site would refuse."""
    for at, client in context.clients.items():
        plans: list[tuple[Plan, Mapping[str, Any]]] = []
        for move in moves:
            steps = [one for one in move.plan.steps if isinstance(one, SiteStep) and one.at == at]
            if at == TARGET and move.sides.by_archive is not None:
                steps += plan_step(RESTORE, move.sides)[0]
            elif at == TARGET and move.destination is not None:
                steps.insert(0, tunnel_request(move.guest.actual, move.destination))
                arriving = move.guest.actual.target
                arrival = arrival_request(move.guest.actual, move.destination)
                plans.append(
                    (Plan((arrival,)), {"unprivileged": arriving.get("unprivileged", "0")})
                )
            plans.append((Plan(tuple(steps)), move.guest.actual.target))
        require_permitted(client, plans, f"Give {client.login} the privilege at this site")


def _preview(move: Relocation) -> MoveOutcome:
    if move.refusal is not None:
        return with_error(move, move.refusal)
    move.keep()
    return move.later() if move.waits else move.preview()


def _execute(context: MoveContext, moves: Sequence[Relocation]) -> list[tuple[Actual, MoveOutcome]]:
    """Carry out the moves, one start order after the other. A failed guest does not stop others. A
    guest that is proven leaves the room of its storages to the next one.
    """
    limits, clock = context.desired.limits, context.clients[SOURCE].clock
    limiter = ConcurrencyLimiter(limits, clock.monotonic)

    def move(one: Relocation) -> tuple[Actual, MoveOutcome]:
        try:
            if one.refusal is not None:
                raise one.refusal
            one.begin_transfer(limiter)
            return one.guest.actual, one.later() if one.waits else apply_plan(one, False)
        except FleetError as error:
            return one.guest.actual, with_error(one, error)
        finally:
            one.end_transfer()

    outcomes: list[tuple[Actual, MoveOutcome]] = []
    with closing(limiter):
        for group in in_groups({index: _order(one.guest)[0] for index, one in enumerate(moves)}):
            outcomes += side_by_side(move, [moves[index] for index in group], limits.all)
    return outcomes


def refusal_of(attempted: str, problems: Sequence[str]) -> Conflict:
    """Return the error of one guest with all of its problems (pure)."""
    causes = "; ".join(problems)
    return Conflict(
        f"{attempted}: {causes}", _SOLVE, _REFUSED, details={"problems": list(problems)}
    )
