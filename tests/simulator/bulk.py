"""Actions on many machines: of the whole cluster, or of one node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from .api import Ctx, api
from .errors import PermError, PveError
from .formats import split_list
from .migrate import migrate_vm
from .power import start_vm, vm_shutdown
from .state import Vm
from .suspend import state_storage, vm_resume, vm_suspend
from .tasks import Task

BULK = "/cluster/bulk-action"


@api(f"GET {BULK}")
def index(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, str]]:
    """What bulk actions are for."""
    return [{"name": "guest"}]


@api(f"GET {BULK}/guest")
def guest_index(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, str]]:
    """The actions."""
    return [{"name": name} for name in ("start", "shutdown", "migrate", "suspend")]


def _chosen(ctx: Ctx, p: dict[str, Any], priv: str) -> tuple[list[Vm], str]:
    """The machines that are meant and may be acted on, and how the log names them."""
    given = p.get("vms")
    if given is not None:
        vmids = [int(vmid) for vmid in given]
        for vmid in vmids:
            ctx.need(f"/vms/{vmid}", priv)
        return [ctx.cluster.vms[v] for v in vmids if v in ctx.cluster.vms], f"guests: {', '.join(map(str, vmids))}"
    vms = [vm for vm in ctx.cluster.vms.values() if not vm.template and ctx.may(f"/vms/{vm.vmid}", priv)]
    if not vms:
        raise PermError
    return vms, "all guests"


async def _wait(ctx: Ctx, upid: str) -> str:
    task = ctx.cluster.tasks.by_upid[upid]
    if task.handle is not None:
        await asyncio.wait([task.handle])
    return str(task.status)


async def _each(vms: list[Vm], one: Callable[[Vm], Awaitable[None]], workers: int) -> None:
    semaphore = asyncio.Semaphore(max(1, workers))

    async def limited(vm: Vm) -> None:
        async with semaphore:
            await one(vm)

    await asyncio.gather(*(limited(vm) for vm in vms))


@api(f"POST {BULK}/guest/start")
def bulk_start(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start machines; those that run already are skipped with a warning."""
    vms, label = _chosen(ctx, p, "VM.PowerMgmt")

    async def work(task: Task) -> None:
        task.say(f"Starting {label}")

        async def one(vm: Vm) -> None:
            if vm.run is not None and vm.run.qmpstatus == "running":
                task.warn(f"Skipping VM {vm.vmid}, already running.")
                return
            task.say(f"Starting VM {vm.vmid}")
            if vm.run is not None:
                await _wait(ctx, vm_resume(ctx, {"node": vm.node, "vmid": vm.vmid}))
                return
            await _wait(ctx, start_vm(ctx, vm.node, vm.vmid, {}))

        await _each(vms, one, p.get("max-workers", 4))

    return ctx.task(ctx.cluster.local, "bulk-start", "", work)


@api(f"POST {BULK}/guest/shutdown")
def bulk_shutdown(ctx: Ctx, p: dict[str, Any]) -> str:
    """Shut machines down, by force after the timeout if asked for."""
    vms, label = _chosen(ctx, p, "VM.PowerMgmt")
    timeout = p.get("timeout", 180)
    force = bool(p.get("force-stop", 1))

    async def work(task: Task) -> None:
        task.say(f"Shutting down {label}")

        async def one(vm: Vm) -> None:
            if vm.run is None:
                return
            task.say(f"Shutting down VM {vm.vmid} (Timeout = {timeout} seconds)")
            call = {"node": vm.node, "vmid": vm.vmid, "timeout": timeout, "forceStop": 1 if force else 0}
            status = await _wait(ctx, vm_shutdown(ctx, call))
            if status != "OK":
                task.warn(f"VM {vm.vmid}: {status}")

        await _each(vms, one, p.get("max-workers", 4))

    return ctx.task(ctx.cluster.local, "bulk-shutdown", "", work)


@api(f"POST {BULK}/guest/suspend")
def bulk_suspend(ctx: Ctx, p: dict[str, Any]) -> str:
    """Pause machines, or save them to disk."""
    vms, label = _chosen(ctx, p, "VM.PowerMgmt")

    async def work(task: Task) -> None:
        task.say(f"Suspending {label}")

        async def one(vm: Vm) -> None:
            if vm.run is None:
                return
            task.say(f"Suspending VM {vm.vmid}")
            call: dict[str, Any] = {"node": vm.node, "vmid": vm.vmid}
            if p.get("to-disk"):
                call.update(todisk=1, statestorage=p.get("statestorage") or state_storage(ctx, vm))
            await _wait(ctx, vm_suspend(ctx, call))

        await _each(vms, one, p.get("max-workers", 4))

    return ctx.task(ctx.cluster.local, "bulk-suspend", "", work)


@api(f"POST {BULK}/guest/migrate")
def bulk_migrate(ctx: Ctx, p: dict[str, Any]) -> str:
    """Move machines to one node."""
    vms, label = _chosen(ctx, p, "VM.Migrate")
    target = p["target"]

    async def work(task: Task) -> None:
        task.say(f"Migrating {label.replace('guests:', f'guests to {target}:')}")
        failed: list[int] = []

        async def one(vm: Vm) -> None:
            if vm.node == target:
                return
            task.say(f"Migrating VM {vm.vmid}")
            call: dict[str, Any] = {"node": vm.node, "vmid": vm.vmid, "target": target}
            if vm.run is not None or p.get("online"):
                call["online"] = 1
            if p.get("with-local-disks"):
                call["with-local-disks"] = 1
            try:
                status = await _wait(ctx, migrate_vm(ctx, call))
            except PveError as error:
                task.warn(f"500 {error.text}")
                failed.append(vm.vmid)
                return
            if status != "OK":
                failed.append(vm.vmid)

        await _each(vms, one, p.get("max-workers", 1))
        if failed:
            raise PveError(f"Some guests failed to migrate {', '.join(map(str, sorted(failed)))}")

    return ctx.task(ctx.cluster.local, "bulk-migrate", "", work)


# -- of one node ---------------------------------------------------------------------------------


def _on_node(ctx: Ctx, p: dict[str, Any]) -> list[Vm]:
    wanted = {int(vmid) for vmid in split_list(p.get("vms") or "")}
    if not ctx.may("/", "VM.PowerMgmt"):
        if not wanted:
            raise PermError("/, VM.PowerMgmt")
        for vmid in sorted(wanted):
            ctx.need(f"/vms/{vmid}", "VM.PowerMgmt")
    vms = [vm for vm in ctx.cluster.vms_on(p["node"]) if not vm.template]
    return [vm for vm in vms if not wanted or vm.vmid in wanted]


@api("POST /nodes/{node}/startall")
def start_all(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the machines that are to start with the node, or all with force."""
    vms = _on_node(ctx, p)

    async def work(task: Task) -> None:
        for vm in vms:
            if vm.run is not None or not (p.get("force") or vm.conf.get("onboot") == "1"):
                continue
            task.say(f"Starting VM {vm.vmid}")
            await _wait(ctx, start_vm(ctx, vm.node, vm.vmid, {}))

    return ctx.task(p["node"], "startall", "", work)


@api("POST /nodes/{node}/stopall")
def stop_all(ctx: Ctx, p: dict[str, Any]) -> str:
    """Shut the machines of a node down, by force after the timeout."""
    vms = _on_node(ctx, p)
    timeout = p.get("timeout", 180)

    async def work(task: Task) -> None:
        async def one(vm: Vm) -> None:
            if vm.run is None:
                return
            task.say(f"Stopping VM {vm.vmid} (timeout = {timeout} seconds)")
            call = {"node": vm.node, "vmid": vm.vmid, "timeout": timeout, "forceStop": p.get("force-stop", 1)}
            await _wait(ctx, vm_shutdown(ctx, call))

        await _each(vms, one, 4)

    return ctx.task(p["node"], "stopall", "", work)


@api("POST /nodes/{node}/suspendall")
def suspend_all(ctx: Ctx, p: dict[str, Any]) -> str:
    """Save the machines of a node to disk."""
    vms = _on_node(ctx, p)

    async def work(task: Task) -> None:
        for vm in vms:
            if vm.run is None:
                continue
            task.say(f"Suspending VM {vm.vmid}")
            call = {"node": vm.node, "vmid": vm.vmid, "todisk": 1, "statestorage": state_storage(ctx, vm)}
            await _wait(ctx, vm_suspend(ctx, call))

    return ctx.task(p["node"], "suspendall", "", work)


@api("POST /nodes/{node}/migrateall")
def migrate_all(ctx: Ctx, p: dict[str, Any]) -> str:
    """Move the machines of a node away."""
    if not p.get("maxworkers") and not p.get("max-workers") and not ctx.cluster.options.get("max_workers"):
        raise PveError("either 'max-workers' parameter or max_workers in datacenter.cfg must be set!")
    vms, target = _on_node(ctx, p), p["target"]

    async def work(task: Task) -> None:
        for vm in vms:
            task.say(f"Migrating VM {vm.vmid}")
            call: dict[str, Any] = {"node": vm.node, "vmid": vm.vmid, "target": target, "online": 1}
            if p.get("with-local-disks"):
                call["with-local-disks"] = 1
            await _wait(ctx, migrate_vm(ctx, call))

    return ctx.task(p["node"], "migrateall", "", work)
