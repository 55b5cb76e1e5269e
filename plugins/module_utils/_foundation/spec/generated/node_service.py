# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from node_service.yml: do not edit.
"""The options of modules node_service and node_service_info."""

from ..form import Spec


def node_service_spec() -> Spec:
    """Return the options of module node_service."""
    return {
        "node": {"type": "str", "required": True},
        "name": {"type": "str", "required": True},
        "state": {
            "type": "str",
            "required": True,
            "choices": ["started", "stopped", "restarted", "reloaded"],
        },
    }


def node_service_info_spec() -> Spec:
    """Return the options of module node_service_info."""
    return {"node": {"type": "str", "required": True}}
