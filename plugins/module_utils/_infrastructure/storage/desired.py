# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The desired file of a download, from its options: name, kind of content, checksum (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from ..._foundation.core import validate

# The names that PVE accepts for each kind of content (pve-storage: PVE::Storage, Plugin.pm).
ENDINGS = {
    "iso": re.compile(r"\.(?:iso|img)\Z", re.IGNORECASE),
    "import": re.compile(r"\.(?:qcow2|raw|vmdk|ova)\Z", re.IGNORECASE),
    "vztmpl": re.compile(r"\.tar(?:\.(?:gz|xz|zst|bz2))?\Z", re.IGNORECASE),
}
_ENDING_TEXTS = {
    "iso": ".iso or .img",
    "import": ".qcow2, .raw, .vmdk or .ova",
    "vztmpl": ".tar.gz, .tar.xz, .tar.zst",
}
# PVE replaces every other character with an underscore.
_NAME = re.compile(r"^[A-Za-z0-9_][-A-Za-z0-9_.]{0,254}\Z")
_COMPRESSED = re.compile(r"\.(?:bz2|gz|lzo|zst)\Z", re.IGNORECASE)
_URL = re.compile(r"^https?://[^/\s]+/\S+\Z")
_DIGITS = {"md5": 32, "sha1": 40, "sha224": 56, "sha256": 64, "sha384": 96, "sha512": 128}


@dataclass(frozen=True)
class DesiredFile:
    """One desired file on a storage."""

    storage: str
    content: str
    name: str
    node: str | None = None
    url: str | None = None
    checksum: str | None = None
    algorithm: str | None = None
    compression: str | None = None
    verify: bool = True

    @property
    def volume(self) -> str:
        """The volume ID: C(STORAGE:CONTENT/NAME) of a file, C(STORAGE:NAME) of a disk."""
        if self.content == "images":
            return f"{self.storage}:{self.name}"
        return f"{self.storage}:{self.content}/{self.name}"

    @property
    def formatted_url(self) -> str | None:
        """The URL without possible secrets: a password, or a signature in the query."""
        if not self.url:
            return None
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, host, parts.path, "", ""))


def read_desired_file(params: Mapping[str, Any]) -> DesiredFile:
    """Return the file that the options describe. Raises ValidationFailed."""
    url = params.get("source_url") or None
    compression = params.get("compression") or None
    content = params.get("content")
    if url and not _URL.match(url):
        step = "Give one that starts with https:// or http://"
        raise validate.refused("source_url", url, "is not the URL of a file", step)
    name = params.get("filename")
    if url and not name:
        name = _name_of(url, content, compression)
    if not name:
        step = "Give source_url or filename"
        raise validate.refused("filename", name, "does not say which file is meant", step)
    if not _NAME.match(name):
        step = "Use letters, digits, . _ and -, without a path"
        raise validate.refused("filename", name, "is not a file name that PVE accepts", step)
    if not content:
        content = next((kind for kind, ending in ENDINGS.items() if ending.search(name)), None)
    if content is None:
        step = "Set content, and use an ending for it"
        raise validate.refused("filename", name, "does not show its content", step)
    if content in ENDINGS and not ENDINGS[content].search(name):
        step = f"Give one that ends in {_ENDING_TEXTS[content]}"
        raise validate.refused("filename", name, f"is not a name for content {content}", step)
    if compression and content != "iso":
        step = "Leave out compression, and give the URL of a file that is not compressed"
        why = f"is not possible for content {content}: PVE decompresses ISOs only"
        raise validate.refused("compression", compression, why, step)
    checksum, algorithm = _checksum(params.get("checksum"), params.get("checksum_algorithm"))
    node = params.get("node") or None
    if node:
        validate.node(node)
    return DesiredFile(
        storage=validate.storage(params["storage"]),
        content=content,
        name=name,
        node=node,
        url=url,
        checksum=checksum,
        algorithm=algorithm,
        compression=compression,
        verify=params.get("verify_certificates") is not False,
    )


def _name_of(url: str, content: str | None, compression: str | None) -> str:
    """Return the name of the file that a URL points to, without the ending of its compression.

    Cloud images that end in C(.img) are qcow2, and PVE imports them only if they end in C(.qcow2).
    """
    path = urlsplit(url).path
    name = unquote(path.rpartition("/")[2])
    if compression:
        name = _COMPRESSED.sub("", name)
    if content == "import" and name.lower().endswith(".img"):
        name = f"{name[:-4]}.qcow2"
    return re.sub(r"[^-A-Za-z0-9_.]", "_", name)


def name_of_path(path: str, content: str | None) -> str:
    """Return the name that a local file gets on a storage."""
    name = path.rstrip("/").rpartition("/")[2]
    if content == "import" and name.lower().endswith(".img"):
        name = f"{name[:-4]}.qcow2"
    return re.sub(r"[^-A-Za-z0-9_.]", "_", name)


def _checksum(text: str | None, algorithm: str | None) -> tuple[str | None, str | None]:
    """Return the digits and the algorithm of C(sha256:...), or of digits next to the algorithm."""
    if not text:
        return None, None
    prefix, colon, digits = text.strip().lower().partition(":")
    if not colon:
        digits = prefix
        same_length = (name for name, length in _DIGITS.items() if length == len(digits))
        prefix = algorithm or next(same_length, "")
    elif algorithm not in (None, prefix):
        reason = f"contradicts {prefix} in checksum"
        raise validate.refused("checksum_algorithm", algorithm, reason, "Give it once")
    is_hexadecimal = re.fullmatch("[0-9a-f]+", digits) is not None
    if not is_hexadecimal or len(digits) != _DIGITS.get(prefix):
        step = "Write it as ALGORITHM:DIGITS, for example sha256: and 64 hexadecimal digits"
        raise validate.refused("checksum", text, "is not a checksum", step)
    return digits, prefix
