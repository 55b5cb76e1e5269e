# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The argument specifications of modules container and container_info, without the connection."""

from __future__ import annotations

from .form import Spec
from .generated.container import hardware_spec, life_spec, safety_spec
from .generated.vm import behaviour_spec, guest_spec, identity_spec, owner_spec, place_spec
from .generated.vm_info import filters_spec


def container_spec() -> Spec:
    """Return the options of module container."""
    return {
        **identity_spec(),
        **life_spec(),
        **owner_spec(),
        **hardware_spec(),
        **place_spec(),
        **safety_spec(),
        **behaviour_spec(),
        **guest_spec(),
    }


def container_info_spec() -> Spec:
    """Return the options of module container_info."""
    return {**filters_spec(), **guest_spec()}
