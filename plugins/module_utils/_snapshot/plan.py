# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the desired snapshots and a VM with its own to a plan (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .._core.errors import Conflict, NotSupported, UnknownSnapshot
from .._resource.plan import Plan, Step
from .model import (
    DESCRIBE,
    REMOVE,
    ROLL_BACK,
    TAG,
    TAKE,
    Desired,
    Machine,
    Snapshot,
    Tree,
)
from .names import expired, unfinished
from .storages import newest_only, would_be_lost


@dataclass
class _Change:
    """The tree after some steps, the steps, and warnings."""

    tree: Tree
    steps: list[Step]
    warnings: list[str]

    def __add__(self, after: _Change) -> _Change:
        """Return both changes, one after the other."""
        steps = self.steps + after.steps
        warnings = self.warnings + after.warnings
        return _Change(after.tree, steps, warnings)

    def plan(self, machine: Machine) -> Plan:
        """Return the plan; without a step nothing differs."""
        if not self.steps:
            return Plan(warnings=tuple(self.warnings))
        before, after = difference(machine.tree, self.tree)
        return Plan(
            tuple(self.steps),
            before,
            after,
            warnings=tuple(self.warnings),
        )


def make_plan(
    desired: Desired,
    machine: Machine,
    *,
    rolled_back: bool = False,
) -> Plan:
    """Return the steps from a VM's snapshots to the desired ones.

    `rolled_back`: a rollback that was in progress has just ended. Raises Conflict, NotFound or
    NotSupported for what PVE would refuse or what would lose something.
    """
    if desired.state == "present":
        return _present(desired, machine)
    if desired.state == "absent":
        return _absent(desired, machine)
    return _rolled_back(desired, machine, rolled_back)


def _present(desired: Desired, machine: Machine) -> Plan:
    if machine.template:
        raise _template(machine, "take a snapshot of")
    name = desired.name or ""
    found = machine.tree.snapshots.get(name)
    if found is None:
        change = _new_snapshot(desired, machine, name)
    else:
        change = _existing_snapshot(desired, machine, found)
    change += _retained(desired, machine, change.tree, spare=name)
    return change.plan(machine)


def _new_snapshot(
    desired: Desired,
    machine: Machine,
    name: str,
) -> _Change:
    tree = machine.tree
    vmstate = desired.vmstate and tree.running
    if vmstate and machine.memory_bound:
        raise _memory_bound(machine, name)
    warnings = []
    if desired.vmstate and not tree.running:
        reason = f"{machine.label} does not run"
        warnings.append(f"{reason}, so snapshot '{name}' is taken without its memory")
    description = desired.description or ""
    new = Snapshot(name, desired.now, description, vmstate, tree.parent)
    snapshots = {**tree.snapshots, name: new}
    after = replace(tree, snapshots=snapshots, parent=name)
    return _Change(
        after,
        [
            _take(
                machine,
                name,
                desired.description,
                vmstate,
            )
        ],
        warnings,
    )


def _existing_snapshot(
    desired: Desired,
    machine: Machine,
    found: Snapshot,
) -> _Change:
    _require_complete(machine, found)
    tree = machine.tree
    name = found.name
    change = _Change(tree, [], [])
    if desired.vmstate and tree.running and not found.vmstate:
        label = f"Snapshot '{name}' of {machine.label}"
        change.warnings.append(f"{label} exists and is left as it is, without memory")
    description = desired.description
    if description is None or _stored(description) == _stored(found.description):
        return change
    described = replace(found, description=description)
    change.tree = replace(tree, snapshots={**tree.snapshots, name: described})
    change.steps.append(_describe(machine, name, description))
    return change


def _absent(desired: Desired, machine: Machine) -> Plan:
    if machine.template:
        return Plan()  # PVE converts no VM that has snapshots to a template
    change = _Change(machine.tree, [], [])
    name = desired.name
    if name and name in machine.tree.snapshots:
        change.steps.append(_remove(machine, name))
        change.tree = without(machine.tree, [name])
    change += _retained(desired, machine, change.tree)
    return change.plan(machine)


def _rolled_back(
    desired: Desired,
    machine: Machine,
    rolled_back: bool,
) -> Plan:
    if machine.template:
        raise _template(machine, "roll back")
    name = desired.name or ""
    tree = machine.tree
    found = tree.snapshots.get(name)
    if found is None:
        existing = ", ".join(one.name for one in tree.by_age()) or "none"
        raise UnknownSnapshot(
            attempted=f"{machine.label} was not rolled back",
            answer=f"it has no snapshot '{name}'; it has {existing}",
            next_step="Check the snapshot's name",
            reason="unknown snapshot",
        )
    if rolled_back and tree.parent == name:
        return _Change(tree, _keep_tenant(machine), []).plan(machine)
    _require_complete(machine, found)
    change = _newer_removed(desired, machine, name)
    start = tree.running and desired.restart
    running = found.vmstate or start
    change.steps += [_roll_back(machine, found, start), *_keep_tenant(machine)]
    change.tree = replace(change.tree, parent=name, running=running)
    if tree.running and not running:
        outcome = "ran and stays stopped after the rollback"
        change.warnings.append(f"{machine.label} {outcome}, as restart=false says")
    return change.plan(machine)


def _newer_removed(
    desired: Desired,
    machine: Machine,
    name: str,
) -> _Change:
    """Return the removal of newer snapshots where a storage can only go back to the newest one.

    Raises Conflict without `force`.
    """
    tree = machine.tree
    newer = tree.newer_than(name)
    limited = [disk for disk in machine.disks if newest_only(disk)]
    if not newer or not limited:
        return _Change(tree, [], [])
    if not desired.force:
        raise would_be_lost(machine, name, newer)
    names = [one.name for one in newer]
    removals = [_remove(machine, newer_name) for newer_name in reversed(names)]
    lost = ", ".join(names)
    warning = f"{machine.label}: the newer snapshots {lost} are deleted, as force=true says"
    return _Change(without(tree, names), removals, [warning])


def _retained(
    desired: Desired,
    machine: Machine,
    tree: Tree,
    spare: str | None = None,
) -> _Change:
    """Return what the retention deletes, and warnings about unfinished snapshots that match it."""
    rule = desired.retention
    if rule is None:
        return _Change(tree, [], [])
    names = [one.name for one in expired(tree, rule, desired.now, spare)]
    warnings = []
    for one in unfinished(tree, rule):
        label = f"{machine.label}: snapshot '{one.name}'"
        state = f"unfinished ({one.state})"
        warnings.append(f"{label} is {state} and left alone; remove it by its name")
    removals = [_remove(machine, name) for name in names]
    return _Change(without(tree, names), removals, warnings)


def without(tree: Tree, names: Iterable[str]) -> Tree:
    """Return the tree without snapshots: PVE gives their children to their parents."""
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


def difference(before: Tree, after: Tree) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what differs between two trees, before and after, for people.

    Times are left out: check mode cannot predict them.
    """
    old = _shown(before)
    new = _shown(after)
    changed = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    return _only(old, changed), _only(new, changed)


def _only(rows: Mapping[str, Any], keys: Collection[str]) -> dict[str, Any]:
    return {key: rows[key] for key in rows if key in keys}


def _shown(tree: Tree) -> dict[str, Any]:
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
    """Return a description as PVE stores it, without trailing blanks.

    Source: QemuServer.pm, parse_vm_config.
    """
    return description.rstrip()


def _path(machine: Machine, *rest: str) -> tuple[str | int, ...]:
    return (*machine.path, "snapshot", *rest)


def _take(
    machine: Machine,
    name: str,
    description: str | None,
    vmstate: bool,
) -> Step:
    data: Mapping[str, Any] = {
        "snapname": name,
        "description": description or None,
        "vmstate": vmstate or None,
    }
    summary = f"Take snapshot '{name}' of {machine.label}"
    if vmstate:
        summary += " with its memory"
    return Step(TAKE, summary, "POST", _path(machine), data)


def _describe(machine: Machine, name: str, description: str) -> Step:
    return Step(
        DESCRIBE,
        f"Change the description of snapshot '{name}' of {machine.label}",
        "PUT",
        _path(machine, name, "config"),
        {"description": description},
        is_task=False,
    )


def _remove(machine: Machine, name: str) -> Step:
    summary = f"Delete snapshot '{name}' of {machine.label}"
    return Step(REMOVE, summary, "DELETE", _path(machine, name))


def _roll_back(machine: Machine, found: Snapshot, start: bool) -> Step:
    summary = f"Roll {machine.label} back to snapshot '{found.name}'"
    data: dict[str, Any] = {}
    if start:
        data["start"] = True
    if found.vmstate:
        summary += ", which brings back its memory and lets it run"
    elif start:
        summary += " and start it again, because it ran"
    return Step(
        ROLL_BACK,
        summary,
        "POST",
        _path(
            machine,
            found.name,
            "rollback",
        ),
        data,
    )


def _keep_tenant(machine: Machine) -> list[Step]:
    """Return the step that restores the tenant's tags: a rollback sets the tags of the snapshot."""
    tags = machine.tags_after
    if tags is None:
        return []
    data = {"delete": "tags"}
    if tags:
        data = {"tags": ";".join(tags)}
    listed = ", ".join(tags) or "none"
    return [
        Step(
            TAG,
            f"Keep the tenant of {machine.label}: tags {listed}",
            "PUT",
            (*machine.path, "config"),
            data,
            is_task=False,
        )
    ]


def _require_complete(machine: Machine, found: Snapshot) -> None:
    """Raise Conflict for a snapshot that PVE has not finished."""
    if not found.state:
        return
    answer = f"it is unfinished (snapstate {found.state})"
    if machine.lock:
        answer += f", and the VM is locked ({machine.lock})"
    repair = "unlock the VM (qm unlock) and remove it with state=absent"
    raise Conflict(
        attempted=f"Snapshot '{found.name}' of {machine.label} cannot be used",
        answer=answer,
        next_step=f"If no task works on it any more, {repair}",
        reason="unfinished snapshot",
    )


def _memory_bound(machine: Machine, name: str) -> NotSupported:
    return NotSupported(
        attempted=f"Could not take snapshot '{name}' of {machine.label} with its memory",
        answer=f"the memory of a VM with {', '.join(machine.memory_bound)} cannot be saved",
        next_step="Take it without vmstate, or while the VM is off",
        reason="no memory",
    )


def _template(machine: Machine, what: str) -> Conflict:
    return Conflict(
        attempted=f"Could not {what} {machine.label}",
        answer="it is a template",
        next_step="Use a VM, not a template",
        reason="is a template",
    )
