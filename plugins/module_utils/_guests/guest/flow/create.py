# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Creates a planned guest, and tries another VMID or node if another run was faster."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.state import ClusterState, node_of, row_of_listing
from ...._foundation.cluster.tenant import parse_tags
from ...._foundation.cluster.view import ClusterView
from ...._foundation.core.errors import (
    Conflict,
    FleetError,
    PermissionDenied,
    PlaceTaken,
    UnknownVm,
)
from ...._foundation.resource.execute import StepResult, execute
from ...._foundation.resource.plan import Plan, Step
from ...._foundation.resource.race import RaceRule, resolve_race
from ...kinds.identity import require_name, require_same_creation
from ...kinds.model import Actual, Guest
from ..context import AnyContext
from ..create.new_guest import NewGuest
from ..create.orphan import has_task_failed, remove_orphan, with_fate_of_guest
from ..create.placement_race import NameRule, PlacementRule, is_name_contested, shared_rules
from ..create.quota_race import QuotaRule
from ..create.vmid_race import AlreadyCreated, VmidRace, is_vmid_lost
from ..live.read import read_wherever
from ..live.steps import GuestSteps, creates
from ..plan.copies import require_own
from ..plan.creation import starts_at_once
from ..plan.planner import CreationOptions
from ..plan.steps import writes_notes_only
from .flow import GuestFlow
from .place import choose_place
from .placed import NumberedGuest, can_be_placed_again
from .reads import GuestReads

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

# How many nodes are tried if other runs take the place first.
_PLACES = 5
# Steps that must run before quota and placement races are checked: they give the VM the figures
# that count against a quota. Later steps start it, or let other runs use it.
_BUILDING = frozenset(("create", "clone", "config", "cloudinit", "resize", "move_disk", "pool"))


def create_guest(
    flow: GuestFlow[AnyContext],
    context: AnyContext,
    vm: NumberedGuest[Any],
    taken: AbstractSet[int],
    rng: random.Random | None = None,
) -> tuple[NumberedGuest[Any], list[str], list[str]]:
    """Create the guest and return it in its final form, the finished steps, and warnings.

    If PVE refuses a VMID as taken, the VM with that VMID is read: AlreadyCreated is raised if it is
    the desired VM; otherwise the next VMID is tried. `taken` are the VMIDs that belonged to other
    guests when the plan was made. If another run took the chosen place, the node is chosen again
    from a new reading of the cluster.
    """
    client, cluster_view = context.client, context.cluster_view
    timeout = context.settings.task_timeout
    race = VmidRace(client, vm.desired.guest, timeout, taken, rng or random.Random())
    places = 1
    while True:
        try:
            execution = execute(CreatedGuest(flow, client, vm, timeout, cluster_view), vm.plan)
            return vm, list(execution.done), list(execution.warnings)
        except Conflict as error:
            can_move = isinstance(error, PlaceTaken) and can_be_placed_again(vm.placed)
            if can_move and places < _PLACES:
                places += 1
            elif is_vmid_lost(error):
                vmid = race.next_vmid(vm.vmid, _first_node(vm), cluster_view, error)
                vm = vm.with_vmid(vmid)
            else:
                raise
        vm = _placed_again(client, vm, cluster_view.now())
        cluster_view.change_vmid(vm.vmid, vm.node)


def _placed_again(client: Client, vm: NumberedGuest, cluster: ClusterState) -> NumberedGuest[Any]:
    """Choose the node again, now that the winner of the race is visible; return the guest."""
    placed = vm.placed
    if not can_be_placed_again(placed):
        return vm
    reads = GuestReads(client, placed.bridges)
    choice = choose_place(reads, placed.blueprint, placed.needs, cluster)
    return vm.on(replace(placed, choice=choice))


def _first_node(vm: NumberedGuest[Any]) -> str:
    """Return the node of the creation; a clone with local disks is migrated afterwards."""
    step = vm.plan.steps[0]
    return str(step.data.get("target") or step.path[1])


class CreatedGuest(GuestSteps):
    """A guest that is created by its plan.

    Before the guest can be used, the VMs that other runs created at the same time are checked.
    """

    def __init__(
        self,
        flow: GuestFlow[Any],
        client: Client,
        vm: NumberedGuest[Any],
        timeout: int,
        cluster_view: ClusterView,
    ) -> None:
        self.flow = flow
        self.kind = flow.planner.kind
        self.put_file = flow.put_file
        self.isolate = flow.isolate
        self.client = client
        self.plan = vm.plan
        self.timeout = timeout
        self._new = vm
        self._desired = vm.desired.with_guest(vmid=vm.vmid, node=vm.node, reboot="never")
        self._node = _first_node(vm)
        self._own = NewGuest(vm.desired.guest, vm.vmid, vm.run, vm.identity)
        self._last_read: Actual | None = None  # the VM as last read
        self._cluster_view = cluster_view
        self._is_checked = False
        self._is_removed = False  # by this run, because another VM came first

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        # No other run uses the VM yet: it is off until the plan's last step, unless PVE starts it
        # during a live restore.
        is_off = not uncertain and not starts_at_once(self.plan.steps)
        actual = self._read("stopped" if is_off else None)
        if self._last_read is None:
            self._own.require_own(actual.target)
        elif self._own.is_taken_over(actual.target):
            raise AlreadyCreated
        else:
            self._require_same(actual, self._last_read, done)
        self._last_read = actual
        return self.flow.planner.plan_update(
            self.flow.during_creation(self._desired, done),
            actual,
            shared=self._new.placed.shared,
            creating=CreationOptions(contested=self._new.placed.contested),
            bases=self._new.placed.bases,
        )

    def _require_same(self, actual: Actual, last_read: Actual, done: Sequence[Step]) -> None:
        """Raise Conflict if the guest was removed and another one has its VMID."""
        if self._own.is_marked(actual.target):
            return
        changes = [step for step in (*self.plan.steps, *done) if not creates(step)]
        written = {option for step in changes for option in step.data}
        require_same_creation(last_read.label, last_read.identity, actual.identity, written)

    def _read(self, status: str | None) -> Actual:
        vmid, pool = self._new.vmid, self._desired.guest.pool
        actual = read_wherever(self.client, self.kind, vmid, self._node, status=status, pool=pool)
        self._node = actual.node
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
            removed = remove_orphan(
                self.client, self.kind, self._new.vmid, self._node, self.timeout
            )
        except FleetError:
            label = f"{self.kind.noun} {self._new.vmid} on node {self._node}"
            return with_fate_of_guest(error, label, removed=False)
        return with_fate_of_guest(error, "", removed=True) if removed else error

    def confirm_write(self, step: Step) -> Callable[[], Any] | None:
        if not creates(step):
            return None
        return lambda: self._own.is_created(self.client, self._node, self.timeout) or None

    def failure(self, error: FleetError, done: Sequence[Step]) -> FleetError:
        """Return the error."""
        if self._is_removed:
            return error
        failure = super().failure(error, done)
        return failure if done else with_pool_hint(failure, self._desired.guest)

    def guard(self, step: Step) -> None:
        source = self._new.placed.blueprint.template
        if creates(step) and source is not None:
            self._require_same_source(source)
        if step.action not in _BUILDING or writes_notes_only(step):
            self.resolve_races()

    def _require_same_source(self, known: Actual) -> None:
        """Read the guest to clone right before its clone. Raises Conflict if its VMID was reused,
        or if the tenant may not clone it any more.
        """
        current = read_wherever(
            self.client, self.kind, known.vmid, known.node, status=known.status, pool=known.pool
        )
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
        for rule in _race_rules(self.client, self._new, self._cluster_view):
            resolve_race(self.client.clock, rule, self._remove)

    def _remove(self) -> None:
        """Remove the guest; nothing happens if it is gone.

        Raises AlreadyCreated if another run took it over: it then has the marker of that run, or
        no marker.
        """
        try:
            actual = self._read(None)
        except UnknownVm:
            if node_of(self.client, self._new.vmid) is None:
                self._is_removed = True
                return
            raise
        if actual.marker.run != self._new.run:
            raise AlreadyCreated
        self._own.remove(self.client, actual, self._last_read, self.timeout)
        self._is_removed = True


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


def _race_rules(client: Client, vm: NumberedGuest, cluster_view: ClusterView) -> Iterator[RaceRule]:
    """Yield the rules that guests of other runs can break at the same time."""
    desired = vm.desired
    label = (
        f"New {desired.guest.kind.noun} '{desired.guest.name or ''}' ({vm.vmid}) on node {vm.node}"
    )
    if is_name_contested(desired.guest):
        yield NameRule(client, desired.guest, label, vm.vmid, vm.placed.known)
    if desired.guest.limits is not None:
        yield QuotaRule(
            client, desired.guest, label, vm.vmid, vm.placed.figures, vm.placed.siblings
        )
    rules = shared_rules(desired.guest)
    if rules is not None:
        needs = replace(vm.placed.needs, vmid=vm.vmid)
        yield PlacementRule(
            cluster_view, desired.guest.kind, rules, needs, vm.node, label, vm.placed.known
        )
