# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of rights before the first write."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.core.errors import NotFound, PermissionDenied
from ...._foundation.resource.change import DesiredResource, ResourceChange
from ...._foundation.resource.values import require_existing
from ..effective import read_privileges
from ..grants import Grant

_MODIFY = "Permissions.Modify"
Roles = Mapping[str, frozenset[str]]


def precheck_acl(client: Api, desired: DesiredResource, change: ResourceChange) -> tuple[str, ...]:
    """Raise any refusal of PVE before the first write; warn about a path without an object."""
    path = desired.keys["path"]
    attempted = f"The rights on '{path}' were not changed"
    adds = change.adds.get("grants", frozenset())
    removes = change.removes.get("grants", frozenset())
    roles = read_roles(client)
    requested = {grant.role for grant in adds}
    require_existing("role", requested, roles, attempted, check="the roles in grants")
    _require_subjects(_missing_subjects(client, adds), attempted)
    require_givable(held_on(client, path), roles, adds, removes, attempted)
    if adds and not _exists(client, path):
        return (f"There is nothing at '{path}' that this user or token may see",)
    return ()


def read_roles(client: Api) -> Roles:
    """Return the privileges of all roles."""
    rows = client.get("access", "roles", attempted="Could not list the roles") or []
    return {str(row["roleid"]): read_privileges(row) for row in rows}


def held_on(client: Api, path: str) -> Mapping[str, Any]:
    """Return the caller's privileges on a path; a value is true if the privilege propagates."""
    answer: Mapping[str, Any] = client.get("access", "permissions", path=path) or {}
    return answer.get(path) or {}


def _missing_subjects(client: Api, adds: Collection[Grant]) -> list[str]:
    """Return the users, groups and tokens that do not exist; PVE itself checks hidden subjects."""
    known = _visible(client, {grant.kind for grant in adds})
    hidden = sorted({(grant.kind, grant.who) for grant in adds} - known)
    return [f"{kind} {who}" for kind, who in hidden if not _may_exist(client, kind, who)]


def _require_subjects(missing: Sequence[str], attempted: str) -> None:
    if missing:
        raise NotFound(
            attempted=attempted,
            answer=f"there is no {', '.join(missing)}",
            next_step="Create it first, or check the names in grants",
            reason="unknown user, group or token",
            details={"subjects": list(missing)},
        )


def _visible(client: Api, kinds: Collection[str]) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    if "group" in kinds:
        rows = client.get("access", "groups") or []
        found |= {("group", str(row["groupid"])) for row in rows}
    if "user" in kinds or "token" in kinds:
        for row in client.get("access", "users", full=1) or []:
            user = str(row["userid"])
            found.add(("user", user))
            names = [token["tokenid"] for token in row.get("tokens") or []]
            found |= {("token", f"{user}!{name}") for name in names}
    return found


def _may_exist(client: Api, kind: str, who: str) -> bool:
    """Return whether a subject that is not listed exists, or is hidden from the caller."""
    user, _mark, name = who.rpartition("!")
    path = {
        "group": ("access", "groups", who),
        "user": ("access", "users", who),
        "token": ("access", "users", user, "token", name),
    }[kind]
    try:
        client.get(*path)
    except NotFound:
        return False
    except PermissionDenied:
        return True
    return True


def require_givable(
    held: Mapping[str, Any],
    roles: Roles,
    adds: Iterable[Grant],
    removes: Iterable[Grant],
    attempted: str,
) -> None:
    """Raise PermissionDenied if the caller gives or takes more than it holds on the path (pure).

    Source: API2/ACL.pm, update_acl. A value of `held` is true if the privilege propagates.
    """
    if _MODIFY in held:
        return
    for grant in sorted({*adds, *removes}):
        lacking = sorted(roles.get(grant.role, frozenset()) - held.keys())
        if grant.propagate and grant in adds and not lacking:
            lacking = sorted(name for name in roles[grant.role] if not held[name])
        if grant.role == "NoAccess":
            lacking = [_MODIFY]
        if lacking:
            raise PermissionDenied(
                attempted=attempted,
                answer=f"{grant.text()} needs privileges that this user or token does not have"
                f" there: {', '.join(lacking)}",
                next_step=f"Use a user or token with {_MODIFY} on the path",
                reason="more than own rights",
                details={"privileges": lacking},
            )


def _exists(client: Api, path: str) -> bool:
    """Return whether the caller can see the object of a path.

    True for kinds of paths that are not checked.
    """
    _root, kind, *names = path.split("/")
    if not names:
        return True
    if kind in ("vms", "storage", "nodes", "pool"):
        rows = client.get("cluster", "resources") or []
        return "/".join(names) in _names_of(kind, rows)
    if kind == "access":
        part = {"groups": "groups", "realm": "domains"}[names[0]]
        key = {"groups": "groupid", "domains": "realm"}[part]
        rows = client.get("access", part) or []
        return len(names) < 2 or names[1] in {str(row[key]) for row in rows}
    return True


def _names_of(kind: str, rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the names of the objects of one kind; only guests have a VMID."""
    if kind == "vms":
        return {str(row["vmid"]) for row in rows if "vmid" in row}
    name = kind.removesuffix("s")
    return {str(row.get(name)) for row in rows if row.get("type") == name}
