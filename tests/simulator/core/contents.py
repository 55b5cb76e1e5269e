"""The contents of files on storages: their size, how they begin, and their checksums."""

from __future__ import annotations

import bz2
import hashlib
import tempfile
import zlib
from collections.abc import Mapping
from typing import Protocol

SUMS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")
# Enough to recognize an image and to read its virtual size.
_HEAD = 64
_PIECE = 1 << 20
_ZEROS = bytes(_PIECE)
QCOW2 = b"QFI\xfb"
_MAGIC = {"zst": b"\x28\xb5\x2f\xfd", "lzo": b"\x89LZO"}


class Contents(Protocol):
    """A file's contents, which need not be in memory."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def head(self) -> bytes:
        """The first bytes."""

    def digest(self, algorithm: str) -> str:
        """The checksum in lower case hexadecimal."""


class Received:
    """A file that comes in pieces. It is in a temporary file until its checksums are calculated,
    and after that its checksums are all that is kept.
    """

    def __init__(self, data: bytes = b"") -> None:
        self.size = 0
        self.head = b""
        self._sums: dict[str, str] = {}
        self._file = tempfile.SpooledTemporaryFile(_PIECE)  # noqa: SIM115 - seal() closes it
        self.add(data)

    def add(self, data: bytes) -> None:
        """Take the next piece. Raises OSError."""
        if len(self.head) < _HEAD:
            self.head = (self.head + data)[:_HEAD]
        self.size += len(data)
        self._file.write(data)

    def decompressed(self, compression: str) -> Received:
        """The file without its compression. Raises ValueError for a file of another form.

        Files of zstd and lzop are only recognized: Python 3.11 cannot decompress them.
        """
        result = Received()
        self._file.seek(0)
        if compression in _MAGIC:
            if not self.head.startswith(_MAGIC[compression]):
                raise ValueError(compression)
            return self
        tool = bz2.BZ2Decompressor() if compression == "bz2" else zlib.decompressobj(31)
        try:
            while data := self._file.read(_PIECE):
                result.add(tool.decompress(data))
        except (OSError, zlib.error) as error:
            raise ValueError(compression) from error
        if not tool.eof:
            raise ValueError(compression)
        return result

    def seal(self) -> None:
        """Calculate the checksums, and let the bytes go."""
        if self._sums:
            return
        hashes = [hashlib.new(name, usedforsecurity=False) for name in SUMS]
        with self._file as file:
            file.seek(0)
            while data := file.read(_PIECE):
                for one in hashes:
                    one.update(data)
        self._sums = {name: one.hexdigest() for name, one in zip(SUMS, hashes, strict=True)}

    def digest(self, algorithm: str) -> str:
        """The checksum of all pieces."""
        self.seal()
        return self._sums[algorithm]


class Described:
    """A file of a cluster file: its data, then zeros up to its size.

    Checksums in the description belong to the whole file that it represents.
    """

    def __init__(self, size: int, data: bytes = b"", sums: Mapping[str, str] | None = None) -> None:
        self.size = size
        self.head = data[:_HEAD]
        self._data = data[:size]
        self._sums = dict(sums or {})

    def digest(self, algorithm: str) -> str:
        """The checksum; it is calculated once."""
        if algorithm not in self._sums:
            found = hashlib.new(algorithm, self._data, usedforsecurity=False)
            left = self.size - len(self._data)
            for _dummy in range(left // len(_ZEROS)):
                found.update(_ZEROS)
            found.update(_ZEROS[: left % len(_ZEROS)])
            self._sums[algorithm] = found.hexdigest()
        return self._sums[algorithm]


def virtual_size(contents: Contents, fmt: str) -> int | None:
    """The size that a qcow2 image says the disk has."""
    head = contents.head
    if fmt == "qcow2" and head[:4] == QCOW2 and len(head) >= 32:
        return int.from_bytes(head[24:32], "big")
    return None
