# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects of a tenant in the cluster, read with few requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.state import ClusterState, VmRow, cluster_state_of
from ..._foundation.cluster.tenant import owns
from ..._foundation.core.errors import FleetError, NotFound
from ..._foundation.core.parallel import side_by_side
from ..._foundation.resource.run import read_values
from ..._foundation.resource.table import Table
from ..._guests.guest.live.read import read_wherever
from ..._guests.kinds.model import Actual
from ..._guests.kinds.words import TYPES, VM, kind_of_row
from ..access.acl import ACL
from ..access.effective import AclEntry
from ..access.grants import Grant, read_grant
from ..access.group import GROUP
from ..access.pool import POOL
from ..access.role import ROLE
from ..access.token import TOKEN
from ..access.user import USER
from .model import Tenant

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


Row = Mapping[str, Any]
Rights = Mapping[str, frozenset[Grant]]
"""The grants on each path of the access control list."""


@dataclass(frozen=True)
class TenantFacts:
    """The objects of a cluster that concern tenants.

    Users, with their tokens, groups and roles are by name, rights by path. `pools` contains only
    the pools read so far, by name. The containers are the `others` of the cluster.
    """

    cluster: ClusterState
    users: Mapping[str, Row]
    groups: Mapping[str, Row]
    roles: Mapping[str, Row]
    rights: Rights
    version: tuple[int, int]
    pools: Mapping[str, Row] = field(default_factory=dict)

    @property
    def of_both_kinds(self) -> ClusterState:
        """The cluster state with VMs and containers in one mapping, as a quota counts them."""
        vms = {**self.cluster.others, **self.cluster.vms}
        return replace(self.cluster, vms=vms, others={}, types=TYPES)

    def tokens_of(self, user: str) -> dict[str, Row]:
        """Return the tokens of a user by name."""
        row = self.users.get(user, {})
        return _rows_by("tokenid", row.get("tokens"))


def read_facts(client: Client) -> TenantFacts:
    """Return the facts; five requests."""
    rows = client.get("cluster", "resources", attempted="Could not read the cluster") or []
    users = client.get("access", "users", params={"full": "1"})
    groups = client.get("access", "groups")
    roles = client.get("access", "roles")
    acl = client.get("access", "acl", attempted="Could not read the rights") or []
    return TenantFacts(
        cluster=cluster_state_of(rows, {VM.type}),
        users=_rows_by("userid", users),
        groups=_rows_by("groupid", groups),
        roles=_rows_by("roleid", roles),
        rights=by_path((str(row["path"]), read_grant(row)) for row in acl),
        version=client.version(),
    )


def read_guests(
    client: Client, rows: Iterable[VmRow]
) -> tuple[dict[int, Actual], dict[int, FleetError]]:
    """Return the guests by VMID, and the errors of guests that could not be read; one request each.

    A guest that was removed after the listing is in neither.
    """

    def read(row: VmRow) -> Actual | FleetError:
        kind = kind_of_row(row)
        try:
            return read_wherever(client, kind, row.vmid, row.node, status=row.status, pool=row.pool)
        except FleetError as error:
            return error

    listed = list(rows)
    found: dict[int, Actual] = {}
    unread: dict[int, FleetError] = {}
    for row, answer in zip(listed, side_by_side(read, listed), strict=True):
        if isinstance(answer, Actual):
            found[row.vmid] = answer
        elif not isinstance(answer, NotFound):
            unread[row.vmid] = answer
    return found, unread


def forbidden_to_be_privileged(tenant: Tenant, facts: TenantFacts) -> list[VmRow]:
    """Return the containers of a tenant that must not be privileged (pure).

    The listing does not show which containers are privileged.
    """
    if tenant.allow_privileged:
        return []
    rows = facts.cluster.others.values()
    return [row for row in rows if owns(tenant.tag, row.tags, tenant.prefix)]


def with_pool(facts: TenantFacts, tenant: Tenant, client: Client) -> TenantFacts:
    """Return the facts with the pool of a tenant; one request, the same as in the pool's plan."""
    pool = read_values(POOL, client, {"name": tenant.pool})
    if pool is None:
        return facts
    return replace(facts, pools={**facts.pools, tenant.pool: pool})


def _rows_by(key: str, rows: Iterable[Row] | None) -> dict[str, Row]:
    """Return the rows of a listing by their property `key`; None counts as an empty listing."""
    return {str(row[key]): row for row in rows or ()}


def by_path(entries: Iterable[AclEntry]) -> Rights:
    """Return rights by path, in the order of the paths."""
    found: dict[str, set[Grant]] = {}
    for path, grant in sorted(entries):
        grants = found.setdefault(path, set())
        grants.add(grant)
    return {path: frozenset(grants) for path, grants in found.items()}


def entries_of(rights: Rights) -> list[AclEntry]:
    """Return single rights, sorted by path, then by subject and role."""
    found: list[AclEntry] = []
    for path, grants in rights.items():
        found += [(path, grant) for grant in grants]
    return sorted(found)


def own_rights(tenant: Tenant, facts: TenantFacts) -> Rights:
    """Return the rights by path that give a role of the tenant to anyone (pure)."""
    own = set(tenant.roles.values())
    entries = entries_of(facts.rights)
    return by_path(entry for entry in entries if entry[1].role in own)


def other_rights(tenant: Tenant, facts: TenantFacts) -> Rights:
    """Return the rights of its user, group and tokens from other roles, by path (pure)."""
    own = set(tenant.roles.values())
    subjects = {("user", tenant.user), ("group", tenant.group)}
    for name in facts.tokens_of(tenant.user):
        subjects.add(("token", f"{tenant.user}!{name}"))
    others = [entry for entry in entries_of(facts.rights) if entry[1].role not in own]
    return by_path(entry for entry in others if (entry[1].kind, entry[1].who) in subjects)


def listed(table: Table) -> Table:
    """Return a table that reads from the listing, so several resources share one request."""

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
