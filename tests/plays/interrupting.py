# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ends ansible-playbook in the middle of a run."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.simulator.forks import Forked

# How long ansible-playbook may take to end, in seconds.
_LONGEST = 120.0


@dataclass(frozen=True)
class End:
    """A way to end ansible-playbook: a signal, and whether its worker gets it as well."""

    signal: signal.Signals
    worker_too: bool = False

    @property
    def leaves_worker(self) -> bool:
        """Whether the worker continues without the process that started it."""
        return self.signal is signal.SIGKILL and not self.worker_too


def children(pid: int) -> list[int]:
    """Return the processes that a process has forked."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(word) for word in text.split()]


def end(process: Forked, how: End) -> None:
    """End ansible-playbook, and its workers where that is said."""
    workers = children(process.pid) if process.poll() is None else []
    process.send_signal(how.signal)
    if how.worker_too:
        kill(workers, how.signal)
    try:
        process.wait(_LONGEST)
    except subprocess.TimeoutExpired:
        # ansible-core waits forever for the lock of a queue that a killed worker held
        # (plugins/strategy/__init__.py, cleanup).
        process.kill()
        process.wait()


def kill(workers: list[int], number: signal.Signals) -> None:
    """Send a signal to the workers that still run."""
    for worker in workers:
        with suppress(ProcessLookupError):
            os.kill(worker, number)


def await_that(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    for _look in range(6000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come to that")
