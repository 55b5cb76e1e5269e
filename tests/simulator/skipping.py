# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The time of a process of tests: while every thread of it waits, the next moment for which one of
them waits comes at once.

The simulators of threaded.py wait by this time, and so do clients after `skip_pauses`. A thread
whose state is unknown counts as one that works; then time passes as it does elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import selectors
import sys
import threading
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future, TimeoutError
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar
from unittest import mock

T = TypeVar("T")

# Before the patches.
_monotonic, _time, _sleep = time.monotonic, time.time, time.sleep
# How soon it is looked again whether all threads wait, in real seconds.
_LOOK = 0.001
_THREADING = str(Path(threading.__file__))
_POOLS = str(Path(sys.modules[Future.__module__].__file__ or "").with_name("thread.py"))
# The collection's own waits have a time limit only to look whether the run was given up.
_COLLECTION = "/plugins/module_utils/"


class _Selector(selectors.DefaultSelector):
    """Knows whether its loop waits."""

    waits = False

    def select(self, timeout: float | None = None) -> Any:
        self.waits = timeout is None or timeout > 0
        try:
            return super().select(timeout)
        finally:
            self.waits = False


class _Loop(asyncio.SelectorEventLoop):
    """The loop of a simulator."""

    _ready: Any
    _scheduled: Any
    _transports: Any

    def __init__(self, clock: SkippingClock) -> None:
        self.selector = _Selector()
        self.clock = clock
        self.thread = threading.get_ident()
        super().__init__(self.selector)

    def time(self) -> float:
        return self.clock.monotonic()

    def next(self) -> float | None:
        """Return the moment for which the loop waits, or None if it works. Bytes can be on their way
        through each connection, such as the tunnel between two simulators.
        """
        is_connected = any(not one.is_closing() for one in list(self._transports.values()))
        if not self.selector.waits or self._ready or is_connected:
            return None
        moments = (one.when() for one in list(self._scheduled) if not one.cancelled())
        return min(moments, default=float("inf"))

    def look(self) -> None:
        """Look at the time again."""
        with contextlib.suppress(RuntimeError):  # it was closed
            self.call_soon_threadsafe(int)


class SkippingClock:
    """Real time and what was skipped; it never goes back."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._skipped = 0.0
        self._stays = False
        self._loops: set[_Loop] = set()
        # Threads that wait: until when, and for which answer.
        self._waits: dict[int, tuple[float, Future[Any] | None]] = {}
        self._looks: int | None = None
        # Threads that do not belong to the tests.
        self._others = {0}

    def monotonic(self) -> float:
        return _monotonic() + self._skipped

    def time(self) -> float:
        return _time() + self._skipped

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            self._wait(self.monotonic() + seconds, None)
        else:
            _sleep(seconds)

    def result(self, answer: Future[T], timeout: float | None) -> T:
        """Return the result, as answer.result() does."""
        with contextlib.suppress(TimeoutError):
            return answer.result(5 * _LOOK)
        if not answer.done():
            answer.add_done_callback(self._tell)
            end = float("inf") if timeout is None else self.monotonic() + timeout
            self._wait(end, answer)
        return answer.result(0)

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in a loop of this time, as asyncio.run() does."""
        loop = _Loop(self)
        asyncio.set_event_loop(loop)
        with self._changed:
            self._loops.add(loop)
        try:
            return loop.run_until_complete(main)
        finally:
            with self._changed:
                self._loops.discard(loop)
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
            asyncio.set_event_loop(None)
            loop.close()

    @contextlib.contextmanager
    def skip_pauses(self) -> Iterator[None]:
        """Have this time in the whole process."""
        own = threading.get_ident()
        self._others = {*sys._current_frames()} - {own} - {loop.thread for loop in self._loops}
        with (
            mock.patch.object(time, "monotonic", self.monotonic),
            mock.patch.object(time, "time", self.time),
            mock.patch.object(time, "sleep", self.sleep),
        ):
            yield

    @contextlib.contextmanager
    def stay(self) -> Iterator[None]:
        """Skip nothing."""
        self._stays = True
        try:
            yield
        finally:
            self._stays = False

    def _tell(self, _answer: Future[Any]) -> None:
        with self._changed:
            self._changed.notify_all()

    def _wait(self, end: float, answer: Future[Any] | None) -> None:
        own = threading.get_ident()
        with self._changed:
            self._waits[own] = end, answer
            try:
                while not _is_over(end, answer, self.monotonic()):
                    if not self._skip():
                        self._pause(own, end)
            finally:
                del self._waits[own]
                if self._looks == own:
                    self._looks = None
                    self._changed.notify_all()

    def _pause(self, own: int, end: float) -> None:
        """Wait a moment; one of the threads looks for the others too."""
        if self._looks is None:
            self._looks = own
        left = max(0.0, min(end - self.monotonic(), threading.TIMEOUT_MAX))
        self._changed.wait(min(left, _LOOK) if self._looks == own else left)

    def _skip(self) -> bool:
        """Let the next moment come if everybody waits."""
        if self._stays:
            return False
        moments = []
        for loop in self._loops:
            moment = loop.next()
            if moment is None:
                return False
            moments.append(moment)
        now = self.monotonic()
        for end, answer in self._waits.values():
            if _is_over(end, answer, now):
                return False
            moments.append(end)
        ahead = min(moments) - now
        if not 0 < ahead < float("inf") or not self._all_wait():
            return False
        self._skipped += ahead
        self._changed.notify_all()
        for loop in self._loops:
            loop.look()
        return True

    def _all_wait(self) -> bool:
        known = {*self._waits, *self._others, *(loop.thread for loop in self._loops)}
        frames = sys._current_frames()
        return all(_waits(frames[one], frames) for one in frames.keys() - known)


def _is_over(end: float, answer: Future[Any] | None, now: float) -> bool:
    return now >= end or (answer is not None and answer.done())


def _waits(frame: FrameType, frames: dict[int, FrameType]) -> bool:
    """Return whether a thread waits for another one of these."""
    code = frame.f_code
    if code.co_filename == _POOLS:
        return code.co_name == "_worker"
    if code.co_filename != _THREADING:
        return False
    known = frame.f_locals
    if code.co_name in ("join", "_wait_for_tstate_lock"):
        return known.get("timeout") in (None, -1) and known["self"].ident in frames
    if code.co_name != "wait" or known.get("waiter") not in getattr(known["self"], "_waiters", ()):
        return False
    while frame.f_code.co_filename == _THREADING and frame.f_back:
        if frame.f_code.co_name == "start":  # waits for a thread that has no frame yet
            return False
        frame = frame.f_back
    return known.get("timeout") is None or _COLLECTION in frame.f_code.co_filename


CLOCK = SkippingClock()
"""The time of this process."""
