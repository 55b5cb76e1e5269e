# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules group and group_info.

Written by `make options` from group.yml: do not edit.
"""

from __future__ import annotations

from typing import Any

Spec = dict[str, dict[str, Any]]


def group_spec() -> Spec:
    """Return the options of module group."""
    return {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "comment": {"type": "str"},
        "force": {"type": "bool", "default": False},
        "allow_self": {"type": "bool", "default": False},
    }


def group_info_spec() -> Spec:
    """Return the options of module group_info."""
    return {"name": {"type": "str"}}
