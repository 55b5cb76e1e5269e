# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from clone.yml: do not edit.
"""The options of module clone except the options of a VM."""

from ..environment import limit
from ..form import Spec


def clone_spec() -> Spec:
    """Return the options of a clone that a VM does not have, or has in another form."""
    return {
        "source": {"type": "str", "required": True},
        "state": {
            "type": "str",
            "choices": ["present", "started", "stopped"],
            "default": "present",
        },
        "full": {"type": "bool"},
        "storage": {"type": "str"},
        "format": {"type": "str", "choices": ["raw", "qcow2", "vmdk"]},
        "snapshot": {"type": "str"},
        "allow_privileged": {"type": "bool", "default": True},
        "pool": {"type": "str"},
        "wait_for": {"type": "str", "choices": ["none", "agent", "address"], "default": "none"},
        "wait_timeout": limit(300, "PROXMOX_WAIT_TIMEOUT"),
    }
