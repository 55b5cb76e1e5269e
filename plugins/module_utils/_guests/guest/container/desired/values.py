# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The values of a container's options, one by one (pure): the meaning of an empty text, and the
check that the declaration of an option names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ....._foundation.core import validate
from ....._foundation.spec.container import container_spec
from ....._foundation.spec.fleet import with_defaults
from ....._foundation.spec.generated.container_rules import (
    CHECKS,
    EMPTY_REMOVES,
    PROPERTY_STRINGS,
    RANGES,
    SCALARS,
    WORDS,
)
from ...desired.tables import OptionTables
from ...desired.values import COMMON, checked_at, checked_items, cleared, cleared_within

_NESTED = ("rootfs", "mounts", "nics", "features", "devices")
_SPEC = container_spec()
_WORD = re.compile(r"[^;,\s]+")
# The container configures its address itself.
_MANUAL = "manual"


def without_empty_texts(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with None for an empty text that cannot remove anything."""
    found = cleared(TABLES, "", options)
    for name in _NESTED:
        if name in found:
            found[name] = cleared_within(TABLES, name, found[name])
    return found


def checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of a container, each value in the form that its check returns.

    Options that are not given have their defaults; each device has a slot. Raises ValidationFailed
    for the first value that a check refuses.
    """
    options = checked_at(TABLES, "", with_defaults(_SPEC, dict(given)), "")
    for name in ("rootfs", "features"):
        if options[name] is not None:
            options[name] = checked_at(TABLES, name, options[name], name)
    for name, family in (("mounts", "mp"), ("nics", "net"), ("devices", "dev")):
        options[name] = checked_items(TABLES, name, options[name], partial(_slots, family))
    return options


def _slots(family: str, items: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the slot of each item, by its position if it has no name."""
    return [str(item.get("name") or f"{family}{place}") for place, item in enumerate(items)]


def _ipv4(address: str, what: str) -> str:
    return address if address == _MANUAL else COMMON["ipv4"](address, what)


def _ipv6(address: str, what: str) -> str:
    return address if address == _MANUAL else COMMON["ipv6"](address, what)


def _words(items: Sequence[str], what: str) -> str:
    """Return a list as PVE writes it."""
    for item in items:
        if item and not _WORD.fullmatch(item):
            raise validate.refused(what, item, "is not a single word", "Write one word an item")
    return ";".join(filter(None, items))


FUNCTIONS: Mapping[str, Callable[[Any, str], Any]] = {
    **COMMON,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "words": _words,
}
"""The checks that declarations name: each takes a value and the option's name for errors."""

TABLES = OptionTables(
    SCALARS,
    PROPERTY_STRINGS,
    WORDS,
    EMPTY_REMOVES,
    checks=CHECKS,
    ranges=RANGES,
    functions=FUNCTIONS,
)
