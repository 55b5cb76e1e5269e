# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Canonical forms of values that several tables share (pure)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

from ..core import propstring, times, validate
from ..core.arguments.options import did_you_mean
from ..core.errors import NotFound
from ..core.marks import keep_mark
from .table import Field, Secret


def secret(
    option: str,
    name: str,
    variants: tuple[str, ...] = (),
    check: Callable[[Any, str], str] = lambda value, _what: value,
) -> Secret:
    """Return a secret that `update_secrets` writes again, by default any text."""
    return Secret(
        option,
        name,
        call=None,
        requested_by=("update_secrets", "always"),
        check=check,
        variants=variants,
    )


def stripped_text(option: str, longest: int | None = None) -> Callable[[Any], str]:
    """Return a function that converts a comment or a name of a person into the text that PVE
    returns later.

    PVE strips blanks at both ends, and treats "0" as empty (pve-access-control: AccessControl.pm,
    parse_user_config). `longest` is the maximum number of characters, None without a limit.
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


def matching_text(
    option: str, pattern: re.Pattern[str], why: str, next_step: str
) -> Callable[[Any], str]:
    """Return a function that accepts a text of this form, or an empty text."""

    def want(value: Any) -> str:
        text = str(value).strip()
        if text and not pattern.fullmatch(text):
            raise validate.refused(option, text, why, next_step)
        return text

    return want


def comment_field(longest: int | None = None) -> Field:
    """Return the field of a comment. A change keeps the mark of a tenant."""
    return Field(
        "comment",
        "comment",
        want=stripped_text("comment", longest),
        merge=lambda known, wanted, _desired: keep_mark(known, wanted),
    )


def as_flag(default: bool) -> Callable[[Any], bool]:
    """Return a function that reads a flag of PVE, which PVE leaves out if it has its default."""

    def read(value: Any) -> bool:
        if value in (None, ""):
            return default
        return bool(int(value))

    return read


def send_flag(value: Any) -> int:
    """Return a flag for a request."""
    return 1 if value else 0


def expiry(option: str) -> Callable[[Any], int]:
    """Return a function that converts an expiry date into seconds since the epoch, 0 for never."""

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
    """Return seconds since the epoch, 0 if PVE has none."""
    return int(value or 0)


def require_future(option: str, seconds: int, now: float) -> None:
    """Raise ValidationFailed for an expiry date that has passed, which PVE would accept."""
    if 0 < seconds <= now:
        raise validate.refused(
            option, times.iso(seconds), "has passed", "Choose a date in the future, or never"
        )


def require_existing(
    kind: str,
    requested: Iterable[str],
    known: Collection[str],
    attempted: str,
    *,
    check: str,
    bounds: str = "",
) -> None:
    """Raise NotFound for unknown names, such as names of groups.

    `check` completes the next step "check ...", `bounds` ends the sentence that there is no such
    name.
    """
    missing = sorted(set(requested).difference(known))
    if not missing:
        return
    raise NotFound(
        f"{attempted}: there is no {kind} "
        f"{', '.join(missing)}{bounds}{did_you_mean(missing[0], known)}",
        f"Create it first, or check {check}",
        f"unknown {kind}",
        details={f"{kind}s": missing},
    )


def as_list(separator: str = ",") -> Callable[[Any], tuple[str, ...]]:
    """Return a function that reads an ordered list, from an option or from the text that PVE
    stores. An item with the separator in it is several items, as PVE reads it.
    """

    def read(value: Any) -> tuple[str, ...]:
        if value is None:
            return ()
        text = value if isinstance(value, str) else separator.join(map(str, value))
        items = [item.strip() for item in text.split(separator)]
        return tuple(item for item in items if item)

    return read


def send_list(separator: str = ",") -> Callable[[Any], str | None]:
    """Return a function that renders an ordered list for a request, None for an empty one."""

    def send(value: Any) -> str | None:
        return separator.join(value) or None

    return send


def as_set(separator: str = ",") -> Callable[[Any], frozenset[str]]:
    """Return a function that reads a set, from an option or from the text that PVE stores."""
    read_list = as_list(separator)

    def read(value: Any) -> frozenset[str]:
        return frozenset(read_list(value))

    return read


def send_set(separator: str = ",") -> Callable[[Any], str | None]:
    """Return a function that renders a set for a request, sorted, None for an empty one."""
    send = send_list(separator)
    return lambda value: send(sorted(value))


def send_text(value: Any) -> str | None:
    """Return a text for a request, None for an empty one, which removes the property."""
    return str(value) or None


def text_field(option: str, *, default: str = "", name: str = "", **more: Any) -> Field:
    """Return a field with a text, under PVE's name of the option; an empty one removes it.

    `default` is the text that PVE leaves out, `name` is PVE's property if it differs from the
    option written with hyphens.
    """
    own = {
        "want": lambda value: str(value).strip() or default,
        "read": lambda value: default if value in (None, "") else str(value),
        "send": lambda value: None if value == default else send_text(value),
        **more,
    }
    return Field(option, name or option.replace("_", "-"), **own)


def words_field(option: str, separator: str = ",", default: str = "", **more: Any) -> Field:
    """Return a field with a text that PVE reads as a list in any order.

    `separator` is the character between the items in requests; commas, semicolons and blanks
    separate them in the option.
    """

    def read(value: Any) -> str:
        items = re.split(r"[,;\s\0]+", str(value or ""))
        return separator.join(sorted({item for item in items if item})) or default

    return text_field(option, default=default, want=read, read=read, **more)


def property_string_field(option: str, fmt: propstring.Format, **more: Any) -> Field:
    """Return a field with a text that PVE reads as a property string: the order of its keys and of
    the items in its values does not matter.
    """

    def read(value: Any) -> str:
        return propstring.in_order(str(value or ""), fmt, option)

    return text_field(option, want=read, read=read, **more)


def host_field(option: str, **more: Any) -> Field:
    """Return a field with an address or a DNS name, in any notation."""

    return text_field(option, **{"want": plain_host, "read": plain_host, **more})


def plain_host(value: Any) -> str:
    """Return an address in its shortest notation, or a DNS name in lower case."""
    return propstring.plain_address(str(value or "").strip().lower())


def flag_field(option: str, default: bool = False, **more: Any) -> Field:
    """Return a field with a flag. `default` is the value of a flag that PVE leaves out."""
    name = option.replace("_", "-")
    return Field(option, name, want=bool, read=as_flag(default), send=send_flag, **more)


def set_field(option: str, **more: Any) -> Field:
    """Return a field with a set of names that is replaced as a whole."""
    name = option.replace("_", "-")
    return Field(option, name, want=as_set(), read=as_set(), send=send_set(), show=sorted, **more)


def unset_flag_field(option: str, **more: Any) -> Field:
    """Return a field with a flag that is off if the property is missing; PVE switches it off only
    by removing the property.
    """

    def send(value: Any) -> int | None:
        return 1 if value else None

    name = option.replace("_", "-")
    return Field(option, name, want=bool, read=as_flag(False), send=send, **more)


def number_field(
    option: str, default: int, *, name: str = "", optional: bool = False, **more: Any
) -> Field:
    """Return a field with a number, under the option's name unless another `name` is given.

    `default` is the number that PVE leaves out. If the field is `optional`, `default` means no
    number: the property is removed.
    """

    def read(value: Any) -> int:
        return default if value in (None, "") else int(value)

    def send(value: Any) -> int | None:
        return None if optional and value == default else int(value)

    return Field(option, name or option, want=int, read=read, send=send, **more)
