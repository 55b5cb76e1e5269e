# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of resource pools (pve-manager: PVE/API2/Pool.pm; pve-access-control:
AccessControl.pm).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._foundation.core import validate
from ..._foundation.resource.table import Call, Key, Members, Table
from ..._foundation.resource.values import comment_field
from .checks.pool_check import precheck_pool
from .own_loss import find_pool_loss

_ONE = {"poolid": "{name}"}


def _guests(answer: Mapping[str, Any]) -> frozenset[int]:
    rows = answer.get("members") or []
    return frozenset(int(row["vmid"]) for row in rows if "vmid" in row)


def _storages(answer: Mapping[str, Any]) -> frozenset[str]:
    rows = answer.get("members") or []
    return frozenset(str(row["storage"]) for row in rows if row.get("type") == "storage")


def _above(keys: Mapping[str, str]) -> dict[str, Any]:
    return {"parent": keys["name"].rpartition("/")[0] or None}


POOL = Table(
    kind="pool",
    keys=(Key("name", "poolid", validate.pool),),
    fields=(comment_field(),),
    members=(
        Members("vms", "vms", "VM", lambda item: validate.vmid(item, "vms"), _guests),
        Members(
            "storages",
            "storage",
            "storage",
            lambda item: validate.storage(item, "storages"),
            _storages,
        ),
    ),
    # API paths that contain the name of the pool do not support nested pools.
    list_call=Call(("pools",)),
    read_call=Call(("pools",), _ONE),
    pick=lambda answer, _keys: answer[0] if answer else None,
    switches={"allow_move": "allow-move"},
    derived=_above,
    precheck=precheck_pool,
    guard=find_pool_loss,
    list_is_whole=False,
)
