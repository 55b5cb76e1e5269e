# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the facts on which a maintenance depends. Decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .._cluster.state import ClusterState
from .._core.errors import FleetError, NetworkError, NotSupported
from .._core.parallel import side_by_side
from .._node.record import Record, split_record
from .ha_places import ha_state_of, is_balancing
from .model import HaState

if TYPE_CHECKING:
    from .._api.client import Client

_READERS = 8
_RULES_SINCE = (9, 0)  # before, groups have the rules about nodes


@dataclass(frozen=True)
class CephState:
    """The health of Ceph, and the flags that are set."""

    health: str
    flags: frozenset[str]


@dataclass(frozen=True)
class NodeState:
    """A node: its running services, available storages, version, and boot time."""

    services: tuple[str, ...]
    storages: tuple[str, ...]
    version: str
    booted: int = 0


@dataclass(frozen=True)
class Facts:
    """The cluster as a maintenance sees it. `members` are the nodes: whether each is online."""

    quorate: bool
    members: Mapping[str, bool]
    ha: HaState
    ceph: CephState | None
    records: Mapping[str, Record] = field(default_factory=dict)
    tasks: tuple[Mapping[str, Any], ...] = ()


def read_facts(client: Client, node: str) -> Facts:
    """Return the facts about the cluster and the node. Raises FleetError."""
    quorate, members = read_members(client)
    records = read_records(client, members)
    tasks: tuple[Mapping[str, Any], ...] = ()
    if members.get(node):
        tasks = read_active(client, node)
    options = client.direct().get("cluster", "options") or {}
    ha = replace(read_ha(client), balances=is_balancing(options.get("crs")))
    return Facts(quorate, members, ha, read_ceph(client), records, tasks)


def read_members(client: Client) -> tuple[bool, dict[str, bool]]:
    """Return whether the cluster is quorate, and whether each node is online."""
    rows = client.direct().get("cluster", "status", attempted="Could not read the cluster's status")
    # A node without a cluster has no row of one.
    quorate = all(row.get("quorate", 1) for row in rows if row.get("type") == "cluster")
    nodes = [row for row in rows if row.get("type") == "node"]
    members = {str(row["name"]): bool(row.get("online")) for row in nodes}
    return quorate, members


def read_notes(client: Client, node: str) -> tuple[str, Record | None, str]:
    """Return the notes of a node, the record in them, and the digest of its configuration."""
    attempted = f"Could not read the notes of node {node}"
    config = client.direct().get("nodes", node, "config", attempted=attempted) or {}
    notes, record = split_record(node, str(config.get("description") or ""))
    return notes, record, str(config.get("digest") or "")


def read_record(client: Client, node: str) -> Record | None:
    """Return the record of a node, or None."""
    return read_notes(client, node)[1]


def read_records(client: Client, members: Mapping[str, bool]) -> dict[str, Record]:
    """Return the record of each online node that has one."""
    online = [name for name, is_online in members.items() if is_online]
    found = side_by_side(lambda name: read_record(client, name), online, _READERS)
    return {name: record for name, record in zip(online, found, strict=True) if record}


def read_active(client: Client, node: str) -> tuple[Mapping[str, Any], ...]:
    """Return the tasks that run on a node."""
    attempted = f"Could not read the tasks of node {node}"
    direct = client.direct()
    rows = direct.get("nodes", node, "tasks", source="active", limit=1000, attempted=attempted)
    return tuple(row for row in rows or () if row.get("status") in (None, "RUNNING"))


def read_ha(client: Client) -> HaState:
    """Return the state and the rules of the HA manager."""
    direct = client.direct()
    rules: list[Mapping[str, Any]] = []
    groups: list[Mapping[str, Any]] = []
    if client.version() >= _RULES_SINCE:
        rules = direct.get("cluster", "ha", "rules") or []
    else:
        groups = direct.get("cluster", "ha", "groups") or []
    return ha_state_of(
        direct.get("cluster", "ha", "status", "manager_status") or {},
        direct.get("cluster", "ha", "status", "current") or (),
        direct.get("cluster", "ha", "resources") or (),
        rules,
        groups,
    )


def read_ceph(client: Client) -> CephState | None:
    """Return the state of Ceph, or None if it is not installed or not set up.

    PVE refuses both (pve-manager: PVE/Ceph/Tools.pm, check_ceph_inited). Any other failure is
    raised.
    """
    direct = client.direct()
    try:
        status = direct.get("cluster", "ceph", "status", attempted="Could not read Ceph's health")
    except NetworkError:
        raise
    except FleetError as error:
        if _has_no_ceph(error):
            return None
        raise
    health = str((status.get("health") or {}).get("status") or "unknown")
    rows = direct.get("cluster", "ceph", "flags", attempted="Could not read Ceph's flags")
    flags = frozenset(str(row["name"]) for row in rows or () if row.get("value"))
    return CephState(health, flags)


def _has_no_ceph(error: FleetError) -> bool:
    """Return whether an error says that Ceph is not there (pure)."""
    text = error.answer.lower()
    is_missing = "not installed" in text or "not initialized" in text
    return is_missing or isinstance(error, NotSupported)


def read_node(client: Client, node: str, cluster: ClusterState) -> NodeState:
    """Return the state of a node that is online. Raises FleetError."""
    direct = client.direct()
    rows = direct.get("nodes", node, "services", tries=1)
    services = [str(row["service"]) for row in rows or () if row.get("state") == "running"]
    version = str(direct.get("nodes", node, "version", tries=1).get("version") or "")
    storages = [row.storage for row in cluster.storages if row.node == node and row.available]
    uptime = direct.get("nodes", node, "status", tries=1).get("uptime") or 0
    booted = int(client.clock.time() - uptime)
    return NodeState(tuple(sorted(services)), tuple(sorted(storages)), version, booted)
