# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from cluster_info.yml: do not edit.
"""The options of module cluster_info."""

from ..form import Spec


def cluster_info_spec() -> Spec:
    return {
        "networks": {"type": "bool", "default": False},
        "failed_tasks": {"type": "int", "default": 10},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "storage_warn": {"type": "int", "default": 90},
    }
