# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from cpu_model.yml: do not edit.
"""The options of modules cpu_model and cpu_model_info."""

from ..form import Spec


def cpu_model_spec() -> Spec:
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
    return {"name": {"type": "str"}}
