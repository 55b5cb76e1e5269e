# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file of a container template: its possible names, and its version (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .images import VersionKey, version_key

_FILE = re.compile(r"^(?P<stem>.+?)\.tar(?:\.\w+)?\Z")


@dataclass(frozen=True)
class TemplateFile:
    """The file of a template on a storage; `node` is None if all nodes have it."""

    volume: str
    node: str | None

    @property
    def name(self) -> str:
        return self.volume.rpartition("/")[2]

    def has_name(self, name: str) -> bool:
        """Return whether the name of a source matches this file: `debian-13-standard`, with or
        without the version, or the whole name of the file.
        """
        match = _FILE.match(self.name)
        stem = match["stem"] if match else self.name
        return name in (self.name, stem) or stem.startswith(f"{name}_")

    @property
    def version(self) -> VersionKey:
        """The sort key: the newest version is last."""
        return version_key(self.name)
