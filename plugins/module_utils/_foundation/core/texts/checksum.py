# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checksum in the head of an estate file, with which a later export detects edits (pure)."""

from __future__ import annotations

import hashlib
import re

NO_CHECKSUM = "it has no checksum, so it is not known whether it was edited after export wrote it"
EDITED = "it was edited after export wrote it: its checksum is that of another content"
_LINE = re.compile(rb"^# Checksum: sha256:([0-9a-f]{64})\n", re.MULTILINE)
_LINE_ENDS = re.compile(rb"\r\n?")


def with_checksum(text: str, head: str) -> str:
    """Return a text with the checksum of the whole text inserted after its beginning `head`."""
    content = text.encode("utf-8")
    rest = text.removeprefix(head)
    return f"{head}# Checksum: sha256:{_digest(content)}\n{rest}"


def find_edit(content: bytes) -> str:
    """Return why a file differs from the text that export wrote, or an empty text.

    Line endings are ignored, because an editor or git may have changed all of them.
    """
    lines = _LINE_ENDS.sub(b"\n", content)
    found = _LINE.search(lines)
    if found is None:
        return NO_CHECKSUM
    rest = lines[: found.start()] + lines[found.end() :]
    return EDITED if _digest(rest) != found[1].decode("ascii") else ""


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
