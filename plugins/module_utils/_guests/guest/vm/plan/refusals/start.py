# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options that Proxmox VE takes together, and with which it does not start a VM on any node (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ......_foundation.core.errors import ValidationFailed
from ......_foundation.core.propstring import sub_keys
from ......_foundation.schema.formats import parse_option
from .....kinds.vm.config.actual import drives

_FIRST_OF_XHCI = 5
_STATIC_MEMORY = 1024  # MiB that a VM with hot plug of memory has from its start
_PINNED = re.compile(r"-(\d+)\.(\d+)")
_OFF = ("", "0", "off", "no", "false")


def require_startable(label: str, config: Mapping[str, str]) -> None:
    """Raise ValidationFailed for options with which a VM does not start."""
    causes = (*_pci(config), *_usb(config), *_virtiofs(config), *_numa(config), *_disks(config))
    if causes:
        raise ValidationFailed(
            f"{label} could not be planned to run: {'; '.join(causes)}",
            "Correct these options, or do not start the VM",
            "options that do not start",
        )


def require_machine(label: str, config: Mapping[str, str]) -> None:
    """Raise ValidationFailed for a vIOMMU that PVE does not take with the machine (qemu-server:
    QemuServer/Machine.pm, assert_valid_machine_property).
    """
    option = parse_option("machine", config["machine"]) if config.get("machine") else {}
    viommu, width = option.get("viommu"), option.get("aw-bits", "")
    causes: list[str] = []
    if width and not viommu:
        causes.append("aw-bits needs viommu")
    if viommu == "intel" and width not in ("", "39", "48"):
        causes.append("viommu=intel has an aw-bits of 39 or 48")
    if viommu == "intel" and "q35" not in option.get("type", ""):
        causes.append("viommu=intel needs the machine q35")
    if causes:
        raise ValidationFailed(
            f"{label} could not be planned: {'; '.join(causes)}", "Correct machine", "machine"
        )


def _slots(config: Mapping[str, str], kind: str) -> Iterator[tuple[str, int, Mapping[str, str]]]:
    for slot in sorted(config):
        number = slot.removeprefix(kind)
        if slot != number and number.isdecimal():
            yield slot, int(number), parse_option(slot, config[slot])


def _is_on(option: Mapping[str, str], key: str) -> bool:
    return option.get(key, "") not in _OFF


def _pci(config: Mapping[str, str]) -> Iterator[str]:
    """Source: qemu-server, QemuServer/PCI.pm, parse_hostpci_devices."""
    is_q35 = "q35" in config.get("machine", "")
    vga = parse_option("vga", config["vga"]).get("type") if "vga" in config else None
    for slot, _number, option in _slots(config, "hostpci"):
        if _is_on(option, "pcie") and not is_q35:
            yield f"{slot} has pcie, and machine is not q35"
        if not _is_on(option, "legacy-igd"):
            continue
        conditions = {
            "vga is not none": vga != "none",
            "machine is q35": is_q35,
            "rombar is off": option.get("rombar", "1") in _OFF,
            "it has x-vga": _is_on(option, "x-vga"),
            "it has mdev": _is_on(option, "mdev"),
        }
        yield from (
            f"{slot} has legacy-igd, and {text}" for text, wrong in conditions.items() if wrong
        )


def _windows(config: Mapping[str, str]) -> int:
    """Return the version of Windows, as Helpers.pm (windows_version) counts it; 0 for others."""
    ostype = config.get("ostype", "")
    found = re.fullmatch(r"win(\d+)", ostype)
    return int(found[1]) if found else 5 * (ostype in ("wxp", "w2k", "w2k3", "wvista", "w2k8"))


def _usb(config: Mapping[str, str]) -> Iterator[str]:
    """Source: qemu-server, QemuServer/USB.pm, assert_usb_index_is_useable."""
    pinned = _PINNED.search(config.get("machine", ""))
    is_old = pinned is not None and (int(pinned[1]), int(pinned[2])) < (7, 1)
    if not is_old and (config.get("ostype") == "l26" or _windows(config) > 7):
        return
    for slot, number, _option in _slots(config, "usb"):
        if number >= _FIRST_OF_XHCI:
            yield f"{slot} needs machine 7.1 or newer, and ostype l26 or Windows 8 or newer"


def _virtiofs(config: Mapping[str, str]) -> Iterator[str]:
    """Source: qemu-server, QemuServer/Virtiofs.pm, assert_virtiofs_config, and Memory.pm, config."""
    for slot, _number, option in _slots(config, "virtiofs"):
        if _is_on(option, "expose-acl") and _windows(config):
            yield f"{slot} has expose-acl, and Windows cannot mount it"
        if _plugs_memory(config):
            yield f"hotplug has memory, which does not work with {slot}"


def _plugs_memory(config: Mapping[str, str]) -> bool:
    return "memory" in config.get("hotplug", "").replace(";", " ").replace(",", " ").split()


def _numa(config: Mapping[str, str]) -> Iterator[str]:
    """Source: qemu-server, QemuServer/Memory.pm, config."""
    memory = int(sub_keys(config.get("memory", "512"), "current")["current"])
    has_numa = config.get("numa", "0") not in _OFF
    nodes = list(_slots(config, "numa"))
    is_small = memory < _STATIC_MEMORY
    if _plugs_memory(config):
        conditions = {
            "hotplug has memory, and numa is off": not has_numa,
            "hotplug has memory, and numa0 to numa7 cannot be set with it": bool(nodes),
            f"hotplug has memory, and memory is below {_STATIC_MEMORY} MiB": is_small,
        }
        yield from (text for text, wrong in conditions.items() if wrong)
    if config.get("hugepages") and not has_numa:
        yield "numa needs to be enabled to use hugepages"
    if not has_numa or not nodes:
        return
    sizes = [int(float(option.get("memory") or 0)) for _slot, _number, option in nodes]
    for (slot, _number, option), size in zip(nodes, sizes, strict=True):
        if not size or "cpus" not in option:
            yield f"{slot} needs cpus and memory"
        if "hostnodes" in option and "policy" not in option:
            yield f"{slot} has hostnodes and no policy"
    if sum(sizes) != memory:
        yield f"the memory of {', '.join(node[0] for node in nodes)} is {sum(sizes)} MiB, not {memory}"


def _disks(config: Mapping[str, str]) -> Iterator[str]:
    """Source: QEMU, block/file-posix.c, raw_open_common."""
    for slot, drive in drives(config).items():
        cache = drive.get("cache", "none")
        if drive.get("aio") == "native" and cache not in ("none", "directsync"):
            yield f"{slot} has aio=native, which needs cache none or directsync, not {cache}"
