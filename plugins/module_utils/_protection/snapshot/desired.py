# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the desired snapshots from the options of module snapshot (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._foundation.core.errors import ValidationFailed
from ..._foundation.core.validate import number
from .model import DesiredSnapshots, Retention
from .names import automatic_name, automatic_pattern, seconds, snapshot_name

DEFAULT_PREFIX = "auto-"


def read_desired(params: Mapping[str, Any], now: float) -> DesiredSnapshots:
    """Return the desired snapshots. Raises ValidationFailed."""
    state = params.get("state") or "present"
    name = params.get("snapshot")
    prefix = params.get("prefix") or DEFAULT_PREFIX
    pattern = params.get("pattern")
    if name:
        snapshot_name(name)
    elif state == "present":
        name = automatic_name(prefix, now)
        pattern = pattern or automatic_pattern(prefix)
    retention = _retention(params, state, pattern)
    if state == "rolled_back" and not name:
        raise _incomplete(
            "No snapshot to roll back to was named",
            "state is rolled_back and snapshot is missing",
            "Name it",
        )
    if state == "absent" and not name and retention is None:
        raise _incomplete(
            "No snapshot was named",
            "state is absent and both snapshot and pattern are missing",
            "Give one of them",
        )
    return DesiredSnapshots(
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
    """Return the retention; `pattern` is the option's value or the pattern of automatic names."""
    refused = "The retention was refused"
    keep = params.get("keep")
    keep_for = params.get("keep_for")
    has_limit = keep is not None or keep_for is not None
    has_pattern = bool(params.get("pattern"))
    if state == "rolled_back":
        if has_limit or has_pattern:
            step = "Leave out keep, keep_for and pattern"
            raise _incomplete(refused, "a rollback has none", step)
        return None
    if not has_limit and not has_pattern:
        return None
    if not pattern:
        step = "Give pattern with keep or keep_for, such as pattern: nightly-*"
        raise _incomplete(refused, "it does not say which snapshots it is about", step)
    if not has_limit and state == "present":
        step = "Give keep or keep_for with it"
        raise _incomplete(refused, "pattern alone would delete all that match", step)
    if keep is not None:
        minimum = 1 if state == "present" else 0
        number(keep, minimum, 10000, "keep")
    if keep_for is not None:
        keep_for = seconds(keep_for)
    return Retention(pattern, keep, keep_for)


def _incomplete(attempted: str, answer: str, next_step: str) -> ValidationFailed:
    return ValidationFailed(f"{attempted}: {answer}", next_step, "snapshot options")
