# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The interfaces that a pending change touches, from the difference that PVE prints (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass

_STANZA = re.compile(r"(?:auto|iface|allow-\S+)\s+(\S+)")


@dataclass(frozen=True)
class ChangedInterfaces:
    """The interfaces whose configuration differs, incomplete if a stanza is unknown."""

    names: frozenset[str] = frozenset()
    is_complete: bool = True


def touched_by(difference: str) -> ChangedInterfaces:
    """Return the interfaces of the changed lines in a unified difference of two configurations.

    A changed line belongs to the stanza above it. The stanza is unknown if its head is not in the
    context. Comments and empty lines are ignored.
    """
    names: set[str] = set()
    is_complete = True
    current = ""
    for line in difference.splitlines():
        if line.startswith(("--- ", "+++ ")):
            continue
        if line.startswith("@@"):
            current = ""
            continue
        text = line[1:].strip()
        head = _STANZA.match(text)
        if head and line[1:2] not in (" ", "\t"):
            current = head[1]
        if line[:1] not in ("+", "-") or not text or text.startswith("#"):
            continue
        if current:
            names.add(current)
        else:
            is_complete = False
    return ChangedInterfaces(frozenset(names), is_complete)
