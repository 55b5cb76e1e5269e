# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans the steps from the present snapshots of a VM to the desired ones (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..._foundation.core.arguments.options import did_you_mean
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
    """The change of a VM's snapshots: the tree after its steps, the steps, and warnings."""

    vm: SnapshotVm
    tree: SnapshotTree
    steps: list[Step] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def remove(self, names: Sequence[str]) -> None:
        """Add the removal of these snapshots, in this order."""
        for name in names:
            summary = f"Delete snapshot '{name}' of {self.vm.label}"
            self.steps.append(Step(REMOVE, summary, "DELETE", _path(self.vm, name)))
        self.tree = without(self.tree, names)

    def plan(self) -> Plan:
        """Return the plan; without steps, it has no diff."""
        if not self.steps:
            return Plan(warnings=tuple(self.warnings))
        before, after = difference(self.vm.tree, self.tree)
        return Plan(tuple(self.steps), before, after, warnings=tuple(self.warnings))


def plan_snapshots(desired: DesiredSnapshots, vm: SnapshotVm, *, rolled_back: bool = False) -> Plan:
    """Return the steps from a VM's snapshots to the desired ones.

    `rolled_back` is true if a rollback that was in progress has just succeeded. Raises Conflict,
    NotFound or NotSupported if PVE would refuse a step or if data would be lost.
    """
    change = _Change(vm, vm.tree)
    name = desired.name or ""
    found = vm.tree.snapshots.get(name)
    if desired.state == "present":
        if vm.template:
            raise _template(vm, "take a snapshot of")
        if found is None:
            _take(change, desired, name)
        else:
            _describe(change, desired, found)
        _retain(change, desired, spare=name)
    elif desired.state == "rolled_back":
        _roll_back(change, desired, rolled_back)
    elif not vm.template:  # PVE does not convert a VM with snapshots to a template
        if found is not None:
            change.remove([name])
        _retain(change, desired)
    return change.plan()


def _take(change: _Change, desired: DesiredSnapshots, name: str) -> None:
    vm, tree = change.vm, change.tree
    vmstate = desired.vmstate and tree.running and vm.kind.saves_memory
    if vmstate and vm.memory_bound:
        raise NotSupported(
            f"Could not take snapshot '{name}' of {vm.label} with its memory: the memory of a VM "
            f"with {', '.join(vm.memory_bound)} cannot be saved",
            "Take it without vmstate, or while the VM is off",
            "no memory",
        )
    why = "" if tree.running else "does not run"
    if not vm.kind.saves_memory:  # pve-container: API2/LXC/Snapshot.pm
        why = f"is a {vm.kind.noun}, whose memory PVE does not save"
    if desired.vmstate and why:
        text = f"{vm.label} {why}, so snapshot '{name}' is taken without its memory"
        change.warnings.append(text)
    new = Snapshot(name, desired.now, desired.description or "", vmstate, tree.parent)
    change.tree = replace(tree, snapshots={**tree.snapshots, name: new}, parent=name)
    data: Mapping[str, Any] = {
        "snapname": name,
        "description": desired.description or None,
        "vmstate": vmstate or None,
    }
    summary = f"Take snapshot '{name}' of {vm.label}"
    if vmstate:
        summary += " with its memory"
    change.steps.append(Step(TAKE, summary, "POST", _path(vm), data))


def _describe(change: _Change, desired: DesiredSnapshots, found: Snapshot) -> None:
    """Add the new description of an existing snapshot, if it differs."""
    vm, tree, name = change.vm, change.tree, found.name
    _require_complete(vm, found)
    if desired.vmstate and tree.running and vm.kind.saves_memory and not found.vmstate:
        label = f"Snapshot '{name}' of {vm.label}"
        change.warnings.append(f"{label} exists and is left as it is, without memory")
    description = desired.description
    if description is None or _stored(description) == _stored(found.description):
        return
    described = replace(found, description=description)
    change.tree = replace(tree, snapshots={**tree.snapshots, name: described})
    summary = f"Change the description of snapshot '{name}' of {vm.label}"
    path, data = _path(vm, name, "config"), {"description": description}
    change.steps.append(Step(DESCRIBE, summary, "PUT", path, data, is_task=False))


def _roll_back(change: _Change, desired: DesiredSnapshots, rolled_back: bool) -> None:
    vm, tree, name = change.vm, change.tree, desired.name or ""
    if vm.template:
        raise _template(vm, "roll back")
    found = tree.snapshots.get(name)
    if found is None:
        existing = ", ".join(one.name for one in tree.by_age()) or "none"
        hint = did_you_mean(name, tree.snapshots)
        raise UnknownSnapshot(
            f"{vm.label} was not rolled back: it has no snapshot '{name}'; it has {existing}{hint}",
            "Check the snapshot's name",
            "unknown snapshot",
        )
    if rolled_back and tree.parent == name:
        change.steps += _keep_tenant(vm)
        return
    _require_complete(vm, found)
    _remove_newer(change, desired, name)
    start = tree.running and desired.restart
    running = found.vmstate or start
    summary = f"Roll {vm.label} back to snapshot '{name}'"
    if found.vmstate:
        summary += ", which brings back its memory and lets it run"
    elif start:
        summary += " and start it again, because it ran"
    data = {"start": True} if start else {}
    step = Step(ROLL_BACK, summary, "POST", _path(vm, name, "rollback"), data)
    change.steps += [step, *_keep_tenant(vm)]
    change.tree = replace(change.tree, parent=name, running=running)
    if tree.running and not running:
        outcome = "ran and stays stopped after the rollback"
        change.warnings.append(f"{vm.label} {outcome}, as restart=false says")


def _remove_newer(change: _Change, desired: DesiredSnapshots, name: str) -> None:
    """Add the removal of newer snapshots if a storage can only roll back to the newest one.

    Raises Conflict without `force`.
    """
    vm, newer = change.vm, change.tree.newer_than(name)
    if not newer or not any(newest_only(disk) for disk in vm.disks):
        return
    if not desired.force:
        raise would_be_lost(vm, name, newer)
    names = [one.name for one in newer]
    change.remove(names[::-1])
    lost = ", ".join(names)
    text = f"{vm.label}: the newer snapshots {lost} are deleted, as force=true says"
    change.warnings.append(text)


def _retain(change: _Change, desired: DesiredSnapshots, spare: str | None = None) -> None:
    """Add the deletions of the retention, and warnings about unfinished snapshots."""
    rule, tree = desired.retention, change.tree
    if rule is None:
        return
    for one in snapshots_in_progress(tree, rule):
        label = f"{change.vm.label}: snapshot '{one.name}'"
        state = f"unfinished ({one.state})"
        text = f"{label} is {state} and left alone; remove it by its name"
        change.warnings.append(text)
    change.remove([one.name for one in expired(tree, rule, desired.now, spare)])


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
    old, new = _describe_tree(before), _describe_tree(after)
    return (
        {key: row for key, row in old.items() if new.get(key) != row},
        {key: row for key, row in new.items() if old.get(key) != row},
    )


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


def _keep_tenant(vm: SnapshotVm) -> list[Step]:
    """Return the step that restores the tenant's tags: a rollback sets the tags of the snapshot."""
    tags = vm.tags_after
    if tags is None:
        return []
    data = {"tags": ";".join(tags)} if tags else {"delete": "tags"}
    summary = f"Keep the tenant of {vm.label}: tags {', '.join(tags) or 'none'}"
    return [Step(TAG, summary, "PUT", (*vm.path, "config"), data, is_task=False)]


def _require_complete(vm: SnapshotVm, found: Snapshot) -> None:
    """Raise Conflict for a snapshot that PVE has not finished."""
    if not found.state:
        return
    answer = f"it is unfinished (snapstate {found.state})"
    if vm.lock:
        answer += f", and the {vm.kind.noun} is locked ({vm.lock})"
    repair = f"unlock the {vm.kind.noun} ({vm.kind.tool} unlock) and remove it with state=absent"
    raise Conflict(
        f"Snapshot '{found.name}' of {vm.label} cannot be used: {answer}",
        f"If no task works on it any more, {repair}",
        "unfinished snapshot",
    )


def _template(vm: SnapshotVm, what: str) -> Conflict:
    return Conflict(
        f"Could not {what} {vm.label}: it is a template",
        f"Use a {vm.kind.noun}, not a template",
        "is a template",
    )
