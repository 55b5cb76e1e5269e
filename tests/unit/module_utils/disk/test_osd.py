# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wait until Ceph shows the outcome of a task."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.manage import (
    PlannedStep,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.plan import Plan, Step
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.disk.run_osd import (
    OsdTask,
)
from tests.fake_clock import FakeClock

STEP = Step("start", "start osd.0", "POST", ("nodes", "pve1", "services", "ceph-osd@0", "start"))


class Wrong(FakeClock):
    """The clock of a machine that someone sets back again and again."""

    def time(self) -> float:
        return 1_700_000_000.0


def test_the_wait_ends_although_the_time_of_day_stands_still() -> None:
    clock = Wrong()
    client: Any = SimpleNamespace(clock=clock)
    task = OsdTask(client, "osd.0", lambda: PlannedStep(Plan((STEP,)), {}))
    assert task.await_final() == ()
    assert sum(clock.slept) == 60
