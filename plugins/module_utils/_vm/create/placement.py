# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a VM goes: what its configuration needs of a node, for a new one and for one that may have
to move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..._cluster.allocation import with_allocations
from ..._cluster.bridges import KnownBridges, choose_with_bridges
from ..._cluster.placement import Choice, Needs, require_node, require_room, why_not
from ..._cluster.site import require_own_bridges, require_own_node, require_own_storages
from ..._cluster.state import ClusterState, with_names
from ..config.actual import drives, is_cloud_init, is_disk, storage_of
from ..config.changes import Change
from ..config.memory import memory_of, state_volume
from ..live.requirements import bridges_of
from ..model import Actual, Desired
from ..plan.room import Taken, added, moved_bytes, new_bytes

if TYPE_CHECKING:
    from ..._api.client import Client


def cpus_of(config: Mapping[str, str]) -> int:
    """Return the most CPUs that a VM of that configuration can have, those to be plugged in later
    included.
    """
    return int(config.get("cores") or 1) * int(config.get("sockets") or 1)


def cores_of(config: Mapping[str, str]) -> int:
    """Return the cores that a configuration gives a VM, over all sockets."""
    if config.get("vcpus"):
        return int(config["vcpus"])
    return cpus_of(config)


def needs_of(
    desired: Desired, config: Mapping[str, str], change: Change, *, vmid: int | None = None
) -> Needs:
    """Return what a VM needs of its node that will have this configuration (pure)."""
    storages: dict[str, str] = {}
    for slot, drive in drives(config).items():
        if slot in change.gone:
            continue
        is_allocated = is_disk(drive) or is_cloud_init(drive)
        storage = storage_of(drive) or "/"
        is_path = storage.startswith("/")
        if is_allocated and not is_path:
            storages[storage] = "images"
    storages.update(change.drives.storages)
    memory = memory_of(config)
    cpus = 0
    running_memory = 0
    if desired.state == "started":
        cpus = cpus_of(config)
        running_memory = memory
    return Needs(
        storages=storages,
        memory=memory,
        cores=cores_of(config),
        cpus=cpus,
        running_memory=running_memory,
        bridges=bridges_of(config),
        vmid=vmid,
        tenant_tag=desired.tenant_tag,
        prefix=desired.tenant_prefix,
        label=desired.name or str(vmid or ""),
    )


def place_new(
    client: Client, desired: Desired, needs: Needs, cluster: ClusterState, bridges: KnownBridges
) -> Choice:
    """Return the node of a new VM: the one that is asked for, the settings' default, or the one
    that is chosen.

    Raises ConfigurationError for a storage or a bridge that the site does not use.
    """
    require_own_storages(client.connection, needs.storages)
    require_own_bridges(client.connection, needs.bridges)
    if desired.node:
        return Choice(desired.node, reasons=("node names it",))
    rules = desired.rules
    default = client.default_node
    if default and needs.only is None:
        require_node(cluster, default)
        require_own_node(client.connection, default)
        if not rules.given:
            return Choice(default, reasons=("it is the default node of the connection",))
        if not rules.nodes:
            rules = replace(rules, nodes=(default,))
    if client.preferred_nodes and not rules.nodes:
        rules = replace(rules, nodes=client.preferred_nodes)
    if rules.needs_names:
        cluster = with_names(client, cluster)
    cluster = with_allocations(client, cluster, needs.room)
    return choose_with_bridges(cluster, needs, rules, bridges)


def rebalance(
    client: Client,
    desired: Desired,
    actual: Actual,
    config: Mapping[str, str],
    change: Change,
    cluster: ClusterState,
    bridges: KnownBridges,
) -> Choice | None:
    """Return where an existing VM is to be, or None where nothing is to be decided.

    It stays where it is as long as that node meets every constraint; a preference alone moves
    nothing.
    """
    if desired.node:
        return Choice(desired.node, reasons=("node names it",))
    if not desired.rebalance:
        return None
    if desired.rules.needs_names:
        cluster = with_names(client, cluster)
    needs = needs_of(desired, config, change, vmid=actual.vmid)
    seen = _without(cluster, actual)
    here = why_not(seen, actual.node, needs, desired.rules)
    if here is None:
        return Choice(actual.node, reasons=("it is there, and every constraint holds",))
    choice = choose_with_bridges(seen, needs, desired.rules, bridges)
    reason = f"{actual.node} is no longer fit: {here}"
    return replace(choice, reasons=(reason, *choice.reasons))


def take_room(
    client: Client,
    cluster: ClusterState,
    desired: Desired,
    actual: Actual,
    config: Mapping[str, str],
    images: Mapping[str, int],
    *,
    starts: bool,
) -> Taken:
    """Return what more a VM that becomes `config` takes of its node.

    Raises QuotaExceeded without that room. One request where the definition of a storage decides
    that.
    """
    node = desired.node or actual.node
    moves = node != actual.node
    room = new_bytes(actual.target, config, images)
    if moves:
        shared = {name: room[name] for name in room.keys() & cluster.shared_storages}
        local = moved_bytes(config, cluster.shared_storages)
        room = added(shared, local)
    if desired.state == "hibernated" and actual.running:
        storage, size = state_volume(config, cluster, node)
        room = added(room, {storage: size})
    cluster = with_allocations(client, cluster, room)
    memory = memory_of(config)
    needs_memory = starts or (moves and actual.running)
    grows = actual.running and memory > memory_of(actual.target)
    needed = 0
    if needs_memory or grows:
        needed = memory
    needs = Needs(running_memory=needed, room=room, label=actual.label)
    require_room(cluster, node, needs, desired.rules, actual.label)
    taken = 0
    if needs_memory:
        taken = memory
    return Taken(node, taken, room)


def _without(cluster: ClusterState, actual: Actual) -> ClusterState:
    """Return the cluster state as if the VM used no memory of its node: what it uses moves
    with it.
    """
    node = cluster.nodes.get(actual.node)
    if node is None or not actual.running:
        return cluster
    own = memory_of(actual.live)
    return replace(
        cluster,
        nodes={
            **cluster.nodes,
            node.node: replace(node, memory_used=max(0, node.memory_used - own)),
        },
    )
