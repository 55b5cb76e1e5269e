# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module audit_info."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ..._foundation.api.access.privileges import Privileges
from ..._foundation.api.layers.caching import CachingReader
from ..._foundation.cluster.state import ClusterState, VmRow, with_names
from ..._foundation.cluster.storages.contents import StorageContents, read_contents
from ..._foundation.cluster.tenant import PREFIX
from ..._foundation.core import validate
from ..._foundation.core.errors import FleetError, PermissionDenied
from ..._foundation.core.formatting import counted
from ..._foundation.core.parallel import SITES_AT_ONCE, side_by_side
from ..._foundation.core.result import Result
from ..._foundation.spec.tenants import read_estate_tenants
from ..._guests.kinds.model import Actual
from ..._guests.kinds.words import contents_of
from ..._infrastructure.datacenter.ha.checks import RULES_SINCE, read_rules
from ..._protection.backup.job.coverage import jobs_by_guest, named_jobs
from ..access.realms.realm import kinds_of_realms
from . import audit
from .checks import find_templates, with_template_names
from .describe import privileged_among, usage
from .facts import TenantFacts, forbidden_to_be_privileged, read_facts, read_guests
from .leaving.unreferenced import read_unreferenced, suspects
from .login.token_age import TokenRules, find_token_faults, find_unknown_tokens, lasting_tokens
from .model import Tenant, described_tenant
from .network.audit import audit_networks
from .over_sites.audit import (
    SiteAudit,
    TenantOverSites,
    find_over_total,
    find_unlisted_sites,
    read_over_sites,
    row_of,
)

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


@dataclass(frozen=True)
class AuditTask:
    """The options of the task; ages of tokens are in days. The `tenants` of one site have their quota
    there.
    """

    prefix: str
    tenants: Sequence[Tenant]
    over_sites: Sequence[TenantOverSites]
    max_token_age: int
    expiry_warning: int
    lasting_tokens: Sequence[str]

    @property
    def by_tag(self) -> dict[str, Tenant]:
        return {tenant.tag: tenant for tenant in self.tenants}

    def at(self, site: str) -> AuditTask:
        """Return the task for one site: without the tenants of other sites (pure).

        A site without a name may be any site.
        """
        if not site:
            return self
        quotas = {one.name: one.quotas.get(site) for one in self.over_sites}
        tenants = [one for one in self.tenants if quotas.get(one.name, {}) is not None]
        own = {name: quota or None for name, quota in quotas.items()}
        tenants = [replace(one, quota=own.get(one.name, one.quota)) for one in tenants]
        return replace(self, tenants=tenants)


def read_task(params: Mapping[str, Any]) -> AuditTask:
    """Return the options of the task. Raises ValidationFailed."""
    prefix = str(params.get("tenant_prefix") or PREFIX).lower()
    max_age = validate.number(params["max_token_age"], 1, 36500, "max_token_age")
    warning = validate.number(params["expiry_warning"], 0, 3650, "expiry_warning")
    described = read_estate_tenants(params["tenants"])
    tenants = [described_tenant(name, settings, prefix) for name, settings in described.items()]
    over_sites = read_over_sites(described)
    lasting = params.get("lasting_tokens") or []
    return AuditTask(prefix, tenants, over_sites, max_age, warning, lasting)


def run_audit(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the findings about the tenants of a site; nothing is written. Raises FleetError."""
    task = read_task(params)
    return _reported(task, [audit_site(params, task.at(client.site), client, client.site)])


def run_at_sites(
    params: Mapping[str, Any],
    clients: Sequence[tuple[Collection[str], Client]],
    check_mode: bool = False,
) -> Result:
    """Do the same at several sites in parallel. A site that cannot be read is a finding."""
    task = read_task(params)

    def one(part: tuple[Collection[str], Client]) -> SiteAudit:
        names, client = part
        site = max(names)
        try:
            return audit_site(params, task.at(site), client, site)
        except FleetError as error:
            return SiteAudit(
                site, [audit.AuditFinding(audit.UNKNOWN, None, site, error.message)], 0, 0
            )

    audits = side_by_side(one, clients, SITES_AT_ONCE)
    names = sorted(name for names, _client in clients for name in names)
    unlisted = [found for one in task.over_sites for found in find_unlisted_sites(one, names)]
    return _reported(task, audits, unlisted)


def _reported(
    task: AuditTask, audits: Sequence[SiteAudit], unlisted: Sequence[audit.AuditFinding] = ()
) -> Result:
    """Return the findings at all sites, then those about tenants over sites (pure)."""
    tenants = [row_of(one, audits) for one in task.over_sites]
    found = [{"site": one.site, **asdict(finding)} for one in audits for finding in one.findings]
    over = [finding for one in task.over_sites for finding in find_over_total(one, audits)]
    found += [{"site": "", **asdict(finding)} for finding in (*unlisted, *over)]
    values = {
        "passed": not found,
        "vms": sum(one.vms for one in audits),
        "containers": sum(one.containers for one in audits),
        "findings": found,
        "tenants": tenants,
        "report": _lines(found, tenants),
    }
    return Result(False, values)


def audit_site(params: Mapping[str, Any], task: AuditTask, client: Client, site: str) -> SiteAudit:
    """Return the findings about the tenants of one site. Raises FleetError."""
    reader = CachingReader(client)
    facts = read_facts(reader)
    facts = replace(facts, cluster=with_names(reader, facts.cluster))
    found = list(audit.find_guest_faults(facts, task.by_tag, task.prefix))
    held = Privileges(client.get("access", "permissions") or {})
    found += audit.find_hidden(held, volumes=params["volumes"])
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
    lasting = frozenset(lasting_tokens(task.lasting_tokens, task.tenants, facts))
    now = reader.clock.time()
    rules = TokenRules(now, task.max_token_age, task.expiry_warning, lasting)
    found += find_token_faults(facts, kinds_of_realms(reader), rules)
    found += find_unknown_tokens(facts, task.lasting_tokens)
    found += audit.find_unknown_subjects(facts)
    for tenant in task.tenants:
        templates = find_templates(tenant, with_template_names(reader, tenant, facts))
        found += audit.find_tenant_faults(tenant, facts, templates)
    cluster = facts.cluster
    used = {one.name: usage(one, facts) for one in task.tenants}
    return SiteAudit(site, found, len(cluster.vms), len(cluster.others), used)


def _read_volumes(
    client: Client, facts: TenantFacts, prefix: str
) -> tuple[Mapping[int, Actual], list[audit.AuditFinding]]:
    """Return the guests with their configurations, and the findings about volumes.

    The volumes are read first: a volume that is allocated afterwards cannot look unreferenced.
    """
    contents = _read_disks(client, facts.of_both_kinds)
    guests, unread = read_guests(client, facts.of_both_kinds.vms.values())
    volumes, unsure = read_unreferenced(client, guests, suspects(contents, guests))
    configs = {vmid: guest.target for vmid, guest in guests.items()}
    found = [
        audit.AuditFinding(audit.UNKNOWN, None, row.storage, error.message)
        for row, error in contents.unread
    ]
    found += audit.find_unread(facts, {**unread, **unsure})
    found += audit.find_foreign_volumes(facts, configs, prefix)
    found += audit.find_unreferenced(facts, volumes, prefix)
    return guests, found


def _privileged_containers(
    client: Client, task: AuditTask, facts: TenantFacts, guests: Mapping[int, Actual] | None
) -> list[audit.AuditFinding]:
    """Return findings about privileged containers of tenants that must not have any.

    Without `guests`, the configurations of these containers are read.
    """
    found: list[audit.AuditFinding] = []
    for tenant in task.tenants:
        containers, rows = guests, forbidden_to_be_privileged(tenant, facts)
        if containers is None:
            containers, unread = read_guests(client, rows)
            found += audit.find_unread(facts, unread)
        for text, vmid in privileged_among(tenant, rows, containers):
            kind = "privileged_container"
            found.append(audit.AuditFinding(kind, tenant.name, str(vmid), text))
    return found


def _rule_faults(client: Client, facts: TenantFacts, prefix: str) -> list[audit.AuditFinding]:
    """Return the HA rules with guests of several tenants; one request."""
    if client.version() < RULES_SINCE:
        return []
    try:
        rules = read_rules(client)
    except PermissionDenied as error:
        return [audit.AuditFinding(audit.UNKNOWN, None, "HA rules", error.message)]
    members = {name: values["resources"] for name, values in rules.items()}
    return list(audit.find_shared_rules(members, facts, prefix))


def _backup_faults(
    client: Client, facts: TenantFacts, tenants: Mapping[str, Tenant], prefix: str
) -> list[audit.AuditFinding]:
    """Return the guests of tenants that are in no backup job, and the jobs that mix tenants.

    One request, which needs Sys.Audit on / (pve-manager: PVE/API2/Backup.pm, index).
    """
    try:
        jobs = named_jobs(client.get("cluster", "backup") or [])
    except FleetError as error:
        return [audit.AuditFinding(audit.UNKNOWN, None, "backup jobs", error.message)]
    covered = jobs_by_guest(jobs, facts.of_both_kinds.vms.values())
    shared = audit.find_shared_jobs(jobs, covered, facts, tenants, prefix)
    return [*audit.find_not_backed_up(covered, facts, prefix), *shared]


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
        found = dict(rows)
        for vmid in rows.keys() & guests.keys():
            row, used = rows[vmid], guests[vmid].kind.figures_of(guests[vmid].live)
            cores, memory = used.cores or row.cores, used.memory or row.memory
            found[vmid] = replace(row, cores=cores, memory=memory, disk=used.disk or row.disk)
        return found

    return replace(cluster, vms=configured(cluster.vms), others=configured(cluster.others))


def _lines(found: Sequence[Mapping[str, Any]], tenants: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of the report (pure)."""
    lines = [f"Findings: {len(found)}"]
    for one in found:
        site = f"site {one['site']}: " if one["site"] else ""
        lines.append(f"{one['kind']}: {site}{one['message']}")
    for tenant in tenants:
        numbers = {row["site"]: row["vms"] for row in tenant["sites"]}
        parts = [f"{'unknown' if vms is None else vms} at {site}" for site, vms in numbers.items()]
        lines.append(
            f"Tenant {tenant['tenant']}: {counted(tenant['vms'], 'guest')}, {', '.join(parts)}"
        )
    return lines
