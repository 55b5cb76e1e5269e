# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The argument specifications of modules snapshot and snapshot_info, without the connection."""

from __future__ import annotations

from .vm import Spec


def choice_spec() -> Spec:
    """Return the options that say which VMs are meant."""
    return {
        "name": {"type": "str"},
        "vmid": {"type": "int"},
        "vms": {"type": "list", "elements": "str"},
        "tenant": {"type": "str"},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "tags": {"type": "list", "elements": "str"},
    }


def snapshot_spec() -> Spec:
    """Return the options of module snapshot."""
    return {
        **choice_spec(),
        "state": {"type": "str", "choices": ["present", "absent", "rolled_back"], "default": "present"},
        "snapshot": {"type": "str"},
        "prefix": {"type": "str", "default": "auto-"},
        "description": {"type": "str"},
        "vmstate": {"type": "bool", "default": False},
        "keep": {"type": "int"},
        "keep_for": {"type": "str"},
        "pattern": {"type": "str"},
        "restart": {"type": "bool", "default": True},
        "force": {"type": "bool", "default": False},
        "parallel": {"type": "int", "default": 4},
        "task_timeout": {"type": "int", "default": 300},
    }


def snapshot_info_spec() -> Spec:
    """Return the options of module snapshot_info."""
    return {**choice_spec(), "details": {"type": "bool", "default": False}}
