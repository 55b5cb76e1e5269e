# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The move of one guest: its plan from a reading of both sides, and its execution."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING

from ..._foundation.api.http.session import starred_error
from ..._foundation.cluster.placement import PlacementNeeds, require_room
from ..._foundation.cluster.rules import PlacementRules
from ..._foundation.cluster.state import ClusterState, fetch_cluster_state
from ..._foundation.core.errors import Conflict, FleetError, NetworkError, TaskTimeout
from ..._foundation.core.parallel import ConcurrencyLimiter, Resource
from ..._foundation.plans.document import PlannedGuest
from ..._foundation.resource.engine import StepResult
from ..._foundation.resource.manage import Hooks, Managed
from ..._foundation.resource.plan import Plan, Step
from ..._guests.kinds.model import Actual
from ..._operation.maintenance.times.windows import remaining
from ..backup.create.guest import cause_in
from ..backup.run_info import KINDS
from ..restore.drill.create import await_up
from .approval import DecideNext, follow, place_of, plan_at, whole_steps
from .archive import ArchivePlace
from .belongings import JOIN, Belongings, JoinOptions, Row, SiteObjects, belongings_of, sid_of
from .decide import (
    BY_ROOT,
    HOLD,
    MOVE,
    PROVE,
    REFUSE,
    RESTORE,
    SOURCE,
    START_SOURCE,
    TARGET,
    SideState,
    Verdict,
    decide,
    decide_return,
)
from .desired import DesiredMoves
from .places import MovingGuest, guest_key, origin_of
from .read import BothSides, Lookup, await_unreplicated, read_both, require_unreplicated, state_of
from .steps import (
    BACK_UP,
    POOL,
    RECORD,
    STOP_SOURCE,
    Destination,
    MoveSide,
    MoveSides,
    RootCommand,
    SiteStep,
    plan_step,
    root_command,
)

if TYPE_CHECKING:
    from ..._foundation.api.client import Client
    from ..._foundation.resource.engine import Execution


_BACKUPS = 2  # of a guest in one run
# The source is locked by another migration, or the target has the VMID (qemu-server: QemuMigrate.pm,
# pve-guest-common: GuestHelpers.pm, guest_migration_lock; pve-cluster: check_vmid_unused).
_RIVAL = re.compile(
    r"is locked \(migrate\)|can't lock file .*pve-migrate-|(?:\d+|config file) already exists"
)


@dataclass(frozen=True)
class MoveContext:
    """The values for all guests of a run: the clients by side, the names, the listings and the
    identities of the sites by side, the ID of new records, the options of the target's objects, the
    objects and the storages of both sites at the start, and the lock of a guest that changes them.
    """

    clients: Mapping[str, Client]
    sites: Mapping[str, str]
    desired: DesiredMoves
    check_mode: bool
    now: int
    new_id: str
    listings: Mapping[str, ClusterState]
    clusters: Mapping[str, str]
    join: JoinOptions = field(default_factory=JoinOptions)
    objects: Mapping[str, SiteObjects] = field(default_factory=dict)
    storages: tuple[Mapping[str, Row], Mapping[str, Row]] = ({}, {})
    joining: Lock = field(default_factory=Lock)

    def lookup(self, at: str, vmid: int) -> Lookup:
        """Return the place of a guest at a site in the listing of the run."""
        row = self.listings[at].guest(vmid)
        node, pool = ("", "") if row is None else (row.node, row.pool or "")
        return Lookup(self.clients[at], self.clusters[at], vmid, node, pool)


@dataclass
class MoveOutcome:
    """The result for one guest: the verdict at its end, and the command that root must give."""

    sides: MoveSides
    verdict: Verdict
    plan: list[str]
    done: list[str] = field(default_factory=list)
    busy: str = ""
    command: RootCommand | None = None
    proof: str | None = None
    error: FleetError | None = None
    waits: bool = False


def _with_rival(error: FleetError) -> FleetError:
    """Return the failure of a migration; the text names another run if that has moved the guest since
    it was read (pure). The lock of a source that was handed over must stay.
    """
    if not any(map(_RIVAL.search, (error.answer, *error.log))):
        return error
    return error.on(
        answer=f"another run or user has moved it since it was read: {error.answer}",
        next_step="Run again: that reads both sites, and continues or has nothing to do",
    )


class Relocation(Managed[MoveOutcome, BothSides]):
    """The move of one guest. Each step is planned from a new reading of both sides."""

    def __init__(
        self, context: MoveContext, guest: MovingGuest, pool: str, destination: Destination | None
    ) -> None:
        self.context = context
        self.guest = guest
        self.pool = pool
        self.destination = destination
        self.proof: str | None = None
        self.refusal: FleetError | None = None
        self.verdict = Verdict(SOURCE, MOVE)
        self._has_room = False
        self._backups = 0
        self._limiter: ConcurrencyLimiter | None = None
        vmids = dict(zip((SOURCE, TARGET), guest.vmids, strict=True))
        if destination is not None:
            vmids[TARGET] = destination.vmid
        self._places = {at: context.lookup(at, vmid) for at, vmid in vmids.items()}
        super().__init__(
            context.clients[SOURCE],
            self._read,
            self._plan,
            self._report,
            Hooks(timeout=context.desired.timeout),
        )

    @property
    def own(self) -> Belongings:
        """The belongings at the source at the start of the run."""
        objects = self.context.objects.get(SOURCE)
        if objects is None or not self.guest.at_source:
            return Belongings()
        return belongings_of(sid_of(self.guest.actual.kind, self.guest.actual.vmid), objects)

    @property
    def archive(self) -> ArchivePlace | None:
        """The storage of its archive, None unless it moves by one now."""
        return None if self.destination is None else self.destination.archive

    @property
    def storages(self) -> frozenset[Resource]:
        """The storages from which and to which the disks of the guest are copied, by site."""
        maps = {} if self.destination is None else self.destination.storages
        pairs = {(SOURCE, name) for name in maps} | {(TARGET, name) for name in maps.values()}
        if self.archive is not None:
            pairs.add((SOURCE, self.archive.here))
        return frozenset(("storage", f"{at} {name}") for at, name in pairs)

    def begin_transfer(self, limiter: ConcurrencyLimiter) -> None:
        """Wait for room at the storages, and take it. Raises TaskTimeout if the run was given up."""
        limiter.enter(self.storages)
        self._limiter = limiter

    def end_transfer(self) -> None:
        """Leave the room at the storages, once."""
        if self._limiter is not None:
            self._limiter.leave(self.storages)
            self._limiter = None

    def _read(self) -> BothSides:
        wait = 0 if self.context.check_mode else self.context.desired.timeout
        places, kind = self._places, self.guest.actual.kind
        both = places[SOURCE], places[TARGET]
        reading = read_both(kind, *both, wait=wait, own=self.own, archive=self.archive)
        for at, actual in ((SOURCE, reading.source), (TARGET, reading.target)):
            if actual is not None:
                places[at] = replace(places[at], node=actual.node, pool=actual.pool or "")
        return reading

    def _plan(self, reading: BothSides) -> Plan:
        """Return the steps until root, the hold time or a refusal ends them; both sides are
        expected to be as each step leaves them.
        """
        self.sides = sides = self._sides_of(reading)
        self.verdict = self._decide(sides, reading.handed_over)
        if reading.busy:
            return Plan()
        steps, self.sides, self.verdict = follow(sides, self._verdict_of(reading))
        return Plan(tuple(steps))

    @property
    def for_approval(self) -> tuple[Plan, PlannedGuest]:
        return self.approval_at(SOURCE)

    def approval_at(self, at: str, *, with_repairs: bool = False) -> tuple[Plan, PlannedGuest]:
        """Return the part of the whole move at one site, from the last reading, and its guest."""
        sides, actual, clients = (
            self._sides_of(self.reading),
            self.guest.actual,
            self.context.clients,
        )
        versions = {key: ".".join(map(str, one.version())) for key, one in clients.items()}
        steps = whole_steps(sides, self._verdict_of(self.reading), with_repairs=with_repairs)
        plan = plan_at(at, steps, sides, versions)
        key = guest_key(actual, self.context.desired.filter.owner.prefix)
        if at == SOURCE:
            return plan, PlannedGuest(*key, sides.source.vmid, sides.source.node)
        room = {} if self.destination is None else self.destination.room
        return plan, PlannedGuest(*key, sides.target.vmid, place_of(sides), room)

    @property
    def waits(self) -> bool:
        """Whether its move would start now, outside of the windows."""
        starts = {step.action for step in self.plan.steps} & {RECORD, MOVE, STOP_SOURCE}
        if not starts or self.destination is None:
            return False
        now = datetime.fromtimestamp(self.client.clock.time())
        return remaining(self.context.desired.windows, now) == 0

    def later(self) -> MoveOutcome:
        """Return the outcome of a move that waits for its window."""
        return replace(self.preview(), plan=[], waits=True)

    def keep(self) -> None:
        """Show the whole move to the plan book of each site."""
        if self.verdict.step != REFUSE and not self.reading.busy:
            for at, client in self.context.clients.items():
                is_new = not client.plan_book.digest  # an approved plan has the repairs
                client.plan_book.keep(*self.approval_at(at, with_repairs=is_new))

    def _verdict_of(self, reading: BothSides) -> DecideNext:
        return lambda sides: self._decide(sides, reading.handed_over)

    def _decide(self, sides: MoveSides, handed_over: bool | None) -> Verdict:
        source, target = sides.source.state, sides.target.state
        is_archived = None if sides.by_archive is None else bool(sides.archived)
        verdict = decide(source, target, handed_over=handed_over, archived=is_archived)
        if self.context.desired.returns:
            verdict = decide_return(source, target, verdict)
        return verdict

    def _sides_of(self, reading: BothSides) -> MoveSides:
        context, kind = self.context, self.guest.actual.kind
        return MoveSides(
            kind=kind,
            source=self._side_of(SOURCE, reading.source, reading.here),
            target=self._side_of(TARGET, reading.target, reading.there),
            origin=origin_of(context.clients[SOURCE]),
            site=context.sites[TARGET],
            pool=self.pool,
            destination=self.destination,
            new_id=context.new_id,
            clusters=".".join(context.clusters[at] for at in (SOURCE, TARGET)),
            now=context.now,
            timeout=context.desired.timeout,
            shutdown_timeout=context.desired.shutdown_timeout,
            join=self.context.join,
            own=self.own,
            archived=reading.archived,
        )

    def _side_of(self, at: str, actual: Actual | None, objects: SiteObjects) -> MoveSide:
        vmid, cluster = self._places[at].vmid, self.context.clusters[at]
        noun, name = self.guest.actual.kind.noun, self.guest.actual.name
        site = self.context.sites[at]
        label = f"{noun} '{name}' ({vmid}){f' at site {site}' if site else ''}"
        if actual is None:
            return MoveSide(SideState(), "", vmid, label, objects=objects)
        pool = actual.pool or ""
        config = dict(actual.target)
        state = state_of(actual, cluster, objects)
        return MoveSide(state, actual.node, vmid, label, config, actual.digest, pool, objects)

    def send(self, step: Step) -> StepResult:
        """Send a step to its site. The migration has the token of the target as a parameter, which
        no error of the source may show.
        """
        self.client = self.context.clients[step.at if isinstance(step, SiteStep) else SOURCE]
        if step.action.startswith(JOIN):
            return self._send_join(step)
        if step.action == BACK_UP:
            self._backups += 1
            require_last_state(self.guest.actual.label, self._backups)
        try:
            result = super().send(step)
        except FleetError as error:
            if step.action == BACK_UP:
                error = error.on(answer=cause_in(error))
                self._start_again(error)
            if step.action == MOVE:
                error = _with_rival(error)
            raise starred_error(error, self.context.clients[TARGET].connection.secrets) from None
        if step.action in (POOL, RESTORE):
            self._places[TARGET] = replace(self._places[TARGET], pool=self.pool)
        if step.action in (MOVE, RESTORE) and self.destination is not None:
            self._places[TARGET] = replace(self._places[TARGET], node=self.destination.node)
            self.end_transfer()
        return result

    def _start_again(self, error: FleetError) -> None:
        """Start the source again after a failed backup: the next run stops it again."""
        if self.sides.record.ran and not isinstance(error, (NetworkError, TaskTimeout)):
            steps, _sides = plan_step(START_SOURCE, self.sides)
            with suppress(FleetError):
                super().send(steps[0])

    def _send_join(self, step: Step) -> StepResult:
        """Send a step that creates an object, planned again from a new reading: other guests join
        the same rules.
        """
        with self.context.joining:
            for one in self.replan((), False).steps:
                if one.action == step.action:
                    return super().send(one)
        return StepResult()

    def guard(self, step: Step) -> None:
        """Raise NotApproved for a step of a guest that differs from its approved plan. Prove
        the guest at the target before it gets its belongings, and before that is recorded. Raises
        GuestNotReady.
        """
        for at, client in self.context.clients.items():
            client.plan_book.agree(*self.approval_at(at))
        if (
            step.action in (RECORD, MOVE, RESTORE)
            and self.destination is not None
            and not self._has_room
        ):
            self._require_room(self.destination)
            self._has_room = True
        if step.action == MOVE and self.own.replicas:
            vmid = self.guest.actual.vmid
            require_unreplicated(vmid, await_unreplicated(self.context.clients[SOURCE], vmid))
        actual = self.reading.target
        is_join = step.action.startswith(JOIN) and isinstance(step, SiteStep) and step.at == TARGET
        if actual is None or self.proof is not None or not (is_join or step.action == PROVE):
            return
        if actual.running:
            desired, client = self.context.desired, self.context.clients[TARGET]
            self.proof = await_up(client, actual, wait=desired.wait, settle=desired.settle)

    def _require_room(self, place: Destination) -> None:
        """Raise QuotaExceeded if the node at the target has too little room now. One request."""
        memory, storages = place.room["memory"], place.room["storages"]
        cluster = fetch_cluster_state(self.context.clients[TARGET], KINDS)
        needs = PlacementNeeds(running_memory=memory, room=storages)
        require_room(cluster, place.node, needs, PlacementRules(), self.guest.actual.label)

    def _report(self, plan: Plan, reading: BothSides, execution: Execution | None) -> MoveOutcome:
        done = [] if execution is None else list(execution.done)
        outcome = MoveOutcome(self.sides, self.verdict, plan.summaries, done, reading.busy)
        outcome.proof = self.proof
        if self._is_due():
            outcome.command = root_command(self.verdict.step, self.sides)
        if self.verdict.step == REFUSE and not reading.busy:
            outcome.error = refused(self.guest.actual.label, self.verdict)
        return outcome

    def _is_due(self) -> bool:
        """Return whether root must do something now: the hold time is a pause for people."""
        if self.verdict.step in BY_ROOT:
            return True
        record = self.sides.target.state.record
        if self.verdict.step != HOLD or record is None:
            return False
        return self.context.now >= record.since + self.context.desired.hold


def require_last_state(label: str, backups: int) -> None:
    """Raise Conflict before a third backup of one run (pure)."""
    if backups <= _BACKUPS:
        return
    raise Conflict(
        f"{label} was not moved: no archive has its last state, although it was backed up: it was "
        "used in between, or the target does not list the archive",
        "Look at its tasks, and run this again; state: returned takes it back",
        "no last state",
    )


def refused(label: str, verdict: Verdict) -> Conflict:
    """Return the error of a guest that nothing is done with (pure)."""
    side = f"the right side is {verdict.side}: " if verdict.side in (SOURCE, TARGET) else ""
    return Conflict(
        f"{label} was not changed: {side}{verdict.why}",
        "See docs/relocation.md, and run this again",
        "unclear move",
    )


def with_error(relocation: Relocation, error: FleetError) -> MoveOutcome:
    """Return the outcome of a guest whose move has failed (pure)."""
    done: Sequence[str] = error.details.get("done", ())
    verdict = replace(relocation.verdict, why=error.message)
    plan = relocation.plan.summaries
    return MoveOutcome(relocation.sides, verdict, plan, list(done), error=error)
