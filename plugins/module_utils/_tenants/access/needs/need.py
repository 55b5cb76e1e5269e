# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A need of a task: privileges on one kind of object (data).

The needs are declared with the modules. Their facts are the permission checks of PVE's API schema.
If a call checks more than the schema says (the options, storages and bridges of a new VM), they
come from qemu-server and pve-container.
"""

from __future__ import annotations

from dataclasses import dataclass

# The object of a need. Each kind has an ACL path, see `paths_of`.
VM = "vm"
NEW_VM = "new VM"
TEMPLATE = "template"
STORAGE = "storage"
IMAGES = "image storage"
TEMPLATE_STORAGE = "template storage"
BRIDGE = "bridge"
NODE = "node"
POOL = "pool"
ROOT = "datacenter"
ACCESS = "access"
GROUPS = "groups"
REALMS = "realms"
ALL_STORAGES = "all storages"
MAPPINGS = "mappings"
NETWORKS = "networks"

Version = tuple[int, int]
NEVER: Version = (999, 0)


@dataclass(frozen=True)
class RequiredPrivileges:
    """Privileges on one kind of object: all of them are needed, or any of them (`any_of`).

    `instead` are privileges on the whole datacenter that are sufficient too. `until` is the first
    version without the need.
    """

    kind: str
    privileges: tuple[str, ...]
    any_of: bool = False
    since: Version = (0, 0)
    until: Version = NEVER
    instead: tuple[str, ...] = ()
