# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the rooms of snapshots pass to each other: the tree, the wish and the VM it is for. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# How PVE calls the tasks, and the lock that a VM bears while each of them runs.
TAKE, REMOVE, ROLL_BACK, DESCRIBE, TAG = "qmsnapshot", "qmdelsnapshot", "qmrollback", "describe", "tag"
TASK_OF_LOCK: Mapping[str, str] = {"snapshot": TAKE, "snapshot-delete": REMOVE, "rollback": ROLL_BACK}


@dataclass(frozen=True)
class Snapshot:
    """One snapshot. `time` is seconds since the epoch; `state` is set while PVE makes or deletes it, or failed to."""

    name: str
    time: int = 0
    description: str = ""
    vmstate: bool = False
    parent: str | None = None
    state: str | None = None


@dataclass(frozen=True)
class Tree:
    """The snapshots of a VM by name, on which of them its present state stands, and whether it runs."""

    snapshots: Mapping[str, Snapshot] = field(default_factory=dict)
    parent: str | None = None
    running: bool = False

    def depth(self, name: str) -> int:
        """Return how many snapshots the named one stands on; a broken chain ends where it breaks."""
        seen: list[str] = []
        at = self.snapshots.get(name)
        while at is not None and at.parent and at.parent not in seen:
            seen.append(at.parent)
            at = self.snapshots.get(at.parent)
        return len(seen)

    def children(self, name: str) -> list[str]:
        """Return the snapshots that stand on the named one, oldest first."""
        return [one.name for one in self.by_age() if one.parent == name]

    def by_age(self) -> list[Snapshot]:
        """Return the snapshots, oldest first; within one second the tree decides."""
        return sorted(self.snapshots.values(), key=lambda one: (one.time, self.depth(one.name), one.name))

    def newer_than(self, name: str) -> list[Snapshot]:
        """Return the snapshots that were taken after the named one, oldest first."""
        ordered = self.by_age()
        return ordered[[one.name for one in ordered].index(name) + 1 :]


@dataclass(frozen=True)
class Retention:
    """Which snapshots stay: those that match `pattern` and are among the newest `keep` or younger than `keep_for`.

    With neither, none of those that match stays. What does not match is never touched.
    """

    pattern: str
    keep: int | None = None
    keep_for: int | None = None  # seconds


@dataclass(frozen=True)
class Wish:
    """What shall be with the snapshots of a VM. `now` is the time of the run, for names and ages."""

    state: str
    name: str | None
    now: int
    description: str | None = None
    vmstate: bool = False
    retention: Retention | None = None
    force: bool = False
    restart: bool = True


@dataclass(frozen=True)
class Disk:
    """A disk of a VM and where it lies. `kind` is the storage's plugin type, empty where it is not known."""

    slot: str
    volume: str
    storage: str
    kind: str
    format: str
    chained: bool = False  # the storage keeps snapshots as a chain of volumes


@dataclass(frozen=True)
class Machine:
    """A VM with its snapshots, as it is.

    `memory_bound` are options with which PVE cannot save the memory. `tags_after` are the tags to give it after a
    rollback, None where those of the snapshot are right.
    """

    vmid: int
    node: str
    name: str
    tree: Tree
    disks: tuple[Disk, ...] = ()
    tags: tuple[str, ...] = ()
    lock: str | None = None
    template: bool = False
    memory_bound: tuple[str, ...] = ()
    tags_after: tuple[str, ...] | None = None

    @property
    def label(self) -> str:
        return f"VM '{self.name}' ({self.vmid}) on node {self.node}"
