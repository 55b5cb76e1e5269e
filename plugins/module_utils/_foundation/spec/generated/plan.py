# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from plan.yml: do not edit.
"""The options of modules whose plan can be kept for an approval, and applied."""

from ..form import Spec


def plan_spec() -> Spec:
    """Return the options of modules whose plan can be approved."""
    return {
        "plan_file": {"type": "path"},
        "plan_run": {"type": "str", "default": ""},
        "apply_plan": {"type": "path"},
        "plan_key": {"type": "str", "no_log": True},
        "plan_days": {"type": "int", "default": 7},
        "plan_commit": {"type": "str", "default": ""},
        "plan_signing_key": {"type": "path", "no_log": False},
        "plan_trusted_key": {"type": "path", "no_log": False},
    }
