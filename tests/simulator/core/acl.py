"""Privileges, roles and their holders by path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ..errors import PermError, PveError
from ..schema.formats import FormatError, check_userid, split_list

if TYPE_CHECKING:
    from .state import Cluster

# Privileges by area and by the kind of role that carries them.
_GROUPS: dict[str, dict[str, str]] = {
    "VM": {
        "admin": (
            "VM.Config.Disk VM.Config.CPU VM.Config.Memory VM.Config.Network VM.Config.HWType"
            " VM.Config.Options VM.Allocate VM.Clone VM.GuestAgent.Unrestricted VM.Migrate"
            " VM.Replicate VM.Snapshot VM.Snapshot.Rollback"
        ),
        "user": (
            "VM.Config.CDROM VM.Config.Cloudinit VM.Console VM.Backup VM.GuestAgent.FileRead"
            " VM.GuestAgent.FileSystemMgmt VM.GuestAgent.FileWrite VM.PowerMgmt"
        ),
        "audit": "VM.Audit VM.GuestAgent.Audit",
    },
    "Sys": {
        "root": "Sys.PowerMgmt Sys.Modify Sys.Incoming Sys.AccessNetwork",
        "admin": "Sys.Console Sys.Syslog",
        "audit": "Sys.Audit",
    },
    "Datastore": {
        "admin": "Datastore.Allocate Datastore.AllocateTemplate",
        "user": "Datastore.AllocateSpace",
        "audit": "Datastore.Audit",
    },
    "SDN": {"admin": "SDN.Allocate SDN.Audit", "user": "SDN.Use", "audit": "SDN.Audit"},
    "User": {"root": "Realm.Allocate", "admin": "User.Modify Group.Allocate Realm.AllocateUser"},
    "Pool": {"admin": "Pool.Allocate", "user": "Pool.Audit", "audit": "Pool.Audit"},
    "Mapping": {"admin": "Mapping.Modify", "user": "Mapping.Use", "audit": "Mapping.Audit"},
}
_GROUPS_8: dict[str, dict[str, str]] = {
    **_GROUPS,
    "VM": {
        "admin": (
            "VM.Config.Disk VM.Config.CPU VM.Config.Memory VM.Config.Network VM.Config.HWType"
            " VM.Config.Options VM.Allocate VM.Clone VM.Migrate VM.Monitor VM.Snapshot"
            " VM.Snapshot.Rollback"
        ),
        "user": "VM.Config.CDROM VM.Config.Cloudinit VM.Console VM.Backup VM.PowerMgmt",
        "audit": "VM.Audit",
    },
}

_PATH = re.compile(
    r"/|/access|/access/groups(?:/[\w.-]+)?|/access/realm(?:/[\w.-]+)?|/nodes(?:/[\w.-]+)?"
    r"|/pool(?:/[\w.-]+){0,3}|/sdn|/sdn/(?:controllers|dns|fabrics|ipams|prefix-lists|route-maps)(?:/[\w-]+)?"
    r"|/sdn/zones(?:/[\w.-]+(?:/[\w.-]+(?:/[1-9]\d{0,3})?)?)?|/storage(?:/[\w.-]+)?|/vms(?:/[1-9]\d{2,})?"
    r"|/mapping(?:/[\w.-]+){0,2}",
    re.ASCII,
)
TOP_PATHS = ("/", "/access", "/access/groups", "/nodes", "/pool", "/sdn", "/storage", "/vms")


def built_in_roles(version: str) -> tuple[frozenset[str], dict[str, frozenset[str]]]:
    """(every privilege there is, the built-in roles) of that version."""
    groups = _GROUPS_8 if version.startswith("8") else _GROUPS
    every = {"Permissions.Modify"}
    roles: dict[str, set[str]] = {"NoAccess": set(), "PVEAdmin": set(), "PVEAuditor": set()}
    for area, kinds in groups.items():
        root, admin, user, audit = (
            kinds.get(kind, "").split() for kind in ("root", "admin", "user", "audit")
        )
        every.update(root, admin, user, audit)
        roles[f"PVE{area}Admin"] = {*admin, *user, *audit}
        roles["PVEAdmin"].update(admin, user, audit)
        if user:
            roles[f"PVE{area}User"] = {*user, *audit}
        roles["PVEAuditor"].update(audit)
    roles["PVEAdmin"].discard("Mapping.Modify")
    roles["PVETemplateUser"] = {"VM.Clone", "VM.Audit"}
    roles["Administrator"] = set(every)
    return frozenset(every), {name: frozenset(privs) for name, privs in roles.items()}


def normalize_path(path: str | None) -> str | None:
    """The ACL path in its one form, or None when it cannot be one."""
    if not path:
        return None
    path = re.sub("/+", "/", path)
    path = path.removesuffix("/") or "/"
    if not path.startswith("/"):
        path = "/" + path
    return path if re.fullmatch(r"[A-Za-z0-9.\-_/]+", path) else None


def stored_text(text: str) -> str:
    """A comment or a name as user.cfg returns it: without blanks at its ends, and empty for "0".

    Source: pve-access-control, AccessControl.pm, parse_user_config and write_user_config.
    """
    text = text.strip(" ")
    return "" if text == "0" else text


def is_acl_path(path: str) -> bool:
    """Whether rights can be given on the path."""
    return _PATH.fullmatch(path) is not None


class Acl:
    """Users, groups, tokens, roles and the access control list, and the privileges that result."""

    def __init__(self, cluster: Cluster, version: str) -> None:
        self.cluster = cluster
        self.privileges, self.special = built_in_roles(version)
        self.roles: dict[str, frozenset[str]] = dict(self.special)
        self.users: dict[str, dict[str, Any]] = {}
        self.groups: dict[str, dict[str, Any]] = {}
        # path -> kind ("user", "group", "token") -> subject -> role -> propagate
        self.entries: dict[str, dict[str, dict[str, dict[str, int]]]] = {}
        self._cache: dict[tuple[str, str], dict[str, int]] = {}

    def changed(self) -> None:
        """Forget results calculated from the old entries."""
        self._cache.clear()

    def put(self, path: str, kind: str, subject: str, role: str, propagate: int) -> None:
        """Give a role."""
        self.entries.setdefault(path, {}).setdefault(kind, {}).setdefault(subject, {})[role] = (
            propagate
        )
        self.changed()

    def take(self, path: str, kind: str, subject: str, role: str | None = None) -> None:
        """Take a role away, or all of them."""
        held = self.entries.get(path, {}).get(kind, {}).get(subject)
        if held is None:
            return
        if role is None:
            held.clear()
        else:
            held.pop(role, None)
        if not held:
            del self.entries[path][kind][subject]
        self.changed()

    def forget(self, kind: str, subject: str) -> None:
        """Remove every entry of the subject."""
        for path in list(self.entries):
            self.take(path, kind, subject)

    def _roles(self, who: str, path: str) -> dict[str, int]:
        user, _dummy, token = who.partition("!")
        if token:
            info = self.users.get(user, {}).get("tokens", {}).get(token)
            if info is None:
                return {}
            if not info.get("privsep", 1):
                return self._roles(user, path)
        parts = [] if path == "/" else path[1:].split("/")
        roles: dict[str, int] = {}
        for depth in range(len(parts) + 1):
            here = "/" + "/".join(parts[:depth])
            entry = self.entries.get(here)
            if not entry:
                continue
            final = depth == len(parts)
            new = self._applied(entry, who, final)
            if new is not None:
                roles = new
        return {"NoAccess": roles["NoAccess"]} if "NoAccess" in roles else roles

    def _applied(
        self, entry: dict[str, dict[str, dict[str, int]]], who: str, final: bool
    ) -> dict[str, int] | None:
        for kind in ("token", "user"):
            held = entry.get(kind, {}).get(who, {})
            new = {role: flag for role, flag in held.items() if final or flag}
            if new:
                return new
        new = {}
        for group, held in entry.get("group", {}).items():
            if who in self.groups.get(group, {}).get("users", ()):
                new.update({role: flag for role, flag in held.items() if final or flag})
        return new or None

    def _pool_roles(self, who: str, path: str) -> dict[str, int]:
        roles: dict[str, int] = {}
        kind, _dummy, ident = path[1:].partition("/")
        if kind == "vms" and ident.isdigit():
            pools = [pool for pool in [self.cluster.pool_of.get(int(ident))] if pool]
        elif kind == "storage" and ident:
            pools = [name for name, pool in self.cluster.pools.items() if ident in pool["storage"]]
        else:
            return roles
        for pool in pools:
            roles.update(dict.fromkeys(self._roles(who, f"/pool/{pool}"), 1))
        return roles

    def permissions(self, who: str, path: str | None) -> dict[str, int]:
        """The privileges held on the path, each with its propagation flag."""
        if who == "root@pam":
            return dict.fromkeys(self.privileges, 1)
        if path is None:
            return {}
        key = (who, path)
        found = self._cache.get(key)
        if found is None:
            if len(self._cache) > 100000:
                self._cache.clear()
            found = self._cache[key] = self._compute(who, path)
        return found

    def _compute(self, who: str, path: str) -> dict[str, int]:
        user, _dummy, token = who.partition("!")
        if token:
            info = self.users.get(user, {}).get("tokens", {}).get(token)
            if info is None:
                return {}
            if not info.get("privsep", 1):
                return self.permissions(user, path)
        roles = self._roles(who, path)
        if "NoAccess" not in roles:
            inherited = self._pool_roles(who, path)
            if "NoAccess" in inherited:
                roles = {"NoAccess": 0}
            else:
                roles = {**dict.fromkeys(inherited, 0), **roles}
        privs: dict[str, int] = {}
        for role, flag in roles.items():
            for priv in self.roles.get(role, ()):
                privs[priv] = privs.get(priv, 0) or flag
        if token and user != "root@pam":
            own = self.permissions(user, path)
            privs = {priv: flag and own[priv] for priv, flag in privs.items() if priv in own}
        return privs

    def has(self, who: str, path: str | None, privs: list[str], any_of: bool = False) -> bool:
        """Whether all (or one) of the privileges are held on the path."""
        held = self.permissions(who, path)
        return (
            any(priv in held for priv in privs) if any_of else all(priv in held for priv in privs)
        )

    def require(self, who: str, path: str | None, privs: list[str], any_of: bool = False) -> None:
        """Refuse, naming path and privilege, unless they are held."""
        held = self.permissions(who, path)
        if any_of:
            if not any(priv in held for priv in privs):
                raise PermError(f"{path or ''}, {'|'.join(privs)}")
            return
        for priv in privs:
            if priv not in held:
                raise PermError(f"{path or ''}, {priv}")

    def require_vm(
        self, who: str, vmid: int, pool: str | None, privs: list[str], any_of: bool = False
    ) -> None:
        """Refuse unless the privileges are held on the machine or on the pool it goes to."""
        if pool and self.has(who, f"/pool/{pool}", privs, any_of):
            return
        self.require(who, f"/vms/{vmid}", privs, any_of)

    def effective(self, who: str) -> dict[str, dict[str, int]]:
        """Every path on which anything is held."""
        paths = {*TOP_PATHS, *self.entries}
        for pool in self.cluster.pools.values():
            paths.update(f"/vms/{vmid}" for vmid in pool["vms"])
            paths.update(f"/storage/{name}" for name in pool["storage"])
        held = {path: dict(self.permissions(who, path)) for path in paths}
        return {path: privs for path, privs in held.items() if privs}

    # -- the checks that the schema asks for -----------------------------------------------------

    def check(self, rule: list[Any], who: str, params: dict[str, Any], quiet: bool = False) -> bool:
        """Carry out a permission rule of the schema; quiet ones answer instead of refusing."""
        kind = rule[0]
        if kind == "and":
            for part in rule[1:]:
                self.check(part, who, params)
            return True
        if kind == "or":
            if any(self.check(part, who, params, True) for part in rule[1:]):
                return True
            if quiet:
                return False
            raise PermError
        if kind == "perm":
            return self._check_perm(rule, who, params, quiet)
        if kind == "userid-group":
            return self._check_group(rule, who, params, quiet)
        if kind == "userid-param":
            return self._check_userid(rule, who, params, quiet)
        path = normalize_path(str(params.get("path", "")))
        if path is None:
            # Not true, but not refused either: the parameters are checked next
            # (RPCEnvironment.pm, exec_api2_perm_check).
            return not quiet
        return self.may_modify(who, path, quiet)

    def _check_perm(self, rule: list[Any], who: str, params: dict[str, Any], quiet: bool) -> bool:
        options = dict(zip(rule[3::2], rule[4::2], strict=False))
        needed = options.get("require_param")
        if needed and params.get(needed) is None:
            if quiet:
                return False
            raise PermError
        path = normalize_path(
            re.sub(r"\{([^}]+)\}", lambda m: str(params.get(m[1]) or "-"), rule[1])
        )
        any_of = bool(options.get("any"))
        if quiet:
            return self.has(who, path, rule[2], any_of)
        self.require(who, path, rule[2], any_of)
        return True

    def may_modify(self, who: str, path: str, quiet: bool) -> bool:
        """Whether rights may be given and taken on the path; refuse unless quiet.

        Source: RPCEnvironment.pm, check_perm_modify.
        """
        privs = ["Permissions.Modify"]
        for prefix, priv in (
            ("/storage/", "Datastore.Allocate"),
            ("/vms/", "VM.Allocate"),
            ("/pool/", "Pool.Allocate"),
        ):
            if path.startswith(prefix):
                privs.append(priv)
        if quiet:
            return self.has(who, path, privs, True)
        self.require(who, path, privs, True)
        return True

    def _check_group(self, rule: list[Any], who: str, params: dict[str, Any], quiet: bool) -> bool:
        privs: list[str] = rule[1]
        options = dict(zip(rule[2::2], rule[3::2], strict=False))
        userid = str(params.get("userid", ""))
        existing = options.get("groups_param") != "create"
        if existing:
            _require_name(userid)
        if existing and userid not in self.users:
            if quiet:
                return False
            raise no_such_user(userid)
        if self.has(who, "/access/groups", privs, True):
            return True
        mine = [
            group for group in self.groups if self.has(who, f"/access/groups/{group}", privs, True)
        ]
        if options.get("groups_param"):
            _require_groups(split_list(params.get("groups") or ""), mine, "|".join(privs))
        if existing and not any(userid in self.groups[group]["users"] for group in mine):
            if quiet:
                return False
            raise PermError
        return True

    def _check_userid(self, rule: list[Any], who: str, params: dict[str, Any], quiet: bool) -> bool:
        userid = str(params.get("userid", ""))
        _require_name(userid)
        if rule[1] == "self":
            if userid in self.users and who == userid:
                return True
            if quiet:
                return False
            raise PermError
        path = f"/access/realm/{userid.rpartition('@')[2]}"
        if quiet:
            return self.has(who, path, ["Realm.AllocateUser"])
        self.require(who, path, ["Realm.AllocateUser"])
        return True


def _require_groups(wanted: list[str], mine: list[str], privs: str) -> None:
    """Refuse other groups than those on which the caller has the privileges, and none."""
    if not wanted:
        raise PermError(f"/access/groups, {privs}")
    for group in wanted:
        if group not in mine:
            raise PermError(f"/access/groups/{group}, {privs}")


def _require_name(userid: str) -> None:
    """Refuse an invalid user name (AccessControl.pm, check_user_exist)."""
    try:
        check_userid(userid)
    except FormatError as error:
        raise PveError(str(error)) from None


def no_such_user(userid: str) -> PveError:
    """The refusal for a user that does not exist."""
    return PveError(f"no such user ('{userid}')")
