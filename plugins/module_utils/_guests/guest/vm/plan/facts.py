# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The facts of a plan besides the VM itself: the answers of the cluster, read before any decision.

Data only. A fact that the desired VM does not need is not read, and is None or empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ....kinds.vm.model import Snippet
from ...flow.intent import GuestFacts


@dataclass(frozen=True)
class DiskImage:
    """An ISO or image of a disk, as its node lists it."""

    volume: str
    exists: bool
    others: tuple[str, ...] = ()  # the images that the node has, if this one is missing
    size: int = 0  # in bytes, of an image that is imported


@dataclass(frozen=True)
class SeenSnippet:
    """A snippet that a VM uses: the files of its directory, and the list of its node."""

    volume: str
    written: Snippet | None  # user data that the task writes to this volume
    before: frozenset[str]  # files of its directory before the node was asked
    listed: frozenset[str] | None  # files that the node lists; None if that cannot be seen
    after: frozenset[str]  # files of its directory after that

    @property
    def name(self) -> str:
        """The name of the file."""
        _storage, _colon, path = self.volume.partition(":")
        return path.rpartition("/")[2]


@dataclass(frozen=True)
class VmFacts(GuestFacts):
    """The answers of the cluster before the plan of a VM is decided."""

    images: Mapping[str, DiskImage] = field(default_factory=dict)  # by volume
    snippets: tuple[SeenSnippet, ...] = ()
    # volumes by snapshot; without volumes of unchanged disks
    snapshots: Mapping[str, frozenset[str]] | None = None
    keeps_connections: bool = False  # whether both nodes can migrate tracked connections
    migration: Mapping[str, Any] | None = None  # PVE's answer about a move (GET .../migrate)
