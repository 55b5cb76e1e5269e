# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run reports that was refused before any VM was worked on."""

from __future__ import annotations

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    AuthenticationError,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.fleet.report import refused_values


def test_the_lines_of_a_refused_run_count_its_vms() -> None:
    """The message of the task has the cause, and Ansible prints it."""
    refused = AuthenticationError(attempted="Could not log in", answer="no ticket")
    values = refused_values({"vms": [{"name": "a"}, {"name": "b"}]}, refused)
    assert values["report"] == ["Plan: 2 refused"]
