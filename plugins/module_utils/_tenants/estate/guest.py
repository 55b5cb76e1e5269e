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

from ..._foundation.cluster.state import ClusterState
from ..._foundation.cluster.tenant import parse_tags, tenants_of
from ..._foundation.core import validate
from ..._foundation.core.errors import FleetError
from ..._foundation.resource.plan import Step
from ..._foundation.spec.fleet import with_defaults
from ..._guests.guest.export.settings import (
    ClusterContext,
    Exporter,
    InexpressibleSetting,
    Options,
    SettingAlternative,
    SettingGroup,
    is_valid,
    piece,
)
from ..._guests.guest.registry import list_of
from ..._guests.kinds.model import Actual
from ..._protection.backup.job.declared import is_declarable
from .model import PRESENT, ExportChoices, ExportedVm

_STATES = {"running": "started", "stopped": "stopped"}
_NOT_A_NAME = "it is not a DNS name"
_NOT_CONVERTED = "it is not converted completely"
_LISTS = ("devices", "disks", "mounts", "nics")
_DICTIONARIES = ("cloud_init", "features", "options")
_UNUSABLE = "pve.fleet has no option for it"
_OF_ADOPTION = frozenset(("tags", "digest"))


def describe(actual: Actual, around: ClusterContext, choices: ExportChoices) -> ExportedVm:
    """Return the guest as an item of module vms that does not change it."""
    exporter = list_of(actual.kind.type).exporter
    config = actual.target
    tags = parse_tags(config.get("tags"))
    owners = tenants_of(tags, choices.prefix)
    pieces = [
        *_identity(actual, choices, owners),
        _source(actual, around.cluster),
        _state(actual, choices),
        *exporter.settings(config),
        *_tags(tag for tag in tags if tag.lower() not in owners),
    ]
    if actual.notes:
        pieces.append(piece("description", actual.notes, {"description": actual.notes}))
    proof = ExportProof(exporter, actual, around, choices.prefix)
    options, lost = proof.keep(pieces)
    exported = ExportedVm(
        vmid=actual.vmid,
        name=actual.kind.name_in(config),
        tenant=str(options.get("tenant", "")),
        actual=actual,
        options=options,
        lost=tuple(lost),
        secrets=exporter.secrets(config),
        steps=proof.steps_of_any_run,
        figures=exporter.figures(actual),
        type=actual.kind.type,
    )
    is_free = not owners and not actual.template
    if not choices.adopt or not is_free:
        return exported
    # A run must be able to adopt the guest by a change of tags only.
    options = {**exported.options, "tenant": choices.adopt, "adopt": True}
    reason = proof.why_not_adopted(options)
    if reason:
        omitted = InexpressibleSetting("tenant", choices.adopt, reason)
        return replace(exported, lost=(*exported.lost, omitted))
    return replace(exported, options=options, tenant=choices.adopt)


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
    named = [
        other
        for other in cluster.vms.values()
        if other.template and (other.type, other.name) == (row.type, row.name)
    ]
    # Only a name that no other template has identifies the template.
    if not row.own_name or row.name.isdigit() or len(named) > 1:
        return SettingGroup((by_number, nothing))
    by_name = SettingAlternative({"source": row.name})
    return SettingGroup((by_name, by_number, nothing))


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


class ExportProof:
    """Plans a guest as its module does."""

    def __init__(
        self, exporter: Exporter, actual: Actual, around: ClusterContext, prefix: str
    ) -> None:
        self._exporter = exporter
        self._actual = actual
        self._around = around
        self._identity = {"vmid": actual.vmid}
        self._fixed = {"tenant_prefix": prefix, "state": PRESENT}
        self._base = self._steps(self._identity)

    @property
    def steps_of_any_run(self) -> tuple[str, ...]:
        """The steps of a run on the VM that no option causes."""
        return (self._base,) if isinstance(self._base, str) else _summaries(self._base)

    def keep(
        self, groups: Sequence[SettingGroup]
    ) -> tuple[dict[str, Any], list[InexpressibleSetting]]:
        """Return options that leave the VM unchanged, and the settings that they do not express."""
        best: list[Options] = [self._identity]
        omitted: list[InexpressibleSetting] = []
        for group in groups:
            if group.ways:
                best.append(group.ways[0].options)
                omitted += group.ways[0].lost
            else:
                omitted += group.lost
        options = combined(best)
        if self._steps(options) == self._base:
            return options, [_because(one) for one in omitted]
        return self._one_by_one(groups)

    def _one_by_one(
        self, groups: Iterable[SettingGroup]
    ) -> tuple[dict[str, Any], list[InexpressibleSetting]]:
        """Return the same if the best alternatives of some groups would change the VM."""
        accepted: list[Options] = [self._identity]
        omitted: list[InexpressibleSetting] = []
        for group in groups:
            lost = group.lost
            reason = ""  # why the best alternative would change the VM
            for way in group.ways:
                steps = self._steps(combined([*accepted, way.options]))
                if steps == self._base:
                    accepted.append(way.options)
                    lost = way.lost
                    break
                reason = reason or _reason(steps)
            omitted += [_because(one, reason) for one in lost]
        return combined(accepted), omitted

    def why_not_adopted(self, options: Options) -> str:
        """Return why a run with a new tenant would do more than set tags, or an empty text."""
        steps = self._steps(options)
        if isinstance(steps, str):
            return steps
        written: set[str] = set()
        for step in steps:
            written.update(step.data)
        return "" if written <= _OF_ADOPTION else _reason(steps)

    def _steps(self, options: Options) -> tuple[Step, ...] | str:
        """Return the steps of a run with these options, or the reason of its refusal."""
        given = with_defaults(dict(self._exporter.spec), {**self._fixed, **options})
        try:
            return self._exporter.steps(given, self._actual, self._around)
        except FleetError as error:
            return error.message


def _summaries(steps: Iterable[Step]) -> tuple[str, ...]:
    return tuple(step.summary for step in steps)


def _reason(steps: tuple[Step, ...] | str) -> str:
    """Return why options would change a VM."""
    if isinstance(steps, str):
        return steps
    changes = "; ".join(_summaries(steps))
    return f"a run would change it: {changes}"


def _because(one: InexpressibleSetting, reason: str = "") -> InexpressibleSetting:
    """Return a lost setting, with the reason if it has none of its own."""
    if one.reason:
        return one
    return replace(one, reason=reason or _UNUSABLE)


def combined(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the options of several groups merged into the options of one VM."""
    whole: dict[str, Any] = {}
    for options in parts:
        for name, value in options.items():
            if name in _LISTS:
                known = whole.get(name, ())
                whole[name] = [*known, *value]
            elif name in _DICTIONARIES:
                known = whole.get(name, {})
                whole[name] = {**known, **value}
            else:
                whole[name] = value
    return whole
