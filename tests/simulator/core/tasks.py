"""Worker tasks: identifiers, durations, logs, exit states, slots per node."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ..errors import ApiError, ParamError, PveError
from ..schema.units import human
from .faults import Fault, FaultPlan

if TYPE_CHECKING:
    from .state import Cluster

UPID = re.compile(
    r"UPID:([a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?):([0-9A-Fa-f]{8}):([0-9A-Fa-f]{8,9}):([0-9A-Fa-f]{8}):"
    r"([^:\s]+):([^:\s]*):([^:\s]+):\Z"
)

# Seconds after which a task looks whether its duration was changed.
_LOOK = 0.25
# In place of a task type: the milliseconds for each GiB over the link to another cluster.
LINK = "link"
# Tasks that take time even without a configured duration: copying data, by task type, in
# milliseconds.
COPY_MS = {
    "qmclone": 150,
    "qmmove": 100,
    "qmigrate": 100,
    "qmcreate": 100,
    "vzdump": 100,
    "qmrestore": 100,
}
KEPT = 20000

Work = Callable[["Task"], Awaitable[None]]


class Task:
    """One worker on one node."""

    __slots__ = (
        "board",
        "end",
        "fault",
        "handle",
        "id",
        "kind",
        "log",
        "node",
        "owner",
        "pid",
        "pstart",
        "start",
        "status",
        "upid",
        "user",
        "warnings",
    )

    def __init__(
        self, board: TaskBoard, node: str, kind: str, ident: str, owner: str, pid: int
    ) -> None:
        self.board = board
        self.node = node
        self.kind = kind
        self.id = ident
        self.owner = owner
        self.user = owner
        self.pid = pid
        self.start = board.cluster.now()
        self.pstart = int((self.start - board.cluster.boot_time) * 100) & 0xFFFFFFFF
        self.end: float | None = None
        self.status: str | None = None
        self.log: list[str] = []
        self.warnings = 0
        self.fault: Fault | None = None
        self.handle: asyncio.Task[None] | None = None
        self.upid = (
            f"UPID:{node}:{pid:08X}:{self.pstart:08X}:{int(self.start):08X}:{kind}:{ident}:{owner}:"
        )

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.status is None

    def say(self, line: str) -> None:
        """Write to the log; a text of several lines is several entries."""
        self.log.extend(line.split("\n"))

    def warn(self, line: str) -> None:
        """Write a warning: the task will end as a success with warnings."""
        self.warnings += 1
        self.say(f"WARN: {line}")

    async def work(self, share: float = 1.0) -> None:
        """Take that share of the duration which is set for tasks of this type."""
        await self._spend(share)
        self.stumble()

    async def transfer(self, share: float = 1.0) -> None:
        """Take that share of the duration of a task that copies data, without a word."""
        await self._spend(share, copying=True)
        self.stumble()

    async def send(self, size: int) -> None:
        """Send that many bytes over the link to another cluster, which has its own rate."""
        await asyncio.sleep(self.board.durations.get(LINK, 0) / 1000 * size / 2**30)

    async def copy(self, size: int, share: float = 1.0) -> None:
        """Copy that many bytes: takes the type's duration and writes progress lines."""
        seconds = self.board.duration(self.kind, copying=True) * share
        total = human(size)
        steps = max(1, min(20, int(seconds)))
        self.say(f"transferred 0.0 B of {total} (0.00%)")
        for step in range(1, steps + 1):
            await self._spend(share / steps, copying=True)
            self.say(
                f"transferred {human(size * step / steps)} of {total} ({100 * step / steps:.2f}%)"
            )
        self.stumble()

    async def _spend(self, share: float, *, copying: bool = False) -> None:
        """Let that share of the duration pass, which can be changed in the meantime."""
        clock = asyncio.get_running_loop()
        started = clock.time()
        while True:
            whole = self.board.duration(self.kind, copying=copying) * share
            left = started + whole - clock.time()
            if left <= 0:
                return
            await asyncio.sleep(min(left, _LOOK))

    def stumble(self) -> None:
        """Apply the fault of this task: warn, or fail, once and in the middle of the work."""
        fault, self.fault = self.fault, None
        if fault is not None and fault.warn:
            self.warn(fault.warn)
        elif fault is not None and fault.fail:
            raise PveError(fault.fail)

    def finish(self, status: str, line: str) -> None:
        """End with that exit status and last line."""
        self.status = status
        self.end = self.board.cluster.now()
        self.log.append(line)

    def as_dict(self) -> dict[str, Any]:
        """The parts of the identifier as listings give them."""
        user, _dummy, token = self.owner.partition("!")
        result: dict[str, Any] = {
            "upid": self.upid,
            "node": self.node,
            "pid": self.pid,
            "pstart": self.pstart,
            "starttime": int(self.start),
            "type": self.kind,
            "id": self.id,
            "user": user,
        }
        if token:
            result["tokenid"] = token
        return result


class TaskBoard:
    """All tasks of the cluster."""

    def __init__(
        self, cluster: Cluster, durations: dict[str, float] | None = None, slots: int = 0
    ) -> None:
        self.cluster = cluster
        self.durations = durations or {}
        self.by_upid: dict[str, Task] = {}
        self.by_node: dict[str, deque[Task]] = {}
        self.slots = slots
        self.forgotten: list[Task] = []
        self.faults = FaultPlan()
        self._slots: dict[str, asyncio.Semaphore] = {}

    def duration(self, kind: str, *, copying: bool = False) -> float:
        """Seconds that a task of this type takes."""
        value = self.durations.get(kind, self.durations.get("default"))
        if value is None:
            value = COPY_MS.get(kind, 50) if copying else 0
        return value / 1000

    def forget(self) -> None:
        """Forget all tasks; running tasks are not stopped."""
        self.forgotten += [task for task in self.by_upid.values() if task.running]
        self.by_upid.clear()
        self.by_node.clear()

    def start(self, node: str, kind: str, ident: object, owner: str, work: Work) -> str:
        """Start a worker and return its UPID; it runs as soon as the answer is on its way."""
        info = self.cluster.nodes[node]
        info.next_pid += 1 + (info.next_pid % 3)
        task = Task(self, node, kind, str(ident), owner, info.next_pid)
        listed = self.by_node.setdefault(node, deque())
        listed.append(task)
        self.by_upid[task.upid] = task
        while len(listed) > KEPT and not listed[0].running:
            self.by_upid.pop(listed.popleft().upid, None)
        task.fault = self.faults.pick_task(kind, task.id) if self.faults.rules else None
        self.note(node, owner, f"starting task {task.upid}", 6)
        task.handle = asyncio.get_running_loop().create_task(self._run(task, work))
        return task.upid

    def note(self, node: str, owner: str, message: str, priority: int = 6) -> None:
        """Write to the cluster log."""
        log = self.cluster.log
        log.append(
            {
                "time": int(self.cluster.now()),
                "node": node,
                "user": owner,
                "msg": message,
                "pri": priority,
            }
        )
        if len(log) > 2000:
            del log[:1000]

    async def _run(self, task: Task, work: Work) -> None:
        try:
            if self.slots:
                semaphore = self._slots.setdefault(task.node, asyncio.Semaphore(self.slots))
                async with semaphore:
                    await work(task)
            else:
                await work(task)
            task.stumble()
        except ApiError as error:
            text = _one_line(error)
            task.finish(text, f"TASK ERROR: {text}")
        except asyncio.CancelledError:
            task.finish("received interrupt", "TASK ERROR: received interrupt")
        except Exception as error:
            task.finish(f"simulator fault: {error!r}", f"TASK ERROR: simulator fault: {error!r}")
            raise
        else:
            if task.warnings:
                task.finish(f"WARNINGS: {task.warnings}", f"TASK WARNINGS: {task.warnings}")
            else:
                task.finish("OK", "TASK OK")
        good = task.status == "OK"
        self.note(task.node, task.owner, f"end task {task.upid} {task.status}", 6 if good else 3)

    def stop(self, task: Task) -> None:
        """Interrupt the worker."""
        if task.running and task.handle is not None:
            task.handle.cancel()

    def running(self, kind: str, ident: object) -> list[Task]:
        """The tasks of that type and object which have not ended."""
        return [
            task
            for tasks in self.by_node.values()
            for task in tasks
            if task.running and task.kind == kind and task.id == str(ident)
        ]

    def newest(self, node: str) -> list[Task]:
        """The node's tasks, the last started first."""
        return list(reversed(self.by_node.get(node, ())))


def _one_line(error: ApiError) -> str:
    if isinstance(error, ParamError) or error.errors:
        return error.text.replace("\n", " ")
    return error.message.rstrip("\n").replace("\n", " ")
