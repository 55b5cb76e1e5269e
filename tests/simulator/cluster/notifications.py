"""Endpoints and matchers of notifications; messages are counted and not sent.

Source: pve-manager, API2/Cluster/Notifications.pm; proxmox, proxmox-notify/src/api (names are
unique, targets exist, an endpoint in use stays, a built-in one returns to its defaults).
"""

from __future__ import annotations

from typing import Any

from ..core.api import HANDLERS, Ctx, api
from ..errors import ApiError, PveError
from ..schema.formats import split_list
from .sections import MODIFIED, SectionFile

BASE = "/cluster/notifications"
TYPES = ("gotify", "sendmail", "smtp", "webhook")
_SECRETS = ("token", "password", "secret")
_BUILTIN: dict[str, dict[str, Any]] = {
    "mail-to-root": {
        "type": "sendmail",
        "mailto-user": ["root@pam"],
        "comment": "Send mails to root@pam's email address",
    },
    "default-matcher": {
        "type": "matcher",
        "mode": "all",
        "target": ["mail-to-root"],
        "comment": "Route all notifications to mail-to-root",
    },
}


def _file(ctx: Ctx) -> SectionFile:
    built = SectionFile({name: dict(entry) for name, entry in _BUILTIN.items()})
    return ctx.cluster.sections.setdefault("notifications", built)


def _origin(name: str, entry: dict[str, Any]) -> str:
    if name not in _BUILTIN:
        return "user-created"
    return "builtin" if entry == _BUILTIN[name] else "modified-builtin"


def _shown(name: str, entry: dict[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in entry.items() if key not in (*_SECRETS, "type")}
    return {**found, "name": name}


def _check_targets(file: SectionFile, entry: dict[str, Any]) -> None:
    for target in entry.get("target", ()):
        if file.entries.get(target, {}).get("type") not in TYPES:
            raise ApiError(404, f"could not find endpoint '{target}'\n")


class Section:
    """The calls for endpoints of one type, or for matchers."""

    def __init__(self, kind: str, path: str) -> None:
        self.kind = kind
        self.path = path
        self.noun = "matcher" if kind == "matcher" else "endpoint"

    def register(self) -> None:
        """Register the handlers."""
        HANDLERS[("GET", self.path)] = self.listing
        HANDLERS[("POST", self.path)] = self.create
        HANDLERS[("GET", f"{self.path}/{{name}}")] = self.read
        HANDLERS[("PUT", f"{self.path}/{{name}}")] = self.update
        HANDLERS[("DELETE", f"{self.path}/{{name}}")] = self.delete

    def _entry(self, file: SectionFile, name: str) -> dict[str, Any]:
        entry = file.entries.get(name)
        if entry is None or entry["type"] != self.kind:
            raise ApiError(404, f"{self.noun} '{name}' not found\n")
        return entry

    def listing(self, ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
        """All entries of the kind, without secrets."""
        return [
            {**_shown(name, entry), "origin": _origin(name, entry)}
            for name, entry in _file(ctx).entries.items()
            if entry["type"] == self.kind
        ]

    def read(self, ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
        """One entry, without secrets."""
        file = _file(ctx)
        return {**_shown(p["name"], self._entry(file, p["name"])), "digest": file.digest}

    def create(self, ctx: Ctx, p: dict[str, Any]) -> None:
        """Add an entry."""
        file, name = _file(ctx), p.pop("name")
        if name in file.entries:
            text = f"Could not create {self.noun} '{name}', entity with the same name"
            raise ApiError(400, f"{text} already exists\n")
        _check_targets(file, p)
        _check_port(p)
        _check_recipients(self.kind, p)
        file.entries[name] = {**p, "type": self.kind}

    def update(self, ctx: Ctx, p: dict[str, Any]) -> None:
        """Change an entry."""
        file, name = _file(ctx), p.pop("name")
        digest, delete = p.pop("digest", None), p.pop("delete", None) or []
        entry = self._entry(file, name)
        if digest and digest != file.digest:
            raise ApiError(400, f"{MODIFIED}\n")
        _check_targets(file, p)
        _check_port(p)
        left = {key: value for key, value in entry.items() if key not in _names(delete)}
        _check_recipients(self.kind, {**left, **p})
        file.entries[name] = {**left, **p}

    def delete(self, ctx: Ctx, p: dict[str, Any]) -> None:
        """Remove an entry that no matcher refers to; a built-in one gets its defaults again."""
        file, name = _file(ctx), p["name"]
        self._entry(file, name)
        users = [other for other, one in file.entries.items() if name in one.get("target", ())]
        if users and name not in _BUILTIN:
            raise ApiError(400, f"cannot delete '{name}', referenced by: {', '.join(users)}\n")
        del file.entries[name]
        if name in _BUILTIN:
            file.entries[name] = dict(_BUILTIN[name])


def _check_recipients(kind: str, entry: dict[str, Any]) -> None:
    """Refuse mails to no one (proxmox-notify: api/smtp.rs and api/sendmail.rs)."""
    if kind in ("smtp", "sendmail") and not (entry.get("mailto") or entry.get("mailto-user")):
        text = "must at least provide one recipient, either in mailto or in mailto-user\n"
        raise ApiError(400, text)


def _check_port(entry: dict[str, Any]) -> None:
    """Refuse a port that is not an u16 (proxmox-notify: endpoints/smtp.rs)."""
    port = int(entry.get("port", 0))
    if not 0 <= port <= 65535:
        raise PveError(f"invalid value: integer `{port}`, expected u16")


def _names(delete: Any) -> list[str]:
    """The names of options to remove, as an array or a list text."""
    texts = delete if isinstance(delete, list) else [delete]
    return [name for text in texts for name in split_list(text)]


for _kind in TYPES:
    Section(_kind, f"{BASE}/endpoints/{_kind}").register()
Section("matcher", f"{BASE}/matchers").register()


@api(f"GET {BASE}/targets")
def targets(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """The endpoints of all types."""
    return [
        {
            "name": name,
            "type": entry["type"],
            "comment": entry.get("comment", ""),
            "disable": entry.get("disable", 0),
            "origin": _origin(name, entry),
        }
        for name, entry in _file(ctx).entries.items()
        if entry["type"] in TYPES
    ]


@api(f"POST {BASE}/targets/{{name}}/test")
def test_target(ctx: Ctx, p: dict[str, Any]) -> None:
    """Send a test message, which is not sent; an address of Gotify must be a known server."""
    entry = _file(ctx).entries.get(p["name"])
    if entry is None or entry["type"] not in TYPES:
        raise ApiError(404, f"could not find endpoint '{p['name']}'\n")
    if entry["type"] == "gotify" and entry["server"] not in ctx.cluster.servers:
        raise ApiError(500, f"could not notify via endpoint(s): {p['name']}: connection failed\n")
