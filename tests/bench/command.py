"""Runs a command and tells its time, its processor time and its memory."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.environment import NotMeasured

SAMPLE_EVERY = 0.2  # seconds between two looks at the memory of all processes
LONGEST = 1200.0  # seconds


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    seconds: float
    cpu_seconds: float  # of it and of its descendants
    peak_mib: float  # of all its processes together where that was watched, else of the largest one
    output: Path  # what it printed


def run(command: Sequence[str], where: Path, environment: Mapping[str, str], *, watch_memory: bool = False) -> Ran:
    """Run a command to its end; what it prints goes to `output` and `errors` there. Raises NotMeasured if it fails."""
    output, errors = where / "output", where / "errors"
    with output.open("w", encoding="utf-8") as out, errors.open("w", encoding="utf-8") as err:
        began = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=where,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        status, usage, seconds, together = _attend(process, began, watch_memory)
    if status != 0:
        texts = [file.read_text(encoding="utf-8", errors="replace")[-3000:] for file in (output, errors)]
        raise NotMeasured(f"{Path(command[0]).name} ended with status {status}:\n{''.join(texts)}")
    peak = max(together, usage.ru_maxrss / 1024)
    return Ran(seconds, usage.ru_utime + usage.ru_stime, peak, output)


def _attend(
    process: subprocess.Popen[bytes], began: float, watch_memory: bool
) -> tuple[int, resource.struct_rusage, float, float]:
    """Return exit status, resources, seconds and the peak of all processes' memory in MiB (0 where not watched)."""
    over = threading.Event()
    peak = [0.0]

    def watch() -> None:
        while not over.wait(SAMPLE_EVERY):
            peak[0] = max(peak[0], memory_of(process.pid))

    stopper = threading.Timer(LONGEST, _stop, [process.pid])
    stopper.start()
    watcher = threading.Thread(target=watch, daemon=True)
    if watch_memory:
        watcher.start()
    try:
        _pid, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
    except BaseException:
        _stop(process.pid)
        raise
    finally:
        stopper.cancel()
        over.set()
        if watch_memory:
            watcher.join()
    return process.returncode, usage, seconds, peak[0]


def _stop(pid: int) -> None:
    """Stop the command and what it started; it has a process group of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGTERM)


def memory_of(pid: int) -> float:
    """Return the MiB that a process and its descendants take, what they share counted once."""
    total = 0
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        # A process may end between two looks.
        with contextlib.suppress(OSError, ValueError):
            for line in Path(f"/proc/{one}/smaps_rollup").read_text(encoding="ascii").splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
        with contextlib.suppress(OSError, ValueError):
            for task in Path(f"/proc/{one}/task").iterdir():
                waiting += map(int, (task / "children").read_text(encoding="ascii").split())
    return total / 1024
