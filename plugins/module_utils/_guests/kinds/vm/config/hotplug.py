# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Predicts which changes of a running VM are live at once and which wait for a stop (pure).

The rules come from qemu-server, QemuServer.pm: $fast_plug_option, vmconfig_hotplug_pending,
vmconfig_update_net, vmconfig_update_disk. Check mode uses the prediction; after a change the
pending options are read from PVE.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ....._foundation.schema.formats import parse_option
from ....._foundation.schema.values import changed_sub_keys, hotplug_features

# Options of cloud-init: they change in the configuration at once, and on the cloud-init drive when
# it is regenerated.
_CLOUD_INIT = frozenset(
    "citype ciuser cipassword ciupgrade cicustom ipconfig searchdomain nameserver sshkeys".split()
)
# Options that change at once.
_FAST = _CLOUD_INIT.union(
    "description hookscript lock migrate_downtime migrate_speed name onboot protection shares"
    " startup tags unused vmstatestorage cpuunits cpulimit".split()
)
_REPLUGGED_NIC = frozenset("model macaddr queues mtu".split())
_DRIVES = ("ide", "sata", "scsi", "virtio")
_FIXED_DRIVE = frozenset("aio discard iothread queues product cache ssd vendor ro".split())
# The hotplug feature that an option needs to change while the VM runs.
_FEATURE_OF = {"vcpus": "cpu", "memory": "memory", "tablet": "usb"}
# The hotplug feature with which a device is added or removed; PVE cannot plug other devices.
_PLUGGED_WITH = {"net": "network", "scsi": "disk", "virtio": "disk"}
_WINDOWS = re.compile(r"^win(\d+)\Z")
_MAX_DIMMS = 256


def is_cloud_init_key(key: str) -> bool:
    """Return whether an option is part of the guest's cloud-init data."""
    return _family_of(key) in _CLOUD_INIT


def _family_of(key: str) -> str:
    """Return the name of an option without the number of a device."""
    return key.rstrip("0123456789")


def waits_for_stop(key: str, old: str | None, new: str | None, live: Mapping[str, str]) -> bool:
    """Return whether a change of `key` waits for a stop; None stands for an unset option."""
    family = _family_of(key)
    if family in _FAST:
        return False
    if family in _WHOLE:
        return _WHOLE[family](old, new, live)
    features = hotplug_features(live.get("hotplug"))
    if family in _FEATURE_OF:
        return _FEATURE_OF[family] not in features
    if old is None or new is None:
        return _PLUGGED_WITH.get(family) not in features
    return _sub_keys_wait(key, old, new, features)


def _balloon_waits(old: str | None, new: str | None, _live: Mapping[str, str]) -> bool:
    """Return whether the balloon device is added or removed, which a running VM cannot do."""
    had_device = old != "0"
    has_device = new != "0"
    return had_device != has_device


def _hotplug_waits(_old: str | None, new: str | None, live: Mapping[str, str]) -> bool:
    """Return whether CPUs or memory can be hotplugged before the change or after it."""
    before = hotplug_features(live.get("hotplug"))
    after = hotplug_features(new)
    either = before | after
    return not either.isdisjoint(("cpu", "memory"))


def _usb_waits(_old: str | None, _new: str | None, live: Mapping[str, str]) -> bool:
    """Return whether PVE cannot plug USB devices: it can for Linux, and Windows 8 and newer."""
    features = hotplug_features(live.get("hotplug"))
    if "usb" not in features:
        return True
    ostype = live.get("ostype", "")
    found = _WINDOWS.match(ostype)
    if found is None:
        return ostype != "l26"
    version = int(found.group(1))
    return version < 8


# Rules for a value as a whole.
_WHOLE: Mapping[str, Callable[[str | None, str | None, Mapping[str, str]], bool]] = {
    "balloon": _balloon_waits,
    "hotplug": _hotplug_waits,
    "usb": _usb_waits,
}


def _sub_keys_wait(key: str, old: str, new: str, features: frozenset[str]) -> bool:
    """Return whether a change of sub-keys waits; `features` are the hotplug features in use."""
    family = _family_of(key)
    if family not in ("agent", "net", *_DRIVES):
        return True
    changed = changed_sub_keys(key, old, new)
    if family == "agent":
        return not changed <= {"fstrim_cloned_disks"}
    if family == "net":
        if "network" in features:
            return False
        old_bridge = parse_option(key, old).get("bridge")
        new_bridge = parse_option(key, new).get("bridge")
        # the NIC must be unplugged and plugged in again
        return not changed.isdisjoint(_REPLUGGED_NIC) or not old_bridge or not new_bridge
    if parse_option(key, old).get("media") == "cdrom":
        return False
    if "file" in changed:
        return "disk" not in features
    return not changed.isdisjoint(_FIXED_DRIVE)


def in_dimms(wanted: int, config: Mapping[str, str]) -> int:
    """Return the MiB of memory that a VM with memory hotplug gets when `wanted` are requested.

    The memory is a fixed part, and modules of growing size, 32 of each size (Memory.pm,
    foreach_dimm). A value below the fixed part is returned unchanged.
    """
    total = 1024
    size = 512
    if config.get("hugepages") == "1024":
        total = 1024 * int(config.get("sockets", "1"))
        size = 1024
    if wanted <= total:
        return wanted
    for number in range(_MAX_DIMMS):
        doubled = number // 32
        if total < wanted:
            total += size << doubled
    return total
