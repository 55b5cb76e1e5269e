# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names and ages of snapshots, and the snapshots that a retention deletes (pure)."""

from __future__ import annotations

import re
import time
from fnmatch import fnmatchcase

from ..._foundation.core.errors import ValidationFailed
from ..._foundation.core.validate import refused
from .model import Retention, Snapshot, SnapshotTree

# The format pve-configid with the length of pve-snapshot-name, and the names that PVE reserves.
_NAME = re.compile(r"^[A-Za-z][A-Za-z0-9_-]{1,39}\Z")
_RESERVED = ("current", "pending")
_AGE = re.compile(r"^\s*(\d+)\s*([smhdw])\s*\Z", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DIGIT = "[0-9]"


def snapshot_name(value: str, what: str = "snapshot") -> str:
    """Return a snapshot name that PVE accepts. Raises ValidationFailed."""
    if value.lower() in _RESERVED:
        reason = "is a name that Proxmox VE has for itself"
        raise refused(what, value, reason, "Choose another name")
    if not _NAME.fullmatch(value):
        step = "Use a letter, then letters, digits, _ and -, 2 to 40 characters in all"
        raise refused(what, value, "is not a snapshot name", step)
    return value


def automatic_name(prefix: str, now: float) -> str:
    """Return a name with the time in UTC, such as C(auto-20260131-235959).

    Raises ValidationFailed if the name is not valid with this prefix.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    try:
        return snapshot_name(prefix + stamp, "prefix")
    except ValidationFailed:
        maximum = 40 - len(stamp)
        step = f"Use a letter, then letters, digits, _ and -, at most {maximum}"
        raise refused("prefix", prefix, "makes no snapshot name", step) from None


def automatic_pattern(prefix: str) -> str:
    """Return a pattern that matches automatic names with this prefix, and hardly any others."""
    return f"{prefix}{_DIGIT * 8}-{_DIGIT * 6}"


def seconds(value: str, what: str = "keep_for") -> int:
    """Return an age such as 12h, 7d or 2w in seconds. Raises ValidationFailed."""
    match = _AGE.fullmatch(value)
    if match is None:
        raise refused(
            what, value, "is not an age", "Use a number and s, m, h, d or w, such as 12h or 7d"
        )
    return int(match.group(1)) * _SECONDS[match.group(2).lower()]


def expired(
    tree: SnapshotTree, rule: Retention, now: int, spare: str | None = None
) -> list[Snapshot]:
    """Return the finished snapshots that the rule deletes, except `spare`, oldest first."""
    complete = [one for one in _matching(tree, rule) if not one.state]
    kept = {spare}
    if rule.keep:
        newest = complete[-rule.keep :]
        kept.update(one.name for one in newest)
    if rule.keep_for is not None:
        oldest = now - rule.keep_for
        kept.update(one.name for one in complete if one.time > oldest)
    return [one for one in complete if one.name not in kept]


def snapshots_in_progress(tree: SnapshotTree, rule: Retention) -> list[Snapshot]:
    """Return the matching snapshots that PVE did not finish creating or deleting."""
    return [one for one in _matching(tree, rule) if one.state]


def _matching(tree: SnapshotTree, rule: Retention) -> list[Snapshot]:
    """Return the snapshots that match the rule's pattern, oldest first."""
    return [one for one in tree.by_age() if fnmatchcase(one.name, rule.pattern)]
