# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules ha_group and ha_group_info.

Written by `make options` from ha_group.yml: do not edit.
"""

from __future__ import annotations

from typing import Any

Spec = dict[str, dict[str, Any]]


def ha_group_spec() -> Spec:
    """Return the options of module ha_group."""
    return {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "nodes": {"type": "list", "elements": "str"},
        "restricted": {"type": "bool"},
        "nofailback": {"type": "bool"},
        "comment": {"type": "str"},
    }


def ha_group_info_spec() -> Spec:
    """Return the options of module ha_group_info."""
    return {"name": {"type": "str"}}
