# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prefetch over the items of a loop: what the next item will ask of its VM is read beside its
listing.

Every answer that is used was asked for in the same task, at most `FRESH` seconds ago, and none is
used after a write. An older listing only decides which question is asked early; a VM that moved
since then is asked again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import Any

from ..module_utils._api.client import Client
from ..module_utils._api.protocols import Sender
from ..module_utils._api.request import Request
from ..module_utils._core.parallel import leave_signals_to_the_main_thread

Segments = tuple[str, ...]
Question = tuple[Segments, tuple[tuple[str, str], ...]]
"""The path below the VM, and the query."""

Read = Callable[[Segments, Mapping[str, str]], Any]
"""Makes one request, without another try."""

MAXIMUM = 3  # questions at once
FRESH = 1.0  # seconds after which an early answer is not used


class Prefetching:
    """The layer of a client that a prefetcher learns from and answers."""

    def __init__(self, below: Sender, prefetcher: Prefetcher) -> None:
        self._below = below
        self._prefetcher = prefetcher

    def send(self, request: Request) -> Any:
        """Return `data` of an early answer, or of a request made now. Raises FleetError."""
        if request.method != "GET":
            self._prefetcher.wrote()
            return self._below.send(request)
        if request.timeout is not None:
            return self._below.send(request)
        early = self._prefetcher.take(self._read, request.path, request.values)
        data = self._below.send(request) if early is None else early[0]
        self._prefetcher.saw(request.path, request.values, data)
        return data

    def _read(self, path: Segments, query: Mapping[str, str]) -> Any:
        """Return what one try answers."""
        request = Request("GET", path, query, tries=1)
        return self._below.send(request)


class _Early:
    """A question that a thread asks, and its answer."""

    def __init__(self, read: Read, segments: Segments, query: Mapping[str, str]) -> None:
        self._read = read
        self._segments = segments
        self._query = query
        self._asked = time.monotonic()
        self._answer: tuple[Any] | None = None
        self._over = threading.Event()

    @property
    def is_fresh(self) -> bool:
        """Whether it was asked a moment ago."""
        return time.monotonic() - self._asked <= FRESH

    def answer(self) -> tuple[Any] | None:
        """Wait for the answer; return it as the only one of a tuple, or None if there is none."""
        self._over.wait()
        return self._answer

    def ask(self) -> None:
        """Ask the question."""
        # The task asks again after a failure, and reports it.
        with suppress(Exception):
            self._answer = (self._read(self._segments, self._query),)

    def end(self) -> None:
        """Wake those who wait for the answer."""
        self._over.set()


class _Askers:
    """Threads that ask questions. They live as long as their process, which is that of one task."""

    def __init__(self) -> None:
        self._questions: SimpleQueue[_Early] = SimpleQueue()
        self._idle = threading.Semaphore(0)

    def ask(self, early: _Early) -> None:
        """Let a thread ask this question, one that is idle if there is one."""
        self._questions.put(early)
        if not self._idle.acquire(blocking=False):
            threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        leave_signals_to_the_main_thread()
        while True:
            early = self._questions.get()
            early.ask()
            self._idle.release()
            early.end()


class Prefetcher:
    """What is known from the items of one loop so far.

    The layer reports what it reads and writes.
    """

    def __init__(self) -> None:
        self._listing: list[Any] = []
        self._usual: dict[str, tuple[Question, ...]] = {}  # what each module asked of the last VM
        self._module = ""
        self._target = ""
        self._noted: list[tuple[tuple[str, str], Question]] = []
        self._early: dict[Question, _Early] = {}  # by the whole path
        self._asked: list[_Early] = []  # all of them, until they are over
        self._askers = _Askers()
        self._wrote = False
        self._started = False

    @contextmanager
    def item(self, client: Client, module: str, params: Mapping[str, Any]) -> Iterator[Client]:
        """Lend a client that prefetches while this module works on one item of a loop."""
        self.begin(module, params.get("vmid") or params.get("name"))
        went_well = False
        try:
            yield client.wrapped(lambda below: Prefetching(below, self))
            went_well = True
        finally:
            self.end(went_well)

    def begin(self, module: str, target: Any) -> None:
        """Start a task of this module; `target` is the VM's VMID or name, if it has one."""
        self._module = module
        self._target = str(target or "")
        self._noted = []
        self._wrote = False
        self._started = False

    def end(self, went_well: bool) -> None:
        """End the task, and remember what it asked if it is an example for the next one."""
        for early in self._asked:
            early.answer()
        self._early = {}
        self._asked = []
        self._usual.pop(self._module, None)
        if self._wrote or not went_well:
            return
        questions = tuple(dict.fromkeys(question for _place, question in self._noted))
        places = {place for place, _question in self._noted}
        if len(places) == 1 and len(questions) <= MAXIMUM:
            self._usual[self._module] = questions

    def take(
        self,
        read: Read,
        segments: Segments,
        query: Mapping[str, str],
    ) -> tuple[Any] | None:
        """Return the early answer to a read as the only one of a tuple, or None without one.

        Before the first read of a task, the early questions are asked.
        """
        if not self._started:
            self._started = True
            self._ask_early(read)
        question = (segments, tuple(sorted(query.items())))
        early = self._early.pop(question, None)
        if early is None or not early.is_fresh:
            return None
        return early.answer()

    def saw(self, segments: Segments, query: Mapping[str, str], data: Any) -> None:
        """Note what was read."""
        if segments == ("cluster", "resources") and isinstance(data, list):
            self._listing = data
            return
        if len(segments) > 4 and segments[0] == "nodes" and segments[2] == "qemu":
            place = (segments[1], segments[3])
            question = (segments[4:], tuple(sorted(query.items())))
            self._noted.append((place, question))

    def wrote(self) -> None:
        """Discard the early answers, which a write may outdate; the task is not an example."""
        self._early = {}
        self._wrote = True

    def _ask_early(self, read: Read) -> None:
        usual = self._usual.get(self._module)
        if not usual:
            return
        place = _place(self._listing, self._target)
        if place is None:
            return
        node, vmid = place
        for below, query in usual:
            segments = ("nodes", node, "qemu", vmid, *below)
            early = _Early(read, segments, dict(query))
            self._askers.ask(early)
            self._asked.append(early)
            self._early[(segments, query)] = early


def _place(rows: list[Any], target: str) -> tuple[str, str] | None:
    """Return node and VMID of the only VM with this VMID or name, or None (pure)."""
    if not target:
        return None
    found = [row for row in rows if _is_vm(row, target)]
    if len(found) != 1:
        return None
    return str(found[0]["node"]), str(found[0]["vmid"])


def _is_vm(row: Any, target: str) -> bool:
    if not isinstance(row, dict) or row.get("type") != "qemu":
        return False
    return target in (row.get("name"), str(row.get("vmid")))
