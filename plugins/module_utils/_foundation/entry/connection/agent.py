# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs commands in a VM, and moves files, through its guest agent.

Facts of the API: qemu-server, API2/Qemu/Agent.pm and QemuServer/Agent.pm. The input of a command
has at most 64 KiB, a file that is written 60 KiB of text. The agent keeps 16 MiB of the output of a
command (qemu: qga/commands.c, GUEST_EXEC_MAX_OUTPUT).
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.clock import poll
from ...core.errors import ApiError, FleetError, TaskTimeout
from ...core.texts.shell import (
    ascii_script,
    begin_file,
    create_directory,
    move_parts,
    remove_directory,
    with_input,
)
from .place import GuestPlace

if TYPE_CHECKING:
    from ...api.client import Client

PART = 40 * 1024
"""Bytes of a file in one write request: 53.3 KiB in base64."""
_AT_ONCE = 256  # parts of a file in the guest
_LONGEST = 64 * 1024  # characters of a script
_MAX_OUTPUT = 16  # MiB


@dataclass(frozen=True)
class CommandResult:
    """The output and exit status of a command; 128 plus the number if a signal ended it."""

    status: int
    out: bytes
    err: bytes


class GuestAgent:
    """The guest agent of a VM."""

    def __init__(self, client: Client, place: GuestPlace, timeout: float) -> None:
        """Use the agent of this VM; a command may run for `timeout` seconds."""
        self._client = client
        self._place = place
        self._timeout = timeout
        self._attempted = f"Could not run a command in VM {place.vmid} '{place.name}'"

    def ping(self) -> None:
        """Raise FleetError if the agent does not answer."""
        path = self._place.path("agent", "ping")
        self._client.write("POST", *path, attempted=f"Could not reach VM {self._place.vmid}")

    def run(self, command: str, stdin: bytes | None = None) -> CommandResult:
        """Run a command in the shell of the guest.

        Raises FleetError if it could not be run, or if its result is lost.
        """
        if not stdin:
            return self._run(with_input(command))
        with self._directory() as directory:
            file = f"{directory}/input"
            self._fill(directory, file, [stdin], 0o600)
            return self._run(with_input(command, file))

    def write_file(self, path: str, blocks: Iterable[bytes], mode: int) -> None:
        """Write a file with a mode. Raises FleetError."""
        with self._directory() as directory:
            self._fill(directory, path, blocks, mode)

    @contextmanager
    def _directory(self) -> Iterator[str]:
        """Create a directory in the guest, and remove it at the end."""
        answer = self._require(self._run(create_directory()))
        directory = answer.out.decode().strip()
        try:
            yield directory
        finally:
            # A failed removal must not hide the failure of the work.
            with suppress(FleetError):
                self._run(remove_directory(directory))

    def _fill(self, directory: str, path: str, blocks: Iterable[bytes], mode: int) -> None:
        """Write a file from parts in a directory, because a request replaces a whole file."""
        self._require(self._run(ascii_script(begin_file(path, mode))))
        number = 0
        for block in blocks:
            for start in range(0, len(block), PART):
                self._write_part(directory, number, block[start : start + PART])
                number += 1
                if number % _AT_ONCE == 0:
                    self._require(self._run(ascii_script(move_parts(directory, path))))
        if number % _AT_ONCE:
            self._require(self._run(ascii_script(move_parts(directory, path))))

    def _write_part(self, directory: str, number: int, content: bytes) -> None:
        self._client.write(
            "POST",
            *self._place.path("agent", "file-write"),
            data={
                "file": f"{directory}/part{number % _AT_ONCE:03}",
                "content": base64.b64encode(content).decode(),
                "encode": False,
            },
            attempted=self._attempted,
        )

    def _require(self, result: CommandResult) -> CommandResult:
        """Return a result, and raise ApiError if the command failed."""
        if result.status:
            cause = result.err.decode(errors="replace").strip() or f"exit status {result.status}"
            raise ApiError(
                f"{self._attempted}: {cause}",
                "Look into the guest: it needs a POSIX shell, mktemp, and room in /tmp",
                "command failed",
            )
        return result

    def _run(self, script: str) -> CommandResult:
        """Run a script of ASCII characters.

        The script is the input of the shell: the command line has only one word, which each version
        of PVE parses in the same way.
        """
        if len(script) > _LONGEST:
            raise ApiError(
                f"{self._attempted}: the command has {len(script)} characters, and PVE accepts "
                f"{_LONGEST}",
                "Copy a script to the guest and run that",
                "long command",
            )
        started = self._client.write(
            "POST",
            *self._place.path("agent", "exec"),
            data={"command": "/bin/sh", "input-data": script},
            attempted=self._attempted,
        )
        pid = int(started["pid"])
        for _remaining in poll(self._client.clock, self._timeout, first=0.02, longest=1.0):
            answer = self._client.get(
                *self._place.path("agent", "exec-status"), pid=pid, attempted=self._attempted
            )
            if answer.get("exited"):
                return self._result_of(answer)
        self._kill(pid)
        raise TaskTimeout(
            f"{self._attempted}: process {pid} did not end within {self._timeout:g} seconds and "
            "was killed",
            "Raise ansible_pve_command_timeout, or run the task with async",
            "command timeout",
        )

    def _kill(self, pid: int) -> None:
        self._client.write(
            "POST",
            *self._place.path("agent", "exec"),
            data={"command": "/bin/sh", "input-data": f"kill -9 {pid}"},
            attempted=self._attempted,
        )

    def _result_of(self, answer: dict[str, Any]) -> CommandResult:
        if answer.get("out-truncated") or answer.get("err-truncated"):
            raise ApiError(
                f"{self._attempted}: its output is longer than {_MAX_OUTPUT} MiB, which is all "
                "that the agent keeps",
                "Write the output to a file in the guest and fetch that",
                "truncated output",
            )
        signal = answer.get("signal")
        status = int(answer.get("exitcode") or 0) if signal is None else 128 + int(signal)
        return CommandResult(
            status, bytes_of(answer.get("out-data")), bytes_of(answer.get("err-data"))
        )


def bytes_of(text: Any) -> bytes:
    """Return the bytes of an output (pure).

    PVE decodes the base64 of the agent to bytes, and its JSON contains each byte as the character
    with this number (qemu-server: QemuServer/Agent.pm, qemu_exec_status). A character above 255
    shows that the text was already decoded.
    """
    characters = str(text or "")
    try:
        return characters.encode("latin-1")
    except UnicodeEncodeError:
        return characters.encode()
