# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The form of a configuration in results and in diffs: the part that kinds share (pure)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

EMPTY: tuple[Any, ...] = ("", [], {})


def format_options(
    config: Mapping[str, str],
    keys: Iterable[str] | None,
    hidden: Collection[str],
    format_value: Callable[[str, str], Any],
) -> dict[str, Any]:
    """Return a configuration as plain data, all of it or only `keys`; empty values are left out.

    `hidden` are not part of a user's configuration.
    """
    chosen = set(config)
    if keys is not None:
        chosen &= set(keys)
    formatted: dict[str, Any] = {}
    for key in sorted(chosen.difference(hidden)):
        text = config[key]
        if text == "":
            continue
        value = format_value(key, text)
        if value not in EMPTY:
            formatted[key] = value
    return formatted
