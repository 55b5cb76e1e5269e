# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answers of one task, recorded from the simulator and given again, with or without changes."""

from __future__ import annotations

import copy
import itertools
import os
import pickle
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.http.backend import (
    ProxmoxerTransport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.clock import Clock
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ConfigurationError,
)
from tests.fast_time import fast_time

Question = tuple[str, tuple[str, ...], tuple[tuple[str, str], ...]]
"""Method, path and values of a request."""

Change = Callable[[str, tuple[str, ...], Any], Any]
"""`change(method, path, answer)` returns the answer that the task gets instead."""


@dataclass
class Recording:
    """What one task was answered; an answer may be an exception. `result` is what it came to."""

    answers: dict[Question, list[Any]] = field(default_factory=dict)
    result: Any = None

    def paths(self) -> list[tuple[str, tuple[str, ...]]]:
        """Method and path of each request that was answered with data, each once."""
        found: dict[tuple[str, tuple[str, ...]], None] = {}
        for (method, path, _values), answers in self.answers.items():
            if not all(isinstance(answer, Exception) for answer in answers):
                found[method, path] = None
        return list(found)


def _question(request: Request) -> Question:
    values = {key: _TIME.sub("TIME", str(value)) for key, value in request.values.items()}
    return request.method, request.path, tuple(sorted(values.items()))


# In seconds: since when a task is looked for. As a text: when a drill began.
_TIME = re.compile(r"\d{9,}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@contextmanager
def recording(into: Recording) -> Iterator[None]:
    """Note each answer that a client gets from the server."""
    lock = threading.Lock()
    send = ProxmoxerTransport.send

    def noted(transport: ProxmoxerTransport, request: Request) -> Any:
        answer: Any
        try:
            answer = send(transport, request)
        except Exception as error:
            answer = error
        with lock:
            into.answers.setdefault(_question(request), []).append(copy.deepcopy(answer))
        if isinstance(answer, Exception):
            raise answer
        return answer

    with mock.patch.object(ProxmoxerTransport, "send", noted), fast_time(), _same_marks():
        yield


@contextmanager
def replaying(source: Recording, change: Change) -> Iterator[None]:
    """Answer each client from the recording; the last answer to a question is given again.

    What was not asked then is refused. Waiting costs no time.
    """
    lock = threading.Lock()
    asked: Counter[Question] = Counter()

    def answered(_transport: ProxmoxerTransport, request: Request) -> Any:
        question = _question(request)
        known = source.answers.get(question)
        if known is None:
            raise ConfigurationError(
                answer="this is not in the recording", reason="not recorded", dispatched=False
            )
        with lock:
            number = min(asked[question], len(known) - 1)
            asked[question] += 1
        answer = known[number]
        if isinstance(answer, Exception):
            # A copy: each raise would add its frames, with all they hold, to the one that is kept.
            raise copy.copy(answer)
        return change(request.method, request.path, pickle.loads(pickle.dumps(answer)))

    clock = _NoTime()
    with (
        mock.patch.object(ProxmoxerTransport, "send", answered),
        mock.patch.object(ProxmoxerTransport, "has_answered", True),
        mock.patch.object(Clock, "monotonic", clock.monotonic),
        mock.patch.object(Clock, "sleep", clock.sleep),
        _same_marks(),
    ):
        yield


@contextmanager
def _same_marks() -> Iterator[None]:
    """Let each run make up the same marks for its VMs, which are in the recorded answers."""
    numbers = itertools.count(1)

    def made_up(size: int) -> bytes:
        return next(numbers).to_bytes(4, "big").ljust(size, b"\0")[:size]

    with mock.patch.object(os, "urandom", side_effect=made_up):
        yield


class _NoTime:
    """A clock whose pauses are over at once. A look at it takes a moment, so that loops end."""

    def __init__(self) -> None:
        self._now = time.monotonic()

    def monotonic(self) -> float:
        self._now += 0.0001
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += max(0.0, seconds)
