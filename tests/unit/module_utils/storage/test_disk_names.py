# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of volumes on each type of storage.

Source: pve-storage, parse_volname, alloc_image and free_image of each plugin in PVE/Storage;
Storage.pm, vdisk_alloc: without a format, a disk has the default format of its storage.
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.storages.types import (
    CONTENT,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.volume.desired import (
    read_desired_volume,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.volume.plan import (
    require_disk_name,
)

NEW: dict[str, Any] = {"vmid": 100, "size": "1G"}
GONE: dict[str, Any] = {"state": "absent"}
SUBVOL: dict[str, Any] = {**NEW, "format": "subvol"}
FILES = ("btrfs", "cifs", "dir", "nfs")
LVMS = ("lvm", "lvmthin")
BLOCKS = (*LVMS, "rbd", "zfs", "zfspool")

# Type, name, options, and the cause of a refusal; an empty cause for a name that the type has.
CASES: list[tuple[tuple[str, ...], str, dict[str, Any], str]] = [
    (FILES, "100/vm-100-a.raw", NEW, ""),
    (FILES[1:], "100/vm-100-a.qcow2", NEW, ""),
    (FILES[:1], "100/vm-100-a.qcow2", NEW, "has format qcow2"),
    (FILES, "100/vm-100-a.qcow2", GONE, ""),
    (FILES, "100/vm-100-a", NEW, "is not a name"),
    (FILES, "vm-100-a.raw", GONE, "is not a name"),
    (FILES, "100/snap-b-vm-100-a.qcow2", GONE, "is not a name"),
    (FILES, "9/base-9-a.qcow2/100/vm-100-a.qcow2", GONE, ""),
    (FILES, "100/vm-100-a.subvol", SUBVOL, "has format subvol"),
    (BLOCKS, "vm-100-a", NEW, ""),
    (BLOCKS, "vm-100-a", {**NEW, "format": "raw"}, ""),
    (BLOCKS, "100/vm-100-a.raw", NEW, "is not a name"),
    (BLOCKS, "vm-100-a.vmdk", NEW, "has format vmdk"),
    (BLOCKS, "vm-100-a", {**NEW, "format": "qcow2"}, "has format qcow2"),
    (("lvm",), "base-100-a", GONE, "is not a name"),
    (("lvmthin", "rbd", "zfs", "zfspool"), "base-100-a", GONE, ""),
    (("rbd", "zfs", "zfspool"), "base-9-a/vm-100-b", GONE, ""),
    (LVMS, "base-9-a/vm-100-b", GONE, "is not a name"),
    (LVMS, "vm-100-a_", NEW, "is not a name"),
    (("lvmthin", "rbd", "zfs", "lvm"), "vm-100-a", SUBVOL, "has format subvol"),
    (("zfspool",), "subvol-100-a", SUBVOL, ""),
    (("zfspool",), "vm-100-a", SUBVOL, "does not begin with subvol-100-"),
    (("zfspool",), "subvol-100-a", NEW, "does not begin with vm-100-"),
    (("iscsi",), "0.0.1.scsi-36001405", GONE, "neither creates nor deletes"),
    (("iscsi",), "0.0.1.scsi-36001405", {}, ""),
    (("iscsi", "iscsidirect"), "vm-100-a", NEW, "is not a name"),
    (("iscsidirect",), "lun3", {}, ""),
    (("iscsidirect",), "lun3", GONE, "neither creates nor deletes"),
    (("esxi",), "dc/store/web/web.vmx", {}, ""),
    (("esxi",), "dc/store/web/web.vmdk", GONE, "neither creates nor deletes"),
    (("esxi",), "vm-100-a", NEW, "is not a name"),
    (("cephfs",), "100/vm-100-a.raw", NEW, "is a disk"),
    (("cephfs",), "iso/a.iso", GONE, ""),
    (("pbs",), "backup/vm/100/2026-01-02T03:04:05Z", GONE, ""),
    (("pbs",), "backup/vzdump-qemu-100-2026_01_02-03_04_05.vma.zst", GONE, "backup server"),
    (("pbs",), "vm-100-a", NEW, "backup server"),
]
ROWS = [(kind, *rest) for kinds, *rest in CASES for kind in kinds]


def cause(kind: str, name: str, options: dict[str, Any], *, chains: bool = False) -> str:
    desired = read_desired_volume({"volume": f"store:{name}", "node": "pve1", **options})
    try:
        require_disk_name(desired, kind, chains=chains)
    except ValidationFailed as error:
        return error.message
    return ""


@pytest.mark.parametrize(("kind", "name", "options", "why"), ROWS, ids=str)
def test_name_of_a_volume(kind: str, name: str, options: dict[str, Any], why: str) -> None:
    found = cause(kind, name, options)
    assert bool(found) == bool(why), found
    assert why in found


@pytest.mark.parametrize(
    ("name", "format_", "why"),
    [
        ("vm-100-a.qcow2", None, ""),
        ("vm-100-a.qcow2", "qcow2", ""),
        ("vm-100-a", "raw", ""),
        ("vm-100-a", None, "needs the ending .qcow2, or format=raw"),
        ("vm-100-a", "qcow2", "needs the ending .qcow2"),
        ("vm-100-a.qcow2", "raw", "is not the name of a disk of format raw"),
    ],
)
def test_lvm_with_snapshots_as_volumes(name: str, format_: str | None, why: str) -> None:
    """Source: LVMPlugin.pm, get_formats and verify_volname_format."""
    found = cause("lvm", name, {**NEW, "format": format_}, chains=True)
    assert bool(found) == bool(why), found
    assert why in found


def test_each_type_has_a_case() -> None:
    assert {kind for kind, *_rest in ROWS} == set(CONTENT)
