# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of modules node_network and node_network_info."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ...._foundation.core import validate
from ...._foundation.core.clock import poll
from ...._foundation.core.errors import (
    Conflict,
    FleetError,
    NetworkError,
    NodeUnhealthy,
    NodeUnreachable,
    TaskTimeout,
)
from ...._foundation.core.result import Result
from ...._foundation.resource.engine import (
    Execution,
    Resource,
    StepResult,
    apply_plan,
    attempted,
    result_of,
)
from ...._foundation.resource.plan import Plan, Step
from .checks import (
    changed_names,
    require_consistent,
    require_declarable,
    require_kept_methods,
    require_no_foreign_change,
    require_own_path_kept,
    require_unused,
)
from .model import Interfaces, NetworkOptions, NodeInterfaces, Settings
from .own_path import own_path
from .plan import APPLY, CREATE, DISCARD, REMOVE, apply_step, discard_step, merged, plan_steps
from .read import read_addresses, read_bridge_users, read_network
from .settings import as_options, read_task

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

Replan = Callable[[NodeInterfaces], "tuple[Plan, Interfaces]"]
"""Returns the plan and the target from a new reading of the network."""

# Settings that PVE derives from other interfaces.
_DERIVED = ("autostart", "type", "ovs_bridge")
_SILENT = (NetworkError, NodeUnhealthy)


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Apply the declared network of a node; check mode writes nothing."""
    task = read_task(params)
    network = read_network(client, task.node)
    plan = partial(_plan, client, task)
    return apply_plan(NodeNetwork(client, task, network, plan), check_mode)


def _plan(client: Client, task: NetworkOptions, network: NodeInterfaces) -> tuple[Plan, Interfaces]:
    """Return the plan of a task and its target. Raises FleetError for a refused network."""
    require_declarable(task, network)
    before = network.interfaces
    after = merged(before, task.declared, task.exact)
    warning = require_no_foreign_change(task, network, after)
    warnings = (warning,) if warning else ()
    if after != before:
        require_consistent(task, before, after)
        require_kept_methods(task, network, after)
        own, owners = read_addresses(client, task.node)
        require_own_path_kept(task, network, after, own_path(before, own), owners)
        removed = [name for name in before if name not in after]
        bridges = [name for name in removed if before[name].get("type") in _BRIDGES]
        if bridges:
            require_unused(task, bridges, read_bridge_users(client, task.node))
    steps = plan_steps(task.node, before, after)
    is_discarded = bool(network.pending) and task.pending == "discard"
    is_applied = bool(network.pending) and task.pending == "apply"
    if steps or is_applied:
        steps.append(apply_step(task.node))
    if is_discarded:
        steps.insert(0, discard_step(task.node))
        warnings = (*warnings, _AFTER_DISCARD.format(node=task.node))
    names = changed_names(before, after)
    old = {name: as_options(name, before[name]) for name in names if name in before}
    new = {name: as_options(name, after[name]) for name in names if name in after}
    return Plan(tuple(steps), old, new, warnings=warnings), after


_BRIDGES = ("bridge", "OVSBridge")
_AFTER_DISCARD = (
    "The pending changes of node {node} are discarded first, and the rest is planned again after"
    " that: Proxmox VE does not show the configuration in force while there is a pending one"
)


def run_info(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the network of a node. Nothing is written; one request."""
    node = validate.node(params["node"])
    network = read_network(client, node)
    found = [as_options(name, network.interfaces[name]) for name in sorted(network.interfaces)]
    states = {}
    for name, row in network.rows.items():
        states[name] = {
            "active": bool(row.get("active")),
            "exists": bool(row.get("exists")),
            "method": row.get("method"),
            "method6": row.get("method6"),
        }
    values = {
        "node": node,
        "interfaces": found,
        "states": states,
        "pending": network.pending or None,
    }
    return Result(False, values)


class NodeNetwork(Resource[Result]):
    """The interfaces of a node. All requests but the last one only write a pending change."""

    client: Client

    def __init__(
        self, client: Client, task: NetworkOptions, network: NodeInterfaces, replan: Replan
    ) -> None:
        self.client = client
        self.task = task
        self.timeout = task.task_timeout
        self._replan = replan
        self.network = network
        self.plan, self.after = replan(network)
        self._is_dirty = False  # whether this run has written something that is not in force yet
        self._undone = False
        self._answered: NodeInterfaces | None = None

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        """Plan again after the pending changes were discarded."""
        self.network = read_network(self.client, self.task.node)
        rest, self.after = self._replan(self.network)
        self._is_dirty = False
        self.plan = replace(rest, steps=(*done, *rest.steps))
        return rest

    def guard(self, step: Step) -> None:
        """Raise Conflict before the reload if another client has changed the network."""
        if step.action != APPLY:
            return
        found = read_network(self.client, self.task.node)
        strange = [
            name
            for name in changed_names(self.after, found.interfaces)
            if not _is_alike(self.after.get(name), found.interfaces.get(name))
        ]
        if strange:
            raise Conflict(
                f"{attempted(step.summary)}: {', '.join(strange)} differ from the plan: another "
                "client changes it too",
                "Read the pending change with node_network_info, then run this again"
                " with pending set to apply or discard",
                "changed by another client",
                details={"pending": found.pending},
            )

    def confirm_write(self, step: Step) -> Callable[[], Any]:
        """Return the check after a lost answer: a step is done if the configuration shows it."""
        return lambda: self._is_done(step) or None

    def _is_done(self, step: Step) -> bool:
        found = read_network(self.client, self.task.node)
        if step.action in (APPLY, DISCARD):
            return not found.pending
        name = str(step.data["iface"]) if step.action == CREATE else str(step.path[3])
        if step.action == REMOVE:
            return name not in found.interfaces
        return step.action == CREATE and name in found.interfaces

    def send(self, step: Step) -> StepResult:
        """Send a step. After a failure, restore the former configuration."""
        try:
            sent = super().send(step)
        except FleetError as error:
            if step.action == APPLY:
                if isinstance(error, TaskTimeout):
                    raise
                if isinstance(error, NetworkError) and error.dispatched is not False:
                    return self._after_lost_reload(step, error)
                found = read_network(self.client, self.task.node)
                if found.pending:
                    raise self._taken_back(error) from error
                raise self._restored(error, found) from error
            if self._is_dirty or isinstance(error, NetworkError):
                raise self._taken_back(error) from error
            raise
        self._is_dirty = True
        return sent

    def await_final(self) -> tuple[str, ...]:
        """Wait until the node answers after the reload."""
        last = self.plan.steps[-1]
        if last.action == APPLY and self._answered is None:
            self._answered = self._await_answer(last)
        return ()

    def _after_lost_reload(self, step: Step, error: FleetError) -> StepResult:
        """Return the result of a reload that lost the connection, or raise its error."""
        found = self._await_answer(step)
        if error.upid:
            wait = self.client.wait(error.upid, timeout=self.timeout, attempted=error.attempted)
            return self.after_task(step, wait)
        if found.pending:
            raise self._taken_back(error) from error
        self._answered = found
        return StepResult(warnings=(f"{step.summary}: the connection was lost during it",))

    def _taken_back(self, error: FleetError) -> FleetError:
        """Discard the pending change if all of it is from this run, and return the error."""
        if not self._is_own_change():
            return error.on(next_step=_NOT_DISCARDED)
        discard = discard_step(self.task.node)
        try:
            self.client.write(discard.method, *discard.path, attempted=attempted(discard.summary))
        except FleetError as failure:
            answer = f"{error.answer}. The pending change is still there: {failure.answer}"
            return error.on(answer=answer, next_step=_REVERT)
        self._undone = True
        answer = f"{error.answer or error.reason}. The network stays as it was"
        return error.on(answer=answer)

    def _is_own_change(self) -> bool:
        """Return whether the whole pending change is from this run."""
        if self.network.pending:
            return False
        try:
            found = read_network(self.client, self.task.node).interfaces
        except FleetError:
            return True
        own = changed_names(self.network.interfaces, self.after)
        return set(changed_names(self.network.interfaces, found)).issubset(own)

    def _restored(self, error: FleetError, found: NodeInterfaces) -> FleetError:
        """Restore the former configuration after a failed reload, and return the error."""
        if self.network.pending:
            return self._with_former(error)
        steps = plan_steps(self.task.node, found.interfaces, self.network.interfaces)
        reload_path = ("nodes", self.task.node, "network")
        try:
            for step in steps:
                self.client.write(
                    step.method, *step.path, data=step.data, attempted=attempted(step.summary)
                )
            self.client.task("PUT", *reload_path, timeout=self.timeout)
        except FleetError as failure:
            answer = f"{error.answer}. The former configuration could not be put back: {failure}"
            return self._with_former(error.on(answer=answer))
        self._undone = True
        answer = f"{error.answer or error.reason}. The former configuration was put back"
        return error.on(answer=answer)

    def _with_former(self, error: FleetError) -> FleetError:
        """Return the error with the former configuration, and how to restore it."""
        details = {**error.details, "former": _described(self.network.interfaces)}
        return error.on(next_step=_CONSOLE, details=details)

    def _await_answer(self, step: Step) -> NodeInterfaces:
        """Return the network as soon as the node answers. Raises NodeUnreachable."""
        last: FleetError = NetworkError()
        for _remaining in poll(self.client.clock, self.task.answer_timeout):
            try:
                return read_network(self.client, self.task.node, tries=1)
            except _SILENT as error:
                last = error
        failure = NodeUnreachable(
            f"{step.summary}: node {self.task.node} does not answer after "
            f"{self.task.answer_timeout} s: {last.answer or last.reason}",
            reason="no answer after the change",
            dispatched=True,
            retryable=False,
        )
        raise self._with_former(failure)

    def failure(self, error: FleetError, done: Sequence[Step]) -> FleetError:
        """Return the error; steps that were undone do not count as done."""
        return error if self._undone else super().failure(error, done)

    def preview(self) -> Result:
        return self._result(self.after, self.network.pending if not self.plan.changed else "")

    def report(self, execution: Execution) -> Result:
        found = self._answered or read_network(self.client, self.task.node)
        return self._result(found.interfaces, found.pending, execution)

    def _result(
        self, interfaces: Interfaces, pending: str, execution: Execution | None = None
    ) -> Result:
        values = {
            "node_network": {
                "node": self.task.node,
                "interfaces": _described(interfaces),
                "pending": pending or None,
            }
        }
        header = f"network of node {self.task.node}"
        return result_of(self.plan, values, execution, header=header)


_REVERT = "Discard the pending change: DELETE /nodes/NODE/network, or Revert in the web interface"
_NOT_DISCARDED = (
    "The pending change of another client was part of this task, so that nothing was discarded:"
    " read it with node_network_info"
)
_CONSOLE = (
    "Log in at the node's console, restore /etc/network/interfaces from error.former, and run"
    " ifreload -a"
)


def _is_alike(planned: Settings | None, found: Settings | None) -> bool:
    """Return whether an interface is as planned, apart from settings that PVE derives."""
    if planned is None or found is None:
        return planned is found
    keys = (planned.keys() | found.keys()).difference(_DERIVED)
    return all(planned.get(key) == found.get(key) for key in keys)


def _described(interfaces: Interfaces) -> list[dict[str, Any]]:
    return [as_options(name, interfaces[name]) for name in sorted(interfaces)]
