"""Pausing machines, saving their memory, and resuming them."""

from __future__ import annotations

import time
from typing import Any

from ..config.checks import check_lock
from ..core.api import Ctx, api
from ..core.state import Vm
from ..core.tasks import Task
from ..errors import PveError
from ..ha.records import is_managed
from ..running.power import do_start, running_vm
from ..volumes.drives import drives_of, is_cdrom, is_net, memory_mib, parse_net, split_volid
from ..volumes.volumes import (
    Wanted,
    allocate,
    check_enabled,
    format_line,
    is_path_based,
    set_active,
)


@api("POST /nodes/{node}/qemu/{vmid}/status/suspend")
def vm_suspend(ctx: Ctx, p: dict[str, Any]) -> str:
    """Pause the machine, or save its memory to disk and quit."""
    ctx.root_only(p, "skiplock")
    node, todisk = p["node"], bool(p.get("todisk"))
    vm = running_vm(ctx, node, p["vmid"])
    storage = p.get("statestorage")
    if todisk:
        if is_managed(ctx.cluster, vm.vmid):
            raise PveError("Cannot suspend HA managed VM to disk")
        ctx.acl.require_vm(ctx.who, vm.vmid, None, ["VM.Config.Disk"])
        if any(name.startswith("hostpci") for name in vm.conf):
            raise PveError(
                "cannot suspend VM to disk due to passed-through PCI device(s), which lack the"
                " possibility to save/restore their internal state"
            )
        storage = storage or state_storage(ctx, vm)
        ctx.need(f"/storage/{storage}", "Datastore.AllocateSpace")

    async def work(task: Task) -> None:
        async with ctx.sim.locks.hold(vm.vmid, log=task.say):
            if not p.get("skiplock") and vm.conf.get("lock") != "backup":
                check_lock(vm)
            if todisk and vm.conf.get("lock") == "backup":
                raise PveError("cannot suspend to disk during backup")
            check_migratable(vm, with_memory=todisk)
            if not todisk:
                await task.work()
                if vm.run is not None:
                    vm.run.qmpstatus = "paused"
                    ctx.cluster.touch(vm.vmid)
                return
            await suspend_to_disk(ctx, vm, str(storage), task)

    return ctx.task(node, "qmsuspend" if todisk else "qmpause", vm.vmid, work)


def state_storage(ctx: Ctx, vm: Vm) -> str:
    """The default storage for the saved memory: the configured storage, a shared storage of the
    machine, or `local`.

    Of several, the last by name that holds files is taken, else the first.
    """
    if vm.conf.get("vmstatestorage"):
        return vm.conf["vmstatestorage"]
    used = {
        parts[0]
        for _dummy, drive in drives_of(ctx.sim.schema, vm.conf)
        if not is_cdrom(drive) and (parts := split_volid(drive.get("file", "")))
    }
    found: dict[bool, str] = {}
    for name in sorted(used):
        storage = ctx.cluster.storage(name)
        if storage.shared not in found or is_path_based(storage):
            found[storage.shared] = name
    return found.get(True) or found.get(False) or "local"


def check_migratable(vm: Vm, *, with_memory: bool) -> None:
    """Refuse to save or move the memory of a machine with encrypted memory or directories of the
    host.
    """
    kinds = [name for name in ("amd-sev", "intel-tdx") if vm.conf.get(name)]
    if any(name.startswith("virtiofs") for name in vm.conf):
        kinds.append("virtiofs")
    if with_memory and kinds:
        raise PveError(
            f"Cannot live-migrate, snapshot (with RAM), or hibernate a VM with: {', '.join(kinds)}"
        )


def save_state(ctx: Ctx, vm: Vm, label: str, store: str, task: Task) -> dict[str, str]:
    """Make the volume for the memory; the settings that go with it."""
    storage = check_enabled(ctx.cluster, store, vm.node)
    size = (memory_mib(vm.conf) * 2 + 500) * 1024 * 1024
    name = f"vm-{vm.vmid}-state-{label}" + (".raw" if is_path_based(storage) else "")
    wanted = Wanted(vm.vmid, "raw", size, name)
    volid = allocate(ctx.cluster, vm.node, storage, wanted, say=task.say)
    for line in format_line(storage, volid, "raw", size):
        task.say(line)
    run = vm.run
    return {
        "vmstate": volid,
        "runningmachine": _full_machine(run.machine) if run else "",
        "runningcpu": run.cpu if run else "",
        "running-nets-host-mtu": _host_mtus(ctx, vm),
    }


# The revisions of machine versions that PVE made (qemu-server, QemuServer/Machine.pm).
_REVISIONS = {"9.2": 1, "10.0": 1, "11.0": 2}


def _full_machine(machine: str) -> str:
    """The machine version with PVE's own revision, which its builds of QEMU tell."""
    version = machine.rpartition("-")[2]
    if "+" in machine or int(version.partition(".")[0]) < 8:
        return machine
    return f"{machine}+pve{_REVISIONS.get(version, 0)}"


def _host_mtus(ctx: Ctx, vm: Vm) -> str:
    """The MTU of each VirtIO card (Network.pm, get_nets_host_mtu).

    Older QEMU returns 0 if none is set.
    """
    mtu = 1500 if int(ctx.cluster.qemu.partition(".")[0]) >= 10 else 0
    found = []
    for name in sorted(vm.conf):
        if not is_net(name):
            continue
        net = parse_net(ctx.sim.schema, vm.conf[name])
        if net.get("model") == "virtio":
            found.append(f"{name}={net.get('mtu') or mtu}")
    return ",".join(found)


async def suspend_to_disk(ctx: Ctx, vm: Vm, store: str, task: Task) -> None:
    """Save the memory and quit; the machine stays locked until it is resumed."""
    date = time.strftime("%Y-%m-%d", time.gmtime(ctx.cluster.now()))
    saved = save_state(ctx, vm, f"suspend-{date}", store, task)
    vm.conf.update(saved)
    vm.conf["lock"] = "suspending"
    ctx.cluster.write(vm)
    await task.work()
    task.say("State saved, quitting")
    vm.conf["lock"] = "suspended"
    vm.run = None
    vm.quit_at = time.time()
    set_active(ctx.cluster, ctx.sim.schema, vm, None)
    ctx.cluster.write(vm)


@api("POST /nodes/{node}/qemu/{vmid}/status/resume")
def vm_resume(ctx: Ctx, p: dict[str, Any]) -> str:
    """Resume a paused machine, or start a machine that was saved to disk."""
    ctx.root_only(p, "skiplock", "nocheck")
    node, vmid = p["node"], p["vmid"]
    vm = ctx.cluster.vms.get(vmid)
    to_disk = vm is not None and vm.node == node and vm.conf.get("lock") == "suspended"
    if not to_disk:
        vm = running_vm(ctx, node, vmid)

    async def work(task: Task) -> None:
        if to_disk:
            await do_start(ctx, node, vmid, task)
            return
        async with ctx.sim.locks.hold(vmid, log=task.say):
            if vm is not None and vm.run is not None and vm.run.qmpstatus != "running":
                if not p.get("skiplock") and vm.conf.get("lock") != "backup":
                    check_lock(vm)
                await task.work()
                vm.run.qmpstatus = "running"
                ctx.cluster.touch(vmid)

    return ctx.task(node, "qmresume", vmid, work)
