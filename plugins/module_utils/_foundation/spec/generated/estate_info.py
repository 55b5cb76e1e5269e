# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from estate_info.yml: do not edit.
"""The options of module estate_info."""

from ..form import Spec


def estate_info_spec() -> Spec:
    return {
        "tenant": {"type": "str"},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "pool": {"type": "str"},
        "tags": {"type": "list", "elements": "str"},
        "vms": {"type": "list", "elements": "str"},
        "templates": {"type": "bool", "default": True},
        "adopt": {"type": "str"},
        "power": {"type": "bool", "default": True},
        "on_nodes": {"type": "bool", "default": False},
        "quotas": {"type": "bool", "default": False},
    }
