# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a failover of all guests to replicas. It is refused if one guest cannot come up.

If a guest's configuration is on a lost node, C(mv) on another node moves it, because the API cannot
(pve-docs: pvesr.adoc, Migrating a guest in case of Error). A guest that has been moved is started.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ....._foundation.cluster.bridges import KnownBridges
from ....._foundation.cluster.placement import PlacementNeeds, choose_node
from ....._foundation.cluster.state import ClusterState
from ....._foundation.cluster.tenant import tenant_of
from ....._foundation.core.errors import Conflict, FleetError
from ....._foundation.core.failures.problems import require_none
from ....._guests.fleet.reservations import PlanningView
from ....._guests.guest.live.read import read_wherever
from ....._guests.guest.plan.capacity import Capacity
from ....._guests.guest.registry import list_of
from ....._guests.guest.start_order import start_order
from ....._guests.kinds.kind import Kind
from ....._guests.kinds.model import Actual
from ....._guests.kinds.words import VM
from ....._infrastructure.datacenter.ha.sids import KINDS as SID_KINDS
from ...choose import ChosenArchive
from ...guest import storages_by_disk
from ..choose import ChosenGuests, choose, short_names, tags_of
from ..desired import DesiredFailover
from ..guest import RecoveredGuest, find_unused, in_start_order, nameserver_options, starts
from ..mapping import (
    bridges_after,
    is_nic,
    mapped_nameservers,
    mapped_nics,
    nameservers_in,
    nic_options,
)
from ..plan import WORDS, FailoverPlan, PlannedRecovery, plan_present
from .find import LostGuest, ReplicaFacts, chosen_of, find_lost, find_node_problems, why_no_place
from .lines import LostNodes
from .mark import ReplicaMark, guest_of, mark_of, summary_of

if TYPE_CHECKING:
    from ....._foundation.api.client import Client

MOVE = "move"
_DIGITS = 16


@dataclass(frozen=True)
class ReplicaMove:
    """A guest whose configuration is moved, the mark of its job, and the changes of its NICs."""

    guest: LostGuest
    mark: ReplicaMark
    changes: tuple[str, ...]


@dataclass(frozen=True)
class ReplicaPlan:
    """The guests in start order, the moves of configurations, and the jobs of the moved guests by
    VMID.
    """

    plan: FailoverPlan
    moves: tuple[ReplicaMove, ...]
    jobs: Mapping[int, Mapping[str, Any]]


def plan_replicas(
    client: Client,
    desired: DesiredFailover,
    replicas: LostNodes,
    facts: ReplicaFacts,
    cluster: ClusterState,
    *,
    check_mode: bool,
) -> ReplicaPlan:
    """Return the plan. Raises Conflict with every problem."""
    problems = find_node_problems(replicas, facts, cluster, rehearsal=desired.rehearsal)
    lost = {one.vmid: one for one in find_lost(replicas, facts, cluster)}
    moved, jobs = _read_moved(client, replicas, facts, cluster)
    guests = [*(one.chosen for one in lost.values()), *(chosen for chosen, _present in moved)]
    known = {key for row in cluster.guests for key in (str(row.vmid), row.own_name)}
    chosen = _without_managed(choose(guests, desired.choice, known), facts.managed)
    problems += chosen.problems
    if not moved:  # the NICs of a guest that was moved have the new names
        problems += find_unused(desired, guests)
    marks = {vmid: mark_of(job.get("comment")) for vmid, job in jobs.items()}
    view, bridges = PlanningView(client, cluster), KnownBridges(client)
    round_ = _ReplicaPlanning(desired, view, bridges, check_mode, marks)
    present = {actual.vmid: actual for _chosen, actual in moved}
    planned: list[PlannedRecovery] = []
    for incoming in in_start_order([incoming_of(desired, one) for one in chosen.guests]):
        guest = lost.get(incoming.vmid)
        if guest is not None and guest.problem:
            problems.append(f"{incoming.label}: {guest.problem}")
            continue
        one = round_.plan(incoming, guest or present[incoming.vmid])
        if isinstance(one, str):
            problems.append(f"{incoming.label}: {one}")
        else:
            planned.append(one)
    require_none(problems, WORDS, short_names(chosen.guests, desired.choice.owner.prefix))
    moves = tuple(round_.moves)
    writes = [one for one in planned if one.action == MOVE or not moves]
    steps = [step for one in writes for step in one.steps]
    steps += [summary_of(str(jobs[one.vmid]["id"]), None) for one in writes if one.action != MOVE]
    return ReplicaPlan(FailoverPlan(tuple(planned), chosen, tuple(steps)), moves, jobs)


def incoming_of(desired: DesiredFailover, chosen: ChosenArchive) -> RecoveredGuest:
    """Return a guest with its place in the start order (pure)."""
    tenant, _why = tenant_of(tags_of(chosen), desired.choice.owner.prefix)
    order, wait, _down = start_order(chosen.config)
    return RecoveredGuest(chosen, tenant, order, wait, starts(desired, chosen))


def _read_moved(
    client: Client, replicas: LostNodes, facts: ReplicaFacts, cluster: ClusterState
) -> tuple[list[tuple[ChosenArchive, Actual]], dict[int, Mapping[str, Any]]]:
    """Return the guests that were moved, and their jobs by VMID; up to two requests each."""
    moved: list[tuple[ChosenArchive, Actual]] = []
    jobs: dict[int, Mapping[str, Any]] = {}
    for job in facts.jobs:
        mark, row = mark_of(job.get("comment")), cluster.guest(guest_of(job))
        if mark is None or row is None or mark.source not in replicas.lost:
            continue
        if row.node in replicas.lost:
            continue
        kind = list_of(row.type).kind
        actual = read_wherever(client, kind, row.vmid, row.node, pool=row.pool)
        chosen = chosen_of(row.type, row.vmid, actual.target, str(job["id"]), mark.synced)
        moved.append((chosen, actual))
        jobs[row.vmid] = job
    return moved, jobs


def _without_managed(chosen: ChosenGuests, managed: Collection[str]) -> ChosenGuests:
    """Return the choice without guests that the HA manager recovers by itself (pure)."""
    result = ChosenGuests(skipped=list(chosen.skipped), problems=list(chosen.problems))
    for one in chosen.guests:
        if f"{SID_KINDS[one.archive.type]}:{one.archive.vmid}" in managed:
            result.skipped.append((one, "the HA manager recovers it"))
        else:
            result.guests.append(one)
    return result


@dataclass
class _ReplicaPlanning:
    """The planning of all guests; `view` is the cluster with the guests planned so far."""

    desired: DesiredFailover
    view: PlanningView
    bridges: KnownBridges
    check_mode: bool
    marks: Mapping[int, ReplicaMark | None]
    moves: list[ReplicaMove] = field(default_factory=list)

    def plan(self, incoming: RecoveredGuest, guest: LostGuest | Actual) -> PlannedRecovery | str:
        """Return the plan of a guest, or the reason why it cannot come up."""
        try:
            if isinstance(guest, LostGuest):
                return self._move(incoming, guest)
            return self._start(incoming, guest)
        except FleetError as error:
            if isinstance(guest, LostGuest):
                return why_no_place(error, guest.target)
            return error.cause

    def _start(self, incoming: RecoveredGuest, present: Actual) -> PlannedRecovery:
        """Return the plan of a guest that has been moved. Raises FleetError."""
        mark, changes = self.marks.get(incoming.vmid), None
        if mark is not None and not present.running:
            changes = remaining_options(self.desired, incoming.chosen, mark.nics)
        view, check_mode = self.view, self.check_mode
        return plan_present(view, self.desired, incoming, present, changes, check_mode=check_mode)

    def _move(self, incoming: RecoveredGuest, guest: LostGuest) -> PlannedRecovery:
        """Return the plan of a guest on a lost node. Raises FleetError if the node with its replica
        lacks a storage, a bridge, cores or memory.
        """
        chosen, target = guest.chosen, guest.target
        change = change_of(self.desired, chosen)
        kind, figures = chosen.kind, chosen.kind.figures_of(chosen.config)
        memory = figures.memory if incoming.starts else 0
        needs = PlacementNeeds(
            storages=dict.fromkeys(storages_by_disk(kind, chosen.config).values(), kind.content),
            only=frozenset((target,)),
            memory=figures.memory,
            cores=figures.cores,
            cpus=figures.cores if incoming.starts and kind is VM else 0,
            running_memory=memory,
            bridges=frozenset(bridges_after(kind, chosen.config, self.desired.nics)),
            devices=dict.fromkeys(kind.devices_in(chosen.config) if incoming.starts else ()),
            cards=kind.cards_in(chosen.config) if incoming.starts else (),
            vmid=guest.vmid,
        )
        self.bridges.try_read(target)
        cluster = self.view.of(kind.type).now()
        needs = self.bridges.with_cards(self.bridges.with_devices(needs), target, cluster)
        choose_node(cluster, needs, bridges=self.bridges.by_node)
        row = cluster.guest(guest.vmid)
        if row is not None:
            self.view.put(replace(row, node=target, memory=figures.memory))
        self.view.take(Capacity(target, memory))
        mark = ReplicaMark(guest.source, chosen.archive.time, change.after)
        self.moves.append(ReplicaMove(guest, mark, change.words))
        steps: tuple[str, ...] = ()
        if mark_of(guest.comment) != mark:
            steps = (summary_of(guest.job, mark),)
        return PlannedRecovery(incoming, MOVE, guest.vmid, target, chosen.name, steps)


@dataclass(frozen=True)
class NicChange:
    """The options of module vm or container that change the NICs of a guest, the changes in words,
    and the fingerprint of its NICs after the change.
    """

    options: Mapping[str, Any]
    words: tuple[str, ...]
    after: str


def change_of(desired: DesiredFailover, chosen: ChosenArchive) -> NicChange:
    """Return the change of the NICs. Raises Conflict for an address that is not in the table."""
    nics, problems = mapped_nics(chosen.kind, chosen.config, desired.nics)
    if problems:
        raise _refused("; ".join(problems), "Complete the table")
    changed = [nic for nic in nics if nic.keys() - {"name", "mac"}]
    before = _values(chosen.kind, chosen.config)
    after = dict(before)
    for nic in changed:
        after |= {f"{nic['name']} {key}": nic[key] for key in nic.keys() - {"name", "mac"}}
    servers = nameserver_options(desired, chosen)
    if servers:
        mapped = mapped_nameservers(chosen.config, desired.nics.addresses)
        after["nameservers"] = " ".join(mapped)
    options = {**({"nics": changed} if changed else {}), **servers}
    words = [
        f"{key} {before[key]} becomes {value}"
        for key, value in sorted(after.items())
        if before[key] != value
    ]
    return NicChange(options, tuple(words), _fingerprint(after))


def remaining_options(
    desired: DesiredFailover, chosen: ChosenArchive, expected: str
) -> Mapping[str, Any]:
    """Return the options that no earlier run has changed. `expected` is the fingerprint in the mark
    of the guest. Raises Conflict if its NICs or the tables have changed since the mark was written.
    """
    if _fingerprint(_values(chosen.kind, chosen.config)) == expected:
        return {}
    change = change_of(desired, chosen)
    if change.after != expected:
        raise _refused(
            "its NICs, networks or addresses have changed since its job was marked",
            "Change its NICs with module vm or container, start it, and run this again",
        )
    return change.options


def _values(kind: Kind, config: Mapping[str, str]) -> dict[str, str]:
    """Return the bridges, addresses and name servers of a guest."""
    found = {"nameservers": " ".join(nameservers_in(config))}
    for key in filter(is_nic, config):
        options = nic_options(kind, config, key)
        found |= {f"{key} {option}": value for option, value in options.items()}
    return found


def _fingerprint(values: Mapping[str, str]) -> str:
    text = repr(sorted(values.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _refused(why: str, step: str) -> Conflict:
    return Conflict(f"its NICs cannot be mapped: {why}", step, "nics")
