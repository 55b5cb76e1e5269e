# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Trees of devices in answers (pure)."""

from __future__ import annotations

from collections.abc import Iterator

from .disks import Row

_LEVELS = 8  # maximum depth of a tree of devices


def paths_in(tree: Row) -> tuple[str, ...]:
    """Return the paths of the devices in a tree."""
    return tuple(_paths(tree, _LEVELS))


def _paths(tree: Row, levels: int) -> Iterator[str]:
    children = tree.get("children") or ()
    if not children and str(tree.get("name")).startswith("/"):
        yield str(tree["name"])
    for child in children if levels else ():
        yield from _paths(child, levels - 1)
