"""Runs the simulator as a process of its own, for tests."""

from __future__ import annotations

import atexit
import http.client
import json
import os
import queue
import signal
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from .forks import Forked, Starter

# `tests.simulator` in a clone, `pve_simulator` if it is installed.
PACKAGE = __name__.rpartition(".")[0]
# The directory that Python must search for the package: in a clone, the root of the repository.
ROOT = Path(__file__).resolve().parents[PACKAGE.count(".") + 1]
CLUSTERS = Path(__file__).resolve().parent / "clusters"
DEMO = CLUSTERS / "demo.yml"

# The token that the demo cluster and every made-up cluster know.
TOKEN_ID = "root@pam!fleet"
TOKEN_SECRET = "00000000-0000-4000-8000-0000000000f1"


class SimulatorError(RuntimeError):
    """The simulator did not start, or refused a control request."""


class Simulator:
    """A running simulator: `with Simulator("--cluster", DEMO) as sim: ... sim.url ...`.

    The control plane is always on. Without arguments the demo cluster is served, with the listing's
    lag off.
    """

    token_id = TOKEN_ID
    token_secret = TOKEN_SECRET

    def __init__(self, *args: object, timeout: float = 300.0) -> None:
        given = [str(arg) for arg in args]
        if not given:
            given = ["--cluster", str(DEMO), "--lag-s", "0", "--auth-delay-s", "0"]
        if "--control" not in given:
            given.append("--control")
        self.args = given
        self.timeout = timeout
        self.url = ""
        self.control = ""
        self.ca = ""
        self.process: subprocess.Popen[str] | Forked | None = None
        self._lines = threading.local()

    @property
    def token(self) -> str:
        """The API token of the demo cluster and of every made-up one, as the Authorization header
        wants it.
        """
        return f"{self.token_id}={self.token_secret}"

    @property
    def host(self) -> str:
        """The host of the URL."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """The port of the URL."""
        return urlsplit(self.url).port or 0

    @property
    def pid(self) -> int:
        """The process ID."""
        return self.process.pid if self.process else 0

    def start(self) -> Simulator:
        """Start it and wait until it is ready."""
        self.process = self._process()
        lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=_pump, args=(self.process, lines), daemon=True).start()
        self._errors: list[str] = []
        threading.Thread(target=_collect, args=(self.process, self._errors), daemon=True).start()
        end = time.monotonic() + self.timeout
        while not (self.url and self.ca and self.control):
            try:
                line = lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                self.stop()
                raise SimulatorError("the simulator was not ready in time") from None
            if line is None:
                self.stop()
                raise SimulatorError(
                    "".join(self._errors).strip() or "the simulator ended before it was ready"
                )
            word, _dummy, value = line.strip().partition(" ")
            if word == "ready":
                self.url = value
            elif word == "ca":
                self.ca = value
            elif word == "control":
                self.control = value
        return self

    def _process(self) -> subprocess.Popen[str] | Forked:
        if _starter is not None:
            return _starter.start(self.args, _environment())
        return subprocess.Popen(
            [sys.executable, "-m", PACKAGE, *self.args],
            env=_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def stop(self) -> None:
        """Stop it, by its process ID."""
        process = self.process
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(60)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        self.process = None
        self._lines = threading.local()

    def __enter__(self) -> Simulator:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # -- the control plane -----------------------------------------------------------------------

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """A request to the control plane."""
        data = None if body is None else json.dumps(body).encode()
        status, text = self._exchange(method, f"/{path.lstrip('/')}", data)
        if status >= 400:
            raise SimulatorError(f"{method} {path}: {text.decode()}")
        return json.loads(text)

    def _exchange(self, method: str, target: str, data: bytes | None) -> tuple[int, bytes]:
        """Return status and body of an answer. Each thread of a process keeps its connection: a new
        one costs more than most requests.
        """
        kept: http.client.HTTPSConnection | None = getattr(self._lines, f"of_{os.getpid()}", None)
        if kept is not None:
            try:
                return _answer(kept, method, target, data)
            except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLError):
                kept.close()  # the server closed it while it was idle
        context = ssl.create_default_context(cafile=self.ca)
        address = urlsplit(self.control)
        new = http.client.HTTPSConnection(
            address.hostname or "", address.port, timeout=300, context=context
        )
        setattr(self._lines, f"of_{os.getpid()}", new)
        return _answer(new, method, target, data)

    def steer(self, path: str, body: Any) -> Any:
        """Make a change that no API call can make, e.g. `steer("/vms/100", {"lock": "backup"})`."""
        return self.ask("PUT", path, body)

    def log(self) -> list[dict[str, Any]]:
        """The requests so far: method, path, route, status, ms, user, params."""
        found: list[dict[str, Any]] = self.ask("GET", "/log")
        return found

    def writes(self) -> list[dict[str, Any]]:
        """The requests other than GET."""
        return [entry for entry in self.log() if entry["method"] != "GET"]

    def counts(self) -> dict[str, int]:
        """How many requests there were, by method and route."""
        found: dict[str, int] = self.ask("GET", "/counts")
        return found

    def reset_log(self) -> None:
        """Forget the requests so far."""
        self.ask("DELETE", "/log")

    def fault(self, **rule: Any) -> None:
        """Add a fault, e.g. `fault(method="POST", path="/clone$", drop="after")`."""
        self.ask("POST", "/faults", rule)

    def clear_faults(self) -> None:
        """Remove all faults."""
        self.ask("DELETE", "/faults")

    def reset(self) -> None:
        """Back to the state at the start; log and faults are cleared."""
        self.ask("POST", "/reset")


_starter: Starter | None = None


def start_from_one_process(place: Path | None = None) -> None:
    """From now on, start each server as a fork of one process, which saves most of the time. All
    processes of tests that name the same place share it.
    """
    global _starter
    if _starter is None and hasattr(os, "fork"):
        own = ("PYTEST_",)  # different in each process of tests, and read by none of the servers
        known = {key: value for key, value in _environment().items() if not key.startswith(own)}
        _starter = Starter(f"{PACKAGE}.starter", known, place=place)
        atexit.register(_starter.stop)


def _answer(
    connection: http.client.HTTPSConnection, method: str, target: str, data: bytes | None
) -> tuple[int, bytes]:
    try:
        connection.request(method, target, data)
        with connection.getresponse() as answer:
            return answer.status, answer.read()
    except BaseException:
        connection.close()
        raise


def _environment() -> dict[str, str]:
    """The environment of the process; in a clone it contains the path of the package."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    if "." in PACKAGE:
        path = [str(ROOT), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    return environment


def _pump(process: subprocess.Popen[str] | Forked, lines: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    try:
        for line in process.stdout:
            lines.put(line)
    except ValueError:
        pass
    lines.put(None)


def _collect(process: subprocess.Popen[str] | Forked, errors: list[str]) -> None:
    assert process.stderr is not None
    try:
        for line in process.stderr:
            errors.append(line)
    except ValueError:
        pass
