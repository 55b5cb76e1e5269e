# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is not as it should be among tenants (pure)."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .._access.role import read_privileges
from .._cluster.quota import Figures, excess
from .._cluster.tenant import tenants_of
from .describe import usage
from .facts import Facts, other_rights
from .model import TOKEN_MARK, Tenant
from .parts import wanted_privileges, wanted_rights

_VOLUME = re.compile(r"^[^,:]+:(?:\S*/)?(?:vm|base|subvol)-(?P<vmid>\d+)-")
_DRIVE = re.compile(r"^(?:scsi|virtio|ide|sata|efidisk|tpmstate|unused)\d+$")
_DAY = 86400


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: its kind, the tenant that it is about, the object, and a text."""

    kind: str
    tenant: str | None
    subject: str
    message: str


def judge_vms(facts: Facts, tenants: Mapping[str, Tenant], prefix: str) -> Iterator[Finding]:
    """Yield VMs with no, several or an unknown tenant, and those outside of their tenant's pool.

    `tenants` are those that are described, by tag. Templates need no tenant.
    """
    pools = {tenant.pool: tag for tag, tenant in tenants.items()}
    for vmid, row in sorted(facts.cluster.vms.items()):
        owners = tenants_of(row.tags, prefix)
        label = f"VM {row.own_name or vmid} ({vmid})"
        names = [owner[len(prefix) :] for owner in owners]
        if len(owners) > 1:
            text = f"{label} has the tags of several tenants: {', '.join(names)}"
            yield Finding("several_tenants", None, str(vmid), text)
        elif owners:
            yield from _judge_owned(row.pool, owners[0], names[0], tenants, str(vmid), label)
        elif not row.template:
            yield Finding("no_tenant", None, str(vmid), f"{label} has no tenant")
        owner = pools.get(row.pool or "")
        if owner and owner not in owners:
            text = f"{label} is in pool {row.pool} of another tenant"
            yield Finding("foreign_pool", owner[len(prefix) :], str(vmid), text)


def _judge_owned(
    pool: str | None, tag: str, name: str, tenants: Mapping[str, Tenant], vmid: str, label: str
) -> Iterator[Finding]:
    if not tenants:
        return
    tenant = tenants.get(tag)
    if tenant is None:
        text = f"{label} is of tenant {name}, which is not described"
        yield Finding("unknown_tenant", name, vmid, text)
    elif pool != tenant.pool:
        text = f"{label} is not in pool {tenant.pool} of its tenant {name}"
        yield Finding("outside_pool", name, vmid, text)


def judge_volumes(
    facts: Facts, configs: Mapping[int, Mapping[str, Any]], prefix: str
) -> Iterator[Finding]:
    """Yield volumes that a VM uses and whose number is that of another tenant's VM."""
    for vmid, config in sorted(configs.items()):
        mine = tenants_of(facts.cluster.vms[vmid].tags, prefix)
        for slot, text in sorted(config.items()):
            found = _VOLUME.match(str(text)) if _DRIVE.match(slot) else None
            owner = facts.cluster.vms.get(int(found["vmid"])) if found else None
            if owner is None or owner.vmid == vmid or owner.template:
                continue
            theirs = tenants_of(owner.tags, prefix)
            if theirs and theirs != mine:
                volume = str(text).partition(",")[0]
                message = f"VM {vmid} uses volume {volume} of VM {owner.vmid} as {slot}"
                tenant = theirs[0][len(prefix) :]
                yield Finding("foreign_volume", tenant, str(vmid), message)


def judge_tokens(
    facts: Facts, realms: frozenset[str], now: float, max_age: int
) -> Iterator[Finding]:
    """Yield tokens without expiry, of a realm that does not exist, expired, or too old.

    Proxmox VE does not keep when a token was created; module tenant writes it into the comment.
    """
    for user in sorted(facts.users):
        for name, token in sorted(facts.tokens_of(user).items()):
            whole = f"{user}!{name}"
            if user.rpartition("@")[2] not in realms:
                text = f"Token {whole} is of a user whose realm does not exist"
                yield Finding("unknown_user", None, whole, text)
            if not int(token.get("expire") or 0):
                yield Finding("no_expiry", None, whole, f"Token {whole} never expires")
            age = _age(token, now)
            if age is not None and age > max_age:
                text = f"Token {whole} was created {age} days ago, {max_age} are allowed"
                yield Finding("old_token", None, whole, text)


def _age(token: Mapping[str, Any], now: float) -> int | None:
    """Return the age of a token in days, None where its comment does not have it."""
    found = TOKEN_MARK.search(str(token.get("comment") or ""))
    if found is None:
        return None
    try:
        created = datetime.datetime.fromisoformat(f"{found[1]}T00:00:00+00:00")
    except ValueError:
        return None
    return int((now - created.timestamp()) // _DAY)


def judge_subjects(facts: Facts) -> Iterator[Finding]:
    """Yield rights of users, groups and tokens that do not exist."""
    known = {("user", name) for name in facts.users}
    known |= {("group", name) for name in facts.groups}
    for user in facts.users:
        known |= {("token", f"{user}!{name}") for name in facts.tokens_of(user)}
    for path, grants in sorted(facts.rights.items()):
        for grant in sorted(grants):
            if (grant.kind, grant.who) not in known:
                text = f"{grant.text()} on {path}: there is no such {grant.kind}"
                yield Finding("unknown_user", None, grant.who, text)


def judge_tenant(tenant: Tenant, facts: Facts, templates: Mapping[str, int]) -> Iterator[Finding]:
    """Yield more rights, privileges or VMs than the tenant is described to have."""
    wanted = wanted_rights(tenant, facts, templates)
    own = set(tenant.roles.values())
    for path, grants in sorted(facts.rights.items()):
        for grant in sorted(grants):
            if grant.role in own and grant[:3] not in {one[:3] for one in wanted.get(path, ())}:
                text = f"{grant.text()} on {path} is more than {tenant.label} is given"
                yield Finding("wide_rights", tenant.name, path, text)
    for path, grants in sorted(other_rights(tenant, facts).items()):
        for grant in sorted(grants):
            text = f"{grant.text()} on {path} is not by a role of {tenant.label}"
            yield Finding("wide_rights", tenant.name, path, text)
    for role, privileges in sorted(wanted_privileges(tenant, facts).items()):
        more = read_privileges(facts.roles.get(role, {"roleid": role})) - privileges
        if more:
            text = f"Role {role} also has {', '.join(sorted(more))}"
            yield Finding("wide_role", tenant.name, role, text)
    over = excess(tenant.quota or {}, Figures(), usage(tenant, facts))
    for kind, row in over.items():
        text = f"{tenant.label} has {kind} {row['wanted']}, its quota is {row['limit']}"
        yield Finding("over_quota", tenant.name, kind, text)
