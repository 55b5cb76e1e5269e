# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module audit_info."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from .._access.realm import kinds_of_realms
from .._api.caching import CachingReader
from .._cluster.state import ClusterState, VmRow, with_names
from .._cluster.tenant import PREFIX
from .._core import validate
from .._core.errors import FleetError, NotFound
from .._core.parallel import side_by_side
from .._core.result import Result
from .._protection.privileges import Privileges
from .._vm.create.quota_race import figures_of
from .._vm.live.read import read_wherever
from .._vm.model import Actual
from .audit import (
    Finding,
    judge_guests,
    judge_sight,
    judge_subjects,
    judge_tenant,
    judge_tokens,
    judge_unread,
    judge_volumes,
)
from .checks import find_templates
from .facts import read_facts
from .model import Tenant, read_tenant

if TYPE_CHECKING:
    from .._api.client import Client

_READS_AT_ONCE = 8
_USUAL = {"operations": ["read", "operate", "provision", "snapshot"]}  # as in module tenant
_OF_TENANT = ("comment", "pool", "quota")


def run_audit(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return what is wrong among the tenants; nothing is written."""
    prefix = str(params.get("tenant_prefix") or PREFIX).lower()
    max_age = validate.number(params["max_token_age"], 1, 36500, "max_token_age")
    tenants = [_described(name, given, prefix) for name, given in params["tenants"].items()]
    reader = CachingReader(client)
    facts = read_facts(reader)
    facts = replace(facts, cluster=with_names(reader, facts.cluster))
    by_tag = {tenant.tag: tenant for tenant in tenants}
    found = list(judge_guests(facts, by_tag, prefix))
    found += judge_sight(Privileges(client.get("access", "permissions") or {}))
    if params["volumes"]:
        vms, unread = _read_vms(client, facts.cluster)
        found += judge_unread(facts, unread)
        found += judge_volumes(facts, {vmid: vm.target for vmid, vm in vms.items()}, prefix)
        facts = replace(facts, cluster=_with_figures(facts.cluster, vms))
    realms = kinds_of_realms(reader)
    found += judge_tokens(facts, realms, client.clock.time(), max_age)
    found += judge_subjects(facts)
    for tenant in tenants:
        templates = find_templates(reader, tenant, facts)
        found += judge_tenant(tenant, facts, templates)
    values = {
        "passed": not found,
        "vms": len(facts.cluster.vms),
        "findings": [asdict(one) for one in found],
        "report": _lines(found),
    }
    return Result(False, values)


def _described(name: str, given: Mapping[str, Any] | None, prefix: str) -> Tenant:
    """Return a tenant as an estate describes it."""
    settings = given or {}
    options = {**_USUAL, **(settings.get("access") or {})}
    for option in _OF_TENANT:
        options[option] = settings.get(option)
    return read_tenant({**options, "name": name, "tenant_prefix": prefix})


def _read_vms(
    client: Client, cluster: ClusterState
) -> tuple[dict[int, Actual], dict[int, FleetError]]:
    """Return each VM as it is, by VMID, and why others could not be read; one request for each.

    A VM that was removed since the listing is in neither.
    """

    def read(row: VmRow) -> Actual | FleetError:
        try:
            return read_wherever(client, row.vmid, row.node, status=row.status, pool=row.pool)
        except FleetError as error:
            return error

    rows = list(cluster.vms.values())
    found: dict[int, Actual] = {}
    unread: dict[int, FleetError] = {}
    for row, answer in zip(rows, side_by_side(read, rows, _READS_AT_ONCE), strict=True):
        if isinstance(answer, Actual):
            found[row.vmid] = answer
        elif not isinstance(answer, NotFound):
            unread[row.vmid] = answer
    return found, unread


def _with_figures(cluster: ClusterState, vms: Mapping[int, Actual]) -> ClusterState:
    """Return the cluster state with what the configurations of VMs have; of disks, the listing has
    the first one of each VM only (pure).
    """
    rows = dict(cluster.vms)
    for vmid, actual in vms.items():
        used = figures_of(actual.live)
        listed = rows[vmid]
        rows[vmid] = replace(
            listed,
            cores=used.cores or listed.cores,
            memory=used.memory or listed.memory,
            disk=used.disk or listed.disk,
        )
    return replace(cluster, vms=rows)


def _lines(found: list[Finding]) -> list[str]:
    lines = [f"{one.kind}: {one.message}" for one in found]
    return [f"Findings: {len(found)}", *lines]
