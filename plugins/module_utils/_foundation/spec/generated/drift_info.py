# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from drift_info.yml: do not edit.
"""The options of module drift_info."""

from ..form import Spec


def drift_info_spec() -> Spec:
    return {
        "vms": {"type": "list", "elements": "dict"},
        "containers": {"type": "list", "elements": "dict"},
        "cluster": {"type": "dict"},
        "defaults": {"type": "dict", "default": {}},
        "classes": {"type": "dict", "default": {}},
        "networks": {"type": "dict", "default": {}},
        "storage_classes": {"type": "dict", "default": {}},
        "state": {
            "type": "str",
            "choices": ["present", "started", "stopped"],
            "default": "present",
        },
        "tenants": {"type": "list", "elements": "str"},
        "tenant_settings": {"type": "dict", "default": {}},
        "tenants_required": {"type": "bool", "default": True},
        "backup_jobs": {"type": "bool", "default": True},
        "of_sites": {"type": "list", "elements": "str", "default": []},
        "unlisted": {"type": "bool", "default": True},
        "ignore": {"type": "list", "elements": "str", "default": []},
    }
