"""Logging in, passwords, realms."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from ..core.acl import no_such_user
from ..core.api import Ctx, api
from ..errors import ApiError, ParamError, PermError, PveError
from ..schema.formats import FormatError, check_userid, split_list
from ..schema.named_hashes import HASHES
from ..schema.validate import split_property_string
from .accounts import check_password_realm

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
    paths = dict.fromkeys(
        ("/", "/nodes", "/access/groups", "/vms", "/storage", "/sdn", "/mapping", *ctx.acl.entries)
    )
    for path in paths:
        area = path[1:].partition("/")[0] or "dc"
        for priv in ctx.acl.permissions(user, path):
            for shown in _shown_in(area, priv):
                result[shown][priv] = 1
    return result


def _shown_in(area: str, priv: str) -> tuple[str, ...]:
    """The areas of the web interface in which a privilege on a path of this area counts."""
    if area == "pool":
        if priv == "Permissions.Modify":
            return ("vms", "storage")
        if priv.startswith("VM."):
            return ("vms",)
        return ("storage",) if priv.startswith("Datastore.") else ()
    if area == "dc":
        counts = priv in ("Sys.Audit", "Sys.Modify") or priv.startswith("SDN.")
    elif area in CAP_AREAS:
        counts = priv.startswith(CAP_AREAS[area]) or priv == "Permissions.Modify"
    else:
        counts = False
    return (area,) if counts else ()


@api("GET /access/ticket")
def ticket_form(_ctx: Ctx, _p: dict[str, Any]) -> None:
    """Nothing: it exists for login pages."""


@api("POST /access/ticket")
def login(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """Exchange a password, or a ticket that is still good, for a ticket.

    The login is a line of the cluster log (pve-access-control, API2/AccessControl.pm).
    """
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
    ctx.cluster.tasks.note(ctx.cluster.local, "root@pam", f"successful auth for user '{user}'")
    if ctx.acl.has(user, "/", ["Sys.Audit"]):
        result["clustername"] = ctx.cluster.name
    return result


@api("PUT /access/password")
def change_password(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change a password; the caller's own must be given."""
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
    check_password_realm(ctx, user)
    authority.passwords[user] = p["password"]


# -- realms --------------------------------------------------------------------------------------

REALMS: dict[str, dict[str, Any]] = {
    "pam": {"type": "pam", "comment": "Linux PAM standard authentication"},
    "pve": {"type": "pve", "comment": "Proxmox VE authentication server"},
}


@api("GET /access/domains")
def domains(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """The realms, without the options that only their own page shows."""
    result: list[dict[str, Any]] = []
    for name, realm in ctx.cluster.realms.items():
        entry: dict[str, Any] = {"realm": name, **_present(realm, ("type", "comment", "default"))}
        factor = re.search(r"type=(\w+)", str(realm.get("tfa", "")))
        if factor:
            entry["tfa"] = factor[1]
        result.append(entry)
    return result


def _present(values: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: values[key] for key in keys if key in values}


def _digest(ctx: Ctx) -> str:
    """SHA1 of the file with the realms, which is empty until one is added or changed."""
    text = "" if ctx.cluster.realms == REALMS else json.dumps(ctx.cluster.realms, sort_keys=True)
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def _check_realm(prefix: str, kind: str, options: dict[str, Any]) -> None:
    """Refuse a directory without a required option, or with an option of the other kind."""
    needed = {"ad": ("server1", "domain"), "ldap": ("server1", "base_dn", "user_attr")}.get(
        kind, ()
    )
    for key in needed:
        if options.get(key) is None:
            raise PveError(f"{prefix}missing value for required option '{key}'")
    if kind == "ldap" and "domain" in options:
        raise PveError(f"{prefix}unexpected property 'domain'")


def _print_sync_options(options: dict[str, Any]) -> None:
    """Write the defaults of a synchronization as Proxmox VE does: by the names of their keys, and
    with C(remove-vanished) in place of two older keys (API2/Domains.pm, map_sync_default_options).
    """
    text = options.get("sync-defaults-options")
    if not text:
        return
    parts = split_property_string(HASHES["realm-sync-options"], text)
    full, purge = parts.pop("full", "0"), parts.pop("purge", "0")
    if "remove-vanished" not in parts and "1" in (full, purge):
        removed = ["entry", "properties"] * (full == "1") + ["acl"] * (purge == "1")
        parts["remove-vanished"] = ";".join(removed)
    options["sync-defaults-options"] = ",".join(f"{key}={parts[key]}" for key in sorted(parts))


@api("GET /access/domains/{realm}")
def domain(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One realm."""
    found = ctx.cluster.realms.get(p["realm"])
    if found is None:
        raise PveError(f"domain '{p['realm']}' does not exist")
    return {**found, "digest": _digest(ctx)}


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
        raise PveError(
            f"{prefix}'check-connection' parameter can only be set for realms of type 'ldap' or"
            " 'ad'"
        )
    _check_realm(prefix, kind, p)
    _print_sync_options(p)
    if p.get("default"):
        _drop_default(ctx)
    ctx.cluster.realms[name] = p


def _drop_default(ctx: Ctx) -> None:
    for realm in ctx.cluster.realms.values():
        realm.pop("default", None)


@api("PUT /access/domains/{realm}")
def update_domain(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change a realm."""
    name = p.pop("realm")
    found = ctx.cluster.realms.get(name)
    prefix = "update auth server failed: "
    if found is None:
        # The look at the type makes an entry, so that the check for one finds it.
        line = "at /usr/share/perl5/PVE/API2/Domains.pm line 261."
        raise PveError(f"{prefix}cannot lookup undefined type! {line}")
    digest = p.pop("digest", None)
    if digest and digest != _digest(ctx):
        raise PveError(
            f"{prefix}detected modified configuration - file changed by other user? Try again."
        )
    delete, password = split_list(p.pop("delete", None) or ""), p.pop("password", None)
    if not delete and not p and password is None:
        raise PveError("update auth server failed: no options specified")
    left = {key: value for key, value in found.items() if key not in delete}
    _check_realm(f"{prefix}section '{name}' - ", str(found["type"]), {**left, **p})
    for key in delete:
        found.pop(key, None)
    _print_sync_options(p)
    if p.get("default"):
        _drop_default(ctx)
    found.update(p)


@api("DELETE /access/domains/{realm}")
def delete_domain(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a realm; PVE's own realms return with their defaults."""
    if p["realm"] not in ctx.cluster.realms:
        raise PveError(
            f"delete auth server failed: authentication domain '{p['realm']}' does not exist"
        )
    del ctx.cluster.realms[p["realm"]]
    if p["realm"] in REALMS:
        ctx.cluster.realms[p["realm"]] = dict(REALMS[p["realm"]])


@api("POST /access/domains/{realm}/sync")
def sync_domain(ctx: Ctx, p: dict[str, Any]) -> str:
    """Take users over from a directory: there is none to ask."""
    found = ctx.cluster.realms.get(p["realm"])
    if found is None:
        raise ParamError({"realm": "Realm does not exist."})
    if found["type"] not in ("ldap", "ad"):
        raise PveError(
            f"Cannot sync realm type '{found['type']}'! Only LDAP/AD realms can be synced."
        )
    raise PveError("directories are not simulated")


@api("POST /access/vncticket")
def vnc_ticket(_ctx: Ctx, _p: dict[str, Any]) -> None:
    """Refused: no console of the simulator gives a ticket that is good for anything."""
    raise _failed()
