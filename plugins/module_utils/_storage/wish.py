# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the options of a download to what is wished: file name, kind of content, checksum (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from .._core import validate

# What PVE takes as the name of each kind of content (pve-storage: PVE::Storage, Plugin.pm).
_ENDINGS = {
    "iso": re.compile(r"\.(?:iso|img)$", re.IGNORECASE),
    "import": re.compile(r"\.(?:qcow2|raw|vmdk|ova)$", re.IGNORECASE),
    "vztmpl": re.compile(r"\.tar\.(?:gz|xz|zst|bz2)$", re.IGNORECASE),
}
_SHOWN = {"iso": ".iso or .img", "import": ".qcow2, .raw, .vmdk or .ova", "vztmpl": ".tar.gz, .tar.xz, .tar.zst"}
# PVE puts an underscore in the place of every other character.
_NAME = re.compile(r"^[A-Za-z0-9_][-A-Za-z0-9_.]{0,254}$")
_COMPRESSED = re.compile(r"\.(?:bz2|gz|lzo|zst)$", re.IGNORECASE)
_DIGITS = {"md5": 32, "sha1": 40, "sha224": 56, "sha256": 64, "sha384": 96, "sha512": 128}


@dataclass(frozen=True)
class File:
    """One file on a storage as wished."""

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
        """Its volume ID."""
        return f"{self.storage}:{self.content}/{self.name}"

    @property
    def shown_url(self) -> str | None:
        """The URL without what may be secret: a password, a signature in the query."""
        if not self.url:
            return None
        parts = urlsplit(self.url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def read_file_wish(params: Mapping[str, Any]) -> File:
    """Return what the options ask for; every refusal is a ValidationFailed."""
    url = params.get("source_url") or None
    if url and not re.match(r"^https?://[^/\s]+/\S+$", url):
        raise validate.refused(
            "source_url", url, "is no URL of a file", "Give one that starts with https:// or http://"
        )
    name = params.get("filename") or _name_of(url, params.get("content"), params.get("compression"))
    if not name:
        raise validate.refused("filename", name, "does not say which file is meant", "Give source_url or filename")
    if not _NAME.match(name):
        step = "Use letters, digits, . _ and -, without a path"
        raise validate.refused("filename", name, "is no file name that PVE takes", step)
    content = params.get("content") or _content_of(name)
    if content is None:
        raise validate.refused("filename", name, "does not say what it is", "Say it with content, and a fitting ending")
    if not _ENDINGS[content].search(name):
        raise validate.refused(
            "filename", name, f"is no name for content {content}", f"Give one that ends in {_SHOWN[content]}"
        )
    checksum, algorithm = _checksum(params.get("checksum"), params.get("checksum_algorithm"))
    return File(
        storage=validate.storage(params["storage"]),
        content=content,
        name=name,
        node=validate.node(params["node"]) if params.get("node") else None,
        url=url,
        checksum=checksum,
        algorithm=algorithm,
        compression=params.get("compression") or None,
        verify=params.get("verify_certificates") is not False,
    )


def _name_of(url: str | None, content: str | None, compression: str | None) -> str:
    """Return the name that a URL gives its file: without the ending that goes when it is unpacked.

    Cloud images that end in C(.img) are qcow2, and PVE wants to see that in the name of an image to import.
    """
    name = unquote(urlsplit(url).path.rpartition("/")[2]) if url else ""
    if compression:
        name = _COMPRESSED.sub("", name)
    if content == "import" and name.lower().endswith(".img"):
        name = f"{name[:-4]}.qcow2"
    return re.sub(r"[^-A-Za-z0-9_.]", "_", name)


def _content_of(name: str) -> str | None:
    return next((content for content, ending in _ENDINGS.items() if ending.search(name)), None)


def _checksum(text: str | None, algorithm: str | None) -> tuple[str | None, str | None]:
    """Return the digits and the algorithm of C(sha256:...), or of digits beside the algorithm."""
    if not text:
        return None, None
    prefix, colon, rest = text.strip().partition(":")
    said = prefix.lower() if colon else algorithm
    digits = (rest if colon else prefix).lower()
    if colon and algorithm not in (None, said):
        raise validate.refused("checksum_algorithm", algorithm, f"contradicts {prefix} in checksum", "Say it once")
    if said is None:
        said = next((name for name, length in _DIGITS.items() if length == len(digits)), None)
    if said not in _DIGITS or len(digits) != _DIGITS[said] or re.search(r"[^0-9a-f]", digits):
        step = "Write it as ALGORITHM:DIGITS, for example sha256: and 64 hexadecimal digits"
        raise validate.refused("checksum", text, "is no checksum", step)
    return digits, said
