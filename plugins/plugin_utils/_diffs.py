# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The differences of a failed task, which Ansible does not print: the changes to the other VMs."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from ansible.plugins.callback import CallbackBase


def differences(result: Mapping[str, Any]) -> str:
    """Return the differences of a failed result in the form in which Ansible prints differences."""
    found = result.get("diff")
    if not result.get("failed") or not found:
        return ""
    text: str = CallbackBase()._get_diff(copy.deepcopy(found))
    return text.rstrip("\n")
