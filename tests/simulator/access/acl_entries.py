"""Roles, the access control list, and the privileges of users."""

from __future__ import annotations

from typing import Any

from ..core.acl import is_acl_path, no_such_user, normalize_path
from ..core.api import Ctx, api
from ..errors import ParamError, PveError
from ..schema.formats import split_list


@api("GET /access")
def index(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, str]]:
    """The parts of access control."""
    names = ("users", "groups", "roles", "acl", "domains", "openid", "tfa", "ticket", "password")
    return [{"subdir": name} for name in names]


@api("GET /access/permissions")
def permissions(ctx: Ctx, p: dict[str, Any]) -> dict[str, dict[str, int]]:
    """The privileges of the caller, or of another user, on every path or on one."""
    who = p.get("userid") or ctx.who
    user, token, _name = who.partition("!")
    if who != ctx.who and not (token and user == ctx.who):
        ctx.need("/access", "Sys.Audit")
    path = p.get("path")
    if path is not None:
        return {path: dict(ctx.acl.permissions(who, normalize_path(path)))}
    if user not in ctx.acl.users and user != "root@pam":
        return {}
    return ctx.acl.effective(who)


# -- roles ---------------------------------------------------------------------------------------


def _privs(ctx: Ctx, text: str) -> frozenset[str]:
    names = split_list(text)
    for name in names:
        if name not in ctx.acl.privileges:
            raise ParamError({"privs": f"invalid format - invalid privilege '{name}'\n"})
    return frozenset(names)


@api("GET /access/roles")
def roles(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """Every role with its privileges."""
    return [
        {
            "roleid": name,
            "privs": ",".join(sorted(privs)),
            "special": 1 if name in ctx.acl.special else 0,
        }
        for name, privs in ctx.acl.roles.items()
    ]


@api("GET /access/roles/{roleid}")
def read_role(ctx: Ctx, p: dict[str, Any]) -> dict[str, int]:
    """The privileges of one role."""
    if p["roleid"] not in ctx.acl.roles:
        raise PveError(f"role '{p['roleid']}' does not exist")
    return dict.fromkeys(sorted(ctx.acl.roles[p["roleid"]]), 1)


@api("POST /access/roles")
def create_role(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a role."""
    name = p["roleid"]
    privs = _privs(ctx, p.get("privs") or "")
    if name.lower().startswith("pve"):
        raise ParamError(
            {"roleid": "cannot use role ID starting with the (case-insensitive) 'PVE' namespace"}
        )
    ctx.cluster.check_cfs("user_cfg", "create role failed: ")
    if name in ctx.acl.roles:
        raise PveError(f"create role failed: role '{name}' already exists")
    ctx.acl.roles[name] = privs
    ctx.acl.changed()


@api("PUT /access/roles/{roleid}")
def update_role(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change the privileges of a role, all of them or by adding some."""
    name = p["roleid"]
    privs = _privs(ctx, p.get("privs") or "")
    if name in ctx.acl.special:
        raise PveError(f"auto-generated role '{name}' cannot be modified")
    ctx.cluster.check_cfs("user_cfg", "update role failed: ")
    if name not in ctx.acl.roles:
        raise PveError(f"update role failed: role '{name}' does not exist")
    ctx.acl.roles[name] = privs | (ctx.acl.roles[name] if p.get("append") else frozenset())
    ctx.acl.changed()


@api("DELETE /access/roles/{roleid}")
def delete_role(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a role, even if it is in use: its entries are ignored from then on."""
    name = p["roleid"]
    if name in ctx.acl.special:
        raise PveError(f"auto-generated role '{name}' cannot be deleted")
    ctx.cluster.check_cfs("user_cfg", "delete role failed: ")
    if name not in ctx.acl.roles:
        raise PveError(f"delete role failed: role '{name}' does not exist")
    del ctx.acl.roles[name]
    for path, kinds in list(ctx.acl.entries.items()):
        for kind, subjects in kinds.items():
            for subject in list(subjects):
                ctx.acl.take(path, kind, subject, name)
    ctx.acl.changed()


# -- the list ------------------------------------------------------------------------------------


@api("GET /access/acl")
def read_acl(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """The entries on paths on which the caller may change rights or may see everything."""
    everything = ctx.may("/access", "Sys.Audit")
    result = []
    for path in sorted(ctx.acl.entries):
        if not everything and not ctx.acl.may_modify(ctx.who, path, quiet=True):
            continue
        for kind, subjects in ctx.acl.entries[path].items():
            for subject, held in subjects.items():
                result += [
                    {"path": path, "type": kind, "ugid": subject, "roleid": role, "propagate": flag}
                    for role, flag in held.items()
                ]
    return result


def _subjects(ctx: Ctx, p: dict[str, Any]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, kind in (("groups", "group"), ("users", "user"), ("tokens", "token")):
        found += [(kind, name) for name in split_list(p.get(key) or "")]
    return found


def _check_subject(ctx: Ctx, kind: str, name: str) -> None:
    prefix = "ACL update failed: "
    if kind == "group" and name not in ctx.acl.groups:
        raise PveError(f"{prefix}group '{name}' does not exist")
    user, _dummy, token = name.partition("!")
    if kind == "user" and user not in ctx.acl.users:
        raise PveError(f"{prefix}user '{user}' does not exist")
    if kind == "token" and user not in ctx.acl.users:
        raise PveError(f"{prefix}{no_such_user(user).message}")
    if kind == "token" and token not in ctx.acl.users[user].get("tokens", {}):
        raise PveError(f"{prefix}no such token '{token}' for user '{user}'")


def _check_giver(ctx: Ctx, path: str, role: str, p: dict[str, Any]) -> None:
    """A caller without the right to change all rights on the path gives, and takes, at most the
    privileges that it holds there.
    """
    held = ctx.acl.permissions(ctx.who, path)
    if "Permissions.Modify" in held:
        return
    verb, spreads = "remove" if p.get("delete") else "add", p.get("propagate", 1)
    needed = ""
    for priv in sorted(ctx.acl.roles[role]):
        if priv not in held:
            needed = " - requires 'Permissions.Modify' or superset of privileges."
        elif verb == "add" and spreads and not held[priv]:
            needed = (
                " with propagation - requires 'Permissions.Modify' or propagated superset of"
                " privileges."
            )
        if needed:
            break
    if role == "NoAccess":
        needed = " - requires 'Permissions.Modify'"
    if needed:
        raise PveError(
            "ACL update failed: "
            + ParamError({"role": f"Cannot {verb} role '{role}'{needed}"}).text
        )


@api("PUT /access/acl")
def update_acl(ctx: Ctx, p: dict[str, Any]) -> None:
    """Give or take roles on a path."""
    subjects = _subjects(ctx, p)
    if not subjects:
        text = "either 'users', 'groups' or 'tokens' is required."
        raise ParamError({"users": text, "groups": text, "tokens": text})
    path = normalize_path(p["path"])
    if path is None or not (p.get("delete") or is_acl_path(path)):
        raise ParamError({"path": f"invalid ACL path '{p['path']}'"})
    ctx.cluster.check_cfs("user_cfg", "ACL update failed: ")
    given = split_list(p["roles"])
    # Nothing is written if one of them is refused.
    for role in given:
        if role not in ctx.acl.roles:
            raise PveError(f"ACL update failed: role '{role}' does not exist")
        _check_giver(ctx, path, role, p)
        for kind, name in subjects:
            _check_subject(ctx, kind, name)
    for role in given:
        for kind, name in subjects:
            if p.get("delete"):
                ctx.acl.take(path, kind, name, role)
                continue
            ctx.acl.put(path, kind, name, role, p.get("propagate", 1))
