# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From a wish and a VM with its snapshots to a plan (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from .._core.errors import Conflict, NotFound, NotSupported
from .._vm.model import Plan, Step
from .model import DESCRIBE, REMOVE, ROLL_BACK, TAG, TAKE, Machine, Snapshot, Tree, Wish
from .names import expired, unfinished
from .storages import newest_only, would_be_lost


def make_plan(wish: Wish, machine: Machine, *, rolled_back: bool = False) -> Plan:
    """Return the steps that a VM's snapshots need. `rolled_back`: a rollback that was under way has just ended.

    Raises Conflict or NotFound for what PVE would refuse or what would lose something.
    """
    if wish.state == "present":
        return _present(wish, machine)
    if wish.state == "absent":
        return _absent(wish, machine)
    return _rolled_back(wish, machine, rolled_back)


def _present(wish: Wish, machine: Machine) -> Plan:
    name = wish.name or ""
    tree, steps, warnings = machine.tree, [], []
    found = tree.snapshots.get(name)
    if machine.template:
        raise _template(machine, "take a snapshot of")
    if found is None:
        vmstate = wish.vmstate and tree.running
        if vmstate and machine.memory_bound:
            raise _memory_bound(machine, name)
        if wish.vmstate and not vmstate:
            warnings.append(f"{machine.label} does not run, so snapshot '{name}' is taken without its memory")
        steps.append(_take(machine, name, wish.description, vmstate))
        tree = _with(tree, Snapshot(name, wish.now, wish.description or "", vmstate, tree.parent))
    else:
        _require_complete(machine, found)
        if wish.vmstate and not found.vmstate and tree.running:
            warnings.append(f"Snapshot '{name}' of {machine.label} exists and is left as it is, without memory")
        if wish.description is not None and _text(wish.description) != _text(found.description):
            steps.append(_describe(machine, name, wish.description))
            tree = _with(tree, replace(found, description=wish.description), moves=False)
    tree, removals, more = _prune(wish, machine, tree, spare=name)
    return _plan(machine, tree, steps + removals, warnings + more)


def _absent(wish: Wish, machine: Machine) -> Plan:
    if machine.template:
        return Plan()  # PVE makes no template of a VM that has snapshots
    tree, steps = machine.tree, []
    if wish.name and wish.name in tree.snapshots:
        steps.append(_remove(machine, wish.name))
        tree = without(tree, [wish.name])
    tree, removals, warnings = _prune(wish, machine, tree)
    return _plan(machine, tree, steps + removals, warnings)


def _rolled_back(wish: Wish, machine: Machine, settled: bool) -> Plan:
    name = wish.name or ""
    tree = machine.tree
    found = tree.snapshots.get(name)
    if machine.template:
        raise _template(machine, "roll back")
    if found is None:
        raise NotFound(
            attempted=f"{machine.label} was not rolled back",
            answer=f"it has no snapshot '{name}'; it has {', '.join(one.name for one in tree.by_age()) or 'none'}",
            next_step="Check the snapshot's name",
            reason="unknown snapshot",
        )
    if settled and tree.parent == name:
        return _plan(machine, tree, _keep_tenant(machine), [])
    _require_complete(machine, found)
    newer = tree.newer_than(name)
    steps, warnings = [], []
    if newer and any(newest_only(disk) for disk in machine.disks):
        if not wish.force:
            raise would_be_lost(machine, name, newer)
        steps += [_remove(machine, one.name) for one in reversed(newer)]
        tree = without(tree, [one.name for one in newer])
        lost = ", ".join(one.name for one in newer)
        warnings.append(f"{machine.label}: the newer snapshots {lost} are deleted, as force=true says")
    start = tree.running and wish.restart
    steps += [_roll_back(machine, found, start), *_keep_tenant(machine)]
    after = replace(tree, parent=name, running=found.vmstate or start)
    if tree.running and not after.running:
        warnings.append(f"{machine.label} ran and stays stopped after the rollback, as restart=false says")
    return _plan(machine, after, steps, warnings)


def _prune(wish: Wish, machine: Machine, tree: Tree, spare: str | None = None) -> tuple[Tree, list[Step], list[str]]:
    """Return the tree after the retention, the steps of it and what it leaves alone although it matches."""
    if wish.retention is None:
        return tree, [], []
    gone = expired(tree, wish.retention, wish.now, spare)
    left = [
        f"{machine.label}: snapshot '{one.name}' is unfinished ({one.state}) and left alone; remove it by its name"
        for one in unfinished(tree, wish.retention)
    ]
    return without(tree, [one.name for one in gone]), [_remove(machine, one.name) for one in gone], left


def without(tree: Tree, names: Iterable[str]) -> Tree:
    """Return the tree as PVE leaves it when these snapshots are deleted: what stood on them stands on their parents."""
    snapshots, parent = dict(tree.snapshots), tree.parent
    for name in names:
        gone = snapshots.pop(name)
        snapshots = {
            key: replace(one, parent=gone.parent) if one.parent == name else one for key, one in snapshots.items()
        }
        parent = gone.parent if parent == name else parent
    return replace(tree, snapshots=snapshots, parent=parent)


def difference(before: Tree, after: Tree) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parts of two trees that differ, for people. Times are left out: check mode cannot foresee them."""
    sides = _shown(before), _shown(after)
    shown: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for key in sides[0].keys() | sides[1].keys():
        if sides[0].get(key) != sides[1].get(key):
            for side, target in zip(sides, shown, strict=True):
                if key in side:
                    target[key] = side[key]
    return shown


def _shown(tree: Tree) -> dict[str, Any]:
    rows: dict[str, Any] = {
        f"snapshot {one.name}": {"description": _text(one.description), "vmstate": one.vmstate, "parent": one.parent}
        for one in tree.snapshots.values()
    }
    return {**rows, "current": {"parent": tree.parent, "status": "running" if tree.running else "stopped"}}


def _plan(machine: Machine, after: Tree, steps: list[Step], warnings: list[str]) -> Plan:
    before, then = difference(machine.tree, after) if steps else ({}, {})
    return Plan(tuple(steps), before, then, warnings=tuple(warnings))


def _with(tree: Tree, one: Snapshot, *, moves: bool = True) -> Tree:
    return replace(tree, snapshots={**tree.snapshots, one.name: one}, parent=one.name if moves else tree.parent)


def _text(value: str) -> str:
    return value.rstrip("\n")


def _path(machine: Machine, *rest: str) -> tuple[str | int, ...]:
    return ("nodes", machine.node, "qemu", machine.vmid, "snapshot", *rest)


def _take(machine: Machine, name: str, description: str | None, vmstate: bool) -> Step:
    data: Mapping[str, Any] = {"snapname": name, "description": description or None, "vmstate": vmstate or None}
    memory = " with its memory" if vmstate else ""
    return Step(TAKE, f"Take snapshot '{name}' of {machine.label}{memory}", "POST", _path(machine), data)


def _describe(machine: Machine, name: str, description: str) -> Step:
    said = f"Change the description of snapshot '{name}' of {machine.label}"
    return Step(DESCRIBE, said, "PUT", _path(machine, name, "config"), {"description": description}, is_task=False)


def _remove(machine: Machine, name: str) -> Step:
    return Step(REMOVE, f"Delete snapshot '{name}' of {machine.label}", "DELETE", _path(machine, name))


def _roll_back(machine: Machine, found: Snapshot, start: bool) -> Step:
    said = f"Roll {machine.label} back to snapshot '{found.name}'"
    if found.vmstate:
        said += ", which brings back its memory and lets it run"
    elif start:
        said += " and start it again, because it ran"
    data = {"start": True} if start else {}
    return Step(ROLL_BACK, said, "POST", _path(machine, found.name, "rollback"), data)


def _keep_tenant(machine: Machine) -> list[Step]:
    """A rollback brings back the tags of the snapshot too, and with them whose the VM was then: that stays as it is."""
    if machine.tags_after is None:
        return []
    said = f"Keep whose {machine.label} is: tags {', '.join(machine.tags_after) or 'none'}"
    path = ("nodes", machine.node, "qemu", machine.vmid, "config")
    data = {"tags": ";".join(machine.tags_after)} if machine.tags_after else {"delete": "tags"}
    return [Step(TAG, said, "PUT", path, data, is_task=False)]


def _require_complete(machine: Machine, found: Snapshot) -> None:
    if found.state:
        raise Conflict(
            attempted=f"Snapshot '{found.name}' of {machine.label} cannot be used",
            answer=f"it is unfinished (snapstate {found.state})"
            + (f", and the VM is locked ({machine.lock})" if machine.lock else ""),
            next_step="If no task works on it any more, unlock the VM (qm unlock) and remove it with state=absent",
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
