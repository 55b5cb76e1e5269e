"""Uploads: a body of several parts, read as it comes.

Source of the rules: pve-http-server, AnyEvent.pm, file_upload_multipart. Fields are taken in the
order content, checksum-algorithm, checksum, filename; the file ends at the closing delimiter.
"""

from __future__ import annotations

import re
from typing import Any

from ..core.contents import Received
from .forms import SOURCE, RawError, Unanswered

_FIELDS = ("content", "checksum-algorithm", "checksum")
# More than this unread before the file itself closes the connection (rbuf_max).
MOST_UNREAD = (512 + 64) * 1024


def boundary_of(content_type: str) -> str | None:
    """The boundary of a form with files; None for other types (parse_content_type).

    Quotes around it belong to it there.
    """
    kind, *options = re.split(r"\s*[;,]\s*", content_type)
    if kind != "multipart/form-data":
        return None
    for option in options:
        found = re.fullmatch(r"\s*boundary\s*=\s*(\S+?)\s*", option)
        if found:
            return found[1]
    return None


class Upload:
    """The fields of an upload and its file."""

    def __init__(self, boundary: str) -> None:
        self.fields: dict[str, str] = {}
        self.file = Received()
        self.complete = False
        self._open = False
        self._unread = b""
        mark = re.escape(b"--" + boundary.encode())
        self._kept = len(boundary) + 8
        self._delimiter = re.compile(mark + rb"\r?\n")
        self._end = b"--" + boundary.encode() + b"--"
        self._parts = {
            name: re.compile(
                mark
                + rb"\r?\n.*?Content-Disposition: (.*?); name=\""
                + name.encode()
                + rb"\".*?\r?\n\r?\n(.*?)(?="
                + mark
                + rb"\r?\n)",
                re.DOTALL,
            )
            for name in _FIELDS
        }
        self._file_head = re.compile(
            mark
            + rb"\r?\nContent-Disposition: (.*?); name=\"(.*?)\"; filename=\"([^\"]+)\""
            + rb".*?\r?\n\r?\n",
            re.DOTALL,
        )

    def add(self, data: bytes) -> None:
        """Take the next piece of the body. Raises RawError and Unanswered."""
        if self.complete:
            return
        self._unread += data
        if not self._open:
            self._read_fields()
        if self._open:
            self._read_file()
        elif len(self._unread) > MOST_UNREAD:
            raise Unanswered

    def end(self) -> dict[str, Any]:
        """The parameters, when the body has been read as a whole."""
        if not self.complete:
            raise _refused(f"upload failed at {SOURCE} line 1370.\n")
        return {**self.fields, "tmpfilename": self.file}

    def _read_fields(self) -> None:
        start = self._delimiter.search(self._unread)
        if start is None:
            return
        self._unread = self._unread[start.start() :]
        for name, part in self._parts.items():
            found = part.match(self._unread)
            if found is not None:
                _check_disposition(found[1])
                self.fields[name] = found[2].decode("utf-8", "replace").strip()
                self._unread = self._unread[found.end() :]
        found = self._file_head.match(self._unread)
        if found is None:
            return
        _check_disposition(found[1])
        field, name = (part.decode("utf-8", "replace") for part in (found[2], found[3]))
        if field != "filename":
            raise _refused(
                f"wrong field name '{field}' for file upload, expected 'filename' at {SOURCE} line"
                " 1326.\n"
            )
        self.fields["filename"] = name.strip()
        self._unread = self._unread[found.end() :]
        self._open = True

    def _read_file(self) -> None:
        # A regular expression takes most of the time of an upload.
        end = self._unread.find(self._end)
        if end >= 0:
            data = self._unread[:end]
            if data.endswith(b"\n"):  # it belongs to the delimiter
                data = data.removesuffix(b"\n").removesuffix(b"\r")
            self._store(data)
            self._unread = b""
            self.complete = True
        elif len(self._unread) > self._kept:
            self._store(self._unread[: -self._kept])
            self._unread = self._unread[-self._kept :]

    def _store(self, data: bytes) -> None:
        try:
            self.file.add(data)
        except OSError as error:
            raise _refused(f"write to temporary file failed - {error.strerror}\n") from None


def _check_disposition(found: bytes) -> None:
    text = found.decode("utf-8", "replace")
    if text != "form-data":
        raise _refused(f"wrong Content-Disposition '{text}' in multipart, expected 'form-data'\n")


def _refused(text: str) -> RawError:
    """The refusal; with a carriage return in its first line it is a 400 (AnyEvent.pm, response)."""
    if "\r" in text.split("\n", 1)[0]:
        return RawError(400, "Bad Request", empty=True)
    return RawError(500, text)
