# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of VMs that failed, and of a run that was refused before its first VM."""

from __future__ import annotations

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    AuthenticationError,
    TaskFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.failures.several import (
    FailedGuest,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.fleet.report import refused_values
from ansible_collections.pve.fleet.plugins.module_utils._guests.fleet.summary import lines_of


def test_the_lines_of_a_refused_run_count_its_vms() -> None:
    """The message of the task has the cause, and Ansible prints it."""
    refused = AuthenticationError(attempted="Could not log in", answer="no ticket")
    values = refused_values({"vms": [{"name": "a"}, {"name": "b"}]}, refused)
    assert values["report"] == ["Plan: 2 refused"]


def test_a_failure_shows_the_last_ten_lines_of_the_log() -> None:
    log = tuple(f"line {number}" for number in range(1, 13))
    failure = TaskFailed(attempted="Could not start it", answer="no space left", log=log)
    rows = refused_values({"vms": [{"name": "a"}]}, failure)["vms"]
    lines = lines_of(rows, {}, {0: FailedGuest("VM 'a'", failure)}, check_mode=False)
    shown = [line.partition("log: ")[2] for line in lines if "log: " in line]
    assert shown == list(log[2:])
