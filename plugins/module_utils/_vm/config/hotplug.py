# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which changes of a running VM are live at once and which wait for a stop (pure).

The rules are those of qemu-server, QemuServer.pm: $fast_plug_option, vmconfig_hotplug_pending,
vmconfig_update_net, vmconfig_update_disk. A prediction for check mode; after a change the answer is
read from PVE.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..._schema.formats import parse_option

# Options of cloud-init: in the configuration at once, in the guest's drive after it is regenerated.
CLOUD_INIT = frozenset(
    "citype ciuser cipassword ciupgrade cicustom searchdomain nameserver sshkeys".split()
)
_FAST = frozenset(
    "description hookscript lock migrate_downtime migrate_speed name onboot protection shares"
    " startup tags vmstatestorage cpuunits cpulimit".split()
)
_REPLUGGED_NIC = frozenset("model macaddr queues mtu".split())
_FIXED_DRIVE = frozenset("aio discard iothread queues product cache ssd vendor ro".split())
# The hotplug feature that an option needs to change while the VM runs.
_FEATURE_OF = {"vcpus": "cpu", "memory": "memory", "tablet": "usb"}
# Buses whose drives PVE cannot plug while a VM runs.
_FIXED_BUSES = frozenset(("ide", "sata"))
_WINDOWS = re.compile(r"^win(\d+)$")
_MOST_DIMMS = 256
_DEVICE = re.compile(r"^(net|scsi|virtio|ide|sata|usb)\d+$")


def is_cloud_init_key(key: str) -> bool:
    """Return whether an option is part of the guest's cloud-init data."""
    return key in CLOUD_INIT or key.startswith("ipconfig")


def waits_for_stop(key: str, old: str | None, new: str | None, live: Mapping[str, str]) -> bool:
    """Return whether a change of `key` on a running VM waits for a stop.

    None: the option is unset.
    """
    if key in _FAST or key.startswith("unused") or is_cloud_init_key(key):
        return False
    features = hotplug_features(live)
    if key in _FEATURE_OF:
        return _FEATURE_OF[key] not in features
    if key == "balloon":
        return _balloon_waits(old, new)
    if key == "agent":
        return _agent_waits(old, new)
    if key == "hotplug":
        return _hotplug_waits(new, features)
    return _device_waits(key, old, new, live)


def _balloon_waits(old: str | None, new: str | None) -> bool:
    """Return whether the balloon device itself comes or goes, which a running VM cannot do."""
    had_device = old != "0"
    has_device = new != "0"
    return had_device != has_device


def _agent_waits(old: str | None, new: str | None) -> bool:
    if old is None or new is None:
        return True
    changed = _changed("agent", old, new)
    return not changed <= {"fstrim_cloned_disks"}


def _hotplug_waits(new: str | None, features: frozenset[str]) -> bool:
    """Return whether CPUs or memory can be hotplugged before the change or after it."""
    after = hotplug_features({"hotplug": new or "1"})
    either = features | after
    return not either.isdisjoint(("cpu", "memory"))


def _device_waits(key: str, old: str | None, new: str | None, live: Mapping[str, str]) -> bool:
    found = _DEVICE.match(key)
    if not found:
        return True
    family = found.group(1)
    features = hotplug_features(live)
    if family == "net":
        return _nic_waits(key, old, new, features)
    if family == "usb":
        can_plug = _takes_usb(live.get("ostype", ""))
        return not can_plug or "usb" not in features
    if old is not None and new is not None:
        return _drive_waits(key, old, new, features)
    if family in _FIXED_BUSES:
        return True
    return "disk" not in features


def _takes_usb(ostype: str) -> bool:
    """Return whether PVE hotplugs USB devices of that guest: Linux, or Windows 8 and newer."""
    if ostype == "l26":
        return True
    found = _WINDOWS.match(ostype)
    if not found:
        return False
    return int(found.group(1)) > 7


def hotplug_features(live: Mapping[str, str]) -> frozenset[str]:
    """Return the hotplug features that are on; 1 means PVE's default (network, disk, usb)."""
    text = live.get("hotplug", "1")
    if text == "0":
        return frozenset()
    if text == "1":
        return frozenset(("network", "disk", "usb"))
    return frozenset(re.split(r"[,; ]+", text))


def in_dimms(wanted: int, config: Mapping[str, str]) -> int:
    """Return the MiB of memory that a VM with memory hotplug gets when `wanted` are asked for.

    It has a fixed part, and modules of growing size, 32 of each (Memory.pm, foreach_dimm). Less
    than the fixed part is returned as it is.
    """
    total = 1024
    size = 512
    if config.get("hugepages") == "1024":
        total = 1024 * int(config.get("sockets") or 1)
        size = 1024
    if wanted <= total:
        return wanted
    for number in range(_MOST_DIMMS):
        if total >= wanted:
            break
        doubled = number // 32
        total += size << doubled
    return total


def _changed(key: str, old: str, new: str) -> set[str]:
    """Return the names of the sub-keys that differ."""
    before = parse_option(key, old)
    after = parse_option(key, new)
    differing: set[str] = set()
    for name in before.keys() | after.keys():
        if before.get(name) != after.get(name):
            differing.add(name)
    return differing


def _nic_waits(key: str, old: str | None, new: str | None, features: frozenset[str]) -> bool:
    """Return whether a NIC would have to be plugged, and cannot be: added, removed or replaced."""
    if "network" in features:
        return False
    if old is None or new is None:
        return True
    if _changed(key, old, new) & _REPLUGGED_NIC:
        return True
    old_bridge = parse_option(key, old).get("bridge")
    new_bridge = parse_option(key, new).get("bridge")
    return not old_bridge or not new_bridge


def _drive_waits(key: str, old: str, new: str, features: frozenset[str]) -> bool:
    if parse_option(key, old).get("media") == "cdrom":
        return False
    changed = _changed(key, old, new)
    if "file" in changed:
        return "disk" not in features
    return not changed.isdisjoint(_FIXED_DRIVE)
