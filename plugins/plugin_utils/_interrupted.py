# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports the finished steps of an interrupted task, and the Proxmox VE tasks that still run for
it.

An interrupted task returns no result, so its process writes a report before it ends. A worker of
Ansible has no terminal any more: the report goes to the standard error of the process that forked
it.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ..module_utils._foundation.api.upid import parse_upid
from ..module_utils._foundation.core.formatting import printable
from ._progress import describe_task

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# The maximum number of shown entries of a list.
MAX_LISTED = 100
_STEP = "run the playbook again. It waits for what still runs, and does what is left."
_COPIES = (
    " Copies of this run remain until pve.fleet.tidy or the next drill finds that they are 12 hours old,"
    " or older than drill_abandoned_after."
)
# This file is imported before the workers are forked, like `_progress`.
STDERR = -1
with suppress(OSError):  # there is no standard error
    STDERR = os.dup(2)


class TaskNotes:
    """Notes on one task of Ansible.

    Safe to use from several threads, and to read in a signal handler: there is no lock.
    """

    def __init__(self) -> None:
        self._running: dict[str, None] = {}
        self._steps: list[str] = []
        self._about: dict[str, TaskNotes] = {}
        self._is_complete = False

    def began(self, upid: str) -> None:
        """Note that a task of Proxmox VE runs."""
        self._running[upid] = None

    def ended(self, upid: str) -> None:
        """Note that a task of Proxmox VE has ended."""
        self._running.pop(upid, None)

    def step(self, summary: str) -> None:
        """Note a step that was carried out."""
        self._steps.append(summary)

    def about(self, label: str) -> TaskNotes:
        """Return the notes on one of several VMs."""
        return self._about.setdefault(label, TaskNotes())

    def complete(self) -> None:
        """Note that the work on this VM is complete."""
        self._is_complete = True

    def running(self) -> list[str]:
        """Return a description and the UPID of each task whose end was not seen."""
        found = [f"{describe_task(parse_upid(upid))}, {upid}" for upid in list(self._running)]
        for label, notes in list(self._about.items()):
            found += [f"{label}: {line}" for line in notes.running()]
        return found

    def lines(self) -> list[str]:
        """Return the finished steps and the running tasks, none if nothing was started."""
        complete: list[str] = []
        started: list[str] = []
        for label, notes in list(self._about.items()):
            if notes._is_complete:
                complete.append(label)
            elif notes._steps:
                started.append(f"{label}: {'; '.join(notes._steps)}")
        return [
            *_section("done", list(self._steps)),
            *_section("complete", complete),
            *_section("not complete, and done so far", started),
            *_section("still running in Proxmox VE", self.running()),
        ]


def _section(title: str, entries: list[str]) -> list[str]:
    """Return a title with its entries, nothing if there are none."""
    if not entries:
        return []
    listed = entries[:MAX_LISTED]
    if len(entries) > MAX_LISTED:
        listed.append(f"and {len(entries) - MAX_LISTED} more")
    return [f"  {title}:", *(f"    {entry}" for entry in listed)]


def next_step(module: str, options: Mapping[str, Any]) -> str:
    """Return the next step after an interruption. A drill and a rehearsal create new copies each time."""
    if module == "pve.fleet.drill" and options.get("state") != "absent":
        return f"run the drill again, which creates other copies.{_COPIES}"
    if module == "pve.fleet.failover" and boolean(options.get("rehearsal") or False, strict=False):
        return f"run the rehearsal again, which creates other copies.{_COPIES}"
    return _STEP


def report(notes: TaskNotes, title: str, step: str = _STEP) -> str:
    """Return the text about an interrupted task, empty if nothing was started."""
    lines = notes.lines()
    if not lines:
        return ""
    return printable("\n".join([f"{title} was interrupted.", *lines, f"  Next step: {step}", ""]))


@contextmanager
def reported(
    notes: TaskNotes, title: str, step: str = _STEP, stderr: int = STDERR
) -> Iterator[None]:
    """While a task runs, make SIGINT and SIGTERM write the report before their former handlers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {}

    def interrupted(number: int, _frame: Any) -> None:
        _restore(before)
        with suppress(OSError):
            os.write(stderr, report(notes, title, step).encode())
        signal.raise_signal(number)

    for number in SIGNALS:
        # None is a handler that Python did not set.
        before[number] = signal.signal(number, interrupted) or signal.SIG_DFL
    try:
        yield
    finally:
        _restore(before)


def _restore(before: dict[int, Any]) -> None:
    """Set the former handlers again."""
    for number, handler in before.items():
        signal.signal(number, handler)
