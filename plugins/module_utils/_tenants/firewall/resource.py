# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The firewall of one scope as a resource: a step is sent only if its part is as expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..._foundation.core.errors import AlreadyExists, DigestChanged
from ..._foundation.core.result import Result
from ..._foundation.resource.engine import Resource
from ..._foundation.resource.execute import Execution, StepResult
from ..._foundation.resource.plan import Plan, Step
from ..._foundation.resource.result import result_of
from ..firewall import read
from .model import DesiredFirewall, Firewall
from .plan import FirewallStep, after_plan, plan_firewall
from .scope import FirewallScope
from .view import view_of

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_READERS: Mapping[str, Callable[[Any], Any]] = {
    "rules": read.rules_of,
    "options": read.options_of,
    "aliases": read.aliases_of,
    "ipsets": read.sets_of,
    "members": read.members_of,
    "groups": read.groups_of,
}


class FirewallOfScope(Resource[Result]):
    """The firewall of one scope, with the plan for it."""

    client: Client
    stale_errors = (DigestChanged, AlreadyExists)

    def __init__(
        self,
        client: Client,
        scope: FirewallScope,
        desired: DesiredFirewall,
        actual: Firewall,
        check: Callable[[Firewall, Firewall], tuple[str, ...]],
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self.client = client
        self.scope = scope
        self.desired = desired
        self.check = check
        self.look = look  # the request before each write: whether the guest is the same
        self.actual = actual
        self.plan = self._plan(actual)

    def _plan(self, actual: Firewall) -> Plan:
        """Return the plan; `check` refuses unsafe changes, and returns warnings."""
        warnings: tuple[str, ...] = ()
        plan = plan_firewall(self.scope, actual, self.desired)
        if plan.changed:
            warnings = self.check(actual, after_plan(actual, self.desired))
        return replace(plan, warnings=warnings)

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        return self._plan(read.read_firewall(self.client, self.scope, self.desired))

    def send(self, step: Step) -> StepResult:
        if not isinstance(step, FirewallStep):
            return super().send(step)
        answer = self.client.get(*step.part)
        self._require_expected(step, _part_of(step, answer))
        first = answer
        if isinstance(answer, list):
            first = answer[0] if answer else {}
        digest = str(first.get("digest") or "")
        if digest and _takes_digest(step):
            step = replace(step, data={**step.data, "digest": digest})
        self.look()
        return super().send(step)

    def _require_expected(self, step: FirewallStep, found: Any) -> None:
        """Raise DigestChanged if another run has changed the part."""
        if found != step.expected:
            raise DigestChanged(
                attempted=f"Could not {step.summary[:1].lower()}{step.summary[1:]}",
                answer=f"/{'/'.join(str(one) for one in step.part)} was changed since it was read",
                next_step="Run this again when nothing else changes this firewall",
                reason="changed since",
            )

    def confirm_write(self, step: Step) -> Callable[[], Any] | None:
        """Return the check after a lost answer, which returns True if the step was carried out."""
        if not isinstance(step, FirewallStep):
            return lambda: None

        def confirm() -> Any:
            found = _part_of(step, self.client.get(*step.part))
            if found == step.result:
                return True
            self._require_expected(step, found)
            return None

        return confirm

    def preview(self) -> Result:
        after = after_plan(self.actual, self.desired)
        firewall = after if self.plan.changed else self.actual
        return self._result(firewall)

    def report(self, execution: Execution) -> Result:
        final = read.read_firewall(self.client, self.scope, self.desired)
        return self._result(final, execution)

    def _result(self, firewall: Firewall, execution: Execution | None = None) -> Result:
        values = {"firewall": view_of(self.scope, firewall) if firewall.exists else None}
        return result_of(self.plan, values, execution, header=self.scope.label)


def _part_of(step: FirewallStep, answer: Any) -> Any:
    """Return the part of the firewall that a step changes."""
    found = _READERS[step.reader](answer)
    return found.get(step.name) if step.name else found


def _takes_digest(step: FirewallStep) -> bool:
    """Return whether PVE accepts a digest: not to create anything, or to remove a set or group."""
    if step.method == "POST":
        return "rename" in step.data
    return not (step.method == "DELETE" and step.reader in ("ipsets", "groups"))
