# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The directory of a storage's snippets, mounted on the machine that runs the task."""

from __future__ import annotations

import contextlib
import os
from typing import Protocol

from ...core.errors import ConfigurationError
from ...core.files import replace_file

_SET_DIRECTORY = (
    "Name the directory where the storage's snippets are mounted on the machine where the task runs"
)
_EXECUTABLE, _READABLE = 0o750, 0o640


class SnippetDirectory(Protocol):
    """The directory of a storage's snippets. `path` is for messages. Methods raise FleetError."""

    path: str

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or None if there is none."""

    def names(self) -> frozenset[str]:
        """Return the names of the files, as PVE lists them: without hidden files."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file atomically, so that no reader sees a part of it."""

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""


def mode_of(data: bytes) -> int:
    """Return the permissions of a file: PVE runs a hook script only if it is executable."""
    return _EXECUTABLE if data.startswith(b"#!") else _READABLE


class LocalDirectory:
    """A local directory."""

    def __init__(self, path: str) -> None:
        self.path = path

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or None. Raises ConfigurationError."""
        self._require()
        try:
            with open(os.path.join(self.path, name), "rb") as stream:
                return stream.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._failure(name, "read", str(error)) from error

    def names(self) -> frozenset[str]:
        """Return the names of the files without hidden files. Raises ConfigurationError."""
        self._require()
        with os.scandir(self.path) as entries:
            files = [entry.name for entry in entries if entry.is_file()]
        return frozenset(name for name in files if not name.startswith("."))

    def write(self, name: str, data: bytes) -> None:
        """Write a file atomically. Raises ConfigurationError."""
        try:
            replace_file(os.path.join(self.path, name), data, mode_of(data))
        except OSError as error:
            raise self._failure(name, "written", str(error)) from error

    def remove(self, name: str) -> None:
        """Remove a file if it exists and can be removed."""
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self.path, name))

    def _require(self) -> None:
        if not os.path.isdir(self.path):
            raise ConfigurationError(
                f"The snippets could not be read: there is no directory {self.path}",
                _SET_DIRECTORY,
                "snippet",
            )

    def _failure(self, name: str, verb: str, why: str) -> ConfigurationError:
        return ConfigurationError(
            f"Snippet {os.path.join(self.path, name)} could not be {verb}: {why}",
            "Check snippet_directory and its rights on the machine where the task runs",
            "snippet",
        )
