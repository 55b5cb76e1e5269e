# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The content of an update of a guest: options to set and to delete, changes of its volumes. Data
only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ...._foundation.core.errors import FleetError
from ..hardware import Disk


@dataclass
class DriveChange:
    """`sets` goes into the update; `after` are the drives in their final form."""

    sets: dict[str, str] = field(default_factory=dict)
    # how PVE will show a volume that `sets` creates
    predicted: dict[str, str] = field(default_factory=dict)
    detached: set[str] = field(default_factory=set)  # stay as unusedN
    removed: set[str] = field(default_factory=set)  # volume destroyed
    grown: dict[str, int] = field(default_factory=dict)  # slot -> bytes
    # slot -> bytes, of new disks that are larger than the image they import
    grown_later: dict[str, int] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)  # slot -> storage
    handed: dict[str, Disk] = field(default_factory=dict)  # slot -> a disk that another guest gets
    after: dict[str, str] = field(default_factory=dict)
    storages: dict[str, str] = field(default_factory=dict)  # storage -> content it must take
    # volume ID that must exist -> content
    volumes: dict[str, str] = field(default_factory=dict)
    # slot -> storage, format
    formats: dict[str, tuple[str, str]] = field(default_factory=dict)
    # slot -> why it cannot become the desired drive; `after` has that drive nevertheless
    refused: dict[str, FleetError] = field(default_factory=dict)

    @property
    def gone(self) -> set[str]:
        """The slots whose volumes the guest no longer has."""
        return {*self.removed, *self.handed}

    @property
    def keys(self) -> set[str]:
        return {*self.sets, *self.detached, *self.gone, *self.grown, *self.moved, *self.refused}


@dataclass(frozen=True)
class Relocation:
    """The storage of each volume that is moved before or after the migration, by slot, and the map
    of the migration, by storage.
    """

    before: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)
    mapped: Mapping[str, str] = field(default_factory=dict)
    mapped_slots: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()  # the storages that no volume uses when it arrives
    stuck: Mapping[str, str] = field(default_factory=dict)  # slot -> the storage that it needs
    keeps_connections: bool = False  # whether tracked connections of a running VM move with it

    @property
    def storage_map(self) -> str:
        """The map in the form of a request."""
        return ",".join(f"{source}:{target}" for source, target in sorted(self.mapped.items()))


@dataclass(frozen=True)
class ConfigChange:
    """The content of one update: options to set, options to delete, and the changes of drives."""

    sets: Mapping[str, str] = field(default_factory=dict)
    deletes: frozenset[str] = frozenset()
    drives: DriveChange = field(default_factory=DriveChange)
    relocation: Relocation | None = None  # if the guest moves to another node
    # options that PVE itself changes with it
    side_effects: Mapping[str, str] = field(default_factory=dict)
    secret: bool = False

    @property
    def keys(self) -> set[str]:
        return {*self.sets, *self.deletes, *self.drives.keys, *self.side_effects}

    @property
    def gone(self) -> frozenset[str]:
        return self.deletes | self.drives.gone

    def without(self, option: str) -> ConfigChange:
        """Return the change with one option removed from it."""
        sets = without(self.sets, {option})
        return replace(self, sets=sets, deletes=self.deletes - {option})


def possible(change: ConfigChange) -> ConfigChange:
    """Return the change. Raises the FleetError of a difference that no change can remove."""
    for error in change.drives.refused.values():
        raise error
    return change


def without(values: Mapping[str, str], keys: Collection[str]) -> dict[str, str]:
    """Return the options that are not among `keys`."""
    remaining = dict(values)
    for key in keys:
        remaining.pop(key, None)
    return remaining
