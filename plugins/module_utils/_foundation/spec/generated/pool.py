# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from pool.yml: do not edit.
"""The options of modules pool and pool_info."""

from ..form import Spec


def pool_spec() -> Spec:
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
    return {"name": {"type": "str"}}
