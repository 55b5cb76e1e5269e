"""Actions on many machines: of the whole cluster, or of one node.

The cluster's follow pve-manager's PVE/API2/Cluster/BulkAction/Guest.pm, a node's its
PVE/API2/Nodes.pm.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from ..core.api import Ctx, api, dispatch
from ..core.state import Guest, Vm
from ..core.tasks import Task
from ..errors import ApiError, ParamError, PermError, PveError
from ..ha.records import is_managed
from ..schema.formats import split_list
from .migrate import migrate_precondition, migrate_vm
from .power import start_vm, vm_shutdown
from .suspend import state_storage, vm_suspend

BULK = "/cluster/bulk-action"
LAST = 2**63 - 1  # the place in the order of a machine without `startup`
START_DELAY = 3  # seconds after each start of `startall`, "to reduce load"

Ordered = dict[int, list[Guest]]  # by the order of `startup`
# the worker's UPID; None if nothing is to do
Starter = Callable[[Any], Awaitable[str | None]]
Finisher = Callable[[Any, str], Awaitable[None]]  # takes the exit status


@api(f"GET {BULK}")
def index(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, str]]:
    """The targets of bulk actions."""
    return [{"name": "guest"}]


@api(f"GET {BULK}/guest")
def guest_index(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, str]]:
    """The actions."""
    return [{"name": name} for name in ("start", "shutdown", "migrate", "suspend")]


# -- which machines, in which order --------------------------------------------------------------


def _given(p: dict[str, Any]) -> list[int] | None:
    """The VMIDs of `vms`; None for every guest of the cluster."""
    given = p.get("vms")
    return None if given is None else [int(vmid) for vmid in given]


def _check(ctx: Ctx, vmids: list[int] | None, priv: str) -> None:
    """Refuse unless the caller may act on each machine that is named, or on all."""
    for vmid in vmids or ():
        ctx.need(f"/vms/{vmid}", priv)
    if not vmids and not ctx.may("/", priv):
        raise PermError(f"/, {priv}")


def _noun(vm: Guest) -> str:
    """The word for its kind in the log (BulkAction/Guest.pm, get_type_text)."""
    return "CT" if vm.kind == "lxc" else "VM"


def _startup(vm: Guest) -> dict[str, int]:
    """`order`, `up` and `down` of the machine; a bare number is the order."""
    found: dict[str, int] = {}
    for part in filter(None, vm.conf.get("startup", "").split(",")):
        name, equals, value = part.partition("=")
        if equals:
            found[name] = int(value)
        else:
            found["order"] = int(name)
    return found


def _listed(vms: Iterable[Any], vmids: list[int] | None) -> list[Any]:
    """The chosen machines, by VMID; an unknown VMID is ignored."""
    return sorted((vm for vm in vms if vmids is None or vm.vmid in vmids), key=lambda vm: vm.vmid)


def _start_stop_list(
    ctx: Ctx, vms: Iterable[Guest], vmids: list[int] | None, *, autostart: bool = False
) -> Ordered:
    """The machines by start order: no templates, and machines of the HA manager only if VMIDs are
    given.
    """
    result: Ordered = {}
    for vm in _listed(vms, vmids):
        if vm.template or (vmids is None and is_managed(ctx.cluster, vm.vmid)):
            continue
        if autostart and vm.conf.get("onboot") != "1":
            continue
        result.setdefault(_startup(vm).get("order", LAST), []).append(vm)
    return result


def _reversed_orders(ordered: Ordered) -> Ordered:
    """The same with the last order first; within an order, the numbers still rise."""
    return {-order: vms for order, vms in ordered.items()}


def _say_what(task: Task, action: str, vmids: list[int] | None, suffix: str = "") -> None:
    if vmids:
        task.say(f"{action} guests{suffix}: {', '.join(map(str, vmids))}")
    else:
        task.say(f"{action} all guests{suffix}")


def _max_workers(ctx: Ctx, p: dict[str, Any], default: int) -> int:
    given = p.get("max-workers") or p.get("maxworkers") or ctx.cluster.options.get("max_workers")
    return int(given or default)


# -- workers -------------------------------------------------------------------------------------


class _Workers:
    """Starts a worker for each machine, a limited number at once, in the startup order."""

    def __init__(
        self, ctx: Ctx, start: Starter, done: Finisher, *, limit: int, report: Callable[[str], None]
    ) -> None:
        self.ctx = ctx
        self.start = start
        self.done = done
        self.limit = limit
        self.report = report
        self.failed: list[int] = []
        self._running: dict[str, Guest] = {}

    async def run(self, ordered: Ordered) -> list[int]:
        """The VMIDs whose worker could not be started or failed."""
        for order in sorted(ordered):
            for vm in ordered[order]:
                while len(self._running) >= self.limit:
                    await self._finish_some()
                await self._start(vm)
            while self._running:
                await self._finish_some()
        return self.failed

    async def _start(self, vm: Guest) -> None:
        try:
            upid = await self.start(vm)
        except ApiError as error:
            self.report(error.text)
            self.failed.append(vm.vmid)
            return
        if upid is not None:
            self._running[upid] = vm

    async def _finish_some(self) -> None:
        board = self.ctx.cluster.tasks.by_upid
        handles = [handle for upid in self._running if (handle := board[upid].handle) is not None]
        await asyncio.wait(handles, return_when=asyncio.FIRST_COMPLETED)
        for upid in [upid for upid in self._running if not board[upid].running]:
            vm, status = self._running.pop(upid), str(board[upid].status)
            if is_error(status):
                self.failed.append(vm.vmid)
            await self.done(vm, status)


def is_error(status: str) -> bool:
    """Whether a task that ended so has failed; warnings are a success."""
    return status != "OK" and not status.startswith("WARNINGS: ")


def _as_client_error(error: ApiError) -> str:
    """The refusal as PVE's own client for the API puts it: with the status first."""
    text = error.text
    return text if text.startswith(f"{error.status} ") else f"{error.status} {text}"


def _no_delay(task: Task, action: str) -> Finisher:
    async def done(vm: Guest, status: str) -> None:
        if is_error(status):
            task.warn(f"{action} {_noun(vm)} {vm.vmid} failed: {status}")

    return done


async def _post(ctx: Ctx, vm: Guest, what: str, params: dict[str, Any]) -> str:
    """Call the API as the caller of the bulk action: with the same rights."""
    path = f"/nodes/{vm.node}/{vm.kind}/{vm.vmid}/{what}"
    try:
        upid: str = await dispatch(ctx.sim, "POST", path, ctx.caller, params)
    except ApiError as error:
        raise PveError(_as_client_error(error)) from None
    return upid


def _end(failed: list[int], what: str) -> None:
    if failed:
        raise PveError(f"Some guests failed to {what} {', '.join(map(str, failed))}")


# -- of the cluster ------------------------------------------------------------------------------


@api(f"POST {BULK}/guest/start")
def bulk_start(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start or resume machines; running machines are skipped with a warning."""
    vmids = _given(p)
    _check(ctx, vmids, "VM.PowerMgmt")

    async def work(task: Task) -> None:
        ordered = _start_stop_list(ctx, ctx.cluster.guests(), vmids)
        _say_what(task, "Starting", vmids)

        async def start(vm: Guest) -> str | None:
            if vm.run is not None and vm.run.qmpstatus != "paused":
                task.warn(f"Skipping {_noun(vm)} {vm.vmid}, already running.")
                return None
            task.say(f"Starting {_noun(vm)} {vm.vmid}")
            if vm.run is not None:
                return await _post(ctx, vm, "status/resume", {})
            has_timeout = vm.kind == "qemu" and "timeout" in p
            params = {"timeout": p["timeout"]} if has_timeout else {}
            return await _post(ctx, vm, "status/start", params)

        async def done(vm: Guest, status: str) -> None:
            if is_error(status):
                task.warn(f"Starting {_noun(vm)} {vm.vmid} failed: {status}")
                return
            await _startup_delay(task, _startup(vm).get("up", 0))

        workers = _Workers(ctx, start, done, limit=_max_workers(ctx, p, 4), report=task.warn)
        _end(await workers.run(ordered), "start:")

    return ctx.task(ctx.cluster.local, "bulk-start", "", work)


async def _startup_delay(task: Task, seconds: int) -> None:
    if seconds > 0:
        task.say(f"Waiting for {seconds} seconds (startup delay)")
        await asyncio.sleep(seconds)


@api(f"POST {BULK}/guest/shutdown")
def bulk_shutdown(ctx: Ctx, p: dict[str, Any]) -> str:
    """Shut machines down, by force after the timeout unless that is switched off."""
    vmids = _given(p)
    _check(ctx, vmids, "VM.PowerMgmt")
    force = int(p.get("force-stop", 1))

    async def work(task: Task) -> None:
        ordered = _start_stop_list(ctx, ctx.cluster.guests(), vmids)
        _say_what(task, "Shutting down", vmids)

        async def start(vm: Guest) -> str | None:
            if vm.run is None:
                task.warn(f"Skipping {_noun(vm)} {vm.vmid}, not running.")
                return None
            if vm.run.qmpstatus == "paused" and not p.get("force-stop"):
                task.warn(f"Skipping {_noun(vm)} {vm.vmid}, resume paused VM before shutdown.")
                return None
            timeout = _startup(vm).get("down", p.get("timeout", 180))
            task.say(f"Shutting down {_noun(vm)} {vm.vmid} (Timeout = {timeout} seconds)")
            return await _post(ctx, vm, "status/shutdown", {"forceStop": force, "timeout": timeout})

        workers = _Workers(
            ctx, start, _no_delay(task, "Stopping"), limit=_max_workers(ctx, p, 4), report=task.warn
        )
        _end(await workers.run(_reversed_orders(ordered)), "shutdown")

    return ctx.task(ctx.cluster.local, "bulk-shutdown", "", work)


@api(f"POST {BULK}/guest/suspend")
def bulk_suspend(ctx: Ctx, p: dict[str, Any]) -> str:
    """Pause machines, or save them to disk."""
    vmids = _given(p)
    _check(ctx, vmids, "VM.PowerMgmt")
    if p.get("to-disk"):
        _check(ctx, vmids, "VM.Config.Disk")
        if p.get("statestorage"):
            ctx.need(f"/storage/{p['statestorage']}", "Datastore.AllocateSpace")

    async def work(task: Task) -> None:
        ordered = _start_stop_list(ctx, ctx.cluster.vms.values(), vmids)
        _say_what(task, "Suspending", vmids)

        async def start(vm: Vm) -> str | None:
            if vm.run is None:
                task.warn(f"Skipping VM {vm.vmid}, not running.")
                return None
            params: dict[str, Any] = {"todisk": int(p.get("to-disk", 0))}
            if p.get("to-disk") and p.get("statestorage"):
                params["statestorage"] = p["statestorage"]
            task.say(f"Suspending VM {vm.vmid}")
            return await _post(ctx, vm, "status/suspend", params)

        workers = _Workers(
            ctx, start, _no_delay(task, "Stopping"), limit=_max_workers(ctx, p, 4), report=task.warn
        )
        _end(await workers.run(_reversed_orders(ordered)), "suspend")

    return ctx.task(ctx.cluster.local, "bulk-suspend", "", work)


@api(f"POST {BULK}/guest/migrate")
def bulk_migrate(ctx: Ctx, p: dict[str, Any]) -> str:
    """Move machines, templates too, to one node: running ones only with `online`."""
    vmids, target = _given(p), p["target"]
    _check(ctx, vmids, "VM.Migrate")

    async def work(task: Task) -> None:
        listed = _listed(ctx.cluster.vms.values(), vmids)
        _say_what(task, "Migrating", vmids, f" to {target}")

        async def start(vm: Vm) -> str | None:
            if vm.node == target:
                task.warn(f"VM {vm.vmid} already on {vm.node}, skipping.")
                return None
            params: dict[str, Any] = {
                name: p[name] for name in ("online", "with-local-disks") if name in p
            }
            params["target"] = target
            task.say(f"Migrating VM {vm.vmid}")
            return await _post(ctx, vm, "migrate", params)

        workers = _Workers(
            ctx,
            start,
            _no_delay(task, "Migrating"),
            limit=_max_workers(ctx, p, 1),
            report=task.warn,
        )
        _end(await workers.run({0: listed}), "migrate")

    return ctx.task(ctx.cluster.local, "bulk-migrate", "", work)


# -- of one node ---------------------------------------------------------------------------------


def _on_node(ctx: Ctx, p: dict[str, Any], *privs: str) -> list[int] | None:
    """The VMIDs that are given; refused unless the caller may act on each of them, or on all."""
    given = split_list(p["vms"]) if p.get("vms") else []
    if not ctx.may("/", *privs):
        if not given:
            raise PermError(f"/, {' && '.join(privs)}")
        for vmid in given:
            ctx.need(f"/vms/{vmid}", privs[0])
    return [int(vmid) for vmid in given] if "vms" in p else None


def _node_workers(ctx: Ctx, p: dict[str, Any]) -> int:
    """How many run at once: as asked for, else by the CPUs of the node."""
    return _max_workers(ctx, p, min(max(1, ctx.cluster.nodes[p["node"]].cpus - 1), 8))


async def _nothing(_vm: Vm, _status: str) -> None:
    """Nothing is done at the end of a worker."""


@api("POST /nodes/{node}/startall")
def start_all(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the machines that are to start with the node, or all with force, in their order."""
    vmids = _on_node(ctx, p, "VM.PowerMgmt")

    async def work(task: Task) -> None:
        ordered = _start_stop_list(
            ctx, ctx.cluster.vms_on(p["node"]), vmids, autostart=not p.get("force")
        )

        async def start(vm: Vm) -> str | None:
            if vm.run is not None:
                return None
            task.say(f"Starting VM {vm.vmid}")
            upid = start_vm(ctx, vm.node, vm.vmid, {})
            delay = _startup(vm).get("up")
            if delay is None:
                await asyncio.sleep(START_DELAY)
            else:
                await _startup_delay(task, delay)
            return upid

        async def done(vm: Vm, status: str) -> None:
            if is_error(status):
                task.say(f"Starting VM {vm.vmid} failed: {status}")

        workers = _Workers(ctx, start, done, limit=_node_workers(ctx, p), report=task.say)
        await workers.run(ordered)

    return ctx.task(p["node"], "startall", "", work)


def _backwards(ordered: Ordered) -> Ordered:
    """The last order first, and in each the highest number."""
    return {-order: vms[::-1] for order, vms in ordered.items()}


@api("POST /nodes/{node}/stopall")
def stop_all(ctx: Ctx, p: dict[str, Any]) -> str:
    """Shut the machines of a node down in reverse order, by force after the timeout."""
    vmids = _on_node(ctx, p, "VM.PowerMgmt")

    async def work(task: Task) -> None:
        async def start(vm: Vm) -> str | None:
            if vm.run is None:
                return None
            timeout = _startup(vm).get("down", p.get("timeout", 180))
            task.say(f"Stopping VM {vm.vmid} (timeout = {timeout} seconds)")
            call = {
                "node": vm.node,
                "vmid": vm.vmid,
                "timeout": timeout,
                "forceStop": p.get("force-stop", 1),
            }
            return vm_shutdown(ctx, call)

        ordered = _start_stop_list(ctx, ctx.cluster.vms_on(p["node"]), vmids)
        workers = _Workers(ctx, start, _nothing, limit=_node_workers(ctx, p), report=task.say)
        await workers.run(_backwards(ordered))

    return ctx.task(p["node"], "stopall", "", work)


@api("POST /nodes/{node}/suspendall")
def suspend_all(ctx: Ctx, p: dict[str, Any]) -> str:
    """Save the machines of a node to disk, in reverse order."""
    vmids = _on_node(ctx, p, "VM.PowerMgmt", "VM.Config.Disk")

    async def work(task: Task) -> None:
        async def start(vm: Vm) -> str | None:
            if vm.run is None:
                task.say(f"VM {vm.vmid} not running, skipping suspension")
                return None
            task.say(f"Suspending VM {vm.vmid}")
            call = {
                "node": vm.node,
                "vmid": vm.vmid,
                "todisk": 1,
                "statestorage": state_storage(ctx, vm),
            }
            return vm_suspend(ctx, call)

        ordered = _start_stop_list(ctx, ctx.cluster.vms_on(p["node"]), vmids)
        workers = _Workers(ctx, start, _nothing, limit=_node_workers(ctx, p), report=task.say)
        await workers.run(_backwards(ordered))

    return ctx.task(p["node"], "suspendall", "", work)


@api("POST /nodes/{node}/migrateall")
def migrate_all(ctx: Ctx, p: dict[str, Any]) -> str:
    """Move the machines of a node away: running machines only without local disks or devices."""
    vmids, target = _on_node(ctx, p, "VM.Migrate"), p["target"]
    if target == p["node"]:
        raise ParamError({"target": "target is local node."})
    ctx.cluster.check_quorum()
    if target not in ctx.cluster.nodes:
        raise PveError(f"no such cluster node '{target}'")
    if (
        not p.get("maxworkers")
        and not p.get("max-workers")
        and not ctx.cluster.options.get("max_workers")
    ):
        raise PveError(
            "either 'max-workers' parameter or max_workers in datacenter.cfg must be set!"
        )

    async def work(task: Task) -> None:
        listed = _listed(ctx.cluster.vms_on(p["node"]), vmids)
        if not listed:
            task.say("no virtual guests matched, nothing to do..")
            return
        started: list[int] = []

        async def start(vm: Vm) -> str | None:
            upid = _migrate_checked(ctx, vm, target, p, task)
            started.append(vm.vmid)
            return upid

        workers = _Workers(ctx, start, _nothing, limit=_max_workers(ctx, p, 1), report=task.say)
        await workers.run({0: listed})
        if not started:
            raise PveError("no migrations worker started...")
        task.say(f"All jobs finished, used {len(started)} workers in total.")

    return ctx.task(p["node"], "migrateall", "", work)


def _migrate_checked(ctx: Ctx, vm: Vm, target: str, p: dict[str, Any], task: Task) -> str:
    """Start the move of a machine that nothing stands in the way of."""
    found = migrate_precondition(ctx, {"node": vm.node, "vmid": vm.vmid, "target": target})
    missing = found["not_allowed_nodes"].get(target, {})
    online = vm.run is not None
    obstacles: dict[str, list[str]] = {}
    if online and not p.get("with-local-disks"):
        obstacles["local disks"] = [disk["volid"] for disk in found["local_disks"]]
    obstacles["local resources"] = found["local_resources"]
    obstacles["unavailable storages"] = missing.get("unavailable_storages", [])
    obstacles["unavailable resources"] = missing.get("unavailable-resources", [])
    lines = [f"  Has {what}: {', '.join(names)}" for what, names in obstacles.items() if names]
    if lines:
        task.say(f"Check VM {vm.vmid}: skip VM {vm.vmid} - precondition check failed:")
        raise PveError("\n".join(lines))
    task.say(f"Check VM {vm.vmid}: precondition check passed")
    task.say(f"Migrating VM {vm.vmid}")
    call: dict[str, Any] = {
        "node": vm.node,
        "vmid": vm.vmid,
        "target": target,
        "online": int(online),
    }
    if "with-local-disks" in p:
        call["with-local-disks"] = p["with-local-disks"]
    return migrate_vm(ctx, call)
