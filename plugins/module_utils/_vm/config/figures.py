# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The figures of a VM that a quota counts (pure)."""

from __future__ import annotations

from collections.abc import Mapping

from ..._cluster.quota import Figures
from ..._core.quantities import read_size
from .actual import drives, is_disk
from .memory import cores_of, memory_of


def figures_of(
    config: Mapping[str, str], images: Mapping[str, int] | None = None, *, template: bool = False
) -> Figures:
    """Return the figures that a quota counts of a VM with that configuration.

    `images` are the bytes of imported images by slot.
    """
    disk = 0
    for slot, drive in drives(config).items():
        if not is_disk(drive):
            continue
        size = read_size(drive.get("size"))
        if not size and images:
            size = images.get(slot)
        disk += size or 0
    if template:
        return Figures(disk=disk)
    return Figures(vms=1, cores=cores_of(config), memory=memory_of(config), disk=disk)
