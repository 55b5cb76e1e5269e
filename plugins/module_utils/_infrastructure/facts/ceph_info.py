# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module ceph_info: the state of a Ceph cluster, by a bounded number of requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..._foundation.core.parallel import side_by_side
from ..._foundation.core.result import Result
from ..storage.ceph.daemons import MDS, MGR, MON, describe_daemons
from ..storage.ceph.flags import FLAGS
from ..storage.ceph.pool import POOL, rows
from ..storage.ceph.run import choose_node
from ..storage.disk.osd import osds_of
from .partial_read import PartialRead

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_PARTS = ("status", "mgr", "mds", "osd", "pool")


def run_ceph_info(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the state of Ceph. Nothing is written.

    Six requests, and at least two that find a node with Ceph if the task does not set one. The list
    of monitors does not need a quorum. Without a quorum, the parts that need it are in `missing`.
    """
    node = choose_node(params, client)
    monitors = client.get("nodes", node, "ceph", "mon", attempted="Could not list the monitors")
    read = PartialRead(client)

    def read_part(part: str) -> Any:
        return read.read(f"{part} of Ceph", "nodes", node, "ceph", part)

    found = side_by_side(read_part, _PARTS, len(_PARTS))
    state = state_of({"mon": monitors, **dict(zip(_PARTS, found, strict=True))})
    values = {"ceph": {"node": node, **state}, "missing": read.missing}
    return Result(False, values, warnings=read.warnings)


def state_of(answers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of Ceph; `answers` are by path, a missing answer is None (pure)."""
    health = (answers["status"] or {}).get("health") or {}
    osds = osds_of(answers["osd"])
    pools = sorted(rows(answers["pool"], {}), key=lambda row: str(row["pool_name"]))
    checks: list[dict[str, Any]] = []
    for name, check in sorted((health.get("checks") or {}).items()):
        message = (check.get("summary") or {}).get("message")
        checks.append({"name": name, "severity": check.get("severity"), "message": message})
    return {
        "health": health.get("status") or "unknown",
        "checks": checks,
        "flags": flags_in(answers["osd"]),
        "monitors": describe_daemons(MON, answers["mon"]),
        "managers": describe_daemons(MGR, answers["mgr"]),
        "metadata_servers": describe_daemons(MDS, answers["mds"]),
        "osds": [osds[number] for number in sorted(osds)],
        "pools": [POOL.show(POOL.keys_of(row), POOL.values(row)) for row in pools],
    }


def flags_in(tree: Mapping[str, Any] | None) -> list[str]:
    """Return the flags in the answer with the tree of OSDs, by their names in ceph_flag (pure).

    Ceph has two flags for a pause (PVE/Ceph/Tools.pm, get_real_flag_name).
    """
    words = str((tree or {}).get("flags") or "").split(",")
    known = {"pause" if word == "pauserd" else word for word in words}
    return sorted(known.intersection(FLAGS))
