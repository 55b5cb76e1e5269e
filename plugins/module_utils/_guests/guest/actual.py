# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Configuration, pending changes and status of a guest become an `Actual` (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..._foundation.cluster.state import power_of
from ..kinds.kind import Kind
from ..kinds.model import Actual


def actual_of(
    kind: Kind,
    vmid: int,
    node: str,
    status: str,
    pending: Iterable[Mapping[str, Any]],
    *,
    pool: str | None = None,
) -> Actual:
    """Return the `Actual` for the rows of C(GET .../pending); a blank there is an empty value."""
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
        kind=kind,
        vmid=vmid,
        node=node,
        status=_with_lock(status, live),
        live=live,
        target=target,
        digest=digest,
        pool=pool,
    )


def unconverted_disks(actual: Actual, bases: Collection[str]) -> list[str]:
    """Return the disks of a template that an interrupted conversion did not convert, by slot.

    `bases` are the storages with base volumes. PVE marks the guest as a template, and then converts
    one disk after the other (qemu-server: API2/Qemu.pm, template; QemuServer.pm, template_create).
    """
    if not actual.template:
        return []
    found: list[str] = []
    for slot, disk in actual.kind.disks_in(actual.live).items():
        storage, colon, volume = disk.get("file", "").partition(":")
        is_base = volume.rpartition("/")[2].startswith(("base-", "basevol-"))
        if colon and storage in bases and not is_base:
            found.append(slot)
    return sorted(found)


def with_power(actual: Actual, current: Mapping[str, Any]) -> Actual:
    """Return the guest with the power state of C(GET .../status/current)."""
    status = _with_lock(power_of(current), actual.live)
    uptime = int(current.get("uptime") or 0)
    return replace(actual, status=status, uptime=uptime, listed=False)


def _with_lock(status: str, live: Mapping[str, str]) -> str:
    """Return the status; a stopped guest whose memory is on disk is hibernated."""
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
    return "" if is_blank else text.strip("\n")
