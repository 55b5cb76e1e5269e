# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of HA rules (pve-ha-manager: PVE/API2/HA/Rules.pm, since 9.0)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.core import validate
from ...._foundation.resource.table import (
    Call,
    DesiredResource,
    Field,
    Key,
    Members,
    Table,
    as_text,
)
from ...._foundation.resource.values import as_set, send_set, text_field, unset_flag_field
from .sids import sid

PLACE, POSITIVE = "node-affinity", "positive"
AVOIDING_SINCE = (9, 2, 6)  # PVE/HA/Rules/NodeAffinity.pm has an affinity, by default positive


def nodes_with_ranks(value: Any) -> frozenset[str]:
    """Return nodes as PVE writes them: C(pve1:2), and C(pve1) if the priority is 0."""
    found: dict[str, str] = {}
    for item in as_set()(value):
        node, _colon, rank = item.partition(":")
        validate.node(node, "nodes")
        if rank and not rank.isdecimal():
            raise validate.refused(
                "nodes", item, "has no valid priority", "Write it as pve1 or pve1:2"
            )
        text = f"{node}:{int(rank)}" if int(rank or 0) else node
        if found.setdefault(node, text) != text:  # PVE keeps one of them
            raise validate.refused(
                "nodes", node, "has two priorities", f"Write {found[node]} or {text}"
            )
    return frozenset(found.values())


def resolve(client: Api, desired: DesiredResource) -> DesiredResource:
    """Return the desired state without the default affinity of a node-affinity rule if the version
    has only this one, and refuses the property. One request if the task sets it.
    """
    values = dict(desired.values)
    has_default = values.get("type") == PLACE and values.get("affinity") == POSITIVE
    if not has_default or client.release() >= AVOIDING_SINCE:
        return desired
    del values["affinity"]
    return replace(desired, values=values)


NODES = Field(
    "nodes",
    "nodes",
    want=nodes_with_ranks,
    read=as_set(),
    send=send_set(),
    show=sorted,
    required=True,
    variants=(PLACE,),
)
HA_RULE = Table(
    kind="ha_rule",
    title="HA rule",
    keys=(Key("name", "rule", validate.config_id),),
    fields=(
        text_field("type", fixed=True, always=True, required=True),
        text_field("comment"),
        unset_flag_field("disable"),
        unset_flag_field("strict", variants=(PLACE,)),
        NODES,
        text_field("affinity", default=POSITIVE, send=as_text, required=("resource-affinity",)),
    ),
    members=(
        Members(
            "resources",
            "resources",
            "resource",
            lambda item: sid(item, "resources"),
            lambda answer: as_set()(answer.get("resources")),
            own=True,
        ),
    ),
    append="",
    variant="type",
    digest=("PUT",),
    list_call=Call(("cluster", "ha", "rules")),
    read_call=Call(("cluster", "ha", "rules", "{name}")),
    create_call=Call(("cluster", "ha", "rules"), {"rule": "{name}"}),
    resolve=resolve,
)
