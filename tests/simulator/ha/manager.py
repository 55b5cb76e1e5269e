"""Actions of the HA manager: it starts, stops and moves machines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from ..core.api import Ctx
from ..core.tasks import Task
from ..running.migration import migrate
from ..running.power import Stop, do_start, do_stop
from .records import at_work, is_managed, sid_of
from .rules import preferred_nodes

# Functions of the rooms above that start, stop and move guests; these rooms put them here.
OTHER_KINDS: list[Callable[[Ctx, int, str, int], None]] = []
OTHER_MOVES: list[Callable[[Ctx, int, str], object]] = []


def request_start(ctx: Ctx, vmid: int) -> None:
    """Set the state that the manager must reach: it acts in its next round."""
    resource = ctx.cluster.ha_resources.get(sid_of(ctx.cluster, vmid))
    if resource is not None:
        resource["state"] = "started"
    enforce(ctx, vmid)


def request_stop(ctx: Ctx, vmid: int, timeout: int) -> None:
    """Leave the manager a command to stop the machine; until it reads that, nothing shows it."""

    def stop() -> None:
        resource = ctx.cluster.ha_resources.get(sid_of(ctx.cluster, vmid))
        if resource is not None:
            resource["state"] = "stopped"
            ctx.cluster.revision += 1
            _act(ctx, vmid, timeout)

    _work(ctx, stop)


def enforce(ctx: Ctx, vmid: int) -> None:
    """Let the manager start or stop the machine as its state asks for."""
    _work(ctx, lambda: _act(ctx, vmid, 60))


def _work(ctx: Ctx, act: Callable[[], object]) -> None:
    """Act on guests in the next round, unless the manager is disarmed then."""

    def armed() -> None:
        if ctx.cluster.ha_disarm is None:
            act()

    in_next_round(ctx, armed)


def in_next_round(ctx: Ctx, act: Callable[[], object]) -> None:
    """The manager works in rounds (CRM.pm, LRM.pm): it acts after the duration that is set for
    tasks of type `ha`.
    """
    pause = ctx.cluster.tasks.duration("ha")

    async def later() -> None:
        await asyncio.sleep(pause)
        act()

    if pause > 0:
        ctx.sim.background(later())
    else:
        act()


def _act(ctx: Ctx, vmid: int, timeout: int) -> None:
    """Begin the task that brings the machine to its state.

    A shutdown ends by force (Resources/PVEVM.pm).
    """
    resource = ctx.cluster.ha_resources.get(sid_of(ctx.cluster, vmid))
    if resource is None:
        return
    for acts in OTHER_KINDS:
        acts(ctx, vmid, resource.get("state", "started"), timeout)
    vm = ctx.cluster.vms.get(vmid)
    if vm is None:
        return
    state = resource.get("state", "started")
    if state in ("started", "enabled") and vm.run is None:

        async def start(task: Task) -> None:
            await do_start(ctx, vm.node, vmid, task)

        ctx.cluster.tasks.start(vm.node, "qmstart", vmid, "root@pam", start)
    elif state in ("stopped", "disabled") and vm.run is not None:

        async def stop(task: Task) -> None:
            await do_stop(ctx, vm.node, vmid, task, Stop(timeout > 0, True, timeout))

        ctx.cluster.tasks.start(
            vm.node, "qmshutdown" if timeout else "qmstop", vmid, "root@pam", stop
        )


def request_move(ctx: Ctx, vmid: int, target: str) -> None:
    """Let the manager move the machine; it sends none to a node that is not at work."""
    if not at_work(ctx.cluster, target):
        ctx.cluster.tasks.note(
            ctx.cluster.local, "root@pam", f"crm command error - node not online: {target}", 3
        )
        return
    if vmid in ctx.cluster.containers:
        for move_container in OTHER_MOVES:
            _move(ctx, vmid, "relocate", partial(move_container, ctx, vmid, target))
        return
    vm = ctx.cluster.vms[vmid]

    async def move(task: Task) -> None:
        await migrate(ctx, vm, target, {}, True, task)

    start = partial(ctx.cluster.tasks.start, vm.node, "qmigrate", vmid, "root@pam", move)
    _move(ctx, vmid, "migrate", start)


def _move(ctx: Ctx, vmid: int, state: str, start: Callable[[], object]) -> None:
    """Start the task of a move in the next round of the LRM; until then only the state of the
    resource shows the move (Manager.pm, change_service_state).
    """
    moving = ctx.cluster.ha_moving
    moving[vmid] = state

    def act() -> None:
        moving.pop(vmid, None)
        start()

    _work(ctx, act)


def set_maintenance(ctx: Ctx, node: str, wanted: bool) -> None:
    """Take the node from the HA manager, which moves its machines away, or give it back, and they
    return.
    """
    cluster = ctx.cluster
    info = cluster.nodes[node]
    if info.maintenance == wanted or (wanted and cluster.ha_disarm):
        return  # a disarmed manager ignores the command (Manager.pm, update_crm_commands)
    info.maintenance = wanted
    cluster.ha_awake = True
    cluster.revision += 1
    if not wanted:
        for vmid in [vmid for vmid, home in cluster.ha_homes.items() if home == node]:
            del cluster.ha_homes[vmid]
            if vmid in cluster.vms and is_managed(cluster, vmid) and cluster.vms[vmid].node != node:
                request_move(ctx, vmid, node)
        return
    working = [name for name in cluster.nodes if at_work(cluster, name)]
    for vm in list(cluster.vms_on(node)):
        target = next(iter(preferred_nodes(cluster, f"vm:{vm.vmid}", working)), None)
        if target is not None and vm.run is not None and is_managed(cluster, vm.vmid):
            cluster.ha_homes[vm.vmid] = node
            request_move(ctx, vm.vmid, target)
