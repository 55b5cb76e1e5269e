# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The requests that a plan of any guest needs, and the facts that they answer: each is read only if
the guest needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...._foundation.api.access.listed import is_listed, ways_to_rights
from ...._foundation.api.access.privileges import Privileges
from ...._foundation.cluster.bridges import KnownBridges
from ...._foundation.cluster.placement import Bridges
from ...._foundation.cluster.state import ClusterState
from ...._foundation.cluster.storages.allocation import with_allocations
from ...._foundation.core.errors import FleetError, NotFound, NotSupported, PermissionDenied
from ...._foundation.core.marks import marked_tag
from ...kinds.hardware import AnyDesired
from ...kinds.kind import NicMtu
from ...kinds.model import Actual, Guest, GuestSource
from ..create.quota_race import TenantUsage, gather_usage
from ..live.read import with_power
from ..plan.archive import (
    archived_vmid,
    read_archived,
    require_kind,
    require_listed,
    require_own_archive,
)
from ..plan.capacity import Definitions, needs_definitions
from ..plan.copies import in_snapshot
from ..plan.intent import AnyIntent, Facts, Intent, Source
from ..plan.refusals import PoolOwner, is_own_pool, mtus_of_bridges, mtus_of_vnets

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


class GuestReads:
    """The requests of one plan; bridges, definitions and contents are requested once."""

    def __init__(self, client: Client, bridges: Bridges | None = None) -> None:
        self.client = client
        self.bridges = KnownBridges(client)
        self.bridges.by_node.update(bridges or {})
        self._definitions: Definitions | None = None
        self._contents: dict[tuple[str, str], list[dict[str, Any]]] = {}

    def mtus_on(self, node: str, nics: Sequence[NicMtu]) -> dict[str, int]:
        """Return the MTUs of the bridges of a node; one request if a NIC has an MTU, and two more
        if it is connected to a VNet.
        """
        if not nics:
            return {}
        mtus = mtus_of_bridges(self.client.get("nodes", node, "network") or [])
        if all(nic.bridge in mtus for nic in nics):
            return mtus
        try:
            vnets = self.client.get("cluster", "sdn", "vnets") or []
            zones = self.client.get("cluster", "sdn", "zones") or []
        except FleetError:  # SDN is optional before Proxmox VE 8.1
            return mtus
        return {**mtus_of_vnets(vnets, zones), **mtus}

    def definitions(self) -> Definitions:
        """Return the definitions of all storages, by name."""
        if self._definitions is None:
            rows = self.client.get("storage")
            self._definitions = {str(row["storage"]): row for row in rows}
        return self._definitions

    def contents(self, node: str, storage: str) -> list[dict[str, Any]]:
        """Return the volumes of a storage, as a node lists them."""
        place = (node, storage)
        if place not in self._contents:
            self._contents[place] = self.client.get("nodes", node, "storage", storage, "content")
        return self._contents[place]

    def pools(self) -> dict[str, str]:
        """Return the comments of the pools that the caller may see, by name."""
        rows = self.client.get("pools")
        return {str(row["poolid"]): str(row.get("comment") or "") for row in rows}

    def owner_of_pool(self, guest: Guest, pools: Mapping[str, str]) -> PoolOwner | None:
        """Return the other tenant for which the pool of a guest was created, or None; one request
        for the rights on its pool, and one for the privileges of the login.
        """
        tag, owner = guest.tenant_tag, marked_tag(pools.get(str(guest.pool)))
        if not tag or owner in (None, tag):
            return None
        path = f"/pool/{guest.pool}"
        for row in self.client.get("access", "acl") or ():
            who = {str(row["roleid"]), str(row["ugid"]).partition("!")[0]}
            if row["path"] == path and who & {tag, f"{tag}@pve"}:
                return None
        held = Privileges(self.client.privileges())
        if "VM.Allocate" in held.on(path) - held.below("/pool"):
            return None  # the login itself has rights on this pool
        return PoolOwner(owner, is_sure=is_listed(held, *ways_to_rights(path)))

    def may_hide_pools(self) -> bool:
        """Return whether the caller lacks Pool.Audit on some pools.

        PVE leaves the pool of a guest out of its listing without that privilege (API2/Cluster.pm).
        """
        held = self.client.get("access", "permissions", path="/pool") or {}
        privileges = held.get("/pool") or {}
        return not privileges.get("Pool.Audit")

    def snapshot_names(self, actual: Actual) -> tuple[str, ...]:
        """Return the names of the snapshots of a guest."""
        rows = self.client.get(*actual.path, "snapshot")
        return tuple(str(row["name"]) for row in rows if row["name"] != "current")

    def snapshot(
        self, actual: Actual, name: str
    ) -> tuple[tuple[str, ...], Mapping[str, Any] | None]:
        """Return the snapshots of a guest, and the configuration in one of them if it exists."""
        names = self.snapshot_names(actual)
        if name not in names:
            return names, None
        return names, self.client.get(*actual.path, "config", snapshot=name)

    def cloned_state(self, actual: Actual, source: GuestSource | None) -> Actual:
        """Return the guest in the state that is cloned: now, or a snapshot. Raises NotFound."""
        if source is None or not source.snapshot:
            return actual
        names, config = self.snapshot(actual, source.snapshot)
        return in_snapshot(actual, source.snapshot, names, config)

    def migration(self, actual: Actual, target: str) -> Mapping[str, Any]:
        """Return PVE's answer about a move to a node; one request.

        The answer covers every node: PVE accepts a target and ignores it (qemu-server:
        API2/Qemu.pm, migrate_vm_precondition, from its first version on). The request has no
        target, so a caching client sends it once for all nodes.
        """
        answer: Mapping[str, Any] = self.client.get(
            *actual.path,
            "migrate",
            attempted=f"Could not ask whether {actual.label} can move to node {target}",
        )
        return answer

    def keeps_connections(self, actual: Actual, answer: Mapping[str, Any], target: str) -> bool:
        """Return whether both nodes can migrate the tracked connections of a running VM; one
        request (pve-manager: www/manager6/window/Migrate.js). It needs Sys.Audit on the node, and
        an older node does not know it: the connections are then not kept.
        """
        if not answer.get("has-dbus-vmstate"):
            return False
        path = ("nodes", target, "capabilities", actual.kind.type, "migration")
        attempted = f"Could not ask what node {target} can migrate"
        try:
            found = self.client.get(*path, attempted=attempted) or {}
        except (PermissionDenied, NotFound, NotSupported):
            return False
        return bool(found.get("has-dbus-vmstate"))


@dataclass(frozen=True)
class FoundVolume:
    """A volume on a storage: the nodes that have it, and the other volumes that were listed."""

    volume: str
    having: frozenset[str]
    others: frozenset[str]
    is_shared: bool

    @property
    def nodes(self) -> frozenset[str] | None:
        """The nodes on which the volume can be used, None for any."""
        return None if self.is_shared else self.having


def find_file(
    reads: GuestReads, volume: str, node: str | None, cluster: ClusterState
) -> FoundVolume:
    """Return a volume as the storages list it; one request for each node that may have it."""
    storage = volume.partition(":")[0]
    rows = [row for row in cluster.storages if row.storage == storage and row.available]
    if node:
        rows = [row for row in rows if row.node == node]
    having: set[str] = set()
    others: set[str] = set()
    for row in sorted(rows, key=lambda row: row.node):
        volumes = {str(entry["volid"]) for entry in reads.contents(row.node, storage)}
        others |= volumes
        if volume in volumes:
            having.add(row.node)
            if row.shared:
                break
    is_shared = any(row.shared for row in rows)
    return FoundVolume(volume, frozenset(having), frozenset(others), is_shared)


def archive_source(reads: GuestReads, guest: Guest, volume: str, cluster: ClusterState) -> Source:
    """Return an archive as the source of a guest: a request for each node, and one for the
    configuration. Raises FleetError for an archive that is not permitted.
    """
    file = find_file(reads, volume, guest.node, cluster)
    require_listed(volume, file.having, guest.node)
    config = read_archive(reads.client, volume, min(file.having))
    require_kind(guest.kind, volume, config)
    require_own_archive(guest, volume, config)
    row = cluster.vms.get(archived_vmid(volume) or 0)
    home = row.node if row is not None and row.own_name == guest.kind.name_in(config) else ""
    return Source(volume=volume, archived=config, nodes=file.nodes, home=home)


def read_archive(client: Client, volume: str, node: str) -> Mapping[str, str]:
    """Return the configuration in an archive.

    Raises FleetError if PVE cannot read it: it is gone or damaged, or its key is missing.
    """
    answer = client.get(
        "nodes",
        node,
        "vzdump",
        "extractconfig",
        params={"volume": volume},
        attempted=f"Could not read the configuration in {volume}",
    )
    return read_archived(str(answer))


def with_current_power(reads: GuestReads, intent: AnyIntent) -> AnyIntent:
    """Return the intent with the current power state, if the plan may depend on it."""
    actual = intent.start
    may_matter = intent.uses_node or intent.guest.reboot != "never" or actual.marker.stale
    if not actual.listed or not may_matter:
        return intent
    current: dict[str, Any] = reads.client.get(*actual.path, "status", "current")
    return replace(intent, start=with_power(actual, current))


def gather(
    reads: GuestReads,
    intent: Intent[AnyDesired],
    cluster: ClusterState,
    read_more: Callable[[GuestReads, Intent[AnyDesired], Facts], Facts],
) -> Facts:
    """Return the facts for the plan; each is read only if the guest needs it.

    `read_more` adds the facts that only the kind of the guest needs.
    """
    node, desired = intent.node, intent.desired
    facts = Facts(cluster, known_bridges=reads.bridges.by_node)
    if not intent.is_settled:
        bridges = reads.bridges.on(node) if intent.bridges else None
        facts = replace(facts, bridges=bridges, mtus=reads.mtus_on(node, intent.mtus))
    facts = read_more(reads, intent, facts)
    if intent.checks_migration:
        start = intent.start
        answer = reads.migration(start, node)
        keeps = start.running and reads.keeps_connections(start, answer, node)
        facts = replace(facts, migration=answer, keeps_connections=keeps)
    if needs_definitions(desired, intent.before, cluster):
        facts = replace(facts, definitions=reads.definitions())
    # The guest must be in no pool, and the listing shows none.
    if intent.source is None and intent.guest.pool == "" and not intent.start.pool:
        facts = replace(facts, may_hide_pool=reads.may_hide_pools())
    if intent.is_settled:
        return facts
    pool = intent.new_pool
    if pool and (pool not in cluster.pools or not is_own_pool(intent.guest, pool, cluster)):
        pools = reads.pools()
        owner = reads.owner_of_pool(intent.guest, pools)
        facts = replace(facts, pools=pools, pool_owner=owner)
    facts = replace(facts, usage=usage_for(reads.client, intent, facts.sizes, cluster))
    room = intent.room(facts.sizes, cluster)
    allocated = with_allocations(reads.client, cluster, room, intent.kind.content)
    return replace(facts, cluster=allocated)


def usage_for(
    client: Client,
    intent: Intent[Any],
    sizes: Mapping[str, int],
    cluster: ClusterState,
    *,
    in_creation: bool = True,
) -> TenantUsage | None:
    """Return the figures of the tenant's guests if its quota limits the growth of the guest;
    `in_creation` adds unfinished guests of other runs.
    """
    growth = intent.growth(sizes)
    if growth is None or not growth.is_limited(intent.guest):
        return None
    return gather_usage(client, intent.guest, cluster, in_creation=in_creation)
