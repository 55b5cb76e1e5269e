# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is checked of a user before the first write."""

from __future__ import annotations

from .._api.settings import Connection
from .._core.errors import ConfigurationError, Conflict, PermissionDenied
from .._resource.change import Change, Desired
from .._resource.protocols import Api
from .._resource.values import refuse_past, require_existing
from .realm import kind_of_realm

ROOT = "root@pam"
# The kinds of realms whose passwords PVE keeps (Auth/PVE.pm and Auth/PAM.pm, store_password).
_WITH_PASSWORDS = ("pve", "pam")


def check_user(
    connection: Connection, client: Api, desired: Desired, change: Change
) -> tuple[str, ...]:
    """Raise what PVE would refuse, or accept although it is a mistake."""
    name = desired.keys["name"]
    _keep_a_way_in(connection, name, change)
    if change.deletes:
        return ()
    attempted = f"User '{name}' was not {'created' if change.creates else 'changed'}"
    refuse_past("expire", change.sets.get("expire", 0), client.clock.time())
    if change.writes and connection.token_id:
        raise PermissionDenied(
            attempted=attempted,
            answer="Proxmox VE does not let a token change the password of a user that exists",
            next_step="Log in with user and password, or leave out update_password",
            reason="not with a token",
        )
    if change.creates:
        _require_realm(client, name, attempted, with_password=bool(desired.secrets))
    groups = change.adds.get("groups", frozenset())
    if groups:
        rows = client.get("access", "groups") or []
        known = {str(row["groupid"]) for row in rows}
        require_existing(
            "group",
            groups,
            known,
            attempted,
            check="the names in groups",
            bounds=" that this user or token may see",
        )
    return ()


def _keep_a_way_in(connection: Connection, name: str, change: Change) -> None:
    """Raise Conflict where root@pam or the caller would be locked out, its tokens included."""
    caller = (connection.token_id or connection.user).partition("!")[0]
    if name not in (ROOT, caller):
        return
    if not change.deletes and change.sets.get("enabled") is not False:
        return
    what = "deleted" if change.deletes else "disabled"
    whose = "this task logs in as" if name == caller else "every cluster needs"
    raise Conflict(
        attempted=f"User '{name}' was not {what}",
        answer=f"it is the user that {whose}: its tokens would no longer be accepted either",
        next_step="Log in as another user for this" if name != ROOT else "Keep this user",
        reason="own login",
    )


def _require_realm(client: Api, name: str, attempted: str, *, with_password: bool) -> None:
    realm = name.rpartition("@")[2]
    mend = "Check the part behind the @: Proxmox VE itself would accept it"
    kind = kind_of_realm(client, realm, attempted, next_step=mend)
    if with_password and kind not in _WITH_PASSWORDS:
        raise ConfigurationError(
            attempted=attempted,
            answer=f"the passwords of realm '{realm}' ({kind}) are not kept by Proxmox VE",
            next_step="Leave out user_password",
            reason="realm without passwords",
        )
