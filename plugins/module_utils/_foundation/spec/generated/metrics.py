# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from metrics.yml: do not edit.
"""The options of modules metrics and metrics_info."""

from ..form import Spec


def metrics_file_spec() -> Spec:
    """Return the option that names the file."""
    return {"path": {"type": "path", "required": True}}


def metrics_spec() -> Spec:
    """Return the options that choose the metrics."""
    return {
        "quotas": {"type": "dict", "default": {}},
        "tenants": {"type": "dict", "default": {}},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "snapshots": {"type": "bool", "default": True},
        "backups": {"type": "bool", "default": True},
        "volumes": {"type": "bool", "default": True},
        "versions": {"type": "bool", "default": True},
        "drift": {"type": "dict"},
        "drills": {"type": "str", "default": ""},
        "cpu_overcommit": {"type": "float", "default": 4.0},
        "memory_overcommit": {"type": "float", "default": 1.0},
        "min_free_memory": {"type": "raw"},
        "max_vms_per_node": {"type": "raw"},
    }
