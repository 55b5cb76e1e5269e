# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bytes that a change needs on the storages."""

from __future__ import annotations

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.quantities import GIB
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.plan.capacity import new_bytes
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.vm.kind import VM


def test_a_drive_without_a_size_does_not_hide_the_next_one() -> None:
    before = {"scsi0": "ceph:vm-100-disk-0", "scsi1": "ceph:vm-100-disk-1,size=1G"}
    after = {**before, "scsi1": "ceph:vm-100-disk-1,size=3G", "scsi2": "tank:new,size=1G"}
    assert new_bytes(VM, before, after) == {"ceph": 2 * GIB, "tank": GIB}
