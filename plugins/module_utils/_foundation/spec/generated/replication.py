# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from replication.yml: do not edit.
"""The options of modules replication and replication_info."""

from ..form import Spec


def replication_spec() -> Spec:
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
    return {"id": {"type": "str"}}
