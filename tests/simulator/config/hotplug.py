"""Pending changes: plugged into a running machine, kept for later, or applied to a stopped one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..errors import ApiError, PveError
from ..schema.formats import split_list
from ..schema.validate import parse_bool
from ..volumes.drives import (
    boot_devices,
    is_cdrom,
    is_cloudinit,
    is_drive,
    is_net,
    memory_mib,
    parse_drive,
    parse_net,
)
from .checks import CLOUDINIT, take_address
from .cloudinit_drive import renew_cloudinit
from .disks import delete_or_detach, register_unused

if TYPE_CHECKING:
    from ..core.api import Ctx
    from ..core.state import Cluster, Vm

# Options that take effect at once on a running machine, regardless of its hotplug setting.
FAST = frozenset(
    {
        "description",
        "hookscript",
        "lock",
        "migrate_downtime",
        "migrate_speed",
        "name",
        "onboot",
        "protection",
        "shares",
        "startup",
        "tags",
        "vmstatestorage",
        *CLOUDINIT,
    }
)
_DEFAULT_HOTPLUG = ("network", "disk", "usb")
_NEEDS_STOP = ("aio", "discard", "iothread", "queues", "product", "cache", "ssd", "vendor", "ro")
_AGENT_ALIASES = {"freeze-fs-on-backup": "freeze-fs", "guest-fsfreeze": "freeze-fs"}
_IPCONFIG = re.compile(r"ipconfig\d+\Z")
_SCSI_DISK = re.compile(r"scsi\d+\Z")


class Skip(Exception):
    """The change cannot be made while the machine runs and stays pending."""


def is_fast(name: str) -> bool:
    """Whether the option takes effect at once."""
    return name in FAST or _IPCONFIG.match(name) is not None


def is_cloudinit_option(name: str) -> bool:
    """Whether the option goes into the cloud-init drive."""
    return name in CLOUDINIT or name == "name" or _IPCONFIG.match(name) is not None or is_net(name)


def features(vm: Vm) -> set[str]:
    """The kinds of devices that can be plugged into the running machine."""
    text = vm.conf.get("hotplug", "1")
    if text == "0":
        return set()
    return set(_DEFAULT_HOTPLUG) if text == "1" else set(split_list(text))


def cleanup_pending(vm: Vm) -> bool:
    """Drop pending changes that change nothing; whether there were any."""
    same = [name for name, value in vm.pending.items() if vm.conf.get(name) == value]
    gone = [name for name in vm.pending_delete if name not in vm.conf]
    for name in same:
        del vm.pending[name]
    for name in gone:
        del vm.pending_delete[name]
    return bool(same or gone)


def apply_pending(ctx: Ctx, vm: Vm) -> dict[str, str]:
    """Apply all pending changes to a stopped machine; returns the texts of the failures."""
    errors: dict[str, str] = {}
    for name in sorted(vm.pending_delete):
        force = vm.pending_delete[name]
        try:
            if name in vm.conf and is_drive(name):
                delete_or_detach(ctx, vm, name, force)
        except ApiError as error:
            errors[name] = f"unable to apply pending change {name} : {error.message}"
            continue
        del vm.pending_delete[name]
        vm.conf.pop(name, None)
    cleanup_pending(vm)
    new_cloudinit = False
    for name in sorted(vm.pending):
        value = vm.pending[name]
        try:
            if name in vm.conf and is_drive(name):
                old = parse_drive(ctx.sim.schema, name, vm.conf[name])
                if old.get("file") != parse_drive(ctx.sim.schema, name, value).get("file"):
                    register_unused(ctx, vm, old)
        except ApiError as error:
            errors[name] = f"unable to apply pending change {name} : {error.message}"
            continue
        new_cloudinit = new_cloudinit or (
            is_drive(name) and is_cloudinit(parse_drive(ctx.sim.schema, name, value))
        )
        vm.conf[name] = vm.pending.pop(name)
    ctx.cluster.write(vm)
    if new_cloudinit:
        renew_cloudinit(ctx, vm)
    return errors


def record_cloudinit(vm: Vm, name: str, old: str | None, new: str | None) -> None:
    """Remember the old value of a changed option in the cloud-init drive, until the drive is
    generated again.
    """
    if not is_cloudinit_option(name) or vm.run is None:
        return
    held = vm.cloudinit if vm.cloudinit is not None else {}
    added = set(split_list(held.pop("added", "")))
    recorded = held.get(name)
    if new is not None:
        if recorded is not None:
            if recorded == new:
                held.pop(name)
                added.discard(name)
        elif name not in added:
            if old is not None:
                held[name] = old
            else:
                added.add(name)
    elif old is not None and recorded is None:
        if name in added:
            added.discard(name)
        else:
            held[name] = old
    if added:
        held["added"] = ",".join(sorted(added))
    vm.cloudinit = held or None


@contextmanager
def _noted(errors: dict[str, str], name: str) -> Iterator[None]:
    """Keep the text of a failure; a change that waits for a stop is none."""
    try:
        yield
    except Skip:
        return
    except ApiError as error:
        errors[name] = f"hotplug problem - {error.message}"


def hotplug_pending(ctx: Ctx, vm: Vm, selection: set[str]) -> dict[str, str]:
    """Hotplug all changes that the running machine allows; returns the texts of the failures."""
    errors: dict[str, str] = {}
    for name in [name for name in sorted(vm.pending) if is_fast(name)]:
        new = vm.pending.pop(name)
        record_cloudinit(vm, name, vm.conf.get(name), new)
        vm.conf[name] = new
    enabled = features(vm)
    for name in sorted(vm.pending_delete):
        if name not in selection:
            continue
        with _noted(errors, name):
            _unplug(ctx, vm, name, vm.pending_delete[name], enabled)
            old = vm.conf.pop(name, None)
            record_cloudinit(vm, name, old, None)
            del vm.pending_delete[name]
    for name in sorted(vm.pending):
        if name not in selection or name not in vm.pending:
            continue
        with _noted(errors, name):
            value = _plug(ctx, vm, name, vm.pending[name], enabled)
            record_cloudinit(vm, name, vm.conf.get(name), value)
            vm.conf[name] = value
            vm.pending.pop(name, None)
    ctx.cluster.write(vm)
    if "cloudinit" in enabled and vm.cloudinit:
        renew_cloudinit(ctx, vm)
    return errors


def _device_unplug(ctx: Ctx, vm: Vm, name: str) -> None:
    """Take the device from the running machine (qemu-server, QemuServer.pm, vm_deviceunplug)."""
    if vm.run is None:
        return
    if name in vm.run.lost:
        vm.run.lost.discard(name)
        return
    devices = boot_devices(vm.conf)
    boots = [vm.conf.get("bootdisk")] if devices is None else devices
    if is_drive(name) and name in boots:
        raise PveError(f"can't unplug bootdisk '{name}'")
    if vm.stuck and (name in vm.stuck or "*" in vm.stuck):
        raise _still_busy(name)
    if has_system(ctx.cluster, vm):
        return
    if not name.startswith("scsi"):
        raise _still_busy(name)
    # A SCSI disk needs no guest to go, its controller, a PCI device, does.
    controller = _idle_controller(vm, name)
    if controller is not None:
        vm.run.lost.add(name)
        raise _still_busy(controller)


def _still_busy(device: str) -> PveError:
    return PveError(f"error on hot-unplugging device '{device}' - still busy in guest?")


def _idle_controller(vm: Vm, name: str) -> str | None:
    """The controller that goes with its last disk (QemuServer.pm, qemu_deletescsihw).

    None if other disks use it.
    """
    hardware = vm.conf.get("scsihw", "lsi")
    index = int(name.removeprefix("scsi"))
    if hardware == "virtio-scsi-single":
        return f"virtioscsi{index}"
    most = 7 if hardware.startswith("lsi") else 256
    controller = index // most
    lost = vm.run.lost if vm.run else set()
    others = [
        other
        for other in vm.conf
        if _SCSI_DISK.match(other) and other != name and other not in lost
    ]
    if any(int(other[4:]) < (most - 1) * (controller + 1) for other in others):
        return None
    return f"scsihw{controller}"


def has_system(cluster: Cluster, vm: Vm) -> bool:
    """Whether an operating system runs in the guest, which hears the power button and lets go of
    devices.
    """
    return cluster.system if vm.system is None else vm.system


# The word of the option hotplug under which an option can be changed.
_SWITCH = {"tablet": "usb", "vcpus": "cpu", "memory": "memory"}


def _unplug(ctx: Ctx, vm: Vm, name: str, force: bool, enabled: set[str]) -> None:
    """Carry out a pending removal; raises Skip when it must wait."""
    if name not in vm.conf:
        return
    if name in _SWITCH or name.startswith("usb"):
        wait = _SWITCH.get(name, "usb") not in enabled
    elif name == "hotplug":
        wait = bool(re.search("cpu|memory", vm.conf["hotplug"]))
    elif name == "balloon":
        wait = vm.conf["balloon"] == "0"
    elif is_net(name):
        wait = "network" not in enabled
    elif is_drive(name):
        fixed = re.match(r"(?:efidisk|ide|sata|tpmstate)\d", name)
        wait = "disk" not in enabled or bool(fixed)
    else:
        wait = not is_fast(name) and name not in ("cpuunits", "cpulimit")
    if wait:
        raise Skip
    if is_net(name) or is_drive(name):
        _device_unplug(ctx, vm, name)
    if is_drive(name):
        delete_or_detach(ctx, vm, name, force)


def _plug(ctx: Ctx, vm: Vm, name: str, value: str, enabled: set[str]) -> str:
    """Carry out a pending change and return the value that results.

    Raises Skip when it must wait.
    """
    if _must_wait(vm, name, value, enabled):
        raise Skip
    if name == "memory":
        return _plug_memory(vm, value)
    if name == "vcpus":
        if int(value) > int(vm.conf.get("sockets", "1")) * int(vm.conf.get("cores", "1")):
            raise PveError("you can't add more vcpus than maxcpus")
    elif is_net(name):
        _plug_net(ctx, vm, name, value, enabled)
    elif is_drive(name):
        _plug_drive(ctx, vm, name, value, enabled)
    elif name == "agent":
        _plug_agent(vm, value)
    return value


def _must_wait(vm: Vm, name: str, value: str, enabled: set[str]) -> bool:
    """Whether a change can only be made at the next start, as far as the option alone says."""
    if name == "hotplug":
        both = (value, vm.conf.get("hotplug", ""))
        return any(re.search("cpu|memory", words) for words in both)
    if name in _SWITCH:
        return _SWITCH[name] not in enabled
    if name.startswith("usb"):
        able = vm.conf.get("ostype") in ("l26", "win8", "win10", "win11")
        return "usb" not in enabled or not able
    if name == "balloon":
        return (vm.conf.get("balloon", "1") != "0") != (value != "0")
    if is_net(name) or is_drive(name):
        return False
    return name not in ("agent", "cpuunits", "cpulimit")


def _plug_net(ctx: Ctx, vm: Vm, name: str, value: str, enabled: set[str]) -> None:
    new = parse_net(ctx.sim.schema, value)
    if name in vm.conf:
        old = parse_net(ctx.sim.schema, vm.conf[name])
        other = any(old.get(key) != new.get(key) for key in ("model", "macaddr", "queues", "mtu"))
        if not other and old.get("bridge") and new.get("bridge"):
            if any(old.get(key) != new.get(key) for key in ("bridge", "tag", "trunks", "firewall")):
                _check_bridge(ctx, vm, new["bridge"])
            if old["bridge"] != new["bridge"]:
                take_address(ctx, vm, new)
            return
        if "network" not in enabled:
            raise Skip
        _device_unplug(ctx, vm, name)
    if "network" not in enabled:
        raise Skip
    take_address(ctx, vm, new)
    if new.get("bridge"):
        _check_bridge(ctx, vm, new["bridge"])


def _check_bridge(ctx: Ctx, vm: Vm, bridge: str) -> None:
    if not ctx.cluster.nodes[vm.node].has_bridge(bridge):
        raise PveError(f"bridge '{bridge}' does not exist")


def _plug_drive(ctx: Ctx, vm: Vm, name: str, value: str, enabled: set[str]) -> None:
    if name in ("efidisk0", "tpmstate0"):
        raise Skip
    new = parse_drive(ctx.sim.schema, name, value)
    if name in vm.conf:
        old = parse_drive(ctx.sim.schema, name, vm.conf[name])
        if new.get("media", "disk") != old.get("media", "disk"):
            raise PveError("unable to change media type")
        if is_cdrom(old):
            if new.get("file") == "none" and is_cloudinit(old):
                register_unused(ctx, vm, old)
            return
        if new.get("file") == old.get("file"):
            if any(new.get(key) != old.get(key) for key in _NEEDS_STOP):
                raise Skip
            return
        if "disk" not in enabled:
            raise Skip
        _device_unplug(ctx, vm, name)
        register_unused(ctx, vm, old)
    if "disk" not in enabled or re.match(r"(?:ide|sata)\d", name):
        raise Skip


def _plug_memory(vm: Vm, value: str) -> str:
    """Memory grows in DIMMs to at least the wanted size, and shrinks in DIMMs to at most that
    size.
    """
    wanted = memory_mib({"memory": value})
    if vm.conf.get("numa") != "1":
        raise PveError("NUMA needs to be enabled for memory hotplug")
    sizes = [1024]  # the fixed part, then DIMMs: 32 of each size
    while sum(sizes) < max(wanted, memory_mib(vm.conf)):
        sizes.append(512 << (len(sizes) - 1) // 32)
    if wanted < memory_mib(vm.conf):
        while len(sizes) > 1 and sum(sizes) > wanted:
            sizes.pop()
    return str(sum(sizes))


def _plug_agent(vm: Vm, value: str) -> None:
    if "agent" not in vm.conf:
        raise Skip
    old, new = (_agent_props(text) for text in (vm.conf["agent"], value))
    if {key for key in {*old, *new} if old.get(key) != new.get(key)} - {"fstrim_cloned_disks"}:
        raise Skip


def _agent_props(text: str) -> dict[str, str]:
    """The settings of the agent; none count when it is switched off."""
    result: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        name = key if equals else "enabled"
        value = value if equals else key
        result[_AGENT_ALIASES.get(name, name)] = value if name == "type" else parse_bool(value)
    return result if result.get("enabled") == "1" else {}
