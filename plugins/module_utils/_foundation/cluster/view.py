# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cluster as one run sees it: the state for its decisions, and its own reservations."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from .state import ClusterState, fetch_cluster_state, is_fresh, refreshed

if TYPE_CHECKING:
    from ..api.client import Client

# Seconds that a run waits, for all its VMs together, for the names and owners of new VMs.
PATIENCE = 30.0


class ClusterView:
    """The cluster as seen by a run that works on one guest; `types` as in `ClusterState`."""

    def __init__(self, client: Client, types: Collection[str]) -> None:
        self.client = client
        self.types = types
        self._names_until: float | None = None

    def now(self) -> ClusterState:
        """Return a newly read cluster state."""
        return fetch_cluster_state(self.client, self.types)

    def of_previous_item(self) -> ClusterState | None:
        """Return the cluster state that the previous item of a loop left, or None.

        The item has changed nothing, and the state is not too old for a write.
        """
        reading = self.client.take_reading()
        if not isinstance(reading, ClusterState) or reading.types != frozenset(self.types):
            return None
        return reading if is_fresh(self.client, reading) else None

    def leave(self, cluster: ClusterState) -> None:
        """Leave the cluster state to the next item of a loop."""
        self.client.leave_reading(cluster)

    def fresh(self, cluster: ClusterState) -> ClusterState:
        """Return the cluster state, or a new one if it is too old for a write."""
        return refreshed(self.client, cluster)

    def seconds_for_names(self) -> float:
        """Return how long the run may still wait for the names of VMs that others are creating."""
        now = self.client.clock.monotonic()
        if self._names_until is None:
            self._names_until = now + PATIENCE
        return max(0.0, self._names_until - now)

    def change_vmid(self, vmid: int, node: str) -> None:
        """Note that the VM gets another VMID or node than was planned."""
