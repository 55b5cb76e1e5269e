# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from disk.yml: do not edit.
"""The options of modules disk and disk_info."""

from ..form import Spec


def disk_spec() -> Spec:
    """Return the options of module disk."""
    return {
        "node": {"type": "str", "required": True},
        "disk": {"type": "str", "required": True},
        "state": {"type": "str", "required": True, "choices": ["initialized", "wiped"]},
        "confirm": {"type": "str"},
    }


def disk_info_spec() -> Spec:
    """Return the options of module disk_info."""
    return {"node": {"type": "str"}, "smart": {"type": "bool", "default": False}}
