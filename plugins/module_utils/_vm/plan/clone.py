# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The copy of a VM as PVE makes it (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..._guest.model import Actual
from ..._schema.formats import parse_option, render_option
from ..config.actual import drives, is_cloud_init, is_disk, storage_of
from ..kind import VM

_NIC = re.compile(r"^net\d+$")
# Options that a clone does not take over from its source (qemu-server, clone_vm).
_NOT_CLONED = frozenset(
    "template lock digest parent vmgenid smbios1 meta snapstate cipassword".split()
)


def clone_of(source: Actual, *, vmid: int, node: str, data: Mapping[str, Any]) -> Actual:
    """Return the expected state of a clone before it is configured (qemu-server: clone_vm)."""
    config: dict[str, str] = {}
    for key, value in source.target.items():
        if key in _NOT_CLONED or key.startswith(("unused", "snap")):
            continue
        config[key] = value
        if _NIC.match(key):
            config[key] = without_mac(key, value)
    storage = data.get("storage")
    if storage:
        config |= drives_on(storage, config)
    config["name"] = data.get("name") or f"Copy-of-VM-{source.name}"
    config["description"] = data["description"]
    return Actual(VM, vmid, node, "stopped", live=config, target=config, pool=data.get("pool"))


def drives_on(storage: str, config: Mapping[str, str]) -> dict[str, str]:
    """Return the drives that a full clone to one storage puts there."""
    moved = {}
    for slot, drive in drives(config).items():
        if not storage_of(drive):
            continue
        if is_cloud_init(drive):
            moved[slot] = f"{storage}:vm-cloudinit,media=cdrom"
        elif is_disk(drive):
            _volume, _comma, options = config[slot].partition(",")
            moved[slot] = f"{storage}:new,{options}"
    return moved


def without_mac(key: str, text: str) -> str:
    """Return the option of a NIC without its MAC address."""
    values = parse_option(key, text)
    values.pop("macaddr", None)
    return render_option(key, values)
