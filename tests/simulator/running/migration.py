"""How a machine moves to another node within a task."""

from __future__ import annotations

import re

from ..config.checks import check_lock
from ..core.api import Ctx
from ..core.state import Vm
from ..core.tasks import Task
from ..errors import PveError
from ..volumes.drives import parse_props
from ..volumes.volumes import set_active
from .migration_volumes import Local, carry, scan, stamp

_DEVICE = re.compile(r"(usb|hostpci|serial|parallel|virtiofs)\d+")
_NO_CONNTRACK = (
    "conntrack state migration not supported or disabled, active connections might get dropped"
)


def local_devices(ctx: Ctx, vm: Vm) -> tuple[list[str], dict[str, str]]:
    """Devices of the host that the machine uses, and the mapped devices among them with the
    mapping's name.
    """
    blocking: list[str] = []
    mapped: dict[str, str] = {}
    for name in sorted(vm.conf):
        kind = _DEVICE.fullmatch(name)
        if not kind or (kind[1] == "serial" and vm.conf[name] == "socket"):
            continue
        keys = ctx.sim.schema.vm_options[name].get("format")
        parts = parse_props(keys, vm.conf[name]) if isinstance(keys, dict) else {}
        if kind[1] == "usb" and parts.get("host", "").lower() == "spice":
            continue
        mapping = parts.get("dirid" if kind[1] == "virtiofs" else "mapping")
        if mapping and kind[1] in ("usb", "hostpci", "virtiofs"):
            mapped[name] = mapping
            if kind[1] == "hostpci" and vm.run is None:
                continue
        blocking.append(name)
    return blocking, mapped


async def migrate(
    ctx: Ctx, vm: Vm, target: str, targets: dict[str, str], with_local: bool, task: Task
) -> None:
    cluster = ctx.cluster
    source, started_at = vm.node, cluster.now()
    async with ctx.sim.locks.hold(vm.vmid, log=task.say):
        try:
            _prepare(ctx, vm, source, target, task)
            task.say(
                stamp(
                    ctx,
                    f"starting migration of VM {vm.vmid} to node '{target}'"
                    f" ({cluster.nodes[target].ip})",
                )
            )
            try:
                await _transfer(ctx, vm, target, targets, scan(ctx, vm, with_local, task), task)
            except PveError as error:
                task.say(stamp(ctx, f"ERROR: {error.text}"))
                task.say(stamp(ctx, "aborting phase 1 - cleanup resources"))
                raise
        except PveError as error:
            task.say(
                stamp(
                    ctx,
                    f"ERROR: migration aborted (duration {duration_since(ctx, started_at)}):"
                    f" {error.text}",
                )
            )
            raise PveError("migration aborted") from None
        vm.node = target
        if vm.run is not None:
            node = cluster.nodes[target]
            node.next_pid += 1
            vm.run.pid = node.next_pid
        set_active(cluster, ctx.sim.schema, vm, target if vm.run is not None else None)
        cluster.touch(vm.vmid)
        task.say(
            stamp(
                ctx, f"migration finished successfully (duration {duration_since(ctx, started_at)})"
            )
        )


def duration_since(ctx: Ctx, started_at: float) -> str:
    taken = int(ctx.cluster.now() - started_at)
    return f"{taken // 3600:02d}:{taken // 60 % 60:02d}:{taken % 60:02d}"


def _prepare(ctx: Ctx, vm: Vm, source: str, target: str, task: Task) -> None:
    """Conditions that must hold before anything is copied."""
    if ctx.cluster.vms.get(vm.vmid) is not vm or vm.node != source:
        raise PveError(
            f"Configuration file 'nodes/{source}/qemu-server/{vm.vmid}.conf' does not exist"
        )
    check_lock(vm)
    if vm.run is not None:
        task.say(stamp(ctx, _NO_CONNTRACK))
    blocking, mapped = local_devices(ctx, vm)
    blocking = [name for name in blocking if name not in mapped]
    if blocking:
        raise PveError(f"can't migrate VM which uses local devices: {', '.join(blocking)}")
    if mapped:
        raise PveError(
            f"can't migrate to '{target}': missing mapped devices {', '.join(sorted(mapped))}"
        )
    if not ctx.cluster.nodes[target].online:
        raise PveError("Can't connect to destination address using public key")


async def _transfer(
    ctx: Ctx, vm: Vm, target: str, targets: dict[str, str], volumes: list[Local], task: Task
) -> None:
    cluster = ctx.cluster
    vm.conf["lock"] = "migrate"
    cluster.write(vm)
    if vm.run is not None:
        task.say(stamp(ctx, f"starting VM {vm.vmid} on remote node '{target}'"))
        cluster.tasks.start(target, "qmstart", vm.vmid, "root@pam", _incoming)
    try:
        await carry(ctx, vm, target, targets, volumes, task)
    finally:
        vm.conf.pop("lock", None)
        cluster.write(vm)


async def _incoming(task: Task) -> None:
    """The other end of an online migration: a machine that waits for the memory."""
    await task.work()
