# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The task of a conversion into a template that the answer of Proxmox VE does not name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..._api.upid import parse_upid
from ..._core.errors import FleetError, NetworkError, TaskTimeout
from ..._core.poll import poll
from ..._resource.execute import attempted
from ..._resource.plan import Step
from ..kind import Kind

if TYPE_CHECKING:
    from ..._api.client import Client


class Conversion:
    """A conversion whose answer is null while its task runs (pve-container: API2/LXC.pm,
    template).

    A task is listed before the answer is sent (pve-common: RESTEnvironment.pm, fork_worker).
    """

    def __init__(self, client: Client, kind: Kind, step: Step) -> None:
        self._client = client
        self._type = f"{kind.task_prefix}template"
        self._step = step

    def running_task(self) -> str | None:
        """Return the UPID of its task if it still runs: the look after a lost answer."""
        running = [row for row in self._tasks("active") if not row.get("endtime")]
        return running[0]["upid"] if running else None

    def accepted_task(self) -> str | None:
        """Return the UPID of its task, the newest one, after PVE has accepted the request.

        Raises TaskTimeout if the tasks cannot be read.
        """
        try:
            rows = self._tasks("all")
        except NetworkError:
            raise
        except FleetError as error:
            raise self._out_of_sight(error.cause) from error
        return max((row["upid"] for row in rows), key=_age, default=None)

    def await_config(self, timeout: float) -> None:
        """Wait until the guest is a template, for a task that is not listed."""
        path = (*self._step.path[:-1], "config")
        for _left in poll(self._client.clock, timeout, longest=1.0):
            if str(self._client.get(*path).get("template") or "") == "1":
                return
        raise self._out_of_sight(f"it is not a template after {timeout:g} s")

    def _tasks(self, source: str) -> list[Mapping[str, Any]]:
        node, vmid = self._step.path[1], self._step.path[3]
        filters: dict[str, Any] = {"vmid": vmid, "typefilter": self._type, "source": source}
        rows = self._client.get("nodes", node, "tasks", **filters) or []
        return [row for row in rows if row.get("type") == self._type]

    def _out_of_sight(self, why: str) -> TaskTimeout:
        return TaskTimeout(
            attempted=attempted(self._step.summary),
            answer=why,
            next_step="Look at the task list of the node, then run this again",
            reason="task still runs",
        )


def _age(upid: str) -> tuple[int, int]:
    """Return the second in which a task started, and its process."""
    task = parse_upid(upid)
    return task.starttime, task.pid
