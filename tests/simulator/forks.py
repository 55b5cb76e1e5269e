"""Starts a program many times from one process that has loaded everything once.

Most of the time of a start goes into loading Python modules and data that are the same each time.
The starter is a process that has them in memory; each start is a fork of it.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TextIO

_LENGTH = struct.Struct("!I")
# How long wait() waits that has no time limit.
_LONGEST_WAIT = 3600.0
# The status of a process whose starter has ended without telling one.
_LOST = -signal.SIGKILL


class Forked:
    """A process that the starter made; it has the methods of subprocess.Popen that tests need."""

    def __init__(self, pid: int, stdout: TextIO, stderr: TextIO, status: int) -> None:
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr
        self.returncode: int | None = None
        self._status = status

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

    def communicate(self) -> tuple[str, str]:
        """Both outputs in full, once the process has ended."""
        with self.stdout, self.stderr, ThreadPoolExecutor(1) as second:
            errors = second.submit(self.stderr.read)
            text = self.stdout.read()
            self.wait()
            return text, errors.result()

    def kill(self) -> None:
        """End the process at once."""
        self.send_signal(signal.SIGKILL)

    def _look(self, timeout: float) -> int | None:
        if self.returncode is not None:
            return self.returncode
        ready, _dummy, _dummy = select.select([self._status], [], [], timeout)
        if not ready:
            return None
        data = os.read(self._status, 64)
        os.close(self._status)
        self.returncode = int(data) if data else _LOST
        return self.returncode


class Starter:
    """The starter as the tests' process sees it. It runs from the first start on.

    `module`, found from `root`, calls serve().
    """

    def __init__(
        self, module: str, environment: Mapping[str, str], root: str | None = None
    ) -> None:
        self.module = module
        self.root = root
        self._environment = dict(environment)
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def start(
        self, args: list[str], environment: Mapping[str, str], directory: str | None = None
    ) -> Forked:
        """Start the program with this command line, in this directory or the one of the tests."""
        request = {"args": args, "cwd": directory or os.getcwd(), "environment": dict(environment)}
        body = json.dumps(request).encode()
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        status, status_end = os.pipe()
        try:
            with self._lock:
                line = self._line()
                socket.send_fds(line, [_LENGTH.pack(len(body))], [out_end, err_end, status_end])
                line.sendall(body)
                (pid,) = _LENGTH.unpack(_receive(line, _LENGTH.size))
        finally:
            for end in (out_end, err_end, status_end):
                os.close(end)
        return Forked(pid, open(out, encoding="utf-8"), open(err, encoding="utf-8"), status)

    def stop(self) -> None:
        """End the starter; it ends the processes that still run."""
        if self._socket is not None and self._process is not None:
            self._socket.close()
            self._process.wait()
        self._socket = self._process = None

    def _line(self) -> socket.socket:
        if self._socket is None:
            self._socket, theirs = socket.socketpair()
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-u", "-m", self.module, str(theirs.fileno())],
                    cwd=self.root,
                    env=self._environment,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                )
        return self._socket


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


class _Process:
    """Forks on request, and tells how each fork ended."""

    def __init__(
        self,
        line: socket.socket,
        program: Callable[[list[str]], int],
        prepare: Callable[[list[str]], None],
    ) -> None:
        self.line = line
        self.program = program
        self.prepare = prepare
        self.status_of: dict[int, int] = {}
        self.awake, self.wake = os.pipe()
        os.set_blocking(self.wake, False)

    def serve(self) -> None:
        """Work until the other end is closed, then end all running processes."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self.wake)
        with contextlib.suppress(EOFError, ConnectionError):
            while True:
                ready, _dummy, _dummy = select.select([self.line.fileno(), self.awake], [], [])
                if self.awake in ready:
                    os.read(self.awake, 4096)
                    self._reap(os.WNOHANG)
                if self.line.fileno() in ready:
                    self._fork()
        for pid in self.status_of:
            os.kill(pid, signal.SIGTERM)
        self._reap(0)

    def _reap(self, how: int) -> None:
        """Tell how those ended that have ended, or wait for all."""
        for pid, status in list(self.status_of.items()):
            ended, code = os.waitpid(pid, how)
            if ended:
                del self.status_of[pid]
                with contextlib.suppress(BrokenPipeError):
                    os.write(status, str(os.waitstatus_to_exitcode(code)).encode())
                os.close(status)

    def _fork(self) -> None:
        head, fds, _flags, _address = socket.recv_fds(self.line, _LENGTH.size, 3)
        if not head:
            raise EOFError
        head += _receive(self.line, _LENGTH.size - len(head))
        request = json.loads(_receive(self.line, *_LENGTH.unpack(head)))
        self.prepare(request["args"])
        pid = os.fork()
        if pid == 0:
            self._become(request, fds)
        out, err, status = fds
        os.close(out)
        os.close(err)
        self.status_of[pid] = status
        self.line.sendall(_LENGTH.pack(pid))

    def _become(self, request: dict[str, Any], fds: list[int]) -> None:
        """Be a process of its own; never returns."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.line.close()
            for end in (self.awake, self.wake, *self.status_of.values()):
                os.close(end)
            os.dup2(fds[0], 1)
            os.dup2(fds[1], 2)
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


def serve(program: Callable[[list[str]], int], prepare: Callable[[list[str]], None]) -> None:
    """Be the starter of a program, at the socket whose number is the only argument.

    `prepare` loads everything that a start with these arguments needs, before the fork.
    """
    with socket.socket(fileno=int(sys.argv[1])) as line:
        prepare([])
        gc.collect()
        gc.freeze()
        _Process(line, program, prepare).serve()
