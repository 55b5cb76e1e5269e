# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of subscriptions of nodes (pve-manager: PVE/API2/Subscription.pm)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.core import validate
from ...._foundation.core.errors import ValidationFailed
from ...._foundation.resource.table import Call, DesiredResource, Field, Key, ResourceChange, Table
from ...._foundation.resource.values import secret
from .certificate import refused

_KEY = re.compile(r"pve[1248][cbsp]-(?:arm-)?[0-9a-f]{10}")
_ONE = Call(("nodes", "{node}", "subscription"))


def read_key(value: str, option: str) -> str:
    """Return the key of a subscription. Raises ValidationFailed, which never shows the text."""
    text = str(value).strip()
    if _KEY.fullmatch(text):
        return text
    answer = "it is not a subscription key of Proxmox VE"
    raise refused(answer, "Write it as in the shop, such as pve2s-0123456789", option)


def _pick(answer: Any, keys: Mapping[str, str]) -> Mapping[str, Any] | None:
    if not answer or answer.get("status") == "notfound":
        return None
    return {**answer, **keys}


def precheck(_client: Api, desired: DesiredResource, change: ResourceChange) -> tuple[str, ...]:
    """Raise ValidationFailed for a node without a subscription if the task has no key."""
    if change.creates and not desired.secrets.get("key"):
        raise ValidationFailed(
            f"{SUBSCRIPTION.label(desired.keys)} was not created: the node has no subscription key",
            "Set key",
            "key",
        )
    return ()


SUBSCRIPTION = Table(
    kind="subscription",
    label_as="the subscription of node {node}",
    keys=(Key("node", "node", validate.node),),
    fields=(),
    read_only=(
        Field("status", "status"),
        Field("level", "level"),
        Field("product_name", "productname"),
        Field("next_due_date", "nextduedate"),
        Field("sockets", "sockets", read=lambda value: int(value) if value else None),
        Field("server_id", "serverid"),
        Field("message", "message"),
    ),
    secrets=(secret("key", "key", check=read_key),),
    pick=_pick,
    precheck=precheck,
    read_call=_ONE,
    create_call=Call(_ONE.path, {}, "PUT"),
)
