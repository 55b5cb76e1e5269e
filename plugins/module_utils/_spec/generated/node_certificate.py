# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules node_certificate and node_certificate_info.

Written by `make options` from node_certificate.yml: do not edit.
"""

from __future__ import annotations

from typing import Any

Spec = dict[str, dict[str, Any]]


def node_certificate_spec() -> Spec:
    """Return the options of module node_certificate."""
    return {
        "node": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "certificates": {"type": "str"},
        "private_key": {"type": "str", "no_log": True},
        "update_secrets": {
            "type": "str",
            "choices": ["on_create", "always"],
            "default": "on_create",
            "no_log": False,
        },
        "restart": {"type": "bool", "default": True},
    }


def node_certificate_info_spec() -> Spec:
    """Return the options of module node_certificate_info."""
    return {"node": {"type": "str", "required": True}}
