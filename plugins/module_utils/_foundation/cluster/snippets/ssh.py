# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The directory of a storage's snippets on a node, over SSH."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...core import validate
from ...core.errors import ConfigurationError, FleetError
from ...core.propstring import sub_keys
from .files import mode_of

_NO_FILE, _NO_DIRECTORY, _NO_CONNECTION = 44, 45, 255
_SECONDS = 120
_WORD = re.compile(
    r"[A-Za-z0-9_][-A-Za-z0-9_.:%]*"
)  # ssh parses it neither as an option nor as a user

Run = Callable[[list[str], bytes], "tuple[int, bytes, bytes]"]
"""Runs a program with an input; returns its exit status and both outputs. Raises OSError."""


@dataclass(frozen=True)
class SshLogin:
    """The login to a node."""

    address: str
    user: str = "root"
    port: int | None = None
    private_key_file: str | None = None
    args: str = ""
    executable: str = "ssh"
    become: bool = False

    def command(self, script: str) -> list[str]:
        """Return the program that runs a shell script on the node, with its arguments (pure)."""
        words = [self.executable, "-o", "BatchMode=yes", "-o", f"User={self.user}"]
        if self.port is not None:
            words += ["-p", str(self.port)]
        if self.private_key_file:
            words += ["-i", self.private_key_file]
        remote = ["sh", "-c", script]
        if self.become:
            remote = ["sudo", "-n", *remote]
        return [*words, *shlex.split(self.args), self.address, shlex.join(remote)]


def read_login(options: Mapping[str, Any], address: str) -> SshLogin:
    """Return the login that option C(ssh) describes (pure). Raises ValidationFailed."""
    login = SshLogin(
        address=options.get("address") or address,
        user=options.get("user") or "root",
        port=options.get("port"),
        private_key_file=options.get("private_key_file"),
        args=options.get("args") or "",
        executable=options.get("executable") or "ssh",
        become=bool(options.get("become")),
    )
    for key, word in (("ssh.address", login.address), ("ssh.user", login.user)):
        if not _WORD.fullmatch(word):
            raise validate.refused(key, word, "is not a name or an address", "Correct it")
    return login


def directory_of(storage: Mapping[str, Any]) -> str:
    """Return the directory of a storage's snippets on its nodes (pure).

    Source: pve-storage, Storage/Plugin.pm (get_subdir), NFSPlugin.pm and CIFSPlugin.pm (path).
    """
    path = storage.get("path") or f"/mnt/pve/{storage.get('storage')}"
    folders = sub_keys(str(storage.get("content-dirs") or ""))
    return f"{path}/{folders.get('snippets') or 'snippets'}"


def run_program(words: list[str], data: bytes) -> tuple[int, bytes, bytes]:
    """Run a program; a timeout counts as a lost connection. Raises OSError."""
    try:
        process = subprocess.run(
            words, input=data, capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return _NO_CONNECTION, b"", f"no end within {_SECONDS} seconds".encode()
    return process.returncode, process.stdout, process.stderr


class NodeDirectory:
    """A directory of a node."""

    def __init__(self, login: SshLogin, path: str, run: Run = run_program) -> None:
        self.path = f"{login.user}@{login.address}:{path}"
        self._login = login
        self._enter = f"cd {shlex.quote(path)} || exit {_NO_DIRECTORY}"
        self._run = run

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or None. Raises ConfigurationError."""
        file = shlex.quote(name)
        status, out = self._on_node(f"test -e {file} || exit {_NO_FILE}\ncat {file}", "read")
        return None if status == _NO_FILE else out

    def names(self) -> frozenset[str]:
        """Return the names of the files without hidden files. Raises ConfigurationError."""
        script = "find . -maxdepth 1 -type f ! -name '.*' -printf '%f\\n'"
        _status, out = self._on_node(script, "listed")
        return frozenset(out.decode(errors="replace").splitlines())

    def write(self, name: str, data: bytes) -> None:
        """Write a file atomically, or keep the old one if a part of the data is lost on the way.

        Raises ConfigurationError.
        """
        digest = hashlib.sha256(data).hexdigest()
        script = f"""umask 077
beside=$(mktemp .pve-fleet-XXXXXXXXXX) || exit 1
trap 'rm -f "$beside"' EXIT
trap 'exit 1' HUP INT TERM
cat > "$beside" || exit 1
test "$(sha256sum < "$beside" | cut -c 1-64)" = {digest} || exit 1
chmod {mode_of(data):o} "$beside" && sync "$beside" && mv -f "$beside" {shlex.quote(name)}"""
        try:
            self._on_node(script, "written", data)
        except FleetError:
            # The file may have been moved to its place before the connection was lost.
            with contextlib.suppress(FleetError):
                if self.read(name) == data:
                    return
            raise

    def remove(self, name: str) -> None:
        """Remove a file if it exists and can be removed."""
        with contextlib.suppress(FleetError):
            self._on_node(f"rm -f {shlex.quote(name)}", "removed")

    def _on_node(self, script: str, verb: str, data: bytes = b"") -> tuple[int, bytes]:
        """Run a script in the directory. Return its status (0 or `_NO_FILE`) and its output."""
        words = self._login.command(f"{self._enter}\n{script}")
        try:
            status, out, err = self._run(words, data)
        except OSError as error:
            status, out, err = _NO_CONNECTION, b"", str(error).encode()
        if status in (0, _NO_FILE):
            return status, out
        raise ConfigurationError(
            f"The snippets at {self.path} could not be {verb}: {_cause(status, err)}",
            "Check that ssh to the node works without a password, and the rights of the user there",
            "ssh",
        )


def _cause(status: int, err: bytes) -> str:
    if status == _NO_DIRECTORY:
        return "the node does not have that directory"
    lines = err.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"the command ended with status {status}"
