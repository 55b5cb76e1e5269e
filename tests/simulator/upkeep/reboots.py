"""Nodes that go down and come back: with the state of their services, storages and version.

Source: pve-manager, PVE/API2/Nodes.pm (node_cmd, startall) and PVE/API2/Services.pm. A node that
reboots stops its guests (pve-guests.service); when it is back, it starts those with `onboot`, and
the HA manager starts those that it manages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ..containers.power import launch as launch_container
from ..containers.power import stop as stop_container
from ..core.api import Ctx, api
from ..core.state import Cluster, Container, Guest, NodeInfo, Vm
from ..ha.records import is_managed, sid_of
from ..running.power import launch, quit_vm


@api("POST /nodes/{node}/status")
def node_command(ctx: Ctx, p: dict[str, Any]) -> None:
    """Reboot the node, or shut it down."""
    if p["command"] == "reboot":
        reboot(ctx, p["node"])
        return
    stop_guests(ctx, p["node"])
    go_down(ctx, ctx.cluster.nodes[p["node"]])


def reboot(ctx: Ctx, name: str) -> None:
    """Take the node down for the duration that is set for tasks of type `reboot`."""
    node = ctx.cluster.nodes[name]
    stop_guests(ctx, name)
    go_down(ctx, node)

    async def later() -> None:
        await asyncio.sleep(ctx.cluster.tasks.duration("reboot"))
        changes, node.after_reboot = node.after_reboot, {}
        if changes.get("stays_down"):
            return
        come_back_with(node, changes, ctx.cluster.version)
        come_back(ctx, node)
        _start_guests(ctx, name)

    ctx.sim.background(later())


def come_back_with(node: NodeInfo, changes: Mapping[str, Any], common: Mapping[str, str]) -> None:
    """Change what a node has, such as the version after an upgrade."""
    if "version" in changes:
        release = ".".join(str(changes["version"]).split(".")[:2])
        node.version = {**common, "version": str(changes["version"]), "release": release}
    if "services" in changes:
        node.services = dict(changes["services"])
    if "lost_storages" in changes:
        node.lost_storages = set(changes["lost_storages"])


def go_down(ctx: Ctx, node: NodeInfo) -> None:
    """The node is off: its tasks end, and the others may lose the quorum."""
    cluster = ctx.cluster
    node.online = False
    node.down_at = cluster.now()
    for task in cluster.tasks.newest(node.name):
        cluster.tasks.stop(task)
    _count_votes(cluster)


def come_back(ctx: Ctx, node: NodeInfo) -> None:
    """The node is on again."""
    has_booted = not node.online
    if has_booted:
        node.booted_at = ctx.cluster.now()
    node.online = True
    node.down_at = 0.0
    _count_votes(ctx.cluster)
    if has_booted:
        ctx.sim.scheduler.node_started(node.name)


def _count_votes(cluster: Cluster) -> None:
    alive = sum(1 for other in cluster.nodes.values() if other.online)
    set_quorum(cluster, alive * 2 > len(cluster.nodes))
    cluster.revision += 1


def set_quorum(cluster: Cluster, quorate: bool) -> None:
    """Give the cluster its quorum, or take it."""
    if cluster.quorate and not quorate:
        cluster.quorum_lost = cluster.now()
    cluster.quorate = quorate


def stop_guests(ctx: Ctx, name: str) -> None:
    """Stop the guests of a node that goes down."""
    for guest in ctx.cluster.guests():
        if guest.node != name or guest.run is None:
            continue
        if isinstance(guest, Container):
            stop_container(ctx, guest)
        else:
            quit_vm(ctx, guest)


def _start_guests(ctx: Ctx, name: str) -> None:
    """Start the guests that start with their node."""
    for guest in ctx.cluster.guests():
        if guest.node == name and guest.run is None and _starts(ctx.cluster, guest):
            if isinstance(guest, Vm):
                launch(ctx, guest)
            elif isinstance(guest, Container):
                launch_container(ctx, guest)


def _starts(cluster: Cluster, guest: Guest) -> bool:
    """Whether the guest starts with its node. A lock refuses that, as it refuses any other start
    (qemu-server: QemuServer.pm, vm_start_nolock; pve-container: API2/LXC/Status.pm, vm_start).
    """
    if guest.template or guest.conf.get("lock") not in (None, "suspended", "mounted"):
        return False
    if is_managed(cluster, guest.vmid):
        state = cluster.ha_resources[sid_of(cluster, guest.vmid)].get("state", "started")
        return state in ("started", "enabled")
    return guest.conf.get("onboot") == "1"
