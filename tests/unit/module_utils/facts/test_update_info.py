# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pending updates that install a kernel."""

from __future__ import annotations

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.facts.update_info import (
    describe_updates,
)


@pytest.mark.parametrize(
    ("package", "expected"),
    [
        ("proxmox-kernel-6.17", True),
        ("proxmox-kernel-6.17.4-1-pve-signed", True),
        ("pve-kernel-5.15", True),
        ("linux-image-amd64", True),
        ("proxmox-kernel-helper", False),
        ("proxmox-default-kernel", False),
        ("pve-firmware", False),
    ],
)
def test_kernels(package: str, expected: bool) -> None:
    """The names are those of pve-manager: bin/pveupgrade and PVE/API2/APT.pm (versions)."""
    found = describe_updates("pve1", [{"Package": package}])
    assert found["installs_kernel"] is expected
