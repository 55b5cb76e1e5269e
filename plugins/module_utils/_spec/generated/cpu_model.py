# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules cpu_model and cpu_model_info.

Written by `make options` from cpu_model.yml: do not edit.
"""

from __future__ import annotations

from typing import Any

Spec = dict[str, dict[str, Any]]


def cpu_model_spec() -> Spec:
    """Return the options of module cpu_model."""
    return {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "reported_model": {"type": "str"},
        "flags": {"type": "list", "elements": "str"},
        "hidden": {"type": "bool"},
        "hv_vendor_id": {"type": "str"},
        "phys_bits": {"type": "str"},
        "guest_phys_bits": {"type": "str"},
        "level": {"type": "str"},
    }


def cpu_model_info_spec() -> Spec:
    """Return the options of module cpu_model_info."""
    return {"name": {"type": "str"}}
