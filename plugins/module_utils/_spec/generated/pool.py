# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules pool and pool_info.

Written by `make options` from pool.yml: do not edit.
"""

from __future__ import annotations

from typing import Any

Spec = dict[str, dict[str, Any]]


def pool_spec() -> Spec:
    """Return the options of module pool."""
    return {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "comment": {"type": "str"},
        "vms": {"type": "list", "elements": "int"},
        "storages": {"type": "list", "elements": "str"},
        "exact": {"type": "bool", "default": False},
        "allow_move": {"type": "bool", "default": False},
        "force": {"type": "bool", "default": False},
        "allow_self": {"type": "bool", "default": False},
    }


def pool_info_spec() -> Spec:
    """Return the options of module pool_info."""
    return {"name": {"type": "str"}}
