# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names, ages and which snapshots a retention lets go (pure)."""

from __future__ import annotations

import re
import time
from fnmatch import fnmatchcase

from .._core.errors import ValidationFailed
from .._core.validate import refused
from .model import Retention, Snapshot, Tree

# pve-configid with pve-snapshot-name's length, and the names that PVE has for itself.
_NAME = re.compile(r"^[A-Za-z][A-Za-z0-9_-]{1,39}$")
_RESERVED = ("current", "pending")
_AGE = re.compile(r"^\s*(\d+)\s*([smhdw])\s*$", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_STAMP = "%Y%m%d-%H%M%S"
_DIGIT = "[0-9]"


def snapshot_name(value: str, what: str = "snapshot") -> str:
    """Return a snapshot's name that PVE takes. Raises ValidationFailed."""
    if value.lower() in _RESERVED:
        raise refused(what, value, "is a name that Proxmox VE has for itself", "Choose another name")
    if not _NAME.fullmatch(value):
        raise refused(
            what, value, "is no snapshot name", "Use a letter, then letters, digits, _ and -, 2 to 40 characters in all"
        )
    return value


def automatic_name(prefix: str, now: float) -> str:
    """Return a name with the time in UTC, such as C(auto-20260131-235959). Raises ValidationFailed for the prefix."""
    stamp = time.strftime(_STAMP, time.gmtime(now))
    try:
        return snapshot_name(prefix + stamp, "prefix")
    except ValidationFailed:
        most = 40 - len(stamp)
        raise refused(
            "prefix", prefix, "makes no snapshot name", f"Use a letter, then letters, digits, _ and -, at most {most}"
        ) from None


def automatic_pattern(prefix: str) -> str:
    """Return the pattern that automatic names with this prefix match, and hardly any other."""
    return f"{prefix}{_DIGIT * 8}-{_DIGIT * 6}"


def seconds(value: str, what: str = "keep_for") -> int:
    """Return the seconds of an age such as 12h, 7d or 2w. Raises ValidationFailed."""
    match = _AGE.fullmatch(value)
    if match is None:
        raise refused(what, value, "is no age", "Use a number and s, m, h, d or w, such as 12h or 7d")
    return int(match.group(1)) * _SECONDS[match.group(2).lower()]


def expired(tree: Tree, rule: Retention, now: int, spare: str | None = None) -> list[Snapshot]:
    """Return the snapshots that the rule lets go, oldest first; never `spare`, never an unfinished one."""
    matching = [one for one in tree.by_age() if fnmatchcase(one.name, rule.pattern) and not one.state]
    stays = {spare}
    if rule.keep:
        stays |= {one.name for one in matching[-rule.keep :]}
    if rule.keep_for is not None:
        stays |= {one.name for one in matching if one.time > now - rule.keep_for}
    return [one for one in matching if one.name not in stays]


def unfinished(tree: Tree, rule: Retention) -> list[Snapshot]:
    """Return the snapshots that match the rule and that PVE did not finish making or deleting."""
    return [one for one in tree.by_age() if fnmatchcase(one.name, rule.pattern) and one.state]
