# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The resources of a tenant, each with its own table, in the order of execution (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..._foundation.resource.decide import read_desired
from ..._foundation.resource.table import DesiredResource, Table
from ..._infrastructure.datacenter.table import CLUSTER_OPTIONS
from ..access.acl import ACL
from ..access.effective import AclEntry
from ..access.grants import Grant
from ..access.group import GROUP
from ..access.pool import POOL
from ..access.role import ROLE
from ..access.user import USER
from .facts import (
    LISTED_ACL,
    LISTED_GROUP,
    LISTED_ROLE,
    LISTED_USER,
    Rights,
    TenantFacts,
    by_path,
    entries_of,
    own_rights,
)
from .marks import group_of, pool_of, user_of
from .model import Tenant
from .rights import bridge_path, privileges_of


@dataclass(frozen=True)
class TenantResource:
    """One resource of the tenant: `reads` is its table for planning, `table` for writing."""

    reads: Table
    table: Table
    desired: DesiredResource


def pool_resource(tenant: Tenant, facts: TenantFacts) -> TenantResource:
    """Return the tenant's pool. The comment of a pool of another owner is not changed."""
    comment = pool_of(tenant, facts).comment
    if comment is not None and tenant.comment is not None:
        comment = tenant.marked(tenant.comment)
    return TenantResource(POOL, POOL, read_desired(POOL, {"name": tenant.pool, "comment": comment}))


def tag_resource(tenant: Tenant, *, registered: bool) -> TenantResource:
    """Return the addition of its tag to the registered tags of the cluster, or its removal."""
    state = "present" if registered else "absent"
    options = {"registered_tags": [tenant.tag], "state": state}
    return TenantResource(CLUSTER_OPTIONS, CLUSTER_OPTIONS, read_desired(CLUSTER_OPTIONS, options))


def group_resources(tenant: Tenant, facts: TenantFacts) -> list[TenantResource]:
    """Return the tenant's group, if any, unless it exists and was not created for the tenant."""
    comment = group_of(tenant, facts).comment
    if not tenant.group or comment is None:
        return []
    options = {"name": tenant.group, "comment": comment}
    return [TenantResource(LISTED_GROUP, GROUP, read_desired(GROUP, options))]


def wanted_privileges(tenant: Tenant, facts: TenantFacts) -> dict[str, frozenset[str]]:
    """Return the privileges of each role of the tenant, by the name of the role."""
    vmids = dict.fromkeys(tenant.templates, 0)  # any VMID will do: only their existence counts
    paths = _paths(tenant, vmids)
    found: dict[str, frozenset[str]] = {}
    for suffix, privileges in privileges_of(tenant.operations, facts.version).items():
        is_used = bool(paths[suffix])
        if is_used:
            found[tenant.roles[suffix]] = privileges
    return found


def role_resources(tenant: Tenant, facts: TenantFacts) -> list[TenantResource]:
    """Return its roles, each with exactly its privileges."""
    resources: list[TenantResource] = []
    for name, privileges in sorted(wanted_privileges(tenant, facts).items()):
        options = {"name": name, "privileges": sorted(privileges), "append": False}
        resources.append(TenantResource(LISTED_ROLE, ROLE, read_desired(ROLE, options)))
    return resources


def unused_role_resources(tenant: Tenant, facts: TenantFacts) -> list[TenantResource]:
    """Return the removal of roles that the tenant no longer needs."""
    unused = set(tenant.roles.values()) - wanted_privileges(tenant, facts).keys()
    return [
        TenantResource(LISTED_ROLE, ROLE, read_desired(ROLE, {"name": name, "state": "absent"}))
        for name in sorted(unused & facts.roles.keys())
    ]


def user_resources(tenant: Tenant, facts: TenantFacts) -> list[TenantResource]:
    """Return its user, and the membership of other users in its group."""
    options: dict[str, object] = {"name": tenant.user, "append": True}
    options["comment"] = user_of(tenant, facts).comment
    if tenant.group:
        options["groups"] = [tenant.group]
    resources = [TenantResource(LISTED_USER, USER, read_desired(USER, options))]
    for member in tenant.members:
        options = {"name": member, "append": True, "groups": [tenant.group]}
        resources.append(TenantResource(LISTED_USER, USER, read_desired(USER, options)))
    return resources


def _paths(tenant: Tenant, templates: Mapping[str, int]) -> dict[str, list[str]]:
    """Return the paths of each role, by suffix."""
    return {
        "": [f"/pool/{tenant.pool}"],
        ".template": [f"/vms/{vmid}" for vmid in templates.values()],
        ".storage": [f"/storage/{name}" for name in tenant.storages],
        ".images": [f"/storage/{name}" for name in tenant.image_storages],
        ".network": [bridge_path(name) for name in (*tenant.bridges, *tenant.vnets)],
        ".node": [f"/nodes/{name}" for name in tenant.nodes],
    }


def wanted_rights(tenant: Tenant, facts: TenantFacts, templates: Mapping[str, int]) -> Rights:
    """Return the rights of the tenant by path; `templates` are VMIDs by the option's text."""
    kind, who = tenant.subject
    wanted = wanted_privileges(tenant, facts)
    found: list[AclEntry] = []
    for suffix, paths in _paths(tenant, templates).items():
        role = tenant.roles[suffix]
        grant = Grant(kind, who, role, propagate=True)
        if role in wanted:
            found += [(path, grant) for path in paths]
    return by_path(found)


def right_resources(
    tenant: Tenant, facts: TenantFacts, templates: Mapping[str, int]
) -> list[TenantResource]:
    """Return the rights of the tenant, and the removal of surplus rights from its roles."""
    wanted = wanted_rights(tenant, facts, templates)
    resources = [rights_on(path, grants) for path, grants in wanted.items()]
    surplus = by_path(surplus_entries(tenant, facts, wanted))
    for path, grants in surplus.items():
        resources.append(rights_on(path, grants, present=False))
    return resources


def surplus_entries(tenant: Tenant, facts: TenantFacts, wanted: Rights) -> list[AclEntry]:
    """Return the rights from the tenant's roles that are not wanted.

    Propagation is ignored: a subject has a role on a path only once.
    """
    known = {(path, grant.kind, grant.who, grant.role) for path, grant in entries_of(wanted)}
    return [
        (path, grant)
        for path, grant in entries_of(own_rights(tenant, facts))
        if (path, grant.kind, grant.who, grant.role) not in known
    ]


def rights_on(path: str, grants: Iterable[Grant], *, present: bool = True) -> TenantResource:
    """Return rights on a path, or their removal."""
    members = {"grants": frozenset(grants)}
    return TenantResource(
        LISTED_ACL, ACL, DesiredResource({"path": path}, present=present, members=members)
    )
