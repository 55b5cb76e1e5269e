# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Entries of the access control list: who has which role on a path (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..._foundation.core import validate
from ..._foundation.core.errors import ValidationFailed

# The kinds of subjects of an entry, each with the API parameter for a list of them.
SUBJECTS: Mapping[str, str] = {"user": "users", "group": "groups", "token": "tokens"}
_CHECKS = {"user": validate.user, "group": validate.group, "token": validate.token}

# pve-access-control: AccessControl.pm, check_path (9.2).
_NAME = r"[A-Za-z0-9.\-_]+"
_PATH = re.compile(
    rf"/|/access|/access/groups(?:/{_NAME})?|/access/realm(?:/{_NAME})?|/nodes(?:/{_NAME})?"
    rf"|/pool(?:/{_NAME}){{0,3}}|/sdn"
    r"|/sdn/controllers(?:/[A-Za-z0-9_\-]+)?"
    r"|/sdn/(?:dns|fabrics|ipams|prefix-lists|route-maps)(?:/[A-Za-z0-9]+)?"
    rf"|/sdn/zones(?:/{_NAME}(?:/{_NAME}(?:/[1-9][0-9]{{0,3}})?)?)?"
    rf"|/storage(?:/{_NAME})?|/vms(?:/[1-9][0-9]{{2,}})?|/mapping(?:/{_NAME}){{0,2}}"
)


class Grant(NamedTuple):
    """A role of a user, group or token on a path, and on the paths below if it propagates."""

    kind: str
    who: str
    role: str
    propagate: bool

    def text(self) -> str:
        """Return the entry as messages name it."""
        below = "" if self.propagate else " (not below)"
        return f"{self.role} for {self.kind} {self.who}{below}"


def want_grant(item: Mapping[str, Any]) -> Grant:
    """Return the grant in an item of the option. Raises ValidationFailed."""
    named = [kind for kind in SUBJECTS if item.get(kind) is not None]
    if len(named) != 1:
        raise ValidationFailed(
            "grants was refused: an item names "
            f"{' and '.join(named) or 'nothing that gets the role'}",
            "Set one of user, group and token in each item",
            "grants",
        )
    kind = named[0]
    role = item.get("role")
    return Grant(
        kind=kind,
        who=_CHECKS[kind](item[kind], "grants"),
        role=validate.role("" if role is None else role, "grants"),
        propagate=item.get("propagate") is not False,
    )


def read_grant(row: Mapping[str, Any]) -> Grant:
    """Return the grant in a row of PVE's listing."""
    propagate = bool(int(row.get("propagate", 1)))
    return Grant(str(row["type"]), str(row["ugid"]), str(row["roleid"]), propagate)


def batches(grants: frozenset[Grant]) -> Sequence[tuple[frozenset[Grant], Mapping[str, Any]]]:
    """Return the entries by role and propagation, each with the data of one request."""
    alike: dict[tuple[str, bool], list[Grant]] = {}
    for grant in sorted(grants):
        alike.setdefault((grant.role, grant.propagate), []).append(grant)
    found: list[tuple[frozenset[Grant], Mapping[str, Any]]] = []
    for (role, propagate), batch in sorted(alike.items()):
        subjects: dict[str, list[str]] = {}
        for grant in batch:
            subjects.setdefault(SUBJECTS[grant.kind], []).append(grant.who)
        lists = {parameter: ",".join(names) for parameter, names in subjects.items()}
        found.append((frozenset(batch), {"roles": role, "propagate": int(propagate), **lists}))
    return found


def want_path(value: str, what: str) -> str:
    """Return an ACL path in the form that PVE stores (AccessControl.pm, normalize_path)."""
    path = re.sub("/+", "/", value.strip()).rstrip("/") or "/"
    if not value.strip() or not _PATH.fullmatch(path):
        raise validate.refused(
            what,
            value,
            "is not a path of Proxmox VE",
            "Write it as /pool/NAME, /vms/VMID, /storage/NAME, /nodes/NAME,"
            " /sdn/zones/ZONE/VNET, /mapping/KIND/NAME, /access/groups/NAME or /",
        )
    return path
