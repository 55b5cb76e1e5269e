# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of the rights on a path (pve-access-control: API2/ACL.pm)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..._foundation.api.access.listed import ways_to_rights
from ..._foundation.api.access.privileges import LOCAL
from ..._foundation.api.interface import Api
from ..._foundation.core.errors import NotFound, PermissionDenied, ValidationFailed
from ..._foundation.resource.table import Call, DesiredResource, Key, Members, ResourceChange, Table
from ..._foundation.resource.values import require_existing
from .effective import read_privileges
from .grants import SUBJECTS, Grant, batches, read_grant, want_grant, want_path
from .own_loss import find_acl_loss

_MODIFY = "Permissions.Modify"
_MODELS = "mapping/cpu"
_MODELS_SINCE = (9, 2)
# The listing of the objects below a path, and the key of their names.
_LISTS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "access/groups": (("access", "groups"), "groupid"),
    "access/realm": (("access", "domains"), "realm"),
    _MODELS: (("cluster", "qemu", "custom-cpu-models"), "cputype"),
    "mapping/dir": (("cluster", "mapping", "dir"), "id"),
    "mapping/pci": (("cluster", "mapping", "pci"), "id"),
    "mapping/usb": (("cluster", "mapping", "usb"), "id"),
    "sdn/controllers": (("cluster", "sdn", "controllers"), "controller"),
    "sdn/dns": (("cluster", "sdn", "dns"), "dns"),
    "sdn/ipams": (("cluster", "sdn", "ipams"), "ipam"),
    "sdn/zones": (("cluster", "sdn", "zones"), "zone"),
}
Roles = Mapping[str, frozenset[str]]


def read_grants(answer: Mapping[str, Any]) -> frozenset[Grant]:
    """Return the entries of one path."""
    return frozenset(read_grant(row) for row in answer["entries"])


def show_grant(grant: Grant) -> dict[str, Any]:
    """Return an entry in the form of the option; its other kinds of subjects are null."""
    subject = {kind: grant.who if kind == grant.kind else None for kind in SUBJECTS}
    return {**subject, "role": grant.role, "propagate": grant.propagate}


def _require_no_contradiction(_client: Api, desired: DesiredResource) -> DesiredResource:
    """Return `desired` unchanged. Raises ValidationFailed for exact with state=absent."""
    if desired.exact and not desired.present:
        raise ValidationFailed(
            "exact was refused: with state=absent the grants that are listed are taken away, not "
            "the others",
            "Leave out exact, or set state=present",
            "exact",
        )
    return desired


def _of_path(answer: Any, keys: Mapping[str, str]) -> Mapping[str, Any]:
    rows = [row for row in answer or [] if row["path"] == keys["path"]]
    return {"path": keys["path"], "entries": rows}


def _by_path(answer: Any, _keys: Mapping[str, str]) -> list[Mapping[str, Any]]:
    paths = {str(row["path"]) for row in answer or []}
    return [_of_path(answer, {"path": path}) for path in sorted(paths)]


def precheck_acl(client: Api, desired: DesiredResource, change: ResourceChange) -> tuple[str, ...]:
    """Raise any refusal of PVE before the first write; warn about a path without an object."""
    path = desired.keys["path"]
    attempted = f"The rights on '{path}' were not changed"
    adds = change.adds.get("grants", frozenset())
    removes = change.removes.get("grants", frozenset())
    roles = read_roles(client)
    requested = {grant.role for grant in adds}
    require_existing("role", requested, roles, attempted, check="the roles in grants")
    _require_none_missing(_missing_subjects(client, adds), attempted)
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
    kinds = {grant.kind for grant in adds}
    visible: set[tuple[str, str]] = set()
    if "group" in kinds:
        rows = client.get("access", "groups") or []
        visible |= {("group", str(row["groupid"])) for row in rows}
    if "user" in kinds or "token" in kinds:
        for row in client.get("access", "users", full=1) or []:
            user = str(row["userid"])
            visible.add(("user", user))
            names = [token["tokenid"] for token in row.get("tokens") or []]
            visible |= {("token", f"{user}!{name}") for name in names}
    hidden = sorted({(grant.kind, grant.who) for grant in adds} - visible)
    return [f"{kind} {who}" for kind, who in hidden if not _may_exist(client, kind, who)]


def _require_none_missing(missing: list[str], attempted: str) -> None:
    if missing:
        raise NotFound(
            f"{attempted}: there is no {', '.join(missing)}",
            "Create it first, or check the names in grants",
            "unknown user, group or token",
            details={"subjects": missing},
        )


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
        pass
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
                f"{attempted}: {grant.text()} needs privileges that this user or token does not "
                f"have there: {', '.join(lacking)}",
                f"Use a user or token with {_MODIFY} on the path",
                "more than own rights",
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
        if kind == "vms":  # only guests have a VMID
            return "/".join(names) in {str(row["vmid"]) for row in rows if "vmid" in row}
        name = kind.removesuffix("s")
        return "/".join(names) in {str(row.get(name)) for row in rows if row.get("type") == name}
    group = f"{kind}/{names[0]}"
    if len(names) < 2 or group not in _LISTS:
        return True
    listing, key = _LISTS[group]
    if group == _MODELS and client.version() < _MODELS_SINCE:
        return False
    known = {str(row[key]).removeprefix("custom-") for row in client.get(*listing) or ()}
    return names[1] in known or path.startswith(f"/sdn/zones/{LOCAL}")


ACL = Table(
    kind="acl",
    label_as="the rights on '{path}'",
    keys=(Key("path", "path", want_path),),
    fields=(),
    members=(
        Members(
            "grants",
            "roles",
            "role",
            want_grant,
            read_grants,
            identity=lambda grant: grant[:3],
            show=show_grant,
            text=Grant.text,
            batches=batches,
        ),
    ),
    permanent=True,
    read_call=Call(("access", "acl")),
    update_call=Call(("access", "acl"), {"path": "{path}"}),
    pick=_of_path,
    rows=_by_path,
    resolve=_require_no_contradiction,
    precheck=precheck_acl,
    guard=find_acl_loss,
    listed=lambda keys: ways_to_rights(keys["path"]),
)
