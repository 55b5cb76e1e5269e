# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads ahead over the items of a loop: what the next item will most likely ask of its VM, while its listing is read.

Nothing old is ever used: every answer was asked for in the same task, a moment ago, and none is used after a write.
What an older listing says only decides which question is asked early; a VM that moved meanwhile is asked again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from ..module_utils._api.client import Client

Segments = tuple[str, ...]
Question = tuple[Segments, tuple[tuple[str, str], ...]]
"""The path below the VM, and the query."""

Read = Callable[[Segments, Mapping[str, str]], Any]
"""Makes one request, without another try."""

MOST = 3  # questions at once
FRESH = 1.0  # seconds that an answer may be waited with


@contextmanager
def reading(client: Client, module: str, params: Mapping[str, Any], in_a_loop: bool) -> Iterator[None]:
    """Let a client that outlives the items of a loop read ahead while an item is worked on."""
    if not in_a_loop:
        client.ahead = None
        yield
        return
    ahead = client.ahead if isinstance(client.ahead, Ahead) else Ahead()
    client.ahead = ahead
    ahead.begin(module, params.get("vmid") or params.get("name"))
    went_well = False
    try:
        yield
        went_well = True
    finally:
        ahead.end(went_well)


class _Early:
    """A question that is asked in a thread of its own."""

    def __init__(self, read: Read, segments: Segments, query: Mapping[str, str]) -> None:
        self.asked = time.monotonic()
        self._answer: tuple[Any] | None = None
        self._thread = threading.Thread(target=self._ask, args=(read, segments, query), daemon=True)
        self._thread.start()

    def _ask(self, read: Read, segments: Segments, query: Mapping[str, str]) -> None:
        with suppress(Exception):  # the task asks again, and hears it itself
            self._answer = (read(segments, query),)

    def answer(self) -> tuple[Any] | None:
        """Return the answer as the only one of a tuple, once it is there, or None where there is none."""
        self._thread.join()
        return self._answer


class Ahead:
    """What is known from the items of one loop so far. The client tells what it reads and writes."""

    def __init__(self) -> None:
        self._listing: list[Any] = []
        self._usual: dict[str, tuple[Question, ...]] = {}  # module -> what it asked of the last item's VM
        self._module = ""
        self._target = ""
        self._noted: list[tuple[tuple[str, str], Question]] = []
        self._early: dict[Question, _Early] = {}  # by the whole path
        self._asked: list[_Early] = []  # all of them, until they are over
        self._wrote = False
        self._begun = False

    def begin(self, module: str, target: Any) -> None:
        """A task of this module begins; `target` is the VM's VMID or name, if it has one."""
        self._module, self._target = module, str(target or "")
        self._noted, self._wrote, self._begun = [], False, False

    def end(self, went_well: bool) -> None:
        """The task is over."""
        for early in self._asked:
            early.answer()
        self._early, self._asked = {}, []
        self._usual.pop(self._module, None)
        questions = tuple(dict.fromkeys(question for _place, question in self._noted))
        places = {place for place, _question in self._noted}
        if went_well and not self._wrote and len(places) == 1 and len(questions) <= MOST:
            self._usual[self._module] = questions

    def take(self, read: Read, segments: Segments, query: Mapping[str, str]) -> tuple[Any] | None:
        """Return the answer to a read as the only one of a tuple, or None: it must be asked for.

        Before the first read of a task, the early ones are begun.
        """
        if not self._begun:
            self._begun = True
            self._ask_early(read)
        early = self._early.pop((segments, tuple(sorted(query.items()))), None)
        return early.answer() if early is not None and time.monotonic() - early.asked <= FRESH else None

    def saw(self, segments: Segments, query: Mapping[str, str], data: Any) -> None:
        """Note what was read."""
        if segments == ("cluster", "resources") and isinstance(data, list):
            self._listing = data
        elif len(segments) > 4 and segments[0] == "nodes" and segments[2] == "qemu":
            self._noted.append(((segments[1], segments[3]), (segments[4:], tuple(sorted(query.items())))))

    def wrote(self) -> None:
        """Forget what was asked early: a write may have made it old. Such a task is no example for the next one."""
        self._early, self._wrote = {}, True

    def _ask_early(self, read: Read) -> None:
        usual = self._usual.get(self._module, ())
        place = _place(self._listing, self._target) if usual else None
        if place is None:
            return
        for below, query in usual:
            segments = ("nodes", place[0], "qemu", place[1], *below)
            self._asked.append(_Early(read, segments, dict(query)))
            self._early[(segments, query)] = self._asked[-1]


def _place(rows: list[Any], target: str) -> tuple[str, str] | None:
    """Return node and VMID of the only VM with this VMID or name, or None (pure)."""
    found = [
        (str(row["node"]), str(row["vmid"]))
        for row in rows
        if isinstance(row, dict) and row.get("type") == "qemu" and target in (row.get("name"), str(row.get("vmid")))
    ]
    return found[0] if target and len(found) == 1 else None
