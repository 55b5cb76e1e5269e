# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is not as it should be among tenants (pure)."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .._access.role import read_privileges
from .._cluster.tenant import tenants_of
from .._core.errors import FleetError
from .._protection.privileges import Privileges
from .describe import over_quota
from .facts import Facts, entries_of, other_rights
from .model import Tenant, creation_day
from .parts import surplus_entries, wanted_privileges, wanted_rights

_VOLUME = re.compile(r"^[^,:]+:(?:\S*/)?(?:vm|base|subvol)-(?P<vmid>[0-9]{1,9})-")
_DRIVE = re.compile(r"^(?:scsi|virtio|ide|sata|efidisk|tpmstate|unused)\d+$")
_DAY = 86400
UNKNOWN = "unknown"
# Proxmox VE leaves out of its listings what the caller may not see, and refuses nothing
# (pve-manager: PVE/API2/Cluster.pm, resources; pve-access-control: PVE/API2/User.pm, index, and
# PVE/API2/ACL.pm, read_acl).
_SIGHT = (
    ("/vms", "VM.Audit", "VMs and containers"),
    ("/access", "Sys.Audit", "users, tokens and rights"),
)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: its kind, the tenant that it is about, the object, and a text."""

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

    def finding(self, kind: str, tenant: str | None, text: str) -> Finding:
        """Return what is wrong with it; `text` continues a sentence that begins with the guest."""
        return Finding(kind, tenant, str(self.vmid), f"{self.label} {text}")


def _guests(facts: Facts) -> Iterator[_Guest]:
    """Yield the VMs and then the containers, by VMID.

    Templates need no tenant, and containers none as these modules create none.
    """
    for vmid, row in sorted(facts.cluster.vms.items()):
        label = f"VM {row.own_name or vmid} ({vmid})"
        yield _Guest(vmid, label, row.tags, row.pool, row.template, not row.template)
    for vmid, one in sorted(facts.containers.items()):
        label = f"Container {one.name or vmid} ({vmid})"
        yield _Guest(vmid, label, one.tags, one.pool, one.template, False)


def judge_guests(facts: Facts, tenants: Mapping[str, Tenant], prefix: str) -> Iterator[Finding]:
    """Yield guests with no, several or an unknown tenant, and those outside of their tenant's pool.

    `tenants` are those that are described, by tag.
    """
    pools: dict[str | None, str] = {tenant.pool: tag for tag, tenant in tenants.items()}
    for guest in _guests(facts):
        owners = tenants_of(guest.tags, prefix)
        names = [owner.removeprefix(prefix) for owner in owners]
        if len(owners) > 1:
            text = f"has the tags of several tenants: {', '.join(names)}"
            yield guest.finding("several_tenants", None, text)
        elif owners and tenants:
            yield from _judge_owned(guest, names[0], tenants.get(owners[0]))
        elif guest.needs_tenant and not owners:
            yield guest.finding("no_tenant", None, "has no tenant")
        owner_of_pool = pools.get(guest.pool)
        if owner_of_pool is not None and owner_of_pool not in owners:
            name = owner_of_pool.removeprefix(prefix)
            text = f"is in pool {guest.pool} of another tenant"
            yield guest.finding("foreign_pool", name, text)


def _judge_owned(guest: _Guest, name: str, tenant: Tenant | None) -> Iterator[Finding]:
    """Judge a guest with the tag of one tenant; `tenant` is its description."""
    if tenant is None:
        text = f"is of tenant {name}, which is not described"
        yield guest.finding("unknown_tenant", name, text)
    elif guest.pool != tenant.pool:
        text = f"is not in pool {tenant.pool} of its tenant {name}"
        yield guest.finding("outside_pool", name, text)


def judge_sight(held: Privileges) -> Iterator[Finding]:
    """Yield the privileges that the caller lacks to see all that is checked."""
    for path, privilege, hidden in _SIGHT:
        if privilege not in held.below(path):
            subject = f"{privilege} on {path}"
            text = f"This user or token lacks {subject}: {hidden} that it may not see are unchecked"
            yield Finding(UNKNOWN, None, subject, text)


def judge_unread(facts: Facts, errors: Mapping[int, FleetError]) -> Iterator[Finding]:
    """Yield the VMs whose volumes are not known, with the reason."""
    guests = {guest.vmid: guest for guest in _guests(facts)}
    for vmid, error in sorted(errors.items()):
        yield guests[vmid].finding(UNKNOWN, None, f"could not be checked: {error.message}")


def judge_volumes(
    facts: Facts, configs: Mapping[int, Mapping[str, Any]], prefix: str
) -> Iterator[Finding]:
    """Yield volumes that a VM uses and whose number is that of another tenant's guest."""
    guests = {guest.vmid: guest for guest in _guests(facts)}
    for vmid, config in sorted(configs.items()):
        own_tenants = tenants_of(guests[vmid].tags, prefix)
        for slot, volume, number in _volumes(config):
            other = guests.get(number)
            if other is None or other.template:
                continue
            tenants = tenants_of(other.tags, prefix)
            if tenants and tenants != own_tenants:
                name = tenants[0].removeprefix(prefix)
                text = f"VM {vmid} uses volume {volume} of {other.label} as {slot}"
                yield Finding("foreign_volume", name, str(vmid), text)


def _volumes(config: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Yield slot, volume and the VMID in the volume's name, for each drive with such a volume."""
    for slot, value in sorted(config.items()):
        if not _DRIVE.match(slot):
            continue
        drive = str(value)
        found = _VOLUME.match(drive)
        if found:
            volume = drive.partition(",")[0]
            yield slot, volume, int(found["vmid"])


def judge_tokens(
    facts: Facts, realms: Collection[str], now: float, max_age: int
) -> Iterator[Finding]:
    """Yield tokens of a realm that does not exist, without expiry, or too old.

    `now` is in seconds since 1970, `max_age` in days.
    """
    for user in sorted(facts.users):
        realm = user.rpartition("@")[2]
        for name, token in sorted(facts.tokens_of(user).items()):
            whole = f"{user}!{name}"
            if realm not in realms:
                text = f"Token {whole} is of a user whose realm does not exist"
                yield Finding("unknown_user", None, whole, text)
            if not int(token.get("expire") or 0):
                yield Finding("no_expiry", None, whole, f"Token {whole} never expires")
            age = _age(token, now)
            if age > max_age:
                text = f"Token {whole} was created {age} days ago, {max_age} are allowed"
                yield Finding("old_token", None, whole, text)


def _age(token: Mapping[str, Any], now: float) -> int:
    """Return the age of a token in days, 0 where its comment does not have a date."""
    day = creation_day(token)
    if day is None:
        return 0
    try:
        created = datetime.datetime.fromisoformat(f"{day}T00:00:00+00:00")
    except ValueError:
        return 0
    seconds = now - created.timestamp()
    return int(seconds // _DAY)


def judge_subjects(facts: Facts) -> Iterator[Finding]:
    """Yield rights of users, groups and tokens that do not exist."""
    known = _subjects(facts)
    for path, grant in entries_of(facts.rights):
        if (grant.kind, grant.who) not in known:
            text = f"{grant.text()} on {path}: there is no such {grant.kind}"
            yield Finding("unknown_user", None, grant.who, text)


def _subjects(facts: Facts) -> set[tuple[str, str]]:
    """Return everything that can have a right: kind and name."""
    found = {("group", name) for name in facts.groups}
    for user in facts.users:
        found.add(("user", user))
        for name in facts.tokens_of(user):
            found.add(("token", f"{user}!{name}"))
    return found


def judge_tenant(tenant: Tenant, facts: Facts, templates: Mapping[str, int]) -> Iterator[Finding]:
    """Yield more rights, privileges or VMs than the tenant is described to have."""
    wanted = wanted_rights(tenant, facts, templates)
    for path, grant in surplus_entries(tenant, facts, wanted):
        text = f"{grant.text()} on {path} is more than {tenant.label} is given"
        yield Finding("wide_rights", tenant.name, path, text)
    for path, grant in entries_of(other_rights(tenant, facts)):
        text = f"{grant.text()} on {path} is not by a role of {tenant.label}"
        yield Finding("wide_rights", tenant.name, path, text)
    for role, privileges in sorted(wanted_privileges(tenant, facts).items()):
        row = facts.roles.get(role, {"roleid": role})
        more = read_privileges(row) - privileges
        if more:
            text = f"Role {role} also has {', '.join(sorted(more))}"
            yield Finding("wide_role", tenant.name, role, text)
    for kind, figures in over_quota(tenant, facts).items():
        has, limit = figures["wanted"], figures["limit"]
        text = f"{tenant.label} has {kind} {has}, its quota is {limit}"
        yield Finding("over_quota", tenant.name, kind, text)
