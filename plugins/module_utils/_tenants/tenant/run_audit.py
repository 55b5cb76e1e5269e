# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module audit_info."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ..._foundation.api.access.privileges import Privileges
from ..._foundation.api.layers.caching import CachingReader
from ..._foundation.cluster.state import ClusterState, VmRow, with_names
from ..._foundation.cluster.storages.contents import StorageContents, read_contents
from ..._foundation.cluster.tenant import PREFIX
from ..._foundation.core import validate
from ..._foundation.core.errors import FleetError, PermissionDenied
from ..._foundation.core.result import Result
from ..._foundation.spec.tenants import read_estate_tenants
from ..._guests.kinds.model import Actual
from ..._guests.kinds.words import contents_of
from ..._infrastructure.datacenter.ha.checks import RULES_SINCE, read_rules
from ..._protection.backup.job.coverage import jobs_by_guest, named_jobs
from ..access.realms.realm import kinds_of_realms
from .audit import (
    UNKNOWN,
    AuditFinding,
    find_foreign_volumes,
    find_guest_faults,
    find_hidden,
    find_not_backed_up,
    find_privileged,
    find_shared_jobs,
    find_shared_rules,
    find_tenant_faults,
    find_unknown_subjects,
    find_unlisted,
    find_unread,
    find_unreferenced,
)
from .checks import find_templates, with_template_names
from .facts import TenantFacts, forbidden_to_be_privileged, read_facts, read_guests
from .leaving.unreferenced import read_unreferenced, suspects
from .login.token_age import TokenRules, find_token_faults, find_unknown_tokens, lasting_tokens
from .model import Tenant, described_tenant
from .network.read_audit import audit_networks

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


@dataclass(frozen=True)
class AuditTask:
    """The options of the task; ages of tokens are in days."""

    prefix: str
    tenants: Sequence[Tenant]
    max_token_age: int
    expiry_warning: int
    lasting_tokens: Sequence[str]

    @property
    def by_tag(self) -> dict[str, Tenant]:
        return {tenant.tag: tenant for tenant in self.tenants}


def read_task(params: Mapping[str, Any]) -> AuditTask:
    """Return the options of the task. Raises ValidationFailed."""
    prefix = str(params.get("tenant_prefix") or PREFIX).lower()
    max_age = validate.number(params["max_token_age"], 1, 36500, "max_token_age")
    warning = validate.number(params["expiry_warning"], 0, 3650, "expiry_warning")
    described = read_estate_tenants(params["tenants"])
    tenants = [described_tenant(name, settings, prefix) for name, settings in described.items()]
    return AuditTask(prefix, tenants, max_age, warning, params.get("lasting_tokens") or [])


def run_audit(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the findings about the tenants; nothing is written."""
    task = read_task(params)
    reader = CachingReader(client)
    facts = read_facts(reader)
    facts = replace(facts, cluster=with_names(reader, facts.cluster))
    found = list(find_guest_faults(facts, task.by_tag, task.prefix))
    held = Privileges(client.get("access", "permissions") or {})
    found += find_hidden(held, volumes=params["volumes"])
    found += _rule_faults(reader, facts, task.prefix)
    guests: Mapping[int, Actual] | None = None
    if params["volumes"]:
        guests, faults = _read_volumes(client, facts, task.prefix)
        found += faults
        facts = replace(facts, cluster=_with_figures(facts.cluster, guests))
    found += _privileged_containers(client, task, facts, guests)
    if params["networks"]:
        networking = {one.tag: one.networking for one in task.tenants if one.networking is not None}
        found += list(audit_networks(reader, facts, task.prefix, networking))
    if params["backups"]:
        found += _backup_faults(reader, facts, task.by_tag, task.prefix)
    found += _token_faults(reader, task, facts)
    found += find_unknown_subjects(facts)
    for tenant in task.tenants:
        templates = find_templates(tenant, with_template_names(reader, tenant, facts))
        found += find_tenant_faults(tenant, facts, templates)
    values = {
        "passed": not found,
        "vms": len(facts.cluster.vms),
        "containers": len(facts.cluster.others),
        "findings": [asdict(one) for one in found],
        "report": _lines(found),
    }
    return Result(False, values)


def _read_volumes(
    client: Client, facts: TenantFacts, prefix: str
) -> tuple[Mapping[int, Actual], list[AuditFinding]]:
    """Return the guests with their configurations, and the findings about volumes.

    The volumes are read first: a volume that is allocated afterwards cannot look unreferenced.
    """
    contents = _read_disks(client, facts.of_both_kinds)
    guests, unread = read_guests(client, facts.of_both_kinds.vms.values())
    volumes, unsure = read_unreferenced(client, guests, suspects(contents, guests))
    configs = {vmid: guest.target for vmid, guest in guests.items()}
    found = list(find_unlisted(contents))
    found += find_unread(facts, {**unread, **unsure})
    found += find_foreign_volumes(facts, configs, prefix)
    found += find_unreferenced(facts, volumes, prefix)
    return guests, found


def _privileged_containers(
    client: Client, task: AuditTask, facts: TenantFacts, guests: Mapping[int, Actual] | None
) -> list[AuditFinding]:
    """Return findings about privileged containers of tenants that must not have any.

    Without `guests`, the configurations of these containers are read.
    """
    found: list[AuditFinding] = []
    for tenant in task.tenants:
        containers, rows = guests, forbidden_to_be_privileged(tenant, facts)
        if containers is None:
            containers, unread = read_guests(client, rows)
            found += find_unread(facts, unread)
        found += find_privileged(tenant, rows, containers)
    return found


def _token_faults(reader: CachingReader, task: AuditTask, facts: TenantFacts) -> list[AuditFinding]:
    realms = kinds_of_realms(reader)
    lasting = frozenset(lasting_tokens(task.lasting_tokens, task.tenants, facts))
    now = reader.clock.time()
    rules = TokenRules(now, task.max_token_age, task.expiry_warning, lasting)
    found = list(find_token_faults(facts, realms, rules))
    found += find_unknown_tokens(facts, task.lasting_tokens)
    return found


def _rule_faults(client: Client, facts: TenantFacts, prefix: str) -> list[AuditFinding]:
    """Return the HA rules with guests of several tenants; one request."""
    if client.version() < RULES_SINCE:
        return []
    try:
        rules = read_rules(client)
    except PermissionDenied as error:
        return [AuditFinding(UNKNOWN, None, "HA rules", error.message)]
    members = {name: values["resources"] for name, values in rules.items()}
    return list(find_shared_rules(members, facts, prefix))


def _backup_faults(
    client: Client, facts: TenantFacts, tenants: Mapping[str, Tenant], prefix: str
) -> list[AuditFinding]:
    """Return the guests of tenants that are in no backup job, and the jobs that mix tenants.

    One request, which needs Sys.Audit on / (pve-manager: PVE/API2/Backup.pm, index).
    """
    try:
        jobs = named_jobs(client.get("cluster", "backup") or [])
    except FleetError as error:
        return [AuditFinding(UNKNOWN, None, "backup jobs", error.message)]
    covered = jobs_by_guest(jobs, facts.of_both_kinds.vms.values())
    shared = find_shared_jobs(jobs, covered, facts, tenants, prefix)
    return [*find_not_backed_up(covered, facts, prefix), *shared]


def _read_disks(client: Client, cluster: ClusterState) -> StorageContents:
    """Return the disks of guests on all storages; a storage that cannot be listed appears once."""
    volumes: list[Any] = []
    unread: dict[str, Any] = {}
    for content in contents_of(cluster.vms.values()):
        found = read_contents(client, cluster, content)
        volumes += found.volumes
        for row, error in found.unread:
            unread.setdefault(f"{row.place}/{row.storage}", (row, error))
    return StorageContents(tuple(volumes), tuple(unread.values()))


def _with_figures(cluster: ClusterState, guests: Mapping[int, Actual]) -> ClusterState:
    """Return the cluster state with the figures from the guests' configurations (pure).

    The listing contains only the first disk of each guest.
    """

    def configured(rows: Mapping[int, VmRow]) -> dict[int, VmRow]:
        return {vmid: _as_configured(row, guests.get(vmid)) for vmid, row in rows.items()}

    return replace(cluster, vms=configured(cluster.vms), others=configured(cluster.others))


def _as_configured(listed: VmRow, actual: Actual | None) -> VmRow:
    if actual is None:
        return listed
    used = actual.kind.figures_of(actual.live)
    return replace(
        listed,
        cores=used.cores or listed.cores,
        memory=used.memory or listed.memory,
        disk=used.disk or listed.disk,
    )


def _lines(found: list[AuditFinding]) -> list[str]:
    lines = [f"{one.kind}: {one.message}" for one in found]
    return [f"Findings: {len(found)}", *lines]
