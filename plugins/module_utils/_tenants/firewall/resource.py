# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The firewall of one scope as a resource: a step is sent only if its part is as expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..._foundation.core.errors import AlreadyExists, DigestChanged
from ..._foundation.core.result import Result
from ..._foundation.resource.engine import Execution, StepResult, result_of
from ..._foundation.resource.manage import Hooks, Managed
from ..._foundation.resource.plan import Plan, Step
from ..firewall import read
from .model import DesiredFirewall, Firewall, view_of
from .plan import FirewallStep, after_plan, plan_firewall
from .scope import FirewallScope

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


class FirewallOfScope(Managed[Result, Firewall]):
    """The firewall of one scope, with the plan for it."""

    client: Client

    def __init__(
        self,
        client: Client,
        scope: FirewallScope,
        desired: DesiredFirewall,
        actual: Firewall,
        check: Callable[[Firewall, Firewall], tuple[str, ...]],
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self.scope = scope
        self.desired = desired
        self.check = check
        self.look = look  # the request before each write: whether the guest is the same
        hooks = Hooks[Firewall](stale_errors=(DigestChanged, AlreadyExists))
        read_again = partial(read.read_firewall, client, scope, desired)
        super().__init__(client, read_again, self._plan, self._result, hooks, actual)

    def _plan(self, actual: Firewall) -> Plan:
        """Return the plan; `check` refuses unsafe changes, and returns warnings."""
        warnings: tuple[str, ...] = ()
        plan = plan_firewall(self.scope, actual, self.desired)
        if plan.changed:
            warnings = self.check(actual, after_plan(actual, self.desired))
        return replace(plan, warnings=warnings)

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
                f"Could not {step.summary[:1].lower()}{step.summary[1:]}: "
                f"/{'/'.join(str(one) for one in step.part)} was changed since it was read",
                "Run this again when nothing else changes this firewall",
                "changed since",
            )

    def confirm_write(self, step: Step) -> Callable[[], Any]:
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

    def _result(self, plan: Plan, actual: Firewall, execution: Execution | None) -> Result:
        firewall = actual
        if execution is not None:
            firewall = self.read()
        elif plan.changed:
            firewall = after_plan(actual, self.desired)
        values = {"firewall": view_of(self.scope, firewall) if firewall.exists else None}
        return result_of(plan, values, execution, header=self.scope.label)


def _part_of(step: FirewallStep, answer: Any) -> Any:
    """Return the part of the firewall that a step changes."""
    found = _READERS[step.reader](answer)
    return found.get(step.name) if step.name else found


def _takes_digest(step: FirewallStep) -> bool:
    """Return whether PVE accepts a digest: not to create anything, or to remove a set or group."""
    if step.method == "POST":
        return "rename" in step.data
    return not (step.method == "DELETE" and step.reader in ("ipsets", "groups"))
