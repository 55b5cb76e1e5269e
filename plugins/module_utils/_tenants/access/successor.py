# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rights of a token that replaces another token, before PVE 9.2."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ..._foundation.api.interface import Api
from ..._foundation.core.errors import PermissionDenied
from ..._foundation.resource.execute import after_writes, attempted
from .checks.acl_check import held_on, read_roles, require_givable
from .grants import Grant, read_grant


class GrantOnPath(NamedTuple):
    """A role on a path."""

    path: str
    grant: Grant

    def summary(self) -> str:
        """Return the summary of the step for a result."""
        return f"Add {self.grant.role} on {self.path} for token '{self.grant.who}'"


def read_rights(client: Api, token: str, successor: str, began: str) -> list[GrantOnPath]:
    """Return the rights of a token for its successor; `began` begins the message of a refusal.

    Raises PermissionDenied before any write if the caller cannot see all rights, which PVE does not
    report (API2/ACL.pm, read_acl), or cannot give one of them.
    """
    _require_all_visible(held_on(client, "/access"), began)
    found: list[GrantOnPath] = []
    for entry in client.get("access", "acl", attempted="Could not read the rights") or []:
        grant = read_grant(entry)
        if (grant.kind, grant.who) == ("token", token):
            found.append(GrantOnPath(str(entry["path"]), grant._replace(who=successor)))
    if found:
        _require_givable(client, found, began)
    return sorted(found)


def _require_all_visible(held: Collection[str], began: str) -> None:
    """Raise PermissionDenied if the privileges held on /access do not show all rights."""
    if "Sys.Audit" in held:
        return
    raise PermissionDenied(
        attempted=began,
        answer="Proxmox VE does not show all rights without Sys.Audit on /access, and the"
        " successor would lack those",
        next_step="Use a user or token with Sys.Audit on /access",
        reason="not all rights",
        details={"privileges": ["Sys.Audit"]},
    )


def _require_givable(client: Api, rights: Sequence[GrantOnPath], began: str) -> None:
    roles = read_roles(client)
    for path in sorted({right.path for right in rights}):
        grants = [right.grant for right in rights if right.path == path]
        require_givable(held_on(client, path), roles, grants, (), began)


def give(client: Api, right: GrantOnPath, done: Sequence[str]) -> None:
    """Give a token one role; a repetition is harmless. Errors list the steps done before."""
    data: Mapping[str, Any] = {
        "path": right.path,
        "roles": right.grant.role,
        "tokens": right.grant.who,
        "propagate": int(right.grant.propagate),
    }
    with after_writes(done):
        client.write("PUT", "access", "acl", data=data, attempted=attempted(right.summary()))
    client.note(right.summary())
