# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module clone, read as options of a VM and as options of a container (pure).

Only the server knows the kind of the source. Options that fit neither kind are refused before any
request. Options that fit only one kind are refused if the source is of the other kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...._foundation.core import validate
from ...._foundation.core.errors import FleetError, ValidationFailed
from ...._foundation.spec.clone import clone_spec
from ...._foundation.spec.fleet import with_defaults
from ..desired.guest import GuestOptions
from ..desired.layers import class_options, lay_over
from ..desired.values import is_empty
from ..registry import CONTAINERS, VMS, ListKind

# Options of both kinds that module vms does not accept for several guests.
_OF_ONE_GUEST = ("name", "vmid", "quota_sites", "site_quotas", "source", "full", "snapshot")
# Options of the clone itself, for both kinds (pve-container: API2/LXC.pm, clone_vm).
_OF_THE_CLONE = frozenset(("storage", "class", "classes"))
_SPEC = clone_spec()
_VMS_ONLY = frozenset(_SPEC.keys() - CONTAINERS.specs.whole.keys() - _OF_THE_CLONE)


@dataclass(frozen=True)
class CloneOptions:
    """The options as read for a VM and for a container, or the refusal of each."""

    vm: GuestOptions[Any] | FleetError
    container: GuestOptions[Any] | FleetError

    def of(self, kind: ListKind) -> GuestOptions[Any]:
        """Return the options for a source of this kind. Raises its refusal."""
        found = self.container if kind is CONTAINERS else self.vm
        if isinstance(found, FleetError):
            raise found
        return found

    @property
    def either(self) -> GuestOptions[Any]:
        """The options as read for a kind that accepts them."""
        return self.of(CONTAINERS if isinstance(self.vm, FleetError) else VMS)


def read_clone(params: Mapping[str, Any]) -> CloneOptions:
    """Return the options of a task. Raises the refusal for VMs if they fit neither kind."""
    readings = CloneOptions(_attempt(VMS, params), _attempt(CONTAINERS, params))
    if isinstance(readings.container, FleetError):
        readings.of(VMS)
    return readings


def _attempt(kind: ListKind, params: Mapping[str, Any]) -> GuestOptions[Any] | FleetError:
    try:
        return read_clone_as(kind, params)
    except FleetError as error:
        return error


def read_clone_as(kind: ListKind, params: Mapping[str, Any]) -> GuestOptions[Any]:
    """Return the options for a source of this kind; every refusal is a ValidationFailed."""
    options = kind.read(_as_container(params) if kind is CONTAINERS else params)
    desired = options.desired
    source = desired.guest.source
    if source is None or source.volume:
        raise validate.refused(
            "source",
            params.get("source"),
            "is neither a VM nor a container",
            "Give the VMID or name of a template or guest",
        )
    if source.vmid is not None and source.vmid == desired.guest.vmid:
        raise validate.refused(
            "vmid",
            desired.guest.vmid,
            "is the source itself",
            "Choose another vmid, or leave it out",
        )
    storage = validate.storage(params["storage"]) if params.get("storage") else None
    source = replace(
        source,
        snapshot=params.get("snapshot") or None,
        storage=storage,
        format=params.get("format") or None,
    )
    return replace(options, desired=desired.with_guest(source=source).without_defaults())


def _as_container(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of module container. Raises ValidationFailed for options of VMs only."""
    _require_shared(params)
    specs, bare = CONTAINERS.specs, CONTAINERS.without_empty_texts
    own = {name: params.get(name) for name in _OF_ONE_GUEST}
    own |= specs.shared_of(params)
    named: Mapping[str, Any] = {}
    if own["class"]:
        named = class_options(own["class"], own["classes"] or {}, specs, own)
    return with_defaults(specs.whole, lay_over(bare(named), bare(own)))


def _require_shared(params: Mapping[str, Any]) -> None:
    """Raise ValidationFailed if the task sets options that only VMs have."""
    given: list[str] = []
    for name in sorted(_VMS_ONLY):
        value = params.get(name)
        if not is_empty(value) and value != _SPEC[name].get("default"):
            given.append(name)
    if not given:
        return
    raise ValidationFailed(
        f"Source {params.get('source')} was not cloned: it is a container, and only a VM has the "
        f"options {', '.join(given)}",
        (
            "Leave them out, or clone it with pve.fleet.container, which has all options of a"
            " container"
        ),
        "source is a container",
    )
