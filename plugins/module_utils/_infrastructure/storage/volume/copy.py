# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of a volume to another node or name of its storage (pure).

PVE exports the volume and imports it on the other node over SSH. Facts: pve-storage,
API2/Storage/Content.pm (copy), Storage.pm (storage_migrate), and volume_export_formats and
volume_import of the plugins. The method has no permissions, so only root@pam may call it.
"""

from __future__ import annotations

from ...._foundation.api.root import require_root
from ...._foundation.api.settings import ConnectionSettings
from ...._foundation.cluster.state import StorageRow
from ...._foundation.core.errors import NotFound, NotSupported
from ...._foundation.resource.plan import Step
from .desired import DesiredVolume

COPY = "copy"

_TYPES = ("btrfs", "dir", "lvm", "lvmthin", "zfspool")
_CONVERTED = (".qcow2", ".vmdk")  # PVE sends them as raw data


def copy_step(volume: DesiredVolume) -> Step:
    """Return the step that copies the source. Raises NotFound if the source does not exist."""
    file = volume.file
    if volume.size is None:
        raise NotFound(
            attempted=f"{volume.volid} was not copied",
            answer=f"node {volume.source_node} does not have {volume.source}",
            next_step="Check source_volume and source_node",
            reason="unknown volume",
        )
    path = ("nodes", volume.source_node, "storage", file.storage, "content", volume.source)
    summary = (
        f"Copy {volume.source} of node {volume.source_node} to {volume.volid} on node {file.node}"
    )
    return Step(COPY, summary, "POST", path, {"target": volume.volid, "target_node": file.node})


def require_copy(
    volume: DesiredVolume, place: StorageRow | None, connection: ConnectionSettings
) -> None:
    """Raise PermissionDenied for a caller other than root@pam, and NotSupported for a volume that
    PVE cannot copy unchanged.
    """
    cause = {"source_volume": "only root@pam can copy a volume"}
    attempted = f"{volume.volid} was not copied"
    require_root(connection.login, attempted, "upload the file to the other node instead", cause)
    why = _find_obstacle(volume, place)
    if why:
        raise NotSupported(
            attempted=attempted,
            answer=why,
            next_step="Upload or download the volume on the other node instead",
            reason="source_volume",
            dispatched=False,
        )


def _find_obstacle(volume: DesiredVolume, place: StorageRow | None) -> str | None:
    """Return the reason why PVE cannot copy the volume unchanged, or None if it can."""
    if place is None:
        return None
    storage, content = volume.file.storage, volume.file.content
    if place.shared:
        return f"storage '{storage}' is shared, and Proxmox VE copies nothing there"
    if place.kind not in _TYPES:
        return f"Proxmox VE does not copy volumes of a storage of type {place.kind}"
    if content == "backup":
        return "Proxmox VE does not copy backups"
    if volume.source.endswith(_CONVERTED):
        if content == "images":
            return "Proxmox VE copies raw disks and directories of containers only"
        if content == "import":
            return "Proxmox VE would convert the image to raw, and keep the extension of its name"
    return None
