"""Users, groups, tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.acl import stored_text
from ..core.api import Ctx, api
from ..errors import ApiError, ParamError, PermError, PveError
from ..schema.formats import FormatError, check_userid, split_list

_USER_FIELDS = ("comment", "email", "firstname", "lastname", "keys")
_TEXTS = ("comment", "firstname", "lastname")


def _texts(values: dict[str, Any]) -> dict[str, Any]:
    """The options of a user in their stored form."""
    stored = {key: stored_text(str(values[key])) for key in _TEXTS if key in values}
    return {**values, **stored}


# -- users ---------------------------------------------------------------------------------------


def _known_user(ctx: Ctx, user: str) -> dict[str, Any]:
    found = ctx.acl.users.get(user)
    if found is None:
        if user == "root@pam":
            return ctx.acl.users.setdefault(
                user, {"enable": 1, "expire": 0, "tokens": {}, "implicit": True}
            )
        raise PveError(f"no such user ('{user}')")
    return found


def _groups_of(ctx: Ctx, user: str) -> list[str]:
    return sorted(name for name, group in ctx.acl.groups.items() if user in group["users"])


def _token(info: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "expire": int(info.get("expire", 0)),
        "privsep": int(info.get("privsep", 1)),
    }
    if info.get("comment"):
        result["comment"] = info["comment"]
    return result


def _user(ctx: Ctx, userid: str) -> dict[str, Any]:
    info = ctx.acl.users[userid]
    result: dict[str, Any] = {"enable": int(info.get("enable", 1))}
    if not info.get("implicit"):
        result["expire"] = int(info.get("expire", 0))
    result.update({key: info[key] for key in _USER_FIELDS if info.get(key)})
    if info.get("email") is not None:
        result["email"] = info["email"]
    return result


def _visible(ctx: Ctx) -> Callable[[str], bool]:
    """Whether a user is listed: all, or oneself and the members of groups (User.pm, TFA.pm)."""
    acl, privileges = ctx.acl, ["User.Modify", "Sys.Audit"]
    everybody = acl.has(ctx.who, "/access/groups", privileges, True)
    mine = {
        user
        for name, group in acl.groups.items()
        if acl.has(ctx.who, f"/access/groups/{name}", privileges, True)
        for user in group["users"]
    }
    return lambda userid: everybody or userid == ctx.who or userid in mine


@api("GET /access/users")
def users(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The users: all of them, or oneself."""
    acl = ctx.acl
    is_visible = _visible(ctx)
    result = []
    for userid in sorted({*acl.users, "root@pam"}):
        info = acl.users.get(userid)
        if info is None:
            info = acl.users["root@pam"] = {
                "enable": 1,
                "expire": 0,
                "tokens": {},
                "implicit": True,
            }
        if not is_visible(userid):
            continue
        enabled = int(info.get("enable", 1))
        if p.get("enabled") is not None and enabled != p["enabled"]:
            continue
        entry: dict[str, Any] = {"userid": userid, **_user(ctx, userid)}
        realm = userid.rpartition("@")[2]
        if realm in ctx.cluster.realms:
            entry["realm-type"] = ctx.cluster.realms[realm]["type"]
        if p.get("full"):
            entry["groups"] = ",".join(_groups_of(ctx, userid))
            held = sorted(info.get("tokens", {}).items())
            entry["tokens"] = [{"tokenid": name, **_token(token)} for name, token in held] or None
        result.append(entry)
    return result


def _set_groups(ctx: Ctx, userid: str, groups: list[str], append: bool, prefix: str) -> None:
    for name in groups:
        if name not in ctx.acl.groups:
            raise PveError(f"{prefix}no such group '{name}'")
    if not append:
        for group in ctx.acl.groups.values():
            group["users"].discard(userid)
    for name in groups:
        ctx.acl.groups[name]["users"].add(userid)


@api("POST /access/users")
def create_user(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a user."""
    prefix = "create user failed: "
    userid = p.pop("userid")
    ctx.cluster.check_cfs("user_cfg", prefix)
    if userid in ctx.acl.users:
        raise PveError(f"{prefix}user '{userid}' already exists")
    groups, password = split_list(p.pop("groups", None) or ""), p.pop("password", None)
    if password is not None:
        check_password_realm(ctx, userid, prefix)
    _set_groups(ctx, userid, groups, True, prefix)
    ctx.acl.users[userid] = {
        "enable": p.pop("enable", 1),
        "expire": p.pop("expire", 0),
        "tokens": {},
        **_texts(p),
    }
    if password is not None:
        ctx.sim.authority.passwords[userid] = password
    _changed(ctx)


def check_password_realm(ctx: Ctx, userid: str, prefix: str = "") -> None:
    """Refuse a password in a realm that keeps none.

    Source: AccessControl.pm, domain_set_password; Auth/Plugin.pm, store_password.
    """
    name, _dummy, realm = userid.rpartition("@")
    known = ctx.cluster.realms.get(realm)
    if known is None:
        raise PveError(f"{prefix}auth domain '{realm}' does not exist")
    if known["type"] not in ("pam", "pve"):
        raise PveError(f"{prefix}can't set password on auth type '{known['type']}'")
    if realm == "pam" and name != "root":
        raise PveError(f"{prefix}change password failed: user '{name}' does not exist")


def _changed(ctx: Ctx) -> None:
    ctx.acl.changed()
    ctx.sim.authority.changed()


@api("GET /access/users/{userid}")
def read_user(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One user."""
    try:
        check_userid(p["userid"])
    except FormatError as error:
        raise PveError(str(error)) from None
    info = _known_user(ctx, p["userid"])
    tokens = {name: _token(token) for name, token in info.get("tokens", {}).items()}
    return {
        **_user(ctx, p["userid"]),
        "groups": _groups_of(ctx, p["userid"]),
        "tokens": tokens or None,
    }


@api("PUT /access/users/{userid}")
def update_user(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change a user; options that are not named stay."""
    prefix = "update user failed: "
    userid = p.pop("userid")
    ctx.cluster.check_cfs("user_cfg", prefix)
    info = _known_user(ctx, userid)
    groups, append = p.pop("groups", None), bool(p.pop("append", None))
    if groups is not None:
        _set_groups(ctx, userid, split_list(groups), append, prefix)
    info.update(_texts(p))
    _changed(ctx)


@api("DELETE /access/users/{userid}")
def delete_user(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a user with tokens, memberships and rights."""
    userid = p["userid"]
    ctx.cluster.check_cfs("user_cfg", "delete user failed: ")
    info = _known_user(ctx, userid)
    for name in info.get("tokens", {}):
        ctx.acl.forget("token", f"{userid}!{name}")
    ctx.acl.forget("user", userid)
    for group in ctx.acl.groups.values():
        group["users"].discard(userid)
    del ctx.acl.users[userid]
    ctx.cluster.second_factors.pop(userid, None)
    if userid != "root@pam":
        ctx.sim.authority.passwords.pop(userid, None)
    _changed(ctx)


# -- groups --------------------------------------------------------------------------------------


@api("GET /access/groups")
def groups(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """The groups that the caller may see."""
    result = []
    for name in sorted(ctx.acl.groups):
        if not ctx.may(
            f"/access/groups/{name}", "User.Modify", "Sys.Audit", "Group.Allocate", any_of=True
        ):
            continue
        group = ctx.acl.groups[name]
        entry: dict[str, Any] = {"groupid": name, "users": ",".join(sorted(group["users"]))}
        if group.get("comment"):
            entry["comment"] = group["comment"]
        result.append(entry)
    return result


@api("POST /access/groups")
def create_group(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a group."""
    name = p["groupid"]
    ctx.cluster.check_cfs("user_cfg", "create group failed: ")
    if name in ctx.acl.groups:
        raise PveError(f"create group failed: group '{name}' already exists")
    ctx.acl.groups[name] = {"comment": stored_text(p.get("comment", "")), "users": set()}


def _group(ctx: Ctx, name: str, prefix: str = "") -> dict[str, Any]:
    found = ctx.acl.groups.get(name)
    if found is None:
        raise PveError(f"{prefix}group '{name}' does not exist")
    return found


@api("GET /access/groups/{groupid}")
def read_group(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One group."""
    group = _group(ctx, p["groupid"])
    result: dict[str, Any] = {"members": sorted(group["users"])}
    if group.get("comment"):
        result["comment"] = group["comment"]
    return result


@api("PUT /access/groups/{groupid}")
def update_group(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change a group's comment."""
    prefix = "update group failed: "
    ctx.cluster.check_cfs("user_cfg", prefix)
    group = _group(ctx, p["groupid"], prefix)
    if p.get("comment") is not None:
        group["comment"] = stored_text(p["comment"])


@api("DELETE /access/groups/{groupid}")
def delete_group(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a group with its rights."""
    prefix = "delete group failed: "
    ctx.cluster.check_cfs("user_cfg", prefix)
    _group(ctx, p["groupid"], prefix)
    ctx.acl.forget("group", p["groupid"])
    del ctx.acl.groups[p["groupid"]]
    ctx.acl.changed()


# -- tokens --------------------------------------------------------------------------------------


def _tokens(ctx: Ctx, userid: str) -> dict[str, dict[str, Any]]:
    tokens: dict[str, dict[str, Any]] = _known_user(ctx, userid).setdefault("tokens", {})
    return tokens


def _existing(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    found = _tokens(ctx, p["userid"]).get(p["tokenid"])
    if found is None:
        raise PveError(f"no such token '{p['tokenid']}' for user '{p['userid']}'")
    return found


@api("GET /access/users/{userid}/token")
def tokens(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """A user's tokens."""
    return [
        {"tokenid": name, **_token(info)}
        for name, info in sorted(_tokens(ctx, p["userid"]).items())
    ]


@api("GET /access/users/{userid}/token/{tokenid}")
def read_token(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One token, without its secret."""
    return _token(_existing(ctx, p))


@api("POST /access/users/{userid}/token/{tokenid}")
def create_token(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """Add a token; its secret is returned this once."""
    userid, name = p["userid"], p["tokenid"]
    if userid not in ctx.acl.users and userid != "root@pam":
        raise PermError
    held = _tokens(ctx, userid)
    if name in held:
        raise ParamError({"tokenid": "Token already exists."})
    ctx.cluster.check_cfs("user_cfg", "generating token failed: ")
    secret = ctx.cluster.uuid()
    info: dict[str, Any] = {
        "privsep": p.get("privsep", 1),
        "expire": p.get("expire", 0),
        "secret": secret,
    }
    # A given value is returned as text, the default as a number.
    shown: dict[str, Any] = {"privsep": str(p["privsep"]) if "privsep" in p else 1}
    if p.get("expire") is not None:
        shown["expire"] = str(p["expire"])
    if p.get("comment"):
        shown["comment"] = p["comment"]
        info["comment"] = stored_text(p["comment"])
    held[name] = info
    ctx.acl.users[userid].pop("implicit", None)
    _changed(ctx)
    return {"full-tokenid": f"{userid}!{name}", "info": shown, "value": secret}


@api("PUT /access/users/{userid}/token/{tokenid}")
def update_token(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """Change a token, or give it a new secret."""
    info = _existing(ctx, p)
    prefix = "updating token info failed: "
    ctx.cluster.check_cfs("user_cfg", prefix)
    gone = split_list(p.get("delete") or "")
    odd = next((key for key in gone if key != "comment"), None)
    if odd:
        raise PveError(prefix + ParamError({"delete": f"unknown option '{odd}'"}).text)
    for key in ("privsep", "expire"):
        if p.get(key) is not None:
            info[key] = p[key]
    if p.get("comment") is not None:
        info["comment"] = stored_text(p["comment"])
    for key in gone:
        info.pop(key, None)
    result = _token(info)
    for key in ("privsep", "expire"):
        # A value that was just set comes back as the text it was given as.
        if p.get(key) is not None:
            result[key] = str(p[key])
    if p.get("regenerate"):
        info["secret"] = ctx.cluster.uuid()
        result["value"] = info["secret"]
        result["full-tokenid"] = f"{p['userid']}!{p['tokenid']}"
    _changed(ctx)
    return result


@api("DELETE /access/users/{userid}/token/{tokenid}")
def delete_token(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a token with its rights."""
    _existing(ctx, p)
    ctx.cluster.check_cfs("user_cfg", "deleting token failed: ")
    del ctx.acl.users[p["userid"]]["tokens"][p["tokenid"]]
    ctx.acl.forget("token", f"{p['userid']}!{p['tokenid']}")
    _changed(ctx)


@api("GET /access/tfa")
def tfa(ctx: Ctx, _p: dict[str, Any]) -> list[Any]:
    """The second factors of the users that are listed (TFA.pm, list_tfa)."""
    is_visible = _visible(ctx)
    return [row for userid, row in sorted(ctx.cluster.second_factors.items()) if is_visible(userid)]


@api("GET /access/users/{userid}/tfa")
def user_tfa(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The types of the second factors of this user (User.pm, read_user_tfa_type)."""
    realm = p["userid"].rpartition("@")[2]
    if realm not in ctx.cluster.realms:
        raise PveError(f"auth domain '{realm}' does not exist")
    if not p.get("multiple"):
        return {}
    entries = ctx.cluster.second_factors.get(p["userid"], {}).get("entries", [])
    return {"user": sorted({entry["type"] for entry in entries})}


@api("PUT /access/users/{userid}/unlock-tfa")
def unlock_tfa(ctx: Ctx, p: dict[str, Any]) -> int:
    """Whether a second factor was locked."""
    row = ctx.cluster.second_factors.get(p["userid"], {})
    locks = [row.pop(key, None) for key in ("totp-locked", "tfa-locked-until")]
    return int(any(locks))


@api("GET /access/tfa/{userid}")
def user_entries(ctx: Ctx, p: dict[str, Any]) -> list[Any]:
    """The second factors of a user (TFA.pm, list_user_tfa)."""
    entries: list[Any] = ctx.cluster.second_factors.get(p["userid"], {}).get("entries", [])
    return entries


@api("GET /access/tfa/{userid}/{id}")
def tfa_entry(ctx: Ctx, p: dict[str, Any]) -> Any:
    """A second factor."""
    for entry in user_entries(ctx, p):
        if entry["id"] == p["id"]:
            return entry
    raise ApiError(404, f"No such tfa entry '{p['id']}'\n")
