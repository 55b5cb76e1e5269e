# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules acme_account and acme_account_info.

Written by `make options` from acme_account.yml: do not edit.
"""

from __future__ import annotations

from typing import Any

Spec = dict[str, dict[str, Any]]


def acme_account_spec() -> Spec:
    """Return the options of module acme_account."""
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
    """Return the options of module acme_account_info."""
    return {"name": {"type": "str"}}
