# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options that the environment can set for all tasks: time limits and limits of concurrency."""

from __future__ import annotations

import os
from typing import Any

from ansible.module_utils.common.parameters import AnsibleFallbackNotFound


def limit(default: int, variable: str) -> dict[str, Any]:
    """Return the specification of a number that the environment can set if the task does not."""
    return {"type": "int", "default": default, "fallback": (_set_in_environment, [variable])}


def _set_in_environment(name: str) -> str:
    """Return the value of a variable.

    An empty variable counts as not set, unlike in Ansible's own `env_fallback`.
    """
    value = os.environ.get(name, "").strip()
    if not value:
        raise AnsibleFallbackNotFound
    return value
