# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps what Ansible compiles of the collection for all processes of one run of the tests.

Ansible compiles the files of a collection in every process that imports them, and keeps nothing.
"""

from __future__ import annotations

import functools
import hashlib
import marshal
import os
from pathlib import Path
from types import CodeType
from typing import Any

from ansible.utils.collection_loader import _collection_finder


class Compiled:
    """Compiled files, in memory and in the directory of the run."""

    def __init__(self, home: Path) -> None:
        self._directory = home / "compiled"
        self._directory.mkdir(exist_ok=True)
        self._known: dict[tuple[str, bytes], CodeType] = {}

    def compile(self, source: bytes, filename: str, **options: Any) -> CodeType:
        """Replace the function of that name; Ansible always calls it with the same options."""
        code = self._known.get((filename, source))
        if code is None:
            code = self._of_the_run(source, filename, options)
            self._known[filename, source] = code
        return code

    def _of_the_run(self, source: bytes, filename: str, options: dict[str, Any]) -> CodeType:
        digest = hashlib.sha256(filename.encode() + b"\0" + source).hexdigest()
        file = self._directory / digest
        if file.exists():
            kept: CodeType = marshal.loads(file.read_bytes())
            return kept
        code: CodeType = compile(source, filename, **options)
        # Another process may do the same: each writes a file of its own.
        own = self._directory / f"{digest}.{os.getpid()}"
        own.write_bytes(marshal.dumps(code))
        own.replace(file)
        return code


@functools.cache
def keep_compiled(home: Path) -> Compiled:
    """Make Ansible in this process use the results that others have compiled."""
    compiled = Compiled(home)
    _collection_finder.compile = compiled.compile
    return compiled
