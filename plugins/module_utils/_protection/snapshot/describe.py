# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Snapshots as modules report them (pure)."""

from __future__ import annotations

from typing import Any

from ..._foundation.cluster.tenant import tenants_of
from ..._foundation.core.times import iso
from ..._guests.kinds.words import kind_name
from .model import Snapshot, SnapshotTree, SnapshotVm


def describe_vm(vm: SnapshotVm, *, prefix: str) -> dict[str, Any]:
    """Return a VM with its snapshots, oldest first, and the parent of its present state."""
    owners = tenants_of(vm.tags, prefix)
    return {
        "kind": kind_name(vm.kind.type),
        "vmid": vm.vmid,
        "name": vm.name,
        "node": vm.node,
        "tenant": owners[0][len(prefix) :] if len(owners) == 1 else None,
        "tags": sorted(vm.tags),
        "status": "running" if vm.tree.running else "stopped",
        "lock": vm.lock,
        "snapshots": [describe_snapshot(vm.tree, one) for one in vm.tree.by_age()],
        "current": vm.tree.parent,
    }


def describe_snapshot(tree: SnapshotTree, one: Snapshot) -> dict[str, Any]:
    """Return one snapshot with its place in the tree."""
    return {
        "name": one.name,
        "description": one.description.rstrip(),
        "parent": one.parent,
        "children": tree.children(one.name),
        "depth": tree.depth(one.name),
        "current": tree.parent == one.name,
        "snaptime": one.time,
        "time": iso(one.time),
        "vmstate": one.vmstate,
        "state": one.state,
    }
