# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images: templates of one name with versions. A tag of the template contains the version (pure).

See docs/decisions/0029-the-version-of-an-image-is-a-tag.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...core import validate
from ...core.errors import NotFound
from ..state import VmRow

_TAG = "version-"
_VERSION = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*")
_NUMBERS = re.compile(r"(\d+)")
_LONGEST = 32  # keeps the name of an unpublished image within the limit of a DNS name

VersionKey = tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class ImageVersion:
    """A version of an image; the version is empty for a template without one."""

    name: str
    version: str = ""

    @property
    def label(self) -> str:
        """The image in options and messages: `debian-13@2026.11.20`."""
        if not self.version:
            return self.name
        return f"{self.name}@{self.version}"


def parse_image(text: str, what: str = "source") -> ImageVersion:
    """Return the image of a text such as `debian-13` or `debian-13@2026.11.20`.

    Raises ValidationFailed for a version that cannot be a tag.
    """
    name, at, version = text.partition("@")
    if not at:
        return ImageVersion(name)
    return ImageVersion(name, parse_version(version, what))


def parse_version(text: str, what: str) -> str:
    """Return a version in lower case, as PVE stores tags. Raises ValidationFailed."""
    version = text.lower()
    if _VERSION.fullmatch(version) and len(version) <= _LONGEST:
        return version
    raise validate.refused(
        what,
        text,
        "is not the version of an image",
        f"Use letters, digits, dots and hyphens, at most {_LONGEST}, such as 2026.11.20",
    )


def version_of(tags: Iterable[str]) -> str:
    """Return the version in the tags of a template, an empty text without one."""
    versions: list[str] = []
    for tag in tags:
        version = tag.lower().removeprefix(_TAG)
        if version != tag.lower() and _VERSION.fullmatch(version):
            versions.append(version)
    return max(versions, key=version_key, default="")


def version_key(version: str) -> VersionKey:
    """Return the key by which the newest version comes last; numbers count as numbers."""
    return tuple(map(_part_key, _NUMBERS.split(version)))


def _part_key(part: str) -> tuple[int, str]:
    """Return the key of a part of a version. A number may have more digits than Python converts."""
    if not part.isdecimal():
        return -1, part
    digits = part.lstrip("0")
    return len(digits), digits


def image_of(row: VmRow) -> ImageVersion:
    """Return the image of a template in the listing."""
    return ImageVersion(row.name, version_of(row.tags))


def with_version(rows: Sequence[VmRow], version: str | None, name: str) -> list[VmRow]:
    """Return the templates of one name with that version, or with any version.

    Templates without a version count only if no template has a version. Raises NotFound, with the
    existing versions, if no template has the requested version.
    """
    versioned = [row for row in rows if image_of(row).version]
    if not version:
        return versioned or list(rows)
    same = [row for row in versioned if image_of(row).version == version]
    if same:
        return same
    versions = sorted({image_of(row).version for row in versioned}, key=version_key)
    raise NotFound(
        f"Image '{name}@{version}' could not be cloned: no template '{name}' that can be cloned "
        f"has this version; there are {', '.join(versions) or 'none with a version'}",
        "Name one of these versions, or publish the image with the role pve.fleet.image",
        "version missing",
    )


def newest_for(rows: Iterable[VmRow], node: str) -> ImageVersion | None:
    """Return the newest image among the templates on a node. If it has no template, all templates
    count: it then uses one on a shared storage. None if no template has a version.
    """
    versioned = [row for row in rows if image_of(row).version]
    own = [row for row in versioned if row.node == node]
    images = [image_of(row) for row in own or versioned]
    return max(images, key=lambda image: version_key(image.version), default=None)
