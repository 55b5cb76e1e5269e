# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module tenant_info."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.quota import figures_by_vm, total
from ..._foundation.cluster.tenant import PREFIX, blank_owner, is_blank, tenants_of
from ..._foundation.core import times
from ..._foundation.core.marks import marked_tag
from ..._foundation.core.result import Result
from ..access.effective import AclEntry, read_privileges
from .facts import TenantFacts, entries_of, read_facts
from .login.token_age import days_left
from .model import creation_day
from .rights import KINDS

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_POOLS = "/pool/"


def run_info(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the tenants of the cluster, sorted by name; nothing is written.

    Raises ValidationFailed for a blank name.
    """
    name = params.get("name")
    prefix = str(params.get("tenant_prefix") or PREFIX).lower()
    _require_name(name)
    facts = read_facts(client)
    tags = tags_of(facts, prefix)
    if name is not None:
        tags.intersection_update([f"{prefix}{name}".lower()])
    now = client.clock.time()
    tenants = [describe_tenant(tag, prefix, facts, now) for tag in sorted(tags)]
    return Result(False, {"tenants": tenants})


def _require_name(name: str | None) -> None:
    if name is not None and is_blank(name):
        raise blank_owner("name")


def tags_of(facts: TenantFacts, prefix: str) -> set[str]:
    """Return the tags of all tenants that have a guest, a role or a user (pure)."""
    found: set[str] = set()
    for row in facts.cluster.guests:
        found.update(tenants_of(row.tags, prefix))
    found.update(map(_without_suffix, facts.roles))
    found.update(map(_name_of, facts.users))
    found.discard(prefix)
    return {name for name in found if name.startswith(prefix)}


def _without_suffix(role: str) -> str:
    """Return the tag from the name of a tenant's role."""
    for suffix in KINDS:
        role = role.removesuffix(suffix)
    return role


def _name_of(user: str) -> str:
    """Return the name of a user without its realm."""
    return user.partition("@")[0]


def describe_tenant(tag: str, prefix: str, facts: TenantFacts, now: float) -> dict[str, Any]:
    """Return a tenant as it exists in the cluster (pure)."""
    names = [f"{tag}{suffix}" for suffix in KINDS]
    roles: dict[str, list[str]] = {}
    for name in sorted(facts.roles.keys() & names):
        roles[name] = sorted(read_privileges(facts.roles[name]))
    entries = [entry for entry in entries_of(facts.rights) if entry[1].role in roles]
    rights: list[dict[str, str]] = []
    pools: list[str] = []
    for path, grant in entries:
        rights.append({"path": path, grant.kind: grant.who, "role": grant.role})
        if grant.role == tag and path.startswith(_POOLS):
            pools.append(path[len(_POOLS) :])
    named = {user for user in facts.users if _name_of(user) == tag}
    users = sorted(named | _subjects(entries, "user"))
    figures = figures_by_vm(facts.of_both_kinds, tag, prefix)
    return {
        "name": tag.removeprefix(prefix),
        "tag": tag,
        "pools": pools,
        "users": users,
        "groups": sorted(_subjects(entries, "group")),
        "tokens": _tokens(users, facts, prefix, now),
        "roles": roles,
        "rights": rights,
        "vms": sorted(figures.keys() & facts.cluster.vms.keys()),
        "containers": sorted(figures.keys() - facts.cluster.vms.keys()),
        "usage": vars(total(figures.values())),
    }


def _subjects(rights: Sequence[AclEntry], kind: str) -> set[str]:
    """Return the users, groups or tokens that have one of these rights."""
    return {grant.who for _path, grant in rights if grant.kind == kind}


def _tokens(
    users: Sequence[str], facts: TenantFacts, prefix: str, now: float
) -> list[dict[str, Any]]:
    """Return the tokens of these users as the module reports them."""
    found: list[dict[str, Any]] = []
    for user in users:
        for name, row in sorted(facts.tokens_of(user).items()):
            tag = marked_tag(row.get("comment"))
            token = {
                "token_id": f"{user}!{name}",
                "expire": times.iso(int(row.get("expire") or 0)),
                "created": creation_day(row),
                "days_left": days_left(row, now),
                "tenant": tag and tag.removeprefix(prefix),
            }
            found.append(token)
    return found
