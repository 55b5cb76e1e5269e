# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The archive that a guest was restored from by a failover, as a line of its notes (pure)."""

from __future__ import annotations

import re

_LINE = re.compile(r"\n*^Failover from (\S+)\.$", re.MULTILINE)


def with_source(notes: str, volume: str) -> str:
    """Return notes with the line about this archive, in place of any earlier one."""
    before = _LINE.sub("", notes).strip()
    line = f"Failover from {volume}."
    return f"{before}\n\n{line}" if before else line


def source_of(notes: str) -> str | None:
    """Return the archive in the notes of a guest, None if no failover has restored it."""
    found = _LINE.search(notes)
    return None if found is None else found[1]
