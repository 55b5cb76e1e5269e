"""The demo cluster as a test sees it: modules to run, requests to count, a client to look with."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import (
    Client,
    connect,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.vmids import (
    VmidAllocator,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import FleetError
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.vm import vm_spec
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.run import run as converge
from tests.labs.shortcut import shortcut
from tests.modules.module_runner import run_module
from tests.simulator.process import Simulator
from tests.simulator.threaded import ThreadedSimulator

CLUSTER = Path(__file__).resolve().parents[1] / "simulator" / "clusters" / "demo.yml"
TOKEN_ID, TOKEN_SECRET = "root@pam!fleet", "00000000-0000-4000-8000-0000000000f1"
_OPTIONS = ("--cluster", str(CLUSTER), "--task-ms", "default=20", "--proxy-delay-s", "0.1")


@dataclass
class Lab:
    """One running simulator and the ways to it."""

    simulator: Simulator
    client: Client

    @property
    def connection(self) -> dict[str, Any]:
        """The connection options of a module."""
        return {
            "host": self.simulator.url,
            "ca_path": str(self.simulator.ca),
            "token_id": TOKEN_ID,
            "token_secret": TOKEN_SECRET,
        }

    def run(self, module: str, *, check: bool = False, **options: Any) -> dict[str, Any]:
        """Return the result of a module. VMs need no disk, unless a test sets `blank` itself."""
        if module in ("vm", "vms"):
            options.setdefault("blank", True)
        if module == "relocate" and "sites" not in options:
            options = {**dict.fromkeys(self.connection), **self._as_two_sites(), **options}
        return run_module(module, {**self.connection, **options}, check=check)

    def _as_two_sites(self) -> dict[str, Any]:
        """Return the connection of a task between two sites, both of which are this cluster."""
        sites = [{"name": name, **self.connection} for name in ("vienna", "munich")]
        return {"sites": sites, "site": "vienna"}

    def vm(self, *, check: bool = False, **options: Any) -> dict[str, Any]:
        """Return what module vm says; a failure is an error of the test."""
        result = self.run("vm", check=check, **options)
        assert not result.get("failed"), result
        return result

    def refused(self, **options: Any) -> dict[str, Any]:
        """Return the failure of module vm, which must have made no write."""
        self.simulator.reset_log()
        result = self.run("vm", **options)
        assert result.get("failed"), result
        assert self.simulator.writes() == []
        assert result["msg"].count(".") >= 1
        return result

    def config(self, vm: dict[str, Any]) -> dict[str, Any]:
        """Return the configuration of a VM as the server has it."""
        return self.client.get("nodes", vm["node"], "qemu", vm["vmid"], "config")

    def status(self, vm: dict[str, Any]) -> str:
        """Return the power state of a VM."""
        return self.client.get("nodes", vm["node"], "qemu", vm["vmid"], "status", "current")[
            "status"
        ]


def first_number(name: str, tenant: str | None = None) -> int:
    """Return the VMID that a new VM of that name gets where no other VM has it."""
    tag = tenant and f"tenant_{tenant}"
    return next(VmidAllocator((10000, 99999), tag, name).order())


@contextlib.contextmanager
def open_lab(*arguments: str) -> Iterator[Lab]:
    """Start a simulator with the demo cluster and short tasks, whose nodes need a tenth of a second
    to find that another node is down, instead of three.
    """
    simulator = ThreadedSimulator(*_OPTIONS, *arguments)
    with simulator, shortcut(simulator), _connected(simulator) as lab:
        yield lab


@contextlib.contextmanager
def open_lab_of_processes(*arguments: str) -> Iterator[Lab]:
    """Start the same simulator as a process, for tests that fork: a fork lacks the threads."""
    with Simulator(*_OPTIONS, *arguments) as simulator, _connected(simulator) as lab:
        yield lab


@contextlib.contextmanager
def _connected(simulator: Simulator) -> Iterator[Lab]:
    options = {
        "host": simulator.url,
        "ca_path": str(simulator.ca),
        "token_id": TOKEN_ID,
        "token_secret": TOKEN_SECRET,
    }
    with connect(options, {}) as client:
        yield Lab(simulator, client)


@contextlib.contextmanager
def watched_tasks(lab: Lab, kind: str, *nodes: str) -> Iterator[list[list[str]]]:
    """Yield the objects of running tasks of this type on all of these nodes, seen again and again.

    The list grows until the end.
    """
    seen: list[list[str]] = []
    over = threading.Event()

    def running() -> list[str]:
        rows: list[dict[str, Any]] = []
        for node in nodes:
            rows += lab.client.get("nodes", node, "tasks", source="active", typefilter=kind)
        return [str(row["id"]) for row in rows if not row.get("endtime")]

    def watch() -> None:
        while not over.wait(0.02):
            seen.append(running())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()


def run_at_once(lab: Lab, all_wanted: list[dict[str, Any]]) -> list[dict[str, Any] | FleetError]:
    """Converge all desired VMs at the same time, and return what each run came to."""
    gate = threading.Barrier(len(all_wanted))
    defaults = {name: option.get("default") for name, option in vm_spec().items()}

    def one(wanted: dict[str, Any]) -> dict[str, Any] | FleetError:
        with connect(lab.connection, {}) as client:
            gate.wait(300)
            try:
                return dict(converge({**defaults, **wanted}, client).values)
            except FleetError as error:
                return error

    with ThreadPoolExecutor(len(all_wanted)) as pool:
        return list(pool.map(one, all_wanted))
