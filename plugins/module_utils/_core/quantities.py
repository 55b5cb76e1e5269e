# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sizes of memory and disks: parse what people write, render what PVE writes, compare as bytes."""

from __future__ import annotations

import re
from decimal import Decimal

from .errors import ValidationFailed
from .shown import shown

KIB, MIB, GIB, TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40

_UNITS = {"": 1, "b": 1, "k": KIB, "m": MIB, "g": GIB, "t": TIB}
_SIZE = re.compile(
    r"^\s*([0-9]{1,18}(?:\.[0-9]{1,60})?)\s*(?:([kmgt])(i?b?)?|(b))?\s*$", re.IGNORECASE
)


def whole_number(text: str) -> int | None:
    """Return the number that a text of digits is, or None for another text or an endless one."""
    if 0 < len(text) <= 18 and text.isascii() and text.isdigit():
        return int(text)
    return None


def parse_size(value: object, *, bare: int, what: str) -> int:
    """Return the bytes that `value` means.

    Every unit is binary, as in PVE (C(32G) = C(32Gi) = C(32768M)).

    `bare` is the unit in bytes of a number without a unit; `what` names the option in the error.
    Raises ValidationFailed for anything that is not a whole number of bytes.
    """
    text = str(value)
    found = None if isinstance(value, bool) else _SIZE.match(text)
    if not found:
        raise ValidationFailed(
            attempted=f"{what} was refused",
            answer=f"{shown(value)} is not a size",
            next_step="Write a number with a unit, such as 512M, 32G or 1T",
            reason=what,
        )
    number, unit, _binary, plain = found.groups()
    factor = _UNITS[(unit or plain).lower()] if (unit or plain) else bare
    size = Decimal(number) * factor
    if size != size.to_integral_value():
        raise ValidationFailed(
            attempted=f"{what} was refused",
            answer=f"{shown(value)} is not a whole number of bytes",
            next_step="Use a smaller unit",
            reason=what,
        )
    return int(size)


def parse_memory(
    value: object, *, what: str = "memory", least: int = 64, most: int = 2 * TIB // MIB
) -> int:
    """Return MiB for a memory size.

    A bare number is MiB. Raises ValidationFailed outside `least` to `most` MiB.
    """
    size = parse_size(value, bare=MIB, what=what)
    if size % MIB:
        raise ValidationFailed(
            attempted=f"{what} was refused",
            answer=f"{value} is not a whole number of MiB",
            next_step="PVE counts memory in MiB",
            reason=what,
        )
    mib = size // MIB
    if not least <= mib <= most:
        raise ValidationFailed(
            attempted=f"{what} was refused",
            answer=f"{value} is {mib} MiB, outside {least} MiB to {most} MiB",
            next_step="Choose a size inside that range; a bare number is MiB",
            reason=what,
        )
    return mib


def parse_disk_size(
    value: object, *, what: str = "size", least: int = GIB, most: int = 100 * TIB
) -> int:
    """Return bytes for a disk size.

    A bare number is GiB. Raises ValidationFailed outside `least` to `most` bytes.
    """
    size = parse_size(value, bare=GIB, what=what)
    if not least <= size <= most:
        raise ValidationFailed(
            attempted=f"{what} was refused",
            answer=(
                f"{value} is {render_size(size)}, outside {render_size(least)} to"
                f" {render_size(most)}"
            ),
            next_step="Choose a size inside that range; a bare number is GiB",
            reason=what,
        )
    if size % KIB:
        raise ValidationFailed(
            attempted=f"{what} was refused",
            answer=f"{value} is not a whole number of KiB",
            next_step="PVE allocates disks in KiB",
            reason=what,
        )
    return size


def read_size(text: str | None) -> int | None:
    """Return the bytes of a size as PVE writes it in a disk (C(size=32G)), or None where it wrote
    none.
    """
    if not text:
        return None
    found = _SIZE.match(text)
    if not found:
        return None
    number, unit = found.group(1), (found.group(2) or "").lower()
    return int(Decimal(number) * _UNITS[unit])


def render_size(size: int) -> str:
    """Return bytes the way PVE stores a disk size: the largest unit that divides it (C(1536M),
    C(32G), C(1T)).
    """
    for unit, factor in (("T", TIB), ("G", GIB), ("M", MIB), ("K", KIB)):
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def render_gib(size: int) -> str:
    """Return bytes as the GiB figure of a new volume (C(storage:1.5)); PVE takes decimals there."""
    text = f"{Decimal(size) / GIB:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def readable_size(size: int) -> str:
    """Return bytes for people, in the largest unit of which there is one: C(12.5 GiB)."""
    for unit, factor in (("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if abs(size) >= factor:
            amount = f"{size / factor:.1f}".removesuffix(".0")
            return f"{amount} {unit}"
    return f"{size} B"
