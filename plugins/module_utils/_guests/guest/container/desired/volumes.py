# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The root file system and the mount points that the options describe (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ....._foundation.core import validate
from ....._foundation.schema.formats import rule_of
from ....._foundation.schema.lxc import LXC
from ....kinds.hardware import MOVED, Disk
from ...desired import canonical
from ...desired.devices import add_open, declared, require_receiver
from .values import TABLES

_SLOT = re.compile(r"^(?:mp|unused)\d+$")
_UNUSED = re.compile(r"^unused\d+$")
_VOLUME_KEYS = frozenset(("volume", "size"))


def read_volumes(
    rootfs: Mapping[str, Any] | None, mounts: Sequence[Mapping[str, Any]]
) -> tuple[Disk, ...]:
    """Return the volumes of a container. Raises ValidationFailed."""
    volumes: dict[str, Disk] = {}
    if rootfs is not None:
        volumes["rootfs"] = _volume("rootfs", "rootfs", "rootfs", rootfs)
    for item in mounts:
        slot = str(item["name"])
        _require_mount(slot, item)
        if slot in volumes:
            raise validate.refused("mounts", slot, "is listed twice", "List each mount point once")
        volumes[slot] = _volume(slot, "mounts", f"mounts.{slot}", item)
    return tuple(volumes.values())


def _require_mount(slot: str, item: Mapping[str, Any]) -> None:
    """Raise ValidationFailed for an invalid slot name, or options that exclude each other."""
    is_slot = _SLOT.match(slot) is not None
    if not is_slot or not rule_of(slot, schema=LXC):
        raise validate.refused(
            "mounts", slot, "is not a mount point", "Use a name such as mp0; rootfs has an option"
        )
    if slot.startswith("unused") and item.get("state") not in ("absent", MOVED):
        raise validate.refused(
            "mounts", slot, "is a volume that no mount point uses", "It can only be absent or moved"
        )
    allowed = _UNUSED if slot.startswith("unused") else _SLOT  # API2/LXC.pm, move_volume
    require_receiver(f"mounts.{slot}", slot, item, allowed)
    if not item.get("volume"):
        return
    for name in ("size", "storage", "storage_class"):
        if item.get(name) is not None:
            raise validate.refused(
                f"mounts.{slot}.{name}",
                item[name],
                "is given beside an existing volume",
                "Leave it out, or leave volume out for a new one",
            )


def _volume(slot: str, place: str, path: str, item: Mapping[str, Any]) -> Disk:
    """Return the volume that an item describes."""
    values = declared(TABLES, place, item)
    add_open(path, item, values, _VOLUME_KEYS)
    return Disk(
        slot=slot,
        state=item.get("state") or "present",
        size=item.get("size"),
        storage=item.get("storage") or None,
        volume=item.get("volume") or None,
        bwlimit=item.get("bwlimit"),
        target_vmid=item.get("target_vmid"),
        target_slot=item.get("target_slot") or slot,
        allocation=item.get("type"),
        options=canonical.sub_keys(slot, values, LXC),
    )
