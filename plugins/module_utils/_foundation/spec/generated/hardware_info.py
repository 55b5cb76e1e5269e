# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from hardware_info.yml: do not edit.
"""The options of module hardware_info."""

from ..form import Spec


def hardware_info_spec() -> Spec:
    """Return the options of module hardware_info."""
    return {
        "type": {"type": "str", "required": True, "choices": ["pci", "usb"]},
        "node": {"type": "str"},
        "pci_class_blacklist": {"type": "list", "elements": "str"},
    }
