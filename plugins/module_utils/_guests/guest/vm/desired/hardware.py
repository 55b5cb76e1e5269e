# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hardware that the options describe, in PVE's keys, without the disks (pure).

The options are gathered under PVE's keys first; then each value gets its canonical form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ....._foundation.core.quantities import parse_memory
from ....._foundation.schema.formats import QEMU
from ...desired.gathered import (
    GatheredOptions,
    ReservedOptions,
    add_declared,
    add_open_options,
    in_canonical_form,
)
from .devices import read_nics
from .values import TABLES

# PVE's names of options that the module has itself: they cannot be set in `options`.
_OWN = {
    "name": "name",
    "tags": "tags",
    "description": "description",
    "memory": "memory",
    "cores": "cores",
    "sshkeys": "cloud_init.ssh_keys",
    "cipassword": "cloud_init.password",
    "template": "state",
    "pool": "pool",
    "bootdisk": "boot",
}
_CLOSED = ReservedOptions(
    devices=re.compile(r"^(net|ide|sata|scsi|virtio|ipconfig|unused)\d+$"),
    device_step="Use disks and nics",
    set_by_pve=frozenset(("lock", "digest", "vmgenid", "meta")),
    pve_step="PVE sets it itself",
    own=_OWN,
)


def read_hardware(options: Mapping[str, Any]) -> GatheredOptions:
    """Return the hardware of checked options. Raises ValidationFailed."""
    hardware = GatheredOptions()
    add_declared(TABLES, "", options, hardware)
    _add_rest(options, hardware)
    _add_cloud_init(options["cloud_init"] or {}, hardware)
    _add_memory(options, hardware)
    add_open_options(options["options"] or {}, hardware, _CLOSED, QEMU)
    _add_nics(options["nics"] or [], hardware)
    return in_canonical_form(hardware, QEMU)


def _add_rest(options: Mapping[str, Any], hardware: GatheredOptions) -> None:
    """Add the options with their own rules."""
    if options["cores"] is not None:
        hardware.scalars["cores"] = options["cores"]
    if options["boot"]:
        hardware.property_strings["boot"] = {"order": options["boot"]}
    is_removed = "agent" in hardware
    if options["agent"] is not None and not is_removed:
        hardware.property_strings["agent"] = options["agent"]
    if options["serial_console"] is None:
        return
    if options["serial_console"]:
        hardware.scalars["serial0"] = "socket"
    else:
        hardware.unset.add("serial0")


def _add_memory(options: Mapping[str, Any], hardware: GatheredOptions) -> None:
    """Add memory and balloon, which must not be larger than the memory."""
    maximum = 1 << 32
    if options["memory"] is not None:
        floor = parse_memory(options["memory_floor"], what="memory_floor", minimum=16)
        maximum = parse_memory(options["memory"], minimum=floor)
        hardware.property_strings["memory"] = {"current": maximum}
    if options["balloon"] is not None and "balloon" not in hardware:
        size = parse_memory(options["balloon"], what="balloon", minimum=0, maximum=maximum)
        hardware.scalars["balloon"] = size


def _add_cloud_init(options: Mapping[str, Any], hardware: GatheredOptions) -> None:
    """Add the options of cloud-init, except the password and the SSH keys."""
    add_declared(TABLES, "cloud_init", options, hardware)
    volumes = dict(options.get("snippets", {}))
    for name in list(volumes):
        if volumes[name] is None:
            del volumes[name]
    if volumes:
        hardware.property_strings["cicustom"] = volumes


def _add_nics(items: Sequence[Mapping[str, Any]], hardware: GatheredOptions) -> None:
    for key, value in read_nics(items).items():
        if value is None:
            hardware.unset.add(key)
        else:
            hardware.property_strings[key] = value
