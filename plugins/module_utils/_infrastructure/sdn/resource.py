# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""SDN as a transaction: lock, write, apply, check each node, release; roll back on a failure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..._foundation.api.tasks import task_log
from ..._foundation.core.clock import poll
from ..._foundation.core.errors import (
    ConfigurationError,
    FleetError,
    Locked,
    Overtaken,
    PendingChanges,
    TaskFailed,
)
from ..._foundation.core.parallel import side_by_side
from ..._foundation.core.result import Result
from ..._foundation.resource.engine import (
    Execution,
    Resource,
    StepResult,
    attempted,
    diff_of,
    result_of,
)
from ..._foundation.resource.plan import Plan, Step
from .forms import view_of
from .model import PENDING_SECTIONS, SUBNETS, VNETS, Sections
from .plan import APPLY, LOCK, RELEASE, ROOT, ObjectStep, object_steps
from .preconditions import HAVE_AUTHOR
from .read import online_nodes, read_configured, read_dry_run, read_sdn, read_status
from .token_file import TokenFile

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

WRONG_TOKEN = "invalid lock token"
HAS_PENDING = "pending changes"
_PENDING = "pending"
_RELOADING = ": reloading network config"
_FAILED_RELOAD = re.compile(r"command '.*pvesh set /nodes/([^/]+)/network.*' failed: (.*)")


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
        if self.token:
            step = replace(step, data={**step.data, "lock-token": self.token})
        sent = super().send(step)
        if step.action == RELEASE:
            self._forget()
        return sent

    def _lock(self, step: Step) -> StepResult:
        """Take the lock, or take over the lock of an interrupted run of this user."""
        try:
            self.token = str(super().send(step).answer)
        except FleetError as error:
            if HAS_PENDING in error.answer:
                raise PendingChanges(
                    f"{attempted(step.summary)}: the configuration has pending changes of others",
                    HAVE_AUTHOR,
                    "pending changes",
                ) from error
            if WRONG_TOKEN not in error.answer:
                raise
            self._take_over(step, error)
        try:
            self.token_file.write(self.token)
        except OSError as error:
            raise ConfigurationError(
                f"{attempted(step.summary)}: its token cannot be kept in {self.token_file.path}: "
                f"{error.strerror}",
                "Set XDG_STATE_HOME to a directory that this user can write to",
                "state directory",
            ) from error
        self._require_unchanged(step)
        return StepResult()

    def _require_unchanged(self, step: Step) -> None:
        """Raise Conflict if another run applied a change since the plan was made.

        A tag or an ID that the plan chose may be in use now. While this run holds the lock, PVE
        refuses writes of others.
        """
        subnets = bool(self.running[SUBNETS] or self.after[SUBNETS])
        running = read_sdn(self.client, subnets=subnets).running
        if any(running[kind] != self.running[kind] for kind in running):
            raise Overtaken(
                f"{attempted(step.summary)}: another run has changed SDN since the plan was made",
                "Run this again",
                "changed since",
            )

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
        causes = failed_reloads(task_log(self.client, sent.answer) if sent.answer else ())
        self._await_nodes(step, causes)
        warnings = [f"Node {node} did not reload its network: {causes[node]}" for node in causes]
        return replace(sent, warnings=(*sent.warnings, *warnings))

    def _await_nodes(self, step: Step, causes: Mapping[str, str]) -> None:
        """Wait until the zones run on each node that reloads its network. Raises TaskFailed with
        the nodes that fail; `causes` are those in the log of the task.
        """
        nodes = online_nodes(self.client)
        failed = [f"node {node} ({causes[node]})" for node in nodes if node in causes]

        for _remaining in poll(self.client.clock, self.timeout):
            found = side_by_side(lambda node: read_status(self.client, node), nodes)
            self.nodes = dict(zip(nodes, found, strict=True))
            reloading = {node: one for node, one in self.nodes.items() if node not in causes}
            if not _with_status(reloading, _PENDING):
                break
        failing = failed + _with_status(self.nodes, "error") + _with_status(self.nodes, _PENDING)
        if failing:
            raise TaskFailed(
                f"{attempted(step.summary)}: the configuration is applied, and is not in force: "
                f"{', '.join(failing)}",
                "Read the logs of tasks reloadnetworkall and srvreload, then repeat",
                "nodes failed",
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
        return error.on(next_step=f"{done}. {error.next_step}" if error.next_step else done)

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
        # Proxmox VE before 9 has no rollback.
        configured = {**self.running}
        for kind in PENDING_SECTIONS:
            if kind in self.running and kind != SUBNETS:
                configured[kind] = read_configured(self.client, kind, {})
        if self.after[SUBNETS] or self.running[SUBNETS]:
            subnets: dict[str, Mapping[str, str]] = {}
            for vnet in read_configured(self.client, VNETS, {}):
                subnets.update(read_configured(self.client, SUBNETS, {"vnet": vnet}))
            configured[SUBNETS] = subnets
        for step in object_steps(configured, self.running):
            super().send(step)
        return "The former objects were written again, and are unchanged"

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
        lines = []
        for node, files in self.dry_run.items():
            for name, text in files.items():
                lines += [f"# {node}: {name}", text.rstrip("\n")]
        foreseen = {"prepared": "\n".join(lines)}
        return replace(result, diff=[diff_of(self.plan, "SDN"), foreseen])

    def _values(self, sections: Sections) -> dict[str, Any]:
        return {"sdn": view_of(sections), "dry_run": self.dry_run, "nodes": self.nodes}


def failed_reloads(log: Iterable[str]) -> dict[str, str]:
    """Return why nodes did not reload their networks, from the log of task reloadnetworkall (pure).

    The task ends with OK nevertheless (pve-network: API2/Network/SDN.pm). A node that could not be
    asked has a line with the command that failed, after the lines that the command printed.
    """
    causes: dict[str, str] = {}
    before: list[str] = []
    for line in log:
        failed = _FAILED_RELOAD.match(line)
        if failed:
            causes[failed[1]] = "; ".join(before) or failed[2]
        before = [] if failed or line.endswith(_RELOADING) else [*before, line.strip()]
    return causes


def _with_status(nodes: Mapping[str, Mapping[str, str]], status: str) -> list[str]:
    return [
        f"zone {zone} on {node}"
        for node, zones in nodes.items()
        for zone, one in zones.items()
        if one == status
    ]


def locked(attempted_text: str, is_answer_lost: bool = False) -> Locked:
    """Return the error for a lock of another run.

    Proxmox VE does not show whether its holder is active, so the error does not advise to break it.
    """
    answer = "another run or user is changing SDN, and holds the lock"
    if is_answer_lost:
        answer = "the answer to the request was lost, and the lock may be its own or another one"
    return Locked(
        f"{attempted_text}: {answer}",
        "Run this again when it has ended, or raise lock_timeout; docs/networks.md"
        " explains how to recognize the lock of a run that was killed",
        "locked",
    )
