# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The data of snapshots: the tree, the desired state, and the VM. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..._guests.kinds.identity import Identity
from ..._guests.kinds.kind import Kind

# The actions of steps. The type of PVE's task is the action with the prefix of the kind of guests;
# `describe` and `tag` have no task. `ACTION_OF_LOCK` has the action whose task sets each lock.
TAKE = "snapshot"
REMOVE = "delsnapshot"
ROLL_BACK = "rollback"
START = "start"
DESCRIBE = "describe"
TAG = "tag"
ACTION_OF_LOCK: Mapping[str, str] = {
    "snapshot": TAKE,
    "snapshot-delete": REMOVE,
    "rollback": ROLL_BACK,
}


@dataclass(frozen=True)
class Snapshot:
    """One snapshot. `time` is seconds since the epoch.

    `state` is set while PVE creates or deletes the snapshot, and remains set if that fails.
    """

    name: str
    time: int = 0
    description: str = ""
    vmstate: bool = False
    parent: str | None = None
    state: str | None = None


@dataclass(frozen=True)
class SnapshotTree:
    """The snapshots of a VM by name, the `parent` of its present state, and whether it runs."""

    snapshots: Mapping[str, Snapshot] = field(default_factory=dict)
    parent: str | None = None
    running: bool = False

    def depth(self, name: str) -> int:
        """Return the number of ancestors of a snapshot; a broken chain ends at the break."""
        ancestors: list[str] = []
        current = self.snapshots.get(name)
        while current is not None and current.parent and current.parent not in ancestors:
            ancestors.append(current.parent)
            current = self.snapshots.get(current.parent)
        return len(ancestors)

    def children(self, name: str) -> list[str]:
        """Return the children of a snapshot, oldest first."""
        return [one.name for one in self.by_age() if one.parent == name]

    def by_age(self) -> list[Snapshot]:
        """Return the snapshots, oldest first; in the order of the tree if the times are equal."""

        def age(one: Snapshot) -> tuple[int, int, str]:
            return one.time, self.depth(one.name), one.name

        return sorted(self.snapshots.values(), key=age)

    def newer_than(self, name: str) -> list[Snapshot]:
        """Return the snapshots that were taken after the named one, oldest first."""
        ordered = self.by_age()
        position = ordered.index(self.snapshots[name])
        return ordered[position + 1 :]


@dataclass(frozen=True)
class Retention:
    """The rule that keeps some of the snapshots that match `pattern`.

    It keeps the newest `keep` and every snapshot younger than `keep_for`; without both, it keeps
    none. A snapshot that does not match is never deleted.
    """

    pattern: str
    keep: int | None = None
    keep_for: int | None = None  # seconds


@dataclass(frozen=True)
class DesiredSnapshots:
    """The desired snapshots of a VM. `now` is the time of the run, for names and ages."""

    state: str
    name: str | None
    now: int
    description: str | None = None
    vmstate: bool = False
    retention: Retention | None = None
    force: bool = False
    restart: bool = True


@dataclass(frozen=True)
class SnapshotDisk:
    """A disk of a VM and its place. `kind` is the storage's plugin type, empty if unknown."""

    slot: str
    volume: str
    storage: str
    kind: str
    format: str
    chained: bool = False  # the storage keeps snapshots as a chain of volumes
    size: int | None = None  # bytes


@dataclass(frozen=True)
class SnapshotVm:
    """A VM with its snapshots, as read.

    `memory_bound` are options with which PVE cannot save the memory. `state_storage` is the storage
    for the saved memory, `state_bytes` the size of that volume. `tags_after` are the tags to set
    after a rollback, None if the tags of the snapshot are right. Each rollback changes `generation`
    (vmgenid), which is empty if the VM has none (qemu-server: QemuConfig.pm,
    __snapshot_rollback_hook).
    """

    kind: Kind
    vmid: int
    node: str
    name: str
    tree: SnapshotTree
    disks: tuple[SnapshotDisk, ...] = ()
    tags: tuple[str, ...] = ()
    lock: str | None = None
    template: bool = False
    memory_bound: tuple[str, ...] = ()
    state_storage: str = ""
    state_bytes: int = 0
    tags_after: tuple[str, ...] | None = None
    generation: str = ""
    identity: Identity = Identity("", "", "")

    @property
    def path(self) -> tuple[str | int, ...]:
        """The path of the VM in the API."""
        return self.kind.path(self.node, self.vmid)

    def task_of(self, action: str) -> str:
        """Return the type of the task for an action."""
        return f"{self.kind.task_prefix}{action}"

    @property
    def label(self) -> str:
        return f"{self.kind.noun} '{self.name}' ({self.vmid}) on node {self.node}"

    @property
    def unnamed(self) -> str:
        """The label of the guest for callers that must not see its name."""
        return f"{self.kind.noun} {self.vmid}"
