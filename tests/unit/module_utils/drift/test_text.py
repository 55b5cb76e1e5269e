# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines of a drift report: one kind of unit for a size, whatever option it belongs to."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._operation.drift.text import lines_of

ROW: dict[str, Any] = {
    "name": "web",
    "tenant": "acme",
    "kind": "vm",
    "vmid": 101,
    "node": "pve1",
    "site": None,
    "status": "drifted",
    "reason": None,
    "steps": [],
    "last_task": None,
}


def shown(*options: dict[str, Any]) -> list[str]:
    document = {
        "drift": True,
        "complete": True,
        "summary": {"drifted": 1},
        "sites": [],
        "nodes": [],
        "cluster": [],
        "logins": [],
        "vms": [{**ROW, "options": list(options)}],
        "unlisted": [],
        "quotas": [],
    }
    return [line.strip() for line in lines_of(document)[2:]]


def option(name: str, wanted: Any, actual: Any, pending: Any = None) -> dict[str, Any]:
    value = None if pending is None else {"value": pending}
    return {"option": name, "wanted": wanted, "actual": actual, "pending": value}


def test_memory_and_disks_have_one_unit() -> None:
    assert shown(
        option("memory", 2048, 4096), option("scsi0", {"size": "10G"}, {"size": "20480M"})
    ) == [
        "memory: wanted 2 GiB, actual 4 GiB",
        'scsi0: wanted {"size": "10 GiB"}, actual {"size": "20 GiB"}',
    ]


@pytest.mark.parametrize("name", ["memory", "balloon", "swap"])
def test_options_in_mib_are_sizes(name: str) -> None:
    assert shown(option(name, 1024, 2048, 3072)) == [
        f"{name}: wanted 1 GiB, actual 2 GiB, pending 3 GiB"
    ]


def test_different_sizes_differ_in_a_line() -> None:
    disk = option("rootfs", {"size": "2048G"}, {"size": "2049G"})
    assert shown(disk) == ['rootfs: wanted {"size": "2048 GiB"}, actual {"size": "2049 GiB"}']
    assert shown(option("memory", 16384, 16385)) == ["memory: wanted 16384 MiB, actual 16385 MiB"]


def test_other_values_are_one_line() -> None:
    assert shown(option("description", "a\nb", None)) == [
        'description: wanted "a\\nb", actual not set'
    ]
