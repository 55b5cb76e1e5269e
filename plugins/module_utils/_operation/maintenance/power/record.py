# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file with the guests that a run has stopped; the next start starts only these guests.

A complete start leaves an empty record, so that the same start again is not mistaken for a start
whose record is lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from ...._foundation.core.errors import ConfigurationError
from ...._foundation.core.files import read_regular, replace_file, why_not_writable

_MODE = 0o600


def read_stopped(path: str) -> dict[int, str] | None:
    """Return the mark of each recorded guest by VMID, or None without a file.

    Raises ConfigurationError if the file has other content or cannot be written.
    """
    reason = why_not_writable(path)
    if reason:
        raise _unusable(path, reason)
    try:
        content = read_regular(path)
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from None
    if content is None:
        return None
    return parse_stopped(path, content.data)


def parse_stopped(path: str, data: bytes) -> dict[int, str]:
    """Return the record in the content of a file (pure). Raises ConfigurationError."""
    try:
        guests = json.loads(data)["stopped"]
        return {int(vmid): str(mark) for vmid, mark in guests.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _unusable(path, "it is not a record of stopped guests") from None


def write_stopped(path: str, guests: Mapping[int, str]) -> None:
    """Replace the record. Raises ConfigurationError."""
    stopped = {str(vmid): guests[vmid] for vmid in sorted(guests)}
    try:
        replace_file(path, json.dumps({"stopped": stopped}, indent=1) + "\n", _MODE)
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from None


def _unusable(path: str, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"The record {path} could not be used: {reason}",
        "Name another file in record, or repair this one",
        "record unusable",
    )
