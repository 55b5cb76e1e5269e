# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of groups of users (pve-access-control: API2/Group.pm)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._foundation.api.interface import Api
from ..._foundation.core import validate
from ..._foundation.resource.table import Call, DesiredResource, Field, Key, ResourceChange, Table
from ..._foundation.resource.values import comment_field
from .own_loss import find_group_loss
from .uses import require_unused, uses_of


def read_users(answer: Any) -> list[str]:
    """Return the users of a group, from a list (one group) or a text (the listing)."""
    if answer is None:
        return []
    users = answer.split(",") if isinstance(answer, str) else answer
    return sorted(user for user in users if user)


def precheck_group(
    client: Api, desired: DesiredResource, change: ResourceChange
) -> tuple[str, ...]:
    """Raise Conflict for the deletion of a group that has users or rights."""
    if change.deletes and not desired.force:
        name = desired.keys["name"]
        found: Mapping[str, Any] = client.get("access", "groups", name) or {}
        users = read_users(found.get("members"))
        uses = uses_of(client, lambda entry: (entry["type"], entry["ugid"]) == ("group", name))
        require_unused(f"group '{name}'", [f"user {user}" for user in users], uses)
    return ()


GROUP = Table(
    kind="group",
    keys=(Key("name", "groupid", validate.group),),
    fields=(comment_field(),),
    read_only=(Field("users", "members", read=read_users),),
    list_call=Call(("access", "groups")),
    rows=lambda answer, _keys: [{**row, "members": row.get("users")} for row in answer or []],
    read_call=Call(("access", "groups", "{name}")),
    create_call=Call(("access", "groups"), {"groupid": "{name}"}),
    precheck=precheck_group,
    guard=find_group_loss,
)
