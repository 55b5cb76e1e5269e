# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of HA groups, which Proxmox VE 9 has replaced by rules (pve-ha-manager:
PVE/API2/HA/Groups.pm, PVE/HA/Groups.pm).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...._foundation.api.interface import Api
from ...._foundation.core import validate
from ...._foundation.core.errors import Conflict
from ...._foundation.resource.run import list_values
from ...._foundation.resource.table import Call, DesiredResource, Key, ResourceChange, Table
from ...._foundation.resource.values import text_field, unset_flag_field
from .checks import read_facts, require_nodes
from .resource import HA_RESOURCE
from .rule import NODES


def precheck(client: Api, desired: DesiredResource, change: ResourceChange) -> tuple[str, ...]:
    """Raise ConfigurationError for unknown nodes, and Conflict for the removal of a group in use.

    One request if nodes are set or if the group is deleted.
    """
    attempted = f"{HA_GROUP.label(desired.keys)} was not {change.verb}"
    if change.deletes:
        resources = list_values(HA_RESOURCE, client, {})
        name = desired.keys["name"]
        users = [keys["sid"] for keys, values in resources if values["group"] == name]
        require_unused(users, attempted)
    if "nodes" in change.sets:
        require_nodes(change.sets["nodes"], read_facts(client), attempted)
    return ()


def require_unused(users: Sequence[str], attempted: str) -> None:
    """Raise Conflict if HA resources are in a group (pure)."""
    if users:
        raise Conflict(
            f"{attempted}: HA resources are in it: {', '.join(users)}",
            "Set another group of them first: pve.fleet.ha_resource",
            "in use",
            details={"resources": list(users)},
        )


HA_GROUP = Table(
    kind="ha_group",
    title="HA group",
    keys=(Key("name", "group", validate.config_id),),
    fields=(
        replace(NODES, variants=()),
        unset_flag_field("restricted"),
        unset_flag_field("nofailback"),
        text_field("comment"),
    ),
    digest=("PUT",),
    list_call=Call(("cluster", "ha", "groups")),
    read_call=Call(("cluster", "ha", "groups", "{name}")),
    create_call=Call(("cluster", "ha", "groups"), {"group": "{name}"}),
    precheck=precheck,
)
