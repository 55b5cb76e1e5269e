# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rights that a change of users, groups, roles, rights, tokens or pools takes away from the login
of the task itself.

No request is sent about a target that cannot concern this login.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..._foundation.api.interface import Api
from ..._foundation.api.root import ROOT
from ..._foundation.core import times
from ..._foundation.resource.own_loss import LOGIN, NOT_ACCEPTED, RIGHTS, OwnLoss
from ..._foundation.resource.table import DesiredResource, ResourceChange
from .effective import AccessControl, AclEntry, lost_privileges, privileges, read_privileges
from .grants import Grant, read_grant

Values = Mapping[str, Any]
Altered = Callable[[AccessControl], AccessControl]
"""Returns the access control after a change."""

_NEVER = float("inf")
_GONE = OwnLoss(NOT_ACCEPTED, LOGIN)
_UNKNOWN = OwnLoss(
    "may lose rights: without Sys.Audit on /access, Proxmox VE does not show all of them", RIGHTS
)


@dataclass(frozen=True)
class TaskLogin:
    """The login of the task: a user, or a token by its full name."""

    who: str

    @property
    def user(self) -> str:
        return self.who.partition("!")[0]

    @property
    def is_root(self) -> bool:
        """Whether entries of the access control list have no effect on it."""
        return self.who == ROOT

    def may_have(self, grant: Grant) -> bool:
        """Return whether an entry can concern the login.

        The user root@pam has all privileges regardless of entries and groups.
        """
        concerned = {self.who}
        if self.user != ROOT:
            concerned.update({self.user, *{"group": [grant.who]}.get(grant.kind, [])})
        return grant.who in concerned


def find_token_loss(
    client: Api, desired: DesiredResource, change: ResourceChange, actual: Values
) -> OwnLoss | None:
    """Return the rights that the login loses with a change of a token."""
    caller = TaskLogin(client.login)
    if caller.who != f"{desired.keys['owner']}!{desired.keys['name']}":
        return None
    if change.sets.get("privilege_separation"):
        altered: Altered = partial(replace, separated=True)
        return _ending(change, actual) or _loss(client, caller, altered)
    return _ending(change, actual)


def find_user_loss(
    client: Api, desired: DesiredResource, change: ResourceChange, actual: Values
) -> OwnLoss | None:
    """Return the rights that the login, a user or a token, loses with a change of its user."""
    caller = TaskLogin(client.login)
    if change.creates or caller.user != desired.keys["name"]:
        return None
    if change.writes:
        return OwnLoss(f"{NOT_ACCEPTED} with the password of this task", LOGIN)
    ending = _ending(change, actual)
    groups = frozenset(actual["groups"])
    after = groups.union(change.adds.get("groups", ()))
    after = after.difference(change.removes.get("groups", ()))
    if ending is not None or caller.is_root or after == groups:
        return ending
    return _loss(client, caller, partial(replace, groups=after))


def _ending(change: ResourceChange, actual: Values) -> OwnLoss | None:
    """Return the loss of a login that ends at once, or earlier than before."""
    if change.deletes or change.sets.get("enabled") is False:
        return _GONE
    wanted = change.sets.get("expire") or _NEVER
    known = actual["expire"] or _NEVER
    if wanted < known:
        return OwnLoss(f"{NOT_ACCEPTED} after {times.iso(int(wanted))}", LOGIN)
    return None


def find_group_loss(
    client: Api, desired: DesiredResource, change: ResourceChange, _actual: Values
) -> OwnLoss | None:
    """Return the rights that the login loses with the deletion of a group."""
    caller = TaskLogin(client.login)
    name = desired.keys["name"]
    if change.deletes and _is_member(client, caller, {name}):
        return _loss(client, caller, lambda known: known.without_group(name))
    return None


def find_role_loss(
    client: Api, desired: DesiredResource, change: ResourceChange, actual: Values
) -> OwnLoss | None:
    """Return the rights that the login loses if a role loses privileges or is deleted."""
    caller = TaskLogin(client.login)
    removed = change.removes.get("privileges", frozenset())
    if change.deletes:
        removed = actual["privileges"]
    if caller.is_root or not removed:
        return None
    name = desired.keys["name"]
    kept = actual["privileges"].union(change.adds.get("privileges", ())).difference(removed)
    entries = _read_entries(client)
    if any(caller.may_have(grant) for _path, grant in entries if grant.role == name):
        return _loss(client, caller, lambda known: known.with_role(name, kept))
    return _unless_complete(client)


def find_acl_loss(
    client: Api, desired: DesiredResource, change: ResourceChange, _actual: Values
) -> OwnLoss | None:
    """Return the rights that the login loses if entries on a path are added or removed.

    Entries of the login on this path replace its entries on the paths above.
    """
    caller = TaskLogin(client.login)
    path = desired.keys["path"]
    adds = [(path, grant) for grant in change.adds.get("grants", ())]
    removes = [(path, grant) for grant in change.removes.get("grants", ())]
    concerned = {grant[:2] for _path, grant in [*adds, *removes] if caller.may_have(grant)}
    kinds = {kind for kind, _who in concerned}
    groups = {who for _kind, who in concerned}
    if caller.is_root or not concerned:
        return None
    if kinds == {"group"}:
        spreads = any(grant.propagate for _path, grant in [*adds, *removes])
        if not _is_member(client, caller, groups) or _is_covered(client, caller, path, spreads):
            return None
    return _loss(client, caller, lambda known: known.with_entries(adds, removes))


def _is_covered(client: Api, caller: TaskLogin, path: str, spreads: bool) -> bool:
    """Return whether a right of the user itself overrides the rights of groups on a path.

    If the rights of groups apply below the path too (`spreads`), the user's own right must
    propagate (AccessControl.pm, roles).
    """
    entries = _read_entries(client)
    own = [grant for place, grant in entries if (place, grant.who) == (path, caller.user)]
    return any(grant.propagate or not spreads for grant in own)


def find_pool_loss(
    client: Api, desired: DesiredResource, change: ResourceChange, actual: Values
) -> OwnLoss | None:
    """Return the rights that the login loses if a pool is deleted, loses members, or takes VMs from
    other pools.
    """
    caller = TaskLogin(client.login)
    arriving = change.adds.get("vms", frozenset()) if desired.switches else frozenset()
    if caller.is_root or not (change.deletes or change.removes or arriving):
        return None
    name = desired.keys["name"]
    paths = ("/vms", "/storage", "/pool")
    entries = [one for one in _read_entries(client) if one[0].startswith(paths)]
    if not any(caller.may_have(grant) for _path, grant in entries):
        return None
    members = _paths(actual)
    others = _other_pools(client, arriving, name)
    gone = members if change.deletes else _paths(change.removes)
    moved = frozenset[str]().union(*others.values())
    remaining = members.difference(gone).union(moved)
    if not (gone or moved):
        return None

    def altered(known: AccessControl) -> AccessControl:
        if change.deletes:
            return known.without_pool(name)
        return replace(known, pools={**dict.fromkeys(others, frozenset()), name: remaining})

    return _loss(client, caller, altered, {**others, name: members})


def _other_pools(client: Api, vms: Collection[int], name: str) -> dict[str, frozenset[str]]:
    """Return the paths of these VMs that are in another pool, by pool; one request at most."""
    others: dict[str, frozenset[str]] = {}
    if not vms:
        return others
    for row in client.get("cluster", "resources", type="vm") or []:
        pool = str(row.get("pool") or name)
        if pool != name and int(row["vmid"]) in vms:
            others[pool] = others.get(pool, frozenset()) | {f"/vms/{row['vmid']}"}
    return others


def _paths(members: Mapping[str, Any]) -> frozenset[str]:
    vms = {f"/vms/{vmid}" for vmid in members.get("vms", ())}
    return frozenset(vms.union(f"/storage/{name}" for name in members.get("storages", ())))


def _read_entries(client: Api) -> list[AclEntry]:
    rows = client.get("access", "acl", attempted="Could not read the rights")
    return [(str(row["path"]), read_grant(row)) for row in rows]


def _own_row(client: Api, caller: TaskLogin) -> Mapping[str, Any] | None:
    """Return the row of the login's user, or None if it is hidden from the login."""
    rows = client.get("access", "users", full=1, attempted="Could not list the users")
    by_name = {str(row["userid"]): row for row in rows}
    return by_name.get(caller.user)


def groups_in(row: Mapping[str, Any]) -> frozenset[str]:
    """Return the groups of a user in the listing."""
    names = str(row.get("groups") or "").split(",")
    return frozenset(names) - {""}


def is_separated(row: Mapping[str, Any], caller: TaskLogin) -> bool:
    """Return whether the login is a token with privilege separation; `row` belongs to its user."""
    tokens = row.get("tokens") or []
    separated = {f"{caller.user}!{one['tokenid']}": int(one.get("privsep", 1)) for one in tokens}
    return bool(separated.get(caller.who, 0))


def _is_member(client: Api, caller: TaskLogin, groups: Collection[str]) -> bool:
    """Return whether the user of the login is in one of these groups, or may be.

    One request. Groups have no effect on root@pam.
    """
    if caller.user == ROOT:
        return False
    row = _own_row(client, caller)
    return row is None or not groups_in(row).isdisjoint(groups)


def _unless_complete(client: Api) -> OwnLoss | None:
    """Return an unknown loss unless the login sees the whole access control list.

    Proxmox VE silently leaves out hidden entries (API2/ACL.pm, read_acl).
    """
    held = client.get("access", "permissions", path="/access")
    if "Sys.Audit" in held.get("/access", {}):
        return None
    return _UNKNOWN


def _loss(
    client: Api,
    caller: TaskLogin,
    altered: Altered,
    pools: Mapping[str, frozenset[str]] | None = None,
) -> OwnLoss | None:
    """Return the rights that the login loses with a change; four requests."""
    row = _own_row(client, caller)
    roles = client.get("access", "roles", attempted="Could not list the roles")
    known = access_control(caller, row or {}, roles, _read_entries(client))
    known = replace(known, pools=pools or {})
    loss = loss_between(known, altered(known), caller)
    if loss is None and row is None:
        return _UNKNOWN
    return loss or _unless_complete(client)


def access_control(
    caller: TaskLogin,
    row: Mapping[str, Any],
    roles: Iterable[Mapping[str, Any]],
    entries: Iterable[AclEntry],
) -> AccessControl:
    """Return the access control that decides the privileges of a login (pure).

    `row` is the row of its user in the listing of users, `roles` are the rows of all roles.
    """
    return AccessControl(
        roles={str(one["roleid"]): read_privileges(one) for one in roles},
        groups=groups_in(row),
        entries=frozenset(one for one in entries if caller.may_have(one[1])),
        separated=is_separated(row, caller),
    )


def loss_between(before: AccessControl, after: AccessControl, caller: TaskLogin) -> OwnLoss | None:
    """Return the privileges that the login loses between two states (pure)."""
    lost = lost_privileges(before, after, caller.who)
    if not lost:
        return None
    parts: list[str] = []
    for path, names in lost.items():
        listed = ", ".join(sorted(names))
        if not privileges(after, caller.who, path):
            listed = "all privileges"
        parts.append(f"{listed} on {path}")
    by_path = {path: sorted(names) for path, names in lost.items()}
    return OwnLoss(f"loses {'; '.join(parts)}", RIGHTS, by_path)
