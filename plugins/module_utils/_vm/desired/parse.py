# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parses the options of a module into values, once, and nowhere behind it (pure).

Names of the estate are replaced, each value is checked, and the rest is put into `DesiredVm` and
`Settings`. Every refusal is a ValidationFailed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from ..._guest.desired.guest import GuestOptions, is_exact, options_of, read_guest
from ..._guest.desired.values import is_blank
from ..kind import VM
from ..model import DesiredVm, Hardware
from .devices import read_disks
from .hardware import read_hardware
from .presets import resolve
from .userdata import read_snippet
from .values import checked

VmOptions: TypeAlias = GuestOptions[DesiredVm]


def read_options(params: Mapping[str, Any]) -> VmOptions:
    """Return the parsed options.

    `params` are the module's, checked by its argument specification.
    """
    options = checked(resolve(params))
    return options_of(_desired(options), options)


def _desired(options: Mapping[str, Any]) -> DesiredVm:
    """Return the VM that checked options describe, in PVE's keys with canonical values."""
    keys = read_hardware(options)
    cloud_init = options["cloud_init"] or {}
    password = cloud_init.get("password")
    has_drive = options["cloud_init"] is not None
    hardware = Hardware(
        scalars=keys.scalars,
        property_strings=keys.property_strings,
        unset=frozenset(keys.unset),
        disks=read_disks(options["disks"] or []),
        disks_exact=is_exact(options, "disks"),
        nics_exact=is_exact(options, "nics"),
        snippet=read_snippet(cloud_init),
        ssh_keys=cloud_init.get("ssh_keys"),
        password=None if is_blank(password) else password,
        update_password=cloud_init.get("update_password") or "on_create",
        cloud_init_drive=cloud_init["drive"] if has_drive else None,
        cloud_init_storage=cloud_init.get("storage"),
        default_storage=options["default_storage"],
    )
    return DesiredVm(read_guest(VM, options), hardware)
