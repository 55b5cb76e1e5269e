# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a VM runs or is being started, while another run starts it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.vm.kind import VM as VM_KIND
from ansible_collections.pve.fleet.plugins.module_utils._protection.snapshot.model import (
    SnapshotTree,
    SnapshotVm,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.snapshot.resource import (
    runs_or_starts,
)
from tests.fake_api import FakeApi

VM = SnapshotVm(VM_KIND, 100, "pve1", "web1", SnapshotTree({}, None))
START = "UPID:pve1:0000C3A1:0001F2E3:65A1B2C3:qmstart:100:root@pam:"


class Starting(FakeApi):
    """A VM whose start ends after the given number of requests."""

    def __init__(self, ends_after: int) -> None:
        super().__init__(self._answer)
        self.remaining = ends_after

    def _answer(self, request: Request) -> Any:
        started = self.remaining == 0
        self.remaining = max(0, self.remaining - 1)
        if request.path[-1] == "tasks":
            return [] if started else [{"upid": START, "type": "qmstart"}]
        return {"status": "running" if started else "stopped"}


@pytest.mark.parametrize("ends_after", [0, 1, 2])
def test_a_start_that_ends_between_two_readings_is_seen(ends_after: int) -> None:
    assert runs_or_starts(Starting(ends_after).client(), VM)
