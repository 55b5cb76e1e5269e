# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sends the steps of a VM's plan: files, tasks, waits for the HA manager, lost answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..._core.errors import (
    AlreadyRunning,
    AlreadyTemplate,
    DigestChanged,
    FleetError,
    HotplugRefused,
    NetworkError,
    TaskTimeout,
)
from ..._core.poll import poll
from ..._resource.execute import Sent, Steps, Verdict
from ..._resource.plan import Plan, Step
from ..kind import Kind
from ..plan.isolation import FIREWALL
from .ha import await_manager
from .read import is_elsewhere

if TYPE_CHECKING:
    from ..._api.client import Client
    from ..._api.upid import TaskResult

_CREATES = frozenset(("create", "clone"))


class GuestSteps(Steps):
    """A guest whose plan is carried out.

    If an answer is lost or the guest was changed in between, the rest is planned again.
    """

    kind: Kind
    put_file: Callable[[Client, Step], None]  # carries out a step that writes a file
    isolate: Callable[[Client, Step], None]  # carries out a step that writes a firewall

    client: Client
    plan: Plan
    max_replans = 3

    def send(self, step: Step) -> Sent:
        if step.action == "template" and not step.is_task:
            sent = super().send(step)
            self._await_template(step)
            return sent
        if step.method == FIREWALL:
            self.isolate(self.client, step)
            return Sent()
        if step.method != "FILE":
            return super().send(step)
        self.put_file(self.client, step)
        return Sent()

    def _await_template(self, step: Step) -> None:
        """Wait until a conversion is complete whose task PVE does not name (pve-container:
        API2/LXC.pm, template).
        """
        path = (*step.path[:-1], "config")
        for _left in poll(self.client.clock, self.time_for(step), longest=1.0):
            if str(self.client.get(*path).get("template") or "") == "1":
                return
        raise TaskTimeout(
            attempted=f"Could not {step.summary[0].lower()}{step.summary[1:]}",
            answer=f"it is not a template after {self.time_for(step):g} s",
            next_step="Look at the task list of the node, then run this again",
            reason="task still runs",
        )

    def after_task(self, step: Step, result: TaskResult) -> Sent:
        await_manager(self.client, self.kind, step, result, self.time_for(step))
        return super().after_task(step, result)

    def classify_failure(self, step: Step, error: FleetError) -> Verdict:
        if _needs_look(error) and not creates(step):
            return Verdict.UNKNOWN
        is_refused = isinstance(error, HotplugRefused)
        if is_refused and step.action == "config":
            # PVE has taken the change, but the guest does not let go of the device: it waits for a
            # stop.
            return Verdict.DONE
        return Verdict.FAILED

    def failure(self, error: FleetError, done: Sequence[Step]) -> FleetError:
        """Return the error with the finished steps, and whether the VM exists.

        That is null if its creation has started and its end is not known.
        """
        failure = super().failure(error, done)
        creating = list(filter(creates, self.plan.steps))
        has_created = any(map(creates, done))
        if creating and not has_created:
            return failure
        return failure.on(details={**failure.details, "vm_exists": True})


def creates(step: Step) -> bool:
    """Return whether a step makes the VM."""
    return step.action in _CREATES


def _needs_look(error: FleetError) -> bool:
    """Return whether the step may have happened, or the plan is stale, for example because the VM
    has moved to another node.
    """
    if isinstance(error, (AlreadyRunning, AlreadyTemplate, DigestChanged)):
        return True
    if isinstance(error, NetworkError):
        was_sent = error.dispatched is not False
        return was_sent or is_elsewhere(error)
    return is_elsewhere(error)
