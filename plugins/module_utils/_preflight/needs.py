# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which privileges which task needs, on which kind of object (data and pure).

The facts are the permission checks of PVE's API schema and, where a call checks more than the schema says (a new VM's
options, storages and bridges), of qemu-server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

# What a need is about. Each kind has an ACL path, see `paths_of`.
VM, NEW_VM, TEMPLATE, STORAGE, IMAGES, BRIDGE, NODE, POOL, ROOT, ACCESS, GROUPS, ALL_STORAGES = (
    "vm", "new VM", "template", "storage", "image storage", "bridge", "node", "pool", "datacenter", "access", "groups",
    "all storages",
)  # fmt: skip


Version = tuple[int, int]
NEVER: Version = (999, 0)


@dataclass(frozen=True)
class Need:
    """Privileges on one kind of object: all of them, or `any_of` them is enough.

    `instead` are privileges on the whole datacenter that do as well. `until` is the first version without the need.
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
    """What the tasks will work on, as VMIDs and names; what is empty stands for any.

    Nothing can be said about the `unfound` kinds: of these some were named, but none was found.
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
    """Privileges to look for on one path. `below`: the path stands for what is under it, so they must propagate."""

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


_CONFIG = " ".join(
    f"VM.Config.{part}" for part in ("CPU", "Memory", "Disk", "CDROM", "Network", "HWType", "Options", "Cloudinit")
)
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
    "snapshot": (_all(VM, "VM.Audit VM.Snapshot"),),
    "rollback": (_any(VM, "VM.Snapshot VM.Snapshot.Rollback"), _all(VM, "VM.Audit VM.PowerMgmt")),
    "image_download": (
        _all(IMAGES, "Datastore.AllocateTemplate Datastore.Audit"),
        Need(NODE, ("Sys.AccessNetwork",), instead=("Sys.Audit", "Sys.Modify")),
    ),
    "image_upload": (_all(IMAGES, "Datastore.AllocateTemplate Datastore.Audit"),),
    "node_info": (_all(NODE, "Sys.Audit"),),
    "cluster_info": (_all(ROOT, "Sys.Audit"),),
    "network": (_all(NODE, "Sys.Audit Sys.Modify"),),
    "storage": (_all(ALL_STORAGES, "Datastore.Allocate Datastore.Audit"),),
    "pool": (_all(POOL, "Pool.Allocate Pool.Audit"),),
    "ha": (_all(ROOT, "Sys.Audit Sys.Console"),),
    "tenant": (
        _all(ACCESS, "Sys.Modify Permissions.Modify Realm.AllocateUser"),
        _all(GROUPS, "User.Modify"),
        _all(POOL, "Pool.Allocate Permissions.Modify"),
        _all(ROOT, "Sys.Modify"),
    ),
}

_BRIDGE_PATH = "/sdn/zones/localnetwork"


def questions(tasks: Sequence[str], subjects: Subjects, version: tuple[int, int]) -> list[Question]:
    """Return what has to be asked about the caller's privileges, each once, with the tasks that need it."""
    found: dict[Question, list[str]] = {}
    for task in dict.fromkeys(tasks):
        for need in TASKS[task]:
            if not need.since <= version < need.until:
                continue
            groups = [need.privileges] if need.any_of else [(one,) for one in need.privileges]
            for path, below in paths_of(need.kind, subjects):
                for group in groups:
                    question = Question(path, group, need.any_of, below, (), need.instead)
                    found.setdefault(question, []).append(task)
    order = sorted(found, key=lambda question: (question.path, question.privileges))
    return [replace(question, tasks=tuple(dict.fromkeys(found[question]))) for question in order]


def paths_of(kind: str, subjects: Subjects) -> list[tuple[str, bool]]:
    """Return the ACL paths of a kind of object, each with whether it only stands for what is under it."""
    named: Mapping[str, list[str]] = {
        VM: [f"/vms/{vmid}" for vmid in subjects.vms],
        TEMPLATE: [f"/vms/{vmid}" for vmid in subjects.templates],
        STORAGE: [f"/storage/{name}" for name in subjects.storages],
        IMAGES: [f"/storage/{name}" for name in subjects.image_storages],
        BRIDGE: [f"{_BRIDGE_PATH}/{name}" for name in subjects.bridges],
        NODE: [f"/nodes/{name}" for name in subjects.nodes],
    }
    if named.get(kind):
        return [(path, False) for path in named[kind]]
    if kind in subjects.unfound:
        return []
    if kind in (VM, NEW_VM, POOL) and subjects.pool:
        return [(f"/pool/{subjects.pool}", False)]
    any_of_kind = {
        VM: "/vms", NEW_VM: "/vms", TEMPLATE: "/vms", STORAGE: "/storage", IMAGES: "/storage", BRIDGE: _BRIDGE_PATH,
        NODE: "/nodes", POOL: "/pool",
    }  # fmt: skip
    if kind in any_of_kind:
        return [(any_of_kind[kind], True)]
    return [({ROOT: "/", ACCESS: "/access", GROUPS: "/access/groups", ALL_STORAGES: "/storage"}[kind], False)]


def holds(question: Question, held: Held, everywhere: Held = None) -> bool:
    """Return whether the privileges held on the path, or instead those held `everywhere`, answer the question."""
    check = any if question.any_of else all
    if check(name in _effective(held, question.below) for name in question.privileges):
        return True
    return bool(question.instead) and all(name in _effective(everywhere, False) for name in question.instead)


def _effective(held: Held, below: bool) -> set[str]:
    """Return the privileges that count; the value of each says whether it propagates to what is below the path."""
    return {name for name, propagates in (held or {}).items() if propagates is not None and (propagates or not below)}
