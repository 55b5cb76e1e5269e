# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings that VMs and containers of an export share (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..._cluster.state import ClusterState, VmRow
from ..._core import validate
from ..._guest.model import Actual
from ..hardware import is_valid, piece
from ..model import PRESENT, Alternative, Choices, ExportedVm, Lost, SettingGroup
from ..proof import Proof

_STATES = {"running": "started", "stopped": "stopped"}
_NOT_A_NAME = "it is not a DNS name"
_NOT_CONVERTED = "it is not converted completely"


def identity(actual: Actual, choices: Choices, owners: Sequence[str]) -> Iterator[SettingGroup]:
    name = actual.name
    if name and is_valid(validate.dns_name, name):
        yield piece("name", name, {"name": name})
    elif name:
        yield piece("name", name, reason=_NOT_A_NAME)
    if len(owners) == 1:
        tenant = owners[0].removeprefix(choices.prefix.lower())
        yield piece("tags", owners[0], {"tenant": tenant})
    elif owners:
        tags = ";".join(owners)
        yield piece("tags", tags, reason="the tags of several tenants")
    if actual.pool:
        yield piece("pool", actual.pool, {"pool": actual.pool})
    if choices.nodes:
        yield piece("node", actual.node, {"node": actual.node})


def without_owners(tags: Sequence[str], owners: Sequence[str]) -> list[str]:
    """Return the tags that do not belong to tenants."""
    return [tag for tag in tags if tag.lower() not in owners]


def source(actual: Actual, cluster: ClusterState) -> SettingGroup:
    """Return the template that a clone of this collection was made from, while it exists."""
    nothing = Alternative({})
    row = cluster.vms.get(actual.marker.origin or 0)
    if row is None or not row.template or row.type != actual.kind.type:
        return SettingGroup((nothing,))
    by_number = Alternative({"source": str(row.vmid)})
    if not _is_only_template(row, cluster):
        return SettingGroup((by_number, nothing))
    by_name = Alternative({"source": row.name})
    return SettingGroup((by_name, by_number, nothing))


def _is_only_template(row: VmRow, cluster: ClusterState) -> bool:
    """Return whether a template can be named by its name alone."""
    if not row.own_name or row.name.isdigit():
        return False
    same: list[VmRow] = []
    for other in cluster.vms.values():
        is_same_kind = other.type == row.type
        if is_same_kind and other.template and other.name == row.name:
            same.append(other)
    return len(same) == 1


def state(actual: Actual, choices: Choices) -> SettingGroup:
    """Return the state. A VM that is neither running nor stopped is left in its power state."""
    present = Alternative({"state": PRESENT})
    if actual.template:
        unfinished = Lost("template", "1", _NOT_CONVERTED)
        in_part = Alternative(present.options, (unfinished,))
        return SettingGroup((Alternative({"state": "template"}), in_part))
    if choices.power and actual.status in _STATES:
        power = Alternative({"state": _STATES[actual.status]})
        return SettingGroup((power, present))
    return SettingGroup((present,))


def notes(actual: Actual) -> Iterator[SettingGroup]:
    text = actual.notes
    if text:
        yield piece("description", text, {"description": text})


def adopted(exported: ExportedVm, proof: Proof, tenant: str) -> ExportedVm:
    """Return the VM as a tenant's VM if a run can adopt it with its tags alone."""
    options = {**exported.options, "tenant": tenant, "adopt": True}
    reason = proof.why_not_adopted(options)
    if reason:
        left_out = Lost("tenant", tenant, reason)
        return replace(exported, lost=(*exported.lost, left_out))
    return replace(exported, options=options, tenant=tenant)


def without_name(exported: ExportedVm, why: str) -> ExportedVm:
    """Return the VM identified by its number alone."""
    options = dict(exported.options)
    name = options.pop("name", "")
    left_out = Lost("name", str(name), why)
    return replace(exported, options=options, lost=(*exported.lost, left_out))
