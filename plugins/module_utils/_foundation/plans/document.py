# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan as a document: its parts, its digest, and the checks before it is applied (pure)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ..core.errors import Conflict, FleetError, ValidationFailed
from ..core.times import iso, seconds
from .requests import PlannedRequest

FORMAT = "pve.fleet plan"
VERSION = 1


@dataclass(frozen=True)
class PlannedGuest:
    """The place of a guest in a plan: the VMID and the node of a new guest are kept for it.

    `room` has the bytes that the plan needs on the node: C(memory), and C(storages) by name.
    `identity` tells a guest that exists from a later one with its VMID: words C(key=value) of its
    configuration that the plan does not write.
    """

    kind: str  # qemu or lxc
    tenant: str
    name: str
    vmid: int
    node: str
    room: Mapping[str, Any] = field(default_factory=dict)
    identity: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """The kind, the tenant and the name of the guest in a task."""
        return self.kind, self.tenant, self.name


@dataclass(frozen=True)
class Change:
    """The requests of one resource, with its values before and after; no secrets."""

    requests: tuple[PlannedRequest, ...]
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    guest: PlannedGuest | None = None
    label: str = ""  # of a resource that is not a guest

    def as_dict(self) -> dict[str, Any]:
        """Return the form of the change in a file."""
        values: dict[str, Any] = {
            "requests": [vars(one) for one in self.requests],
            "before": plain(self.before),
            "after": plain(self.after),
            "label": self.label,
        }
        if self.guest is not None:
            values["guest"] = vars(self.guest)
        return values


@dataclass(frozen=True)
class Part:
    """The plan of one task at one site: its arguments, its changes, and its lines for people."""

    task: str
    site: str
    login: str
    changes: tuple[Change, ...] = ()
    lines: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)  # without secrets
    subject: str = ""  # the object of the task, such as a node, if a file has several of them

    @property
    def key(self) -> tuple[str, str, str]:
        """The task, its subject and its site, which a document has once."""
        return self.task, self.subject, self.site

    @property
    def title(self) -> str:
        """The task, its subject and its site in words."""
        return f"{self.task} {self.subject}".rstrip() + f" at {self.site}"

    def as_dict(self) -> dict[str, Any]:
        """Return the form of the part in a file."""
        return {
            "task": self.task,
            "subject": self.subject,
            "site": self.site,
            "login": self.login,
            "arguments": plain(self.arguments),
            "lines": list(self.lines),
            "changes": [one.as_dict() for one in self.changes],
        }


@dataclass(frozen=True)
class Document:
    """A plan that people approve.

    `created` and `expires` are in seconds since the epoch. `salt` is part of the key of the
    hashes of its secrets. `commit` is the version of the estate, `run` the run of Ansible.
    """

    created: int
    expires: int
    salt: str
    commit: str = ""
    run: str = ""
    parts: tuple[Part, ...] = ()
    signature: str = ""

    def with_part(self, part: Part, place: str) -> Document:
        """Return the document with this part. Raises ValidationFailed if another task has written a
        part of this module, subject and site: a run would find only one of them.
        """
        others = tuple(one for one in self.parts if one.key != part.key)
        replaced = [one for one in self.parts if one.key == part.key]
        if any(plain(one.arguments) != plain(part.arguments) for one in replaced):
            raise ValidationFailed(
                f"The plan {place} was not written: another task of this run has the plan of "
                f"{part.title} in it",
                "Put the guests of both tasks into one list, or use two files",
                "plan options",
            )
        return replace(self, parts=(*others, part))

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of everything in the file but the digest itself and the signature."""
        return "sha256:" + hashlib.sha256(_canonical(self._values())).hexdigest()

    def _values(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "created": iso(self.created),
            "expires": iso(self.expires),
            "commit": self.commit,
            "run": self.run,
            "salt": self.salt,
            "parts": [one.as_dict() for one in self.parts],
        }

    def render(self) -> str:
        """Return the text of the file."""
        values = {**self._values(), "digest": self.digest}
        if self.signature:
            values["signature"] = self.signature
        return json.dumps(values, indent=1, sort_keys=True) + "\n"


def read_document(text: str, place: str) -> Document:
    """Return the document of a file. Raises ValidationFailed if it is not a plan, has a version that
    is not known, or was edited.
    """
    try:
        values = json.loads(text)
        is_plan = values["format"] == FORMAT
    except (ValueError, TypeError, KeyError, RecursionError):
        is_plan = False
    if not is_plan:
        raise refused(place, "it is not a plan of pve.fleet", "Name a file that plan_file has made")
    version = values.get("version")
    if version != VERSION:
        answer = f"its version is {version}, and this version of pve.fleet reads {VERSION}"
        raise refused(place, answer, "Plan again with this version")
    signature = str(values.pop("signature", ""))
    written = values.pop("digest", "")
    found = "sha256:" + hashlib.sha256(_canonical(values)).hexdigest()
    if written != found:
        answer = f"it was edited: its digest is {written or 'missing'}, and its content has {found}"
        raise refused(place, answer, "Plan again, and have the new plan approved")
    try:
        return replace(_document(values), signature=signature)
    except (KeyError, TypeError, ValueError) as error:
        raise refused(place, f"{error!r} is missing or wrong in it", "Plan again") from error


def require_in_force(document: Document, place: str, now: float) -> None:
    """Raise Conflict for a plan that has expired."""
    if now >= document.expires:
        raise Conflict(
            f"The plan {place} was not applied: it expired at {iso(document.expires)}",
            "Plan again, and have the new plan approved",
            "expired plan",
        )


def refused(place: str, answer: str, next_step: str) -> FleetError:
    """Return the error about a plan that cannot be applied; nothing was done."""
    return ValidationFailed(f"The plan {place} was not applied: {answer}", next_step, "plan")


def _document(values: Mapping[str, Any]) -> Document:
    return Document(
        created=seconds(values["created"]) or 0,
        expires=seconds(values["expires"]) or 0,
        salt=str(values["salt"]),
        commit=str(values["commit"]),
        run=str(values["run"]),
        parts=tuple(map(_part, values["parts"])),
    )


def _part(values: Mapping[str, Any]) -> Part:
    return Part(
        str(values["task"]),
        str(values["site"]),
        str(values["login"]),
        tuple(map(_change, values["changes"])),
        tuple(map(str, values["lines"])),
        dict(values["arguments"]),
        str(values["subject"]),
    )


def _change(values: Mapping[str, Any]) -> Change:
    requests = [
        PlannedRequest(str(one["method"]), str(one["path"]), dict(one["data"]), str(one["summary"]))
        for one in values["requests"]
    ]
    guest, found = values.get("guest"), None
    if guest:
        texts = {key: str(guest[key]) for key in ("kind", "tenant", "name", "node", "identity")}
        found = PlannedGuest(**texts, vmid=int(guest["vmid"]), room=dict(guest["room"]))
    before, after = dict(values["before"]), dict(values["after"])
    return Change(tuple(requests), before, after, found, str(values["label"]))


def _canonical(values: Any) -> bytes:
    return json.dumps(values, sort_keys=True, separators=(",", ":")).encode()


def plain(values: Any) -> Any:
    """Return values as JSON has them, so that they are equal after reading."""
    if isinstance(values, Mapping):
        return {str(key): plain(value) for key, value in values.items()}
    if isinstance(values, (set, frozenset)):
        return sorted(map(plain, values))
    if isinstance(values, Sequence) and not isinstance(values, str):
        return [plain(value) for value in values]
    return values if values is None or isinstance(values, (bool, int, float)) else str(values)
