# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which privileges which task needs, on which kind of object (data and pure).

The facts are the permission checks of PVE's API schema. Where a call checks more than the schema
says (the options, storages and bridges of a new VM), they are those of qemu-server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

# What a need is about. Each kind has an ACL path, see `paths_of`.
VM = "vm"
NEW_VM = "new VM"
TEMPLATE = "template"
STORAGE = "storage"
IMAGES = "image storage"
BRIDGE = "bridge"
NODE = "node"
POOL = "pool"
ROOT = "datacenter"
ACCESS = "access"
GROUPS = "groups"
REALMS = "realms"
ALL_STORAGES = "all storages"
MAPPINGS = "mappings"

Version = tuple[int, int]
NEVER: Version = (999, 0)


@dataclass(frozen=True)
class Need:
    """Privileges on one kind of object: all of them are needed, or one with `any_of`.

    `instead` are privileges on the whole datacenter that are enough as well. `until` is the first
    version without the need.
    """

    kind: str
    privileges: tuple[str, ...]
    any_of: bool = False
    since: Version = (0, 0)
    until: Version = NEVER
    instead: tuple[str, ...] = ()


Held: TypeAlias = "Mapping[str, int | None] | None"


@dataclass(frozen=True)
class Subjects:
    """What the tasks will work on, as VMIDs and names; an empty field means any object.

    Of the `unfound` kinds objects were named, but none was found: these kinds cannot be checked.
    """

    vms: tuple[int, ...] = ()
    templates: tuple[int, ...] = ()
    storages: tuple[str, ...] = ()
    image_storages: tuple[str, ...] = ()
    bridges: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    pool: str | None = None
    unfound: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Question:
    """Privileges to look for on one path.

    `below`: the path stands for the objects under it, so the privileges must propagate.
    """

    path: str
    privileges: tuple[str, ...]
    any_of: bool
    below: bool
    tasks: tuple[str, ...]
    instead: tuple[str, ...] = ()  # on /, all of them


def _all(kind: str, words: str, since: Version = (0, 0), until: Version = NEVER) -> Need:
    return Need(kind, tuple(words.split()), since=since, until=until)


def _any(kind: str, words: str, since: Version = (0, 0), until: Version = NEVER) -> Need:
    return Need(kind, tuple(words.split()), any_of=True, since=since, until=until)


_CONFIG_PARTS = ("CPU", "Memory", "Disk", "CDROM", "Network", "HWType", "Options", "Cloudinit")
_CONFIG = " ".join(f"VM.Config.{part}" for part in _CONFIG_PARTS)
_SPACE = _all(STORAGE, "Datastore.AllocateSpace")
_BRIDGES = _all(BRIDGE, "SDN.Use", since=(8, 0))

TASKS: Mapping[str, tuple[Need, ...]] = {
    "vm_info": (_all(VM, "VM.Audit"),),
    "vm_create": (_all(NEW_VM, f"VM.Allocate VM.Audit {_CONFIG}"), _SPACE, _BRIDGES),
    "vm_clone": (
        _all(TEMPLATE, "VM.Clone VM.Audit"),
        _all(NEW_VM, f"VM.Allocate VM.Audit {_CONFIG}"),
        _SPACE,
        _BRIDGES,
    ),
    "vm_update": (_all(VM, f"VM.Audit {_CONFIG}"), _BRIDGES),
    "vm_disks": (_all(VM, "VM.Audit VM.Config.Disk"), _SPACE),
    "vm_power": (_all(VM, "VM.Audit VM.PowerMgmt"),),
    "vm_delete": (_all(VM, "VM.Audit VM.Allocate VM.PowerMgmt"),),
    "vm_migrate": (_all(VM, "VM.Audit VM.Migrate"),),
    "vm_template": (_all(VM, "VM.Audit VM.Allocate"),),
    "vm_agent": (
        _any(VM, "VM.GuestAgent.Audit VM.GuestAgent.Unrestricted", since=(9, 0)),
        _all(VM, "VM.Monitor", until=(9, 0)),
    ),
    "vm_console": (_all(VM, "VM.Console"),),
    "vm_mapping": (
        _all(VM, "VM.Audit VM.Config.HWType"),
        _all(MAPPINGS, "Mapping.Use", since=(8, 0)),
    ),
    "vm_startup": (_all(VM, "VM.Audit VM.Config.Options"), _all(ROOT, "Sys.Modify")),
    "snapshot": (_all(VM, "VM.Audit VM.Snapshot"),),
    "rollback": (_any(VM, "VM.Snapshot VM.Snapshot.Rollback"), _all(VM, "VM.Audit VM.PowerMgmt")),
    "image_download": (
        _all(IMAGES, "Datastore.AllocateTemplate Datastore.Audit"),
        Need(NODE, ("Sys.AccessNetwork",), instead=("Sys.Audit", "Sys.Modify")),
    ),
    "image_upload": (_all(IMAGES, "Datastore.AllocateTemplate Datastore.Audit"),),
    "node_info": (_all(NODE, "Sys.Audit"),),
    "task_info": (_all(NODE, "Sys.Audit"),),
    "cluster_info": (_all(ROOT, "Sys.Audit"),),
    "cluster_options": (_all(ROOT, "Sys.Audit Sys.Modify"),),
    "cluster_options_info": (_all(ROOT, "Sys.Audit"),),
    "network": (_all(NODE, "Sys.Audit Sys.Modify"),),
    "storage": (_all(ALL_STORAGES, "Datastore.Allocate Datastore.Audit"),),
    "storage_info": (_all(STORAGE, "Datastore.Audit"),),
    "pool": (_all(POOL, "Pool.Allocate Pool.Audit"),),
    "pool_info": (_all(POOL, "Pool.Audit"),),
    "pool_members": (
        _all(POOL, "Pool.Allocate Pool.Audit"),
        _any(VM, "VM.Allocate Permissions.Modify"),
    ),
    "acl": (_any(POOL, "Permissions.Modify Pool.Allocate"),),
    "acl_info": (_all(ACCESS, "Sys.Audit"),),
    "audit_info": (_all(ROOT, "Sys.Audit VM.Audit"),),
    "metrics": (
        _all(ROOT, "Sys.Audit"),
        _all(VM, "VM.Audit VM.Backup VM.Config.Disk"),
        _all(STORAGE, "Datastore.Audit Datastore.AllocateSpace"),
    ),
    "group": (_all(GROUPS, "Group.Allocate"),),
    "group_info": (_any(GROUPS, "Sys.Audit Group.Allocate"),),
    "token": (_all(GROUPS, "User.Modify"),),
    "token_info": (_any(GROUPS, "User.Modify Sys.Audit"),),
    "realm_info": (),
    "realm_sync": (_all(REALMS, "Realm.AllocateUser"), _all(GROUPS, "User.Modify")),
    "user": (_all(GROUPS, "User.Modify"), _all(REALMS, "Realm.AllocateUser")),
    "user_info": (_any(GROUPS, "User.Modify Sys.Audit"),),
    "role": (_all(ACCESS, "Sys.Modify"),),
    "role_info": (),
    "ha": (_all(ROOT, "Sys.Audit Sys.Console"),),
    "tenant": (
        _all(ACCESS, "Sys.Modify Permissions.Modify Realm.AllocateUser"),
        _all(GROUPS, "User.Modify"),
        _all(POOL, "Pool.Allocate Permissions.Modify"),
        _all(ROOT, "Sys.Modify"),
    ),
    "tenant_info": (_all(ACCESS, "Sys.Audit"), _any(GROUPS, "User.Modify Sys.Audit")),
}

# What a module does, in the tasks above. A module that is not listed is a task of its own name.
MODULES: Mapping[str, tuple[str, ...]] = {
    "clone": ("vm_clone", "vm_update", "vm_disks", "vm_power"),
    "snapshot_info": ("vm_info",),
    "drift_info": ("vm_info",),
    "estate_info": ("vm_info",),
    "metrics_info": ("metrics",),
    "report_info": ("metrics",),
    "storage_download": ("image_download",),
    "tidy": ("vm_info", "vm_delete"),
    "vm": ("vm_create", "vm_update", "vm_disks", "vm_power", "vm_delete"),
    "vms": ("vm_create", "vm_update", "vm_disks", "vm_power", "vm_delete"),
}


def tasks_of(names: Sequence[str]) -> list[str]:
    """Return the tasks behind the names of tasks and modules, each once (pure)."""
    found: list[str] = []
    for name in names:
        found += MODULES.get(name, (name,))
    return list(dict.fromkeys(found))


_BRIDGE_PATH = "/sdn/zones/localnetwork"


def questions(tasks: Sequence[str], subjects: Subjects, version: Version) -> list[Question]:
    """Return each question about the caller's privileges once, with the tasks that need it."""
    tasks_by_question: dict[Question, list[str]] = {}
    for task in tasks_of(tasks):
        for need in TASKS[task]:
            if not need.since <= version < need.until:
                continue
            for question in _questions_of(need, subjects):
                tasks_by_question.setdefault(question, []).append(task)
    found = []
    for question in sorted(tasks_by_question, key=lambda one: (one.path, one.privileges)):
        needed_by = dict.fromkeys(tasks_by_question[question])
        found.append(replace(question, tasks=tuple(needed_by)))
    return found


def _questions_of(need: Need, subjects: Subjects) -> list[Question]:
    """Return the questions of one need, without its task."""
    groups: list[tuple[str, ...]] = [(privilege,) for privilege in need.privileges]
    if need.any_of:
        groups = [need.privileges]
    found = []
    for path, below in paths_of(need.kind, subjects):
        for group in groups:
            found.append(
                Question(
                    path=path,
                    privileges=group,
                    any_of=need.any_of,
                    below=below,
                    tasks=(),
                    instead=need.instead,
                )
            )
    return found


# The path of all objects of a kind: a privilege there counts where it propagates.
_PATH_ABOVE = {
    VM: "/vms",
    NEW_VM: "/vms",
    TEMPLATE: "/vms",
    STORAGE: "/storage",
    IMAGES: "/storage",
    BRIDGE: _BRIDGE_PATH,
    NODE: "/nodes",
    POOL: "/pool",
    MAPPINGS: "/mapping",
    REALMS: "/access/realm",
}
# The path of a kind of which there is only one object.
_PATH = {ROOT: "/", ACCESS: "/access", GROUPS: "/access/groups", ALL_STORAGES: "/storage"}


def paths_of(kind: str, subjects: Subjects) -> list[tuple[str, bool]]:
    """Return the ACL paths of a kind, each with whether privileges must propagate from it."""
    named: Mapping[str, tuple[str, Sequence[object]]] = {
        VM: ("/vms", subjects.vms),
        TEMPLATE: ("/vms", subjects.templates),
        STORAGE: ("/storage", subjects.storages),
        IMAGES: ("/storage", subjects.image_storages),
        BRIDGE: (_BRIDGE_PATH, subjects.bridges),
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


def holds(question: Question, held: Held, everywhere: Held = None) -> bool:
    """Return whether the privileges held on the path, or those held `everywhere`, are enough."""
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

    The value of a privilege is 1 where it propagates to paths below, and else 0.
    """
    found: set[str] = set()
    for name, propagates in (held or {}).items():
        if propagates is None:
            continue
        if propagates or not below:
            found.add(name)
    return found
