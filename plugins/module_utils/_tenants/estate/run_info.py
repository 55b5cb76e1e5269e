# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module estate_info: a running cluster as an estate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.find.restoring import is_bare
from ..._foundation.cluster.state import VmRow
from ..._foundation.cluster.storages.allocation import base_storages
from ..._foundation.cluster.tenant import tenant_tag, tenants_of
from ..._foundation.core import validate
from ..._foundation.core.errors import (
    AuthenticationError,
    FleetError,
    NotSupported,
    ValidationFailed,
)
from ..._foundation.core.formatting import counted
from ..._foundation.core.result import Result
from ..._guests.guest.export.settings import ClusterContext
from ..._guests.guest.live.creation import is_being_created
from ..._infrastructure.datacenter.ha.checks import read_rules
from ..._protection.backup.job.declared import declared_in
from ..._protection.backup.job.maintain import read_jobs
from ..tenant.network.export import read_exported
from .document import estate_of, text_of
from .guest import describe, with_backup, with_placement
from .model import ExportChoices, ExportedVm, ExportReadings, UnreadVm
from .placement import placements_of
from .read import ExportScope, choose, read_all, read_scope, sees_all, silent_nodes
from .vnets import with_networks

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_IN_CREATION = "it is being created, or a run that created it was interrupted"
_PARTLY = "The login has no VM.Audit on /vms: VMs that it cannot see are neither exported nor named"
_UNREAD_NETWORKS = "The networks of tenants could not be read, and are not exported"
_OF_MISSING = ("vmid", "name", "tenant", "node", "reason")


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the estate as data and as text. Nothing is written, with or without check mode.

    As many requests as module vms without a change, plus one for backup jobs, one for HA rules, and
    one for the privileges of the login if all VMs are exported. A VM that cannot be read is listed
    in C(missing), with the reason.
    """
    scope = read_scope(params)
    choices = _choices(params, scope)
    found = _read(client, scope, choices)
    estate = estate_of(found, choices)
    unexpressed: list[dict[str, Any]] = []
    secrets: list[dict[str, Any]] = []
    unsettled: list[dict[str, Any]] = []
    for vm in estate.exported:
        named = {"vmid": vm.vmid, "name": vm.name}
        unexpressed += [{**named, **asdict(one)} for one in vm.lost]
        secrets += [{**named, "option": option} for option in vm.secrets]
        if vm.steps:
            unsettled.append({**named, "steps": list(vm.steps)})
    values = {
        "estate": dict(estate.variables),
        "text": text_of(estate, found, scope.label),
        "complete": found.complete,
        "missing": list(map(_row, estate.missing)),
        "nodes": list(map(asdict, found.nodes)),
        "unexpressed": unexpressed,
        "secrets": secrets,
        "unsettled": unsettled,
        "report": list(_report(estate.exported, found)),
    }
    return Result(False, values, warnings=tuple(found.warnings))


def _choices(params: Mapping[str, Any], scope: ExportScope) -> ExportChoices:
    """Return the form in which VMs are expressed. Raises ValidationFailed."""
    adopt = ""
    if params.get("adopt") is not None:
        adopt = str(params["adopt"]).lower()
        if not adopt.strip():
            step = "Name one, or leave it out"
            raise validate.refused("adopt", adopt, "is not a tenant", step)
        validate.tag(tenant_tag(adopt, scope.prefix), "adopt")
        if scope.tenant:
            raise ValidationFailed(
                "adopt was refused: it is about VMs without a tenant, and tenant chooses those of "
                "one",
                "Give only one of them",
                "adopt",
            )
    return ExportChoices(
        prefix=scope.prefix,
        adopt=adopt,
        power=params["power"],
        nodes=params["on_nodes"],
        quotas=params["quotas"],
    )


def _read(client: Client, scope: ExportScope, choices: ExportChoices) -> ExportReadings:
    """Return the VMs of the export as read."""
    cluster, rows, hidden = choose(client, scope)
    found = ExportReadings(missing=hidden, nodes=silent_nodes(cluster, scope, rows))
    is_of_all = not scope.label
    if is_of_all and not sees_all(client):
        found.warnings.append(_PARTLY)
    around = ClusterContext(cluster, base_storages(cluster))
    for answer in read_all(client, cluster, rows, scope.prefix):
        if isinstance(answer, UnreadVm):
            found.missing.append(answer)
        elif is_being_created(answer) or is_bare(answer.live):
            # A VM that is being created is not listed, because a run would complete it.
            tenant = ""
            for tag in tenants_of((answer.marker.tenant or "",), choices.prefix):
                tenant = tag.removeprefix(choices.prefix.lower())
            found.missing.append(
                UnreadVm(
                    vmid=answer.vmid,
                    name=answer.name,
                    tenant=tenant,
                    node=answer.node,
                    reason=_IN_CREATION,
                    omitted=True,
                    type=answer.kind.type,
                )
            )
        else:
            found.vms.append(describe(answer, around, choices))
    _add_backups(client, found)
    _add_placement(client, found, scope, cluster.guests)
    _add_networks(client, found, scope)
    return found


def _add_backups(client: Client, found: ExportReadings) -> None:
    """Add the backup that estates declare for the guests; one request."""
    if not found.vms:
        return
    try:
        jobs = read_jobs(client)
    except FleetError as error:
        found.warnings.append(f"No guest has the option backup: {error.message}")
        return
    found.vms = [with_backup(vm, declared_in(vm.vmid, jobs)) for vm in found.vms]


def _add_placement(
    client: Client, found: ExportReadings, scope: ExportScope, rows: Iterable[VmRow]
) -> None:
    """Add the placement that HA rules keep; one request. Proxmox VE 8 has no rules."""
    if not found.vms:
        return
    try:
        rules = read_rules(client)
    except NotSupported:
        return
    except FleetError as error:
        found.warnings.append(f"No guest has the option placement: {error.message}")
        return
    placements, lost = placements_of(rules, list(rows), scope.prefix)
    found.vms = [with_placement(vm, placements.get(vm.vmid)) for vm in found.vms]
    if lost:
        found.warnings.append(f"No estate can declare these HA rules: {', '.join(lost)}")


def _add_networks(client: Client, found: ExportReadings, scope: ExportScope) -> None:
    """Add the networks of tenants; without filters, also of tenants that have no guest."""
    try:
        networks = read_exported(client, scope.prefix.lower(), scope.tenant)
        found.vms = with_networks(client, found.vms, networks, scope.prefix)
    except AuthenticationError:
        raise
    except FleetError as error:
        found.warnings.append(f"{_UNREAD_NETWORKS}: {error.message}")
        return
    present = {vm.tenant for vm in found.vms}
    is_of_all = not scope.label
    found.networks = {name: one for name, one in networks.items() if is_of_all or name in present}


def _row(vm: UnreadVm) -> dict[str, Any]:
    row: dict[str, Any] = {key: getattr(vm, key) for key in _OF_MISSING}
    row["privilege"] = vm.privilege or None
    row["acl_path"] = vm.acl_path or None
    return row


def _report(vms: tuple[ExportedVm, ...], found: ExportReadings) -> Iterator[str]:
    """Yield the gaps of the estate, as lines for people."""
    containers = [vm for vm in vms if vm.is_container]
    count = f"exported {counted(len(vms) - len(containers), 'VM')}"
    if containers:
        count = f"{count}, {counted(len(containers), 'container')}"
    if found.complete:
        yield count
    else:
        yield f"NOT COMPLETE: {count}"
    for node in found.nodes:
        yield node.reason
    for name, networks in found.networks.items():
        for step in networks.steps:
            yield f"tenant {name}: a run of role tenant does this in any case: {step}"
    yield from _gaps(vms, found)


def _gaps(vms: tuple[ExportedVm, ...], found: ExportReadings) -> Iterator[str]:
    for one in found.missing:
        yield f"not exported: {one.label}: {one.reason}"
    for vm in vms:
        for secret in vm.secrets:
            yield f"{vm.label}: {secret} is left out, it is a secret"
        for lost in vm.lost:
            yield f"{vm.label}: not expressed: {lost.option}, {lost.reason}"
        for step in vm.steps:
            yield f"{vm.label}: the next run does this in any case: {step}"
