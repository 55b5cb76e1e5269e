# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the facts on which a maintenance depends. Decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.state import ClusterState
from ..._foundation.core.errors import FleetError, NetworkError, NotSupported
from ..._foundation.core.parallel import side_by_side
from ..._infrastructure.node.record import NodeRecord, maintained_by, split_record
from .ha_places import ha_state_of, is_balancing
from .model import HaManagerState

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_RULES_SINCE = (9, 0)  # older versions keep the rules about nodes in groups


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
class MaintenanceFacts:
    """The facts about the cluster. `members` tells for each node whether it is online."""

    quorate: bool
    members: Mapping[str, bool]
    ha: HaManagerState
    ceph: CephState | None
    records: Mapping[str, NodeRecord] = field(default_factory=dict)
    tasks: tuple[Mapping[str, Any], ...] = ()


def read_facts(client: Client, node: str) -> MaintenanceFacts:
    """Return the facts about the cluster and the node. Raises FleetError."""
    quorate, members = read_members(client)
    reads: tuple[Callable[[], Any], ...] = (
        lambda: read_records(client, members),
        lambda: read_active(client, node) if members.get(node) else (),
        lambda: client.direct().get("cluster", "options") or {},
        lambda: read_ha(client, members),
        lambda: read_ceph(client),
    )
    records, tasks, options, ha, ceph = side_by_side(lambda read: read(), reads)
    ha = replace(ha, balances=is_balancing(options.get("crs")))
    return MaintenanceFacts(quorate, members, ha, ceph, records, tasks)


def read_members(client: Client) -> tuple[bool, dict[str, bool]]:
    """Return whether the cluster is quorate, and whether each node is online."""
    rows = client.direct().get("cluster", "status", attempted="Could not read the cluster's status")
    # A standalone node returns no row of type cluster.
    quorate = all(row.get("quorate", 1) for row in rows if row.get("type") == "cluster")
    nodes = [row for row in rows if row.get("type") == "node"]
    members = {str(row["name"]): bool(row.get("online")) for row in nodes}
    return quorate, members


def read_notes(client: Client, node: str) -> tuple[str, NodeRecord | None, str]:
    """Return the notes of a node, the record in them, and the digest of its configuration."""
    config = _read_config(client, node)
    notes, record = split_record(node, str(config.get("description") or ""))
    return notes, record, str(config.get("digest") or "")


def is_maintained(client: Client, node: str) -> bool:
    """Return whether the approved plan of the task has maintained the node already."""
    plan = client.plan_book.digest
    notes = str(_read_config(client, node).get("description") or "") if plan else ""
    return bool(plan) and maintained_by(notes) == plan


def _read_config(client: Client, node: str) -> Mapping[str, Any]:
    attempted = f"Could not read the notes of node {node}"
    config: Mapping[str, Any] | None = client.direct().get(
        "nodes", node, "config", attempted=attempted
    )
    return config or {}


def read_record(client: Client, node: str) -> NodeRecord | None:
    """Return the record of a node, or None."""
    return read_notes(client, node)[1]


def read_records(client: Client, members: Mapping[str, bool]) -> dict[str, NodeRecord]:
    """Return the record of each online node that has one."""
    online = [name for name, is_online in members.items() if is_online]
    found = side_by_side(lambda name: read_record(client, name), online)
    return {name: record for name, record in zip(online, found, strict=True) if record}


def read_active(client: Client, node: str) -> tuple[Mapping[str, Any], ...]:
    """Return the tasks that run on a node."""
    attempted = f"Could not read the tasks of node {node}"
    direct = client.direct()
    rows = direct.get("nodes", node, "tasks", source="active", limit=1000, attempted=attempted)
    return tuple(row for row in rows or () if row.get("status") in (None, "RUNNING"))


def read_ha(client: Client, cluster: Collection[str]) -> HaManagerState:
    """Return the state and the rules of the HA manager in a cluster with these nodes."""
    has_rules = client.version() >= _RULES_SINCE
    paths = (
        ("status", "manager_status"),
        ("status", "current"),
        ("resources",),
        ("rules",) if has_rules else ("groups",),
    )
    direct = client.direct()
    answers = side_by_side(lambda path: direct.get("cluster", "ha", *path), paths)
    manager, current, resources, places = answers
    rules, groups = (places, None) if has_rules else (None, places)
    return ha_state_of(
        manager or {}, current or (), resources or (), rules or (), groups or (), cluster
    )


def read_ceph(client: Client) -> CephState | None:
    """Return the state of Ceph, or None if it is not installed or not set up.

    PVE answers with an error in both cases (pve-manager: PVE/Ceph/Tools.pm, check_ceph_inited).
    Any other failure is raised.
    """
    direct = client.direct()
    try:
        status = direct.get("cluster", "ceph", "status", attempted="Could not read Ceph's health")
    except NetworkError:
        raise
    except FleetError as error:
        text = error.answer.lower()
        is_missing = "not installed" in text or "not initialized" in text
        if is_missing or isinstance(error, NotSupported):
            return None
        raise
    health = str((status.get("health") or {}).get("status") or "unknown")
    rows = direct.get("cluster", "ceph", "flags", attempted="Could not read Ceph's flags")
    flags = frozenset(str(row["name"]) for row in rows or () if row.get("value"))
    return CephState(health, flags)


def read_node(client: Client, node: str, cluster: ClusterState) -> NodeState:
    """Return the state of a node that is online. Raises FleetError."""
    direct = client.direct()
    rows, version, status = side_by_side(
        lambda name: direct.get("nodes", node, name, tries=1), ("services", "version", "status")
    )
    services = [str(row["service"]) for row in rows or () if row.get("state") == "running"]
    storages = [row.storage for row in cluster.storages if row.node == node and row.available]
    booted = int(client.clock.time() - (status.get("uptime") or 0))
    return NodeState(
        tuple(sorted(services)), tuple(sorted(storages)), str(version.get("version") or ""), booted
    )
