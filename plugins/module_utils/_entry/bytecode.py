# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compiled code, kept between the processes of modules.

Ansible sends a module as a zip of sources. Python keeps compiled code beside sources but not for a
zip, so that every task compiles every file it imports, and zipimport even does so twice. Importing
this file before other files of the collection changes that for a module that runs from a zip;
elsewhere it does nothing.

The methods of dataclasses are kept in the same way: Python writes each as a text and compiles it
while a file is imported, which takes longer than the rest of the import. A process that ends after
one task also collects garbage rarely.

The code is in a file of the user's cache directory. It is trusted as Python trusts `__pycache__`:
file and directory must belong to the user, and no one else may be able to write them. An entry is
only used for a source of the same size and checksum.
"""

from __future__ import annotations

import dataclasses
import gc
import marshal
import os
import stat
import sys
import tempfile
import zipimport
from binascii import crc32
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from importlib.util import MAGIC_NUMBER
from types import CodeType
from typing import Any

Stamp = tuple[int, int]
"""Size and CRC-32 of a source."""

_SIZE, _CRC = 3, 7  # their places in an entry of zipimport's directories
# Containers made before the next collection. Python's own 700 collect for a twentieth of a task's
# time and find almost nothing; a task over many VMs still stays within a few MiB.
_GC_THRESHOLD = 50_000


class KeptCode:
    """The compiled code of sources by name, in a file that processes share."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._entries = _read(path)
        self._is_changed = False

    def code(self, name: str, stamp: Stamp, compiled: Callable[[str], CodeType]) -> CodeType:
        """Return the code of a source; compile it where it is not known."""
        known = self._entries.get(name)
        if known is not None and known[0] == stamp:
            found: CodeType = marshal.loads(known[1])
            return found
        code = compiled(name)
        self._entries[name] = (stamp, marshal.dumps(code))
        self._is_changed = True
        return code

    def save(self) -> None:
        """Write what was compiled, whole or not at all; not if Python must not write bytecode."""
        if not self._is_changed or sys.dont_write_bytecode:
            return
        self._is_changed = False
        directory = os.path.dirname(self._path)
        with suppress(OSError):
            os.makedirs(directory, mode=0o700, exist_ok=True)
            handle, part = tempfile.mkstemp(dir=directory)
            try:
                with open(handle, "wb") as stream:
                    stream.write(marshal.dumps((MAGIC_NUMBER, self._entries)))
                os.replace(part, self._path)
            except OSError:
                os.unlink(part)


class _Importer(zipimport.zipimporter):
    """Imports from a directory of a zip, with code that was kept where possible."""

    def __init__(self, path: str, kept: KeptCode) -> None:
        super().__init__(path)
        self._kept = kept
        directories = getattr(zipimport, "_zip_directory_cache", {})
        self._sources = directories.get(self.archive, {})

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of a module."""
        path = self._path(fullname)
        if path is None:
            return super().get_code(fullname)
        entry = self._sources[path]
        return self._kept.code(fullname, (entry[_SIZE], entry[_CRC]), super().get_code)

    def get_filename(self, fullname: str) -> str:
        """Return the path of a module, without compiling it as zipimport does."""
        path = self._path(fullname)
        if path is None:
            return super().get_filename(fullname)
        return os.path.join(self.archive, path)

    def _path(self, fullname: str) -> str | None:
        """Return the path of a module within the zip, or None where it is not known."""
        name = self.prefix + fullname.rpartition(".")[2]
        for path in (f"{name}.py", os.path.join(name, "__init__.py")):
            if path in self._sources:
                return path
        return None


def install(directory: str, kept: KeptCode) -> None:
    """Import what is in this directory of a zip with the code that was kept."""

    def is_within(path: str) -> bool:
        return path == directory or path.startswith(directory + os.sep)

    def importer(path: str) -> _Importer:
        if not is_within(path):
            raise ImportError(path)
        return _Importer(path, kept)

    sys.path_hooks.insert(0, importer)
    for path in filter(is_within, list(sys.path_importer_cache)):
        del sys.path_importer_cache[path]


def install_for_dataclasses(package: str, kept: KeptCode) -> None:
    """Execute what `dataclasses` writes for the classes of a package with the code that was kept.

    It calls `exec` with a text, once for each method or, since Python 3.13, for each class.
    """
    numbers: Counter[str] = Counter()

    def execute(text: str, scope: dict[str, Any], names: dict[str, Any]) -> None:
        module = scope.get("__name__", "")
        if not module.startswith(package):
            exec(text, scope, names)
            return
        numbers[module] += 1
        name = f"{module} {numbers[module]}"
        stamp = (len(text), crc32(text.encode()))
        exec(kept.code(name, stamp, lambda _name: compile(text, "<string>", "exec")), scope, names)

    vars(dataclasses)["exec"] = execute


def cache_file() -> str:
    """Return the path of the file with the code for this Python."""
    place = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser(os.path.join("~", ".cache"))
    name = f"modules.{sys.implementation.cache_tag}.{sys.flags.optimize}"
    return os.path.join(place, "pve.fleet", name)


def _read(path: str) -> dict[str, tuple[Stamp, bytes]]:
    """Return the entries of a file, none where it cannot be read or trusted."""
    try:
        with open(path, "rb") as stream:
            place = os.stat(os.path.dirname(path))
            if not _is_private(place) or not _is_private(os.fstat(stream.fileno())):
                return {}
            magic, entries = marshal.loads(stream.read())
    except (OSError, ValueError, EOFError, TypeError):
        return {}
    return entries if magic == MAGIC_NUMBER else {}


def _is_private(found: os.stat_result) -> bool:
    """Return whether a file or directory belongs to this user, who alone can write it."""
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def start(loader: object, package: str, directory: str) -> KeptCode | None:
    """Return the code that is kept, and import with it what this loader finds in the directory.

    None where the loader does not load from a zip.
    """
    if not isinstance(loader, zipimport.zipimporter):
        return None
    kept = KeptCode(cache_file())
    install(directory, kept)
    install_for_dataclasses(package, kept)
    gc.set_threshold(_GC_THRESHOLD)
    return kept


_PACKAGE = __name__.rsplit(".", 2)[0]
KEPT = start(__spec__ and __spec__.loader, _PACKAGE, os.path.dirname(os.path.dirname(__file__)))


def finish() -> None:
    """Keep what this process has compiled, and let it end without looking for garbage."""
    if KEPT is not None:
        KEPT.save()
        gc.freeze()
