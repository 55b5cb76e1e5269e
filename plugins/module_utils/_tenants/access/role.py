# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of roles (pve-access-control: API2/Role.pm)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..._foundation.api.interface import Api
from ..._foundation.core import validate
from ..._foundation.core.errors import ValidationFailed
from ..._foundation.resource.table import Call, DesiredResource, Key, Members, ResourceChange, Table
from .effective import read_privileges
from .own_loss import find_role_loss
from .uses import require_unused, uses_of

Version = tuple[int, int]

_PRIVILEGE = re.compile(r"^[A-Za-z]+(?:\.[A-Za-z]+)+\Z")
_AGENT_SINCE = (9, 0)
# Words for privileges whose names changed in PVE 9.0: the names before, and since.
WORDS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "agent_read": (frozenset({"VM.Monitor"}), frozenset({"VM.GuestAgent.Audit"})),
    "agent": (
        frozenset({"VM.Monitor"}),
        frozenset(
            f"VM.GuestAgent.{part}"
            for part in ("Audit", "FileRead", "FileSystemMgmt", "FileWrite", "Unrestricted")
        ),
    ),
}
_BUILT_IN = ("Administrator", "NoAccess")


def is_built_in(name: str) -> bool:
    """Return whether the role is built in; names of new roles cannot begin with PVE."""
    return name in _BUILT_IN or name.startswith("PVE")


def privilege(item: object) -> str:
    """Return a privilege, or a word for several privileges."""
    text = str(item)
    if text not in WORDS and not _PRIVILEGE.fullmatch(text):
        words = ", ".join(WORDS)
        raise validate.refused(
            "privileges", text, "is not a privilege", f"Write one as VM.Audit, or one of {words}"
        )
    return text


def without_words(privileges: Iterable[str], version: Version) -> frozenset[str]:
    """Return the privileges, each word replaced by the privileges of that version (pure)."""
    found: set[str] = set()
    for one in privileges:
        if one not in WORDS:
            found.add(one)
            continue
        before, since = WORDS[one]
        found |= before if version < _AGENT_SINCE else since
    return frozenset(found)


def resolve_words(client: Api, desired: DesiredResource) -> DesiredResource:
    """Return `desired` with all words replaced; the version is read only if there are words."""
    wanted = desired.members.get("privileges", frozenset())
    if not WORDS.keys() & wanted:
        return desired
    privileges = without_words(wanted, client.version())
    return replace(desired, members={**desired.members, "privileges": privileges})


def precheck_role(client: Api, desired: DesiredResource, change: ResourceChange) -> tuple[str, ...]:
    """Raise any refusal before the first write: built-in roles, privileges that this version does
    not have, and the deletion of a role in use.
    """
    name = desired.keys["name"]
    roles = {str(row["roleid"]): row for row in client.get("access", "roles") or []}
    built_in = bool(roles.get(name, {}).get("special"))
    if built_in or change.creates:
        _require_free_name(name, built_in=built_in)
    if change.deletes and not desired.force:
        require_unused(f"role '{name}'", [], uses_of(client, lambda entry: entry["roleid"] == name))
    known = read_privileges(roles.get("Administrator", {"roleid": "Administrator"}))
    unknown = sorted(change.adds.get("privileges", frozenset()) - known)
    if unknown:
        _refuse_unknown(name, unknown, known, client.version())
    return ()


def _require_free_name(name: str, *, built_in: bool) -> None:
    if built_in or name.lower().startswith("pve"):
        raise ValidationFailed(
            f"Role '{name}' was not changed: Proxmox VE keeps the names that begin with PVE, "
            "Administrator and NoAccess for its own roles",
            "Choose another name",
            "reserved name",
        )


def _refuse_unknown(name: str, unknown: list[str], known: Iterable[str], version: Version) -> None:
    near = difflib.get_close_matches(unknown[0], sorted(known), n=3)
    step = "The role Administrator has all privileges that there are"
    if any(one == "VM.Monitor" or one.startswith("VM.GuestAgent.") for one in unknown):
        step = "Use agent or agent_read, which stand for the privileges of each version"
    elif near:
        step = f"Did you mean {', '.join(near)}?"
    raise ValidationFailed(
        f"Role '{name}' was not changed: Proxmox VE {version[0]}.{version[1]} has no privilege "
        f"{', '.join(unknown)}",
        step,
        "unknown privilege",
        details={"privileges": unknown},
    )


ROLE = Table(
    kind="role",
    keys=(Key("name", "roleid", validate.role),),
    fields=(),
    members=(Members("privileges", "privs", "privilege", privilege, read_privileges, own=True),),
    list_call=Call(("access", "roles")),
    read_call=Call(("access", "roles", "{name}")),
    create_call=Call(("access", "roles"), {"roleid": "{name}"}),
    resolve=resolve_words,
    derived=lambda keys: {"built_in": is_built_in(keys["name"])},
    precheck=precheck_role,
    guard=find_role_loss,
)
