# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Restores the archive of one guest as a copy, starts the copy, and measures both durations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.state import ClusterState
from ...._foundation.cluster.tenant import parse_tags, tenant_of
from ...._foundation.core.clock import poll
from ...._foundation.core.errors import Conflict, FleetError, GuestNotReady
from ...._foundation.core.times import iso
from ...._guests.guest.context import TaskSettings
from ...._guests.guest.live.read import read_wherever
from ...._guests.guest.vm.live import wait_for_guest
from ...._guests.kinds.addresses import agent_is_on
from ...._guests.kinds.model import Actual
from ...._guests.kinds.words import CONTAINER, VM
from ...._operation.tasks.read import TaskQuery, read_tasks
from ...backup.archive import Archive
from ..choose import ChosenArchive
from ..desired import DesiredRestore, read_desired
from ..read import find_chosen
from ..run import restore_new
from .desired import CopyOptions, CopyOrder
from .isolate import find_obstacle, restore_of
from .record import FAILED, PROVEN

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

AGENT, STARTED = "agent", "started"
# PVE's type of task by kind of guests.
_RESTORES = {VM.type: "qmrestore", CONTAINER.type: "vzrestore"}
_STARTS = {VM.type: "qmstart", CONTAINER.type: "vzstart"}


@dataclass(frozen=True)
class DrillContext:
    """The values that are the same for all copies of a task.

    `archives` are the archives on the storages of the task. Times are in seconds: `wait` is the
    limit for the answer of the agent, and `settle` is the time for which a guest without an agent
    must keep running.
    """

    client: Client
    cluster: ClusterState
    archives: tuple[Archive, ...]
    options: CopyOptions
    prefix: str
    run: str
    now: float
    wait: int
    settle: int


@dataclass
class CopyResult:
    """The result for one guest."""

    order: CopyOrder
    chosen: ChosenArchive | None = None
    guest: dict[str, Any] = field(default_factory=dict)
    plan: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    restore_seconds: int | None = None
    boot_seconds: int | None = None
    proof: str | None = None
    error: FleetError | None = None

    @property
    def label(self) -> str:
        """The label of the guest in messages."""
        return f"guest {self.order.vmid}"

    def as_row(self, context: DrillContext) -> dict[str, Any]:
        """Return the result as the module reports it."""
        chosen, error = self.chosen, self.error
        row: dict[str, Any] = {
            "vmid": self.order.vmid,
            "type": None,
            "name": None,
            "tenant": None,
            "outcome": FAILED if error is not None else PROVEN,
            "proof": self.proof,
            "msg": error.message if error is not None else None,
            "volume": self.order.archive,
            "archive_time": None,
            "archive_age": None,
            "left_out": [],
            "restore_seconds": self.restore_seconds,
            "boot_seconds": self.boot_seconds,
            "copy_vmid": self.guest.get("vmid"),
            "copy_name": self.guest.get("name"),
            "node": self.guest.get("node"),
        }
        if chosen is not None:
            tenant, _why = tenant_of(parse_tags(chosen.config.get("tags")), context.prefix)
            row["type"], row["name"], row["tenant"] = chosen.archive.type, chosen.name, tenant
            row["archive_time"] = iso(chosen.archive.time)
            row["archive_age"] = max(0, int(context.now) - chosen.archive.time)
            row["left_out"] = chosen.unsaved
        return row


def find_archive(context: DrillContext, order: CopyOrder) -> ChosenArchive:
    """Return the archive of a guest. Raises FleetError if it belongs to another guest, or if a copy
    would not be isolated.
    """
    wanted = {"archive": order.archive, "new_name": "copy", "keep": "none"}
    desired = read_desired({**wanted, "tenant_prefix": context.prefix})
    chosen = find_chosen(context.client, context.cluster, desired, context.archives)
    problem = ""
    if chosen.archive.vmid != order.vmid:
        problem = f"it is an archive of guest {chosen.archive.vmid}"
    problem = problem or find_obstacle(chosen.kind, chosen.config)
    if problem:
        raise Conflict(
            f"{order.archive} was not restored as a copy of guest {order.vmid}: {problem}",
            "Plan the drill again with module drill_info",
            "not isolated",
        )
    return chosen


def create_copy(context: DrillContext, order: CopyOrder, *, check_mode: bool) -> CopyResult:
    """Restore and start the copy of a guest, and return the result, or the result with the error.

    A copy that does not come up remains until the drill removes it.
    """
    result = CopyResult(order)
    try:
        result.chosen = find_archive(context, order)
        restore_copy(context, result, result.chosen, check_mode)
        if not check_mode:
            prove(context, result, result.chosen)
    except FleetError as error:
        result.error = error
        result.done += error.details.get("done", ())
    return result


def restore_copy(
    context: DrillContext, result: CopyResult, chosen: ChosenArchive, check_mode: bool
) -> None:
    """Restore the isolated copy of a guest. Raises Conflict if it exists."""
    desired = restore_of(context.options, chosen, context.prefix, context.run, context.now)
    if restore_into(context, result, chosen, desired, check_mode=check_mode):
        return
    raise Conflict(
        f"{desired.new_name} was not restored: this drill has restored it already",
        "Plan another drill with module drill_info",
        "copy exists",
    )


def restore_into(
    context: DrillContext,
    result: CopyResult,
    chosen: ChosenArchive,
    desired: DesiredRestore,
    *,
    check_mode: bool,
) -> bool:
    """Restore a guest, record its steps in the result, and return whether the guest is new."""
    restored = restore_new(context.client, desired, chosen, context.archives, check_mode)
    result.plan = list(restored.values["plan"])
    result.done = list(restored.values["done"])
    result.warnings = list(restored.warnings)
    result.guest = dict(restored.values["guest"] or {})
    return restored.values["placement"] is not None


def prove(context: DrillContext, result: CopyResult, chosen: ChosenArchive) -> None:
    """Wait until the copy is up, and measure the durations. Raises FleetError."""
    client, kind = context.client, chosen.kind
    vmid, node = int(result.guest["vmid"]), str(result.guest["node"])
    began = client.clock.monotonic()
    result.restore_seconds = _duration(client, node, vmid, _RESTORES[kind.type])
    actual = read_wherever(client, kind, vmid, node)
    result.proof = await_up(client, actual, wait=context.wait, settle=context.settle)
    waited = client.clock.monotonic() - began if result.proof == AGENT else 0.0
    start = _duration(client, node, vmid, _STARTS[kind.type])
    if start is not None:
        result.boot_seconds = start + round(waited)


def await_up(client: Client, actual: Actual, *, wait: int, settle: int) -> str:
    """Return the proof that a guest is up: its agent answers within `wait` seconds, or the guest
    keeps running for `settle` seconds.
    """
    has_agent = actual.kind is not CONTAINER and agent_is_on(actual.live.get("agent", ""))
    if has_agent:
        wait_for_guest(client, actual, TaskSettings(wait_for="agent", timeout=wait))
        return AGENT
    for _remaining in poll(client.clock, settle):
        _require_running(client, actual)
    return STARTED


def _require_running(client: Client, actual: Actual) -> None:
    """Raise GuestNotReady for a copy that has stopped."""
    status = client.get(*actual.path, "status", "current")["status"]
    if status == "running":
        return
    raise GuestNotReady(
        f"{actual.label} was not proven: it was started, and is {status}",
        "Restore the guest by hand, and look at its console",
        "not running",
    )


def _duration(client: Client, node: str, vmid: int, kind: str) -> int | None:
    """Return the seconds of the guest's last task of that type, or None if none is logged."""
    tasks = read_tasks(client, [node], TaskQuery(limit=1, vmid=vmid, types=frozenset((kind,))))[
        node
    ]
    if isinstance(tasks, FleetError) or not tasks or not tasks[0].ended:
        return None
    return max(0, tasks[0].ended - tasks[0].started)
