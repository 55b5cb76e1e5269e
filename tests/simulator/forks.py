"""Starts a program many times from one process that has loaded everything once.

Most of the time of a start goes into loading Python modules and data that are the same each time.
The starter is a process that has them in memory; each start is a fork of it.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import hashlib
import json
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

_LENGTH = struct.Struct("!I")
# The first message of a starter to each process of tests.
_READY = b"ready"
# The input of a process is that of the tests.
_INPUT = 0
# How long wait() waits that has no time limit.
_LONGEST_WAIT = 3600.0
# The status of a process whose starter has ended without telling one.
_LOST = -signal.SIGKILL


class Attached:
    """A process that the starter made, and that has streams of its caller."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.status = status

    def poll(self) -> int | None:
        """The exit status, or None while the process runs."""
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        """The exit status, once the process has ended."""
        limit = _LONGEST_WAIT if timeout is None else timeout
        status = self._look(limit)
        if status is None:
            raise subprocess.TimeoutExpired("the process", limit)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            # The starter may have waited for the process since the look; then its number is gone.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End the process at once."""
        self.send_signal(signal.SIGKILL)

    def _look(self, timeout: float) -> int | None:
        if self.returncode is not None:
            return self.returncode
        ready, _dummy, _dummy = select.select([self.status], [], [], timeout)
        if not ready:
            return None
        data = os.read(self.status, 64)
        os.close(self.status)
        self.returncode = int(data) if data else _LOST
        return self.returncode


class Forked(Attached):
    """A process whose outputs are read; it has the methods of subprocess.Popen that tests need."""

    def __init__(self, pid: int, status: int, stdout: TextIO, stderr: TextIO) -> None:
        super().__init__(pid, status)
        self.stdout = stdout
        self.stderr = stderr

    def communicate(self) -> tuple[str, str]:
        """Both outputs in full, once the process has ended."""
        with self.stdout, self.stderr, ThreadPoolExecutor(1) as second:
            errors = second.submit(self.stderr.read)
            text = self.stdout.read()
            self.wait()
            return text, errors.result()


class Starter:
    """The starter as the tests' process sees it. It runs from the first start on.

    `module`, found from `root`, calls serve(). Processes of tests that name the same `place`, a
    directory, share the starter of a module and an environment.
    """

    def __init__(
        self,
        module: str,
        environment: Mapping[str, str],
        root: str | None = None,
        place: Path | None = None,
    ) -> None:
        self.module = module
        self.root = root
        self.place = place
        self._environment = dict(environment)
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def start(
        self, args: list[str], environment: Mapping[str, str], directory: str | None = None
    ) -> Forked:
        """Start the program with this command line, in this directory or the one of the tests."""
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        try:
            ends = (_INPUT, out_end, err_end)
            process = self.attach(args, environment, ends, directory)
        finally:
            os.close(out_end)
            os.close(err_end)
        return Forked(
            process.pid, process.status, open(out, encoding="utf-8"), open(err, encoding="utf-8")
        )

    def attach(
        self,
        args: list[str],
        environment: Mapping[str, str],
        streams: tuple[int, int, int],
        directory: str | None = None,
    ) -> Attached:
        """Start the program as start() does, with these as input, output and errors."""
        request = {"args": args, "cwd": directory or os.getcwd(), "environment": dict(environment)}
        body = json.dumps(request).encode()
        status, status_end = os.pipe()
        try:
            with self._lock:
                line = self._line()
                socket.send_fds(line, [_LENGTH.pack(len(body))], [*streams, status_end])
                line.sendall(body)
                (pid,) = _LENGTH.unpack(_receive(line, _LENGTH.size))
        finally:
            os.close(status_end)
        return Attached(pid, status)

    def stop(self) -> None:
        """Disconnect from the starter, which then ends the processes that it forked for this one.

        The starter ends when its last client has disconnected.
        """
        if self._socket is not None:
            with self._socket as line, contextlib.suppress(ConnectionError):
                line.shutdown(socket.SHUT_WR)
                line.recv(1)  # nothing, once all processes have ended
        self._socket = self._process = None

    def _line(self) -> socket.socket:
        if self._socket is None:
            self._socket = self._own() if self.place is None else self._shared(self.place)
        return self._socket

    def _own(self) -> socket.socket:
        with tempfile.TemporaryDirectory(prefix="starter-") as place:
            return self._launched(Path(place) / "socket")

    def _shared(self, place: Path) -> socket.socket:
        """Connect to the starter of another process of tests, or start one."""
        kind = json.dumps([self.module, self.root, sorted(self._environment.items())])
        path = place / hashlib.sha256(kind.encode()).hexdigest()[:16]
        with open(f"{path}.lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                return _connected(path)
            except (OSError, EOFError):  # there is none, or it has just ended
                path.unlink(missing_ok=True)
                return self._launched(path)

    def _launched(self, path: Path) -> socket.socket:
        """Start the starter, and connect to it."""
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-m", self.module, str(listener.fileno())],
                cwd=self.root,
                env=self._environment,
                stdout=subprocess.DEVNULL,
                pass_fds=[listener.fileno()],
            )
        return _connected(path)


def _connected(path: Path) -> socket.socket:
    """Return a line to the starter that listens there, once it has loaded everything."""
    line = socket.socket(socket.AF_UNIX)
    try:
        line.connect(str(path))
        _receive(line, len(_READY))
    except BaseException:
        line.close()
        raise
    return line


def _receive(line: socket.socket, size: int) -> bytes:
    """That many bytes. Raises EOFError when the other end is gone."""
    data = b""
    while len(data) < size:
        more = line.recv(size - len(data))
        if not more:
            raise EOFError("the other process has ended")
        data += more
    return data


# -- the starter itself ----------------------------------------------------------------------------


@dataclass
class _Client:
    """A process of tests: its line, and its forks that run with the pipes for their status."""

    line: socket.socket
    status_of: dict[int, int] = field(default_factory=dict)
    leaves: bool = False


class _Process:
    """Forks on request, and tells how each fork ended."""

    def __init__(
        self,
        listener: socket.socket,
        program: Callable[[list[str]], int],
        prepare: Callable[[list[str]], None],
    ) -> None:
        self.listener = listener
        self.program = program
        self.prepare = prepare
        self.clients: list[_Client] = []
        self.awake, self.wake = os.pipe()
        os.set_blocking(self.wake, False)

    def serve(self) -> None:
        """Work until the last client has left and its processes have ended."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self.wake)
        self._accept()
        while self.clients:
            lines = {one.line.fileno(): one for one in self.clients if not one.leaves}
            awaited = [self.listener.fileno(), self.awake, *lines]
            ready, _dummy, _dummy = select.select(awaited, [], [])
            if self.listener.fileno() in ready:
                self._accept()
            if self.awake in ready:
                os.read(self.awake, 4096)
                self._reap()
            for number in lines.keys() & set(ready):
                self._hear(lines[number])
            self._close()

    def _accept(self) -> None:
        line, _address = self.listener.accept()
        self.clients.append(_Client(line))
        with contextlib.suppress(ConnectionError):
            line.sendall(_READY)

    def _hear(self, client: _Client) -> None:
        """Serve the requests of a client, and end its processes when it disconnects."""
        try:
            self._fork(client)
        except (EOFError, ConnectionError):
            client.leaves = True
            for pid in client.status_of:
                os.kill(pid, signal.SIGTERM)

    def _close(self) -> None:
        """Close the lines of clients that have left and whose processes have ended."""
        for client in [one for one in self.clients if one.leaves and not one.status_of]:
            client.line.close()
            self.clients.remove(client)

    def _reap(self) -> None:
        """Tell how those ended that have ended."""
        for client in self.clients:
            for pid, status in list(client.status_of.items()):
                ended, code = os.waitpid(pid, os.WNOHANG)
                if ended:
                    del client.status_of[pid]
                    with contextlib.suppress(BrokenPipeError):
                        os.write(status, str(os.waitstatus_to_exitcode(code)).encode())
                    os.close(status)

    def _fork(self, client: _Client) -> None:
        head, fds, _flags, _address = socket.recv_fds(client.line, _LENGTH.size, 4)
        if not head:
            raise EOFError
        head += _receive(client.line, _LENGTH.size - len(head))
        request = json.loads(_receive(client.line, *_LENGTH.unpack(head)))
        self.prepare(request["args"])
        pid = os.fork()
        if pid == 0:
            self._become(request, fds)
        *streams, status = fds
        for end in streams:
            os.close(end)
        client.status_of[pid] = status
        client.line.sendall(_LENGTH.pack(pid))

    def _become(self, request: dict[str, Any], fds: list[int]) -> None:
        """Be a process of its own; never returns."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.listener.close()
            for client in self.clients:
                client.line.close()
                for end in client.status_of.values():
                    os.close(end)
            os.close(self.awake)
            os.close(self.wake)
            for number, end in enumerate(fds[:3]):
                os.dup2(end, number)
            for end in fds:
                os.close(end)
            os.environ.clear()
            os.environ.update(request["environment"])
            os.chdir(request["cwd"])
            random.seed()
            code = self.program(request["args"])
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


def end_as_usual() -> None:
    """Do what Python does before a process ends."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()


def serve(program: Callable[[list[str]], int], prepare: Callable[[list[str]], None]) -> None:
    """Be the starter of a program, at the listening socket whose number is the only argument.

    `prepare` loads everything that a start with these arguments needs, before the fork.
    """
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        prepare([])
        gc.collect()
        gc.freeze()
        _Process(listener, program, prepare).serve()
