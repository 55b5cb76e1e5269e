# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The drives of a VM's configuration (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ....._foundation.schema.formats import parse_option
from ...nics import bridges_by_nic

DRIVE = re.compile(r"^(?:(?:ide|sata|scsi|virtio)\d+|efidisk0|tpmstate0)$")
# A drive, or a disk that no drive uses.
VOLUME = re.compile(rf"{DRIVE.pattern}|^unused\d+$")
# Disks that hold the state of the firmware: a VM cannot boot from them, and PVE decides their size.
FIRMWARE = ("efidisk0", "tpmstate0")
# The kinds of drives.
DISK = "a disk"
CD = "a CD drive"
CLOUD_INIT = "the cloud-init drive"
_CLOUD_INIT = re.compile(r":(?:.*[/-])?cloudinit(?:\.[a-z0-9]+)?$")


def volumes_in(config: Mapping[str, str]) -> dict[str, str]:
    """Return the volumes of the disks of a configuration by slot, unused disks included."""
    volumes: dict[str, str] = {}
    for slot in filter(VOLUME.match, config):
        volume = volume_of(slot, config[slot])
        if volume:
            volumes[slot] = volume
    return volumes


def drives(config: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the drives of a configuration with their sub-keys, by slot."""
    return {slot: parse_option(slot, config[slot]) for slot in filter(DRIVE.match, config)}


def bridges_of(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the bridge of each NIC of a configuration, in the order of the NICs."""
    return bridges_by_nic(config, parse_option)


def volume_of(slot: str, text: str) -> str | None:
    """Return the volume of a drive or an unused disk, or None for a CD drive."""
    drive = parse_option(slot, text)
    return drive.get("file") if is_disk(drive) else None


def storage_of(drive: Mapping[str, str]) -> str | None:
    """Return the storage a drive's volume is on; None for an empty CD drive or a path."""
    storage, colon, _name = drive.get("file", "").partition(":")
    return storage if colon else None


def kind_of(drive: Mapping[str, str]) -> str:
    """Return which of the three kinds of drives it is, as messages name it."""
    volume = drive.get("file", "")
    if _CLOUD_INIT.search(volume):
        return CLOUD_INIT
    if drive.get("media") == "cdrom":
        return CD
    return DISK


def is_cloud_init(drive: Mapping[str, str]) -> bool:
    """Return whether a drive is the cloud-init drive."""
    return kind_of(drive) == CLOUD_INIT


def is_disk(drive: Mapping[str, str]) -> bool:
    """Return whether a drive is a disk, neither a CD drive nor the cloud-init drive."""
    return kind_of(drive) == DISK


def is_cd(drive: Mapping[str, str]) -> bool:
    """Return whether a drive is a CD drive, but not the cloud-init drive."""
    return kind_of(drive) == CD
