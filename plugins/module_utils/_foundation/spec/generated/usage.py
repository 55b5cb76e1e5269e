# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from usage.yml: do not edit.
"""The options of module usage."""

from ..form import Spec


def usage_spec() -> Spec:
    return {
        "path": {"type": "path", "required": True},
        "month": {"type": "str"},
        "classes": {"type": "dict", "default": {}},
        "max_gap": {"type": "int", "default": 3600},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
    }
