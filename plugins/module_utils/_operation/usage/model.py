# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Metered use as data: one sample of a site, and the spans of use between two samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

BACKUP = "backup"
# The parts that a window between two samples can lack.
SITE, GUEST, DISKS, BACKUPS, TASKS = "site", "guest", "disks", "backups", "tasks"


@dataclass(frozen=True)
class GuestUse:
    """A guest in a sample; memory and disk in bytes. A template has only a disk.

    `disk` is None if the storages could not be listed, `disks` is the number of its volumes.
    """

    kind: str
    vmid: int
    name: str
    tenant: str
    node: str
    cores: int
    memory: int
    disk: int | None
    disks: int = 0


@dataclass(frozen=True)
class ArchiveUse:
    """A backup in a sample: its size in bytes, and when it was made.

    `storage` is its storage, with the node in front if it is not shared. `node` is empty then.
    """

    storage: str
    node: str
    vmid: int
    tenant: str
    size: int
    made: int


@dataclass(frozen=True)
class Waiting:
    """A new guest whose size or creation is not known yet.

    `since` is when it did not exist yet, `created` the times between which tasks created it. `tries`
    are the samples that found no such task.
    """

    since: int
    tries: int = 0
    created: tuple[int, int] | None = None


@dataclass(frozen=True)
class Gone:
    """A guest that is missing without a task that removed it: the two samples around that."""

    guest: GuestUse
    last: int
    missed: int


@dataclass(frozen=True)
class Sample:
    """A site at one time. Times are seconds since the epoch.

    `unknown` are guests whose size cannot be read, with the reason; `unread` the storages whose
    backups are not known. `tasks_since` is the start from which the next sample needs tasks, `seen`
    are the ended tasks since then, `noted` the nodes whose lists of tasks were not empty.
    """

    time: int
    guests: Mapping[int, GuestUse] = field(default_factory=dict)
    unknown: Mapping[int, str] = field(default_factory=dict)
    archives: Mapping[str, ArchiveUse] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    waiting: Mapping[int, Waiting] = field(default_factory=dict)
    gone: tuple[Gone, ...] = ()
    tasks_since: int = 0
    seen: frozenset[str] = frozenset()
    noted: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Subject:
    """The owner and the amounts of a span: cores, and bytes of memory, disks and backups.

    `certain` is whether the use is proven. A span that is not certain is an amount by which the use may be higher.
    """

    kind: str
    id: str
    name: str
    tenant: str
    node: str
    cores: int = 0
    memory: int = 0
    disk: int = 0
    backup: int = 0
    certain: bool = True


@dataclass(frozen=True)
class Span:
    """A use from `start` to `end`, in seconds since the epoch."""

    subject: Subject
    start: int
    end: int


@dataclass(frozen=True)
class Lack:
    """A part whose use is not known from `start` to `end`, and why."""

    part: str
    subject: str
    reason: str
    start: int
    end: int


@dataclass(frozen=True)
class Window:
    """The use between two samples. `covered` is whether the time between them is known at all.

    `waiting` and `gone` are decided by the next sample.
    """

    start: int
    end: int
    covered: bool
    spans: tuple[Span, ...] = ()
    missing: tuple[Lack, ...] = ()
    waiting: Mapping[int, Waiting] = field(default_factory=dict)
    gone: tuple[Gone, ...] = ()
