# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of API tokens (pve-access-control: API2/User.pm)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._foundation.api.interface import Api
from ..._foundation.core import times, validate
from ..._foundation.resource.table import Call, DesiredResource, Field, Key, ResourceChange, Table
from ..._foundation.resource.values import (
    as_flag,
    as_seconds,
    comment_field,
    expiry,
    require_future,
    send_flag,
)
from .own_loss import find_token_loss


def token_id(keys: Mapping[str, str]) -> str:
    """Return the full name of a token, which is its login."""
    return f"{keys['owner']}!{keys['name']}"


def precheck_token(
    client: Api, _desired: DesiredResource, change: ResourceChange
) -> tuple[str, ...]:
    """Raise ValidationFailed for an expiry date in the past, which PVE would accept."""
    require_future("expire", change.sets.get("expire", 0), client.clock.time())
    return ()


def _rows(answer: Any, keys: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """Return the tokens in the list of users, limited to one user or name if given."""
    found: list[Mapping[str, Any]] = []
    for user in answer or []:
        owned = [{**row, "userid": user["userid"]} for row in user.get("tokens") or []]
        if keys.get("owner") in (None, user["userid"]):
            found += [row for row in owned if keys.get("name") in (None, row["tokenid"])]
    return found


TOKEN = Table(
    kind="token",
    label_as="token '{owner}!{name}'",
    keys=(Key("owner", "userid", validate.user), Key("name", "tokenid", validate.token_name)),
    fields=(
        Field("privilege_separation", "privsep", want=bool, read=as_flag(True), send=send_flag),
        Field("expire", "expire", want=expiry("expire"), read=as_seconds, send=int, show=times.iso),
        comment_field(),
    ),
    list_call=Call(("access", "users"), {"full": "1"}),
    rows=_rows,
    read_call=Call(("access", "users", "{owner}", "token", "{name}")),
    derived=lambda keys: {"token_id": token_id(keys)},
    precheck=precheck_token,
    guard=find_token_loss,
)
