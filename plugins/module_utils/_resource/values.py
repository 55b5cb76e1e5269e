# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Canonical forms of values that several tables share (pure)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from .._core import times, validate
from .._core.errors import NotFound


def kept_text(option: str, longest: int | None = None) -> Callable[[Any], str]:
    """Return what turns a comment or a name of a person into the text that PVE gives back.

    PVE strips blanks at its ends, and takes "0" for nothing (pve-access-control:
    AccessControl.pm, parse_user_config). `longest` is its limit in characters, where it has one.
    """

    def want(value: Any) -> str:
        text = str(value).strip(" ")
        if text == "0":
            raise validate.refused(
                option, text, "would not be kept by Proxmox VE", "Write another text"
            )
        if longest is not None and len(text) > longest:
            raise validate.refused(
                option,
                f"{text[:40]}...",
                f"is too long: {len(text)} characters",
                f"Use {longest} characters at most",
            )
        return text

    return want


def as_flag(default: bool) -> Callable[[Any], bool]:
    """Return what reads a flag of PVE, which leaves out what has its default."""

    def read(value: Any) -> bool:
        if value in (None, ""):
            return default
        return bool(int(value))

    return read


def send_flag(value: Any) -> int:
    """Return a flag as a request has it."""
    return 1 if value else 0


def expiry(option: str) -> Callable[[Any], int]:
    """Return what turns an expiry date into seconds since the epoch, 0 for never."""

    def want(value: Any) -> int:
        text = str(value).strip()
        if text.lower() in ("", "never", "0"):
            return 0
        seconds = times.seconds(text)
        if seconds is None or seconds < 0:
            raise validate.refused(
                option,
                text,
                "is not a date",
                "Write it as 2027-01-31, 2027-01-31T18:00:00Z or never",
            )
        return seconds

    return want


def as_seconds(value: Any) -> int:
    """Return seconds since the epoch, 0 where PVE has none."""
    return int(value or 0)


def refuse_past(option: str, seconds: int, now: float) -> None:
    """Raise ValidationFailed for an expiry date that has passed, which PVE would accept."""
    if 0 < seconds <= now:
        raise validate.refused(
            option,
            times.iso(seconds),
            "has passed",
            "Choose a date in the future, or never",
        )


def require_existing(
    kind: str,
    asked: Iterable[str],
    known: Collection[str],
    attempted: str,
    *,
    check: str,
    bounds: str = "",
) -> None:
    """Raise NotFound for names that are not known, such as those of groups.

    `check` is what the user has to check, `bounds` ends the sentence that there is no such name.
    """
    missing = sorted(set(asked).difference(known))
    if not missing:
        return
    raise NotFound(
        attempted=attempted,
        answer=f"there is no {kind} {', '.join(missing)}{bounds}",
        next_step=f"Create it first, or check {check}",
        reason=f"unknown {kind}",
        details={f"{kind}s": missing},
    )
