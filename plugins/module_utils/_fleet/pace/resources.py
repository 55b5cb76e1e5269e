# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The resources that a task uses, for the limits of concurrent tasks (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._core.parallel import Resource
from ..._kinds.words import TYPES

# The end of the path of a request that creates a guest, by kind.
_CREATIONS = tuple((pve_type,) for pve_type in TYPES)


def resources_of(
    path: tuple[str | int, ...],
    data: Mapping[str, Any],
    storages: frozenset[Resource] = frozenset(),
) -> frozenset[Resource]:
    """Return the resources that the task of a request will use (pure).

    `storages` hold the disks of a new VM.
    """
    used: set[Resource] = {("all", "")}
    if len(path) > 1 and path[0] == "nodes":
        used.add(("node", str(path[1])))
    if path[-1:] == ("clone",):
        used |= {("template", str(path[3])), *storages}
    elif path[2:] in _CREATIONS:
        used |= storages
    elif data.get("storage"):
        used.add(("storage", str(data["storage"])))
    return frozenset(used)
