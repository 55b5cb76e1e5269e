"""Logging in, passwords, realms."""

from __future__ import annotations

import hashlib
from typing import Any

from .acl import no_such_user
from .api import Ctx, api
from .errors import ApiError, ParamError, PermError, PveError
from .formats import FormatError, check_userid, split_list

CAP_AREAS = {
    "vms": ("VM.",),
    "access": ("User.", "Group."),
    "storage": ("Datastore.",),
    "nodes": ("Sys.",),
    "sdn": ("SDN.",),
    "mapping": ("Mapping.",),
}


def _failed() -> ApiError:
    return ApiError(401, "authentication failure\n")


def capabilities(ctx: Ctx, user: str) -> dict[str, dict[str, int]]:
    """The privileges of a user by area of the web interface."""
    result: dict[str, dict[str, int]] = {area: {} for area in (*CAP_AREAS, "dc")}
    paths = dict.fromkeys(("/", "/nodes", "/access/groups", "/vms", "/storage", "/sdn", "/mapping", *ctx.acl.entries))
    for path in paths:
        held = ctx.acl.permissions(user, path)
        area = path[1:].partition("/")[0] or "dc"
        if area == "pool":
            for priv in held:
                if priv.startswith("VM."):
                    result["vms"][priv] = 1
                elif priv.startswith("Datastore."):
                    result["storage"][priv] = 1
                elif priv == "Permissions.Modify":
                    result["vms"][priv] = result["storage"][priv] = 1
        elif area == "dc":
            for priv in held:
                if priv in ("Sys.Audit", "Sys.Modify") or priv.startswith("SDN."):
                    result["dc"][priv] = 1
        elif area in CAP_AREAS:
            for priv in held:
                if priv.startswith(CAP_AREAS[area]) or priv == "Permissions.Modify":
                    result[area][priv] = 1
    return result


@api("GET /access/ticket")
def ticket_form(_ctx: Ctx, _p: dict[str, Any]) -> None:
    """Nothing: it exists for login pages."""


@api("POST /access/ticket")
def login(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """Exchange a password, or a ticket that is still good, for a ticket."""
    authority = ctx.sim.authority
    user = p["username"]
    if p.get("realm") and "@" not in user:
        user = f"{user}@{p['realm']}"
    if "@" not in user:
        user = f"{user}@pam"
    try:
        check_userid(user)
    except FormatError:
        raise _failed() from None
    if not authority.password_ok(user, p["password"]):
        raise _failed()
    if p.get("path") or p.get("privs"):
        ctx.acl.require(user, p.get("path") or "/", split_list(p.get("privs") or ""))
        return {"username": user}
    result: dict[str, Any] = {
        "username": user,
        "ticket": authority.ticket(user),
        "CSRFPreventionToken": authority.csrf(user),
        "cap": capabilities(ctx, user),
    }
    if ctx.acl.has(user, "/", ["Sys.Audit"]):
        result["clustername"] = ctx.cluster.name
    return result


@api("PUT /access/password")
def change_password(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change a password; the caller's own has to be given."""
    authority = ctx.sim.authority
    user = p["userid"]
    if user not in ctx.acl.users and user != "root@pam":
        raise no_such_user(user)
    if ctx.who != "root@pam":
        if user == "root@pam":
            raise PermError
        if not p.get("confirmation-password"):
            raise ParamError({"confirmation-password": "password is required to modify user"})
        if not authority.password_ok(ctx.who, p["confirmation-password"]):
            raise PveError("invalid credentials")
        if user != ctx.who and user.endswith("@pam"):
            raise PermError
    authority.passwords[user] = p["password"]


# -- realms --------------------------------------------------------------------------------------

REALMS: dict[str, dict[str, Any]] = {
    "pam": {"type": "pam", "comment": "Linux PAM standard authentication"},
    "pve": {"type": "pve", "comment": "Proxmox VE authentication server"},
}


@api("GET /access/domains")
def domains(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """The realms."""
    return [{**realm, "realm": name} for name, realm in ctx.cluster.realms.items()]


@api("GET /access/domains/{realm}")
def domain(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One realm."""
    found = ctx.cluster.realms.get(p["realm"])
    if found is None:
        raise PveError(f"domain '{p['realm']}' does not exist")
    # The file with the realms is empty until one is added.
    return {**found, "digest": hashlib.sha1(b"", usedforsecurity=False).hexdigest()}


@api("POST /access/domains")
def create_domain(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a realm."""
    name, kind = p.pop("realm"), p["type"]
    prefix = "add auth server failed: "
    p.pop("password", None)
    if name in ctx.cluster.realms:
        raise PveError(f"{prefix}domain '{name}' already exists")
    if kind in ("pam", "pve"):
        raise PveError(f"{prefix}unable to create builtin type '{kind}'")
    if p.pop("check-connection", None) is not None and kind not in ("ldap", "ad"):
        raise PveError(f"{prefix}'check-connection' parameter can only be set for realms of type 'ldap' or 'ad'")
    ctx.cluster.realms[name] = p


@api("PUT /access/domains/{realm}")
def update_domain(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change a realm."""
    name = p.pop("realm")
    found = ctx.cluster.realms.get(name)
    if found is None:
        raise PveError(f"update auth server failed: domain '{name}' does not exist")
    p.pop("digest", None)
    delete, password = split_list(p.pop("delete", None) or ""), p.pop("password", None)
    if not delete and not p and password is None:
        raise PveError("update auth server failed: no options specified")
    for key in delete:
        found.pop(key, None)
    if p.get("default"):
        for other in ctx.cluster.realms.values():
            other.pop("default", None)
    found.update(p)


@api("DELETE /access/domains/{realm}")
def delete_domain(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a realm."""
    if p["realm"] not in ctx.cluster.realms:
        raise PveError(f"delete auth server failed: authentication domain '{p['realm']}' does not exist")
    del ctx.cluster.realms[p["realm"]]


@api("POST /access/domains/{realm}/sync")
def sync_domain(ctx: Ctx, p: dict[str, Any]) -> str:
    """Take users over from a directory: there is none to ask."""
    found = ctx.cluster.realms.get(p["realm"])
    if found is None:
        raise ParamError({"realm": "Realm does not exist."})
    if found["type"] not in ("ldap", "ad"):
        raise PveError(f"Cannot sync realm type '{found['type']}'! Only LDAP/AD realms can be synced.")
    raise PveError("directories are not simulated")


@api("POST /access/vncticket")
def vnc_ticket(_ctx: Ctx, _p: dict[str, Any]) -> None:
    """Refused: no console of the simulator gives a ticket that is good for anything."""
    raise _failed()
