# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The desired volume of a task, from its options (pure, except for reading a local file)."""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

from ...._foundation.core import validate
from ...._foundation.core.errors import ConfigurationError, ValidationFailed
from ...._foundation.core.quantities import parse_disk_size
from ..desired import DesiredFile, name_of_path, read_desired_file

_FILES = ("backup", "import", "iso", "snippets", "vztmpl")
_IMAGE_NAME = re.compile(r"(?:\d+/)?(?:vm|subvol|base)-(\d+)-[-\w.]+")
_REFERENCE = re.compile(r"[a-zA-Z\d][\w.:/-]*:\w[\w.-]{0,127}")
_PIECE = 1 << 20
SNIPPETS = "snippets"

_SNIPPET_OPTIONS = ("text", "snippet_directory", "ssh")
_SNIPPET_NAME = re.compile(r"[A-Za-z0-9_][^/\x00-\x1f]{0,254}")


@dataclass(frozen=True)
class DesiredVolume:
    """The desired volume of a task.

    `size` is the size of the local file `src`, of the copied volume `source`, or of a new disk of
    guest `vmid`, in bytes. Notes and protection are not changed if they are None.
    """

    file: DesiredFile
    present: bool = True
    src: str = ""
    source: str = ""  # the volume ID of the volume that is copied from node `source_node`
    source_node: str = ""
    image: str = ""
    template: str = ""
    size: int | None = None
    vmid: int | None = None
    format: str | None = None
    notes: str | None = None
    protected: bool | None = None
    data: bytes | None = field(default=None, repr=False)  # the content of a snippet
    force: bool = False

    @property
    def volid(self) -> str:
        return self.file.volume

    @property
    def is_new_disk(self) -> bool:
        """Whether the task allocates a disk, unless it exists."""
        return self.present and self.size is not None and not (self.src or self.source)

    @property
    def name(self) -> str:
        """The volume ID without its storage."""
        return self.volid.partition(":")[2]


def read_desired_volume(params: Mapping[str, Any]) -> DesiredVolume:
    """Return the volume that the options describe. Raises ValidationFailed."""
    file = _file_of(params)
    text = params.get("text")
    volume = DesiredVolume(
        file,
        present=params.get("state") != "absent",
        src=params.get("src") or "",
        source=params.get("source_volume") or "",
        source_node=params.get("source_node") or params.get("node") or "",
        image=params.get("image") or "",
        template=str(params.get("template") or "").strip(),
        vmid=params.get("vmid"),
        format=params.get("format"),
        notes=params.get("notes"),
        protected=params.get("protected"),
        data=None if text is None else text.encode(),
        force=bool(params.get("force")),
    )
    require_snippet_options(params, file)
    if volume.source:
        _require_copy(volume)
    if params.get("size"):
        name = _IMAGE_NAME.fullmatch(volume.name)
        if volume.vmid is None or name is None or int(name.group(1)) != volume.vmid:
            raise validate.refused(
                "volume",
                volume.volid,
                "is not the name of a disk of that guest",
                "Set vmid, and name it STORAGE:vm-VMID-NAME",
            )
        return replace(volume, size=parse_disk_size(params["size"]))
    if (volume.notes is not None or volume.protected is not None) and file.content != "backup":
        raise ValidationFailed(
            f"{volume.volid} was refused: only backups have notes and protection",
            "Leave out notes and protected",
            "notes",
        )
    return volume


def _file_of(params: Mapping[str, Any]) -> DesiredFile:
    """Return the file of the volume: by its ID, or by the name that follows from its source."""
    src = params.get("src") or ""
    if params.get("volume") or params.get("source_volume"):
        return _file_of_volume(params)
    if params.get("image"):
        return _file_of_image(params)
    if params.get("template"):
        template = str(params["template"]).strip()
        if ".tar" not in template and params.get("state") != "absent":
            template = f"{template}.tar.zst"  # a package, whose newest version is looked up
        return read_desired_file({**params, "filename": template, "content": "vztmpl"})
    content = params.get("content")
    if content is None and params.get("text") is not None:
        content = SNIPPETS
    name = params.get("filename") or (name_of_path(src, content) if src else None)
    return read_desired_file({**params, "filename": name, "content": content})


def _file_of_volume(params: Mapping[str, Any]) -> DesiredFile:
    volid = validate.volume(params.get("volume") or params["source_volume"])
    storage, _colon, name = volid.partition(":")
    if params.get("storage") not in (None, storage):
        raise validate.refused(
            "storage", params["storage"], f"is not the storage of {volid}", "Leave out storage"
        )
    _storage, content = split_content(volid)
    if content != "images":
        name = name.removeprefix(f"{content}/")
    return DesiredFile(storage=storage, content=content, name=name, node=params.get("node") or None)


def _require_copy(volume: DesiredVolume) -> None:
    """Raise ValidationFailed for a copy to the source itself, or to another storage or content."""
    source = validate.volume(volume.source, "source_volume")
    own, kind = split_content(volume.volid), split_content(source)
    validate.node(volume.source_node, "source_node")
    if own != kind:
        raise validate.refused(
            "source_volume",
            source,
            f"is not of storage {own[0]} and content {own[1]}",
            "Proxmox VE copies a volume to a volume of the same storage and content only",
        )
    if (source, volume.source_node) == (volume.volid, volume.file.node):
        raise validate.refused(
            "source_volume",
            source,
            "is the volume itself",
            "Set source_node, or another name in volume",
        )


def split_content(volid: str) -> tuple[str, str]:
    """Return the storage and the content of a volume ID. A disk has no content in its name."""
    storage, _colon, name = volid.partition(":")
    content, slash, _rest = name.partition("/")
    return storage, content if slash and content in _FILES else "images"


def _file_of_image(params: Mapping[str, Any]) -> DesiredFile:
    reference = str(params["image"]).strip()
    if not _REFERENCE.fullmatch(reference):
        raise validate.refused(
            "image",
            reference,
            "is not a reference with a tag",
            "Write it as registry.example.com/library/nginx:1.29",
        )
    # PVE adds the ending, and names the file after the last part of the reference.
    name = params.get("filename") or name_of_path(reference, None)
    name = f"{name.removesuffix('.tar')}.tar"
    return read_desired_file({**params, "filename": name, "content": "vztmpl"})


def with_local_file(volume: DesiredVolume) -> DesiredVolume:
    """Return the volume with the size of its local file, and with the content if it is a snippet.

    Verifies the checksum. Raises ConfigurationError for a file that cannot be read, and
    ValidationFailed for a different checksum.
    """
    if not volume.present:
        return volume
    if volume.data is not None:
        _require_checksum(io.BytesIO(volume.data), volume.file, f"{volume.volid} was not written")
    if not volume.src:
        return volume
    path = os.path.abspath(os.path.expanduser(volume.src))
    attempted = f"{path} was not uploaded"
    try:
        if not os.path.isfile(path):
            kind = "a directory" if os.path.isdir(path) else "not a file"
            answer = f"it is {kind}" if os.path.exists(path) else "there is no such file"
            raise ConfigurationError(
                f"{attempted}: {answer}",
                "Set src to a file on the machine that runs the task",
                "src",
            )
        size, data = os.path.getsize(path), volume.data
        with open(path, "rb") as stream:
            _require_checksum(stream, volume.file, attempted)
            if volume.file.content == SNIPPETS:
                stream.seek(0)
                data = stream.read()
    except OSError as error:
        cause = error.strerror or "it cannot be read"
        raise ConfigurationError(
            f"{attempted}: {cause}", "Check the permissions of src", "src"
        ) from error
    return replace(volume, src=path, size=size, data=data)


def _require_checksum(stream: BinaryIO, file: DesiredFile, attempted: str) -> None:
    if not file.checksum:
        return
    digest = hashlib.new(str(file.algorithm), usedforsecurity=False)
    while piece := stream.read(_PIECE):
        digest.update(piece)
    if digest.hexdigest() != file.checksum:
        raise ValidationFailed(
            f"{attempted}: its {file.algorithm} is {digest.hexdigest()}, not {file.checksum}",
            "Get the file again, or check checksum",
            "checksum",
        )


def require_snippet_options(params: Mapping[str, Any], file: DesiredFile) -> None:
    """Raise ValidationFailed for snippet options with other content, and for a snippet that the
    options do not allow to write.
    """
    given = [option for option in _SNIPPET_OPTIONS if params.get(option) is not None]
    if file.content != SNIPPETS:
        if given:
            raise validate.refused(
                given[0],
                file.volume,
                "is not a snippet",
                f"Leave out {given[0]}, or set content=snippets",
            )
        return
    if params.get("state") == "absent":
        return
    if params.get("source_url"):
        raise validate.refused(
            "source_url",
            file.volume,
            "is a snippet, and no node downloads snippets",
            "Download the file, and set src",
        )
    if params.get("text") is None and not params.get("src"):
        return
    if not _SNIPPET_NAME.fullmatch(file.name):
        raise validate.refused(
            "filename", file.name, "is not the name of a snippet", "Use a name without a path"
        )
    if not params.get("snippet_directory") and params.get("ssh") is None:
        raise ValidationFailed(
            f"{file.volume} was not written: the API of Proxmox VE does not take snippets",
            "Set snippet_directory, or ssh to write the file on the node",
            "snippet_directory",
        )
