# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prefetch over the items of a loop: what an item will ask of its VM is read beside its listing.
Where the items follow the order of the names, both are read during the item before.

Every answer that is used was asked for in the same task, at most `FRESH` seconds ago, and none is
used after a write. An older listing only decides which question is asked early; a VM that moved
since then is asked again. What the next item is can only be guessed. The first wrong guess is the
last one of its loop: the answers to its questions are discarded.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import Any

from ..module_utils._api.client import Client
from ..module_utils._api.protocols import Row, Sender
from ..module_utils._api.request import Request
from ..module_utils._core.parallel import leave_signals_to_the_main_thread
from ..module_utils._guest.order import followers_by_name

Segments = tuple[str, ...]
Question = tuple[Segments, tuple[tuple[str, str], ...]]
"""The path below the VM, and the query."""

Read = Callable[[Segments, Mapping[str, str], list[Row]], Any]
"""Makes one request, without another try, and puts it on this record."""

MAXIMUM = 3  # questions at once
FRESH = 1.0  # seconds after which an early answer is not used
IN_ORDER = 2  # items in a row that a guess would have met, before the next one is guessed
_LISTING = ("cluster", "resources")


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

    def _read(self, path: Segments, query: Mapping[str, str], record: list[Row]) -> Any:
        """Return what one try answers."""
        request = Request("GET", path, query, tries=1, record=record)
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
        self.record: list[Row] = []

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
            self._answer = (self._read(self._segments, self._query, self.record),)

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
        self._vms: list[dict[str, Any]] = []  # as they were listed last
        self._listing_question: Question = ((), ())  # how the last item asked for it
        self._usual: dict[str, tuple[Question, ...]] = {}  # what each module asked of the last VM
        self._module = ""
        self._target = ""
        self._noted: list[tuple[tuple[str, str], Question]] = []
        self._early: dict[Question, _Early] = {}  # by the whole path
        self._for_next: dict[Question, _Early] = {}  # the same for the next item
        self._asked: list[_Early] = []  # all of them for this item, until they are over
        self._record: list[Row] = []  # that of the client
        self._askers = _Askers()
        self._started = False
        self._followers: dict[str, str] = {}
        self._next = ""  # VMID of the VM that the next item is guessed to be about
        self._in_order = 0  # items in a row whose VM was this one
        self._guesses = True

    @contextmanager
    def item(self, client: Client, module: str, params: Mapping[str, Any]) -> Iterator[Client]:
        """Lend a client that prefetches while this module works on one item of a loop."""
        self._record = client.requests
        self.begin(module, params.get("vmid") or params.get("name"))
        is_example = False
        try:
            yield client.wrapped(lambda below: Prefetching(below, self))
            # A client for threads writes past the layer, but not past the record.
            is_example = set(client.counts()) <= {"GET"}
        finally:
            self.end(is_example)

    def begin(self, module: str, target: Any) -> None:
        """Start a task of this module; `target` is the VM's VMID or name, if it has one."""
        self._early = self._for_next
        self._for_next = {}
        self._asked += self._early.values()
        self._module = module
        self._target = str(target or "")
        self._noted = []
        self._started = False

    def end(self, is_example: bool) -> None:
        """End the task, and remember what it asked if it is an example for the next one: it went
        well and wrote nothing.
        """
        if not is_example:
            self._discard_next()
        for early in self._asked:
            early.answer()
            self._record += early.record
        if self._early:
            self._guesses = False  # it was asked in vain, or came too late
        self._early = {}
        self._asked = []
        self._usual.pop(self._module, None)
        if not is_example:
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
        question = _question(segments, query)
        early = self._early.get(question)
        if early is None or not early.is_fresh:
            return None
        del self._early[question]
        return early.answer()

    def saw(self, segments: Segments, query: Mapping[str, str], data: Any) -> None:
        """Note what was read."""
        if segments == _LISTING:
            self._vms = [row for row in data if row.get("type") == "qemu"]
            self._listing_question = _question(segments, query)
            return
        if len(segments) > 4 and segments[0] == "nodes" and segments[2] == "qemu":
            place = (segments[1], segments[3])
            self._noted.append((place, _question(segments[4:], query)))

    def wrote(self) -> None:
        """Discard the early answers, which a write may outdate."""
        self._early = {}
        self._discard_next()

    def stop_guessing(self) -> None:
        """Discard what was asked for the next item: something else works before it, and may write.
        The same may happen again, so nothing more is guessed.
        """
        self._guesses = False
        self._discard_next()

    def _ask_early(self, read: Read) -> None:
        """Ask what this item will ask of its VM, and all that the next one will ask."""
        place = _place(self._vms, self._target)
        if place is None:
            self._in_order = 0
            return
        for question in self._questions_about(place):
            if question not in self._early:
                self._early[question] = self._ask(question, read)
                self._asked.append(self._early[question])
        vmid = place[1]
        self._in_order = self._in_order + 1 if vmid == self._next else 0
        if not self._followers:
            self._followers = followers_by_name(self._vms)
        self._next = self._followers.get(vmid, "")
        if self._guesses and self._in_order >= IN_ORDER:
            self._ask_for_next(read)

    def _ask_for_next(self, read: Read) -> None:
        place = _place(self._vms, self._next)
        if place is None:
            return
        for question in (self._listing_question, *self._questions_about(place)):
            self._for_next[question] = self._ask(question, read)

    def _questions_about(self, place: tuple[str, str]) -> list[Question]:
        """Return what the last item asked, about the VM at this place."""
        node, vmid = place
        usual = self._usual.get(self._module, ())
        return [(("nodes", node, "qemu", vmid, *below), query) for below, query in usual]

    def _ask(self, question: Question, read: Read) -> _Early:
        segments, query = question
        early = _Early(read, segments, dict(query))
        self._askers.ask(early)
        return early

    def _discard_next(self) -> None:
        self._asked += self._for_next.values()
        self._for_next = {}
        self._in_order = 0


def _question(segments: Segments, query: Mapping[str, str]) -> Question:
    return segments, tuple(sorted(query.items()))


def _place(vms: list[dict[str, Any]], target: str) -> tuple[str, str] | None:
    """Return node and VMID of the only VM with this VMID or name, or None (pure)."""
    found = [vm for vm in vms if target in (str(vm.get("vmid")), vm.get("name"))]
    if not target or len(found) != 1:
        return None
    return str(found[0]["node"]), str(found[0]["vmid"])
