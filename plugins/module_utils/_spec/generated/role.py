# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules role and role_info.

Written by `make options` from role.yml: do not edit.
"""

from __future__ import annotations

from typing import Any

Spec = dict[str, dict[str, Any]]


def role_spec() -> Spec:
    """Return the options of module role."""
    return {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "privileges": {"type": "list", "elements": "str"},
        "append": {"type": "bool", "default": False},
        "force": {"type": "bool", "default": False},
        "allow_self": {"type": "bool", "default": False},
    }


def role_info_spec() -> Spec:
    """Return the options of module role_info."""
    return {"name": {"type": "str"}}
