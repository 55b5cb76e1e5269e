# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of a user before the first write."""

from __future__ import annotations

from collections.abc import Mapping

from ...._foundation.api.interface import Api
from ...._foundation.api.root import ROOT
from ...._foundation.api.settings import ConnectionSettings
from ...._foundation.core.errors import ConfigurationError, Conflict, PermissionDenied
from ...._foundation.resource.change import DesiredResource, ResourceChange
from ...._foundation.resource.values import require_existing, require_future
from ..realms.realm import kind_of_realm, kinds_of_realms

# The kinds of realms whose passwords PVE keeps (Auth/PVE.pm and Auth/PAM.pm, store_password).
_WITH_PASSWORDS = ("pve", "pam")


def precheck_user(
    connection: ConnectionSettings, client: Api, desired: DesiredResource, change: ResourceChange
) -> tuple[str, ...]:
    """Raise for a change that PVE would refuse, and for a mistake that PVE would accept."""
    name = desired.keys["name"]
    _require_root_kept(name, change)
    if change.deletes:
        return ()
    attempted = f"User '{name}' was not {change.verb}"
    require_future("expire", change.sets.get("expire", 0), client.clock.time())
    if change.writes:
        _require_no_token(connection.token_id, attempted)
    if change.creates:
        _require_realm(
            kinds_of_realms(client), name, attempted, with_password=bool(desired.secrets)
        )
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


def _require_root_kept(name: str, change: ResourceChange) -> None:
    is_off = change.sets.get("enabled") is False
    ends = change.sets.get("expire", 0) > 0
    if name != ROOT or not (change.deletes or is_off or ends):
        return
    what = "changed"
    if change.deletes:
        what = "deleted"
    raise Conflict(
        attempted=f"User '{name}' was not {what}",
        answer="every cluster needs it: it and its tokens would no longer be accepted",
        next_step="Keep this user enabled and without an expiry date",
        reason="own login",
    )


def _require_no_token(token_id: str, attempted: str) -> None:
    if token_id:
        raise PermissionDenied(
            attempted=attempted,
            answer="Proxmox VE does not let a token change the password of a user that exists",
            next_step="Log in with user and password, or leave out update_password",
            reason="not with a token",
        )


def _require_realm(
    kinds: Mapping[str, str], name: str, attempted: str, *, with_password: bool
) -> None:
    realm = name.rpartition("@")[2]
    next_step = "Check the part behind the @: Proxmox VE itself would accept it"
    kind = kind_of_realm(kinds, realm, attempted, next_step=next_step)
    if with_password and kind not in _WITH_PASSWORDS:
        raise ConfigurationError(
            attempted=attempted,
            answer=f"the passwords of realm '{realm}' ({kind}) are not kept by Proxmox VE",
            next_step="Leave out user_password",
            reason="realm without passwords",
        )
