# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task of maintenance reports of the guests that do not run."""

from __future__ import annotations

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._operation.maintenance.model import (
    MaintenanceOptions,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.maintenance.report import (
    MaintenanceProgress,
    result_of,
)

OPTIONS = MaintenanceOptions(node="pve1", state="active")


def test_a_return_counts_no_guests_that_do_not_run() -> None:
    values = result_of(MaintenanceProgress(OPTIONS, "none")).values
    assert values["evacuation"]["resting"] == 0
    assert [line for line in values["report"] if "node pve1" in line] == [
        "  node pve1: not in maintenance"
    ]


@pytest.mark.parametrize(("count", "text"), [(1, "1 guest"), (2, "2 guests")])
def test_guests_that_stay_because_they_do_not_run_are_counted(count: int, text: str) -> None:
    values = result_of(MaintenanceProgress(OPTIONS, "evacuated", resting=count)).values
    assert values["evacuation"]["resting"] == count
    assert f"  node pve1: evacuated, without {text} not running" in values["report"]
