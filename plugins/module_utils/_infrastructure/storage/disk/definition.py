# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The definition of a storage on a disk storage, as Proxmox VE writes it (pure).

Facts: pve-storage, PVE/API2/Disks/{ZFS,LVM,LVMThin,Directory}.pm (storage_params, verify_params),
PVE/API2/Storage/Config.pm (create_or_update).
"""

from __future__ import annotations

from typing import Any

from ...._foundation.core.errors import FleetError
from ...._foundation.resource.change import DesiredResource
from ...._foundation.resource.decide import read_desired
from ...._foundation.resource.table import Values
from ..table import STORAGE
from .model import DIRECTORY, LVM, MOUNTS, THIN, ZFS
from .plan_storage import DesiredStorage

_GUESTS = ("images", "rootdir")
_FILES = ("backup", "images", "iso", "rootdir", "snippets", "vztmpl")
# The other options of a new definition.
_NEW: dict[str, dict[str, Any]] = {
    ZFS: {"content": _GUESTS},
    LVM: {"content": _GUESTS, "shared": False},
    THIN: {"content": _GUESTS},
    DIRECTORY: {"content": _FILES, "is_mountpoint": "yes"},
}


def place_of(desired: DesiredStorage) -> dict[str, str]:
    """Return the options of a storage that identify its pool, volume group or directory."""
    places = {
        ZFS: {"type": "zfspool", "pool": desired.name},
        LVM: {"type": "lvm", "vgname": desired.name},
        THIN: {"type": "lvmthin", "vgname": desired.volume_group, "thinpool": desired.name},
        DIRECTORY: {"type": "dir", "path": f"{MOUNTS}{desired.name}"},
    }
    return places[desired.type]


def desired_definition(desired: DesiredStorage, known: Values | None) -> DesiredResource:
    """Return the desired definition of the storage; `known` is its present definition, or None.

    Only adds the node to an existing definition. Raises Conflict if that has another place.
    """
    options: dict[str, Any] = {"name": desired.name, **place_of(desired)}
    if known is None:
        return read_desired(STORAGE, {**options, **_NEW[desired.type], "nodes": [desired.node]})
    require_place(desired, known)
    if known["nodes"]:
        options["nodes"] = sorted({*known["nodes"], desired.node})
    return read_desired(STORAGE, options)


def require_place(desired: DesiredStorage, known: Values) -> None:
    """Raise Conflict for a definition with another pool, volume group or directory."""
    for option, value in place_of(desired).items():
        if known[option] != value:
            raise _exists(desired, f"with {option} {known[option]}")


def require_new(desired: DesiredStorage, known: Values | None) -> None:
    """Raise Conflict if a storage of this name exists and the node cannot be added to it."""
    if known is None:
        return
    require_place(desired, known)
    if not known["nodes"] or desired.node in known["nodes"]:
        raise _exists(desired, f"on node {desired.node}")


def _exists(desired: DesiredStorage, how: str) -> FleetError:
    return desired.refused(
        f"storage {desired.name} exists {how}",
        "Set add_storage=false, or use another name",
        "storage exists",
    )
