# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines that show progress: the guests of a run, a task or an upload, how far, and for how long.

On a terminal, one line rewrites itself. Elsewhere, each line is new, and there are few.
"""

from __future__ import annotations

import mmap
import re
import shutil
import struct
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..module_utils._foundation.api.client import Client
from ..module_utils._foundation.api.request import Upload
from ..module_utils._foundation.api.upid import Upid, parse_upid
from ..module_utils._foundation.core.clock import Clock
from ..module_utils._foundation.core.errors import FleetError
from ..module_utils._foundation.core.formatting import printable
from ..module_utils._foundation.core.quantities import readable_size
from ..module_utils._guests.fleet.pace import RunCounts
from ..module_utils._operation.maintenance.times.estimate import duration

FIRST_AFTER = 1.5  # seconds; a shorter task needs no line
LINE_EVERY = 1.0  # seconds, over all processes of a play
LOG_LINE_EVERY = 30.0  # the same if each line is new
EACH_GUEST_UP_TO = 50  # a longer run has a line for each tenth of its guests
LOG_EVERY = 3.0  # seconds between two reads of a task's log
LOG_PAGE = 500
_BAR = 10
_CLEAR = "\r\x1b[K"

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

COLUMNS = shutil.get_terminal_size().columns

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
    "qmrestore": "restore",
    "qmtemplate": "conversion to a template",
    "vzclone": "clone",
    "vzcreate": "creation",
    "vzdestroy": "deletion",
    "vzdump": "backup",
    "vzmigrate": "migration",
    "vzreboot": "reboot",
    "vzrestore": "restore",
    "vzrollback": "rollback",
    "vzshutdown": "shutdown",
    "vzsnapshot": "snapshot",
    "vzstart": "start",
    "vzstop": "stop",
}
_PERCENT = re.compile(r"(?<![\d.])(\d{1,3}(?:\.\d+)?) ?%")
# Percentages that are not progress: qemu-server QemuMigrate.pm and VZDump/QemuServer.pm, and vma of
# pve-qemu.
_OTHER_SHARES = re.compile(r"cache-miss|sparse|reused")
_SIZES = re.compile(r"transferred ([\d.]+) ([KMGT]?i?B) of ([\d.]+) ([KMGT]?i?B)")
_UNITS = {letter: 1024**power for power, letter in enumerate("BKMGT")}


@dataclass(frozen=True)
class ProgressMode:
    """How progress is shown: by a line that rewrites itself, or by a new line each `every` seconds."""

    rewrites: bool
    every: float
    first_after: float


def mode_of(
    setting: bool | None, environ: Mapping[str, str], on_a_terminal: bool = ON_A_TERMINAL
) -> ProgressMode | None:
    """Return how progress is shown, None if the setting is false. The setting true makes the lines
    of a log as frequent as those of a terminal.
    """
    if setting is False:
        return None
    if on_a_terminal and not any(environ.get(name) for name in UNATTENDED):
        return ProgressMode(True, LINE_EVERY, FIRST_AFTER)
    if setting:
        return ProgressMode(False, LINE_EVERY, FIRST_AFTER)
    return ProgressMode(False, LOG_LINE_EVERY, LOG_LINE_EVERY)


def describe_run(counts: RunCounts, columns: int = 1000) -> str:
    """Return a description of a run, such as C([####......] 40/100 created, 1 failed, 5 at work
    (acme-web7 12 s), about 6 min left). The name of the slowest guest is cut if the line is too long.
    """
    ended = counts.done + counts.failed
    full = min(round(_BAR * ended / counts.number), _BAR - (ended < counts.number))
    text = f"[{'#' * full}{'.' * (_BAR - full)}] {counts.done}/{counts.number} {counts.word}"
    if counts.failed:
        text += f", {counts.failed} failed"
    end = f", about {duration(_left(counts))} left" if ended and ended < counts.number else ""
    if counts.busy:
        text += f", {len(counts.busy)} at work"
        label, seconds = max(counts.busy, key=lambda one: one[1])
        age = f"{seconds:.0f} s"
        room = columns - len(f"{text} ( {age}){end}") - 1
        if len(label) > room:
            label = f"{label[: max(0, room - 3)]}..."
        text += f" ({label} {age})" if room > 6 else ""
    return text + end


def _left(counts: RunCounts) -> float:
    """Return an estimate of the seconds until a run ends; a guest at work counts as half finished."""
    finished = counts.done + counts.failed + len(counts.busy) / 2
    left = counts.seconds * (counts.number - finished) / finished
    return left if left < 90 else 60 * round(left / 60)


def describe_guest(counts: RunCounts) -> str:
    """Return a description of the guest that has just finished."""
    word = "failed" if counts.has_failed else counts.word
    ended = counts.done + counts.failed
    return f"{counts.finished} {word} in {counts.took:.0f} s ({ended}/{counts.number})"


def percent(line: str) -> float | None:
    """Return the percentage in a line of a task's log, or None if the line has none.

    The first one is the progress: a restore from a backup server adds the share of zeroes
    (C(restore_image) in proxmox-backup-qemu, src/restore.rs).
    """
    found = None if _OTHER_SHARES.search(line) else _PERCENT.search(line)
    if found is not None:
        share = float(found[1])
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
        noun = "guest" if task.type == "vzdump" else "container"
        what = f"{what} of {noun if task.type.startswith('vz') else 'VM'} {task.id}"
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
    """Shows the progress of the runs, tasks and uploads of one client.

    A failure to read the progress of a task never ends the wait.
    """

    def __init__(
        self,
        client: Client,
        show: Callable[..., Any],
        who: str = "",
        mode: ProgressMode = ProgressMode(False, LINE_EVERY, FIRST_AFTER),
        beat: Beat = BEAT,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._show = show
        self._who = f"[{who}] " if who else ""
        self._mode = mode
        self._beat = beat
        self._clock = clock or Clock()
        self._lock = threading.Lock()
        self._lines: dict[str, int] = {}
        self._shares: dict[str, float] = {}
        self._logged: dict[str, float] = {}
        self._is_drawn = False
        self._shown_at = self._clock.monotonic()
        self._tenths = 0

    def __call__(self, upid: str, seconds: float, status: str) -> None:
        """Show a line if one is due. `seconds` is the waiting time for the task so far."""
        now = self._clock.monotonic()
        if not self._is_due(seconds, now):
            return
        with self._lock:
            task = parse_upid(upid)
            line = describe_task(task)
            share = self._share(task, now)
            if share is not None:
                line = f"{line}, {share:.0f} %"
            line = f"{line}, {seconds:.0f} s"
            if status not in ("", "running"):
                line = f"{line} ({status})"
            self._draw(line)

    def show_upload(self, upload: Upload, sent: int, size: int, seconds: float) -> None:
        """Show a line if one is due. `seconds` is the time since the start of the upload."""
        if self._is_due(seconds, self._clock.monotonic()):
            self._draw(describe_upload(upload, sent, size, seconds))

    def note_run(self, counts: RunCounts) -> None:
        """Show how far a run is, if a line is due."""
        now = self._clock.monotonic()
        if self._mode.rewrites:
            if self._beat.take(now):
                self._draw(describe_run(counts, COLUMNS - len(self._who)))
            return
        is_long = counts.number > EACH_GUEST_UP_TO
        is_late = now - self._shown_at >= LOG_LINE_EVERY
        if counts.finished and not is_long:
            self._note(now, describe_guest(counts))
        elif is_late or (is_long and self._is_next_tenth(counts)):
            self._note(now, describe_run(counts))

    def close(self) -> None:
        """Remove the line that rewrites itself."""
        if self._is_drawn:
            self._show(_CLEAR, newline=False, screen_only=True)
            self._is_drawn = False

    def _is_next_tenth(self, counts: RunCounts) -> bool:
        tenths = 10 * (counts.done + counts.failed) // counts.number
        is_next = tenths > self._tenths
        self._tenths = tenths
        return is_next

    def _note(self, now: float, line: str) -> None:
        self._shown_at = now
        self._draw(line)

    def _draw(self, line: str) -> None:
        text = printable(f"{self._who}{line}")
        if not self._mode.rewrites:
            self._show(text)
            return
        # The cursor returns to the begin, so that other output overwrites the line.
        self._show(f"{_CLEAR}{text[: COLUMNS - 1]}\r", newline=False, screen_only=True)
        self._is_drawn = True

    def _is_due(self, seconds: float, now: float) -> bool:
        if seconds < self._mode.first_after:
            return False
        if self._mode.every > LINE_EVERY and now - self._shown_at < self._mode.every:
            return False
        if not self._beat.take(now):
            return False
        self._shown_at = now
        return True

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
