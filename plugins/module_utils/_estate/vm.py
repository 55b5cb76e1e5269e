# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One VM as an item of module vms, proven by that module's own plan (pure).

The settings of a VM are expressed in groups. The plan of all of them must not change the VM; if it
does, each group is tried separately, and settings that cannot be kept are listed in C(lost).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from .._cluster.quota import Figures
from .._cluster.state import ClusterState, VmRow
from .._cluster.tenant import parse_tags, tenants_of
from .._core import validate
from .._core.quantities import MIB, read_size, whole_number
from .._guest.model import Actual
from .._vm.config.actual import DRIVE, is_disk
from .cloud_init import cloud_init_pieces, secrets_of
from .devices import device_pieces
from .hardware import hardware_pieces, is_valid, parsed, piece, tags_piece
from .model import PRESENT, Alternative, Choices, Config, ExportedVm, Lost, SettingGroup
from .proof import ClusterContext, Proof

_STATES = {"running": "started", "stopped": "stopped"}
_NOT_A_NAME = "it is not a DNS name"
_NOT_CONVERTED = "it is not converted completely"


def describe(actual: Actual, around: ClusterContext, choices: Choices) -> ExportedVm:
    """Return the VM as an item of module vms that does not change it."""
    config = actual.target
    tags = parse_tags(config.get("tags"))
    owners = tenants_of(tags, choices.prefix)
    proof = Proof(actual, around, choices.prefix)
    pieces = [
        *_identity(actual, choices, owners),
        _source(actual, around.cluster),
        _state(actual, choices),
        *cloud_init_pieces(config),
        # The devices come first: other settings can depend on them.
        *device_pieces(config),
        *hardware_pieces(config),
        *tags_piece(_without(tags, owners)),
        *_notes(actual),
    ]
    kept = proof.keep(pieces)
    exported = ExportedVm(
        vmid=actual.vmid,
        name=config.get("name", ""),
        tenant=str(kept.options.get("tenant", "")),
        actual=actual,
        options=kept.options,
        lost=tuple(kept.lost),
        secrets=secrets_of(config),
        steps=proof.steps_of_any_run,
        figures=_figures(config),
    )
    is_free = not owners and not actual.template
    if choices.adopt and is_free:
        return _adopted(exported, proof, choices.adopt)
    return exported


def _identity(actual: Actual, choices: Choices, owners: Sequence[str]) -> Iterator[SettingGroup]:
    name = actual.target.get("name")
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


def _without(tags: Sequence[str], owners: Sequence[str]) -> list[str]:
    """Return the tags that do not belong to tenants."""
    return [tag for tag in tags if tag.lower() not in owners]


def _source(actual: Actual, cluster: ClusterState) -> SettingGroup:
    """Return the template that a clone of this collection was made from, while it exists."""
    nothing = Alternative({})
    row = cluster.vms.get(actual.marker.origin or 0)
    if row is None or not row.template:
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
        if other.template and other.name == row.name:
            same.append(other)
    return len(same) == 1


def _state(actual: Actual, choices: Choices) -> SettingGroup:
    """Return the state. A VM that is neither running nor stopped is left in its power state."""
    present = Alternative({"state": PRESENT})
    if actual.template:
        unfinished = Lost("template", "1", _NOT_CONVERTED)
        in_part = Alternative(present.options, (unfinished,))
        return SettingGroup((Alternative({"state": "template"}), in_part))
    if choices.power and actual.status in _STATES:
        state = Alternative({"state": _STATES[actual.status]})
        return SettingGroup((state, present))
    return SettingGroup((present,))


def _notes(actual: Actual) -> Iterator[SettingGroup]:
    notes = actual.notes
    if notes:
        yield piece("description", notes, {"description": notes})


def _adopted(exported: ExportedVm, proof: Proof, tenant: str) -> ExportedVm:
    """Return the VM as a tenant's VM if a run can adopt it with its tags alone."""
    options = {**exported.options, "tenant": tenant, "adopt": True}
    reason = proof.why_not_adopted(options)
    if reason:
        left_out = Lost("tenant", tenant, reason)
        return replace(exported, lost=(*exported.lost, left_out))
    return replace(exported, options=options, tenant=tenant)


def _figures(config: Config) -> Figures:
    """Return the figures of a VM for a quota, from its configuration."""
    disk = 0
    for slot in filter(DRIVE.match, config):
        drive = parsed(slot, config[slot])
        if is_disk(drive):
            disk += read_size(drive.get("size")) or 0
    if config.get("template") == "1":
        return Figures(disk=disk)
    memory = parsed("memory", config.get("memory", "512"))
    mebibytes = whole_number(memory.get("current", "")) or 0
    cores = whole_number(config.get("cores", "1")) or 1
    sockets = whole_number(config.get("sockets", "1")) or 1
    return Figures(vms=1, cores=cores * sockets, memory=mebibytes * MIB, disk=disk)


def without_name(exported: ExportedVm, why: str) -> ExportedVm:
    """Return the VM identified by its number alone."""
    options = dict(exported.options)
    name = options.pop("name", "")
    left_out = Lost("name", str(name), why)
    return replace(exported, options=options, lost=(*exported.lost, left_out))
