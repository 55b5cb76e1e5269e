# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the cluster has of a tenant, read with few requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .._access.acl import ACL
from .._access.grants import Grant, read_grant
from .._access.group import GROUP
from .._access.role import ROLE
from .._access.token import TOKEN
from .._access.user import USER
from .._cluster.state import ClusterState, cluster_state_of
from .._resource.table import Table
from .model import Tenant

if TYPE_CHECKING:
    from .._api.client import Client

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Facts:
    """Users by name with their tokens, groups and roles by name, and all rights by path."""

    cluster: ClusterState
    users: Mapping[str, Row]
    groups: Mapping[str, Row]
    roles: Mapping[str, Row]
    rights: Mapping[str, frozenset[Grant]]
    version: tuple[int, int]
    containers: Mapping[int, str] = field(default_factory=dict)  # pool of each, empty without one

    def tokens_of(self, user: str) -> dict[str, Row]:
        """Return the tokens of a user by name."""
        tokens = self.users.get(user, {}).get("tokens") or []
        return {str(row["tokenid"]): row for row in tokens}


def read_facts(client: Client) -> Facts:
    """Return the facts; five requests."""
    rows = client.get("cluster", "resources", attempted="Could not read the cluster") or []
    users = client.get("access", "users", params={"full": "1"}) or []
    groups = client.get("access", "groups") or []
    roles = client.get("access", "roles") or []
    rights: dict[str, set[Grant]] = {}
    for row in client.get("access", "acl", attempted="Could not read the rights") or []:
        rights.setdefault(str(row["path"]), set()).add(read_grant(row))
    return Facts(
        cluster=cluster_state_of(rows),
        users={str(row["userid"]): row for row in users},
        groups={str(row["groupid"]): row for row in groups},
        roles={str(row["roleid"]): row for row in roles},
        rights={path: frozenset(grants) for path, grants in rights.items()},
        version=client.version(),
        containers={
            int(row["vmid"]): str(row.get("pool") or "") for row in rows if row.get("type") == "lxc"
        },
    )


def own_rights(tenant: Tenant, facts: Facts) -> dict[str, frozenset[Grant]]:
    """Return the rights by path that give a role of the tenant, to whomever (pure)."""
    own = set(tenant.roles.values())
    found: dict[str, frozenset[Grant]] = {}
    for path, grants in facts.rights.items():
        ours = frozenset(grant for grant in grants if grant.role in own)
        if ours:
            found[path] = ours
    return found


def other_rights(tenant: Tenant, facts: Facts) -> dict[str, frozenset[Grant]]:
    """Return the rights by path that its user, group and tokens have by other roles (pure)."""
    own = set(tenant.roles.values())
    tokens = {f"{tenant.user}!{name}" for name in facts.tokens_of(tenant.user)}
    subjects = {("user", tenant.user), *(("token", name) for name in tokens)}
    if tenant.group:
        subjects.add(("group", tenant.group))
    found: dict[str, frozenset[Grant]] = {}
    for path, grants in facts.rights.items():
        others = frozenset(
            grant
            for grant in grants
            if grant.role not in own and (grant.kind, grant.who) in subjects
        )
        if others:
            found[path] = others
    return found


def listed(table: Table) -> Table:
    """Return a table that reads one resource from the listing of all of its kind, so that several
    share one request.
    """

    def pick(answer: Any, keys: Mapping[str, str]) -> Mapping[str, Any] | None:
        for row in table.rows(answer, keys):
            if table.keys_of(row) == keys:
                return row
        return None

    return replace(table, read_call=table.list_call, pick=pick, precheck=None)


LISTED_GROUP = listed(GROUP)
LISTED_ROLE = listed(ROLE)
LISTED_USER = listed(USER)
LISTED_TOKEN = listed(TOKEN)
LISTED_ACL = replace(ACL, precheck=None)
