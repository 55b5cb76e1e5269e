"""Many runs in one process: memory and open sockets must not grow.

`python -m tests.bench.workloads.soak RUNS` measures in its own process and prints the figures as
JSON.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import subprocess
import sys
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.bench.figures import Measured
from tests.simulator.process import Simulator
from tests.tools.stage import REPO

RUNS = 2000
# The first runs fill caches, such as compiled patterns and the pools of the allocator.
WARM = 0.25
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Soaked:
    """The measurements: MiB and open sockets, after the first quarter and at the end."""

    runs: int
    warm_mib: float
    last_mib: float
    warm_sockets: int
    last_sockets: int

    @property
    def grown_mib(self) -> float:
        """The growth of the memory from the first quarter to the end."""
        return self.last_mib - self.warm_mib


def soak(runs: int = RUNS) -> Soaked:
    """Return the measurements of many runs in a separate process."""
    command = [sys.executable, "-m", "tests.bench.workloads.soak", str(runs)]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=True)
    return Soaked(**json.loads(done.stdout.splitlines()[-1]))


def part(_bench: Any) -> Measured:
    """Run 2,000 tasks in one process."""
    soaked = soak()
    measured = Measured()
    measured.key("soak_grown_mib", soaked.grown_mib)
    measured.key("soak_more_sockets", float(soaked.last_sockets - soaked.warm_sockets))
    return measured


def measure(runs: int) -> Soaked:
    """Run tasks that change something, change nothing or fail, all with pooled clients."""
    with Simulator() as simulator:
        connection = {
            "host": simulator.url,
            "ca_path": str(simulator.ca),
            "token_id": simulator.token_id,
            "token_secret": simulator.token_secret,
        }
        warm: tuple[float, int] | None = None
        for number in range(runs):
            _run(connection, number)
            if number == int(runs * WARM):
                warm = _now()
        assert warm is not None
        return Soaked(runs, warm[0], _now()[0], warm[1], _now()[1])


def _run(connection: dict[str, Any], number: int) -> None:
    """Run the module like a task in the controller's process; of ten, one changes and one fails."""
    from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
    from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import TaskMode
    from ansible_collections.pve.fleet.plugins.modules.vm import ENTRY
    from ansible_collections.pve.fleet.plugins.plugin_utils import _arguments
    from ansible_collections.pve.fleet.plugins.plugin_utils._clients import CLIENTS

    options: dict[str, Any] = {"name": "soaked", "disks": [{"size": 1}], "node": "pve1"}
    if number % 10 == 1:
        options["description"] = f"run {number}"
    if number % 10 == 2:
        options["source"] = "no-such-template"
        options["name"] = "never"

    def lend(wanted: Any) -> AbstractContextManager[Client]:
        return CLIENTS.lend(wanted, {})

    given = _arguments.as_a_module_gets({**connection, **options})
    checked = _arguments.check(ENTRY, "pve.fleet.vm", given)
    outcome = ENTRY.perform(
        checked.params, {}, TaskMode(check=False, diff=True, verbosity=0), lend=lend, given=given
    )
    assert outcome.failed == (number % 10 == 2), outcome.values


def _now() -> tuple[float, int]:
    """Return the memory of this process in MiB, and the number of its open sockets."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    sockets = 0
    for entry in os.listdir("/proc/self/fd"):
        try:
            sockets += os.readlink(f"/proc/self/fd/{entry}").startswith("socket:")
        except FileNotFoundError:  # the one that lists the directory
            continue
    return pages * PAGE / 1024**2, sockets


if __name__ == "__main__":
    # This makes the collection importable by its own name.
    importlib.import_module("tests.conftest")
    print(json.dumps(asdict(measure(int(sys.argv[1])))))
