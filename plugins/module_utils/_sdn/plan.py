# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that change the objects of SDN into the desired ones (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .._core.marks import marked_tag
from .._resource.plan import Plan, Step
from .forms import data_of, view_of
from .model import (
    CONTROLLERS,
    DNS,
    IPAMS,
    KEYS,
    NOUNS,
    PENDING_SECTIONS,
    SECRETS,
    SUBNETS,
    VNETS,
    ZONES,
    Desired,
    Entry,
    Sections,
)

LOCK, APPLY, RELEASE, OBJECT = "lock", "apply", "release", "object"
ROOT = ("cluster", "sdn")
_REMOVED_FIRST = (SUBNETS, VNETS, ZONES)
_WRITTEN = (IPAMS, DNS, CONTROLLERS, ZONES, VNETS, SUBNETS)
_REMOVED_LAST = (CONTROLLERS, IPAMS, DNS)
BUILT_IN = {IPAMS: ("pve",)}
"""Objects that Proxmox VE has by itself."""


@dataclass(frozen=True)
class ObjectStep(Step):
    """A step about one object; `result` is the object after it, None if it is removed."""

    kind: str = ""
    name: str = ""
    result: Entry | None = None


def after_plan(running: Sections, desired: Desired) -> dict[str, dict[str, Entry]]:
    """Return the objects that a task leaves."""
    after: dict[str, dict[str, Entry]] = {}
    for kind, section in running.items():
        after[kind] = _after(kind, section, desired, running)
    return after


def _after(
    kind: str, section: Mapping[str, Entry], desired: Desired, running: Sections
) -> dict[str, Entry]:
    declared = desired.sections.get(kind)
    if declared is None:
        return dict(section)
    kept = dict(section)
    if kind in desired.exact:
        stays = {*declared, *BUILT_IN.get(kind, ()), *_of_tenants(kind, running)}
        kept = {name: one for name, one in section.items() if name in stays}
    for name, entry in declared.items():
        if entry is None:
            kept.pop(name, None)
            continue
        merged = {**section.get(name, {}), **entry}
        kept[name] = {key: value for key, value in merged.items() if value != ""}
    return kept


def _of_tenants(kind: str, running: Sections) -> set[str]:
    """Return the VNets of tenants or their subnets, which module tenant creates and removes."""
    vnets = {
        name for name, entry in running[VNETS].items() if marked_tag(entry.get("alias")) is not None
    }
    if kind == SUBNETS:
        return {name for name, one in running[SUBNETS].items() if one.get("vnet") in vnets}
    return vnets if kind == VNETS else set()


def plan_sdn(
    running: Sections, after: Sections, *, has_lock: bool, must_apply: bool, is_interrupted: bool
) -> Plan:
    """Return the plan: lock, write, apply, and release.

    `must_apply`: a node does not run the configuration yet. `is_interrupted`: a run of this user
    did not release its lock.
    """
    steps: list[Step] = list(object_steps(running, after))
    kinds = {step.kind for step in steps if isinstance(step, ObjectStep)}
    if must_apply or kinds & set(PENDING_SECTIONS):
        steps.append(Step(APPLY, "Apply the SDN configuration", "PUT", ROOT))
    if not steps and not is_interrupted:
        return Plan()
    if has_lock:
        path = (*ROOT, "lock")
        lock = Step(LOCK, "Lock the SDN configuration", "POST", path, is_task=False)
        release = Step(RELEASE, "Release the SDN lock", "DELETE", path, is_task=False)
        steps = [lock, *steps, release]
    before_view, after_view = view_of(running), view_of(after)
    changed = [kind for kind in after if running[kind] != after[kind]]
    return Plan(
        tuple(steps),
        {kind: before_view[kind] for kind in changed},
        {kind: after_view[kind] for kind in changed},
    )


def object_steps(running: Sections, after: Sections) -> Iterator[ObjectStep]:
    """Yield the writes in the order that references between objects need."""
    for kind in _REMOVED_FIRST:
        yield from _removals(kind, running, after)
    for kind in _WRITTEN:
        for name, entry in after.get(kind, {}).items():
            origin = running[kind].get(name)
            if origin is None:
                yield _creation(kind, name, entry)
            elif origin != entry:
                yield _update(kind, name, origin, entry)
    for kind in _REMOVED_LAST:
        yield from _removals(kind, running, after)


def _removals(kind: str, running: Sections, after: Sections) -> Iterator[ObjectStep]:
    for name, entry in running.get(kind, {}).items():
        if name not in after[kind]:
            summary = f"Remove {NOUNS[kind]} '{name}'"
            path = (*_base(kind, entry), name)
            yield _step(summary, "DELETE", path, {}, (kind, name, None))


def _base(kind: str, entry: Entry) -> tuple[str, ...]:
    if kind == SUBNETS:
        return (*ROOT, VNETS, entry["vnet"], SUBNETS)
    return (*ROOT, kind)


def _creation(kind: str, name: str, entry: Entry) -> ObjectStep:
    data = {KEYS[kind]: name, **data_of(entry)}
    if kind == SUBNETS:
        _zone, network, mask = name.split("-", 2)
        data.update(subnet=f"{network}/{mask}", type="subnet")
        del data["vnet"]
    summary = f"Create {NOUNS[kind]} '{name}'{_words(entry)}"
    return _step(summary, "POST", _base(kind, entry), data, (kind, name, entry))


def _update(kind: str, name: str, origin: Entry, entry: Entry) -> ObjectStep:
    changes = {key: value for key, value in entry.items() if origin.get(key) != value}
    gone = sorted(origin.keys() - entry.keys())
    data = data_of(changes)
    if gone:
        data["delete"] = ",".join(gone)
    summary = f"Change {NOUNS[kind]} '{name}'{_words(changes, gone)}"
    return _step(summary, "PUT", (*_base(kind, entry), name), data, (kind, name, entry))


def _words(entry: Entry, gone: list[str] | None = None) -> str:
    words = [f"{key}={'***' if key in SECRETS else value}" for key, value in sorted(entry.items())]
    words += [f"remove {key}" for key in gone or ()]
    return f": {', '.join(words)}" if words else ""


def _step(
    summary: str,
    method: str,
    path: tuple[str, ...],
    data: Mapping[str, Any],
    subject: tuple[str, str, Entry | None],
) -> ObjectStep:
    kind, name, result = subject
    step = Step(OBJECT, summary, method, path, data, is_task=False)
    return ObjectStep(**vars(step), kind=kind, name=name, result=result)
