"""How machines start and stop within a task."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from dataclasses import dataclass

from ..config.checks import check_lock, take_address
from ..config.cloudinit_drive import renew_cloudinit
from ..config.hotplug import apply_pending, has_system
from ..core.api import Ctx
from ..core.state import Run, Vm
from ..core.tasks import Task
from ..errors import ApiError, PveError
from ..schema.units import parse_props
from ..volumes.drives import (
    agent_enabled,
    drives_of,
    is_cdrom,
    is_net,
    memory_mib,
    parse_drive,
    parse_net,
    split_volid,
)
from ..volumes.volumes import free, parse_volname, set_active, volume_size
from .start_options import check_options

# The cleanup after a QEMU process waits this long, with the lock, when it finds the machine running
# again.
CLEANUP_WAIT = 30.0
# A start this soon after the process quit meets that cleanup.
CLEANUP_RACE = 3.0


async def do_start(ctx: Ctx, node: str, vmid: int, task: Task, *, skiplock: bool = False) -> None:
    """Start the machine within a task."""
    async with ctx.sim.locks.hold(vmid, log=task.say):
        vm = ctx.cluster.vm_at(node, vmid)
        if vm.template:
            raise PveError("you can't start a vm if it's a template")
        lock = vm.conf.get("lock")
        if lock == "backup" and vm.run is not None:
            vm.run.qmpstatus = "running"
            ctx.cluster.touch(vmid)
            return
        suspended = lock == "suspended"
        if not skiplock and not suspended:
            check_lock(vm)
        if vm.run is not None:
            raise PveError(f"VM {vmid} already running")
        resume = suspended or "vmstate" in vm.conf
        await task.work()
        launch(ctx, vm, resume=resume, task=task)
        warn_of_certificates(ctx, vm, task)
        if resume:
            _resumed(ctx, vm, task)
    if time.time() - vm.quit_at < CLEANUP_RACE:
        _cleanup_holds_lock(ctx, vm)


def launch(ctx: Ctx, vm: Vm, *, resume: bool = False, task: Task | None = None) -> None:
    """Bring up the QEMU process after the checks that it would fail at; `task` gets its output."""
    cluster = ctx.cluster
    if not resume and (vm.pending or vm.pending_delete):
        apply_pending(ctx, vm)
    renew_cloudinit(ctx, vm)
    node = cluster.nodes[vm.node]
    _check_drives(ctx, vm)
    _check_nics(ctx, vm)
    _check_cpus(ctx, vm)
    _check_mapped_devices(ctx, vm)
    check_options(ctx, vm)
    cards = _reserve_cards(ctx, vm)
    check_free_memory(ctx, vm)
    _run_network_scripts(ctx, vm, task)
    node.next_pid += 1
    vm.run = Run(node.next_pid, cluster.now(), machine=machine_type(ctx, vm), cards=cards)
    set_active(cluster, ctx.sim.schema, vm, vm.node)
    cluster.touch(vm.vmid)


def _check_drives(ctx: Ctx, vm: Vm) -> None:
    cluster = ctx.cluster
    for name, drive in drives_of(ctx.sim.schema, vm.conf):
        parts = split_volid(drive.get("file", ""))
        if parts is not None:
            content = parse_volname(cluster.storage(parts[0]), parts[1]).content
            if content not in cluster.storage(parts[0]).content:
                raise PveError(f"storage '{parts[0]}' does not support content-type '{content}'")
            volume_size(cluster, vm.node, drive["file"])
        elif not is_cdrom(drive) and not drive.get("file", "").startswith("/"):
            raise PveError(f"unable to activate {name}")


def _check_nics(ctx: Ctx, vm: Vm) -> None:
    node = ctx.cluster.nodes[vm.node]
    for name, value in sorted(vm.conf.items()):
        if name.startswith("net") and name[3:].isdigit():
            net = parse_net(ctx.sim.schema, value)
            bridge = net.get("bridge")
            if bridge and not node.has_bridge(bridge):
                raise PveError(f"bridge '{bridge}' does not exist")
            if bridge and net.get("model") == "virtio":
                _check_mtu(name, int(net.get("mtu") or 1), node.mtu_of(bridge))


def _check_mtu(name: str, mtu: int, limit: int) -> None:
    """Source: QemuServer.pm, print_netdevice_full; 1 is the MTU of the bridge."""
    if mtu == 1:
        return
    if mtu < 576:
        raise PveError(f"netdev {name}: MTU '{mtu}' is smaller than the IP minimum MTU '576'")
    if mtu > limit:
        raise PveError(f"netdev {name}: MTU '{mtu}' is bigger than the bridge MTU '{limit}'")


def _run_network_scripts(ctx: Ctx, vm: Vm, task: Task | None) -> None:
    """QEMU runs a script for each NIC, which takes an address (qemu-server: usr/pve-bridge)."""
    place = "/var/lib/qemu-server" if ctx.sim.schema.is_8 else "/usr/libexec/qemu-server"
    script = f"{place}/pve-bridge"
    for name in sorted(filter(is_net, vm.conf)):
        try:
            take_address(ctx, vm, parse_net(ctx.sim.schema, vm.conf[name]))
        except PveError as error:
            if task is not None:
                device = f"tap,id={name},ifname=tap{vm.vmid}i{name[3:]},script={script}"
                task.say(error.text)
                task.say(
                    f"kvm: -netdev type={device}: network script {script} failed with status 6400"
                )
            raise PveError("start failed: QEMU exited with code 1") from None


def _entries_of_mapping(ctx: Ctx, kind: str, name: str) -> list[dict[str, str]]:
    file = ctx.cluster.sections.get(f"mapping/{kind}")
    entry = file.entries.get(name, {}) if file else {}
    return [parse_props({}, text) for text in entry.get("map", ())]


def nodes_of_mapping(ctx: Ctx, kind: str, name: str) -> set[str]:
    """The nodes that have a mapped device or directory."""
    return {str(entry.get("node")) for entry in _entries_of_mapping(ctx, kind, name)}


def part_of(ctx: Ctx, name: str, value: str, key: str) -> str:
    """The value of a key in the option of a device, whose format may be unknown."""
    keys = ctx.sim.schema.vm_options[name].get("format")
    if isinstance(keys, dict):
        return parse_props(keys, value).get(key, "")
    parts = [part.partition("=") for part in value.split(",")]
    return next((part for word, _equals, part in parts if word == key), "")


_MAPPED = {
    "hostpci": ("pci", "mapping", "PCI device mapping not found for '{}'"),
    "usb": ("usb", "mapping", "USB device mapping not found for '{}'"),
    "virtiofs": ("dir", "dirid", "No directory mapping for node {}."),
}


def _check_mapped_devices(ctx: Ctx, vm: Vm) -> None:
    """The node needs each mapped device (QemuServer/PCI.pm, USB.pm and Virtiofs.pm)."""
    for name, value in sorted(vm.conf.items()):
        kind = name.rstrip("0123456789")
        if kind not in _MAPPED or kind == name:
            continue
        mapped, key, text = _MAPPED[kind]
        mapping = part_of(ctx, name, value, key)
        if not mapping:
            continue
        if vm.node not in nodes_of_mapping(ctx, mapped, mapping):
            raise PveError(text.format(vm.node if mapped == "dir" else mapping))


def _reserve_cards(ctx: Ctx, vm: Vm) -> frozenset[str]:
    """Choose the PCI devices of a machine, each for one running machine; a mediated device is not
    reserved (QemuServer/PCI.pm, choose_hostpci_devices and reserve_pci_usage).
    """
    others = [one for one in ctx.cluster.vms.values() if one is not vm and one.node == vm.node]
    held = {card: one.vmid for one in others if one.run is not None for card in one.run.cards}
    used: set[str] = set()
    for number in range(16):
        name = f"hostpci{number}"
        value = vm.conf.get(name, "")
        if not value or part_of(ctx, name, value, "mdev"):
            continue
        choices = _alternatives(ctx, vm, name, value)
        free = [
            one for one in choices if not any(_overlaps(card, used | held.keys()) for card in one)
        ]
        if len(choices) == 1:
            for card in choices[0]:
                if _overlaps(card, used):
                    raise PveError(f"device '{card}' assigned more than once")
                if holder := _overlaps(card, held.keys()):
                    raise PveError(f"PCI device '{card}' already in use by VMID '{held[holder]}'")
        elif not free:
            raise PveError(f"could not find a free device for '{name}'")
        used |= set(free[0])
    return frozenset(used)


def _alternatives(ctx: Ctx, vm: Vm, name: str, value: str) -> list[list[str]]:
    """The devices of which a machine gets one; without a function, an address means all (lspci)."""
    mapping = part_of(ctx, name, value, "mapping")
    paths = [part_of(ctx, name, value, "host") or value.split(",")[0]]
    if mapping:
        entries = _entries_of_mapping(ctx, "pci", mapping)
        paths = [str(one["path"]) for one in entries if one["node"] == vm.node]
    found = [path.split(";") for path in paths]
    return [[card if card.count(":") > 1 else f"0000:{card}" for card in one] for one in found]


def _overlaps(card: str, others: Collection[str]) -> str:
    """The other address of the same device, or an empty text."""
    for other in others:
        if card == other or card.startswith(f"{other}.") or other.startswith(f"{card}."):
            return other
    return ""


def _check_cpus(ctx: Ctx, vm: Vm) -> None:
    node = ctx.cluster.nodes[vm.node]
    cores = int(vm.conf.get("sockets", "1")) * int(vm.conf.get("cores", "1"))
    vcpus = int(vm.conf.get("vcpus", "0")) or cores
    if cores > node.cpus or vcpus > node.cpus:
        raise PveError(f"MAX {node.cpus} vcpus allowed per VM on this node")
    if vcpus > cores:
        raise PveError(f"vcpus '{vcpus}' greater than max '{cores}'")


def warn_of_certificates(ctx: Ctx, vm: Vm, task: Task) -> None:
    """Keys that were enrolled without Microsoft's certificates of 2023 (qemu-server, QemuServer.pm,
    check_efi_vars).
    """
    keys = ctx.sim.schema.vm_options["efidisk0"]["format"]
    if "efidisk0" not in vm.conf or "ms-cert" not in keys:
        return
    disk = parse_drive(ctx.sim.schema, "efidisk0", vm.conf["efidisk0"])
    if disk.get("pre-enrolled-keys") == "1" and disk.get("ms-cert") != "2023k":
        task.warn(
            "EFI disk without 'ms-cert=2023k' option, suggesting that not all UEFI 2023\n"
            "certificates from Microsoft are enrolled yet."
        )


def check_free_memory(ctx: Ctx, vm: Vm) -> None:
    """A node cannot give more memory to one machine than it has."""
    node = ctx.cluster.nodes[vm.node]
    if memory_mib(vm.conf) * 1024 * 1024 > node.memory:
        raise PveError("start failed: QEMU exited with code 1")


def machine_type(ctx: Ctx, vm: Vm) -> str:
    """The machine version that QEMU runs."""
    version = ".".join(ctx.cluster.qemu.split(".")[:2])
    text = vm.conf.get("machine", "pc").split(",")[0].removeprefix("type=")
    if text in ("q35", "pc", "pc-i440fx"):
        return f"pc-q35-{version}" if text == "q35" else f"pc-i440fx-{version}"
    return text


def _resumed(ctx: Ctx, vm: Vm, task: Task) -> None:
    task.say("Resuming suspended VM")
    state = vm.conf.get("vmstate")
    if state:
        task.say(f"activating and using '{state}' as vmstate")
        try:
            free(ctx.cluster, vm.node, state)
        except ApiError as error:
            task.say(error.text)
    for key in ("lock", "vmstate", "runningmachine", "runningcpu", "running-nets-host-mtu"):
        vm.conf.pop(key, None)
    ctx.cluster.write(vm)
    task.say("Resumed VM, removing state")


def _cleanup_holds_lock(ctx: Ctx, vm: Vm) -> None:
    """The cleanup of the process that quit finds a new one, and waits for it with the lock in
    hand.
    """

    async def cleanup() -> None:
        try:
            async with ctx.sim.locks.hold(vm.vmid, 60):
                end = int(vm.quit_at) + CLEANUP_WAIT
                while vm.run is not None and time.time() < end:
                    await asyncio.sleep(0.2)
        except ApiError:
            return

    ctx.sim.background(cleanup())


def cleanup_after_rollback(ctx: Ctx, vm: Vm) -> None:
    """The cleanup of the process that a rollback stopped holds the machine's lock for a while, 20 s
    on a real node.
    """

    async def cleanup() -> None:
        try:
            async with ctx.sim.locks.hold(vm.vmid, 60):
                await asyncio.sleep(ctx.cluster.cleanup)
        except ApiError:
            return

    if ctx.cluster.cleanup:
        ctx.sim.background(cleanup())


def quit_vm(ctx: Ctx, vm: Vm) -> None:
    """The QEMU process is gone: pending changes take effect."""
    vm.run = None
    vm.execs = None
    set_active(ctx.cluster, ctx.sim.schema, vm, None)
    if ctx.cluster.vms.get(vm.vmid) is vm:
        if (vm.pending or vm.pending_delete) and ctx.cluster.quorate:
            apply_pending(ctx, vm)
        ctx.cluster.touch(vm.vmid)


def answers_shutdown(ctx: Ctx, vm: Vm) -> bool:
    """Whether the guest powers down when it is asked to."""
    if vm.run is None or vm.run.qmpstatus != "running" or not has_system(ctx.cluster, vm):
        return False
    if agent_enabled(vm.conf) and vm.agent == "running":
        return True
    return ctx.cluster.acpi if vm.acpi is None else vm.acpi


@dataclass(frozen=True)
class Stop:
    """How a machine is stopped.

    `shutdown` asks the guest first, for `timeout` seconds. `force` ends it then; left out, only a
    stop without a shutdown does.
    """

    shutdown: bool
    force: bool | None
    timeout: int | None
    skiplock: bool = False

    @property
    def by_force(self) -> bool:
        """Whether a machine that does not shut down is ended."""
        return not self.shutdown if self.force is None else self.force


async def do_stop(ctx: Ctx, node: str, vmid: int, task: Task, how: Stop) -> None:
    """Stop or shut down the machine within a task."""
    async with ctx.sim.locks.hold(vmid, log=task.say):
        vm = ctx.cluster.vm_found(node, vmid)
        await stop_locked(ctx, vm, task, how)


async def stop_locked(ctx: Ctx, vm: Vm, task: Task, how: Stop) -> None:
    """The same with the lock already held."""
    if vm.run is None:
        return
    if not how.skiplock:
        check_lock(vm)
    timeout = how.timeout
    if timeout is None and how.shutdown:
        timeout = _down_delay(vm)
    if how.shutdown and (timeout == 0 or not answers_shutdown(ctx, vm)):
        await _wait_for_guest(ctx, vm, 60 if timeout is None else timeout)
        if vm.run is not None:
            if not how.by_force:
                raise PveError("VM quit/powerdown failed - got timeout")
            task.say("VM still running - terminating now with SIGTERM")
    else:
        await task.work()
    quit_vm(ctx, vm)


def _down_delay(vm: Vm) -> int | None:
    for part in vm.conf.get("startup", "").split(","):
        if part.startswith("down="):
            return int(part[5:])
    return None


async def _wait_for_guest(ctx: Ctx, vm: Vm, timeout: float) -> None:
    end = time.time() + timeout
    while time.time() < end and vm.run is not None and not answers_shutdown(ctx, vm):
        await asyncio.sleep(min(0.1, max(0.0, end - time.time())))


def running_vm(ctx: Ctx, node: str, vmid: int) -> Vm:
    """The machine, refused when it does not run."""
    vm = ctx.cluster.vm_found(node, vmid)
    if vm.run is None:
        raise PveError(f"VM {vmid} not running")
    return vm
