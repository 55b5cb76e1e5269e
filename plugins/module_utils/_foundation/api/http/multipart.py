# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The body of an upload: fields, then one file, which is read while it is sent."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import BinaryIO

from ...core.clock import Clock
from ...core.errors import ConfigurationError
from ..request import Upload

_PIECE = 1 << 18  # bytes of the file that are in memory at once


class MultipartBody:
    """A body of type multipart/form-data that is read once, in pieces.

    Proxmox VE accepts fields only before the file (pve-http-server: AnyEvent.pm).
    """

    def __init__(self, fields: Mapping[str, str], upload: Upload, clock: Clock) -> None:
        boundary = secrets.token_hex(16)
        self.content_type = f"multipart/form-data; boundary={boundary}"
        head = [
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in fields.items()
        ]
        head.append(
            f'--{boundary}\r\nContent-Disposition: form-data; name="filename";'
            f' filename="{upload.name}"\r\nContent-Type: application/octet-stream\r\n\r\n'
        )
        self._parts = ["".join(head).encode(), f"\r\n--{boundary}--\r\n".encode()]
        self._file = _open(upload)
        self._size = os.fstat(self._file.fileno()).st_size
        self._remaining = self._size
        self._length = self._size + sum(map(len, self._parts))
        self._upload = upload
        self._clock = clock
        self._began = clock.monotonic()

    def __enter__(self) -> MultipartBody:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[bytes]:
        """Yield the body in pieces."""
        while piece := self.read(_PIECE):
            yield piece

    def read(self, size: int = _PIECE) -> bytes:
        """Return the next bytes of the body, none at its end.

        As many bytes are sent as the file had when it was opened. Raises OSError if it shrank.
        """
        if len(self._parts) == 2:
            return self._parts.pop(0)
        if self._remaining:
            progress = self._upload.progress
            if progress is not None:
                seconds = self._clock.monotonic() - self._began
                progress(self._upload, self._size - self._remaining, self._size, seconds)
            piece = self._file.read(min(max(size, _PIECE), self._remaining))
            if not piece:
                raise OSError("the file became shorter while it was sent")
            self._remaining -= len(piece)
            return piece
        return self._parts.pop(0) if self._parts else b""


def _open(upload: Upload) -> BinaryIO:
    try:
        return open(upload.path, "rb", buffering=_PIECE)
    except OSError as error:
        cause = error.strerror or "it cannot be read"
        raise ConfigurationError(
            f"Could not upload {upload.path}: {cause}", "Check the path and its permissions", "src"
        ) from error
