# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Modules disk and disk_info against the simulator, which follows pve-storage: PVE/API2/Disks.pm
and PVE/Diskmanage.pm.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.estate_lab import Lab
from tests.modules.table_lab import done, refused

ROOT: dict[str, Any] = {
    "user": "root@pam",
    "password": "fleetpw123",
    "token_id": None,
    "token_secret": None,
}
UNUSED: dict[str, Any] = {"node": "pve1", "disk": "/dev/sdb", "state": "initialized"}


def disk_of(lab: Lab, device: str, **options: Any) -> dict[str, Any]:
    listed = lab.run("disk_info", node="pve1", **options)["disks"]
    return next(disk for disk in listed if disk["device"] == device)


def test_disk_is_initialized_and_wiped(unused: Lab) -> None:
    path = "/dev/disk/by-id/ata-Demo_Disk_B1"
    made = done(unused, "disk", **{**UNUSED, "disk": path})
    assert made["disk"] == disk_of(unused, "/dev/sdb")
    assert (made["disk"]["path"], made["disk"]["gpt"]) == (path, True)
    wiped = done(unused, "disk", **{**UNUSED, **ROOT, "state": "wiped", "confirm": "B1"})
    assert (wiped["disk"]["gpt"], wiped["disk"]["used"]) == (False, None)


def test_leftover_file_system_is_wiped(unused: Lab) -> None:
    task = {"node": "pve1", "disk": "/dev/sde", "state": "wiped", **ROOT}
    done(unused, "disk", **task, confirm="E1")
    assert disk_of(unused, "/dev/sde")["used"] is None


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"state": "wiped"}, "confirm", "Set confirm to the serial number"),
    ({"state": "wiped", "confirm": "B1"}, "root only", "never to a token"),
    ({"state": "wiped", "confirm": "C1", **ROOT}, "confirm", "it has serial number B1"),
    ({"confirm": "C1"}, "confirm", "it has serial number B1, and confirm is C1"),
    ({"disk": "/dev/sda1"}, "unknown disk", "node pve1 has no disk /dev/sda1"),
    ({"disk": "/dev/sde"}, "in use", "it is in use: ext4"),
    (
        {"disk": "/dev/sda", "state": "wiped", "confirm": "SYS1", **ROOT},
        "in use",
        "volume group pve",
    ),
    (
        {"disk": "/dev/nvme0n1", "state": "wiped", "confirm": "N1", **ROOT},
        "in use",
        "OSD 4, volume group ceph-1",
    ),
]


@pytest.mark.parametrize(("options", "reason", "word"), REFUSED, ids=str)
def test_disk_is_refused(unused: Lab, options: dict[str, Any], reason: str, word: str) -> None:
    result = refused(unused, "disk", **{**UNUSED, **options})
    assert result["error"]["reason"] == reason, result["msg"]
    assert word in result["msg"]


def test_disks_of_all_nodes(unused: Lab) -> None:
    unused.simulator.steer("/nodes/pve3", {"online": False})
    found = unused.run("disk_info")
    assert {disk["node"] for disk in found["disks"]} == {"pve1", "pve2"}
    assert [entry["node"] for entry in found["missing"]] == ["pve3"]
    assert "pve3" in found["warnings"][0]
    system = next(disk for disk in found["disks"] if disk["serial"] == "SYS1")
    assert [part["used"] for part in system["partitions"]] == ["BIOS boot", "EFI", "LVM"]
    assert (system["health"], system["wearout"]) == (None, None)


def test_health_is_read_on_request(unused: Lab) -> None:
    checked = disk_of(unused, "/dev/nvme0n1", smart=True)
    assert (checked["health"], checked["wearout"], checked["osds"]) == ("PASSED", 97, [4])
