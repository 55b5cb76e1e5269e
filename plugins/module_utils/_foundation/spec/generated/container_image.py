# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from container_image.yml: do not edit.
"""The options of module container_image."""

from ..environment import limit
from ..form import Spec


def container_image_spec() -> Spec:
    """Return the options that choose a container and its image."""
    return {
        "name": {"type": "str"},
        "vmid": {"type": "int"},
        "tenant": {"type": "str"},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "source": {"type": "str"},
        "shared_sources": {"type": "list", "elements": "str"},
        "state": {
            "type": "str",
            "choices": ["replaced", "returned", "confirmed"],
            "default": "replaced",
        },
        "start": {"type": "bool", "default": False},
        "force": {"type": "bool", "default": False},
        "shutdown_timeout": limit(60, "PROXMOX_SHUTDOWN_TIMEOUT"),
        "task_timeout": limit(300, "PROXMOX_TASK_TIMEOUT"),
    }
