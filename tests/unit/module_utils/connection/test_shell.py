# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands for the shell of a guest, run by the shell of this machine."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.texts.shell import (
    append,
    ascii_script,
    begin_file,
    limited,
    move_parts,
    was_killed,
    with_input,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.connection.agent import (
    bytes_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.connection.pct import (
    address_of,
    enter,
    is_stopped,
    was_moved,
)

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)


def sh(script: str, content: bytes = b"") -> bytes:
    """Return the output of a script that the shell reads from its standard input."""
    if content:
        command, source = ["sh", "-c", script], content
    else:
        command, source = ["sh"], script.encode()
    return subprocess.run(command, input=source, capture_output=True, check=True).stdout


@given(TEXTS)
def test_a_script_is_ascii_and_does_the_same(text: str) -> None:
    script = ascii_script(f"printf %s {shlex.quote(text)}")
    assert script.isascii()
    assert sh(script) == text.encode()


def test_a_command_does_not_read_its_own_script() -> None:
    assert sh(with_input("cat; echo end")) == b"end\n"


def test_a_command_with_input(tmp_path: Path) -> None:
    file = tmp_path / "it's in 汉语"
    file.write_bytes(b"\0\xff\n")
    assert sh(with_input("cat", str(file))) == b"\0\xff\n"


def ended(command: str, seconds: int = 60, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
    """Return the result of a command that has a time limit."""
    script = ["sh", "-c", limited(command, seconds)]
    done = subprocess.run(script, input=stdin, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_a_time_limit_changes_no_result() -> None:
    content = bytes(range(256)) * 500
    assert ended("cat; echo 'it is done' >&2; exit 3", stdin=content) == (
        3,
        content,
        b"it is done\n",
    )
    assert not was_killed(124, b"timeout")
    assert not was_killed(0, ended("true")[2])


def test_a_command_is_killed_with_its_children() -> None:
    """The child holds the output of the script, which would not end before it."""
    status, out, err = ended("echo started; sleep 50; echo never", seconds=1)
    assert (was_killed(status, err), out) == (True, b"started\n")


def test_a_file_of_parts(tmp_path: Path) -> None:
    target = tmp_path / "a target"
    target.write_text("before")
    parts = tmp_path / "a directory"
    parts.mkdir()
    sh(begin_file(str(target), 0o640))
    assert target.read_bytes() == b""
    assert target.stat().st_mode & 0o777 == 0o640
    for number in range(256):
        (parts / f"part{number:03}").write_bytes(bytes([number]))
    sh(move_parts(str(parts), str(target)))
    sh(append(str(target)), b"end")
    assert target.read_bytes() == bytes(range(256)) + b"end"
    assert not list(parts.iterdir())


@pytest.mark.parametrize("content", [b"plain\n", bytes(range(256)), "é汉语".encode()])
def test_an_output_keeps_its_bytes(content: bytes) -> None:
    """PVE's JSON has a character for each byte (qemu-server: Agent.pm, qemu_exec_status)."""
    assert bytes_of(content.decode("latin-1")) == content
    assert bytes_of(None) == b""
    assert bytes_of("汉语") == "汉语".encode()


def test_a_command_of_a_node() -> None:
    command = "echo 'a b' \"$HOME\""
    assert shlex.split(enter(100, command, become=False))[-1] == command
    assert enter(100, "id", become=True) == "sudo -n pct exec 100 -- /bin/sh -c id"


@pytest.mark.parametrize(
    ("text", "moved", "stopped"),
    [
        (b"Configuration file 'nodes/pve1/lxc/100.conf' does not exist\n", True, False),
        (b"container '100' not running!\n", False, True),
        (b"No such file", False, False),
    ],
)
def test_failures_of_pct(text: bytes, moved: bool, stopped: bool) -> None:
    """The texts: pve-cluster, PVE/AbstractConfig.pm load_config; pve-container, CLI/pct.pm exec."""
    assert was_moved(2, text) is moved
    assert is_stopped(255, text) is stopped
    assert not was_moved(0, text)
    assert not is_stopped(0, text)


def test_the_address_of_a_node() -> None:
    rows = [{"type": "cluster"}, {"type": "node", "name": "pve1", "ip": "10.0.0.1"}]
    assert address_of("pve1", {"pve1": "given"}, rows) == "given"
    assert address_of("pve1", {}, rows) == "10.0.0.1"
    assert address_of("pve2", {}, rows) == "pve2"
