# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from tidy.yml: do not edit.
"""The options of module tidy."""

from ..environment import limit
from ..form import Spec


def tidy_spec() -> Spec:
    return {
        "tenant": {"type": "str", "required": True},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "task_timeout": limit(300, "PROXMOX_TASK_TIMEOUT"),
    }
