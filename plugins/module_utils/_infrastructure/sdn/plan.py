# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that change the objects of SDN into the desired ones (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..._foundation.core.marks import marked_tag
from ..._foundation.resource.plan import Plan, Step
from .forms import data_of, view_of
from .model import (
    CONTROLLERS,
    DNS,
    FABRIC_NODES,
    FABRIC_SECTIONS,
    FABRICS,
    IPAMS,
    KEYS,
    NOUNS,
    PENDING_SECTIONS,
    SECRETS,
    SUBNETS,
    VNETS,
    ZONES,
    DesiredSdn,
    SdnEntry,
    Sections,
)

LOCK, APPLY, RELEASE, OBJECT = "lock", "apply", "release", "object"
ROOT = ("cluster", "sdn")
_REMOVED_FIRST = (SUBNETS, VNETS, ZONES)
_WRITTEN = (IPAMS, DNS, FABRICS, FABRIC_NODES, CONTROLLERS, ZONES, VNETS, SUBNETS)
_REMOVED_LAST = (CONTROLLERS, FABRIC_NODES, FABRICS, IPAMS, DNS)
PROTOCOLS = ("openfabric", "ospf")
"""Protocols of fabrics that the module manages; later versions of Proxmox VE have more."""
_PREFIXES = ("ip_prefix", "ip6_prefix")
BUILT_IN = {IPAMS: ("pve",)}
"""Built-in objects of Proxmox VE."""


@dataclass(frozen=True)
class ObjectStep(Step):
    """A step that changes one object; `result` is the object after it, None if it is removed."""

    kind: str = ""
    name: str = ""
    result: SdnEntry | None = None


def after_plan(running: Sections, desired: DesiredSdn) -> dict[str, dict[str, SdnEntry]]:
    """Return the objects after the task."""
    after = {kind: _after(kind, section, desired, running) for kind, section in running.items()}
    if FABRICS in running:
        # A fabric is removed with its nodes, except nodes that the task declares.
        declared = desired.sections.get(FABRIC_NODES) or ()
        for name, entry in [*after[FABRIC_NODES].items()]:
            if name not in declared and entry.get("fabric_id") not in after[FABRICS]:
                del after[FABRIC_NODES][name]
    return after


def _after(
    kind: str, section: Mapping[str, SdnEntry], desired: DesiredSdn, running: Sections
) -> dict[str, SdnEntry]:
    declared = desired.sections.get(kind)
    if declared is None:
        return dict(section)
    kept = dict(section)
    if kind in desired.exact:
        preserved = {*declared, *BUILT_IN.get(kind, ()), *_of_others(kind, running)}
        kept = {name: one for name, one in section.items() if name in preserved}
    for name, entry in declared.items():
        if entry is None:
            kept.pop(name, None)
            continue
        merged = {**section.get(name, {}), **entry}
        kept[name] = {key: value for key, value in merged.items() if value != ""}
    return kept


def _of_others(kind: str, running: Sections) -> set[str]:
    """Return the unlisted objects that an exact section keeps.

    These are VNets of tenants and their subnets, which module tenant creates and removes, and
    fabrics with a protocol that this module does not manage, with their nodes.
    """
    if kind in FABRIC_SECTIONS:
        fabrics = unmanaged_fabrics(running)
        if kind == FABRICS:
            return fabrics
        nodes = running[FABRIC_NODES].items()
        return {name for name, one in nodes if one.get("fabric_id") in fabrics}
    vnets = {
        name for name, entry in running[VNETS].items() if marked_tag(entry.get("alias")) is not None
    }
    if kind == SUBNETS:
        return {name for name, one in running[SUBNETS].items() if one.get("vnet") in vnets}
    return vnets if kind == VNETS else set()


def unmanaged_fabrics(running: Sections) -> set[str]:
    """Return the fabrics whose protocol the module does not manage."""
    fabrics = running.get(FABRICS, {}).items()
    return {name for name, one in fabrics if one.get("protocol") not in PROTOCOLS}


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
    """Yield the writes in the order that references between objects require."""
    for kind in _REMOVED_FIRST:
        yield from _removals(kind, running, after)
    for name in _recreated(running, after):
        yield _removal(FABRIC_NODES, name, running[FABRIC_NODES][name])
    for kind in _WRITTEN:
        yield from _writes(kind, running, after)
    for kind in _REMOVED_LAST:
        yield from _removals(kind, running, after)


def _recreated(running: Sections, after: Sections) -> list[str]:
    """Return the fabric nodes that are removed and created again.

    With each write of a fabric, Proxmox VE checks the addresses of all nodes. So the prefix of a
    fabric can change only while it has no nodes (proxmox-ve-rs: proxmox-ve-config,
    src/sdn/fabric/mod.rs, validate).
    """
    moved = set()
    for name, entry in after.get(FABRICS, {}).items():
        origin = running[FABRICS].get(name, entry)
        if any(origin.get(key) != entry.get(key) for key in _PREFIXES):
            moved.add(name)
    nodes = running.get(FABRIC_NODES, {}).items()
    return [name for name, entry in nodes if entry.get("fabric_id") in moved]


def _writes(kind: str, running: Sections, after: Sections) -> Iterator[ObjectStep]:
    recreated = _recreated(running, after) if kind == FABRIC_NODES else []
    for name, entry in after.get(kind, {}).items():
        origin = running[kind].get(name)
        more = {}
        if kind in FABRIC_SECTIONS:
            fabric = entry if kind == FABRICS else after[FABRICS][entry["fabric_id"]]
            more = {"protocol": fabric["protocol"]}
        if origin is None or name in recreated:
            data: dict[str, Any] = {KEYS[kind]: name, **data_of(entry), **more}
            if kind == SUBNETS:
                _zone, network, mask = name.split("-", 2)
                data.update(subnet=f"{network}/{mask}", type="subnet")
                del data["vnet"]
            if kind == FABRIC_NODES:
                data["node_id"] = entry["node_id"]
                del data["fabric_id"]
            summary = f"Create {NOUNS[kind]} '{name}'{_words(entry)}"
            yield _step(summary, "POST", _base(kind, entry), data, (kind, name, entry))
        elif origin != entry:
            changes = {key: value for key, value in entry.items() if origin.get(key) != value}
            gone = sorted(origin.keys() - entry.keys())
            data = {**data_of(changes), **more}
            if gone:
                data["delete"] = gone if kind in FABRIC_SECTIONS else ",".join(gone)
            summary = f"Change {NOUNS[kind]} '{name}'{_words(changes, gone)}"
            yield _step(summary, "PUT", _path(kind, name, entry), data, (kind, name, entry))


def _removals(kind: str, running: Sections, after: Sections) -> Iterator[ObjectStep]:
    gone_before = _recreated(running, after) if kind == FABRIC_NODES else []
    for name, entry in running.get(kind, {}).items():
        if name not in after[kind] and name not in gone_before:
            yield _removal(kind, name, entry)


def _removal(kind: str, name: str, entry: SdnEntry) -> ObjectStep:
    summary = f"Remove {NOUNS[kind]} '{name}'"
    return _step(summary, "DELETE", _path(kind, name, entry), {}, (kind, name, None))


def _base(kind: str, entry: SdnEntry) -> tuple[str, ...]:
    if kind == SUBNETS:
        return (*ROOT, VNETS, entry["vnet"], SUBNETS)
    if kind == FABRICS:
        return (*ROOT, FABRICS, "fabric")
    if kind == FABRIC_NODES:
        return (*ROOT, FABRICS, "node", entry["fabric_id"])
    return (*ROOT, kind)


def _path(kind: str, name: str, entry: SdnEntry) -> tuple[str, ...]:
    own = entry["node_id"] if kind == FABRIC_NODES else name
    return (*_base(kind, entry), own)


def _words(entry: SdnEntry, gone: list[str] | None = None) -> str:
    words = [f"{key}={'***' if key in SECRETS else value}" for key, value in sorted(entry.items())]
    words += [f"remove {key}" for key in gone or ()]
    return f": {', '.join(words)}" if words else ""


def _step(
    summary: str,
    method: str,
    path: tuple[str, ...],
    data: Mapping[str, Any],
    subject: tuple[str, str, SdnEntry | None],
) -> ObjectStep:
    kind, name, result = subject
    step = Step(OBJECT, summary, method, path, data, is_task=False)
    return ObjectStep(**vars(step), kind=kind, name=name, result=result)
