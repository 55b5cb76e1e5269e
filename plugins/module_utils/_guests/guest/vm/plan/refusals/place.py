# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refuses a VM if its node lacks storages, bridges, CPUs or a way to move there (pure).

Refused before the first write: PVE itself would notice half way, or at the start of the VM.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ......_foundation.api.settings import ConnectionSettings
from ......_foundation.cluster.find.lookup import volume_owner
from ......_foundation.cluster.placement import require_node, require_storage
from ......_foundation.cluster.site import require_own_storages
from ......_foundation.cluster.state import ClusterState
from ......_foundation.cluster.storages.types import RAW_ONLY
from ......_foundation.core.errors import ConfigurationError, NotSupported, ValidationFailed
from .....kinds.vm.config.changes import ConfigChange


def require_storages(
    change: ConfigChange, node: str, cluster: ClusterState, connection: ConnectionSettings
) -> None:
    """Raise ConfigurationError unless the node has the storages that a change needs."""
    require_node(cluster, node)
    storages = set(change.drives.storages)
    for volume in change.drives.volumes:
        storages.add(_storage_of(volume))
    require_own_storages(connection, storages)
    for storage, content in sorted(change.drives.storages.items()):
        require_storage(cluster, storage, node, content)
    _require_formats(change, cluster)
    for volume, content in sorted(change.drives.volumes.items()):
        is_of_vm = volume_owner(volume) is not None
        if content == "import" and is_of_vm:
            content = "images"  # the disk of a VM, not a file
        if content == "import":
            _require_importable(cluster, volume, node)
        require_storage(cluster, _storage_of(volume), node, content)


def _storage_of(volume: str) -> str:
    storage, _colon, _name = volume.partition(":")
    return storage


def _require_formats(change: ConfigChange, cluster: ClusterState) -> None:
    """Raise NotSupported for a format that a storage does not have."""
    kinds = {row.storage: row.kind for row in cluster.storages}
    for slot, (storage, wanted) in sorted(change.drives.formats.items()):
        kind = kinds.get(storage)
        if wanted == "raw" or kind not in RAW_ONLY:
            continue
        raise NotSupported(
            attempted=f"Disk {slot} could not be planned in format {wanted}",
            answer=f"storage {storage} ({kind}) has disks in format raw only",
            next_step="Leave format out, or choose a storage of files",
            reason="format",
        )


def _require_importable(cluster: ClusterState, volume: str, node: str) -> None:
    """Raise NotSupported, with a workaround, if PVE cannot import from the storage of an image."""
    storage = _storage_of(volume)
    row = cluster.storage_on(storage, node)
    if row is None or not row.available:
        return
    if "import" in row.content:
        return
    raise NotSupported(
        attempted=f"{volume} could not be imported on node {node}",
        answer=(
            f"storage '{storage}' takes {', '.join(sorted(row.content))}, not import, which PVE has"
            " since 8.3"
        ),
        next_step=(
            "Put the image on a storage with content import, or make a template of it once and"
            " clone that"
        ),
        reason="storage content",
    )


def require_cpus(label: str, config: Mapping[str, str], node: str, cluster: ClusterState) -> None:
    """Raise ConfigurationError for more CPUs than the node has, ValidationFailed for more `vcpus`
    than CPUs, or for hugepages without NUMA.

    Such a VM does not start (qemu-server: config_to_command).
    """
    cores = int(config.get("cores") or 1)
    sockets = int(config.get("sockets") or 1)
    wanted = cores * sockets
    in_use = int(config.get("vcpus") or 0)
    if in_use > wanted:
        raise ValidationFailed(
            attempted=f"{label} could not be planned to run",
            answer=f"it would have {wanted} CPUs, and vcpus is {in_use}",
            next_step="Give it more cores or sockets, or fewer vcpus",
            reason="too many vcpus",
        )
    has_numa = config.get("numa") == "1"
    if config.get("hugepages") and not has_numa:  # Memory.pm, config
        raise ValidationFailed(
            attempted=f"{label} could not be planned to run",
            answer="numa needs to be enabled to use hugepages",
            next_step="Set numa=true, or leave hugepages out",
            reason="hugepages",
        )
    row = cluster.nodes.get(node)
    if row is None or row.cores <= 0:
        return
    if row.cores < wanted:
        raise ConfigurationError(
            attempted=f"{label} could not be planned to run on node {node}",
            answer=f"it would have {wanted} CPUs, and a VM on that node can have {row.cores}",
            next_step="Give it fewer cores or sockets, or choose a larger node",
            reason="too many CPUs",
        )


def require_snippet_storages(volumes: Collection[str], node: str, cluster: ClusterState) -> None:
    """Raise ConfigurationError for a snippet on a storage that the node cannot use for snippets."""
    known = {row.storage for row in cluster.storages}
    for volume in sorted(volumes):
        storage = _storage_of(volume)
        if storage in known:
            require_storage(cluster, storage, node, "snippets")
