# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from apt_repository.yml: do not edit.
"""The options of modules apt_repository and apt_repository_info."""

from ..form import Spec


def apt_repository_spec() -> Spec:
    return {
        "node": {"type": "str", "required": True},
        "handle": {"type": "str"},
        "uri": {"type": "str"},
        "state": {"type": "str", "choices": ["enabled", "disabled"], "default": "enabled"},
    }


def apt_repository_info_spec() -> Spec:
    return {"node": {"type": "str", "required": True}}
