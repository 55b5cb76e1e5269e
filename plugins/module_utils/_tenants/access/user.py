# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of users (pve-access-control: API2/User.pm)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ..._foundation.api.client import Client
from ..._foundation.api.interface import Api
from ..._foundation.api.root import ROOT
from ..._foundation.api.settings import ConnectionSettings
from ..._foundation.core import times, validate
from ..._foundation.core.errors import (
    ConfigurationError,
    Conflict,
    PermissionDenied,
    ValidationFailed,
)
from ..._foundation.core.result import Result
from ..._foundation.resource.run import run
from ..._foundation.resource.table import (
    Call,
    DesiredResource,
    Field,
    Key,
    Members,
    ResourceChange,
    Secret,
    Table,
)
from ..._foundation.resource.values import (
    as_flag,
    as_seconds,
    comment_field,
    expiry,
    require_existing,
    require_future,
    send_flag,
    stripped_text,
)
from .own_loss import find_user_loss
from .realms.realm import kind_of_realm, kinds_of_realms

# pve-common: JSONSchema.pm, pve_verify_email.
_EMAIL = re.compile(r"[\w.+\-~]+@[\w\-~]+(?:\.[\w\-~]+)*", re.ASCII)
# The limits of the API schema.
_COMMENT, _NAME, _ADDRESS = 2048, 1024, 254
_PASSWORD = (8, 64)
# The kinds of realms whose passwords PVE keeps (Auth/PVE.pm and Auth/PAM.pm, store_password).
_WITH_PASSWORDS = ("pve", "pam")


def email(value: Any) -> str:
    """Return an address, or an empty text for none."""
    text = stripped_text("email", _ADDRESS)(value)
    if text and not _EMAIL.fullmatch(text):
        raise validate.refused(
            "email", text, "is not an e-mail address", "Write it as alice@example.com"
        )
    return text


def password(value: str, what: str) -> str:
    """Return a password that PVE accepts; messages never show it."""
    shortest, longest = _PASSWORD
    if not value.strip() or not shortest <= len(value) <= longest:
        raise ValidationFailed(
            f"{what} was refused: it does not have {shortest} to {longest} characters, or has "
            "only blanks",
            "Choose another password",
            what,
        )
    return value


def read_groups(answer: Mapping[str, Any]) -> frozenset[str]:
    """Return the groups of a user, from a list (one user) or a text (the listing)."""
    groups = answer.get("groups") or []
    if isinstance(groups, str):
        groups = groups.split(",")
    return frozenset(group for group in groups if group)


def read_tokens(answer: Any) -> list[str]:
    """Return the names of a user's tokens, from a mapping (one user) or rows (the listing)."""
    if isinstance(answer, Mapping):
        return sorted(answer)
    return sorted(str(row["tokenid"]) for row in answer or [])


_SET_PASSWORD = Call(("access", "password"), {"userid": "{name}"})
_SECRET = Secret(
    "user_password",
    "password",
    _SET_PASSWORD,
    requested_by=("update_password", "always"),
    check=password,
)


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
        kinds = kinds_of_realms(client)
        _require_realm(kinds, name, attempted, with_password=bool(desired.secrets))
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
    if name == ROOT and (change.deletes or is_off or ends):
        raise Conflict(
            f"User '{name}' was not {('deleted' if change.deletes else 'changed')}: every cluster "
            "needs it: it and its tokens would no longer be accepted",
            "Keep this user enabled and without an expiry date",
            "own login",
        )


def _require_no_token(token_id: str, attempted: str) -> None:
    if token_id:
        raise PermissionDenied(
            f"{attempted}: Proxmox VE does not let a token change the password of a user that "
            "exists",
            "Log in with user and password, or leave out update_password",
            "not with a token",
        )


def _require_realm(
    kinds: Mapping[str, str], name: str, attempted: str, *, with_password: bool
) -> None:
    realm = name.rpartition("@")[2]
    next_step = "Check the part behind the @: Proxmox VE itself would accept it"
    kind = kind_of_realm(kinds, realm, attempted, next_step=next_step)
    if with_password and kind not in _WITH_PASSWORDS:
        raise ConfigurationError(
            f"{attempted}: the passwords of realm '{realm}' ({kind}) are not kept by Proxmox VE",
            "Leave out user_password",
            "realm without passwords",
        )


USER = Table(
    kind="user",
    keys=(Key("name", "userid", validate.user),),
    fields=(
        Field("enabled", "enable", want=bool, read=as_flag(True), send=send_flag),
        Field("expire", "expire", want=expiry("expire"), read=as_seconds, send=int, show=times.iso),
        Field("firstname", "firstname", want=stripped_text("firstname", _NAME)),
        Field("lastname", "lastname", want=stripped_text("lastname", _NAME)),
        Field("email", "email", want=email),
        comment_field(_COMMENT),
    ),
    members=(
        Members(
            "groups",
            "groups",
            "group",
            lambda item: validate.group(item, "groups"),
            read_groups,
            own=True,
        ),
    ),
    read_only=(Field("tokens", "tokens", read=read_tokens),),
    secrets=(_SECRET,),
    list_call=Call(("access", "users"), {"full": "1"}),
    read_call=Call(("access", "users", "{name}")),
    create_call=Call(("access", "users"), {"userid": "{name}"}),
    derived=lambda keys: {"realm": keys["name"].rpartition("@")[2]},
)


def user_table(connection: ConnectionSettings) -> Table:
    """Return the table for a caller with this login.

    Callers other than root@pam must send their own password to change a password (AccessControl.pm,
    reauth_user_for_user_modification).
    """
    data = dict(_SET_PASSWORD.data)
    if connection.password and connection.user != ROOT:
        # The data of a call are format strings, so braces are doubled.
        own = connection.password.replace("{", "{{").replace("}", "}}")
        data["confirmation-password"] = own
    secret = replace(_SECRET, call=replace(_SET_PASSWORD, data=data))
    precheck = partial(precheck_user, connection)
    return replace(USER, secrets=(secret,), precheck=precheck, guard=find_user_loss)


def run_user(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Bring the user to the desired state and return the outcome; check mode writes nothing."""
    return run(user_table(client.connection), params, client, check_mode)
