# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that are replaced completely or not at all."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeVar

from .errors import FleetError

Data = TypeVar("Data")

_TEMPORARY = ".pve-fleet-"
_MAX_BYTES = 1 << 20  # bytes that are read from a file, unless the caller names more
_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True)
class FileContent:
    """The content of a regular file, and its permissions such as 0o600."""

    data: bytes = field(repr=False)
    mode: int


def why_not_writable(path: str) -> str:
    """Return why a file cannot be written, or an empty text. The check writes nothing."""
    directory = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(directory):
        return f"there is no directory {directory}"
    if not os.access(directory, os.W_OK | os.X_OK):
        return f"this user cannot write to {directory}"
    if os.path.exists(path) and not os.path.isfile(path):
        return "it is not a regular file"
    return ""


def kind_of(path: str) -> str:
    """Return the kind of an object that is not a regular file, such as V(a FIFO); an empty text for
    a regular file, and if nothing exists at the path. Links are not followed. Raises OSError.
    """
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return ""
    for is_kind, name in _KINDS:
        if is_kind(mode):
            return name
    return ""


def read_regular(path: str, max_bytes: int = _MAX_BYTES) -> FileContent | None:
    """Return the content of a regular file, at most these bytes, or None if the file does not
    exist.

    Raises OSError for anything else. A FIFO does not block, and a link is not followed.
    """
    kind = kind_of(path)
    if kind:
        raise OSError(f"it is {kind}, not a regular file")
    # The object may have been replaced since then: with these flags `open` neither waits nor
    # follows links.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        number = os.open(path, flags)
    except FileNotFoundError:
        return None
    with os.fdopen(number, "rb") as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is not a regular file")
        return FileContent(stream.read(max_bytes), stat.S_IMODE(status.st_mode))


def read_parsed(
    path: str, parse: Callable[[str], Data], unusable: Callable[[str, str], FleetError]
) -> Data | None:
    """Return the parsed text of a file, None without a file. Raises the error that `unusable` makes
    of the path and the reason.
    """
    try:
        with open(path, encoding="utf-8") as stream:
            return parse(stream.read())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise unusable(path, str(error)) from None


def replace_file(path: str, text: str | bytes, mode: int) -> None:
    """Replace a file atomically; the new file has this mode from the start. Raises OSError.

    The text is on the disk before the file has its name, so a reader never sees a part of it.
    """
    data = text.encode("utf-8") if isinstance(text, str) else text
    beside = _write_beside(path, data, mode)
    try:
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def require_space(path: str, size: int) -> None:
    """Raise OSError if the directory of a file has no room for `size` more bytes.

    The bytes are written to another file there, which is then removed: no other check covers quotas
    and limits.
    """
    os.unlink(_write_beside(path, b"0" * size, 0o600))


def _write_beside(path: str, data: bytes, mode: int) -> str:
    """Write a new file in the same directory and return its path. Raises OSError."""
    directory = os.path.dirname(os.path.abspath(path))
    number, beside = tempfile.mkstemp(prefix=_TEMPORARY, dir=directory)
    try:
        with os.fdopen(number, "wb") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        os.unlink(beside)
        raise
    return beside


@contextmanager
def directory_lock(path: str) -> Iterator[None]:
    """Hold the lock of a file's directory, so no other run writes between a read and a write.

    On a file system without locks, the caller continues without one.
    """
    number = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)
