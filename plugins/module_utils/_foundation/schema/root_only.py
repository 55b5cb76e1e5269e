# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of a VM that only root@pam itself can change, and none of its tokens (pure).

Source: qemu-server, Qemu.pm, check_vm_modify_config_perm and the checks of single devices.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..core.errors import ValidationFailed
from ..core.propstring import parse
from .formats import format_of

# Options that need only a privilege. All other options, including new ones, can be changed only by
# root.
_BY_PRIVILEGE = frozenset(
    "cores cpu runningcpu cpulimit cpuunits numa smp sockets vcpus memory balloon shares allow-ksm"
    " acpi hotplug kvm machine runningmachine scsihw smbios1 tablet vga watchdog audio0 rng0 agent"
    " autostart bios description keyboard localtime migrate_downtime migrate_speed name onboot"
    " ostype protection reboot startdate startup tdf template freeze boot bootdisk vmstatestorage"
    " tags running-nets-host-mtu vmstate cicustom cipassword citype ciuser ciupgrade nameserver"
    " searchdomain sshkeys efidisk0 tpmstate0".split()
)
_DEVICES_BY_PRIVILEGE = re.compile(r"(?:net|ipconfig|numa|ide|sata|scsi|virtio|unused|virtiofs)\d+")
_REAL_DEVICES = re.compile(r"(serial|usb|hostpci)\d+")


def root_only(key: str, values: Iterable[str | None]) -> str | None:
    """Return why only root can change an option, in PVE's words, or None.

    `values` are the current and the new value, because only root can replace a device of the host.
    """
    if key in _BY_PRIVILEGE or _DEVICES_BY_PRIVILEGE.fullmatch(key):
        return None
    found = _REAL_DEVICES.fullmatch(key)
    if not found:
        return f"only root can set '{key}' config"
    return next(
        (why for text in values if text and (why := _real_device(found.group(1), key, text))), None
    )


def _real_device(family: str, key: str, text: str) -> str | None:
    if family == "serial":
        return None if text == "socket" else f"only root can set '{key}' config for real devices"
    device = _parts(key, text)
    if family == "usb":
        is_real = device.get("host", "spice").lower() != "spice"
        return f"only root can set '{key}' config for real devices" if is_real else None
    if "host" in device:
        return f"only root can set '{key}' config for non-mapped devices"
    return "only root@pam can set 'romfile' option" if "romfile" in device else None


def _parts(key: str, text: str) -> Mapping[str, str]:
    """Return the sub-keys of a device.

    If the schema only names the format of a usb device, a value without a key is `host`.
    """
    try:
        return parse(text, format_of(key) or {"host": {"default_key": 1}})
    except ValidationFailed:
        return {}
