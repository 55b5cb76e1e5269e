# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Existing VMs whose plans are carried out: changed or removed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .._cluster.state import ClusterState, pool_of
from .._core.errors import NotFound
from .._core.result import Result
from .._resource.engine import Resource, apply_plan
from .._resource.execute import Execution
from .._resource.plan import Plan, Step
from .config.actual import identity_of
from .context import RunContext
from .create.quota_race import Growth, check_grown
from .describe import pending_keys
from .live.allocation import base_storages
from .live.find import guard
from .live.read import read_wherever, require_named, require_same, require_untouched
from .live.snippets import current_content, with_snippet
from .live.steps import VmSteps
from .model import Actual
from .plan import power
from .plan.update import plan_absent, plan_update
from .report import report

# What takes a VM from its users: a last look goes before it.
_ENDS = frozenset(("stop", "shutdown", "destroy"))
# The same for a VM that stays: what cannot be undone.
_FINAL = frozenset(("template", "resize"))
# What interrupts a guest, moves it, or gives others rights on it. PVE does it to whatever VM has
# the number: it compares no digest for these (qemu-server: API2/Qemu.pm).
_DISTURBS = frozenset(
    ("stop", "shutdown", "reboot", "reset", "suspend", "migrate", "move_disk", "pool")
)


class ExistingVm(VmSteps, Resource[Result]):
    """An existing VM with its plan."""

    def __init__(self, context: RunContext, plan: Plan, actual: Actual) -> None:
        self.context = context
        self.client = context.client
        self.plan = plan
        self.actual = actual
        self.timeout = context.settings.task_timeout


def apply_to_vm(vm: ExistingVm) -> Result:
    """Carry the plan of an existing VM out and return the result."""
    return apply_plan(vm, vm.context.check_mode)


class ChangedVm(ExistingVm):
    """An existing VM with the plan of its update."""

    def __init__(
        self,
        context: RunContext,
        plan: Plan,
        actual: Actual,
        *,
        cluster: ClusterState,
        images: Mapping[str, int],
        growth: Growth | None,
        written: Collection[str],
    ) -> None:
        super().__init__(context, plan, actual)
        self._cluster = cluster
        self._written = set(written)
        self._moved: set[str] = set()  # slots whose disk is another volume by now
        self._known = actual  # with the disks as a migration has left them
        self._images = images
        self._growth = growth
        self._node = actual.node

    def _read(self, done: Sequence[Step]) -> Actual:
        moved = any(step.action == "pool" for step in done)
        pool = (self.context.desired.pool or None) if moved else self.actual.pool
        current = read_wherever(self.client, self.actual.vmid, self._node, pool=pool)
        self._node = current.node
        guard(self.context.desired, current)
        return current

    def before(self, step: Step) -> None:
        """Look again before a step that cannot be undone or disturbs a guest, unless PVE itself
        compares the digest.
        """
        is_removal = step.action == "config" and "force" in step.data
        is_final = is_removal or step.action in _FINAL
        is_dangerous = is_final or step.action in _DISTURBS
        if not is_dangerous or "digest" in step.data:
            return
        desired, known = self.context.desired, self._known
        current = read_wherever(self.client, known.vmid, self._node, status=known.status)
        guard(desired, current)
        if not is_final:
            require_named(desired, known, current, self._written)
            self._moved.add(str(step.data.get("disk")))
            return
        require_untouched(desired, known, current, self._slots_written_before(step))
        if step.action == "template":  # a base volume has another name
            slots = list(identity_of(known).volumes)
            if "disk" in step.data:
                slots = [step.data["disk"]]
            self._written.update(slots)

    def _slots_written_before(self, step: Step) -> set[str]:
        """Return the options that may be others than in the plan's reading: all that the run
        writes, except a disk that only grows.
        """
        slot = str(step.data.get("disk"))
        is_there = slot in identity_of(self._known).volumes
        if step.action != "resize" or slot in self._moved or not is_there:
            return self._written
        return self._written - {slot}

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        desired = self.context.desired
        if any("cipassword" in step.data for step in done):
            desired = replace(desired, update_password="on_create")
        current = self._read(done)
        require_same(desired, self._known, current, self._written)
        if done and done[-1].action == "migrate":
            self._known = replace(self._known, target=current.target)
        if power.is_stopped_by(self.plan.steps, done, current):
            desired = power.after_stop(desired)
        rest = plan_update(
            desired,
            current,
            shared=self._cluster.shared_storages,
            images=self._images,
            bases=base_storages(self._cluster),
        )
        return with_snippet(
            rest,
            desired.snippet,
            current_content(desired.snippet),
            current,
            desired.node or current.node,
        )

    def happened(self, step: Step) -> Callable[[], Any] | None:
        """Return the look after a lost answer about the pool, which is not in a VM's configuration;
        after any other the plan is made again.
        """
        return self._is_in_pool if step.action == "pool" else None

    def _is_in_pool(self) -> bool | None:
        pool = pool_of(self.client, self.actual.vmid) or ""
        return True if pool == self.context.desired.pool else None

    def preview(self) -> Result:
        return report(self.context, self.plan, self.actual, done=[])

    def report(self, execution: Execution) -> Result:
        desired = self.context.desired
        pool = self.actual.pool if desired.pool is None else desired.pool or None
        final = replace(self._read([]), pool=pool)
        plan = replace(self.plan, pending=tuple(pending_keys(final)))
        done, warnings = list(execution.done), list(execution.warnings)
        result = report(self.context, plan, final, done=done, warnings=warnings)
        if self._growth is not None:
            check_grown(self.client, desired, self.actual, self._growth)
        return result


class RemovedVm(ExistingVm):
    """An existing VM with the plan of its removal."""

    def _look(self, node: str, status: str | None = None) -> Actual:
        """Return the VM as it is. Raises Conflict where it is another one by now."""
        known = self.actual
        current = read_wherever(self.client, known.vmid, node, status=status, pool=known.pool)
        guard(self.context.desired, current)
        require_untouched(self.context.desired, known, current)
        return current

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        """Return what is left to do: nothing once the VM is gone, also when an answer was lost."""
        try:
            return plan_absent(self.context.desired, self._look(self.actual.node))
        except NotFound:
            return Plan()

    def before(self, step: Step) -> None:
        if step.action in _ENDS:  # reading others, and the stop before it, take their time
            self._look(str(step.path[1]), "stopped" if step.action == "destroy" else "running")

    def preview(self) -> Result:
        return report(self.context, self.plan, None, done=[])

    def report(self, execution: Execution) -> Result:
        done, warnings = list(execution.done), list(execution.warnings)
        return report(self.context, self.plan, None, done=done, warnings=warnings)
