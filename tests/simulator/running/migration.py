"""How a machine moves to another node within a task."""

from __future__ import annotations

import re
from typing import Any

from ..config.checks import check_lock
from ..core.api import Ctx
from ..core.state import Vm
from ..core.tasks import Task
from ..errors import PveError
from ..volumes.volumes import set_active
from .migration_volumes import Local, carry, scan, stamp
from .power import nodes_of_mapping, part_of

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
        if kind[1] == "usb" and part_of(ctx, name, vm.conf[name], "host").lower() == "spice":
            continue
        key = "dirid" if kind[1] == "virtiofs" else "mapping"
        mapping = part_of(ctx, name, vm.conf[name], key)
        if mapping and kind[1] in ("usb", "hostpci", "virtiofs"):
            mapped[name] = mapping
            is_live = "live-migration" in mapped_info(ctx, {name: mapping})[name]
            if kind[1] == "hostpci" and (vm.run is None or is_live):
                continue
        blocking.append(name)
    return blocking, mapped


_TYPES = {"usb": "usb", "hostpci": "pci", "virtiofs": "dir"}


def mapped_info(ctx: Ctx, mapped: dict[str, str]) -> dict[str, dict[str, Any]]:
    """The mapping of each device, and whether a running machine can move with it."""
    file = ctx.cluster.sections.get("mapping/pci")
    found: dict[str, dict[str, Any]] = {}
    for name, mapping in mapped.items():
        entry = file.entries.get(mapping, {}) if file and name.startswith("hostpci") else {}
        is_live = str(entry.get("live-migration-capable")) == "1"
        found[name] = {"name": mapping, **({"live-migration": 1} if is_live else {})}
    return found


def unmapped_devices(ctx: Ctx, mapped: dict[str, str], node: str) -> list[str]:
    """The mapped devices that a node lacks (QemuMigrate/Helpers.pm, check_local_resources)."""
    return [
        name
        for name, mapping in sorted(mapped.items())
        if node not in nodes_of_mapping(ctx, _TYPES[name.rstrip("0123456789")], mapping)
    ]


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
    missing = unmapped_devices(ctx, mapped, target)
    if missing:
        raise PveError(f"can't migrate to '{target}': missing mapped devices {', '.join(missing)}")
    info = mapped_info(ctx, mapped)
    fixed = [name for name in sorted(mapped) if "live-migration" not in info[name]]
    tied = [f"{name}:{mapped[name]}" for name in fixed]
    if vm.run is not None and tied:
        raise PveError(
            f"can't live migrate running VM which uses following mapped devices: {', '.join(tied)}"
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
