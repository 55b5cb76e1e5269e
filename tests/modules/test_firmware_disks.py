# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The firmware disks of a VM: their size and form are fixed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.estate_lab import Lab


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


@pytest.mark.parametrize("size", ["528K", "1.5K", "4M", 0.5, "200T"])
def test_a_firmware_disk_has_no_size(lab: Lab, size: object) -> None:
    failure = lab.refused(name="new", disks=[{"name": "efidisk0", "size": size}])
    assert "cannot be chosen: PVE decides how large it is" in failure["msg"]


@pytest.mark.parametrize("size", ["0.1K", "200T"])
def test_a_slot_is_checked_before_its_size(lab: Lab, size: str) -> None:
    failure = lab.refused(name="new", disks=[{"name": "scsi99", "size": size}])
    assert "'scsi99' is not a drive of a VM" in failure["msg"]


@pytest.mark.parametrize(
    ("slot", "options", "name"),
    [
        ("efidisk0", {"efitype": "2m"}, "efitype"),
        ("efidisk0", {"efitype": None}, "efitype"),
        ("efidisk0", {"pre-enrolled-keys": False}, "pre-enrolled-keys"),
        ("tpmstate0", {"version": "v1.2"}, "version"),
    ],
)
def test_the_form_of_a_firmware_disk_is_fixed(
    lab: Lab, slot: str, options: dict[str, Any], name: str
) -> None:
    """PVE reads these sub-keys when it creates the disk (qemu-server: API2/Qemu.pm, create_disks),
    and writes a later change to the configuration without any effect on the disk.
    """
    disks = [{"name": "efidisk0"}, {"name": "tpmstate0"}]
    lab.vm(name="firmware", bios="uefi", disks=disks, default_storage="ceph")
    failure = lab.refused(name="firmware", disks=[{"name": slot, "options": options}])
    assert f"{name} cannot change once the disk is made" in failure["msg"]
    again = lab.vm(name="firmware", disks=[{"name": "efidisk0", "options": {"efitype": "4m"}}])
    assert not again["changed"]
