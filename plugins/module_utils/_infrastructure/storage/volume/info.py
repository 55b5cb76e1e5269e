# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module volume_info: the volumes of a storage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...._foundation.api.client import Client
from ...._foundation.cluster.state import fetch_cluster_state
from ...._foundation.core import validate
from ...._foundation.core.result import Result
from ..desired import DesiredFile
from ..download import choose_node
from .plan import describe_row


def run_volume_info(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the volumes of a storage, sorted by volume ID; two requests, nothing is written."""
    file = DesiredFile(
        storage=validate.storage(params["storage"]),
        content=params.get("content") or "",
        name="its volumes",
        node=params.get("node") or None,
    )
    cluster = fetch_cluster_state(client, ())
    file = replace(file, node=choose_node(file, cluster, client.node_preference))
    query = {"content": params.get("content"), "vmid": params.get("vmid")}
    path = ("nodes", str(file.node), "storage", file.storage, "content")
    rows = client.get(*path, params={key: one for key, one in query.items() if one is not None})
    place = {"storage": file.storage, "node": file.node}
    volumes = [{**place, **describe_row(row)} for row in rows or []]
    return Result(False, {"volumes": sorted(volumes, key=lambda one: str(one["volid"]))})
