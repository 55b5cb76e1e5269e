# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from acme_account.yml: do not edit.
"""The options of modules acme_account and acme_account_info."""

from ..form import Spec


def acme_account_spec() -> Spec:
    return {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "contact": {"type": "list", "elements": "str"},
        "directory": {"type": "str"},
        "tos_url": {"type": "str"},
        "eab_kid": {"type": "str"},
        "eab_hmac_key": {"type": "str", "no_log": True},
    }


def acme_account_info_spec() -> Spec:
    return {"name": {"type": "str"}}
