# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""SDN as a transaction: lock, write, apply, check each node, release; roll back on a failure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..._foundation.core.errors import (
    ConfigurationError,
    FleetError,
    Locked,
    Overtaken,
    PendingChanges,
    TaskFailed,
)
from ..._foundation.core.parallel import side_by_side
from ..._foundation.core.poll import poll
from ..._foundation.core.result import Result
from ..._foundation.resource.engine import Resource
from ..._foundation.resource.execute import Execution, StepResult, attempted
from ..._foundation.resource.plan import Plan, Step
from ..._foundation.resource.result import diff_of, result_of
from .forms import view_of
from .model import PENDING_SECTIONS, Sections
from .plan import APPLY, LOCK, RELEASE, ROOT, ObjectStep, object_steps
from .preconditions import HAVE_AUTHOR
from .read import online_nodes, read_configured, read_dry_run, read_sdn, read_status
from .token_file import TokenFile

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

WRONG_TOKEN = "invalid lock token"
HAS_PENDING = "pending changes"
_PENDING = "pending"


class SdnTransaction(Resource[Result]):
    """The objects of SDN that a task changes, with the plan for it."""

    client: Client
    max_replans = 0
    after_failed_read = "Run this again: it completes the change"

    def __init__(
        self, client: Client, running: Sections, after: Sections, plan: Plan, token: TokenFile
    ) -> None:
        self.client = client
        self.running = running
        self.after = after
        self.plan = plan
        self.token_file = token
        self.token = ""
        self.is_applied = False
        self.is_answer_lost = False
        self.dry_run: dict[str, Any] = {}
        self.nodes: dict[str, dict[str, str]] = {}

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        """Return an empty plan, because the transaction is rolled back instead."""
        return Plan()

    # -- steps -----------------------------------------------------------------------------------

    def send(self, step: Step) -> StepResult:
        if step.action == LOCK:
            return self._lock(step)
        if step.action == APPLY:
            return self._apply(step)
        sent = super().send(self._with_token(step))
        if step.action == RELEASE:
            self._forget()
        return sent

    def _with_token(self, step: Step) -> Step:
        if not self.token:
            return step
        return replace(step, data={**step.data, "lock-token": self.token})

    def _lock(self, step: Step) -> StepResult:
        """Take the lock, or take over the lock of an interrupted run of this user."""
        try:
            self.token = str(super().send(step).answer)
        except FleetError as error:
            if HAS_PENDING in error.answer:
                raise PendingChanges(
                    attempted=attempted(step.summary),
                    answer="the configuration has pending changes of others",
                    next_step=HAVE_AUTHOR,
                    reason="pending changes",
                ) from error
            if WRONG_TOKEN not in error.answer:
                raise
            self._take_over(step, error)
        self._keep_token(step)
        self._require_unchanged(step)
        return StepResult()

    def _require_unchanged(self, step: Step) -> None:
        """Raise Conflict if another run applied a change since the plan was made.

        A tag or an ID that the plan chose may be in use now. While this run holds the lock, PVE
        refuses writes of others.
        """
        subnets = bool(self.running["subnets"] or self.after["subnets"])
        running = read_sdn(self.client, subnets=subnets).running
        if any(running[kind] != self.running[kind] for kind in running):
            raise Overtaken(
                attempted=attempted(step.summary),
                answer="another run has changed SDN since the plan was made",
                next_step="Run this again",
                reason="changed since",
            )

    def _keep_token(self, step: Step) -> None:
        try:
            self.token_file.write(self.token)
        except OSError as error:
            raise ConfigurationError(
                attempted=attempted(step.summary),
                answer=f"its token cannot be kept in {self.token_file.path}: {error.strerror}",
                next_step="Set XDG_STATE_HOME to a directory that this user can write to",
                reason="state directory",
            ) from error

    def _take_over(self, step: Step, error: FleetError) -> None:
        """Roll back an interrupted run, and keep its lock. PVE refuses this for a wrong token."""
        self.token = self.token_file.read()
        if not self.token:
            raise locked(attempted(step.summary), self.is_answer_lost) from error
        try:
            self._roll_back_lock(keep=True)
        except FleetError as failure:
            self.token = ""
            raise locked(attempted(step.summary), self.is_answer_lost) from failure

    def _roll_back_lock(self, *, keep: bool) -> None:
        data = {"lock-token": self.token, "release-lock": 0 if keep else 1}
        self.client.write("POST", *ROOT, "rollback", data=data, attempted="Could not roll SDN back")

    def _apply(self, step: Step) -> StepResult:
        if self.token:
            nodes = online_nodes(self.client)
            found = side_by_side(lambda node: read_dry_run(self.client, node), nodes)
            self.dry_run = {node: one for node, one in zip(nodes, found, strict=True) if one}
            step = replace(step, data={"lock-token": self.token, "release-lock": 0})
        try:
            sent = super().send(step)
        except FleetError:
            self.is_applied = self._has_no_pending()
            raise
        self.is_applied = True
        self._await_nodes(step)
        return sent

    def _await_nodes(self, step: Step) -> None:
        """Wait until the zones run on each node. Raises TaskFailed with the nodes that fail."""
        nodes = online_nodes(self.client)

        for _remaining in poll(self.client.clock, self.timeout):
            found = side_by_side(lambda node: read_status(self.client, node), nodes)
            self.nodes = dict(zip(nodes, found, strict=True))
            if not _with_status(self.nodes, _PENDING):
                break
        failing = _with_status(self.nodes, "error") + _with_status(self.nodes, _PENDING)
        if failing:
            raise TaskFailed(
                attempted=attempted(step.summary),
                answer=f"the configuration is applied, and is not in force: {', '.join(failing)}",
                next_step="Read the logs of tasks reloadnetworkall and srvreload, then repeat",
                reason="nodes failed",
                details={"nodes": self.nodes},
            )

    def confirm_write(self, step: Step) -> Callable[[], Any] | None:
        """Return the check after a lost answer, for an object, the apply or the lock."""
        if isinstance(step, ObjectStep):
            return lambda: self._is_configured(step) or None
        if step.action == APPLY:
            return lambda: self._has_no_pending() or None
        return self._note_lost_answer

    def _note_lost_answer(self) -> None:
        """Record that an answer about the lock was lost; Proxmox VE does not show locks."""
        self.is_answer_lost = True

    def _is_configured(self, step: ObjectStep) -> bool:
        origin = self.running.get(step.kind, {}).get(step.name, {})
        found = read_configured(self.client, step.kind, step.result or origin)
        return found.get(step.name) == step.result

    def _has_no_pending(self) -> bool:
        return not read_sdn(self.client, subnets=True).pending

    # -- failures --------------------------------------------------------------------------------

    def roll_back(self, error: FleetError) -> FleetError:
        """Undo the changes of a failed run, and return the error with the result as next step."""
        try:
            done = self._undo()
        except (FleetError, OSError) as failure:
            done = f"It could not be rolled back: {failure}. Run this again"
        return replace_next_step(error, done)

    def _undo(self) -> str:
        if self.is_applied:
            if self.token:
                data = {"lock-token": self.token}
                self.client.write(
                    "DELETE", *ROOT, "lock", data=data, attempted="Could not release the SDN lock"
                )
                self._forget()
            return "The configuration is applied, and the lock is released; run this again"
        if self.token:
            self._roll_back_lock(keep=False)
            self._forget()
            objects = "Zones, VNets, subnets, fabrics and controllers"
            return f"{objects} were rolled back, and are unchanged"
        if any(step.action == LOCK for step in self.plan.steps):
            return "Nothing was changed"
        return self._write_back()

    def _write_back(self) -> str:
        """Write the former objects again, because Proxmox VE before 9 has no rollback."""
        subnets = bool(self.after["subnets"] or self.running["subnets"])
        configured = {}
        for kind in self.running:
            if kind in PENDING_SECTIONS and (kind != "subnets" or subnets):
                configured[kind] = self._configured(kind)
            else:
                configured[kind] = self.running[kind]
        for step in object_steps(configured, self.running):
            super().send(step)
        return "The former objects were written again, and are unchanged"

    def _configured(self, kind: str) -> Mapping[str, Mapping[str, str]]:
        if kind != "subnets":
            return read_configured(self.client, kind, {})
        found: dict[str, Mapping[str, str]] = {}
        for vnet in read_configured(self.client, "vnets", {}):
            found.update(read_configured(self.client, kind, {"vnet": vnet}))
        return found

    def _forget(self) -> None:
        self.token = ""
        self.token_file.remove()

    # -- results ---------------------------------------------------------------------------------

    def preview(self) -> Result:
        sections = self.after if self.plan.changed else self.running
        return result_of(self.plan, self._values(sections), header="SDN")

    def report(self, execution: Execution) -> Result:
        result = result_of(self.plan, self._values(self.after), execution, header="SDN")
        if not self.dry_run:
            return result
        foreseen = {"prepared": "\n".join(_lines(self.dry_run))}
        return replace(result, diff=[diff_of(self.plan, "SDN"), foreseen])

    def _values(self, sections: Sections) -> dict[str, Any]:
        return {"sdn": view_of(sections), "dry_run": self.dry_run, "nodes": self.nodes}


def _with_status(nodes: Mapping[str, Mapping[str, str]], status: str) -> list[str]:
    return [
        f"zone {zone} on {node}"
        for node, zones in nodes.items()
        for zone, one in zones.items()
        if one == status
    ]


def _lines(dry_run: Mapping[str, Mapping[str, str]]) -> list[str]:
    lines = []
    for node, files in dry_run.items():
        for name, text in files.items():
            lines += [f"# {node}: {name}", text.rstrip("\n")]
    return lines


def replace_next_step(error: FleetError, text: str) -> FleetError:
    """Return the error with a sentence about the state before its next step (pure)."""
    next_step = f"{text}. {error.next_step}" if error.next_step else text
    return error.on(next_step=next_step)


def locked(attempted_text: str, is_answer_lost: bool = False) -> Locked:
    """Return the error for a lock of another run.

    Proxmox VE does not show whether its holder is active, so the error does not advise to break it.
    """
    answer = "another run or user is changing SDN, and holds the lock"
    if is_answer_lost:
        answer = "the answer to the request was lost, and the lock may be its own or another one"
    return Locked(
        attempted=attempted_text,
        answer=answer,
        next_step="Run this again when it has ended, or raise lock_timeout; docs/networks.md"
        " explains how to recognize the lock of a run that was killed",
        reason="locked",
    )
