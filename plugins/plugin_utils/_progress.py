# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A line now and then for the person who waits: what, how far, and how long."""

from __future__ import annotations

import mmap
import re
import struct
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from ..module_utils._api.client import Client
from ..module_utils._api.upid import parse_upid
from ..module_utils._core.clock import Clock
from ..module_utils._core.errors import FleetError

FIRST_AFTER = 1.5  # seconds; what is over sooner needs no line
LINE_EVERY = 1.0  # seconds, over all processes of a play
LOG_EVERY = 3.0  # seconds between two looks at a task's log
LOG_PAGE = 500

# A terminal that nobody sits at: what the controllers of Ansible Automation Platform and CI set.
UNATTENDED = ("AWX_HOST", "AWX_PRIVATE_DATA_DIR", "AWX_ISOLATED_DATA_DIR", "RUNNER_OMIT_EVENTS", "JENKINS_URL", "CI")

# This file is first imported by the process that forks the workers, which still has the terminal; they lose it.
ON_A_TERMINAL = bool(sys.stdout is not None and sys.stdout.isatty())

WORDS = {
    "download": "download",
    "imgcopy": "copy of a disk",
    "move_volume": "move of a disk",
    "qmclone": "clone",
    "qmconfig": "change",
    "qmcreate": "creation",
    "qmdelsnapshot": "deletion of a snapshot",
    "qmdestroy": "deletion",
    "qmigrate": "migration",
    "qmmove": "move of a disk",
    "qmreboot": "reboot",
    "qmresize": "growth of a disk",
    "qmrollback": "rollback",
    "qmshutdown": "shutdown",
    "qmsnapshot": "snapshot",
    "qmstart": "start",
    "qmstop": "stop",
    "qmtemplate": "conversion to a template",
}
_PERCENT = re.compile(r"(?<![\d.])(\d{1,3}(?:\.\d+)?) ?%")
_SIZES = re.compile(r"transferred ([\d.]+) ([KMGT]?i?B) of ([\d.]+) ([KMGT]?i?B)")
_UNITS = {letter: 1024**power for power, letter in enumerate("BKMGT")}


def is_wanted(setting: bool | None, environ: Mapping[str, str], on_a_terminal: bool = ON_A_TERMINAL) -> bool:
    """Return whether progress is shown: as the user says, else on a terminal that somebody sits at."""
    if setting is not None:
        return setting
    return on_a_terminal and not any(environ.get(name) for name in UNATTENDED)


def percent(line: str) -> float | None:
    """Return how far a task is by a line of its log, or None where that line does not tell."""
    shares = [float(found) for found in _PERCENT.findall(line)]
    if shares:
        return shares[-1] if shares[-1] <= 100 else None
    sizes = _SIZES.search(line)
    if sizes:
        done, whole = (float(sizes[at]) * _UNITS[sizes[at + 1][0]] for at in (1, 3))
        return min(100.0, 100 * done / whole) if whole else None
    return None


class Beat:
    """Lets through one caller an interval, over all processes that are forked after it was made."""

    def __init__(self, every: float = LINE_EVERY) -> None:
        self._every = every
        self._shared = mmap.mmap(-1, 8)
        self._lock = threading.Lock()

    def take(self, now: float) -> bool:
        """Return whether it is this caller's turn."""
        with self._lock:
            (last,) = struct.unpack("d", self._shared[:8])
            if last and 0 <= now - last < self._every:
                return False
            self._shared[:8] = struct.pack("d", now)
            return True


BEAT = Beat()


class Watcher:
    """Shows how the tasks of one client fare; what it does must never harm the wait."""

    def __init__(
        self, client: Client, show: Callable[[str], Any], who: str = "", beat: Beat = BEAT, clock: Clock | None = None
    ) -> None:
        self._client = client
        self._show = show
        self._who = f"[{who}] " if who else ""
        self._beat = beat
        self._clock = clock or Clock()
        self._lock = threading.Lock()
        self._lines: dict[str, int] = {}
        self._shares: dict[str, float] = {}
        self._looked: dict[str, float] = {}

    def __call__(self, upid: str, seconds: float, status: str) -> None:
        """Show a line if it is time for one. `seconds` have been waited for the task so far."""
        now = self._clock.monotonic()
        if seconds < FIRST_AFTER or not self._beat.take(now):
            return
        with self._lock:
            task = parse_upid(upid)
            what = WORDS.get(task.type, task.type)
            whose = f" of VM {task.id}" if task.id.isdigit() else ""
            share = self._share(upid, now)
            far = "" if share is None else f", {share:.0f} %"
            beside = "" if status in ("", "running") else f" ({status})"
            self._show(f"{self._who}{what}{whose} on node {task.node}{far}, {seconds:.0f} s{beside}")

    def _share(self, upid: str, now: float) -> float | None:
        """Return how far the task is, from what is new in its log since the last look."""
        if now - self._looked.get(upid, -LOG_EVERY) >= LOG_EVERY:
            self._looked[upid] = now
            task = parse_upid(upid)
            at = self._lines.get(upid, 0)
            try:
                path = ("nodes", task.node, "tasks", task.text, "log")
                rows = self._client.get(*path, start=at, limit=LOG_PAGE, tries=1) or []
            except FleetError:
                rows = []
            texts = [str(row.get("t") or "") for row in rows if row.get("t") != "no content"]
            self._lines[upid] = at + len(texts)
            for text in texts:
                share = percent(text)
                if share is not None:
                    self._shares[upid] = share
        return self._shares.get(upid)
