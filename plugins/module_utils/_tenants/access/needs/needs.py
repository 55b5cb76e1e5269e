# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The privileges that tasks need, their paths, and whether the caller holds them (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from .generated.tasks import MODULES, TASKS
from .need import (
    ACCESS,
    ALL_STORAGES,
    BRIDGE,
    GROUPS,
    IMAGES,
    MAPPINGS,
    NETWORKS,
    NEW_VM,
    NODE,
    POOL,
    REALMS,
    ROOT,
    STORAGE,
    TEMPLATE,
    TEMPLATE_STORAGE,
    VM,
    RequiredPrivileges,
    Version,
)

# The operations of a tenant, as tasks of preflight.
OPERATIONS: Mapping[str, tuple[str, ...]] = {
    "read": ("vm_info", "pool_info", "storage_info", "node_info"),
    "operate": ("vm_power", "vm_console", "vm_agent"),
    "provision": (
        "vm_create",
        "vm_clone",
        "vm_update",
        "container_create",
        "container_clone",
        "container_update",
        "vm_disks",
        "vm_power",
        "vm_migrate",
        "vm_delete",
    ),
    "snapshot": ("snapshot", "rollback"),
    "images": ("image_download", "image_upload"),
    "backup": ("backup_info", "backup"),
}

Held: TypeAlias = "Mapping[str, int | None] | None"


@dataclass(frozen=True)
class TaskObjects:
    """The objects of the tasks, as VMIDs and names; an empty field means any object.

    `zones` contains the zone of each VNet among `bridges`. `unfound` are kinds of which objects
    were named, but none was found: these kinds cannot be checked.
    """

    vms: tuple[int, ...] = ()
    templates: tuple[int, ...] = ()
    storages: tuple[str, ...] = ()
    image_storages: tuple[str, ...] = ()
    template_storages: tuple[str, ...] = ()
    bridges: tuple[str, ...] = ()
    zones: Mapping[str, str] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()
    pool: str | None = None
    unfound: frozenset[str] = frozenset()


@dataclass(frozen=True)
class PrivilegeCheck:
    """Privileges that must be held on one path.

    `below`: the path represents the objects below it, so the privileges must propagate.
    """

    path: str
    privileges: tuple[str, ...]
    any_of: bool
    below: bool
    tasks: tuple[str, ...]
    instead: tuple[str, ...] = ()  # on /, all of them


def tasks_of(names: Sequence[str]) -> list[str]:
    """Return the tasks with these names and the tasks of these modules, each once (pure)."""
    found: list[str] = []
    for name in names:
        found += MODULES.get(name, (name,))
    return list(dict.fromkeys(found))


_ZONES = "/sdn/zones"
_LOCAL = "localnetwork"  # the zone of the bridges of nodes


def questions(
    tasks: Sequence[str], subjects: TaskObjects, version: Version
) -> list[PrivilegeCheck]:
    """Return each question about the caller's privileges once, with the tasks that need it."""
    found: list[PrivilegeCheck] = []
    for task in tasks_of(tasks):
        for need in TASKS[task]:
            if need.since <= version < need.until:
                of_need = _questions_of(need, subjects)
                found += [replace(question, tasks=(task,)) for question in of_need]
    return merged(found)


def operation_questions(
    operations: Sequence[str], subjects: TaskObjects, version: Version
) -> list[PrivilegeCheck]:
    """Return the questions about the tasks of a tenant's operations on the named objects only: a
    tenant has no rights on other objects (pure).
    """
    tasks = [task for operation in operations for task in OPERATIONS[operation]]
    found = questions(tasks, subjects, version)
    return [one for one in found if not one.below and one.path not in _PATH.values()]


def merged(found: Iterable[PrivilegeCheck]) -> list[PrivilegeCheck]:
    """Return each question once, with the tasks of every equal question, sorted by path."""
    tasks_by_question: dict[PrivilegeCheck, dict[str, None]] = {}
    for question in found:
        bare = replace(question, tasks=())
        tasks_by_question.setdefault(bare, {}).update(dict.fromkeys(question.tasks))
    in_order = sorted(tasks_by_question, key=lambda one: (one.path, one.privileges))
    return [replace(one, tasks=tuple(tasks_by_question[one])) for one in in_order]


def _questions_of(need: RequiredPrivileges, subjects: TaskObjects) -> list[PrivilegeCheck]:
    """Return the questions of one need, without the task."""
    groups: list[tuple[str, ...]] = [(privilege,) for privilege in need.privileges]
    if need.any_of:
        groups = [need.privileges]
    found = []
    for path, below in paths_of(need.kind, subjects):
        for group in groups:
            found.append(
                PrivilegeCheck(
                    path=path,
                    privileges=group,
                    any_of=need.any_of,
                    below=below,
                    tasks=(),
                    instead=need.instead,
                )
            )
    return found


# The path above all objects of a kind: a privilege on it counts if it propagates.
_PATH_ABOVE = {
    VM: "/vms",
    NEW_VM: "/vms",
    TEMPLATE: "/vms",
    STORAGE: "/storage",
    IMAGES: "/storage",
    TEMPLATE_STORAGE: "/storage",
    BRIDGE: f"{_ZONES}/{_LOCAL}",
    NODE: "/nodes",
    POOL: "/pool",
    MAPPINGS: "/mapping",
    REALMS: "/access/realm",
}
# The path of a kind with a single object.
_PATH = {
    ROOT: "/",
    ACCESS: "/access",
    GROUPS: "/access/groups",
    ALL_STORAGES: "/storage",
    NETWORKS: "/sdn",
}


def paths_of(kind: str, subjects: TaskObjects) -> list[tuple[str, bool]]:
    """Return the ACL paths of a kind, and for each whether its privileges must propagate."""
    networks = [f"{subjects.zones.get(name, _LOCAL)}/{name}" for name in subjects.bridges]
    named: Mapping[str, tuple[str, Sequence[object]]] = {
        VM: ("/vms", subjects.vms),
        TEMPLATE: ("/vms", subjects.templates),
        STORAGE: ("/storage", subjects.storages),
        IMAGES: ("/storage", subjects.image_storages),
        TEMPLATE_STORAGE: ("/storage", subjects.template_storages),
        BRIDGE: (_ZONES, networks),
        NODE: ("/nodes", subjects.nodes),
    }
    above, names = named.get(kind, ("", ()))
    if names:
        return [(f"{above}/{name}", False) for name in names]
    if kind in subjects.unfound:
        return []
    if kind in (VM, NEW_VM, POOL) and subjects.pool:
        return [(f"/pool/{subjects.pool}", False)]
    if kind in _PATH_ABOVE:
        return [(_PATH_ABOVE[kind], True)]
    return [(_PATH[kind], False)]


def holds(question: PrivilegeCheck, held: Held, everywhere: Held = None) -> bool:
    """Return whether the privileges on the path, or the privileges `everywhere`, are sufficient."""
    effective = _effective(held, question.below)
    missing = [name for name in question.privileges if name not in effective]
    if not missing:
        return True
    if question.any_of and len(missing) < len(question.privileges):
        return True
    if not question.instead:
        return False
    return set(question.instead) <= _effective(everywhere, below=False)


def _effective(held: Held, below: bool) -> set[str]:
    """Return the privileges that count on a path, or `below` it.

    The value of a privilege is 1 if it propagates to paths below, otherwise 0.
    """
    found: set[str] = set()
    for name, propagates in (held or {}).items():
        if propagates is None:
            continue
        if propagates or not below:
            found.add(name)
    return found
