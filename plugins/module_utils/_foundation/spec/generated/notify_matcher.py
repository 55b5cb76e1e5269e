# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from notify_matcher.yml: do not edit.
"""The options of modules notification_matcher and notification_matcher_info."""

from ..form import Spec


def notification_matcher_spec() -> Spec:
    return {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "target": {"type": "list", "elements": "str"},
        "mode": {"type": "str", "choices": ["all", "any"]},
        "invert_match": {"type": "bool"},
        "match_severity": {"type": "list", "elements": "str"},
        "match_field": {"type": "list", "elements": "str"},
        "match_calendar": {"type": "list", "elements": "str"},
        "disable": {"type": "bool"},
        "comment": {"type": "str"},
    }


def notification_matcher_info_spec() -> Spec:
    return {"name": {"type": "str"}}
