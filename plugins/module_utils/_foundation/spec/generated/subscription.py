# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from subscription.yml: do not edit.
"""The options of modules subscription and subscription_info."""

from ..form import Spec


def subscription_spec() -> Spec:
    return {
        "node": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "key": {"type": "str", "no_log": True},
        "update_secrets": {
            "type": "str",
            "choices": ["on_create", "always"],
            "default": "on_create",
            "no_log": False,
        },
    }


def subscription_info_spec() -> Spec:
    return {"node": {"type": "str", "required": True}}
