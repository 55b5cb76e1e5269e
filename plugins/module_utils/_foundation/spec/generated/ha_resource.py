# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from ha_resource.yml: do not edit.
"""The options of modules ha_resource and ha_resource_info."""

from ..form import Spec


def ha_resource_spec() -> Spec:
    return {
        "sid": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "request_state": {"type": "str", "choices": ["started", "stopped", "disabled", "ignored"]},
        "max_restart": {"type": "int"},
        "max_relocate": {"type": "int"},
        "failback": {"type": "bool"},
        "group": {"type": "str"},
        "comment": {"type": "str"},
        "tenant": {"type": "str"},
    }


def ha_resource_info_spec() -> Spec:
    return {"sid": {"type": "str"}}
