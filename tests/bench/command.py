"""Runs a command and tells its time, its processor time and its memory."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.environment import NotMeasured

SAMPLE_EVERY = 0.2  # seconds between two looks at the memory of all processes
LONGEST = 1200.0  # seconds
LAUNCHER = Path(__file__).resolve().parent / "launcher.py"


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    seconds: float
    cpu_seconds: float  # of it and of its descendants
    peak_mib: float  # of all its processes together where that was watched, else of the largest one
    output: Path  # what it printed


def run(
    command: Sequence[str],
    where: Path,
    environment: Mapping[str, str],
    *,
    watch_memory: bool = False,
    status: int = 0,
) -> Ran:
    """Run a command to its end.

    What it prints goes to `output` and `errors` there. Raises NotMeasured for another exit status.
    """
    report, output, errors = where / "report.json", where / "output", where / "errors"
    report.unlink(missing_ok=True)
    launched = [
        sys.executable,
        "-I",
        "-S",
        str(LAUNCHER),
        str(report),
        str(output),
        str(errors),
        *command,
    ]
    process = subprocess.Popen(launched, cwd=where, env=dict(environment), start_new_session=True)
    together = _attend(process, watch_memory)
    found: dict[str, Any] = {"status": "none"}
    if report.exists():
        found = json.loads(report.read_text(encoding="utf-8"))
    if found["status"] != status:
        texts = [
            file.read_text(encoding="utf-8", errors="replace")[-3000:] for file in (output, errors)
        ]
        raise NotMeasured(
            f"{Path(command[0]).name} ended with status {found['status']}:\n{''.join(texts)}"
        )
    return Ran(found["seconds"], found["cpu_seconds"], max(together, found["peak_mib"]), output)


def _attend(process: subprocess.Popen[bytes], watch_memory: bool) -> float:
    """Wait for the end, for so long at most.

    Return the peak of all processes' memory in MiB, 0 where not watched.
    """
    peak = 0.0
    end = time.monotonic() + LONGEST
    try:
        while time.monotonic() < end:
            try:
                process.wait(SAMPLE_EVERY if watch_memory else LONGEST)
                return peak
            except subprocess.TimeoutExpired:
                peak = max(peak, memory_of(process.pid))
        raise NotMeasured(f"it did not end within {LONGEST:g} s")
    finally:
        _stop(process.pid)
        process.wait()


def _stop(pid: int) -> None:
    """Stop what is left of the command and of what it started.

    It has a process group of its own.
    """
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


def other_work() -> Callable[[], float]:
    """Return a function that returns the number of cores that other work has used since this call.

    It is the busy time of the machine without the time of this process and its children.
    """
    wall, busy, own = time.monotonic(), _machine_seconds(), _own_seconds()

    def seconds_reported() -> float:
        others = _machine_seconds() - busy - (_own_seconds() - own)
        return max(0.0, others / max(0.001, time.monotonic() - wall))

    return seconds_reported


def _machine_seconds() -> float:
    fields = [
        int(field)
        for field in Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]
    ]
    idle = fields[3] + fields[4]
    return (sum(fields) - idle) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
