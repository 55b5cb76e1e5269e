"""Taking over users and groups from a directory (pve-access-control: API2/Domains.pm, sync)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.api import Ctx, api
from ..core.tasks import Task
from ..errors import ParamError, PveError
from ..schema.formats import split_list

# The options with their defaults (Auth/Plugin.pm, realm-sync-options).
_DEFAULTS = {"remove-vanished": "none", "enable-new": "1"}


@api("POST /access/domains/{realm}/sync")
def sync(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start a worker that takes over the content of the realm's directory."""
    name = p["realm"]
    realm = ctx.cluster.realms.get(name)
    if realm is None:
        raise ParamError({"realm": "Realm does not exist."})
    if realm["type"] not in ("ldap", "ad"):
        kind = realm["type"]
        raise PveError(f"Cannot sync realm type '{kind}'! Only LDAP/AD realms can be synced.")
    options = _options(p, realm)
    dry = bool(p.get("dry-run"))

    async def work(task: Task) -> None:
        task.say(f"{'(dry test run) ' if dry else ''}starting sync for realm {name}")
        await task.work()
        directory = ctx.cluster.directories.get(name)
        if directory is None:
            raise PveError("Connection refused")
        _Sync(ctx, task, name, options).run(directory, dry)

    kind = "auth-realm-sync-test" if dry else "auth-realm-sync"
    return ctx.task(ctx.cluster.local, kind, name, work)


def _options(p: dict[str, Any], realm: dict[str, Any]) -> dict[str, str]:
    """The options of the request, over the realm's, over the defaults."""
    text = str(realm.get("sync-defaults-options", ""))
    defaults = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    given = {key: str(p[key]) for key in ("scope", *_DEFAULTS) if p.get(key) is not None}
    found = {**_DEFAULTS, **defaults, **given}
    if "scope" not in found:
        raise ParamError(
            {"scope": "Not passed as parameter and not defined in realm default sync options."}
        )
    return found


class _Sync:
    """One run; its findings are written to the task's log."""

    def __init__(self, ctx: Ctx, task: Task, realm: str, options: dict[str, str]) -> None:
        self.ctx = ctx
        self.task = task
        self.realm = realm
        self.options = options
        self.removes = set(split_list(options["remove-vanished"]))
        self.changes: list[Any] = []  # executed once all are known

    def run(self, directory: dict[str, Any], dry: bool) -> None:
        scope = self.options["scope"]
        what = "users and groups" if scope == "both" else scope
        self.task.say(f"got data from server, updating {what}")
        if scope in ("users", "both"):
            found = directory.get("users", {})
            self._users({f"{name}@{self.realm}": values for name, values in found.items()})
        if scope in ("groups", "both"):
            found = directory.get("groups", {})
            self._groups({f"{name}-{self.realm}": users for name, users in found.items()})
        if dry:
            self.task.say("\nNOTE: Dry test run, changes were NOT written to the configuration.")
            return
        self.ctx.cluster.check_cfs("user_cfg", f"syncing {what} failed: ")
        for change in self.changes:
            change()
        self.ctx.acl.changed()
        self.ctx.sim.authority.changed()
        self.task.say(f"successfully updated {what} configuration")

    def _begin(self, noun: str) -> None:
        listed = self.options["remove-vanished"]
        self.task.say(f"syncing {noun}s (remove-vanished opts: {listed})")
        if "entry" in self.removes:
            self.task.say(f"deleting outdated existing {noun}s first")

    def _vanished(self, noun: str, names: Iterable[str]) -> None:
        for name in sorted(names):
            if "entry" in self.removes:
                self.task.say(f"remove {noun} '{name}'")
                self.changes.append(lambda name=name: self._remove(noun, name))
            if "acl" in self.removes:
                self.task.say(f"purge {noun}s '{name}' ACL entries")
                self.changes.append(lambda name=name: self.ctx.acl.forget(noun, name))

    def _remove(self, noun: str, name: str) -> None:
        """Entries that name it are dropped when the file is read again."""
        self.ctx.acl.forget(noun, name)
        if noun == "group":
            self.ctx.acl.groups.pop(name, None)
            return
        info = self.ctx.acl.users.pop(name, {})
        for token in info.get("tokens", {}):
            self.ctx.acl.forget("token", f"{name}!{token}")
        for group in self.ctx.acl.groups.values():
            group["users"].discard(name)

    def _verb(self, exists: bool) -> str:
        if not exists:
            return "adding"
        return "overwriting" if "properties" in self.removes else "updating"

    def _users(self, found: dict[str, dict[str, Any]]) -> None:
        self._begin("user")
        users = self.ctx.acl.users
        here = {name for name in users if name.endswith(f"@{self.realm}")}
        self._vanished("user", here - found.keys())
        for name, values in sorted(found.items()):
            old = users.get(name)
            verb = self._verb(old is not None)
            self.task.say(f"{verb} user '{name}'")
            self.changes.append(lambda name=name, values=values: self._take_user(name, values))

    def _take_user(self, name: str, values: dict[str, Any]) -> None:
        old = self.ctx.acl.users.get(name)
        if old is not None and "properties" not in self.removes:
            old.update(values)
            return
        kept = old or {"enable": int(self.options["enable-new"]), "tokens": {}}
        kept = {key: kept[key] for key in ("enable", "tokens")}
        self.ctx.acl.users[name] = {"expire": 0, **values, **kept}

    def _groups(self, found: dict[str, list[str]]) -> None:
        self._begin("group")
        groups = self.ctx.acl.groups
        here = {name for name in groups if name.endswith(f"-{self.realm}")}
        self._vanished("group", here - found.keys())
        for name, users in sorted(found.items()):
            self.task.say(f"{self._verb(name in groups)} group '{name}'")
            self.changes.append(lambda name=name, users=users: self._take_group(name, users))

    def _take_group(self, name: str, users: list[str]) -> None:
        members = {f"{user}@{self.realm}" for user in users} & self.ctx.acl.users.keys()
        old = self.ctx.acl.groups.get(name, {"comment": ""})
        comment = "" if "properties" in self.removes else old["comment"]
        self.ctx.acl.groups[name] = {"comment": comment, "users": members}
