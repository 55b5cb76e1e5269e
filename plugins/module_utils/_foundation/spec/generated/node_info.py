# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from node_info.yml: do not edit.
"""The options of module node_info."""

from ..form import Spec


def node_info_spec() -> Spec:
    return {
        "node": {"type": "str"},
        "details": {"type": "bool"},
        "cpu_overcommit": {"type": "float", "default": 4.0},
        "memory_overcommit": {"type": "float", "default": 1.0},
        "min_free_memory": {"type": "raw"},
        "max_vms_per_node": {"type": "raw"},
        "memory_warn": {"type": "int", "default": 90},
        "storage_warn": {"type": "int", "default": 90},
    }
