# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from ha_state.yml: do not edit.
"""The options of modules ha_state and ha_state_info."""

from ..environment import limit
from ..form import Spec


def ha_state_spec() -> Spec:
    return {
        "armed_state": {"type": "str", "required": True, "choices": ["armed", "disarmed"]},
        "resource_mode": {"type": "str", "choices": ["freeze", "ignore"]},
        "wait_timeout": limit(300, "PROXMOX_WAIT_TIMEOUT"),
    }


def ha_state_info_spec() -> Spec:
    """Return the options of module ha_state_info."""
    return {}
