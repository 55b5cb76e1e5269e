# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is there: PVE's configuration, pending changes and status become an `Actual`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .._cluster.picture import power_of
from .._core.propstring import parse
from .._schema.formats import format_of
from .model import Actual

if TYPE_CHECKING:
    from .._api.client import Client

DRIVE = re.compile(r"^(?:(?:ide|sata|scsi|virtio)\d+|efidisk0|tpmstate0)$")
_CLOUD_INIT = re.compile(r":(?:.*[/-])?cloudinit(?:\.[a-z0-9]+)?$")


def read_actual(client: Client, vmid: int, node: str, *, status: str | None = None, pool: str | None = None) -> Actual:
    """Return the VM as it is now: one request, and a second for the power state unless `status` is given.

    Raises NotFound where the VM is not on that node.
    """
    rows = client.get("nodes", node, "qemu", vmid, "pending")
    uptime = 0
    if status is None:
        current = client.get("nodes", node, "qemu", vmid, "status", "current")
        status, uptime = power_of(current), int(current.get("uptime") or 0)
    return actual_of(vmid, node, status, rows, pool=pool, uptime=uptime)


def actual_of(
    vmid: int, node: str, status: str, pending: Iterable[Mapping[str, Any]], *, pool: str | None = None, uptime: int = 0
) -> Actual:
    """Return the `Actual` that the rows of C(GET .../pending) give (pure). An emptied value is stored as a blank."""
    live: dict[str, str] = {}
    target: dict[str, str] = {}
    for row in pending:
        key = str(row["key"])
        if row.get("value") is not None:
            live[key] = target[key] = _text(row["value"])
        if row.get("pending") is not None:
            target[key] = _text(row["pending"])
        if row.get("delete"):
            target.pop(key, None)
    digest = live.pop("digest", None)
    target.pop("digest", None)
    return Actual(vmid, node, _with_lock(status, live), live, target, digest, pool, uptime)


def with_power(actual: Actual, current: Mapping[str, Any]) -> Actual:
    """Return the VM with the power state that C(GET .../status/current) tells (pure)."""
    status = _with_lock(power_of(current), actual.live)
    return replace(actual, status=status, uptime=int(current.get("uptime") or 0), listed=False)


def _with_lock(status: str, live: Mapping[str, str]) -> str:
    return "hibernated" if status == "stopped" and live.get("lock") == "suspended" else status


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(value).strip("\n") if str(value).strip() else ""


def drives(config: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the drives of a configuration with their sub-keys, by slot."""
    return {key: parse(value, format_of(key) or {}, what=key) for key, value in config.items() if DRIVE.match(key)}


def volume_of(slot: str, text: str) -> str | None:
    """Return the volume that a drive or an unused disk of a configuration is, or None for a CD drive."""
    drive = parse(text, format_of(slot) or {}, what=slot)
    return drive.get("file") if is_disk(drive) else None


def storage_of(drive: Mapping[str, str]) -> str | None:
    """Return the storage a drive's volume is on; None for an empty CD drive or a path."""
    storage, colon, _name = drive.get("file", "").partition(":")
    return storage if colon else None


def is_cloud_init(drive: Mapping[str, str]) -> bool:
    """Tell whether a drive is the cloud-init drive."""
    return bool(_CLOUD_INIT.search(drive.get("file", "")))


def is_disk(drive: Mapping[str, str]) -> bool:
    """Tell whether a drive is a disk: no CD, no cloud-init drive."""
    return drive.get("media") != "cdrom" and not is_cloud_init(drive)
