# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The marks of a retention are those of pve-storage: src/test/prune_backups_test.pm has the cases,
of which the facts are repeated here.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._protection.backup.archive import Archive
from ansible_collections.pve.fleet.plugins.module_utils._protection.backup.create.prune import (
    mark_archives,
    needs_local_time,
    offset_of,
)
from tests.simulator_tests.prune_cases import AGES, BASE, CASES, DAY, HOUR, PROTECTED, K, R


def archive(moment: int, *, kind: str = "qemu", name: str = "", **more: Any) -> Archive:
    stamp = time.strftime("%Y_%m_%d-%H_%M_%S", time.gmtime(moment))
    fields: dict[str, Any] = {
        "volume": name or f"nas:backup/vzdump-{kind}-100-{stamp}.tar.zst",
        "storage": "nas",
        "storage_kind": "dir",
        "node": "pve1",
        "place": "",
        "type": kind,
        "vmid": 100,
        "time": moment,
        "size": 1,
    }
    return Archive(**{**fields, **more})


def marks(archives: list[Archive], **keep: int) -> list[str]:
    """Return the marks, the oldest first."""
    rule = {f"keep-{name}": str(count) for name, count in keep.items()}
    return [one.mark for one in reversed(mark_archives(archives, rule))]


@pytest.mark.parametrize(("keep", "expected"), CASES)
def test_marks_of_pve(keep: dict[str, int], expected: tuple[str, ...]) -> None:
    archives = [
        archive(BASE - age, protected=position == PROTECTED) for position, age in enumerate(AGES)
    ]
    found = marks(archives, **keep)
    assert found.pop(PROTECTED) == "protected"
    assert tuple(found) == expected


def test_three_rules_and_a_boundary_of_weeks() -> None:
    three = [archive(BASE - age * DAY) for age in (7, 1, 0)]
    assert marks(three, daily=1, weekly=1, monthly=1) == [K, R, K]
    weeks = [archive(BASE + (366 - 31 + day) * DAY) for day in (2, 3, 6)]
    assert marks(weeks, daily=1, weekly=1) == [R, K, K]


def test_years_far_away() -> None:
    assert marks([archive(83), archive(DAY * (365 * 100 + 25) + 60)], yearly=1) == [R, K]


def test_renamed_archives_stay_and_do_not_count() -> None:
    renamed = archive(BASE, name="nas:backup/vzdump-100-renamed.tar.zst")
    found = mark_archives([renamed, archive(BASE - DAY)], {"keep-last": "1"})
    assert [one.mark for one in found] == ["renamed", K]


def test_reasons() -> None:
    archives = [archive(BASE - age) for age in (0, HOUR, DAY, 2 * DAY)]
    found = mark_archives(archives, {"keep-last": "1", "keep-daily": "1"})
    assert [one.reason for one in found] == [
        "keep-last",
        "no rule keeps it",
        "keep-daily 2019-12-31",
        "no rule keeps it",
    ]


def test_days_are_those_of_the_node() -> None:
    """A backup at 23:30 UTC is on the next day in a node's zone, as the name of its file says."""
    late = archive(BASE, name="nas:backup/vzdump-qemu-100-2020_01_02-00_18_21.vma.zst")
    next_day = archive(BASE + HOUR, name="nas:backup/vzdump-qemu-100-2020_01_02-01_18_21.vma.zst")
    assert marks([late, next_day], daily=2) == [R, K]
    assert offset_of([late]) == 12 * HOUR
    server = [
        archive(BASE, name="pbs:backup/vm/100/2020-01-01T12:18:21Z"),
        archive(BASE + 11 * HOUR, name="pbs:backup/vm/100/2020-01-01T23:18:21Z"),
    ]
    rule = {"keep-daily": "2"}
    assert [one.mark for one in mark_archives(server, rule, 0)] == [K, R]
    assert [one.mark for one in mark_archives(server, rule, 2 * HOUR)] == [K, K]


def test_only_periods_need_local_time() -> None:
    assert not needs_local_time({"keep-last": "3", "keep-daily": "0"})
    assert needs_local_time({"keep-weekly": "1"})
