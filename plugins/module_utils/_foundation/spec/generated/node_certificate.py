# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from node_certificate.yml: do not edit.
"""The options of modules node_certificate and node_certificate_info."""

from ..form import Spec


def node_certificate_spec() -> Spec:
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
    return {"node": {"type": "str", "required": True}}
