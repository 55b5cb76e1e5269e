# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from audit_info.yml: do not edit.
"""The options of module audit_info."""

from ..form import Spec


def audit_info_spec() -> Spec:
    return {
        "tenants": {"type": "dict", "default": {}},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "max_token_age": {"type": "int", "default": 90, "no_log": False},
        "expiry_warning": {"type": "int", "default": 14},
        "lasting_tokens": {"type": "list", "elements": "str", "default": [], "no_log": False},
        "volumes": {"type": "bool", "default": True},
        "networks": {"type": "bool", "default": True},
        "backups": {"type": "bool", "default": False},
    }
