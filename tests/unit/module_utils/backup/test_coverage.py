# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guests that backup jobs cover, and rules of retention."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import (
    cluster_state_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.backup.job.coverage import (
    jobs_by_guest,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.backup.job.table import (
    BACKUP_JOB,
    retention,
)

ROWS: list[dict[str, Any]] = [
    {"type": "qemu", "vmid": 100, "node": "pve1", "pool": "acme"},
    {"type": "lxc", "vmid": 101, "node": "pve2", "pool": "acme"},
    {"type": "qemu", "vmid": 102, "node": "pve2"},
]
GUESTS = list(cluster_state_of(ROWS, {"qemu", "lxc"}).vms.values())


@pytest.mark.parametrize(
    ("job", "covered"),
    [
        ({"all": 1}, {100, 101, 102}),
        ({"all": 1, "exclude": "100,102"}, {101}),
        ({"all": 1, "node": "pve2"}, {101, 102}),
        ({"pool": "acme"}, {100, 101}),
        ({"pool": "acme", "exclude": "101"}, {100}),
        ({"vmid": "102,999"}, {102}),
        ({"all": 1, "enabled": 0}, set()),
        ({}, set()),
    ],
)
def test_guests_of_a_job(job: dict[str, Any], covered: set[int]) -> None:
    values = BACKUP_JOB.values({"id": "j", "schedule": "1:00", **job})
    found = jobs_by_guest({"j": values}, GUESTS)
    assert {vmid for vmid, jobs in found.items() if jobs} == covered


def test_jobs_of_a_guest_are_sorted() -> None:
    jobs = {name: BACKUP_JOB.values({"id": name, "all": 1}) for name in ("b", "a")}
    assert jobs_by_guest(jobs, GUESTS)[100] == ["a", "b"]


def test_retention() -> None:
    assert retention({}) == {}
    assert retention({"keep_last": 3, "keep_daily": None}) == {"keep-last": "3"}
    assert retention({"keep_all": True}) == {"keep-all": "1"}
    for wrong in ({"keep_last": 0}, {"keep_all": True, "keep_last": 1}, {"keep_last": -1}):
        with pytest.raises(ValidationFailed):
            retention(wrong)
