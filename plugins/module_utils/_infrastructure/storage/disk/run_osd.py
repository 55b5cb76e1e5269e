# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module ceph_osd: reads disks and OSDs, asks Ceph, executes the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.api.root import require_root
from ...._foundation.core.errors import OsdUnplaced
from ...._foundation.core.result import Result
from ...._foundation.resource.engine import apply_plan, attempted
from ...._foundation.resource.manage import PlannedStep, PlannedTask, WorkerTask
from ...._foundation.resource.plan import Plan, Step
from ..ceph.daemons import read_safety, require_safe
from .osd import (
    CREATE,
    DESTROY,
    START,
    STOP,
    OsdState,
    describe_osd,
    osds_of,
    plan_osd,
    read_desired,
)
from .read import read_disks

_TIMEOUT = 600  # seconds for each task: a disk is wiped first
_SETTLES = 60  # seconds until Ceph shows the outcome of a task
_PAUSE = 2
_WORKERS = {CREATE: "cephcreateosd", DESTROY: "cephdestroyosd", START: "srvstart", STOP: "srvstop"}
# Steps that Ceph must allow, with the action for its safety check.
_SAFETY_ACTIONS = {DESTROY: "destroy", STOP: "stop"}


def run_osd(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Bring an OSD to the desired state and return the outcome; check mode writes nothing."""
    desired = read_desired(params)

    def read() -> PlannedStep:
        """Return the plan for the present OSD; one request, and another one if its disk is named."""
        disks = read_disks(client, desired.node) if desired.dev else []
        tree = client.get(
            *("nodes", desired.node, "ceph", "osd"),
            attempted=f"Could not read the OSDs of node {desired.node}",
        )
        state = OsdState(tuple(disks), osds_of(tree))
        plan = plan_osd(desired, state)
        return PlannedStep(plan, {"ceph_osd": describe_osd(desired, state, plan)})

    task = OsdTask(client, desired.label, read)
    task.timeout = _TIMEOUT
    for step in task.plan.steps:
        if step.action in (CREATE, DESTROY):
            require_root(client.login, attempted(step.summary))
    if not desired.force:
        require_allowed(client, desired.node, task.plan)
    return apply_plan(task, check_mode)


def require_allowed(client: Api, node: str, plan: Plan) -> None:
    """Refuse a plan that stops or deletes an OSD that Ceph cannot lose; one request a step."""
    for step in plan.steps:
        if step.action in _SAFETY_ACTIONS:
            osdid = step.data.get("service", f"osd.{step.path[-1]}").partition(".")[2]
            answer = read_safety(client, node, "osd", osdid, _SAFETY_ACTIONS[step.action])
            require_safe(answer, attempted(step.summary))


class OsdTask(PlannedTask):
    """The plan of an OSD. Ceph shows the new state of the OSD some seconds after a task."""

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        return self._await(lambda _planned: True).plan

    def await_final(self) -> tuple[str, ...]:
        self._await(lambda planned: not planned.plan.changed)
        return ()

    def worker_of(self, step: Step) -> WorkerTask | None:
        return worker_of(step) if step.action in _WORKERS else None

    def _await(self, is_reached: Callable[[PlannedStep], bool]) -> PlannedStep:
        """Return the first reading with the desired state, or the reading at the deadline."""
        deadline = self.client.clock.monotonic() + _SETTLES
        while True:
            is_late = self.client.clock.monotonic() >= deadline
            try:
                planned = self.read()
                if is_late or is_reached(planned):
                    return planned
            except OsdUnplaced:
                if is_late:
                    raise
            self.client.clock.sleep(_PAUSE)


def worker_of(step: Step) -> WorkerTask:
    """Return the task of a step, as its UPID names it (pure)."""
    node = str(step.path[1])
    if step.action == CREATE:
        ident = str(step.data["dev"]).removeprefix("/dev/")
    else:
        ident = step.data.get("service") or f"osd.{step.path[-1]}"
    return WorkerTask(node, _WORKERS[step.action], ident)
