# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Makes a VM from its draft, and tries another number or node where another run was faster."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..._cluster.lookup import guard_tenant
from ..._cluster.state import node_of
from ..._cluster.tenant import parse_tags
from ..._cluster.view import ClusterView
from ..._cluster.visible import is_in_use
from ..._core.errors import (
    Conflict,
    FleetError,
    NotFound,
    PermissionDenied,
    PlaceTaken,
    TaskTimeout,
    UnknownVm,
    VmidTaken,
)
from ..._core.poll import poll
from ..._guest.marker import split_notes
from ..._resource.execute import execute
from ..._resource.plan import Plan, Step
from ..._resource.race import Rule, resolve_race
from ..live.making import Identity, identify
from ..live.read import read_wherever
from ..live.steps import VmSteps, creates
from ..model import Actual
from ..plan.steps import writes_notes_only
from ..plan.update import plan_update
from .draft import Draft, can_be_placed_again, numbered, placed_again
from .placement_race import PlacementRule, shared_rules
from .quota_race import QuotaRule

if TYPE_CHECKING:
    from ..._api.client import Client

# How many numbers are tried when others take them first, and how many nodes.
_NUMBERS, _PLACES = 50, 5
# Steps before which a VM is not checked beside those of other runs: they make it what it counts as
# against a quota. What follows starts it, or lets other runs use it.
_BUILDING = frozenset(("create", "clone", "config", "cloudinit", "resize", "move_disk", "pool"))


class AlreadyMade(Exception):
    """Another run has made the VM, or is making it."""


def make_vm(
    client: Client,
    draft: Draft,
    *,
    timeout: int,
    cluster_view: ClusterView,
    taken: AbstractSet[int],
    rng: random.Random | None = None,
) -> tuple[Draft, list[str], list[str]]:
    """Make the VM and return the draft as it was made, what was done, and warnings.

    When PVE refuses a number as taken, the VM that has it is read: if it is the desired one,
    AlreadyMade is raised, else the next number is tried. `taken` are the numbers that belonged to
    other VMs when the plan was made. When another run took the place that was chosen, the node is
    chosen again from a new reading of the cluster.
    """
    race = _NumberRace(client, timeout, taken, rng or random.Random())
    places = 1
    while True:
        try:
            done, warnings = _create_once(client, draft, timeout, cluster_view)
            return draft, done, warnings
        except Conflict as error:
            if _lost_place(error, draft) and places < _PLACES:
                places += 1
            elif _lost_number(error):
                draft = race.next_number(draft, cluster_view, error)
            else:
                raise
        draft = placed_again(client, draft, cluster_view.now())
        cluster_view.claim(draft.vmid, draft.node)


class _NumberRace:
    """The numbers that a new VM has tried, and who has them.

    PVE decides this race itself: it refuses a number that is taken before anything is made, so that
    no guest has to give way, as one does in `resolve_race`.
    """

    def __init__(
        self, client: Client, timeout: int, taken: AbstractSet[int], rng: random.Random
    ) -> None:
        self._client = client
        self._timeout = timeout
        self._taken = taken
        self._rng = rng
        self._lost: set[int] = set()
        self._hidden: set[int] = set()  # seen once as numbers that are in use, with no VM
        self._tries = 0

    def next_number(self, draft: Draft, cluster_view: ClusterView, error: Conflict) -> Draft:
        """Return the draft with the number to try next, after PVE refused the one it has.

        Raises AlreadyMade where the desired VM has it, and the error where no other may be tried.
        """
        self._tries += 1
        vmid, desired = draft.vmid, draft.desired
        found = identify(self._client, desired, vmid, _first_node(draft), self._timeout)
        if found is Identity.MEANT:
            raise AlreadyMade
        if self._tries >= _NUMBERS:
            raise error
        if found is Identity.GONE and not self._is_hidden(vmid):
            return draft
        if desired.vmid is not None:
            raise error
        self._lost.add(vmid)
        numbers = desired.numbers
        # By name, only a number whose VM was read is left out: a new VM may be the desired one.
        taken = self._taken if numbers.by_name else cluster_view.now().taken
        return numbered(draft, numbers.free_after(taken | self._lost, len(self._lost), self._rng))

    def _is_hidden(self, vmid: int) -> bool:
        """Return whether the caller may not see the VM of this number. Else it was removed, and the
        number is asked for again: another run may have made the desired VM with it since then.
        """
        if not is_in_use(self._client, vmid):
            return False
        if vmid in self._hidden:
            return True
        self._hidden.add(vmid)
        return False


def _lost_number(error: Conflict) -> bool:
    """Return whether another VM has the number and nothing was made."""
    return isinstance(error, VmidTaken) and not error.details.get("done")


def _lost_place(error: Conflict, draft: Draft) -> bool:
    """Return whether another run took the place and another node can be chosen."""
    return isinstance(error, PlaceTaken) and can_be_placed_again(draft)


def _first_node(draft: Draft) -> str:
    """Return the node on which PVE makes the VM: a clone with local disks is migrated
    afterwards.
    """
    step = draft.plan.steps[0]
    return str(step.data.get("target") or step.path[1])


def _create_once(
    client: Client, draft: Draft, timeout: int, cluster_view: ClusterView
) -> tuple[list[str], list[str]]:
    new_vm = NewVm(client, draft, timeout, cluster_view)
    execution = execute(new_vm, draft.plan)
    new_vm.check_races()
    return list(execution.done), list(execution.warnings)


class NewVm(VmSteps):
    """A VM that is made from its draft.

    Once it is complete, it is checked beside the VMs that other runs made at the same time.
    """

    def __init__(
        self, client: Client, draft: Draft, timeout: int, cluster_view: ClusterView
    ) -> None:
        self.client = client
        self.plan = draft.plan
        self.timeout = timeout
        self._draft = draft
        self._desired = replace(draft.desired, vmid=draft.vmid, node=draft.node, reboot="never")
        self._node = _first_node(draft)
        self._seen: Actual | None = None  # the VM at the last look
        self._cluster_view = cluster_view
        self._is_checked = False

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        # No other run knows the VM yet: it is off until the plan's last step.
        actual = self._read(None if uncertain else "stopped")
        if self._seen is None:
            _require_ours(self._draft, actual.target)
        elif _is_taken_over(self._draft, actual.target):
            raise AlreadyMade
        self._seen = actual
        # A clone inherits its template's password, which PVE does not show: ours is written once.
        written = any("cipassword" in step.data for step in done)
        desired = replace(self._desired, update_password="on_create" if written else "always")
        return plan_update(
            desired,
            actual,
            shared=self._draft.shared,
            contested=self._draft.contested,
            bases=self._draft.bases,
        )

    def _read(self, status: str | None) -> Actual:
        vmid, pool = self._draft.vmid, self._desired.pool
        actual = read_wherever(self.client, vmid, self._node, status=status, pool=pool)
        self._node = actual.node
        return actual

    def happened(self, step: Step) -> Callable[[], Any] | None:
        if not creates(step):
            return None
        return lambda: _is_ours(self.client, self._draft, self._node, self.timeout) or None

    def failure(self, error: FleetError, done: Sequence[Step]) -> FleetError:
        """Return the error; a refusal that names no privilege is mostly that of the missing pool.

        Proxmox VE wants VM.Allocate on the new number or on the pool that the request names.
        """
        failure = super().failure(error, done)
        otherwise = (done, self._desired.pool, failure.details.get("acl_path"))
        if isinstance(error, PermissionDenied) and not any(otherwise):
            step = "Set pool to a pool on which this user or token may create VMs (VM.Allocate)"
            return failure.on(next_step=f"{step}, or ask for a role with it on /vms")
        return failure

    def before(self, step: Step) -> None:
        if step.action not in _BUILDING or writes_notes_only(step):
            self.check_races()

    def check_races(self) -> None:
        """Check once whether quota and place hold beside the VMs of other runs.

        The VM has its marker until then, so that no other run uses it, and it can give way.
        """
        if self._is_checked:
            return
        self._is_checked = True
        for rule in _race_rules(self.client, self._draft, self._cluster_view):
            resolve_race(self.client.clock, rule, self._remove)

    def _remove(self) -> None:
        """Remove the VM; nothing where it is gone.

        Raises AlreadyMade where another run took it over: it has the marker of that run, or none
        any more.
        """
        try:
            actual = self._read(None)
        except UnknownVm:
            if node_of(self.client, self._draft.vmid) is None:
                return
            raise
        if actual.marker.run != self._draft.run:
            raise AlreadyMade
        _remove(self.client, self._draft, actual, self._seen, self.timeout)


def _race_rules(client: Client, draft: Draft, cluster_view: ClusterView) -> Iterator[Rule]:
    """Yield what VMs that others create at the same time can break."""
    desired = draft.desired
    label = f"New VM '{desired.name or ''}' ({draft.vmid}) on node {draft.node}"
    if desired.limits is not None:
        yield QuotaRule(client, desired, label, draft.vmid, draft.figures, draft.siblings)
    rules = shared_rules(desired)
    if rules is not None:
        needs = replace(draft.needs, vmid=draft.vmid)
        yield PlacementRule(cluster_view, rules, needs, draft.node, label, draft.known)


def _remove(
    client: Client, draft: Draft, actual: Actual, seen: Actual | None, timeout: int
) -> None:
    """Remove the VM that this run made. Raises Conflict where its number has another VM by now."""
    desired = draft.desired
    guard_tenant(
        actual.label,
        parse_tags(actual.target.get("tags")),
        desired.tenant_tag,
        desired.tenant_prefix,
        number=actual.vmid,
    )
    if seen is None or actual.live.get("smbios1") != seen.target.get("smbios1"):
        raise _not_ours(draft.vmid)
    client.task(
        "DELETE",
        *("nodes", actual.node, "qemu", draft.vmid),
        data={"purge": 1, "destroy-unreferenced-disks": 1},
        attempted=f"Could not remove {actual.label}",
        timeout=timeout,
    )


def _is_marked(draft: Draft, config: Mapping[str, object]) -> bool:
    """Return whether a configuration has our run in its notes, or the uuid that we gave the VM."""
    if _marker_run(config) == draft.run:
        return True
    return f"uuid={draft.identity}" in str(config.get("smbios1", ""))


def _marker_run(config: Mapping[str, object]) -> str | None:
    return split_notes(str(config.get("description") or ""))[1].run


def _is_taken_over(draft: Draft, config: Mapping[str, object]) -> bool:
    """Return whether another run completes the VM because this one made no progress for too
    long.
    """
    run = _marker_run(config)
    return run is not None and run != draft.run


def _require_ours(draft: Draft, config: Mapping[str, object]) -> None:
    if not _is_marked(draft, config):
        raise _not_ours(draft.vmid)


def _not_ours(vmid: int) -> FleetError:
    return VmidTaken(
        attempted=f"VM {vmid} was not created",
        answer="another VM has that number",
        next_step="Choose another vmid, or leave it out",
        reason="taken vmid",
    )


def _is_ours(client: Client, draft: Draft, node: str, timeout: int) -> bool:
    """Return whether a create or clone whose answer was lost has made the VM, once it is complete.

    While a clone is being made, its configuration holds the lock only. Raises Conflict where
    another VM has the number.
    """
    lock: object = None
    for _left in poll(client.clock, timeout, first=1.0, longest=1.0):
        try:
            config = client.get("nodes", node, "qemu", draft.vmid, "config")
        except NotFound:
            return False
        ours, lock = _is_marked(draft, config), config.get("lock")
        if ours and not lock:
            return True
        if not ours and lock not in ("clone", "create"):
            raise _not_ours(draft.vmid)
    raise TaskTimeout(
        attempted=f"VM {draft.vmid} is still being made",
        answer=f"its lock ({lock}) is held for more than {timeout} s",
        next_step="Look at the task list of the node, then run this again: it continues from there",
        reason="lock",
    )
