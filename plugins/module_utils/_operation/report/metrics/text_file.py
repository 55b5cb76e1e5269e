# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A file for the textfile collector of node_exporter: read, and replaced as a whole.

Counters continue from run to run. A lock of the directory prevents the loss of counts if two runs
write at the same time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from ...._foundation.core import validate
from ...._foundation.core.errors import ConfigurationError, Conflict
from ...._foundation.core.files import directory_lock, replace_file, why_not_writable
from .exposition import samples_in, text_of
from .samples import SampleKey, Samples

# node_exporter reads no file with another suffix.
SUFFIX = ".prom"
# node_exporter runs as another user. The file contains no secrets.
_MODE = 0o644
_OURS = ("#", "proxmox_")

Keeps = Callable[[SampleKey], bool]
"""Whether a sample of the earlier file is included in the new one."""


@dataclass(frozen=True)
class WriteResult:
    """The file before and after. `before` is None without a file or if it could not be parsed."""

    before: Samples | None
    after: Samples
    changed: bool


def require_path(path: str) -> str:
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


def write_samples(path: str, samples: Samples, keeps: Keeps, check_mode: bool) -> WriteResult:
    """Replace the file with new samples and the earlier samples that `keeps` selects.

    Check mode writes nothing. Raises ConfigurationError, and Conflict for a file that is not ours.
    """
    with directory_lock(path):
        text = _read(path)
        before = samples_in(text)
        for key, value in before or ():
            if keeps(key):
                samples.include(key, value)
        wanted = text_of(samples)
        if not check_mode:
            try:
                replace_file(path, wanted, _MODE)
            except OSError as error:
                raise _unusable(path, error.strerror or str(error)) from error
    if not text:
        before = None
    return WriteResult(before, samples, changed=wanted != text)


def _read(path: str) -> str:
    """Return the text of the file, an empty text without a file.

    Raises Conflict for a file with other lines than ours: it must never be overwritten.
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


def _foreign(path: str) -> Conflict:
    return Conflict(
        f"{path} was not written: the file exists and has metrics of others",
        "Choose another path, or move the file away",
        "another file",
    )


def _unusable(path: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"{path} could not be written: {why}",
        "Name a file in a directory that this user can write to",
        "path",
    )
