# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands for the shell of a guest (pure)."""

from __future__ import annotations

import shlex

CHUNK = 1024 * 1024
"""Bytes of a file that one command reads."""


def ascii_script(command: str) -> str:
    """Return a script of ASCII characters that runs a command.

    PVE encodes the input of a command with a function that accepts bytes only, so it dies of other
    characters (qemu-server: Agent.pm, qemu_exec).
    """
    if command.isascii():
        return command
    octal = "".join(_octal(byte) for byte in command.encode())
    return f"""eval "$(printf '%b' '{octal}')\""""


def _octal(byte: int) -> str:
    """Return a byte as printf(1) reads it between single quotes."""
    if 32 <= byte < 127 and byte not in b"\\'":
        return chr(byte)
    return f"\\0{byte:03o}"


def with_input(command: str, file: str | None = None) -> str:
    """Return a script that runs a command with a file, or nothing, as its standard input."""
    source = "/dev/null" if file is None else shlex.quote(file)
    return ascii_script("{\n" + command + "\n} < " + source)


def make_directory() -> str:
    """Return a command that makes a directory for the agent's user only, and prints its path."""
    return "umask 077 && mktemp -d /tmp/.pve-fleet.XXXXXXXXXX"


def remove_directory(path: str) -> str:
    """Return a command that removes a directory that `make_directory` made."""
    return f"rm -rf {shlex.quote(path)}"


def begin_file(path: str, mode: int) -> str:
    """Return a command that makes an empty file with a mode, before there is anything to read."""
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
