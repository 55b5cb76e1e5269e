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
    _headline, first, *more = lines_of(document)
    label = "~ acme/web (101, pve1)  "
    assert first.startswith(label)
    return [first.removeprefix(label), *map(str.strip, more)]


def option(name: str, wanted: Any, actual: Any, pending: Any = None) -> dict[str, Any]:
    value = None if pending is None else {"value": pending}
    return {"option": name, "wanted": wanted, "actual": actual, "pending": value}


def test_a_line_is_the_change_that_a_run_would_make() -> None:
    size = option("scsi0", {"size": "10G"}, {"size": "20G"})
    tags = option("tags", ["web", "new"], ["web"])
    assert shown(option("memory", 2048, 4096), size, tags) == [
        "memory 4G -> 2G, scsi0 size 20G -> 10G, tag new added"
    ]


@pytest.mark.parametrize("name", ["memory", "balloon", "swap"])
def test_a_value_that_waits_for_a_reboot_is_named(name: str) -> None:
    assert shown(option(name, 1024, 2048, 1024)) == [f"{name} 2G -> 1G (waits for a reboot)"]
    assert shown(option(name, 1024, 2048, 3072)) == [
        f"{name} 2G -> 1G, {name} 3G waits for a reboot"
    ]
    assert shown(option(name, 1024, 1024, 3072)) == [f"{name} 3G waits for a reboot"]


def test_different_sizes_differ_in_a_line() -> None:
    disk = option("rootfs", {"size": "2048G"}, {"size": "2049G"})
    assert shown(disk) == ["rootfs size 2049G -> 2048G"]
    assert shown(option("memory", 16384, 16385)) == ["memory 16385M -> 16G"]


def test_other_values_are_one_line() -> None:
    assert shown(option("description", "a\nb", None)) == ["description a b added"]
    assert shown(option("description", None, "a\nb")) == ["description removed"]
    aliases = option("aliases", [{"name": "office"}], [{"cidr": "192.0.2.1"}])
    assert shown(aliases) == ["aliases office added, aliases 192.0.2.1 removed"]


def test_an_image_that_no_run_replaces_is_a_detail() -> None:
    image = option("source", "golden@2", "golden@1")
    (first, detail) = shown(image, option("cores", 1, 2))
    assert first == "cores 2 -> 1"
    assert detail == (
        "source: it was cloned from image golden@1, and the source is golden@2 now; a run does not"
        " replace the VM"
    )
