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

from ..._foundation.api.root import ROOT
from ..._foundation.api.settings import ConnectionSettings
from ..._foundation.core import times, validate
from ..._foundation.core.errors import ValidationFailed
from ..._foundation.resource.table import Call, Field, Key, Members, Secret, Table
from ..._foundation.resource.values import (
    as_flag,
    as_seconds,
    comment_field,
    expiry,
    send_flag,
    stripped_text,
)
from .checks.user_check import precheck_user
from .own_loss import find_user_loss

# pve-common: JSONSchema.pm, pve_verify_email.
_EMAIL = re.compile(r"[\w.+\-~]+@[\w\-~]+(?:\.[\w\-~]+)*", re.ASCII)
# The limits of the API schema.
_COMMENT, _NAME, _ADDRESS = 2048, 1024, 254
_PASSWORD = (8, 64)


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
            attempted=f"{what} was refused",
            answer=f"it does not have {shortest} to {longest} characters, or has only blanks",
            next_step="Choose another password",
            reason=what,
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
