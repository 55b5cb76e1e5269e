# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Estimates of the time that moves take, from sizes and a rate (pure)."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from ...._foundation.cluster.state import ClusterState
from ...._foundation.core.quantities import read_size
from ...._guests.kinds.model import Actual

# Seconds of a move in addition to copying: its start, the switch, the answer of its task.
OVERHEAD = 5.0


def local_bytes(actual: Actual, cluster: ClusterState) -> int:
    """Return the size in bytes of the guest's disks on storages that are not shared."""
    shared = cluster.shared_storages
    total = 0
    for disk in actual.kind.disks_in(actual.target).values():
        storage = disk["file"].partition(":")[0]
        if storage not in shared:
            total += read_size(disk.get("size")) or 0
    return total


def copied_bytes(actual: Actual, cluster: ClusterState) -> int:
    """Return the bytes that the move of a guest copies: its local disks, and the memory of a
    running VM; a container is restarted.
    """
    size = local_bytes(actual, cluster)
    if actual.running and actual.kind.saves_memory:
        size += actual.kind.figures_of(actual.live).memory
    return size


def seconds_of(actual: Actual, cluster: ClusterState, rate: float) -> float:
    """Return the seconds that the move of a guest takes; `rate` is in bytes per second."""
    return OVERHEAD + copied_bytes(actual, cluster) / rate


def whole_time(seconds: Iterable[float], parallel: int) -> float:
    """Return the seconds until all moves are done if started in this order, `parallel` at once."""
    slots = [0.0] * parallel
    for one in seconds:
        heapq.heappush(slots, heapq.heappop(slots) + one)
    return max(slots)


def duration(seconds: float) -> str:
    """Return a duration for people, rounded up to whole seconds or minutes."""
    whole = int(seconds + 0.999)
    if whole < 120:
        return f"{whole} s"
    return f"{(whole + 59) // 60} min"
