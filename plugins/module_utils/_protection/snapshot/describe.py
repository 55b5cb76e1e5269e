# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Snapshots and the lines of a run as modules report them (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
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


# The maximum number of listed steps; the rows of the VMs contain all steps.
_STEPS = 50


def lines_of(rows: Sequence[Mapping[str, Any]], *, check_mode: bool) -> list[str]:
    """Return the number of VMs by outcome, and the steps: executed, or planned in check mode."""
    lines = [_headline(rows, check_mode)]
    steps: list[str] = []
    for row in rows:
        steps += row["plan"] if check_mode else row["done"]
    lines += steps[:_STEPS]
    if len(steps) > _STEPS:
        lines.append(f"and {len(steps) - _STEPS} more steps")
    return lines


def _headline(rows: Sequence[Mapping[str, Any]], check_mode: bool) -> str:
    counts = Counter(map(_outcome, rows))
    parts = [f"{name} {counts[name]}" for name in ("changed", "unchanged", "failed")]
    total = ", ".join(part for part in parts if not part.endswith(" 0"))
    if not rows:
        total = "there is no VM to work on"
    if check_mode:
        return f"Preview: {total}"
    return total


def _outcome(row: Mapping[str, Any]) -> str:
    if row["failed"]:
        return "failed"
    if row["changed"]:
        return "changed"
    return "unchanged"
