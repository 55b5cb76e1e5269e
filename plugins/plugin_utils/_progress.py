# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines that show progress on a terminal: which task or upload, how far, and for how long."""

from __future__ import annotations

import mmap
import re
import struct
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from ..module_utils._foundation.api.client import Client
from ..module_utils._foundation.api.request import Upload
from ..module_utils._foundation.api.upid import Upid, parse_upid
from ..module_utils._foundation.core.clock import Clock
from ..module_utils._foundation.core.errors import FleetError
from ..module_utils._foundation.core.formatting import printable
from ..module_utils._foundation.core.quantities import readable_size

FIRST_AFTER = 1.5  # seconds; a shorter task needs no line
LINE_EVERY = 1.0  # seconds, over all processes of a play
LOG_EVERY = 3.0  # seconds between two reads of a task's log
LOG_PAGE = 500

# Set by Ansible Automation Platform and CI, whose terminals are not interactive.
UNATTENDED = (
    "AWX_HOST",
    "AWX_PRIVATE_DATA_DIR",
    "AWX_ISOLATED_DATA_DIR",
    "RUNNER_OMIT_EVENTS",
    "JENKINS_URL",
    "CI",
)

# This file is imported before the workers are forked: that process still has the terminal, the
# workers lose it.
ON_A_TERMINAL = bool(sys.stdout is not None and sys.stdout.isatty())

WORDS = {
    "download": "download",
    "imgcopy": "copy of a volume",
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


def is_wanted(
    setting: bool | None, environ: Mapping[str, str], on_a_terminal: bool = ON_A_TERMINAL
) -> bool:
    """Return whether progress is shown: the setting, else true on an interactive terminal."""
    if setting is not None:
        return setting
    return on_a_terminal and not any(environ.get(name) for name in UNATTENDED)


def percent(line: str) -> float | None:
    """Return the percentage in a line of a task's log, or None if the line has none."""
    shares = _PERCENT.findall(line)
    if shares:
        share = float(shares[-1])
        return share if share <= 100 else None
    sizes = _SIZES.search(line)
    if sizes is None:
        return None
    done = float(sizes[1]) * _UNITS[sizes[2][0]]
    whole = float(sizes[3]) * _UNITS[sizes[4][0]]
    if not whole:
        return None
    return min(100.0, 100 * done / whole)


def describe_task(task: Upid) -> str:
    """Return a description of a task of Proxmox VE: its work, its VM and its node."""
    what = WORDS.get(task.type, task.type)
    if task.id.isdigit():
        what = f"{what} of VM {task.id}"
    return f"{what} on node {task.node}"


def describe_upload(upload: Upload, sent: int, size: int, seconds: float) -> str:
    """Return a description of an upload: its file and place, the share that was sent, the mean
    rate and the elapsed time (pure).

    `sent` and `size` are in bytes. Neither `size` nor `seconds` is zero.
    """
    share = f"{100 * sent / size:.0f} % of {readable_size(size)}"
    rate = f"{readable_size(sent / seconds)}/s"
    return f"upload of {upload.name} to {upload.place}, {share}, {rate}, {seconds:.0f} s"


class Beat:
    """A limiter that admits one caller for each interval, over all processes forked later."""

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
    """Shows the progress of the tasks and uploads of one client.

    A failure to read the progress of a task never ends the wait.
    """

    def __init__(
        self,
        client: Client,
        show: Callable[[str], Any],
        who: str = "",
        beat: Beat = BEAT,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._show = show
        self._who = f"[{who}] " if who else ""
        self._beat = beat
        self._clock = clock or Clock()
        self._lock = threading.Lock()
        self._lines: dict[str, int] = {}
        self._shares: dict[str, float] = {}
        self._logged: dict[str, float] = {}

    def __call__(self, upid: str, seconds: float, status: str) -> None:
        """Show a line if one is due. `seconds` is the waiting time for the task so far."""
        now = self._clock.monotonic()
        if not self._is_due(seconds, now):
            return
        with self._lock:
            task = parse_upid(upid)
            line = f"{self._who}{describe_task(task)}"
            share = self._share(task, now)
            if share is not None:
                line = f"{line}, {share:.0f} %"
            line = f"{line}, {seconds:.0f} s"
            if status not in ("", "running"):
                line = f"{line} ({status})"
            self._show(printable(line))

    def show_upload(self, upload: Upload, sent: int, size: int, seconds: float) -> None:
        """Show a line if one is due. `seconds` is the time since the start of the upload."""
        if self._is_due(seconds, self._clock.monotonic()):
            line = f"{self._who}{describe_upload(upload, sent, size, seconds)}"
            self._show(printable(line))

    def _is_due(self, seconds: float, now: float) -> bool:
        return seconds >= FIRST_AFTER and self._beat.take(now)

    def _share(self, task: Upid, now: float) -> float | None:
        """Return the last percentage in the task's log, or None.

        The log is read every `LOG_EVERY` seconds.
        """
        last = self._logged.get(task.text, -LOG_EVERY)
        if now - last >= LOG_EVERY:
            self._logged[task.text] = now
            for text in self._new_lines(task):
                share = percent(text)
                if share is not None:
                    self._shares[task.text] = share
        return self._shares.get(task.text)

    def _new_lines(self, task: Upid) -> list[str]:
        """Return the lines of the log since the last read, none if it cannot be read."""
        start = self._lines.get(task.text, 0)
        path = ("nodes", task.node, "tasks", task.text, "log")
        try:
            rows = self._client.get(*path, start=start, limit=LOG_PAGE, tries=1) or []
        except FleetError:
            return []
        texts = [str(row.get("t") or "") for row in rows if row.get("t") != "no content"]
        self._lines[task.text] = start + len(texts)
        return texts
