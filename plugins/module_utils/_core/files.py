# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that are replaced as a whole, or not at all."""

from __future__ import annotations

import os
import tempfile


def why_not_writable(path: str) -> str:
    """Return why a file cannot be written, or an empty text. Nothing is written for that."""
    directory = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(directory):
        return f"there is no directory {directory}"
    if not os.access(directory, os.W_OK | os.X_OK):
        return f"this user cannot write to {directory}"
    if os.path.exists(path) and not os.path.isfile(path):
        return "it is not a regular file"
    return ""


def replace_file(path: str, text: str, mode: int) -> None:
    """Replace a file at once, with this mode from its first moment. Raises OSError.

    The text is on the disk before the file has its name, so that a reader never sees a part of it.
    """
    directory = os.path.dirname(os.path.abspath(path))
    number, beside = tempfile.mkstemp(prefix=".pve-fleet-", dir=directory)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
