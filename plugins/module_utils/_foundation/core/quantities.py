# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sizes of memory and disks: parse them as people write them, render them as PVE does, compare
as bytes.
"""

from __future__ import annotations

import re
from decimal import Decimal

from .errors import ValidationFailed
from .formatting import formatted

KIB, MIB, GIB, TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40

_UNITS = {"": 1, "b": 1, "k": KIB, "m": MIB, "g": GIB, "t": TIB}
_READABLE = (("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB))
# A larger number without a unit can only be bytes: 256 MiB of memory, 1 GiB of a disk, or more.
_LARGEST_BARE = {MIB: 256 * TIB, GIB: GIB * GIB}
_SIZE = re.compile(
    r"^\s*([0-9]{1,18}(?:\.[0-9]{1,60})?)\s*(?:([kmgt])(i?b?)?|(b))?\s*\Z", re.IGNORECASE
)


def whole_number(text: str) -> int | None:
    """Return a text of digits as a number, or None for any other text or too many digits."""
    if 0 < len(text) <= 18 and text.isascii() and text.isdigit():
        return int(text)
    return None


def parse_size(value: object, *, bare: int, what: str) -> int:
    """Return `value` in bytes.

    Every unit is binary, as in PVE (C(32G) = C(32Gi) = C(32768M)).

    `bare` is the size in bytes of the default unit; `what` names the option in the error. Raises
    ValidationFailed for anything that is not a whole number of bytes, and for a number without a
    unit that is so large that it can only be bytes.
    """
    text = str(value)
    found = None if isinstance(value, bool) else _SIZE.match(text)
    if not found:
        raise _not_a_size(value, what)
    number, unit, _binary, plain = found.groups()
    factor = _UNITS[(unit or plain).lower()] if (unit or plain) else bare
    size = Decimal(number) * factor
    if size != size.to_integral_value():
        raise _refused(
            what, f"{formatted(value)} is not a whole number of bytes", "Use a smaller unit"
        )
    if not (unit or plain) and size > _LARGEST_BARE.get(bare, size):
        answer = f"{formatted(value)} without a unit is {readable_size(int(size))}"
        raise _refused(what, answer, f"Write a size with a unit; {_about_bare(value, bare)}")
    return int(size)


def _refused(what: str, answer: str, next_step: str) -> ValidationFailed:
    return ValidationFailed(f"{what} was refused: {answer}", next_step, what)


def _not_a_size(value: object, what: str) -> ValidationFailed:
    """Return the error for a value that is not a size: a boolean, an amount to add, another
    text.
    """
    if isinstance(value, bool):
        answer = f"{formatted(value)} is a boolean, not a size"
        return _refused(what, answer, "Write a number with a unit, such as 512M, 32G or 1T")
    text = str(value).strip()
    if text.startswith("+") and _SIZE.match(text[1:]):
        answer = f"{formatted(value)} is an amount to add, not a size"
        return _refused(what, answer, "Write the new size, such as 37G for 32G and 5G more")
    answer = f"{formatted(value)} is not a size"
    return _refused(what, answer, "Write a number with a unit, such as 512M, 32G or 1T")


def _about_bare(value: object, bare: int) -> str:
    """Return the meaning of a number without a unit, and the notation for bytes."""
    text = f"a bare number is {'MiB' if bare == MIB else 'GiB'}"
    number = whole_number(str(value).strip())
    if number is None or number < MIB or number % KIB:
        return text
    return f"{text}. If bytes are meant, write {render_size(number)}"


def parse_memory(
    value: object, *, what: str = "memory", minimum: int = 64, maximum: int = 2 * TIB // MIB
) -> int:
    """Return MiB for a memory size.

    A bare number is MiB. Raises ValidationFailed outside `minimum` to `maximum` MiB.
    """
    size = parse_size(value, bare=MIB, what=what)
    if size % MIB:
        answer = f"{value} is not a whole number of MiB"
        raise _refused(what, answer, "PVE counts memory in MiB")
    mib = size // MIB
    if not minimum <= mib <= maximum:
        answer = _out_of_range(value, size, minimum * MIB, maximum * MIB)
        about = _about_bare(value, MIB)
        raise _refused(what, answer, f"Choose a size inside that range; {about}")
    return mib


def parse_disk_size(
    value: object, *, what: str = "size", minimum: int = MIB, maximum: int = 100 * TIB
) -> int:
    """Return bytes for a disk size.

    A bare number is GiB. Raises ValidationFailed outside `minimum` to `maximum` bytes.
    """
    size = parse_size(value, bare=GIB, what=what)
    if not minimum <= size <= maximum:
        answer = _out_of_range(value, size, minimum, maximum)
        about = _about_bare(value, GIB)
        raise _refused(what, answer, f"Choose a size inside that range; {about}")
    if size % KIB:
        answer = f"{value} is not a whole number of KiB"
        raise _refused(what, answer, "PVE allocates disks in KiB")
    return size


def _out_of_range(value: object, size: int, minimum: int, maximum: int) -> str:
    """Return the range that a size in bytes is outside of."""
    amount, lowest, highest = readable_sizes(size, minimum, maximum)
    return f"{value} is {amount}, outside {lowest} to {highest}"


def read_size(text: str | None) -> int | None:
    """Return the bytes of a size as PVE writes it in a disk (C(size=32G)), or None if the disk has
    no size.
    """
    if not text:
        return None
    found = _SIZE.match(text)
    if not found:
        return None
    number, unit = found.group(1), (found.group(2) or "").lower()
    return int(Decimal(number) * _UNITS[unit])


def render_size(size: int) -> str:
    """Return bytes in the form in which PVE stores a disk size: in the largest unit that divides it
    (C(1536M), C(32G), C(1T)).
    """
    for unit, factor in (("T", TIB), ("G", GIB), ("M", MIB), ("K", KIB)):
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def render_gib(size: int) -> str:
    """Return bytes as the GiB figure of a new volume (C(storage:1.5)); PVE takes decimals there."""
    text = f"{Decimal(size) / GIB:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def readable_size(size: float, decimals: int = 1, largest: int = TIB) -> str:
    """Return bytes for people, in the largest unit that gives at least 1: C(12.5 GiB)."""
    for unit, factor in _READABLE:
        if factor <= largest and abs(size) >= factor:
            amount = f"{size / factor:.{decimals}f}"
            if decimals:
                amount = amount.rstrip("0").rstrip(".")
            return f"{amount} {unit}"
    return f"{size:.0f} B"


def readable_sizes(*sizes: float) -> tuple[str, ...]:
    """Return the sizes in one sentence, with enough decimals to distinguish different sizes."""
    for largest in (TIB, GIB, MIB):
        for decimals in (1, 2):
            texts = tuple(readable_size(size, decimals, largest) for size in sizes)
            if len(set(texts)) == len(set(sizes)):
                return texts
    return tuple(map(readable_size, sizes))
