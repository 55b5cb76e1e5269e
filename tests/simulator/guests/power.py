"""The calls that start, stop and reset machines."""

from __future__ import annotations

from typing import Any

from ..config.checks import check_lock
from ..core.api import Ctx, api
from ..core.tasks import Task
from ..errors import ParamError, PveError
from ..ha.manager import request_start, request_stop
from ..ha.records import is_managed
from ..running.power import (
    Stop,
    do_start,
    do_stop,
    launch,
    running_vm,
    stop_locked,
    warn_of_certificates,
)


@api("POST /nodes/{node}/qemu/{vmid}/status/start")
def vm_start(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start a machine, or hand it to the HA manager."""
    ctx.root_only(
        p,
        "stateuri",
        "skiplock",
        "migratedfrom",
        "migration_type",
        "migration_network",
        "targetstorage",
        "force-cpu",
        "with-conntrack-state",
        "nets-host-mtu",
    )
    ctx.cluster.check_quorum()
    return start_vm(ctx, p["node"], p["vmid"], p)


def start_vm(ctx: Ctx, node: str, vmid: int, p: dict[str, Any]) -> str:
    """Start the worker that starts the machine."""
    if is_managed(ctx.cluster, vmid):

        async def request(task: Task) -> None:
            task.say(f"Requesting HA start for VM {vmid}")
            request_start(ctx, vmid)

        return ctx.task(node, "hastart", vmid, request)

    async def work(task: Task) -> None:
        await do_start(ctx, node, vmid, task, skiplock=bool(p.get("skiplock")))

    return ctx.task(node, "qmstart", vmid, work)


# -- stopping ------------------------------------------------------------------------------------


def _ha_stop(ctx: Ctx, node: str, vmid: int, timeout: int) -> str:
    async def work(task: Task) -> None:
        task.say(f"Requesting HA stop for VM {vmid}")
        request_stop(ctx, vmid, timeout)

    return ctx.task(node, "hastop", vmid, work)


@api("POST /nodes/{node}/qemu/{vmid}/status/stop")
def vm_stop(ctx: Ctx, p: dict[str, Any]) -> str:
    """Stop a machine at once."""
    ctx.root_only(p, "skiplock", "keepActive", "migratedfrom")
    node, vmid = p["node"], p["vmid"]
    if is_managed(ctx.cluster, vmid):
        if p.get("overrule-shutdown"):
            raise ParamError({"overrule-shutdown": "Not applicable for HA resources."})
        return _ha_stop(ctx, node, vmid, 0)

    async def work(task: Task) -> None:
        if p.get("overrule-shutdown"):
            overruled = ctx.cluster.tasks.running("qmshutdown", vmid)
            if overruled:
                task.say(
                    f"overruled qmshutdown tasks: {', '.join(other.upid for other in overruled)}"
                )
            for other in overruled:
                ctx.cluster.tasks.stop(other)
        how = Stop(False, None, p.get("timeout"), bool(p.get("skiplock")))
        await do_stop(ctx, node, vmid, task, how)

    return ctx.task(node, "qmstop", vmid, work)


@api("POST /nodes/{node}/qemu/{vmid}/status/shutdown")
def vm_shutdown(ctx: Ctx, p: dict[str, Any]) -> str:
    """Ask the guest to power down."""
    ctx.root_only(p, "skiplock", "keepActive")
    node, vmid = p["node"], p["vmid"]
    vm = ctx.cluster.vms.get(vmid)
    shutdown = True
    if vm is not None and vm.node == node and vm.run is not None and vm.run.qmpstatus == "paused":
        if not p.get("forceStop"):
            raise PveError("VM is paused - cannot shutdown")
        shutdown = False
    if is_managed(ctx.cluster, vmid):
        return _ha_stop(ctx, node, vmid, int(p.get("timeout", 60)))
    force = bool(p["forceStop"]) if "forceStop" in p else None

    async def work(task: Task) -> None:
        how = Stop(shutdown, force, p.get("timeout"), bool(p.get("skiplock")))
        await do_stop(ctx, node, vmid, task, how)

    return ctx.task(node, "qmshutdown", vmid, work)


@api("POST /nodes/{node}/qemu/{vmid}/status/reboot")
def vm_reboot(ctx: Ctx, p: dict[str, Any]) -> str:
    """Shut the guest down and start it again with its pending changes."""
    node, vmid = p["node"], p["vmid"]
    vm = running_vm(ctx, node, vmid)
    if vm.run is not None and vm.run.qmpstatus == "paused":
        raise PveError("VM is paused - cannot shutdown")

    async def work(task: Task) -> None:
        async with ctx.sim.locks.hold(vmid, log=task.say):
            await stop_locked(ctx, vm, task, Stop(True, False, p.get("timeout")))
            launch(ctx, vm, task=task)
            warn_of_certificates(ctx, vm, task)

    return ctx.task(node, "qmreboot", vmid, work)


@api("POST /nodes/{node}/qemu/{vmid}/status/reset")
def vm_reset(ctx: Ctx, p: dict[str, Any]) -> str:
    """Press the reset button."""
    ctx.root_only(p, "skiplock")
    vm = running_vm(ctx, p["node"], p["vmid"])

    async def work(task: Task) -> None:
        async with ctx.sim.locks.hold(vm.vmid, log=task.say):
            if not p.get("skiplock"):
                check_lock(vm)
            await task.work()

    return ctx.task(p["node"], "qmreset", vm.vmid, work)
