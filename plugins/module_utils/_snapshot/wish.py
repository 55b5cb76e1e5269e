# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the options of module snapshot to a wish (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.errors import ValidationFailed
from .._core.validate import number
from .model import Retention, Wish
from .names import automatic_name, automatic_pattern, seconds, snapshot_name

DEFAULT_PREFIX = "auto-"


def read_wish(params: Mapping[str, Any], now: float) -> Wish:
    """Return what the options say. Raises ValidationFailed for options that contradict each other or say too little."""
    state = params.get("state") or "present"
    name = params.get("snapshot")
    automatic = state == "present" and not name
    prefix = params.get("prefix") or DEFAULT_PREFIX
    if name:
        snapshot_name(name)
    elif automatic:
        name = automatic_name(prefix, now)
    retention = _retention(params, state, automatic_pattern(prefix) if automatic else None)
    if state == "rolled_back" and not name:
        raise _too_little(
            "No snapshot to roll back to was named", "state is rolled_back and snapshot is missing", "Name it"
        )
    if state == "absent" and not name and retention is None:
        raise _too_little(
            "No snapshot was named", "state is absent and both snapshot and pattern are missing", "Give one of them"
        )
    return Wish(
        state=state,
        name=name or None,
        now=int(now),
        description=params.get("description"),
        vmstate=bool(params.get("vmstate")),
        retention=retention,
        force=bool(params.get("force")),
        restart=params.get("restart") is not False,
    )


def _retention(params: Mapping[str, Any], state: str, pattern: str | None) -> Retention | None:
    keep, keep_for = params.get("keep"), params.get("keep_for")
    pattern = params.get("pattern") or pattern
    limited = keep is not None or keep_for is not None
    if state == "rolled_back":
        if limited or params.get("pattern"):
            raise _too_little(
                "The retention was refused", "a rollback has none", "Leave out keep, keep_for and pattern"
            )
        return None
    if not limited:
        if state == "present" and params.get("pattern"):
            raise _too_little(
                "The retention was refused",
                "pattern alone would delete all that match",
                "Give keep or keep_for with it",
            )
        return Retention(params["pattern"]) if params.get("pattern") else None
    if not pattern:
        raise _too_little(
            "The retention was refused",
            "it does not say which snapshots it is about",
            "Give pattern with keep or keep_for, such as pattern: nightly-*",
        )
    if keep is not None:
        number(keep, 1 if state == "present" else 0, 10000, "keep")
    return Retention(pattern, keep, None if keep_for is None else seconds(keep_for))


def _too_little(attempted: str, answer: str, next_step: str) -> ValidationFailed:
    return ValidationFailed(attempted=attempted, answer=answer, next_step=next_step, reason="snapshot options")
