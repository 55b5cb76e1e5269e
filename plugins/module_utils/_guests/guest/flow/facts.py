# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The answers of the cluster that the plan of a guest needs, read before any decision. Data only.

A fact that the guest does not need is not read, and is None or empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ...._foundation.cluster.placement import Bridges
from ...._foundation.cluster.state import ClusterState
from ...kinds.hardware import Snippet
from ..create.quota_race import TenantUsage
from ..plan.allocation import Definitions

# The numbers of a version of PVE, such as (9, 2, 11).
Release: TypeAlias = tuple[int, ...]


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
class Facts:
    """The answers of the cluster before the plan of a guest is decided."""

    cluster: ClusterState
    release: Release | None = None
    bridges: frozenset[str] | None = None  # bridges of the guest's node
    mtus: Mapping[str, int] = field(default_factory=dict)  # of its bridges, if a NIC has one
    pools: frozenset[str] | None = None  # pools that the caller may see
    usage: TenantUsage | None = None  # the figures of the tenant's guests
    may_hide_pool: bool = False  # whether the guest may be in a pool that the caller cannot see
    # definitions of storages, if a storage class asks for thin or thick disks
    definitions: Definitions = field(default_factory=dict)
    missing: tuple[str, ...] = ()  # volumes that the node does not list
    images: Mapping[str, DiskImage] = field(default_factory=dict)  # by volume
    sizes: Mapping[str, int] = field(default_factory=dict)  # bytes that new disks import, by slot
    snippets: tuple[SeenSnippet, ...] = ()
    # volumes by snapshot; without volumes of unchanged disks
    snapshots: Mapping[str, frozenset[str]] | None = None
    migration: Mapping[str, Any] | None = None  # PVE's answer about a move (GET .../migrate)
    keeps_connections: bool = False  # whether both nodes can migrate tracked connections
    known_bridges: Bridges = field(default_factory=dict)  # by node

    @property
    def siblings(self) -> frozenset[int]:
        """The guests of the tenant, if there is a quota."""
        return frozenset(self.usage.owned) if self.usage is not None else frozenset()
