"""Runs a command and reports on it: `python launcher.py REPORT OUTPUT ERRORS COMMAND...`.

The kernel lets a new process begin with the peak of the memory of the one that started it. This one
is small; the benchmark, with an inventory in its memory, is not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time


def main(report: str, output: str, errors: str, *command: str) -> None:
    """Run the command to its end, and write how it ended and what it and its descendants took."""
    with open(output, "w") as out, open(errors, "w") as err:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        _pid, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
    found = {
        "status": os.waitstatus_to_exitcode(status),
        "seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mib": usage.ru_maxrss / 1024,  # of the largest process
    }
    with open(report, "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
