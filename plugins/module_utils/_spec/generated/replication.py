# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules replication and replication_info.

Written by `make options` from replication.yml: do not edit.
"""

from __future__ import annotations

from typing import Any

Spec = dict[str, dict[str, Any]]


def replication_spec() -> Spec:
    """Return the options of module replication."""
    return {
        "id": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "target": {"type": "str"},
        "schedule": {"type": "str"},
        "rate": {"type": "str"},
        "disable": {"type": "bool"},
        "comment": {"type": "str"},
        "tenant": {"type": "str"},
        "force": {"type": "bool", "default": False},
    }


def replication_info_spec() -> Spec:
    """Return the options of module replication_info."""
    return {"id": {"type": "str"}}
