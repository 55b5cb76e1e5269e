# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The argument specifications of modules node_info and cluster_info, without the connection."""

from __future__ import annotations

from .vm import Spec


def _limits() -> Spec:
    return {"memory_warn": {"type": "int", "default": 90}, "storage_warn": {"type": "int", "default": 90}}


def node_info_spec() -> Spec:
    """Return the options of module node_info."""
    return {
        "node": {"type": "str"},
        "details": {"type": "bool"},
        "cpu_overcommit": {"type": "float", "default": 4.0},
        "memory_overcommit": {"type": "float", "default": 1.0},
        "min_free_memory": {"type": "raw"},
        "max_vms_per_node": {"type": "int"},
        **_limits(),
    }


def cluster_info_spec() -> Spec:
    """Return the options of module cluster_info."""
    return {
        "networks": {"type": "bool", "default": False},
        "failed_tasks": {"type": "int", "default": 10},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "storage_warn": {"type": "int", "default": 90},
    }
