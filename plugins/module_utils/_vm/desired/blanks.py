# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rule for empty texts (pure): one removes the option, so that PVE's default holds, wherever
PVE can do without it.

What a VM always has (a name, memory, a disk's storage) cannot be removed: there an empty text
counts as left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._spec.vm_rules import EMPTY_REMOVES

# An empty tenant is an error of its own.
_KEPT = frozenset(("tenant",))


def is_blank(value: Any) -> bool:
    """Return whether a value is an empty text, or a list of nothing else."""
    if isinstance(value, list):
        return all(map(is_blank, value))
    if not isinstance(value, str):
        return False
    return not value.strip()


def without_left_out(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with None for an empty text that cannot remove anything."""
    kept = _cleared(options, "")
    for name in ("disks", "nics"):
        items = kept.get(name)
        if isinstance(items, list):
            kept[name] = [_cleared(item, name) for item in items]
    cloud_init = kept.get("cloud_init")
    if isinstance(cloud_init, Mapping):
        kept["cloud_init"] = _cleared(cloud_init, "cloud_init")
    return kept


def _cleared(options: Mapping[str, Any], part: str) -> dict[str, Any]:
    removable = EMPTY_REMOVES[part].keys() | _KEPT
    cleared = dict(options)
    for name, value in options.items():
        if name in removable or not isinstance(value, str):
            continue
        if is_blank(value):
            cleared[name] = None
    return cleared
