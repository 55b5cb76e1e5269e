# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The argument specifications of modules vm and vm_info, without the connection."""

from __future__ import annotations

from .generated.vm import (
    Spec,
    behaviour_spec,
    guest_spec,
    hardware_spec,
    identity_spec,
    life_spec,
    owner_spec,
    place_spec,
    presets_spec,
)
from .generated.vm_info import filters_spec


def vm_spec() -> Spec:
    """Return the options of module vm."""
    return {**identity_spec(), **life_spec(), **common_spec()}


def common_spec() -> Spec:
    """Return the options that modules vm, vms and clone have in common, except the options that
    identify a VM.
    """
    return {
        **owner_spec(),
        **hardware_spec(),
        **presets_spec(),
        **place_spec(),
        **behaviour_spec(),
        **guest_spec(),
    }


def vm_info_spec() -> Spec:
    """Return the options of module vm_info."""
    return {**filters_spec(), **guest_spec()}
