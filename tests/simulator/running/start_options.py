"""Options that PVE takes together, and at which a start dies (qemu-server: QemuServer/PCI.pm, USB.pm,
Virtiofs.pm and Memory.pm; QEMU: block/file-posix.c).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..core.api import Ctx
from ..core.state import Vm
from ..errors import PveError
from ..schema.units import parse_props
from ..volumes.drives import drives_of, memory_mib

STATIC_MEMORY = 1024


def check_options(ctx: Ctx, vm: Vm) -> None:
    """Refuse what config_to_command and QEMU refuse."""
    for name, drive in drives_of(ctx.sim.schema, vm.conf):
        if drive.get("aio") == "native" and drive.get("cache", "none") not in (
            "none",
            "directsync",
        ):
            raise PveError(f"start failed: QEMU exited with code 1 ({name})")
    for name, _device in _devices(ctx, vm, "usb"):
        if int(name[3:]) >= 5 and not _has_xhci(vm):
            raise PveError(
                f"using {name} is only possible with machine type >= 7.1 and ostype l26 or"
                " windows > 7"
            )
    _check_pci(ctx, vm)
    for _name, device in _devices(ctx, vm, "virtiofs"):
        if device.get("expose-acl") == "1" and _windows(vm):
            raise PveError(
                "Please disable ACLs for virtiofs on Windows VMs, otherwise the virtiofs shared"
                " directory cannot be mounted."
            )
    _check_memory(ctx, vm)


def _devices(ctx: Ctx, vm: Vm, kind: str) -> Iterator[tuple[str, dict[str, str]]]:
    for name in sorted(vm.conf):
        if re.fullmatch(rf"{kind}\d+", name):
            keys = ctx.sim.schema.vm_options[name].get("format")
            yield name, parse_props(keys, vm.conf[name]) if isinstance(keys, dict) else {}


def _windows(vm: Vm) -> int:
    ostype = vm.conf.get("ostype", "")
    if ostype in ("wxp", "w2k", "w2k3", "wvista", "w2k8"):
        return 5
    return int(ostype[3:]) if ostype.startswith("win") else 0


def _has_xhci(vm: Vm) -> bool:
    pinned = re.search(r"-(\d+)\.(\d+)", vm.conf.get("machine", ""))
    if pinned and (int(pinned[1]), int(pinned[2])) < (7, 1):
        return False
    return vm.conf.get("ostype") == "l26" or _windows(vm) > 7


def _check_pci(ctx: Ctx, vm: Vm) -> None:
    is_q35 = "q35" in vm.conf.get("machine", "")
    for _name, device in _devices(ctx, vm, "hostpci"):
        if device.get("pcie") == "1" and not is_q35:
            raise PveError("q35 machine model is not enabled")
        if device.get("legacy-igd") != "1":
            continue
        igd = "legacy IGD assignment"
        if vm.conf.get("vga", "").removeprefix("type=").split(",")[0] != "none":
            raise PveError(f"{igd} requires VGA mode to be 'none'")
        if device.get("rombar") == "0":
            raise PveError(f"{igd} requires rombar to be enabled")
        if device.get("x-vga") == "1":
            raise PveError(f"{igd} is not compatible with x-vga")
        if device.get("mdev"):
            raise PveError(f"{igd} is not compatible with mdev")
        if is_q35:
            raise PveError(f"{igd} is not compatible with q35")


def _check_memory(ctx: Ctx, vm: Vm) -> None:
    conf, nodes = vm.conf, list(_devices(ctx, vm, "numa"))
    has_numa, memory = conf.get("numa") == "1", memory_mib(conf)
    if "memory" in conf.get("hotplug", "").split(","):
        _check_memory_hotplug(ctx, vm)
    if conf.get("hugepages") and not has_numa:
        raise PveError("numa needs to be enabled to use hugepages")
    if not has_numa or not nodes:
        return
    for name, node in nodes:
        if not node.get("memory"):
            raise PveError(f"missing NUMA node{name[4:]} memory value")
        if "hostnodes" in node and not node.get("policy"):
            raise PveError(f"you need to define a policy for hostnode {node['hostnodes']}")
    if sum(int(node["memory"]) for _name, node in nodes) != memory:
        raise PveError("total memory for NUMA nodes must be equal to vm static memory")


def _check_memory_hotplug(ctx: Ctx, vm: Vm) -> None:
    if vm.conf.get("numa") != "1":
        raise PveError("NUMA needs to be enabled for memory hotplug")
    if any(_devices(ctx, vm, "numa")):
        raise PveError("cannot enable memory hotplugging with custom NUMA topology")
    if memory_mib(vm.conf) < STATIC_MEMORY:
        raise PveError(f"minimum memory must be {STATIC_MEMORY}MB")
    if any(_devices(ctx, vm, "virtiofs")):
        raise PveError("Memory hotplug does not work in combination with virtio-fs.")
