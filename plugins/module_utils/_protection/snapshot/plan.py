# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans the steps from the present snapshots of a VM to the desired ones (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..._foundation.core.errors import Conflict, NotSupported, UnknownSnapshot
from ..._foundation.resource.plan import Plan, Step
from .model import (
    DESCRIBE,
    REMOVE,
    ROLL_BACK,
    TAG,
    TAKE,
    DesiredSnapshots,
    Snapshot,
    SnapshotTree,
    SnapshotVm,
)
from .names import expired, snapshots_in_progress
from .storages import newest_only, would_be_lost


@dataclass
class _Change:
    """The tree after some steps, the steps, and warnings."""

    tree: SnapshotTree
    steps: list[Step]
    warnings: list[str]

    def __add__(self, after: _Change) -> _Change:
        """Return both changes, one after the other."""
        steps = self.steps + after.steps
        warnings = self.warnings + after.warnings
        return _Change(after.tree, steps, warnings)

    def plan(self, vm: SnapshotVm) -> Plan:
        """Return the plan; without steps, it has no diff."""
        if not self.steps:
            return Plan(warnings=tuple(self.warnings))
        before, after = difference(vm.tree, self.tree)
        return Plan(tuple(self.steps), before, after, warnings=tuple(self.warnings))


def plan_snapshots(desired: DesiredSnapshots, vm: SnapshotVm, *, rolled_back: bool = False) -> Plan:
    """Return the steps from a VM's snapshots to the desired ones.

    `rolled_back` is true if a rollback that was in progress has just succeeded. Raises Conflict,
    NotFound or NotSupported if PVE would refuse a step or if data would be lost.
    """
    if desired.state == "present":
        return _present(desired, vm)
    if desired.state == "absent":
        return _absent(desired, vm)
    return _rolled_back(desired, vm, rolled_back)


def _present(desired: DesiredSnapshots, vm: SnapshotVm) -> Plan:
    if vm.template:
        raise _template(vm, "take a snapshot of")
    name = desired.name or ""
    found = vm.tree.snapshots.get(name)
    if found is None:
        change = _new_snapshot(desired, vm, name)
    else:
        change = _existing_snapshot(desired, vm, found)
    change += _retained(desired, vm, change.tree, spare=name)
    return change.plan(vm)


def _new_snapshot(desired: DesiredSnapshots, vm: SnapshotVm, name: str) -> _Change:
    tree = vm.tree
    vmstate = desired.vmstate and tree.running and vm.kind.saves_memory
    if vmstate and vm.memory_bound:
        raise _memory_bound(vm, name)
    warnings = []
    why = _why_no_memory(vm)
    if desired.vmstate and why:
        warnings.append(f"{vm.label} {why}, so snapshot '{name}' is taken without its memory")
    description = desired.description or ""
    new = Snapshot(name, desired.now, description, vmstate, tree.parent)
    snapshots = {**tree.snapshots, name: new}
    after = replace(tree, snapshots=snapshots, parent=name)
    return _Change(after, [_take(vm, name, desired.description, vmstate)], warnings)


def _existing_snapshot(desired: DesiredSnapshots, vm: SnapshotVm, found: Snapshot) -> _Change:
    _require_complete(vm, found)
    tree = vm.tree
    name = found.name
    change = _Change(tree, [], [])
    if desired.vmstate and tree.running and vm.kind.saves_memory and not found.vmstate:
        label = f"Snapshot '{name}' of {vm.label}"
        change.warnings.append(f"{label} exists and is left as it is, without memory")
    description = desired.description
    if description is None or _stored(description) == _stored(found.description):
        return change
    described = replace(found, description=description)
    change.tree = replace(tree, snapshots={**tree.snapshots, name: described})
    change.steps.append(_describe(vm, name, description))
    return change


def _why_no_memory(vm: SnapshotVm) -> str:
    """Return why a snapshot cannot include the memory, or an empty text if it can.

    PVE does not save the memory of containers (pve-container: API2/LXC/Snapshot.pm).
    """
    if not vm.kind.saves_memory:
        return f"is a {vm.kind.noun}, whose memory PVE does not save"
    if not vm.tree.running:
        return "does not run"
    return ""


def _absent(desired: DesiredSnapshots, vm: SnapshotVm) -> Plan:
    if vm.template:
        return Plan()  # PVE does not convert a VM with snapshots to a template
    change = _Change(vm.tree, [], [])
    name = desired.name
    if name and name in vm.tree.snapshots:
        change.steps.append(_remove(vm, name))
        change.tree = without(vm.tree, [name])
    change += _retained(desired, vm, change.tree)
    return change.plan(vm)


def _rolled_back(desired: DesiredSnapshots, vm: SnapshotVm, rolled_back: bool) -> Plan:
    if vm.template:
        raise _template(vm, "roll back")
    name = desired.name or ""
    tree = vm.tree
    found = tree.snapshots.get(name)
    if found is None:
        existing = ", ".join(one.name for one in tree.by_age()) or "none"
        raise UnknownSnapshot(
            attempted=f"{vm.label} was not rolled back",
            answer=f"it has no snapshot '{name}'; it has {existing}",
            next_step="Check the snapshot's name",
            reason="unknown snapshot",
        )
    if rolled_back and tree.parent == name:
        return _Change(tree, _keep_tenant(vm), []).plan(vm)
    _require_complete(vm, found)
    change = _newer_removed(desired, vm, name)
    start = tree.running and desired.restart
    running = found.vmstate or start
    change.steps += [_roll_back(vm, found, start), *_keep_tenant(vm)]
    change.tree = replace(change.tree, parent=name, running=running)
    if tree.running and not running:
        outcome = "ran and stays stopped after the rollback"
        change.warnings.append(f"{vm.label} {outcome}, as restart=false says")
    return change.plan(vm)


def _newer_removed(desired: DesiredSnapshots, vm: SnapshotVm, name: str) -> _Change:
    """Return the removal of newer snapshots if a storage can only roll back to the newest one.

    Raises Conflict without `force`.
    """
    tree = vm.tree
    newer = tree.newer_than(name)
    limited = [disk for disk in vm.disks if newest_only(disk)]
    if not newer or not limited:
        return _Change(tree, [], [])
    if not desired.force:
        raise would_be_lost(vm, name, newer)
    names = [one.name for one in newer]
    removals = [_remove(vm, newer_name) for newer_name in reversed(names)]
    lost = ", ".join(names)
    warning = f"{vm.label}: the newer snapshots {lost} are deleted, as force=true says"
    return _Change(without(tree, names), removals, [warning])


def _retained(
    desired: DesiredSnapshots, vm: SnapshotVm, tree: SnapshotTree, spare: str | None = None
) -> _Change:
    """Return the deletions of the retention, and warnings about unfinished snapshots."""
    rule = desired.retention
    if rule is None:
        return _Change(tree, [], [])
    names = [one.name for one in expired(tree, rule, desired.now, spare)]
    warnings = []
    for one in snapshots_in_progress(tree, rule):
        label = f"{vm.label}: snapshot '{one.name}'"
        state = f"unfinished ({one.state})"
        warnings.append(f"{label} is {state} and left alone; remove it by its name")
    removals = [_remove(vm, name) for name in names]
    return _Change(without(tree, names), removals, warnings)


def without(tree: SnapshotTree, names: Iterable[str]) -> SnapshotTree:
    """Return the tree without these snapshots; their children get their parents, as in PVE."""
    snapshots = dict(tree.snapshots)
    parent = tree.parent
    for name in names:
        deleted = snapshots.pop(name)
        if parent == name:
            parent = deleted.parent
        for key, one in snapshots.items():
            if one.parent == name:
                snapshots[key] = replace(one, parent=deleted.parent)
    return replace(tree, snapshots=snapshots, parent=parent)


def difference(before: SnapshotTree, after: SnapshotTree) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the differences between two trees for readers, before and after.

    Times are left out: check mode cannot predict them.
    """
    old = _describe_tree(before)
    new = _describe_tree(after)
    changed = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    return _only(old, changed), _only(new, changed)


def _only(rows: Mapping[str, Any], keys: Collection[str]) -> dict[str, Any]:
    return {key: rows[key] for key in rows if key in keys}


def _describe_tree(tree: SnapshotTree) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for one in tree.snapshots.values():
        rows[f"snapshot {one.name}"] = {
            "description": _stored(one.description),
            "vmstate": one.vmstate,
            "parent": one.parent,
        }
    status = "running" if tree.running else "stopped"
    rows["current"] = {"parent": tree.parent, "status": status}
    return rows


def _stored(description: str) -> str:
    """Return a description as PVE stores it, without trailing blanks (QemuServer.pm)."""
    return description.rstrip()


def _path(vm: SnapshotVm, *rest: str) -> tuple[str | int, ...]:
    return (*vm.path, "snapshot", *rest)


def _take(vm: SnapshotVm, name: str, description: str | None, vmstate: bool) -> Step:
    data: Mapping[str, Any] = {
        "snapname": name,
        "description": description or None,
        "vmstate": vmstate or None,
    }
    summary = f"Take snapshot '{name}' of {vm.label}"
    if vmstate:
        summary += " with its memory"
    return Step(TAKE, summary, "POST", _path(vm), data)


def _describe(vm: SnapshotVm, name: str, description: str) -> Step:
    return Step(
        DESCRIBE,
        f"Change the description of snapshot '{name}' of {vm.label}",
        "PUT",
        _path(vm, name, "config"),
        {"description": description},
        is_task=False,
    )


def _remove(vm: SnapshotVm, name: str) -> Step:
    summary = f"Delete snapshot '{name}' of {vm.label}"
    return Step(REMOVE, summary, "DELETE", _path(vm, name))


def _roll_back(vm: SnapshotVm, found: Snapshot, start: bool) -> Step:
    summary = f"Roll {vm.label} back to snapshot '{found.name}'"
    data: dict[str, Any] = {}
    if start:
        data["start"] = True
    if found.vmstate:
        summary += ", which brings back its memory and lets it run"
    elif start:
        summary += " and start it again, because it ran"
    return Step(ROLL_BACK, summary, "POST", _path(vm, found.name, "rollback"), data)


def _keep_tenant(vm: SnapshotVm) -> list[Step]:
    """Return the step that restores the tenant's tags: a rollback sets the tags of the snapshot."""
    tags = vm.tags_after
    if tags is None:
        return []
    data = {"delete": "tags"}
    if tags:
        data = {"tags": ";".join(tags)}
    listed = ", ".join(tags) or "none"
    return [
        Step(
            TAG,
            f"Keep the tenant of {vm.label}: tags {listed}",
            "PUT",
            (*vm.path, "config"),
            data,
            is_task=False,
        )
    ]


def _require_complete(vm: SnapshotVm, found: Snapshot) -> None:
    """Raise Conflict for a snapshot that PVE has not finished."""
    if not found.state:
        return
    answer = f"it is unfinished (snapstate {found.state})"
    if vm.lock:
        answer += f", and the {vm.kind.noun} is locked ({vm.lock})"
    repair = f"unlock the {vm.kind.noun} ({vm.kind.tool} unlock) and remove it with state=absent"
    raise Conflict(
        attempted=f"Snapshot '{found.name}' of {vm.label} cannot be used",
        answer=answer,
        next_step=f"If no task works on it any more, {repair}",
        reason="unfinished snapshot",
    )


def _memory_bound(vm: SnapshotVm, name: str) -> NotSupported:
    return NotSupported(
        attempted=f"Could not take snapshot '{name}' of {vm.label} with its memory",
        answer=f"the memory of a VM with {', '.join(vm.memory_bound)} cannot be saved",
        next_step="Take it without vmstate, or while the VM is off",
        reason="no memory",
    )


def _template(vm: SnapshotVm, what: str) -> Conflict:
    return Conflict(
        attempted=f"Could not {what} {vm.label}",
        answer="it is a template",
        next_step=f"Use a {vm.kind.noun}, not a template",
        reason="is a template",
    )
