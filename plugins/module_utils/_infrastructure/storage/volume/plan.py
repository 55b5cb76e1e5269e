# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan that brings a volume to its desired state, and its result (pure).

A copy is exported and imported on the other node over SSH (pve-storage, API2/Storage/Content.pm,
copy; Storage.pm, storage_migrate; volume_export_formats and volume_import of the plugins). The
method has no permissions, so only root@pam may call it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ...._foundation.api.root import require_root
from ...._foundation.api.settings import ConnectionSettings
from ...._foundation.cluster.find.lookup import volume_owner
from ...._foundation.cluster.state import StorageRow
from ...._foundation.cluster.storages.types import DISK_NAMES, FORMATS, PBS_BACKUP, READ_ONLY
from ...._foundation.core import validate
from ...._foundation.core.arguments.options import did_you_mean
from ...._foundation.core.errors import Conflict, NotFound, NotSupported, QuotaExceeded
from ...._foundation.core.quantities import readable_sizes
from ...._foundation.resource.plan import Plan, Step
from ..download import plan_present
from .desired import DesiredVolume

UPLOAD, ALLOCATE, COPY = "upload", "allocate", "copy"
DESCRIBE, DELETE = "describe", "delete"
PULL, FETCH = "pull an image", "fetch a template"
_IMAGES_SINCE = (9, 1)
_EXTENSIONS = ("raw", "qcow2", "vmdk", "subvol")
_PARTS = re.compile(r"\d+|\D+")
_COPIED_TYPES = ("btrfs", "dir", "lvm", "lvmthin", "zfspool")
_CONVERTED = (".qcow2", ".vmdk")  # a copy of these has raw data
Row = Mapping[str, Any]
"""A volume in PVE's listing."""


def plan_volume(volume: DesiredVolume, found: Row | None) -> Plan:
    """Return the steps that the volume needs. Raises Conflict and NotFound."""
    if not volume.present:
        return _plan_delete(volume, found)
    if found is None:
        return _plan_new(volume)
    if volume.src and (volume.force or found.get("size") != volume.size):
        before = {"volid": volume.volid, "size": found.get("size")}
        return Plan((_upload(volume),), before, _uploaded(volume))
    if volume.size is not None and not volume.src and found.get("size") != volume.size:
        present, wanted = readable_sizes(int(found.get("size") or 0), volume.size)
        step = "Grow the disk of the guest instead"
        if volume.source:
            step = "Wait for a copy that still runs, or delete the volume first with state=absent"
        raise Conflict(
            f"{volume.volid} was not changed: it has {present}, not {wanted}", step, "size"
        )
    return _plan_attributes(volume, found)


def _plan_new(volume: DesiredVolume) -> Plan:
    if volume.src:
        return Plan((_upload(volume),), {}, _uploaded(volume))
    if volume.source:
        return Plan((copy_step(volume),), {}, _uploaded(volume))
    if volume.size is not None:
        data: dict[str, Any] = {
            "filename": volume.name.rpartition("/")[2],
            "vmid": volume.vmid,
            "size": f"{volume.size >> 20}M",
        }
        if volume.format:
            data["format"] = volume.format
        summary = f"Allocate {volume.volid} on node {volume.file.node}"
        step = Step(ALLOCATE, summary, "POST", _content(volume), data, is_task=False)
        return Plan((step,), {}, _uploaded(volume))
    if volume.image or volume.template:
        return Plan((_fetch(volume),), {}, _uploaded(volume))
    if volume.file.url:
        return plan_present(volume.file, None)
    raise NotFound(
        f"{volume.volid} was not found on node {volume.file.node}: there is no such volume, and "
        "the task does not say where it comes from",
        "Set src, source_url, source_volume or size, or check the name",
        "unknown volume",
    )


def _content(volume: DesiredVolume) -> tuple[str | int, ...]:
    return ("nodes", str(volume.file.node), "storage", volume.file.storage, "content")


def _upload(volume: DesiredVolume) -> Step:
    file = volume.file
    data: dict[str, Any] = {"content": file.content}
    if file.checksum:  # Proxmox VE accepts the fields of an upload only in this order
        data["checksum-algorithm"] = file.algorithm
        data["checksum"] = file.checksum
    path = ("nodes", str(file.node), "storage", file.storage, "upload")
    summary = f"Upload {volume.src} to {volume.volid} on node {file.node}"
    return Step(UPLOAD, summary, "POST", path, data)


def _fetch(volume: DesiredVolume) -> Step:
    file = volume.file
    node = ("nodes", str(file.node))
    if volume.template:
        data = {"storage": file.storage, "template": volume.template}
        summary = f"Download template {volume.template} to {volume.volid} on node {file.node}"
        return Step(FETCH, summary, "POST", (*node, "aplinfo"), data)
    data = {"reference": volume.image, "filename": file.name.removesuffix(".tar")}
    summary = f"Pull image {volume.image} to {volume.volid} on node {file.node}"
    path = (*node, "storage", file.storage, "oci-registry-pull")
    return Step(PULL, summary, "POST", path, data)


def require_images(volume: DesiredVolume, version: tuple[int, int]) -> None:
    """Raise NotSupported if PVE does not pull images from registries."""
    if volume.image and version < _IMAGES_SINCE:
        raise NotSupported(
            f"{volume.image} was not pulled: PVE {version[0]}.{version[1]} does not pull OCI "
            "images, this came with 9.1",
            "Use a template or an archive of the container",
            "image",
        )


def find_template(rows: Iterable[Row], name: str) -> str:
    """Return the file name of an appliance; for a package, the file name of its newest version.

    Raises NotFound.
    """
    known = {str(row["template"]): str(row.get("package")) for row in rows}
    if name in known:
        return name
    versions = [template for template, package in known.items() if package == name]
    if versions:
        return max(versions, key=_version)
    names = ", ".join(sorted(known)) or "none"
    raise NotFound(
        f"Template {name} was not downloaded: the node knows "
        f"{names}{did_you_mean(name, {*known, *known.values()})}",
        "Name one of them or its package, or update the list: pveam update on the node",
        "unknown template",
    )


def _version(text: str) -> list[tuple[int, str]]:
    """Return the parts of a version for a comparison, numbers by their value."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in _PARTS.findall(text)]


def _uploaded(volume: DesiredVolume) -> dict[str, Any]:
    return {"volid": volume.volid, "size": volume.size}


def _plan_attributes(volume: DesiredVolume, found: Row) -> Plan:
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    data: dict[str, Any] = {}
    notes, protected = _attributes(found)
    if volume.notes is not None and volume.notes.rstrip("\n") != notes:
        before["notes"], after["notes"] = notes, volume.notes
        data["notes"] = volume.notes
    if volume.protected is not None and volume.protected != protected:
        before["protected"], after["protected"] = protected, volume.protected
        data["protected"] = int(volume.protected)
    if not data:
        return Plan()
    summary = f"Set {', '.join(after)} of {volume.volid}"
    path = (*_content(volume), volume.volid)
    return Plan((Step(DESCRIBE, summary, "PUT", path, data, is_task=False),), before, after)


def _attributes(found: Row) -> tuple[str, bool]:
    """Return the notes and the protection of a volume."""
    return str(found.get("notes") or "").rstrip("\n"), bool(int(found.get("protected") or 0))


def _plan_delete(volume: DesiredVolume, found: Row | None) -> Plan:
    if found is None:
        return Plan()
    if _attributes(found)[1]:
        raise Conflict(
            f"{volume.volid} was not deleted: it is protected",
            "Set protected=false first, in a task with state=present",
            "protected",
        )
    path = (*_content(volume), volume.volid)
    step = Step(DELETE, f"Delete {volume.volid} from node {volume.file.node}", "DELETE", path)
    return Plan((step,), {"volid": volume.volid, "size": found.get("size")}, {})


def require_disk_name(volume: DesiredVolume, kind: str, *, chains: bool = False) -> None:
    """Raise ValidationFailed for a volume whose name the type of its storage does not have, and for
    a new disk whose name or format PVE refuses or replaces.

    `chains`: snapshots of a disk on this LVM are volumes, and new disks are qcow2 by default.
    """
    content, form = volume.file.content, ""
    why = None
    if kind == "pbs" and not (content == "backup" and PBS_BACKUP.fullmatch(volume.name)):
        why, form = "is not a name of a backup on a backup server", "backup/vm/VMID/TIME"
    elif content == "images" and kind == "cephfs":
        why = f"is a disk, which storages of type {kind} do not have"
    elif content == "images" and kind in DISK_NAMES:
        why, form = _find_wrong_disk(volume, kind, chains), DISK_NAMES[kind][1]
    if why is None:
        return
    step = f"Name it {volume.file.storage}:{form}" if form else "Name another storage"
    raise validate.refused("volume", volume.volid, why, step)


def _find_wrong_disk(volume: DesiredVolume, kind: str, chains: bool) -> str | None:
    """Return why a storage of this type does not have the disk, or cannot create or delete it."""
    pattern, _form = DISK_NAMES[kind]
    if not pattern.fullmatch(volume.name):
        return f"is not a name that storages of type {kind} give to disks"
    if kind in READ_ONLY and (volume.is_new_disk or not volume.present):
        return f"is on a storage of type {kind}, which neither creates nor deletes disks"
    return _find_wrong_name(volume, kind, chains) if volume.is_new_disk else None


def _find_wrong_name(volume: DesiredVolume, kind: str, chains: bool) -> str | None:
    """Return why PVE does not create a disk of this name, or None (alloc_image of the plugins)."""
    if volume_owner(volume.volid) != volume.vmid:
        return f"does not belong to guest {volume.vmid}"
    default = "qcow2" if chains else "raw"
    extension = volume.name.rpartition(".")[2]
    named = extension if extension in _EXTENSIONS else None
    if volume.format and named not in (None, volume.format):
        return f"is not the name of a disk of format {volume.format}"
    found = named or volume.format or default
    allowed = ("raw", "qcow2") if chains else FORMATS[kind]
    if found not in allowed:
        return f"has format {found}, which storages of type {kind} do not have"
    if chains and found == "qcow2" and extension != "qcow2":
        return "needs the ending .qcow2, or format=raw: new disks of the storage are qcow2"
    prefix = f"subvol-{volume.vmid}-" if found == "subvol" else f"vm-{volume.vmid}-"
    if "/" not in volume.name and not volume.name.startswith(prefix):
        return f"does not begin with {prefix}"
    return None


def require_space(volume: DesiredVolume, free: int | None) -> None:
    """Raise QuotaExceeded if the storage has fewer free bytes than the volume needs."""
    if free is None or volume.size is None or volume.size <= free:
        return
    needed_text, free_text = readable_sizes(volume.size, free)
    raise QuotaExceeded(
        f"{volume.volid} was not created: it needs {needed_text}, and {free_text} are free",
        "Free space on the storage, or choose another one",
        "storage full",
    )


def describe(volume: DesiredVolume, found: Row | None) -> dict[str, Any]:
    """Return a volume as the modules report it."""
    known = found or {"volid": volume.volid, "content": volume.file.content, "size": volume.size}
    return {"storage": volume.file.storage, "node": volume.file.node, **describe_row(known)}


def describe_row(row: Row) -> dict[str, Any]:
    """Return the properties of a volume in PVE's listing."""
    notes, protected = _attributes(row)
    return {
        "volid": row["volid"],
        "content": row.get("content"),
        "format": row.get("format"),
        "size": row.get("size"),
        "ctime": row.get("ctime"),
        "vmid": row.get("vmid"),
        "notes": notes,
        "protected": protected,
    }


def copy_step(volume: DesiredVolume) -> Step:
    """Return the step that copies the source. Raises NotFound if the source does not exist."""
    file = volume.file
    if volume.size is None:
        raise NotFound(
            f"{volume.volid} was not copied: node {volume.source_node} does not have "
            f"{volume.source}",
            "Check source_volume and source_node",
            "unknown volume",
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
            f"{attempted}: {why}",
            "Upload or download the volume on the other node instead",
            "source_volume",
        )


def _find_obstacle(volume: DesiredVolume, place: StorageRow | None) -> str | None:
    """Return the reason why PVE cannot copy the volume unchanged, or None if it can."""
    if place is None:
        return None
    storage, content = volume.file.storage, volume.file.content
    if place.shared:
        return f"storage '{storage}' is shared, and Proxmox VE copies nothing there"
    if place.kind not in _COPIED_TYPES:
        return f"Proxmox VE does not copy volumes of a storage of type {place.kind}"
    if content == "backup":
        return "Proxmox VE does not copy backups"
    if volume.source.endswith(_CONVERTED):
        if content == "images":
            return "Proxmox VE copies raw disks and directories of containers only"
        if content == "import":
            return "Proxmox VE would convert the image to raw, and keep the extension of its name"
    return None
