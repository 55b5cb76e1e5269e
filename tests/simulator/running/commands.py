"""Commands and files of a guest whose commands are real processes of this machine.

The guest agent starts a process, keeps up to 16 MiB of each output, and forgets the process once
its end was reported (qemu: qga/commands.c, qmp_guest_exec_status).
"""

from __future__ import annotations

import base64
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ..core.state import Vm
from ..errors import PveError

KEPT = 16 * 1024 * 1024


@dataclass
class Started:
    """A process of a guest, with the files that take its outputs."""

    process: subprocess.Popen[bytes]
    out: IO[bytes]
    err: IO[bytes]


def start(vm: Vm, directory: str, command: list[str], text: str | None) -> int:
    """Start a command in a directory, and return its number."""
    # Perl's encode_base64 dies of characters that are not bytes (qemu-server: Agent.pm, qemu_exec).
    try:
        content = (text or "").encode("latin-1")
    except UnicodeEncodeError:
        raise PveError("Wide character in subroutine entry") from None
    out, err = _spool(), _spool()
    try:
        with _spool() as source:
            source.write(content)
            source.seek(0)
            process = subprocess.Popen(
                command, cwd=directory, stdin=source, stdout=out, stderr=err, start_new_session=True
            )
    except OSError as error:
        raise PveError(f"Agent error: Failed to execute child process: {error}") from None
    vm.execs = vm.execs or {}
    vm.execs[process.pid] = {"started": Started(process, out, err)}
    return process.pid


def _spool() -> IO[bytes]:
    return tempfile.TemporaryFile()


def status(vm: Vm, pid: int, started: Started) -> dict[str, Any]:
    """Return how a command ended, or that it runs."""
    code = started.process.poll()
    if code is None:
        return {"exited": 0}
    if vm.execs:
        vm.execs.pop(pid, None)
    answer: dict[str, Any] = {"exited": 1}
    if code < 0:
        answer["signal"] = -code
    else:
        answer["exitcode"] = code
    for name, stream in (("out", started.out), ("err", started.err)):
        stream.seek(0)
        content = stream.read(KEPT + 1)
        stream.close()
        if content:
            # PVE decodes base64 to bytes; its JSON has a character for each byte (Agent.pm).
            answer[f"{name}-data"] = content[:KEPT].decode("latin-1")
        if len(content) > KEPT:
            answer[f"{name}-truncated"] = 1
    return answer


def content_of(p: dict[str, Any]) -> bytes:
    """Return the bytes that a request writes to a file."""
    text: str = p["content"]
    if p.get("encode") == 0:
        return base64.b64decode(text)
    return text.encode()


def write(directory: str, name: str, content: bytes) -> None:
    """Write a file of the guest."""
    try:
        (Path(directory) / name).write_bytes(content)
    except OSError as error:
        raise PveError(
            f"Agent error: failed to open file '{name}' (mode: 'wb'): {error.strerror}"
        ) from None


def read(directory: str, name: str) -> bytes:
    """Read a file of the guest."""
    try:
        return (Path(directory) / name).read_bytes()
    except OSError as error:
        raise PveError(
            f"Agent error: failed to open file '{name}' (mode: 'r'): {error.strerror}"
        ) from None
