# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The figures of a container that a quota counts (pure)."""

from __future__ import annotations

from collections.abc import Mapping

from ....._foundation.cluster.quota import QuotaFigures
from ....._foundation.core.quantities import MIB, read_size
from .actual import mounts, volumes_in

_DEFAULT_MEMORY = 512  # MiB


def memory_of(config: Mapping[str, str]) -> int:
    """Return the memory of a container in bytes."""
    return int(config.get("memory") or _DEFAULT_MEMORY) * MIB


def cores_of(config: Mapping[str, str]) -> int:
    """Return the cores of a container; 0 if it can use all cores of its node."""
    return int(config.get("cores") or 0)


def figures_of(config: Mapping[str, str], *, template: bool = False) -> QuotaFigures:
    """Return the figures that a quota counts of a container with that configuration.

    Its disk is the root file system with all mounted volumes; bind mounts have no size.
    """
    volumes = volumes_in(config)
    disk = 0
    for slot, mount in mounts(config).items():
        if slot in volumes:
            disk += read_size(mount.get("size")) or 0
    if template:
        return QuotaFigures(disk=disk)
    return QuotaFigures(vms=1, cores=cores_of(config), memory=memory_of(config), disk=disk)
