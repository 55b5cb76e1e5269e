# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The moves of volumes around the migration of a guest to another node (pure).

A migration needs each storage on both nodes, or a map from storages of the old node to storages of
the new node. The map holds only for storages that are not shared (qemu-server: QemuMigrate.pm,
scan_local_volumes; pve-container: LXC/Migrate.pm, prepare).
"""

from __future__ import annotations

from ...._foundation.cluster.state import ClusterState
from ...._foundation.core.errors import NotSupported
from ...kinds.config.change import DriveChange, Relocation
from ...kinds.model import Actual


def relocate(actual: Actual, change: DriveChange, node: str, cluster: ClusterState) -> Relocation:
    """Return the moves of a guest that migrates to a node.

    A volume moves before the migration if the migration needs that, or if it then needs no copy.
    """
    volumes = dict(actual.kind.volumes_in(actual.target))
    if not actual.running:
        volumes = {slot: name for slot, name in volumes.items() if slot not in change.removed}
    present = {slot: volume.partition(":")[0] for slot, volume in volumes.items()}
    old, new = _storages_on(cluster, actual.node), _storages_on(cluster, node)
    shared = cluster.shared_storages
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    mapped: dict[str, str] = {}
    mapped_slots: set[str] = set()
    stuck: dict[str, str] = {}
    for slot, storage in sorted(present.items()):
        wanted = change.moved.get(slot)
        if wanted in old and (wanted in shared or storage not in new):
            before[slot] = str(wanted)
        elif storage in new:
            if wanted:
                after[slot] = wanted
        elif wanted and storage not in shared:
            mapped_slots.add(slot)
            if mapped.setdefault(storage, wanted) != wanted:
                after[slot] = wanted
        else:
            stuck[slot] = storage
    for slot, storage in list(stuck.items()):
        if slot.startswith("unused") and storage in mapped:
            del stuck[slot]
    left = frozenset(present[slot] for slot in before) | mapped.keys()
    left -= set(stuck.values())
    return Relocation(before, after, mapped, frozenset(mapped_slots), left, stuck)


def _storages_on(cluster: ClusterState, node: str) -> frozenset[str]:
    """Return the storages that a node has."""
    return frozenset(row.storage for row in cluster.storages if row.node == node)


def require_relocatable(
    actual: Actual, relocation: Relocation, node: str, cluster: ClusterState
) -> None:
    """Raise NotSupported for volumes that would have no storage on the new node, and for a map that
    the HA manager would ignore.
    """
    attempted = f"{actual.label} could not be planned to move to node {node}"
    if relocation.stuck:
        missing = [f"{storage} ({slot})" for slot, storage in relocation.stuck.items()]
        raise NotSupported(
            attempted=attempted,
            answer=f"node {node} lacks storage {', '.join(missing)}",
            next_step="Set a storage of the new node for these volumes; a volume on a shared"
            " storage needs a storage of both nodes",
            reason="cannot migrate",
            details={"volumes": dict(relocation.stuck), "node": node},
        )
    rows = [row for row in cluster.guests if row.vmid == actual.vmid]
    if relocation.mapped and any(row.managed for row in rows):
        raise NotSupported(
            attempted=attempted,
            answer="the HA manager migrates it, and ignores other storages of the new node:"
            f" {relocation.storage_map}",
            next_step="Move the volumes to a storage that both nodes have, or remove its HA"
            " resource: pve.fleet.ha_resource",
            reason="cannot migrate",
        )
