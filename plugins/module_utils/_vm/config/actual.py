# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PVE's configuration, pending changes and status become an `Actual` (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..._cluster.state import power_of
from ..._guest.identity import Identity, identity_in
from ..._schema.formats import parse_option
from ..model import Actual

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


def actual_of(
    vmid: int,
    node: str,
    status: str,
    pending: Iterable[Mapping[str, Any]],
    *,
    pool: str | None = None,
    uptime: int = 0,
) -> Actual:
    """Return the `Actual` for the rows of C(GET .../pending).

    PVE stores an empty value as a blank.
    """
    live: dict[str, str] = {}
    target: dict[str, str] = {}
    for row in pending:
        key = str(row["key"])
        current, pending_value = row.get("value"), row.get("pending")
        if current is not None:
            live[key] = _text(current)
            target[key] = live[key]
        if pending_value is not None:
            target[key] = _text(pending_value)
        if row.get("delete"):
            target.pop(key, None)
    digest = live.pop("digest", None)
    target.pop("digest", None)
    return Actual(
        vmid=vmid,
        node=node,
        status=_with_lock(status, live),
        live=live,
        target=target,
        digest=digest,
        pool=pool,
        uptime=uptime,
    )


def with_power(actual: Actual, current: Mapping[str, Any]) -> Actual:
    """Return the VM with the power state of C(GET .../status/current)."""
    status = _with_lock(power_of(current), actual.live)
    uptime = int(current.get("uptime") or 0)
    return replace(actual, status=status, uptime=uptime, listed=False)


def _with_lock(status: str, live: Mapping[str, str]) -> str:
    """Return the status; a stopped VM whose memory is on disk is hibernated."""
    is_saved = live.get("lock") == "suspended"
    if status == "stopped" and is_saved:
        return "hibernated"
    return status


def _text(value: Any) -> str:
    """Return a value of PVE's answer as text; PVE stores an empty one as a blank."""
    if isinstance(value, bool):
        return str(int(value))
    text = str(value)
    is_blank = not text.strip()
    if is_blank:
        return ""
    return text.strip("\n")


def identity_of(actual: Actual) -> Identity:
    """Return what tells the VM from another one of its number."""
    volumes: dict[str, str] = {}
    for slot in filter(VOLUME.match, actual.target):
        volume = volume_of(slot, actual.target[slot])
        if volume:
            volumes[slot] = volume
    return identity_in(actual.live, name=actual.name, volumes=volumes)


def drives(config: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the drives of a configuration with their sub-keys, by slot."""
    found: dict[str, dict[str, str]] = {}
    for slot in filter(DRIVE.match, config):
        found[slot] = parse_option(slot, config[slot])
    return found


def volume_of(slot: str, text: str) -> str | None:
    """Return the volume of a drive or an unused disk, or None for a CD drive."""
    drive = parse_option(slot, text)
    if not is_disk(drive):
        return None
    return drive.get("file")


def storage_of(drive: Mapping[str, str]) -> str | None:
    """Return the storage a drive's volume is on; None for an empty CD drive or a path."""
    storage, colon, _name = drive.get("file", "").partition(":")
    if not colon:
        return None
    return storage


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
