# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which changes of a running VM are live at once and which wait for a stop (pure).

The rules are those of qemu-server, QemuServer.pm: $fast_plug_option, vmconfig_hotplug_pending, vmconfig_update_net,
vmconfig_update_disk. A prediction for check mode; after a change the answer is read from PVE.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .._core.propstring import parse
from .._schema.formats import format_of

# Options of cloud-init: in the configuration at once, in the guest's drive after it is regenerated.
CLOUD_INIT = frozenset("citype ciuser cipassword ciupgrade cicustom searchdomain nameserver sshkeys".split())
_FAST = frozenset(
    "description hookscript lock migrate_downtime migrate_speed name onboot protection shares startup tags "
    "vmstatestorage cpuunits cpulimit".split()
)
_REPLUGGED_NIC = frozenset("model macaddr queues mtu".split())
_FIXED_DRIVE = frozenset("aio discard iothread queues product cache ssd vendor ro".split())
_DEVICE = re.compile(r"^(net|scsi|virtio|ide|sata|usb)\d+$")


def is_cloud_init_key(key: str) -> bool:
    """Tell whether an option is part of the guest's cloud-init data."""
    return key in CLOUD_INIT or key.startswith("ipconfig")


def waits_for_stop(key: str, old: str | None, new: str | None, live: Mapping[str, str]) -> bool:
    """Tell whether changing `key` from `old` to `new` (None: not there) on a running VM waits for a stop."""
    features = hotplug_features(live)
    if key in _FAST or key.startswith("unused") or is_cloud_init_key(key):
        return False
    if key in ("vcpus", "memory"):
        return ("cpu" if key == "vcpus" else "memory") not in features
    if key == "balloon":  # the device itself cannot come or go
        return (old == "0") != (new == "0")
    if key == "agent" and old is not None and new is not None:
        return bool(_changed(key, old, new)[2] - {"fstrim_cloned_disks"})
    if key == "tablet":
        return "usb" not in features
    if key == "hotplug":
        return bool({"cpu", "memory"} & (features | hotplug_features({"hotplug": new or "1"})))
    found = _DEVICE.match(key)
    if not found:
        return True
    family = found.group(1)
    if family == "net":
        return "network" not in features and (old is None or new is None or _nic_is_replugged(key, old, new))
    if family == "usb":
        return "usb" not in features or not _takes_usb(live.get("ostype", ""))
    if old is not None and new is not None:
        return _drive_waits(key, old, new, features)
    return "disk" not in features or family in ("ide", "sata")


def _takes_usb(ostype: str) -> bool:
    """Tell whether PVE plugs USB devices into a running guest of that kind: Linux, or Windows 8 and newer."""
    return ostype == "l26" or (ostype.startswith("win") and ostype[3:].isdigit() and int(ostype[3:]) > 7)


def hotplug_features(live: Mapping[str, str]) -> frozenset[str]:
    """Return the hotplug features that are on; 1 means PVE's default (network, disk, usb)."""
    text = live.get("hotplug", "1")
    if text == "0":
        return frozenset()
    return frozenset(("network", "disk", "usb") if text == "1" else re.split(r"[,; ]+", text))


def in_dimms(wanted: int, config: Mapping[str, str]) -> int:
    """Return the MiB of memory that a VM with memory hotplug has when `wanted` are asked for (Memory.pm, foreach_dimm).

    It has a fixed part and modules beside it, 32 of each size. Less than the fixed part is returned as it is.
    """
    huge = config.get("hugepages") == "1024"
    total = 1024 * (int(config.get("sockets") or 1) if huge else 1)
    size = 1024 if huge else 512
    if wanted <= total:
        return wanted
    for number in range(256):
        if total >= wanted:
            break
        total += size << number // 32
    return total


def _changed(key: str, old: str, new: str) -> tuple[dict[str, str], dict[str, str], set[str]]:
    fmt = format_of(key) or {}
    before, after = parse(old, fmt), parse(new, fmt)
    return before, after, {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def _nic_is_replugged(key: str, old: str, new: str) -> bool:
    before, after, changed = _changed(key, old, new)
    return bool(changed & _REPLUGGED_NIC) or not (before.get("bridge") and after.get("bridge"))


def _drive_waits(key: str, old: str, new: str, features: frozenset[str]) -> bool:
    before, _after, changed = _changed(key, old, new)
    if key.startswith(("efidisk", "tpmstate")):
        return True
    if before.get("media") == "cdrom":
        return False
    if "file" in changed:
        return "disk" not in features
    return bool(changed & _FIXED_DRIVE)
