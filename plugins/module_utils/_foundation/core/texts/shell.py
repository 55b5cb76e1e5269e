# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands for the shell of a guest (pure)."""

from __future__ import annotations

import shlex

CHUNK = 1024 * 1024
"""Bytes of a file in one read command."""
# The exit status of timeout(1) at a time limit, and the line after the output of a killed command.
_TIMED_OUT = 124
_KILLED = "pve.fleet-command-timeout"


def ascii_script(command: str) -> str:
    """Return a script of ASCII characters that runs a command.

    PVE encodes the input of a command with a function that accepts only bytes and fails for other
    characters (qemu-server: Agent.pm, qemu_exec).
    """
    if command.isascii():
        return command
    octal = "".join(_octal(byte) for byte in command.encode())
    return f"""eval "$(printf '%b' '{octal}')\""""


def _octal(byte: int) -> str:
    """Return a byte in the form that printf(1) reads between single quotes."""
    if 32 <= byte < 127 and byte not in b"\\'":
        return chr(byte)
    return f"\\0{byte:03o}"


def with_input(command: str, file: str | None = None) -> str:
    """Return a script that runs a command with a file, or nothing, as its standard input."""
    source = "/dev/null" if file is None else shlex.quote(file)
    return ascii_script("{\n" + command + "\n} < " + source)


def limited(command: str, seconds: int) -> str:
    """Return a script that runs a command with the script's standard input, and kills it and its
    children after `seconds`; `was_killed` recognizes this.

    A shell gives a background command an empty input unless another descriptor passes the input.
    The guard checks once a second, so that it does not outlive the command. It ignores TERM while
    it kills, because the script ends the guard as soon as the command is dead. Without setsid(1),
    only the command itself is killed.
    """
    return f"""exec 3<&0
setsid=
command -v setsid >/dev/null 2>&1 && setsid=setsid
$setsid /bin/sh -c {shlex.quote(command)} <&3 3<&- &
command=$!
exec 3<&- </dev/null
(
    left={seconds}
    while test $left -gt 0 && kill -0 $command; do sleep 1; left=$((left - 1)); done
    test $left -gt 0 && exit 0
    trap '' TERM
    kill -9 -$command || kill -9 $command || exit 0
    exit 9
) >/dev/null 2>&1 &
guard=$!
wait $command
status=$?
kill $guard 2>/dev/null
wait $guard 2>/dev/null
test $? = 9 || exit $status
echo {_KILLED} >&2
exit {_TIMED_OUT}"""


def was_killed(status: int, err: bytes) -> bool:
    """Return whether a command of `limited` was killed at its time limit."""
    return status == _TIMED_OUT and err.rstrip().endswith(_KILLED.encode())


def create_directory() -> str:
    """Return a command that creates a directory for the agent's user only, and prints its path."""
    return "umask 077 && mktemp -d /tmp/.pve-fleet.XXXXXXXXXX"


def remove_directory(path: str) -> str:
    """Return a command that removes a directory of `create_directory`."""
    return f"rm -rf {shlex.quote(path)}"


def begin_file(path: str, mode: int) -> str:
    """Return a command that creates an empty file with a mode, before it has any content."""
    quoted = shlex.quote(path)
    return f": > {quoted} && chmod {mode:04o} {quoted}"


def move_parts(directory: str, path: str) -> str:
    """Return a command that appends the files `part...` of a directory to a file, in the order of
    their names, and removes them.
    """
    parts = f"{shlex.quote(directory)}/part*"
    return f"cat {parts} >> {shlex.quote(path)} && rm -f {parts}"


def read_chunk(path: str, number: int) -> str:
    """Return a command that prints a part of a file; the first part has number 0."""
    return f"dd if={shlex.quote(path)} bs={CHUNK} skip={number} count=1 2>/dev/null"


def append(path: str) -> str:
    """Return a command that appends its input to a file."""
    return f"cat >> {shlex.quote(path)}"
