# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module tidy.

Written by `make options` from tidy.yml: do not edit.
"""

from __future__ import annotations

from typing import Any

from ..environment import limit

Spec = dict[str, dict[str, Any]]


def tidy_spec() -> Spec:
    """Return the options of module tidy."""
    return {
        "tenant": {"type": "str", "required": True},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "task_timeout": limit(300, "PROXMOX_TASK_TIMEOUT"),
    }
