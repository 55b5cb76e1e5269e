# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One guest as an item of module vms, proven by the plan of its own module (pure).

The settings of a guest are expressed in groups. The plan of all of them must not change the guest;
if it does, each group is tried separately, and settings that cannot be kept are listed in C(lost).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..._foundation.cluster.state import ClusterState, VmRow
from ..._foundation.cluster.tenant import parse_tags, tenants_of
from ..._foundation.core import validate
from ..._guests.guest.export.exporter import ClusterContext
from ..._guests.guest.export.settings import (
    InexpressibleSetting,
    SettingAlternative,
    SettingGroup,
    is_valid,
    piece,
)
from ..._guests.guest.registry import list_of
from ..._guests.kinds.model import Actual
from ..._protection.backup.job.declared import is_declarable
from .model import PRESENT, ExportChoices, ExportedVm
from .proof import ExportProof

_STATES = {"running": "started", "stopped": "stopped"}
_NOT_A_NAME = "it is not a DNS name"
_NOT_CONVERTED = "it is not converted completely"


def describe(actual: Actual, around: ClusterContext, choices: ExportChoices) -> ExportedVm:
    """Return the guest as an item of module vms that does not change it."""
    exporter = list_of(actual.kind.type).exporter
    config = actual.target
    tags = parse_tags(config.get("tags"))
    owners = tenants_of(tags, choices.prefix)
    proof = ExportProof(exporter, actual, around, choices.prefix)
    proven = proof.keep(
        [
            *_identity(actual, choices, owners),
            _source(actual, around.cluster),
            _state(actual, choices),
            *exporter.settings(config),
            *_tags(tag for tag in tags if tag.lower() not in owners),
            *_notes(actual),
        ]
    )
    exported = ExportedVm(
        vmid=actual.vmid,
        name=actual.kind.name_in(config),
        tenant=str(proven.options.get("tenant", "")),
        actual=actual,
        options=proven.options,
        lost=tuple(proven.lost),
        secrets=exporter.secrets(config),
        steps=proof.steps_of_any_run,
        figures=exporter.figures(actual),
        type=actual.kind.type,
    )
    is_free = not owners and not actual.template
    if choices.adopt and is_free:
        return _adopted(exported, proof, choices.adopt)
    return exported


def _identity(
    actual: Actual, choices: ExportChoices, owners: Sequence[str]
) -> Iterator[SettingGroup]:
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
    if not actual.kind.disks_in(actual.target) and not actual.kind.has_rootfs:
        yield piece("disks", "none", {"blank": True})


def _tags(tags: Iterable[str]) -> Iterator[SettingGroup]:
    """Yield the tags of a guest except tags of tenants, each once and in lower case.

    The list is exact, and an empty list is written if there are no tags, so a tag that is set by
    hand later is a difference.
    """
    fit: list[str] = []
    omitted: list[InexpressibleSetting] = []
    for tag in sorted(set(map(str.lower, tags))):
        if is_valid(validate.tag, tag):
            fit.append(tag)
        else:
            omitted.append(InexpressibleSetting("tags", tag, "PVE does not take such a tag"))
    if not omitted:
        yield piece("tags", ";".join(fit), {"tags": fit, "tags_exact": True}, {"tags": fit})
        return
    yield SettingGroup((), tuple(omitted))
    if fit:  # an exact list would remove the tags that are left out
        yield piece("tags", ";".join(fit), {"tags": fit})


def _source(actual: Actual, cluster: ClusterState) -> SettingGroup:
    """Return the template from which this collection cloned the guest, if it still exists."""
    nothing = SettingAlternative({})
    row = cluster.vms.get(actual.marker.origin or 0)
    if row is None or not row.template or row.type != actual.kind.type:
        return SettingGroup((nothing,))
    by_number = SettingAlternative({"source": str(row.vmid)})
    if not _is_only_template(row, cluster):
        return SettingGroup((by_number, nothing))
    by_name = SettingAlternative({"source": row.name})
    return SettingGroup((by_name, by_number, nothing))


def _is_only_template(row: VmRow, cluster: ClusterState) -> bool:
    """Return whether the name alone identifies a template."""
    if not row.own_name or row.name.isdigit():
        return False
    same: list[VmRow] = []
    for other in cluster.vms.values():
        is_same_kind = other.type == row.type
        if is_same_kind and other.template and other.name == row.name:
            same.append(other)
    return len(same) == 1


def _state(actual: Actual, choices: ExportChoices) -> SettingGroup:
    """Return the state. A VM that is neither running nor stopped keeps its power state."""
    present = SettingAlternative({"state": PRESENT})
    if actual.template:
        unconverted = InexpressibleSetting("template", "1", _NOT_CONVERTED)
        in_part = SettingAlternative(present.options, (unconverted,))
        return SettingGroup((SettingAlternative({"state": "template"}), in_part))
    if choices.power and actual.status in _STATES:
        power = SettingAlternative({"state": _STATES[actual.status]})
        return SettingGroup((power, present))
    return SettingGroup((present,))


def _notes(actual: Actual) -> Iterator[SettingGroup]:
    text = actual.notes
    if text:
        yield piece("description", text, {"description": text})


def _adopted(exported: ExportedVm, proof: ExportProof, tenant: str) -> ExportedVm:
    """Return the VM as a tenant's VM if a run can adopt it by a change of tags only."""
    options = {**exported.options, "tenant": tenant, "adopt": True}
    reason = proof.why_not_adopted(options)
    if reason:
        omitted = InexpressibleSetting("tenant", tenant, reason)
        return replace(exported, lost=(*exported.lost, omitted))
    return replace(exported, options=options, tenant=tenant)


def without_name(exported: ExportedVm, why: str) -> ExportedVm:
    """Return the VM identified by its VMID alone."""
    options = dict(exported.options)
    name = options.pop("name", "")
    omitted = InexpressibleSetting("name", str(name), why)
    return replace(exported, options=options, lost=(*exported.lost, omitted))


def with_backup(exported: ExportedVm, declared: Sequence[Mapping[str, Any]]) -> ExportedVm:
    """Return the guest with the backup that its job declares, if the job belongs to an estate.

    A run would change the backup of a guest with several jobs or an edited job: it is listed as
    lost.
    """
    if not declared:
        return exported
    if len(declared) > 1:
        reason = "it is in several backup jobs of estates"
    elif not is_declarable(declared[0]):
        reason = "its backup job was edited, and an estate cannot declare it so"
    else:
        return replace(exported, options={**exported.options, "backup": dict(declared[0])})
    omitted = InexpressibleSetting(
        "backup", "; ".join(str(one["schedule"]) for one in declared), reason
    )
    return replace(exported, lost=(*exported.lost, omitted))


def with_placement(exported: ExportedVm, placement: Mapping[str, Any] | None) -> ExportedVm:
    """Return the guest with the placement that HA rules keep, if there is one."""
    if placement is None:
        return exported
    return replace(exported, options={**exported.options, "placement": dict(placement)})
