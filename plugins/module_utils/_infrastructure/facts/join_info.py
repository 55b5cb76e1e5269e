# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module cluster_join_info (pve-cluster: PVE/API2/ClusterConfig.pm, join_info)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..._foundation.api.interface import Api
from ..._foundation.core import propstring, validate
from ..._foundation.core.errors import FleetError
from ..._foundation.core.result import Result

_LINK = re.compile(r"ring([0-7])_addr")
_NO_CLUSTER = 424  # HTTP_FAILED_DEPENDENCY


def run(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Return the data for joining the cluster, None for a node without a cluster; one request.

    The answer contains the list of nodes that C(/cluster/config/nodes) returns.
    """
    query = {}
    if params.get("node"):
        query["node"] = validate.node(params["node"])
    attempted = "Could not read how a node joins the cluster"
    try:
        answer = client.get("cluster", "config", "join", params=query, attempted=attempted)
    except FleetError as error:
        if error.status != _NO_CLUSTER:
            raise
        return Result(False, {"cluster_join": None})
    return Result(False, {"cluster_join": describe_join(answer)})


def describe_join(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the address and the fingerprint that a new node needs, and all nodes (pure)."""
    nodes: list[dict[str, Any]] = []
    for row in sorted(answer["nodelist"], key=lambda one: str(one["name"])):
        links: dict[str, str] = {}
        for key in sorted(row):
            link = _LINK.fullmatch(key)
            if link:
                links[link[1]] = _address(str(row[key]))
        nodes.append(
            {
                "node": row["name"],
                "nodeid": row.get("nodeid"),
                "votes": row.get("quorum_votes"),
                "address": row.get("pve_addr"),
                "fingerprint": row.get("pve_fp"),
                "links": links,
            }
        )
    preferred = [one for one in nodes if one["node"] == answer["preferred_node"]]
    peer = preferred[0] if preferred else {}
    return {
        "name": (answer.get("totem") or {}).get("cluster_name"),
        "node": answer["preferred_node"],
        "address": peer.get("address"),
        "fingerprint": peer.get("fingerprint"),
        "nodes": nodes,
    }


def _address(text: str) -> str:
    """Return the address of a link, without its priority."""
    parts = propstring.sub_keys(text)
    return parts.get("address") or text.partition(",")[0]
