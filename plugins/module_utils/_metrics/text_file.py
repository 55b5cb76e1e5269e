# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A file for the textfile collector of node_exporter: read, and replaced as a whole.

Counters continue from run to run. That of two runs at the same time is kept too, by a lock of the
directory.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from .._core import validate
from .._core.errors import ConfigurationError, Conflict
from .._core.files import replace_file, why_not_writable
from .exposition import samples_in, text_of
from .samples import Key, Samples

# node_exporter reads no file with another suffix.
SUFFIX = ".prom"
# It runs as another user. The file has nothing secret.
_MODE = 0o644
_OURS = ("#", "proxmox_")

Keeps = Callable[[Key], bool]
"""Whether a sample of the earlier file is included in the new one."""


@dataclass(frozen=True)
class Written:
    """What the file was and is. `before` is None where there was none or it could not be read."""

    before: Samples | None
    after: Samples
    changed: bool


def check_path(path: str) -> str:
    """Return a path that can be written. Raises ValidationFailed and ConfigurationError."""
    if not os.path.isabs(path):
        step = "Give an absolute path, since Ansible runs in a directory of its own"
        raise validate.refused("path", path, "is not absolute", step)
    if not path.endswith(SUFFIX):
        step = f"Name a file that ends in {SUFFIX}, as node_exporter reads no other"
        raise validate.refused("path", path, f"does not end in {SUFFIX}", step)
    why = why_not_writable(path)
    if why:
        raise _unusable(path, why)
    _read(path)
    return path


def write_samples(path: str, samples: Samples, keeps: Keeps, check_mode: bool) -> Written:
    """Replace the file by samples and what is kept of the earlier one; not in check mode.

    Raises ConfigurationError, and Conflict for a file that is not ours.
    """
    with _locked(path):
        text = _read(path)
        before = samples_in(text)
        for key, value in before or ():
            if keeps(key):
                samples.include(key, value)
        wanted = text_of(samples)
        if not check_mode:
            _write(path, wanted)
    if not text:
        before = None
    return Written(before, samples, changed=wanted != text)


def _write(path: str, text: str) -> None:
    try:
        replace_file(path, text, _MODE)
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error


def _read(path: str) -> str:
    """Return the text of the file, an empty one where there is none.

    Raises Conflict for a file with other lines than ours, so that it is never overwritten.
    """
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            text = stream.read()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise _foreign(path) from error
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    for line in text.split("\n"):
        if line and not line.startswith(_OURS):
            raise _foreign(path)
    return text


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """Keep other runs from the directory; where its file system has no locks, do without."""
    number = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def _foreign(path: str) -> Conflict:
    return Conflict(
        attempted=f"{path} was not written",
        answer="the file exists and has metrics of others",
        next_step="Choose another path, or move the file away",
        reason="another file",
        dispatched=False,
    )


def _unusable(path: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        attempted=f"{path} could not be written",
        answer=why,
        next_step="Name a file in a directory that this user can write to",
        reason="path",
        dispatched=False,
    )
