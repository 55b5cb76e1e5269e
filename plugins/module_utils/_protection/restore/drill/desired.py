# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the options of the modules for drills (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...._foundation.core import validate
from ...._foundation.core.errors import ValidationFailed
from ...snapshot.names import seconds
from ..desired import read_storage_map

STARTED, ABSENT = "started", "absent"
_MAX_COPIES = 100


@dataclass(frozen=True)
class CopyOptions:
    """Options of copies. `network` is an isolated bridge or VNet, or None for disconnected NICs."""

    storage: str | None
    storage_map: Mapping[str, str]
    node: str | None
    pool: str | None
    network: str | None
    vmid_range: tuple[int, int]
    timeout: int


@dataclass(frozen=True)
class CopyOrder:
    """A guest to restore: its VMID and the volume of its archive."""

    vmid: int
    archive: str


def read_copy_options(params: Mapping[str, Any]) -> CopyOptions:
    """Return the options of copies. Raises ValidationFailed."""
    storage, node = params.get("storage"), params.get("node")
    return CopyOptions(
        storage=None if storage is None else validate.storage(storage),
        storage_map=read_storage_map(params),
        node=None if node is None else validate.node(node),
        pool=params.get("copy_pool") or None,
        network=params.get("network") or None,
        vmid_range=_vmid_range(params["vmid_range"]),
        timeout=validate.count(params.get("task_timeout"), 10800, "task_timeout"),
    )


def _vmid_range(given: list[int]) -> tuple[int, int]:
    if len(given) == 2 and given[0] <= given[1]:
        first, last = given
        return validate.vmid(first), validate.vmid(last)
    raise validate.refused(
        "vmid_range", given, "is not a range", "Write its first and its last VMID"
    )


def read_copies(params: Mapping[str, Any]) -> int:
    """Return the number of copies that may exist at once. Raises ValidationFailed."""
    return validate.number(params["copies"], 1, _MAX_COPIES, "copies")


def read_orders(params: Mapping[str, Any]) -> list[CopyOrder]:
    """Return the guests of the task. Raises ValidationFailed."""
    orders: list[CopyOrder] = []
    for row in params.get("guests") or ():
        if not isinstance(row, Mapping) or not {"vmid", "archive"} <= row.keys():
            why = "does not have vmid and archive"
            raise validate.refused("guests", row, why, "Give a round of module drill_info")
        archive = validate.volume(str(row["archive"]), "guests.archive")
        orders.append(CopyOrder(validate.vmid(row["vmid"], "guests.vmid"), archive))
    vmids = [one.vmid for one in orders]
    repeated = sorted({vmid for vmid in vmids if vmids.count(vmid) > 1})
    if repeated:
        raise ValidationFailed(
            attempted=f"guests was refused: {repeated[0]} is listed twice",
            next_step="Remove one of the entries",
            reason="guests",
        )
    return orders


def read_age(params: Mapping[str, Any], option: str) -> int | None:
    """Return an age in seconds. Raises ValidationFailed."""
    text = params.get(option)
    return None if text is None else seconds(str(text), option)
