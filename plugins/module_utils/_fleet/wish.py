# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a fleet shall be: the options said for all, those of a VM's class and its own become one wish a VM (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._cluster.tenant import tenant_tag
from .._core import validate
from .._core.errors import FleetError, ValidationFailed
from .._spec.fleet import shared_spec, with_defaults
from .._spec.vm import vm_spec
from .._vm.converge import read_wish
from .._vm.estate import class_options
from .._vm.model import Desired

# Of so many wrong VMs the message tells; the result has them all.
_TOLD = 5
# How a VM that is pruned is stopped, and what its removal may wait for.
_OF_REMOVAL = ("graceful", "force", "shutdown_timeout", "task_timeout", "tenant", "tenant_prefix")


@dataclass(frozen=True)
class Item:
    """One VM of the list: its place there, its options with everything that is said for all, and the wish."""

    index: int
    params: Mapping[str, Any]
    desired: Desired
    pruned: bool = False


@dataclass(frozen=True)
class Scope:
    """What may be pruned: the VMs of a tenant, of a pool, or of both at once."""

    tenant_tag: str | None
    prefix: str
    pool: str | None

    @property
    def label(self) -> str:
        said = [f"tag {self.tenant_tag}" if self.tenant_tag else "", f"pool {self.pool}" if self.pool else ""]
        return " and ".join(filter(None, said))


def read_items(params: Mapping[str, Any]) -> list[Item]:
    """Return the wishes in the order of the list. Raises ValidationFailed with all that is wrong in any of them."""
    items: list[Item] = []
    wrong: list[tuple[int, str, FleetError]] = []
    for index, own in enumerate(params["vms"]):
        try:
            merged = merge(params, own)
            items.append(Item(index, merged, read_wish(merged)))
        except FleetError as error:
            label = f"vms[{index}] ({own.get('name') or own.get('vmid') or 'without a name'})"
            wrong.append((index, label, error))
    if wrong:
        raise _refused(wrong)
    _require_distinct(items)
    if params.get("prune"):
        _require_inside(items, read_scope(params))
    return items


def merge(params: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of one VM: its own over those of its class over those said for all.

    Dictionaries are merged, tags add up, anything else is replaced. Raises FleetError for a class that is not there.
    """
    shared = {name: params.get(name) for name in shared_spec()}
    classes = {**(shared.get("classes") or {}), **(own.get("classes") or {})}
    label = own.get("class") or shared.get("class")
    layers: list[Mapping[str, Any]] = [shared, class_options(label, classes) if label else {}, own]
    merged: dict[str, Any] = {}
    for layer in layers:
        merged = _over(merged, layer)
    merged["class"] = None  # it is part of the rest now
    merged["tags"] = _all_tags(layers)
    return with_defaults(vm_spec(), merged)


def _over(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in more.items():
        old = merged.get(key)
        if value is None:
            continue
        merged[key] = _over(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def _all_tags(layers: list[Mapping[str, Any]]) -> list[str] | None:
    said = [layer["tags"] for layer in layers if layer.get("tags") is not None]
    return list(dict.fromkeys(tag for tags in said for tag in tags)) if said else None


def read_scope(params: Mapping[str, Any]) -> Scope:
    """Return what may be pruned. Raises ValidationFailed where nothing bounds it."""
    prefix = params.get("tenant_prefix") or "tenant_"
    tag = validate.tag(tenant_tag(params["tenant"], prefix), "tenant") if params.get("tenant") else None
    pool = validate.pool(params["pool"]) if params.get("pool") else None
    if tag is None and pool is None:
        raise validate.refused("prune", True, "has no bounds", "Say whose VMs are pruned: tenant or pool, for all VMs")
    return Scope(tag, prefix, pool)


def removal_of(params: Mapping[str, Any], vmid: int, name: str) -> dict[str, Any]:
    """Return the options of a VM that is pruned."""
    said = {name: params.get(name) for name in _OF_REMOVAL}
    return with_defaults(vm_spec(), {**said, "vmid": vmid, "name": name or None, "state": "absent"})


def _require_distinct(items: list[Item]) -> None:
    """Raise ValidationFailed where two items mean one VM: each would undo what the other did."""
    seen: dict[tuple[str, Any], Item] = {}
    for item in items:
        wish = item.desired
        keys: list[tuple[str, Any]] = [("vmid", wish.vmid)] if wish.vmid is not None else []
        if wish.name:
            keys.append((f"name of {wish.tenant_tag}", wish.name.lower()))
        for key in keys:
            other = seen.setdefault(key, item)
            if other is not item:
                raise ValidationFailed(
                    attempted=f"vms[{other.index}] and vms[{item.index}] could not be told apart",
                    answer=f"both are {wish.label}" + (f" of tenant {wish.tenant}" if wish.tenant else ""),
                    next_step="List each VM once",
                    reason="listed twice",
                )


def _require_inside(items: list[Item], scope: Scope) -> None:
    """Raise ValidationFailed where a VM of the list would lie outside what is pruned: the scope is then a mistake."""
    for item in items:
        wish = item.desired
        inside = scope.tenant_tag in (None, wish.tenant_tag) and scope.pool in (None, wish.pool)
        if not inside and wish.state != "absent":
            raise ValidationFailed(
                attempted=f"vms[{item.index}], {wish.label}, was refused",
                answer=f"with prune all VMs of the list have the {scope.label}; this one says another",
                next_step="Leave out its tenant and pool, or put it into a task of its own",
                reason="outside the scope",
            )


def _refused(wrong: Sequence[tuple[int, str, FleetError]]) -> FleetError:
    """Return the error of the whole list from those of VMs, each with its place in the list and what it is called."""
    told = [f"{label}: {error.message}" for _index, label, error in wrong]
    rest = f" And {len(told) - _TOLD} more." if len(told) > _TOLD else ""
    reasons = {error.reason for _index, _label, error in wrong}
    kinds = {type(error) for _index, _label, error in wrong}
    category = kinds.pop() if len(kinds) == 1 else ValidationFailed
    return category(
        attempted="The list of VMs was refused, and nothing was changed",
        answer=" ".join(told[:_TOLD]) + rest,
        next_step="Correct what is wrong, and run again",
        reason=reasons.pop() if len(reasons) == 1 else "several",
        details={"vms": [{"index": index, "vm": label, **error.as_result()} for index, label, error in wrong]},
    )
