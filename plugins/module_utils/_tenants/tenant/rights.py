# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The roles that a tenant needs for its operations, and their paths (pure).

The privileges come from the table that preflight checks, `_tenants/access/needs/generated/tasks.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..access.needs.generated.tasks import TASKS
from ..access.needs.need import (
    BRIDGE,
    IMAGES,
    NEW_VM,
    NODE,
    POOL,
    STORAGE,
    TEMPLATE,
    TEMPLATE_STORAGE,
    VM,
    Version,
)
from ..access.needs.needs import OPERATIONS

# Each operation includes this one: without it a module cannot see the objects it works on.
BASE = "read"

# The kinds of objects that each role of the tenant covers, by the suffix of the role's name. Only
# the role for the VMs in the pool, which can be templates, has an empty suffix.
KINDS: Mapping[str, tuple[str, ...]] = {
    "": (VM, NEW_VM, POOL, TEMPLATE),
    ".template": (TEMPLATE,),
    ".storage": (STORAGE,),
    ".images": (IMAGES, TEMPLATE_STORAGE),
    ".network": (BRIDGE,),
    ".node": (NODE,),
}


def privileges_of(operations: Sequence[str], version: Version) -> dict[str, frozenset[str]]:
    """Return the privileges of each role, by suffix; roles without privileges are left out."""
    by_kind: dict[str, set[str]] = {}
    for operation in (BASE, *operations):
        for task in OPERATIONS[operation]:
            for need in TASKS[task]:
                if need.since <= version < need.until:
                    # the first is enough if any one of several will do
                    minimum = need.privileges[:1] if need.any_of else need.privileges
                    by_kind.setdefault(need.kind, set()).update(minimum)
    found: dict[str, frozenset[str]] = {}
    for suffix, kinds in KINDS.items():
        privileges = frozenset().union(*(by_kind.get(kind, ()) for kind in kinds))
        if privileges:
            found[suffix] = privileges
    return found


def bridge_path(name: str) -> str:
    """Return the path of a bridge, or of a VNet that is written as ZONE/VNET."""
    if "/" in name:
        return f"/sdn/zones/{name}"
    return f"/sdn/zones/localnetwork/{name}"
