# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the steps of a VM's plan are sent: files, tasks, what the HA manager does, lost answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..._core.errors import (
    AlreadyRunning,
    AlreadyTemplate,
    DigestChanged,
    FleetError,
    HotplugRefused,
    NetworkError,
)
from ..._resource.execute import Managed, Sent, Verdict
from ..._resource.plan import Plan, Step
from .ha import await_manager
from .read import is_elsewhere
from .snippets import put_snippet

if TYPE_CHECKING:
    from ..._api.client import Client
    from ..._api.upid import TaskResult

_CREATES = frozenset(("create", "clone"))


class VmSteps(Managed):
    """A VM whose plan is carried out.

    Where an answer is lost or the VM was changed in between, the rest is planned again.
    """

    client: Client
    plan: Plan
    most_looks = 3

    def send(self, step: Step) -> Sent:
        if step.method != "FILE":
            return super().send(step)
        put_snippet(self.client, step)
        return Sent()

    def ended(self, step: Step, result: TaskResult) -> Sent:
        await_manager(self.client, step, result, self.time_for(step))
        return super().ended(step, result)

    def judge(self, step: Step, error: FleetError) -> Verdict:
        if _needs_look(error) and not creates(step):
            return Verdict.UNKNOWN
        is_refused = isinstance(error, HotplugRefused)
        if is_refused and step.action == "config":
            # PVE has taken the change, but the guest does not let go of the device: it waits for a
            # stop.
            return Verdict.DONE
        return Verdict.FAILED

    def failure(self, error: FleetError, done: Sequence[Step]) -> FleetError:
        """Return the error with what had been done, and whether the VM exists.

        That is null where its creation has started and its end is not known.
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
    """Return whether the step may have happened, or was planned from what is no longer so, such as
    the VM's node.
    """
    if isinstance(error, (AlreadyRunning, AlreadyTemplate, DigestChanged)):
        return True
    if isinstance(error, NetworkError):
        was_sent = error.dispatched is not False
        return was_sent or is_elsewhere(error)
    return is_elsewhere(error)
