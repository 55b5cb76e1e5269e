# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings of an audit of tenants (pure)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..._foundation.api.access.privileges import Privileges
from ..._foundation.cluster.find.restoring import seems_bare
from ..._foundation.cluster.storages.volume_users import SLOT
from ..._foundation.cluster.tenant import tenants_of
from ..._foundation.core.errors import FleetError
from ..._infrastructure.datacenter.ha.sids import vmid_of
from ..access.effective import read_privileges
from .describe import over_quota
from .facts import TenantFacts, entries_of, other_rights
from .marks import stray_tokens
from .model import Tenant
from .tenant_resources import surplus_entries, wanted_privileges, wanted_rights

_VOLUME = re.compile(r"^[^,:]+:(?:\S*/)?(?:vm|base|subvol)-(?P<vmid>[0-9]{1,9})-")
UNKNOWN = "unknown"
_BARE = (
    "has neither name, tags nor disks: a restore writes it, or has failed. Run this again when it"
    " is complete"
)
# Proxmox VE leaves hidden objects out of its listings instead of refusing the request (pve-manager:
# PVE/API2/Cluster.pm, resources; pve-access-control: PVE/API2/User.pm, index, and PVE/API2/ACL.pm,
# read_acl).
_SIGHT = (
    ("/vms", "VM.Audit", "VMs and containers"),
    ("/access", "Sys.Audit", "users, tokens and rights"),
)
# Datastore.Allocate on the storages replaces both (pve-storage: PVE/Storage.pm,
# check_volume_access).
_SIGHT_OF_VOLUMES = (
    ("/vms", "VM.Config.Disk", "volumes that no guest refers to"),
    ("/storage", "Datastore.Audit", "volumes that no guest refers to"),
)


@dataclass(frozen=True)
class AuditFinding:
    """One fault: its kind, its tenant, the object, and a text."""

    kind: str
    tenant: str | None
    subject: str
    message: str


@dataclass(frozen=True)
class _Guest:
    """A VM or a container."""

    vmid: int
    label: str
    tags: tuple[str, ...]
    pool: str | None
    template: bool
    needs_tenant: bool
    is_bare: bool = False  # without name, tags and disks, as during a restore

    @property
    def noun(self) -> str:
        """The kind of the guest as the first word of a sentence: C(VM) or C(Container)."""
        return self.label.partition(" ")[0]

    def finding(self, kind: str, tenant: str | None, text: str) -> AuditFinding:
        """Return a finding about the guest; `text` continues a sentence after its label."""
        return AuditFinding(kind, tenant, str(self.vmid), f"{self.label} {text}")


def _guests(facts: TenantFacts) -> Iterator[_Guest]:
    """Yield the VMs and then the containers, by VMID. Templates need no tenant."""
    for vmid, row in sorted(facts.cluster.vms.items()):
        label = f"VM {row.own_name or vmid} ({vmid})"
        is_bare = seems_bare(row)
        yield _Guest(vmid, label, row.tags, row.pool, row.template, not row.template, is_bare)
    for vmid, one in sorted(facts.cluster.others.items()):
        label = f"Container {one.name or vmid} ({vmid})"
        yield _Guest(vmid, label, one.tags, one.pool, one.template, not one.template)


def find_guest_faults(
    facts: TenantFacts, tenants: Mapping[str, Tenant], prefix: str
) -> Iterator[AuditFinding]:
    """Yield findings about the tenant and the pool of each guest.

    `tenants` are the described tenants, by tag.
    """
    pools: dict[str | None, str] = {tenant.pool: tag for tag, tenant in tenants.items()}
    for guest in _guests(facts):
        if guest.is_bare:
            yield guest.finding(UNKNOWN, None, _BARE)
            continue
        owners = tenants_of(guest.tags, prefix)
        names = [owner.removeprefix(prefix) for owner in owners]
        if len(owners) > 1:
            text = f"has the tags of several tenants: {', '.join(names)}"
            yield guest.finding("several_tenants", None, text)
        elif owners and tenants:
            yield from _find_owned_faults(guest, names[0], tenants.get(owners[0]))
        elif guest.needs_tenant and not owners:
            yield guest.finding("no_tenant", None, "has no tenant")
        owner_of_pool = pools.get(guest.pool)
        if owner_of_pool is not None and owner_of_pool not in owners:
            name = owner_of_pool.removeprefix(prefix)
            text = f"is in pool {guest.pool} of another tenant"
            yield guest.finding("foreign_pool", name, text)


def _find_owned_faults(guest: _Guest, name: str, tenant: Tenant | None) -> Iterator[AuditFinding]:
    """Yield the faults of a guest with the tag of one tenant; `tenant` is its description."""
    if tenant is None:
        text = f"is of tenant {name}, which is not described"
        yield guest.finding("unknown_tenant", name, text)
    elif guest.pool != tenant.pool:
        text = f"is not in pool {tenant.pool} of its tenant {name}"
        yield guest.finding("outside_pool", name, text)


def find_hidden(held: Privileges, *, volumes: bool) -> Iterator[AuditFinding]:
    """Yield the privileges that the caller lacks to see every checked object."""
    checked = list(_SIGHT)
    if volumes and "Datastore.Allocate" not in held.below("/storage"):
        checked += _SIGHT_OF_VOLUMES
    for path, privilege, hidden in checked:
        if privilege not in held.below(path):
            subject = f"{privilege} on {path}"
            text = f"This user or token lacks {subject}: {hidden} that it may not see are unchecked"
            yield AuditFinding(UNKNOWN, None, subject, text)


def find_unread(facts: TenantFacts, errors: Mapping[int, FleetError]) -> Iterator[AuditFinding]:
    """Yield the guests that could not be read, with the reason."""
    guests = {guest.vmid: guest for guest in _guests(facts)}
    for vmid, error in sorted(errors.items()):
        yield guests[vmid].finding(UNKNOWN, None, f"could not be checked: {error.message}")


def find_foreign_volumes(
    facts: TenantFacts, configs: Mapping[int, Mapping[str, Any]], prefix: str
) -> Iterator[AuditFinding]:
    """Yield volumes that a guest uses although their VMID belongs to a guest of another tenant."""
    guests = {guest.vmid: guest for guest in _guests(facts)}
    for vmid, config in sorted(configs.items()):
        own_tenants = tenants_of(guests[vmid].tags, prefix)
        for slot, value in sorted(config.items()):
            found = _VOLUME.match(str(value)) if SLOT.fullmatch(slot) else None
            other = guests.get(int(found["vmid"])) if found else None
            if other is None or other.template:
                continue
            tenants = tenants_of(other.tags, prefix)
            if tenants and tenants != own_tenants:
                name = tenants[0].removeprefix(prefix)
                user, volume = f"{guests[vmid].noun} {vmid}", str(value).partition(",")[0]
                text = f"{user} uses volume {volume} of {other.label} as {slot}"
                yield AuditFinding("foreign_volume", name, str(vmid), text)


def find_unreferenced(
    facts: TenantFacts, volumes: Mapping[int, Iterable[str]], prefix: str
) -> Iterator[AuditFinding]:
    """Yield volumes with the VMID of a tenant's guest if the guest does not refer to them.

    `volumes` are the volumes that no guest refers to, by the VMID in their names. A user with the
    right to allocate space on a storage can create them for any VMID.
    """
    guests = {guest.vmid: guest for guest in _guests(facts)}
    for vmid, volids in sorted(volumes.items()):
        guest = guests[vmid]
        owners = tenants_of(guest.tags, prefix)
        if not owners:
            continue
        name = owners[0].removeprefix(prefix)
        for volid in sorted(volids):
            text = f"does not refer to volume {volid}, which has its VMID"
            yield guest.finding("unreferenced_volume", name, text)


def find_shared_rules(
    rules: Mapping[str, Iterable[str]], facts: TenantFacts, prefix: str
) -> Iterator[AuditFinding]:
    """Yield the HA rules whose guests belong to several tenants; `rules` lists their resources."""
    guests = {guest.vmid: guest for guest in _guests(facts)}
    for name, sids in sorted(rules.items()):
        owners: set[str] = set()
        for sid in sids:
            guest = guests.get(vmid_of(sid))
            owners.update(tenants_of(guest.tags, prefix) if guest is not None else ())
        if len(owners) > 1:
            names = ", ".join(sorted(owner.removeprefix(prefix) for owner in owners))
            text = f"HA rule {name} has guests of several tenants: {names}"
            yield AuditFinding("shared_rule", None, name, text)


def find_not_backed_up(
    jobs: Mapping[int, Collection[str]], facts: TenantFacts, prefix: str
) -> Iterator[AuditFinding]:
    """Yield the guests of tenants that are in no enabled backup job. Templates need no backup.

    `jobs` contains the names of the jobs of each guest, by VMID.
    """
    for guest in _guests(facts):
        owners = tenants_of(guest.tags, prefix)
        if owners and not guest.template and not jobs.get(guest.vmid):
            name = owners[0].removeprefix(prefix)
            yield guest.finding("not_backed_up", name, "is in no enabled backup job")


def find_shared_jobs(
    jobs: Mapping[str, Mapping[str, Any]],
    covered: Mapping[int, Collection[str]],
    facts: TenantFacts,
    tenants: Mapping[str, Tenant],
    prefix: str,
) -> Iterator[AuditFinding]:
    """Yield the enabled backup jobs that put guests of another tenant on a tenant's own storage.

    `covered` contains the names of the jobs of each guest, by VMID. `tenants` are by tag. A storage
    belongs to a tenant if no other tenant may use it.
    """
    owners: dict[str, set[str]] = {name: set() for name in jobs}
    for guest in _guests(facts):
        for name in covered.get(guest.vmid, ()):
            owners[name].update(tenants_of(guest.tags, prefix))
    for name, tags in sorted(owners.items()):
        storage = jobs[name]["storage"]
        users = [
            tag
            for tag, tenant in tenants.items()
            if storage in tenant.storages or storage in tenant.image_storages
        ]
        others = sorted(tag.removeprefix(prefix) for tag in tags - set(users))
        if len(users) == 1 and others:
            own = users[0].removeprefix(prefix)
            text = (
                f"Backup job {name} puts guests of {', '.join(others)} on storage {storage}, which"
                f" only {own} may use"
            )
            yield AuditFinding("shared_job", own, name, text)


def find_unknown_subjects(facts: TenantFacts) -> Iterator[AuditFinding]:
    """Yield rights of users, groups and tokens that do not exist."""
    known = {("group", name) for name in facts.groups}
    for user in facts.users:
        known.add(("user", user))
        known.update(("token", f"{user}!{name}") for name in facts.tokens_of(user))
    for path, grant in entries_of(facts.rights):
        if (grant.kind, grant.who) not in known:
            text = f"{grant.text()} on {path}: there is no such {grant.kind}"
            yield AuditFinding("unknown_user", None, grant.who, text)


def find_tenant_faults(
    tenant: Tenant, facts: TenantFacts, templates: Mapping[str, int]
) -> Iterator[AuditFinding]:
    """Yield rights, privileges, tokens and usage beyond the description of the tenant."""
    wanted = wanted_rights(tenant, facts, templates)
    for path, grant in surplus_entries(tenant, facts, wanted):
        text = f"{grant.text()} on {path} is more than {tenant.label} is given"
        yield AuditFinding("wide_rights", tenant.name, path, text)
    for path, grant in entries_of(other_rights(tenant, facts)):
        text = f"{grant.text()} on {path} is not by a role of {tenant.label}"
        yield AuditFinding("wide_rights", tenant.name, path, text)
    for role, privileges in sorted(wanted_privileges(tenant, facts).items()):
        row = facts.roles.get(role, {"roleid": role})
        more = read_privileges(row) - privileges
        if more:
            text = f"Role {role} also has {', '.join(sorted(more))}"
            yield AuditFinding("wide_role", tenant.name, role, text)
    for name in stray_tokens(tenant, facts):
        whole = f"{tenant.user}!{name}"
        text = f"Token {whole} was not created for {tenant.label}, and has all its rights"
        yield AuditFinding("foreign_token", tenant.name, whole, text)
    for kind, figures in over_quota(tenant, facts).items():
        has, limit = figures["wanted"], figures["limit"]
        text = f"{tenant.label} has {kind} {has}, its quota is {limit}"
        yield AuditFinding("over_quota", tenant.name, kind, text)
