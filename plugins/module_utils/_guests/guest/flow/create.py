# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Creates a planned guest, and tries another VMID or node if another run was faster."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Generic

from ...._foundation.cluster.find.lookup import require_own_guest
from ...._foundation.cluster.find.restoring import is_bare, require_no_restore
from ...._foundation.cluster.find.visible import taken as taken_by_other
from ...._foundation.cluster.state import CREATION_LOCKS, ClusterState, node_of, row_of_listing
from ...._foundation.cluster.storages.allocation import base_storages
from ...._foundation.cluster.tenant import parse_tags
from ...._foundation.core.clock import poll
from ...._foundation.core.errors import (
    Conflict,
    FleetError,
    NotFound,
    PermissionDenied,
    PlaceTaken,
    TaskTimeout,
    UnknownVm,
)
from ...._foundation.resource.engine import StepResult, execute
from ...._foundation.resource.plan import Plan, Step
from ...._foundation.resource.race import RaceRule, resolve_race
from ...kinds.hardware import AnyDesired
from ...kinds.identity import require_name, require_same_creation
from ...kinds.marker import split_notes
from ...kinds.model import Actual, Guest
from ..create.orphan import has_task_failed, remove_orphan, with_fate_of_guest
from ..create.placement_race import (
    NameRule,
    PlacementRule,
    await_visible,
    is_name_contested,
    shared_rules,
)
from ..create.quota_race import QuotaRule, require_quota
from ..create.total_quota import TotalRule
from ..create.vmid_race import AlreadyCreated, VmidRace, is_vmid_lost
from ..live.read import read_wherever
from ..live.steps import GuestSteps, creates
from ..plan.copies import require_own
from ..plan.creation import starts_at_once
from ..plan.intent import Intent
from ..plan.planner import CreationOptions
from ..plan.removal import PURGE
from ..plan.steps import writes_notes_only
from .flow import GuestPlan
from .place import choose_place, place_again
from .reads import GuestReads, usage_for

# How many nodes are tried if other runs take the place first.
_PLACES = 5
# Steps that must run before quota and placement races are checked: they give the VM the figures
# that count against a quota. Later steps start it, or let other runs use it.
_BUILDING = frozenset(("create", "clone", "config", "cloudinit", "resize", "move_disk", "pool"))


def create_guest(
    guest_plan: GuestPlan[AnyDesired], taken: AbstractSet[int], rng: random.Random | None = None
) -> tuple[GuestPlan[AnyDesired], list[str], list[str]]:
    """Create the guest and return its final plan, the finished steps, and warnings.

    If PVE refuses a VMID as taken, the VM with that VMID is read: AlreadyCreated is raised if it is
    the desired VM; otherwise the next VMID is tried. `taken` are the VMIDs that belonged to other
    guests when the plan was made. If another run took the chosen place, the node is chosen again
    from a new reading of the cluster.
    """
    context, cluster_view = guest_plan.context, guest_plan.context.cluster_view
    timeout = context.settings.task_timeout
    race = VmidRace(context.client, context.guest, timeout, taken, rng or random.Random())
    places = 1
    while True:
        guest = CreatedGuest(guest_plan)
        try:
            execution = execute(guest, guest.plan)
            return guest_plan, list(execution.done), list(execution.warnings)
        except Conflict as error:
            can_move = isinstance(error, PlaceTaken) and guest.intent.can_be_placed_again
            vmid = guest.vmid
            if can_move and places < _PLACES:
                places += 1
            elif is_vmid_lost(error):
                vmid = race.next_vmid(vmid, guest.node, cluster_view, error)
            else:
                raise
        intent = replace(guest.intent, vmid=vmid, hidden=race.skipped)
        cluster = cluster_view.now()
        if intent.can_be_placed_again:  # now that the winner of the race is visible
            reads = GuestReads(context.client, guest.facts.known_bridges)
            needs = guest.flow.needs_of(intent, guest.facts)
            intent = replace(intent, choice=choose_place(reads, intent, needs, cluster))
        guest_plan = guest.flow.planned(guest_plan, intent, guest.facts)
        cluster_view.change_vmid(*guest_plan.place)


def confirm(
    guest_plan: GuestPlan[AnyDesired], intent: Intent[AnyDesired], cluster: ClusterState
) -> GuestPlan[AnyDesired]:
    """Confirm a new guest from a newer cluster state; its node is kept if the guest still fits.

    The VMID is kept even if it is already taken: if PVE refuses it, the guest with that VMID is
    read. Raises FleetError if the new guest is no longer possible.
    """
    client, facts, flow = guest_plan.context.client, guest_plan.facts, guest_plan.flow
    if facts is None:
        return guest_plan
    reads = GuestReads(client, facts.known_bridges)
    intent = place_again(reads, intent, flow.needs_of(intent, facts), cluster)
    growth = intent.growth(facts.sizes)
    if growth is not None:
        # The guests of this run are being created now, and count again once they have their tag.
        usage = usage_for(client, intent, facts.sizes, cluster, in_creation=False)
        require_quota(intent.guest, intent.label, growth, usage, cluster)
        facts = replace(facts, usage=usage)
    return flow.planned(guest_plan, intent, facts)


class CreatedGuest(GuestSteps, Generic[AnyDesired]):
    """A guest that is created by its plan.

    Before the guest can be used, the VMs that other runs created at the same time are checked. Its
    marker has the name of the run. Its configuration has the uuid that this run chose, if its kind
    has uuids and it is not a clone.
    """

    def __init__(self, guest_plan: GuestPlan[AnyDesired]) -> None:
        if guest_plan.intent is None or guest_plan.facts is None:
            raise ValueError("the plan creates no guest")
        context, steps = guest_plan.context, guest_plan.plan.steps
        self.flow = guest_plan.flow
        self.kind = self.flow.planner.kind
        self.client = context.client
        # the files were written before
        self.plan = replace(
            guest_plan.plan, steps=tuple(step for step in steps if step.method != "FILE")
        )
        self.timeout = context.settings.task_timeout
        self.intent, self.facts = guest_plan.intent, guest_plan.facts
        self.vmid = self.intent.vmid
        # a clone with local disks is migrated after its creation
        first = self.plan.steps[0]
        self.node = str(first.data.get("target") or first.path[1])
        self.label = f"{self.kind.noun} {self.vmid}"
        self._desired = self.intent.desired.with_guest(
            vmid=self.vmid, node=self.intent.node, reboot="never"
        )
        self._last_read: Actual | None = None  # the VM as last read
        self._cluster_view = context.cluster_view
        self._total = context.total
        self._is_checked = False
        self._is_removed = False  # by this run, because another VM came first

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        # No other run uses the VM yet: it is off until the plan's last step, unless PVE starts it
        # during a live restore.
        is_off = not uncertain and not starts_at_once(self.plan.steps)
        actual = self._read("stopped" if is_off else None)
        run = actual.marker.run
        if self._last_read is None:
            if not self._is_marked(actual.target):
                raise self._is_not_own()
        elif run is not None and run != self.intent.run:
            raise AlreadyCreated  # another run completes the guest because this run was too slow
        else:
            if not self._is_marked(actual.target):
                changes = [step for step in (*self.plan.steps, *done) if not creates(step)]
                written = {option for step in changes for option in step.data}
                require_same_creation(
                    self._last_read.label, self._last_read.identity, actual.identity, written
                )
        self._last_read = actual
        cluster = self.facts.cluster
        return self.flow.planner.plan_update(
            self._desired.with_written({key for one in done for key in one.data}, is_new=True),
            actual,
            shared=cluster.shared_storages,
            creating=CreationOptions(contested=self.intent.contested),
            bases=base_storages(cluster),
        )

    def _read(self, status: str | None) -> Actual:
        pool = self._desired.guest.pool
        actual = read_wherever(
            self.client, self.kind, self.vmid, self.node, status=status, pool=pool
        )
        self.node = actual.node
        return actual

    def send(self, step: Step) -> StepResult:
        try:
            return super().send(step)
        except FleetError as error:
            if not creates(step) or not has_task_failed(error):
                raise
            raise self._without_remainder(error) from error

    def _without_remainder(self, error: FleetError) -> FleetError:
        """Remove the empty VM that a failed restore leaves, and return the error."""
        try:
            removed = remove_orphan(self.client, self.kind, self.vmid, self.node, self.timeout)
        except FleetError:
            label = f"{self.label} on node {self.node}"
            return with_fate_of_guest(error, label, removed=False)
        return with_fate_of_guest(error, "", removed=True) if removed else error

    def confirm_write(self, step: Step) -> Callable[[], Any] | None:
        if not creates(step):
            return None
        return lambda: self._is_created() or None

    def failure(self, error: FleetError, done: Sequence[Step]) -> FleetError:
        """Return the error."""
        if self._is_removed:
            return error
        failure = super().failure(error, done)
        return failure if done else with_pool_hint(failure, self._desired.guest)

    def guard(self, step: Step) -> None:
        source = self.intent.template
        if creates(step) and source is not None:
            self._require_same_source(source)
        if step.action not in _BUILDING or writes_notes_only(step):
            self.resolve_races()

    def _require_same_source(self, known: Actual) -> None:
        """Read the guest to clone right before its clone. Raises Conflict if its VMID was reused,
        or if the tenant may not clone it any more, and BeingRestored if a restore has started.
        """
        current = read_wherever(
            self.client, self.kind, known.vmid, known.node, status=known.status, pool=known.pool
        )
        require_no_restore(current.live, f"{known.label} was not cloned", known.vmid, current.node)
        require_same_creation(known.label, known.identity, current.identity)
        require_name(known.label, current.identity, [known.name])
        of_source = {"vmid": known.vmid, "name": current.name, "template": current.template}
        row = row_of_listing({"type": self.kind.type, "node": current.node, **of_source})
        require_own(self._desired.guest, row, parse_tags(current.target.get("tags")))

    def await_final(self) -> tuple[str, ...]:
        self.resolve_races()
        return ()

    def resolve_races(self) -> None:
        """Resolve the races for name, quota and place with other runs, once.

        The VM has its marker until then: no other run uses it, and it can be removed.
        """
        if self._is_checked:
            return
        self._is_checked = True
        for rule in self._race_rules():
            resolve_race(self.client.clock, rule, self._remove)

    def _race_rules(self) -> Iterator[RaceRule]:
        """Yield the rules that guests of other runs can break at the same time."""
        client, guest, intent = self.client, self.intent.guest, self.intent
        known = frozenset(self.facts.cluster.taken)
        label = f"New {self.kind.noun} '{guest.name or ''}' ({self.vmid}) on node {intent.node}"
        if is_name_contested(guest):
            await_visible(client, intent.hidden, self._cluster_view.seconds_for_names())
            yield NameRule(client, guest, label, self.vmid, known)
        growth = intent.growth(self.facts.sizes)
        if growth is not None:
            siblings = self.facts.siblings
            yield QuotaRule(client, guest, label, self.vmid, growth.more, siblings)
        if growth is not None and self._total is not None:
            yield TotalRule(self._total, guest, label, self.vmid, growth.more)
        rules = shared_rules(guest)
        if rules is not None:
            needs = replace(self.flow.needs_of(intent, self.facts), vmid=self.vmid)
            view, node = self._cluster_view, intent.node
            yield PlacementRule(view, self.kind, rules, needs, node, label, known)

    def _remove(self) -> None:
        """Remove the guest; nothing happens if it is gone.

        Raises AlreadyCreated if another run took it over: it then has the marker of that run, or
        no marker. Raises Conflict if the VMID has been reused.
        """
        try:
            actual = self._read(None)
        except UnknownVm:
            if node_of(self.client, self.vmid) is None:
                self._is_removed = True
                return
            raise
        if actual.marker.run != self.intent.run:
            raise AlreadyCreated
        guest, last_read = self.intent.guest, self._last_read
        tags = parse_tags(actual.target.get("tags"))
        require_own_guest(
            actual.label, tags, guest.tenant_tag, guest.tenant_prefix, unnamed=actual.unnamed
        )
        if last_read is None or actual.identity.uuid != last_read.identity.uuid:
            raise self._is_not_own()
        if actual.running:  # a live restore has started it
            stop = (*actual.path, "status", "stop")
            attempted = f"Could not stop {actual.label}"
            self.client.task("POST", *stop, attempted=attempted, timeout=self.timeout)
        self.client.task(
            "DELETE",
            *actual.path,
            data=dict(PURGE),
            attempted=f"Could not remove {actual.label}",
            timeout=self.timeout,
        )
        self._is_removed = True

    def _is_created(self) -> bool:
        """Wait until the guest is complete; return whether a request with a lost answer created it.

        Raises Conflict if another guest has the VMID, TaskTimeout after the timeout.
        """
        config: Mapping[str, Any] = {}
        path = self.kind.path(self.node, self.vmid, "config")
        for _remaining in poll(self.client.clock, self.timeout, first=1.0, longest=1.0):
            try:
                config = self.client.get(*path)
            except NotFound:
                return False
            if not self._is_in_creation(config):
                break
        self._require_complete(config)
        if not self._is_marked(config):
            raise self._is_not_own()
        return True

    def _is_marked(self, config: Mapping[str, Any]) -> bool:
        """Return whether a configuration has the marker of this run, or the uuid."""
        marker = split_notes(str(config.get("description") or ""))[1]
        if marker.run == self.intent.run:
            return True
        identity = self.kind.identity_in(config, name="", volumes={})
        return bool(identity.uuid) and identity.uuid == self.intent.identity.lower()

    def _is_in_creation(self, config: Mapping[str, Any]) -> bool:
        """Return whether the guest may be a guest that this run is still creating.

        The configuration of a clone has only the lock at first; a VM that is being restored has
        fewer options than any other VM.
        """
        if is_bare(config):
            return True
        lock = config.get("lock")
        return bool(lock) if self._is_marked(config) else lock in CREATION_LOCKS

    def _require_complete(self, config: Mapping[str, Any]) -> None:
        """Raise TaskTimeout for a guest that is still being created."""
        if not self._is_in_creation(config):
            return
        state = "it has neither name nor disks"
        if config.get("lock"):
            state = f"its lock ({config['lock']}) is held for more than {self.timeout} s"
        raise TaskTimeout(
            f"{self.label} is still being made: {state}",
            ("Look at the task list of the node, then run this again: it continues from there"),
            "lock",
        )

    def _is_not_own(self) -> FleetError:
        return taken_by_other(f"{self.label} was not created", "another VM has that number")


def with_pool_hint(error: FleetError, guest: Guest) -> FleetError:
    """Return the refusal of a creation; if it names no privilege, the task usually lacks the pool.

    Proxmox VE requires VM.Allocate on the new VMID or on the pool that the request names.
    """
    is_refusal = isinstance(error, PermissionDenied)
    if not is_refusal or guest.pool or error.details.get("acl_path"):
        return error
    noun = guest.kind.noun
    step = f"Set pool to a pool on which this user or token may create {noun}s (VM.Allocate)"
    return error.on(next_step=f"{step}, or ask for a role with it on /vms")
