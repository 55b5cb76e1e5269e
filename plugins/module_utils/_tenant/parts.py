# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The parts of a tenant, each a resource with its own table, in the order of the work (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .._access.acl import ACL
from .._access.grants import Grant
from .._access.group import GROUP
from .._access.role import ROLE
from .._access.user import USER
from .._core.errors import Conflict
from .._datacenter.table import CLUSTER_OPTIONS
from .._pool.table import POOL
from .._resource.change import Desired
from .._resource.decide import read_desired
from .._resource.table import Table
from .facts import (
    LISTED_ACL,
    LISTED_GROUP,
    LISTED_ROLE,
    LISTED_USER,
    Entry,
    Facts,
    Rights,
    by_path,
    entries_of,
    own_rights,
)
from .model import Tenant
from .rights import bridge_path, privileges_of


@dataclass(frozen=True)
class Part:
    """One resource of the tenant: `reads` is its table while all is planned, `table` when it is
    written.
    """

    reads: Table
    table: Table
    desired: Desired


def pool_part(tenant: Tenant, facts: Facts) -> Part:
    comment = tenant.comment
    if comment is None and tenant.pool not in facts.cluster.pools:
        comment = tenant.mark
    return Part(POOL, POOL, read_desired(POOL, {"name": tenant.pool, "comment": comment}))


def tag_part(tenant: Tenant, *, registered: bool) -> Part:
    """Return its tag among the registered ones of the cluster, or out of them."""
    state = "present" if registered else "absent"
    options = {"registered_tags": [tenant.tag], "state": state}
    return Part(CLUSTER_OPTIONS, CLUSTER_OPTIONS, read_desired(CLUSTER_OPTIONS, options))


def group_parts(tenant: Tenant, facts: Facts) -> list[Part]:
    """Return the group where the tenant has one and it does not exist."""
    if not tenant.group or tenant.group in facts.groups:
        return []
    options = {"name": tenant.group, "comment": tenant.mark}
    return [Part(LISTED_GROUP, GROUP, read_desired(GROUP, options))]


def wanted_privileges(tenant: Tenant, facts: Facts) -> dict[str, frozenset[str]]:
    """Return the privileges of each role of the tenant, by the name of the role."""
    vmids = dict.fromkeys(tenant.templates, 0)  # any will do: what counts is whether there is one
    paths = _paths(tenant, vmids)
    found: dict[str, frozenset[str]] = {}
    for suffix, privileges in privileges_of(tenant.operations, facts.version).items():
        is_used = bool(paths[suffix])
        if is_used:
            found[tenant.roles[suffix]] = privileges
    return found


def role_parts(tenant: Tenant, facts: Facts) -> list[Part]:
    """Return its roles, each with exactly its privileges."""
    parts: list[Part] = []
    for name, privileges in sorted(wanted_privileges(tenant, facts).items()):
        options = {"name": name, "privileges": sorted(privileges), "append": False}
        parts.append(Part(LISTED_ROLE, ROLE, read_desired(ROLE, options)))
    return parts


def unused_role_parts(tenant: Tenant, facts: Facts) -> list[Part]:
    """Return the removal of roles that the tenant no longer needs."""
    unused = set(tenant.roles.values()) - wanted_privileges(tenant, facts).keys()
    return [
        Part(LISTED_ROLE, ROLE, read_desired(ROLE, {"name": name, "state": "absent"}))
        for name in sorted(unused & facts.roles.keys())
    ]


def user_parts(tenant: Tenant, facts: Facts) -> list[Part]:
    """Return its user, and the membership of other users in its group."""
    options: dict[str, object] = {"name": tenant.user, "append": True}
    if tenant.user not in facts.users:
        options["comment"] = tenant.mark
    if tenant.group:
        options["groups"] = [tenant.group]
    parts = [Part(LISTED_USER, USER, read_desired(USER, options))]
    for member in tenant.members:
        options = {"name": member, "append": True, "groups": [tenant.group]}
        parts.append(Part(LISTED_USER, USER, read_desired(USER, options)))
    return parts


def _paths(tenant: Tenant, templates: Mapping[str, int]) -> dict[str, list[str]]:
    """Return the paths of each role by its suffix."""
    return {
        "": [f"/pool/{tenant.pool}"],
        ".template": [f"/vms/{vmid}" for vmid in templates.values()],
        ".storage": [f"/storage/{name}" for name in tenant.storages],
        ".images": [f"/storage/{name}" for name in tenant.image_storages],
        ".network": [bridge_path(name) for name in tenant.bridges],
        ".node": [f"/nodes/{name}" for name in tenant.nodes],
    }


def wanted_rights(tenant: Tenant, facts: Facts, templates: Mapping[str, int]) -> Rights:
    """Return the rights of the tenant by path; `templates` are their VMIDs by what names them."""
    kind, who = tenant.subject
    wanted = wanted_privileges(tenant, facts)
    found: list[Entry] = []
    for suffix, paths in _paths(tenant, templates).items():
        role = tenant.roles[suffix]
        grant = Grant(kind, who, role, propagate=True)
        if role in wanted:
            found += [(path, grant) for path in paths]
    return by_path(found)


def right_parts(tenant: Tenant, facts: Facts, templates: Mapping[str, int]) -> list[Part]:
    """Return its rights, and the removal of those that give a role of its own to others, or on
    other paths.
    """
    wanted = wanted_rights(tenant, facts, templates)
    parts = [rights_on(path, grants) for path, grants in wanted.items()]
    surplus = by_path(surplus_entries(tenant, facts, wanted))
    for path, grants in surplus.items():
        parts.append(rights_on(path, grants, present=False))
    return parts


def surplus_entries(tenant: Tenant, facts: Facts, wanted: Rights) -> list[Entry]:
    """Return the rights by roles of the tenant that are not among the wanted ones.

    Whether a right propagates does not count: no one has a role on a path twice.
    """
    known: set[tuple[str, str, str, str]] = set()
    for path, grant in entries_of(wanted):
        known.add((path, grant.kind, grant.who, grant.role))
    found: list[Entry] = []
    for path, grant in entries_of(own_rights(tenant, facts)):
        if (path, grant.kind, grant.who, grant.role) not in known:
            found.append((path, grant))
    return found


def rights_on(path: str, grants: Iterable[Grant], *, present: bool = True) -> Part:
    """Return rights on a path, or their removal."""
    members = {"grants": frozenset(grants)}
    return Part(LISTED_ACL, ACL, Desired({"path": path}, present=present, members=members))


def refuse_foreign_user(tenant: Tenant, facts: Facts, *, is_given: bool) -> None:
    """Raise Conflict where the user that would be the tenant's exists and was made for another
    purpose, unless the task names it.
    """
    known = facts.users.get(tenant.user)
    if known is None or is_given or tenant.is_marked(known.get("comment")):
        return
    raise Conflict(
        attempted=f"{tenant.label[:1].upper()}{tenant.label[1:]} was not created",
        answer=f"user '{tenant.user}' exists, and was not created for it",
        next_step="Name this user in owner to let the tenant use it, or name another one",
        reason="another user",
    )
