# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module tenant_info."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._access.role import read_privileges
from .._cluster.quota import figures_by_vm, total
from .._cluster.tenant import PREFIX, blank_owner, is_blank, tenants_of
from .._core import times
from .._core.result import Result
from .facts import Facts, read_facts
from .model import TOKEN_MARK
from .rights import KINDS

if TYPE_CHECKING:
    from .._api.client import Client


def run_info(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the tenants that the cluster has, sorted by name; nothing is written.

    Raises ValidationFailed for a name without a value.
    """
    name = params.get("name")
    if name is not None and is_blank(name):
        raise blank_owner("name")
    prefix = str(params.get("tenant_prefix") or PREFIX).lower()
    facts = read_facts(client)
    tags = tags_of(facts, prefix)
    if name is not None:
        tags &= {f"{prefix}{name}".lower()}
    return Result(False, {"tenants": [show(tag, prefix, facts) for tag in sorted(tags)]})


def tags_of(facts: Facts, prefix: str) -> set[str]:
    """Return the tags of all tenants that have a VM, a role or a user (pure)."""
    found = {tag for row in facts.cluster.vms.values() for tag in tenants_of(row.tags, prefix)}
    suffixes = tuple(suffix for suffix in KINDS if suffix)
    for name in facts.roles:
        if name.startswith(prefix):
            found.add(_without(name, suffixes))
    for user in facts.users:
        if user.startswith(prefix):
            found.add(user.partition("@")[0])
    return found - {prefix}


def _without(name: str, suffixes: tuple[str, ...]) -> str:
    for suffix in suffixes:
        name = name.removesuffix(suffix)
    return name


def show(tag: str, prefix: str, facts: Facts) -> dict[str, Any]:
    """Return one tenant as the cluster has it (pure)."""
    roles = {tag, *(f"{tag}{suffix}" for suffix in KINDS)} & facts.roles.keys()
    rights: list[dict[str, Any]] = []
    for path, grants in sorted(facts.rights.items()):
        for grant in sorted(grants):
            if grant.role in roles:
                rights.append({"path": path, grant.kind: grant.who, "role": grant.role})
    users = sorted({row["user"] for row in rights if "user" in row} | _users_named(tag, facts))
    groups = sorted({row["group"] for row in rights if "group" in row})
    figures = figures_by_vm(facts.cluster, tag, prefix)
    return {
        "name": tag[len(prefix) :],
        "tag": tag,
        "pools": [row["path"][len("/pool/") :] for row in rights if row["role"] == tag],
        "users": users,
        "groups": groups,
        "tokens": [token for user in users for token in _tokens(user, facts)],
        "roles": {name: sorted(read_privileges(facts.roles[name])) for name in sorted(roles)},
        "rights": rights,
        "vms": sorted(figures),
        "usage": vars(total(figures.values())),
    }


def _users_named(tag: str, facts: Facts) -> set[str]:
    return {user for user in facts.users if user.partition("@")[0] == tag}


def _tokens(user: str, facts: Facts) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name, row in sorted(facts.tokens_of(user).items()):
        created = TOKEN_MARK.search(str(row.get("comment") or ""))
        found.append(
            {
                "token_id": f"{user}!{name}",
                "expire": times.iso(int(row.get("expire") or 0)),
                "created": created[1] if created else None,
            }
        )
    return found
